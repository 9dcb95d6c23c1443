//! Every clause of every statement, with a witness for which only that clause fails.
//!
//! The statements come from a valid draft with one thing wrong; whatever follows from it (a
//! signature, a root, a hash) is made again, so that nothing else can fail.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::OnceLock;

use anofel_circuits::groth16::key::{Origin, ProvingKey};
use anofel_circuits::groth16::prover::prove;
use anofel_circuits::groth16::setup::stock_key;
use anofel_circuits::statements::ownership::{self, OwnershipWitness};
use anofel_circuits::statements::{
    registration, run, submission, Circuit, Statement, StatementKind,
};
use anofel_circuits::system::{Clause, Mode};
use anofel_circuits::Error;
use anofel_primitives::babyjubjub::{Point, Scalar};
use anofel_primitives::hash::{hash, Domain};
use anofel_primitives::identity::MasterSecret;
use anofel_primitives::merkle::{Path, TreeKind};
use anofel_primitives::Fr;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInteger, BigInteger256, Field, PrimeField, UniformRand};
use common::draft::{
    bytes, of_order_eight, plant, random, registered, submitted, OwnershipPublic, Public,
    Registration, Submission,
};
use common::{matrices, value, World};
use proptest::prelude::*;
use rand::rngs::OsRng;

/// The clauses that fail: those that the solver reports are those whose recorded constraints do
/// not hold for the solver's assignment.
fn failed<S: Statement>(statement: &S, witness: &<S::Circuit as Circuit>::Witness) -> Vec<Clause> {
    let solved = run::<S::Circuit>(Mode::Solving, &statement.public_inputs(), witness);
    let z = solved.assignment();
    let recorded = matrices(S::Circuit::KIND).iter();
    let mut broken: Vec<Clause> = recorded
        .filter(|row| value(&row.a, z) * value(&row.b, z) != value(&row.c, z))
        .map(|row| row.clause)
        .collect();
    broken.dedup();
    assert_eq!(solved.failed(), broken);
    broken
}

/// Only this clause fails, and the prover says so instead of making a proof.
fn only<S: Statement>(clause: Clause, made: &(S, <S::Circuit as Circuit>::Witness)) {
    fails(&[clause], made);
}

/// These clauses fail, and the prover names the first.
fn fails<S: Statement>(clauses: &[Clause], made: &(S, <S::Circuit as Circuit>::Witness)) {
    let (statement, witness) = made;
    assert_eq!(failed(statement, witness), clauses);
    let refused = prove(unused_key(S::Circuit::KIND), statement, witness, &mut OsRng);
    assert_eq!(refused.unwrap_err(), Error::Unsatisfied { clause: clauses[0] });
}

fn holds<S: Statement>(made: &(S, <S::Circuit as Circuit>::Witness)) {
    assert_eq!(failed(&made.0, &made.1), Vec::<Clause>::new());
}

/// A key that names a statement. Its points are those of the smallest statement, because the
/// prover must stop before it uses them.
fn unused_key(kind: StatementKind) -> &'static ProvingKey {
    static KEYS: OnceLock<Vec<ProvingKey>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        let system = StatementKind::Ownership.record();
        let stock = stock_key(&system, &mut OsRng);
        let make = |kind| ProvingKey::new(kind, &system, Origin::Development, &stock);
        StatementKind::ALL.map(make).into()
    });
    &keys[kind as usize]
}

mod valid {
    use super::*;

    #[test]
    fn statements_of_honest_clients_hold() {
        let world = World::new();
        holds(&world.ownership());
        holds(&world.registration());
        holds(&world.submission(1));
    }

    #[test]
    fn recording_lays_down_the_same_constraints_for_every_witness() {
        fn check<S: Statement>(made: &(S, <S::Circuit as Circuit>::Witness)) {
            let public = made.0.public_inputs();
            let recorded = run::<S::Circuit>(Mode::Recording, &public, &made.1);
            let solved = run::<S::Circuit>(Mode::Solving, &public, &made.1);
            assert_eq!(recorded.constraints(), matrices(S::Circuit::KIND));
            assert_eq!(recorded.assignment(), solved.assignment());
            assert_eq!(recorded.left(), solved.left());
            assert_eq!(recorded.right(), solved.right());
            assert_eq!(recorded.failed(), solved.failed());
            assert!(solved.constraints().is_empty());
        }
        check(&World::new().ownership());
        let mut draft = Registration::new();
        check(&draft.finish());
        (draft.dt, draft.mpk, draft.key) = (-Fr::ONE, Fr::ZERO, of_order_eight());
        check(&draft.finish());
        let mut draft = Submission::new();
        check(&draft.finish());
        draft.dt = -Fr::ONE;
        check(&draft.finish());
    }

    #[test]
    fn the_smallest_and_the_largest_values_hold() {
        let (zero, last) = (Fr::ZERO, -Fr::ONE);
        for value in [zero, last] {
            let mut draft = Registration::new();
            (draft.d, draft.salt, draft.msk) = (value, value, value);
            draft.mpk = hash(Domain::MasterPublicKey, &[value]);
            draft.dt = if value == zero { zero } else { Fr::from(u32::MAX) };
            holds(&draft.finish());
            let mut draft = Submission::new();
            (draft.d, draft.salt, draft.msk) = (value, value, value);
            draft.dt = if value == zero { zero } else { Fr::from(u32::MAX) };
            draft.rho = if value == zero { Scalar::ZERO } else { -Scalar::ONE };
            holds(&draft.finish());
        }
    }

    #[test]
    fn every_place_in_a_block_of_the_tree_holds() {
        for place in 0..8 {
            let draft = Submission::new();
            let mut leaves: Vec<Fr> = (1..=8).map(Fr::from).collect();
            leaves[place] = draft.comm();
            let (mut statement, mut witness) = draft.finish();
            let tree = anofel_primitives::merkle::Tree::from_leaves(TreeKind::Clients, leaves);
            let tree = tree.unwrap();
            statement.0[submitted::ROOT] = tree.root().element();
            witness.path = tree.path(place).unwrap();
            holds(&(statement, witness));
        }
    }
}

mod ownership_clauses {
    use super::*;

    fn made(mpk: Fr, msk: Fr) -> (OwnershipPublic, OwnershipWitness) {
        let msk = MasterSecret::from_bytes(&bytes(msk)).unwrap();
        (Public::new(vec![mpk, random()]), OwnershipWitness::new(&msk))
    }

    #[test]
    fn o1_a_master_public_key_of_another_secret_is_refused() {
        let msk = random();
        let mpk = hash(Domain::MasterPublicKey, &[msk]);
        holds(&made(mpk, msk));
        only(ownership::MASTER_PUBLIC_KEY, &made(mpk, msk + Fr::ONE));
        only(ownership::MASTER_PUBLIC_KEY, &made(mpk + Fr::ONE, msk));
    }

    // Clause 2 holds for every challenge: it is what ties a proof to one. That a proof does
    // not fit another challenge is tested in verifier.rs, and that only clause 2 breaks when
    // the challenge changes under an assignment in mutation.rs.
}

mod registration_clauses {
    use super::*;

    #[test]
    fn r1_an_mpk_in_the_certificate_that_is_not_the_clients_is_refused() {
        let mut draft = Registration::new();
        draft.mpk = hash(Domain::MasterPublicKey, &[random()]);
        only(registration::MASTER_PUBLIC_KEY, &draft.finish());
    }

    #[test]
    fn r2_a_commitment_to_anything_else_is_refused() {
        let draft = Registration::new();
        let good = [draft.d, draft.msk, draft.dt, draft.salt];
        for position in 0..4 {
            let mut inputs = good;
            inputs[position] += Fr::ONE;
            let (mut statement, witness) = draft.finish();
            statement.0[registered::COMM] = hash(Domain::Commitment, &inputs);
            only(registration::COMMITMENT, &(statement, witness));
        }
    }

    #[test]
    fn r3a_a_certifier_key_of_low_order_is_refused() {
        let point = of_order_eight();
        let mut draft = Registration::new();
        draft.secret = Scalar::ZERO;
        // 8·h·A is the neutral element, so the equation holds for S = the nonce.
        draft.key = point;
        only(registration::KEY_ON_CURVE, &draft.finish());
        // For the smaller orders the multiples of A are not defined, so the equation fails too.
        for factor in [2u8, 4, 8] {
            draft.key = point.mul_bigint([u64::from(factor)]).into_affine();
            fails(&[registration::KEY_ON_CURVE, registration::SIGNATURE], &draft.finish());
        }
    }

    #[test]
    fn r3a_a_certifier_key_off_the_curve_is_refused() {
        let mut draft = Registration::new();
        draft.key = Point::new_unchecked(draft.key.x, draft.key.y + Fr::ONE);
        fails(&[registration::KEY_ON_CURVE, registration::SIGNATURE], &draft.finish());
    }

    #[test]
    fn r3b_r8_off_the_curve_is_refused() {
        // h hashes R8, so nobody can choose an R8 off the curve for which the equation holds.
        // That the clause stands by itself is tested in mutation.rs.
        let mut draft = Registration::new();
        draft.r8 = Point::new_unchecked(draft.r8.x, draft.r8.y + Fr::ONE);
        fails(&[registration::R8_ON_CURVE, registration::SIGNATURE], &draft.finish());
    }

    #[test]
    fn r3c_an_s_not_below_the_group_order_is_refused() {
        let order = <Scalar as PrimeField>::MODULUS;
        let (statement, mut witness) = Registration::new().finish();
        witness.s.add_with_carry(&order);
        only(registration::S_CANONICAL, &(statement, witness));
    }

    #[test]
    fn r3c_s_is_compared_with_the_order_at_its_edge() {
        // R8 = S·B8 − 8·h·A hashes to h, so S cannot be chosen; the clause is looked at alone.
        let order = <Scalar as PrimeField>::MODULUS;
        let (statement, witness) = Registration::new().finish();
        let refuses = |s: BigInteger256| {
            let mut witness = witness.clone();
            witness.s = s;
            failed(&statement, &witness).contains(&registration::S_CANONICAL)
        };
        // The upper halves are compared, so the last 2^125.4 integers are refused as well.
        let edge = (order >> 126) << 126;
        let mut below = edge;
        below.sub_with_borrow(&BigInteger256::one());
        assert!(!refuses(BigInteger256::zero()));
        assert!(!refuses(below));
        assert!(refuses(edge));
        assert!(refuses(order));
        assert!(refuses(BigInteger256::one() << 251));
        let mut largest = BigInteger256::one() << 252;
        largest.sub_with_borrow(&BigInteger256::one());
        assert!(refuses(largest));
    }

    #[test]
    fn r3d_a_second_encoding_of_h_is_refused() {
        // h + r has 254 bits for a third of all h; S is made for it.
        let (draft, (statement, mut witness)) = std::iter::repeat_with(Registration::new)
            .map(|draft| (draft.clone(), draft.finish()))
            .find(|(_, (_, witness))| {
                let mut sum = witness.h;
                sum.add_with_carry(&Fr::MODULUS);
                sum.num_bits() <= 254
            })
            .unwrap();
        witness.h.add_with_carry(&Fr::MODULUS);
        witness.s = draft.response(&witness.h);
        only(registration::CHALLENGE_CANONICAL, &(statement, witness));
    }

    #[test]
    fn r3d_another_h_is_refused() {
        let draft = Registration::new();
        let (statement, mut witness) = draft.finish();
        witness.h = random().into_bigint();
        witness.s = draft.response(&witness.h);
        only(registration::CHALLENGE_CANONICAL, &(statement, witness));
    }

    #[test]
    fn r3e_a_wrong_signature_is_refused() {
        let draft = Registration::new();
        let (statement, mut witness) = draft.finish();
        witness.s = Scalar::rand(&mut OsRng).into_bigint();
        only(registration::SIGNATURE, &(statement, witness));
        // By a key that is not the listed one.
        let mut other = draft.clone();
        other.secret = Scalar::rand(&mut OsRng);
        only(registration::SIGNATURE, &other.finish());
    }

    #[test]
    fn r3e_a_signature_over_another_message_is_refused() {
        let draft = Registration::new();
        let changes: [fn(&mut Registration); 3] = [
            |draft| draft.d += Fr::ONE,
            |draft| draft.mpk += Fr::ONE,
            |draft| draft.dt += Fr::ONE,
        ];
        for change in changes {
            let mut other = draft.clone();
            change(&mut other);
            let (_, signed) = other.finish();
            let (statement, mut witness) = draft.finish();
            witness.s = signed.s;
            only(registration::SIGNATURE, &(statement, witness));
        }
    }

    #[test]
    fn r3e_r8_with_a_component_of_low_order_is_refused() {
        let mut torsion = of_order_eight();
        for _ in 0..3 {
            let mut draft = Registration::new();
            draft.r8 = (draft.r8 + torsion).into_affine();
            only(registration::SIGNATURE, &draft.finish());
            torsion = (torsion + torsion).into_affine();
        }
    }

    #[test]
    fn a_component_of_low_order_in_the_key_changes_nothing() {
        // The factor 8 removes it. Such a key is refused when it is listed, not here.
        let mut draft = Registration::new();
        draft.key = (draft.key + of_order_eight()).into_affine();
        holds(&draft.finish());
    }

    #[test]
    fn r4_an_unlisted_certifier_is_refused() {
        let draft = Registration::new();
        let (statement, mut witness) = draft.finish();
        let (root, path) = plant(TreeKind::Certifiers, random());
        let mut unlisted = statement.clone();
        unlisted.0[registered::ROOT] = root;
        only(registration::CERTIFIER, &(unlisted, witness.clone()));
        witness.path = path;
        only(registration::CERTIFIER, &(statement, witness));
    }

    #[test]
    fn r4_a_key_under_the_root_of_the_client_tree_is_refused() {
        let draft = Registration::new();
        let leaf = hash(Domain::CertifierLeaf, &[draft.key.x, draft.key.y]);
        let (mut statement, mut witness) = draft.finish();
        let (root, path) = plant(TreeKind::Clients, leaf);
        statement.0[registered::ROOT] = root;
        witness.path = path;
        only(registration::CERTIFIER, &(statement, witness));
    }

    #[test]
    fn r4_a_path_of_another_depth_is_refused() {
        let (statement, witness) = Registration::new().finish();
        let levels = witness.path.levels().to_vec();
        let depth = levels.len();
        for keep in 0..depth {
            let mut short = witness.clone();
            short.path = Path::from_levels(levels[..keep].to_vec());
            only(registration::CERTIFIER, &(statement.clone(), short));
        }
        // An inner node in the place of a leaf: the upper levels only.
        let mut shifted = witness.clone();
        shifted.path = Path::from_levels(levels[1..].to_vec());
        only(registration::CERTIFIER, &(statement, shifted));
    }

    #[test]
    fn r4_changed_and_swapped_siblings_are_refused() {
        let (statement, witness) = Registration::new().finish();
        for level in 0..TreeKind::Certifiers.depth() {
            let mut changed = witness.path.levels().to_vec();
            changed[level][5] += Fr::ONE;
            let mut other = witness.clone();
            other.path = Path::from_levels(changed);
            only(registration::CERTIFIER, &(statement.clone(), other));
        }
        let mut swapped = witness.path.levels().to_vec();
        swapped[0].swap(0, 1);
        let mut other = witness;
        other.path = Path::from_levels(swapped);
        only(registration::CERTIFIER, &(statement, other));
    }

    #[test]
    fn r4_the_empty_leaf_is_nobodys() {
        let (mut statement, mut witness) = Registration::new().finish();
        let (root, path) = plant(TreeKind::Certifiers, Fr::ZERO);
        statement.0[registered::ROOT] = root;
        witness.path = path;
        only(registration::CERTIFIER, &(statement, witness));
    }

    #[test]
    fn r5_a_tag_for_anything_else_is_refused() {
        let draft = Registration::new();
        let (statement, witness) = draft.finish();
        let tags = [
            hash(Domain::Tag, &[draft.msk, draft.a + Fr::ONE]),
            hash(Domain::Tag, &[draft.msk + Fr::ONE, draft.a]),
            hash(Domain::Tag, &[draft.a, draft.msk]),
            hash(Domain::CertifierLeaf, &[draft.msk, draft.a]),
            hash(Domain::RegistrationNullifier, &[draft.msk, draft.d, draft.a]),
            hash(Domain::IterationNullifier, &[draft.msk, draft.d, draft.a]),
        ];
        for tag in tags {
            let mut changed = statement.clone();
            changed.0[registered::TAG] = tag;
            only(registration::TAG, &(changed, witness.clone()));
        }
        let mut changed = statement;
        changed.0[registered::A] += Fr::ONE;
        only(registration::TAG, &(changed, witness));
    }

    #[test]
    fn r6_a_nullifier_for_anything_else_is_refused() {
        let draft = Registration::new();
        let (statement, witness) = draft.finish();
        let Registration { msk, d, epoch, .. } = draft;
        let nullifiers = [
            hash(Domain::RegistrationNullifier, &[msk, d, epoch + Fr::ONE]),
            hash(Domain::RegistrationNullifier, &[msk, d + Fr::ONE, epoch]),
            hash(Domain::RegistrationNullifier, &[msk + Fr::ONE, d, epoch]),
            hash(Domain::IterationNullifier, &[msk, d, epoch]),
            hash(Domain::Tag, &[msk, epoch]),
        ];
        for nullifier in nullifiers {
            let mut changed = statement.clone();
            changed.0[registered::NULLIFIER] = nullifier;
            only(registration::NULLIFIER, &(changed, witness.clone()));
        }
        let mut changed = statement;
        changed.0[registered::EPOCH] += Fr::ONE;
        only(registration::NULLIFIER, &(changed, witness));
    }

    #[test]
    fn r7_a_dataset_type_of_33_bits_or_more_is_refused() {
        for dt in [Fr::from(1u64 << 32), Fr::from(u64::MAX), -Fr::ONE, random()] {
            let mut draft = Registration::new();
            draft.dt = dt;
            only(registration::DATASET_TYPE, &draft.finish());
        }
    }
}

mod submission_clauses {
    use super::*;

    #[test]
    fn s1_a_commitment_that_is_not_registered_is_refused() {
        let draft = Submission::new();
        let (mut statement, witness) = draft.finish();
        statement.0[submitted::ROOT] = plant(TreeKind::Clients, random()).0;
        only(submission::MEMBERSHIP, &(statement, witness));
    }

    #[test]
    fn s1_another_clients_commitment_is_refused() {
        // The other client is registered; ours has everything but its master secret, d, dt or
        // salt.
        let draft = Submission::new();
        let changes: [fn(&mut Submission); 4] = [
            |draft| draft.d += Fr::ONE,
            |draft| draft.dt = Fr::from(draft.dt.into_bigint().0[0] as u32 ^ 1),
            |draft| draft.salt += Fr::ONE,
            |draft| draft.msk += Fr::ONE,
        ];
        for change in changes {
            let mut other = draft.clone();
            change(&mut other);
            let (root, path) = plant(TreeKind::Clients, other.comm());
            let (mut statement, mut witness) = draft.finish();
            statement.0[submitted::ROOT] = root;
            witness.path = path;
            only(submission::MEMBERSHIP, &(statement, witness));
        }
    }

    #[test]
    fn s1_a_commitment_under_the_root_of_the_certifier_tree_is_refused() {
        let draft = Submission::new();
        let (mut statement, mut witness) = draft.finish();
        let (root, path) = plant(TreeKind::Certifiers, draft.comm());
        statement.0[submitted::ROOT] = root;
        witness.path = path;
        only(submission::MEMBERSHIP, &(statement, witness));
    }

    #[test]
    fn s1_a_path_of_another_depth_and_the_empty_leaf_are_refused() {
        let (statement, witness) = Submission::new().finish();
        for from in [1, 2, 7] {
            let mut shifted = witness.clone();
            shifted.path = Path::from_levels(witness.path.levels()[from..].to_vec());
            only(submission::MEMBERSHIP, &(statement.clone(), shifted));
        }
        let (root, path) = plant(TreeKind::Clients, Fr::ZERO);
        let mut empty = (statement, witness);
        empty.0 .0[submitted::ROOT] = root;
        empty.1.path = path;
        only(submission::MEMBERSHIP, &empty);
    }

    #[test]
    fn s2_a_tag_for_anything_else_is_refused() {
        let draft = Submission::new();
        let (statement, witness) = draft.finish();
        let Submission { msk, d, a, .. } = draft;
        let tags = [
            hash(Domain::Tag, &[msk, a + Fr::ONE]),
            hash(Domain::Tag, &[msk + Fr::ONE, a]),
            hash(Domain::CertifierLeaf, &[msk, a]),
            hash(Domain::IterationNullifier, &[msk, d, a]),
        ];
        for tag in tags {
            let mut changed = statement.clone();
            changed.0[submitted::TAG] = tag;
            only(submission::TAG, &(changed, witness.clone()));
        }
        let mut changed = statement;
        changed.0[submitted::A] += Fr::ONE;
        only(submission::TAG, &(changed, witness));
    }

    #[test]
    fn s3_a_nullifier_for_anything_else_is_refused() {
        let draft = Submission::new();
        let (statement, witness) = draft.finish();
        let Submission { msk, d, scope, .. } = draft;
        let nullifiers = [
            hash(Domain::IterationNullifier, &[msk, d, scope + Fr::ONE]),
            hash(Domain::IterationNullifier, &[msk, d + Fr::ONE, scope]),
            hash(Domain::IterationNullifier, &[msk + Fr::ONE, d, scope]),
            hash(Domain::RegistrationNullifier, &[msk, d, scope]),
            hash(Domain::Tag, &[msk, scope]),
        ];
        for nullifier in nullifiers {
            let mut changed = statement.clone();
            changed.0[submitted::NULLIFIER] = nullifier;
            only(submission::NULLIFIER, &(changed, witness.clone()));
        }
        let mut changed = statement;
        changed.0[submitted::SCOPE] += Fr::ONE;
        only(submission::NULLIFIER, &(changed, witness));
    }

    #[test]
    fn s4a_a_dataset_type_of_33_bits_or_more_is_refused() {
        for dt in [Fr::from(1u64 << 32), Fr::from(u64::MAX), -Fr::ONE, random()] {
            let mut draft = Submission::new();
            draft.dt = dt;
            only(submission::DATASET_TYPE, &draft.finish());
        }
    }

    #[test]
    fn s4b_a_commitment_to_another_type_or_with_another_blinding_is_refused() {
        let draft = Submission::new();
        let (statement, witness) = draft.finish();
        let mut blinded = witness.clone();
        blinded.rho += Scalar::ONE;
        only(submission::TYPE_COMMITMENT, &(statement.clone(), blinded));
        let mut typed = draft;
        typed.dt = Fr::from(typed.dt.into_bigint().0[0] as u32 ^ 1);
        let (other, _) = typed.finish();
        let mut changed = statement.clone();
        changed.0[submitted::TYPE_X..].copy_from_slice(&other.0[submitted::TYPE_X..]);
        only(submission::TYPE_COMMITMENT, &(changed, witness.clone()));
        // −(x, y) = (−x, y) and a point that is not even on the curve.
        for change in [|x: Fr| -x, |x: Fr| x + Fr::ONE] {
            let mut changed = statement.clone();
            changed.0[submitted::TYPE_X] = change(changed.0[submitted::TYPE_X]);
            only(submission::TYPE_COMMITMENT, &(changed, witness.clone()));
        }
    }

    #[test]
    fn the_nullifier_does_not_depend_on_salt_message_key_or_blinding() {
        let draft = Submission::new();
        let mut again = draft.clone();
        (again.salt, again.a, again.rho) = (random(), random(), Scalar::rand(&mut OsRng));
        let (first, second) = (draft.finish(), again.finish());
        holds(&first);
        holds(&second);
        assert_eq!(first.0 .0[submitted::NULLIFIER], second.0 .0[submitted::NULLIFIER]);
        assert_ne!(first.0 .0[submitted::TAG], second.0 .0[submitted::TAG]);
    }

    #[test]
    fn a_scope_that_equals_an_old_message_key_gives_no_old_tag() {
        let mut draft = Submission::new();
        draft.scope = draft.a;
        let made = draft.finish();
        holds(&made);
        assert_ne!(made.0 .0[submitted::NULLIFIER], made.0 .0[submitted::TAG]);
    }
}

mod properties {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_valid_submission_with_one_random_change_fails(input in 0usize..12, noise in 1u64..) {
            let (mut statement, mut witness) = Submission::new().finish();
            prop_assert!(failed(&statement, &witness).is_empty());
            let change = Fr::from(noise);
            let mut levels = witness.path.levels().to_vec();
            match input {
                0..=6 => statement.0[input] += change,
                7 => witness.d += change,
                8 => witness.salt += change,
                9 => witness.msk += change,
                10 => witness.rho += Scalar::from(noise),
                _ => levels[noise as usize % 7][noise as usize % 8] += change,
            }
            witness.path = Path::from_levels(levels);
            prop_assert!(!failed(&statement, &witness).is_empty());
        }

        #[test]
        fn a_valid_registration_with_one_random_change_fails(input in 0usize..16, noise in 1u64..) {
            let (mut statement, mut witness) = Registration::new().finish();
            prop_assert!(failed(&statement, &witness).is_empty());
            let change = Fr::from(noise);
            let mut levels = witness.path.levels().to_vec();
            match input {
                0..=5 => statement.0[input] += change,
                6 => witness.d += change,
                7 => witness.salt += change,
                8 => witness.msk += change,
                9 => witness.mpk += change,
                10 => witness.dt += change,
                11 => witness.key = (witness.key + witness.key).into_affine(),
                12 => witness.r8.y += change,
                13 => witness.h.0[0] ^= noise,
                14 => witness.s.0[1] ^= noise,
                _ => levels[noise as usize % 4][noise as usize % 8] += change,
            }
            witness.path = Path::from_levels(levels);
            prop_assert!(!failed(&statement, &witness).is_empty());
        }
    }
}
