//! What the verifier accepts and refuses, through real keys and proofs.

use std::sync::OnceLock;

use anofel_circuits::groth16::ark::Replay;
use anofel_circuits::groth16::key::VerifyingKey;
use anofel_circuits::groth16::proof::{Proof, PROOF_BYTES};
use anofel_circuits::groth16::prover::prove;
use anofel_circuits::groth16::setup::insecure_development_key;
use anofel_circuits::groth16::verifier::Verifier;
use anofel_circuits::statements::StatementKind::{self, Ownership, Registration, Submission};
use anofel_circuits::statements::{run, Circuit, Statement};
use anofel_circuits::system::Mode;
use anofel_circuits::Error;
use anofel_primitives::field;
use anofel_primitives::Fr;
use ark_bn254::{Bn254, Fq, G1Affine};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, Field, PrimeField, UniformRand};
use ark_groth16::Groth16;
use ark_serialize::CanonicalSerialize;
use rand::rngs::OsRng;
use rand::{CryptoRng, RngCore, SeedableRng};

use crate::common::{key, stock, World};

/// The bytes of G1, G2 and G1 in a proof.
const A: std::ops::Range<usize> = 0..32;
const B: std::ops::Range<usize> = 32..96;
const C: std::ops::Range<usize> = 96..128;

type Made = (Vec<Fr>, Proof);

fn verifier(kind: StatementKind) -> &'static Verifier {
    static VERIFIERS: [OnceLock<Verifier>; 3] = [const { OnceLock::new() }; 3];
    VERIFIERS[kind as usize].get_or_init(|| {
        let bytes = key(kind).verifying_key().to_bytes();
        Verifier::new(VerifyingKey::from_bytes(kind, &bytes).unwrap())
    })
}

fn proven<S: Statement>(made: &(S, <S::Circuit as Circuit>::Witness)) -> Made {
    let proof = prove(key(S::Circuit::KIND), &made.0, &made.1, &mut OsRng).unwrap();
    (made.0.public_inputs(), proof)
}

/// One valid proof of each statement.
fn good(kind: StatementKind) -> &'static Made {
    static PROOFS: [OnceLock<Made>; 3] = [const { OnceLock::new() }; 3];
    PROOFS[kind as usize].get_or_init(|| {
        let world = World::new();
        match kind {
            Ownership => proven(&world.ownership()),
            Registration => proven(&world.registration()),
            Submission => proven(&world.submission(1)),
        }
    })
}

fn invalid(kind: StatementKind) -> Error {
    Error::InvalidProof { statement: kind.name() }
}

/// The sentence with which changed bytes of a proof are refused.
fn malformed(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = good(Ownership).1.to_bytes().to_vec();
    change(&mut bytes);
    Proof::from_bytes(Ownership, &bytes).unwrap_err().to_string()
}

#[test]
fn valid_proofs_verify_and_survive_their_bytes() {
    for kind in StatementKind::ALL {
        let (public, proof) = good(kind);
        verifier(kind).verify(public, proof).unwrap();
        let again = Proof::from_bytes(kind, &proof.to_bytes()).unwrap();
        assert_eq!(&again, proof);
        verifier(kind).verify(public, &again).unwrap();
    }
}

#[test]
fn a_proof_fits_no_other_value_of_any_public_input() {
    for kind in StatementKind::ALL {
        let (public, proof) = good(kind);
        for input in 0..public.len() {
            let mut changed = public.clone();
            changed[input] += Fr::ONE;
            assert_eq!(verifier(kind).verify(&changed, proof), Err(invalid(kind)));
        }
        let mut swapped = public.clone();
        swapped.swap(0, 1);
        assert_eq!(verifier(kind).verify(&swapped, proof), Err(invalid(kind)));
    }
}

#[test]
fn a_wrong_number_of_public_inputs_is_refused() {
    for kind in StatementKind::ALL {
        let (public, proof) = good(kind);
        let mut longer = public.clone();
        longer.push(Fr::from(0));
        for wrong in [&public[1..], &public[..public.len() - 1], &[], &longer] {
            assert_eq!(verifier(kind).verify(wrong, proof), Err(invalid(kind)));
            let batch = [(wrong.to_vec(), proof.clone())];
            let refused = verifier(kind).verify_batch(&batch, &mut OsRng).unwrap_err();
            let expected =
                Error::InvalidBatch { statement: kind.name(), total: 1, indices: vec![0] };
            assert_eq!(refused, expected);
        }
    }
}

#[test]
fn a_proof_of_another_statement_is_refused() {
    let (public, proof) = good(Registration);
    let expected = Error::KeyStatement { expected: "registration", found: "submission" };
    assert_eq!(verifier(Submission).verify(public, proof), Err(expected.clone()));
    let batch = [good(Submission).clone(), good(Registration).clone()];
    assert_eq!(verifier(Submission).verify_batch(&batch, &mut OsRng), Err(expected));
    // The same bytes, claimed to be of the verifier's statement.
    for (from, to) in [(Registration, Submission), (Submission, Registration)] {
        let relabelled = Proof::from_bytes(to, &good(from).1.to_bytes()).unwrap();
        assert_eq!(verifier(to).verify(&good(to).0, &relabelled), Err(invalid(to)));
        assert_eq!(verifier(to).verify(&good(from).0, &relabelled), Err(invalid(to)));
    }
    let (statement, witness) = World::new().registration();
    let refused = prove(key(Submission), &statement, &witness, &mut OsRng).unwrap_err();
    assert_eq!(refused, Error::KeyStatement { expected: "registration", found: "submission" });
}

#[test]
fn a_proof_under_another_key_is_refused() {
    let other = insecure_development_key(Ownership, &mut OsRng);
    let other = Verifier::new(other.verifying_key().clone());
    let (public, proof) = good(Ownership);
    assert_eq!(other.verify(public, proof), Err(invalid(Ownership)));
}

#[test]
fn bytes_of_another_length_are_no_proof() {
    let sentence = "the ownership proof is malformed: it does not have 128 bytes";
    assert_eq!(PROOF_BYTES, 128);
    for length in [0, 127, 129, 256] {
        assert_eq!(malformed(|bytes| bytes.resize(length, 0)), sentence);
    }
}

#[test]
fn points_off_the_curve_or_subgroup_are_no_proof() {
    let sentence =
        "the ownership proof is malformed: a point is not on its curve or not in its subgroup";
    let refused = |range: std::ops::Range<usize>, point: &[u8]| {
        assert_eq!(malformed(|bytes| bytes[range].copy_from_slice(point)), sentence);
    };
    // The first x that belongs to no point of G1.
    let x = (0u64..).map(Fq::from).find(|x| G1Affine::get_ys_from_x_unchecked(*x).is_none());
    let x = field::to_bytes(&x.unwrap());
    refused(A, &x);
    refused(C, &x);
    let mut off_subgroup = Vec::new();
    crate::common::off_subgroup().serialize_compressed(&mut off_subgroup).unwrap();
    refused(B, &off_subgroup);
    refused(A, &[0xff; 32]);
    // Both flags at once.
    for range in [A, B, C] {
        let last = range.end - 1;
        assert_eq!(malformed(|bytes| bytes[last] |= 0xc0), sentence);
    }
}

#[test]
fn the_neutral_element_is_no_part_of_a_proof() {
    let sentence = "the ownership proof is malformed: a point is the neutral element";
    for range in [A, B, C] {
        let last = range.end - 1;
        let neutral = |bytes: &mut Vec<u8>| {
            bytes[range.clone()].fill(0);
            bytes[last] = 0x40;
        };
        assert_eq!(malformed(neutral), sentence);
        // The flag beside coordinates that do not matter then.
        assert_eq!(malformed(|bytes| bytes[last] = bytes[last] & 0x3f | 0x40), sentence);
    }
}

#[test]
fn a_coordinate_that_is_not_reduced_is_no_proof() {
    // x + q fits beside the flags for a quarter of all x.
    let (public, proof) = good(Ownership);
    let vk = verifier(Ownership).key().points();
    let (bytes, x) = std::iter::repeat_with(|| {
        let points = Groth16::<Bn254>::rerandomize_proof(vk, proof.points(), &mut OsRng);
        let mut x = points.a.x.into_bigint();
        x.add_with_carry(&Fq::MODULUS);
        (Proof::from_points(Ownership, points).to_bytes(), x)
    })
    .find(|(_, x)| x.num_bits() <= 254)
    .unwrap();
    verifier(Ownership).verify(public, &Proof::from_bytes(Ownership, &bytes).unwrap()).unwrap();
    let mut changed = bytes;
    changed[A].copy_from_slice(&x.to_bytes_le());
    changed[31] |= bytes[31] & 0x80;
    Proof::from_bytes(Ownership, &changed).unwrap_err();
}

#[test]
fn a_point_with_the_other_sign_is_refused() {
    for kind in StatementKind::ALL {
        let (public, proof) = good(kind);
        for last in [A.end - 1, B.end - 1, C.end - 1] {
            let mut bytes = proof.to_bytes();
            bytes[last] ^= 0x80;
            let changed = Proof::from_bytes(kind, &bytes).unwrap();
            assert_eq!(verifier(kind).verify(public, &changed), Err(invalid(kind)));
        }
    }
}

#[test]
fn anyone_can_re_randomise_a_proof_so_its_bytes_are_no_identity() {
    let (public, proof) = good(Submission);
    let vk = verifier(Submission).key().points();
    let points = Groth16::<Bn254>::rerandomize_proof(vk, proof.points(), &mut OsRng);
    let again = Proof::from_points(Submission, points);
    assert_ne!(again.to_bytes(), proof.to_bytes());
    verifier(Submission).verify(public, &again).unwrap();
}

#[test]
fn the_prover_blinds_the_proof_of_ark_groth16() {
    fn check<S: Statement>(made: &(S, <S::Circuit as Circuit>::Witness)) {
        let kind = S::Circuit::KIND;
        let mut rng = rand_chacha::ChaCha20Rng::from_entropy();
        let mut same = rng.clone();
        let (u, t) = (Fr::rand(&mut same), Fr::rand(&mut same));
        let ours = prove(key(kind), &made.0, &made.1, &mut rng).unwrap();
        let system = run::<S::Circuit>(Mode::Recording, &made.0.public_inputs(), &made.1);
        let zero = Fr::from(0u64);
        let bare =
            Groth16::<Bn254>::create_proof_with_reduction(Replay(&system), stock(kind), zero, zero)
                .unwrap();
        let delta = stock(kind).vk.delta_g2;
        let b = (bare.b + delta * t) * u.inverse().unwrap();
        assert_eq!(ours.points().a, bare.a * u);
        assert_eq!(ours.points().b, b);
        assert_eq!(ours.points().c, bare.c + bare.a * t);
    }
    let world = World::new();
    check(&world.ownership());
    check(&world.registration());
    check(&world.submission(1));
}

mod batch {
    use super::*;

    /// Distinct proofs of the smallest statement.
    fn proofs(count: usize) -> Vec<Made> {
        (0..count).map(|_| proven(&World::new().ownership())).collect()
    }

    fn refused(batch: &[Made]) -> Vec<usize> {
        match verifier(Ownership).verify_batch(batch, &mut OsRng).unwrap_err() {
            Error::InvalidBatch { statement: "ownership", total, indices } => {
                assert_eq!(total, batch.len());
                indices
            }
            other => panic!("{other}"),
        }
    }

    /// Random numbers that are all the same.
    struct Constant;

    impl RngCore for Constant {
        fn next_u32(&mut self) -> u32 {
            1
        }
        fn next_u64(&mut self) -> u64 {
            1
        }
        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.fill(1);
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand::Error> {
            self.fill_bytes(bytes);
            Ok(())
        }
    }

    impl CryptoRng for Constant {}

    #[test]
    fn none_one_many_and_repeated_proofs_verify() {
        let proofs = proofs(3);
        let repeated: Vec<Made> = proofs.iter().cycle().take(40).cloned().collect();
        for batch in [&[], &proofs[..1], &proofs, &repeated] {
            verifier(Ownership).verify_batch(batch, &mut OsRng).unwrap();
        }
        for kind in [Registration, Submission] {
            let batch = vec![good(kind).clone(); 2];
            verifier(kind).verify_batch(&batch, &mut OsRng).unwrap();
        }
    }

    #[test]
    fn bad_proofs_are_named_wherever_they_stand() {
        let proofs = proofs(4);
        let mut batch: Vec<Made> = proofs.iter().cycle().take(20).cloned().collect();
        batch[0].0[1] += Fr::ONE;
        assert_eq!(refused(&batch), [0]);
        batch[17].1 = proofs[2].1.clone();
        assert_eq!(refused(&batch), [0, 17]);
        batch[19].0.clear();
        assert_eq!(refused(&batch), [0, 17, 19]);
        let error = verifier(Ownership).verify_batch(&batch, &mut OsRng).unwrap_err();
        assert_eq!(error.to_string(), "3 of 20 ownership proofs are not valid: [0, 17, 19]");
    }

    #[test]
    fn bad_proofs_that_cancel_each_other_are_caught_by_fresh_factors() {
        let mut batch = proofs(3);
        let shift = |made: &mut Made, by: G1Affine| {
            let mut points = made.1.points().clone();
            points.c = (points.c + by).into_affine();
            made.1 = Proof::from_points(Ownership, points);
        };
        shift(&mut batch[0], G1Affine::generator());
        shift(&mut batch[2], -G1Affine::generator());
        // With equal factors the two errors cancel: the test tests something.
        verifier(Ownership).verify_batch(&batch, &mut Constant).unwrap();
        for _ in 0..4 {
            assert_eq!(refused(&batch), [0, 2]);
        }
    }

    #[test]
    fn swapped_public_inputs_of_two_proofs_are_caught() {
        let mut batch = proofs(3);
        let kept = batch[0].0.clone();
        batch[0].0 = std::mem::replace(&mut batch[1].0, kept);
        assert_eq!(refused(&batch), [0, 1]);
    }
}

mod unlinkability {
    use super::*;

    /// Whether two byte strings have eight bytes in a row in common.
    fn share(left: &[u8], right: &[u8]) -> bool {
        left.windows(8).any(|window| right.windows(8).any(|other| window == other))
    }

    #[test]
    fn the_same_statement_proven_twice_shares_nothing() {
        let world = World::new();
        let (statement, witness) = world.submission(1);
        let prove = || prove(key(Submission), &statement, &witness, &mut OsRng).unwrap();
        assert!(!share(&prove().to_bytes(), &prove().to_bytes()));
    }

    #[test]
    fn two_submissions_of_a_client_share_nothing_but_the_client_root() {
        let world = World::new();
        let posted = |iteration| {
            let (statement, witness) = world.submission(iteration);
            let proof = prove(key(Submission), &statement, &witness, &mut OsRng).unwrap();
            let own = [
                &statement.nullifier.to_bytes()[..],
                &statement.tag.to_bytes(),
                &statement.a.to_bytes(),
                &statement.type_commitment.to_bytes(),
                &proof.to_bytes(),
            ];
            (statement.client_root, own.concat())
        };
        let (first, second) = (posted(1), posted(2));
        assert_eq!(first.0, second.0);
        assert!(!share(&first.1, &second.1));
    }

    #[test]
    fn a_registration_and_a_submission_of_a_client_share_nothing() {
        let world = World::new();
        let (statement, witness) = world.registration();
        let proof = prove(key(Registration), &statement, &witness, &mut OsRng).unwrap();
        let registered = [
            &statement.commitment.to_bytes()[..],
            &statement.nullifier.to_bytes(),
            &statement.tag.to_bytes(),
            &statement.a.to_bytes(),
            &proof.to_bytes(),
        ]
        .concat();
        let (statement, witness) = world.submission(1);
        let proof = prove(key(Submission), &statement, &witness, &mut OsRng).unwrap();
        let submitted = [
            &statement.nullifier.to_bytes()[..],
            &statement.tag.to_bytes(),
            &statement.a.to_bytes(),
            &statement.type_commitment.to_bytes(),
            &proof.to_bytes(),
        ]
        .concat();
        assert!(!share(&registered, &submitted));
    }
}
