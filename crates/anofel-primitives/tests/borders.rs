//! What comes from outside has one form, and every other form is refused.
#![allow(clippy::unwrap_used)]

use anofel_primitives::babyjubjub::{base8, EdwardsConfig, Point, Scalar};
use anofel_primitives::commitment::{Commitment, Salt, TypeBlinding, TypeCommitment};
use anofel_primitives::eddsa::{Certificate, CertifierKey, CertifierSecret};
use anofel_primitives::field::to_bytes;
use anofel_primitives::hash::{hash, permute, Domain};
use anofel_primitives::identity::{DatasetDigest, DatasetType, MasterPublicKey, MasterSecret};
use anofel_primitives::merkle::{Frontier, Root, Tree, TreeKind};
use anofel_primitives::message_key::{MessageKey, MessageSecret};
use anofel_primitives::prf::{
    Epoch, IterationNullifier, MessageKeyHash, RegistrationNullifier, Scope, Tag,
};
use anofel_primitives::{Error, Fr};
use ark_ec::twisted_edwards::TECurveConfig;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField, UniformRand};
use proptest::prelude::*;
use rand::rngs::OsRng;

/// value + modulus as 32 little-endian bytes.
fn unreduced<F: PrimeField>(value: u64) -> Vec<u8> {
    let mut integer = F::MODULUS;
    integer.add_with_carry(&F::BigInt::from(value));
    integer.to_bytes_le()
}

/// Only canonical bytes give a value, and they come back.
fn one_form<F: PrimeField, T>(
    what: &'static str,
    read: impl Fn(&[u8]) -> Result<T, Error>,
    write: impl Fn(&T) -> Vec<u8>,
) {
    for value in [F::ZERO, F::ONE, -F::ONE, F::rand(&mut OsRng)] {
        let bytes = to_bytes(&value);
        assert_eq!(write(&read(&bytes).ok().unwrap()), bytes, "{what}");
    }
    let not_canonical = Error::NotCanonical { what };
    for bytes in [unreduced::<F>(0), unreduced::<F>(1), unreduced::<F>(1 << 40), vec![0xff; 32]] {
        assert_eq!(read(&bytes).err(), Some(not_canonical.clone()));
    }
    for length in [0, 31, 33, 64] {
        let expected = Error::Length { what, expected: 32, found: length };
        assert_eq!(read(&vec![0; length]).err(), Some(expected));
    }
}

#[test]
fn every_field_element_has_one_form() {
    macro_rules! public {
        ($($name:ident),*) => {
            $(one_form::<Fr, _>($name::NAME, $name::from_bytes, |v| v.to_bytes().to_vec());)*
        };
    }
    macro_rules! secret {
        ($($name:ident),*) => {
            $(one_form::<Fr, _>($name::NAME, $name::from_bytes, |v| v.to_secret_bytes().to_vec());)*
        };
    }
    public!(MasterPublicKey, DatasetDigest, Commitment, Root);
    public!(MessageKeyHash, Tag, Epoch, RegistrationNullifier, Scope, IterationNullifier);
    secret!(MasterSecret, Salt);
    one_form::<Scalar, _>("the type blinding", TypeBlinding::from_bytes, |v| {
        v.to_secret_bytes().to_vec()
    });
}

#[test]
fn leaves_have_one_form() {
    let read = |bytes: &[u8]| Tree::from_leaf_bytes(TreeKind::Clients, bytes).err();
    assert_eq!(read(&to_bytes(&Fr::ONE)), None);
    for value in [0, 1] {
        let refused = read(&unreduced::<Fr>(value));
        assert_eq!(refused, Some(Error::NotCanonical { what: "a leaf" }));
    }
    let length = Error::Length { what: "a leaf", expected: 32, found: 1 };
    assert_eq!(read(&[0; 33]), Some(length));
}

#[test]
fn stored_nodes_have_one_form() {
    let mut tree = Tree::new(TreeKind::Clients);
    tree.append(&[Fr::ONE; 9]).unwrap();
    let good = tree.to_node_bytes();
    let refuse = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        Tree::from_node_bytes(TreeKind::Clients, &bytes).unwrap_err()
    };
    let node = refuse(&|bytes| bytes[8..40].copy_from_slice(&unreduced::<Fr>(1)));
    assert_eq!(node, Error::NotCanonical { what: "a node" });
    let parent = 8 + 9 * 32; // of the first eight leaves, beside the way from the last leaf
    let beside = refuse(&|bytes| bytes[parent] ^= 1);
    assert_eq!(beside, Error::WrongNode { level: 2 });
    let own = refuse(&|bytes| bytes[parent + 32] ^= 1);
    assert_eq!(own, Error::WrongNode { level: 1 });
    refuse(&|bytes| bytes.push(0));
    refuse(&|bytes| bytes.truncate(7));
    let full = refuse(&|bytes| bytes[..8].fill(0xff));
    assert_eq!(full, Error::TreeFull { capacity: TreeKind::Clients.capacity() });
}

#[test]
fn a_frontier_has_one_form() {
    let mut frontier = Frontier::new(TreeKind::Clients);
    frontier.append(&[Fr::ONE]).unwrap();
    let good = frontier.to_bytes();
    let refuse = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        Frontier::from_bytes(TreeKind::Clients, &bytes).unwrap_err()
    };
    let node = refuse(&|bytes| bytes[40..].copy_from_slice(&unreduced::<Fr>(1)));
    assert_eq!(node, Error::NotCanonical { what: "the frontier" });
    let root = refuse(&|bytes| bytes[8..40].copy_from_slice(&unreduced::<Fr>(1)));
    assert_eq!(root, Error::NotCanonical { what: "the root" });
    refuse(&|bytes| bytes.push(0));
    let full = refuse(&|bytes| bytes[..8].fill(0xff));
    assert_eq!(full, Error::TreeFull { capacity: TreeKind::Clients.capacity() });
}

/// A point of order 8.
fn of_order_eight() -> Point {
    (0u64..)
        .find_map(|y| {
            let y2 = Fr::from(y).square();
            let denominator = (EdwardsConfig::COEFF_A - EdwardsConfig::COEFF_D * y2).inverse()?;
            let x = ((Fr::ONE - y2) * denominator).sqrt()?;
            let point = Point::new_unchecked(x, Fr::from(y)).mul_bigint(Scalar::MODULUS);
            (!(point.into_affine().mul_bigint([4u64]).into_affine()).is_zero())
                .then(|| point.into_affine())
        })
        .unwrap()
}

fn xy(x: Fr, y: Fr) -> Vec<u8> {
    [to_bytes(&x), to_bytes(&y)].concat()
}

/// What every reader of a point refuses.
fn one_form_of_points(what: &'static str, read: impl Fn(&[u8]) -> Option<Error>) {
    let good = base8();
    assert_eq!(read(&xy(good.x, good.y)), None);
    for length in [0, 32, 63, 65] {
        let expected = Error::Length { what, expected: 64, found: length };
        assert_eq!(read(&vec![0; length]), Some(expected));
    }
    for place in [0, 32] {
        let mut bytes = xy(good.x, good.y);
        bytes[place..place + 32].copy_from_slice(&unreduced::<Fr>(1));
        assert_eq!(read(&bytes), Some(Error::NotCanonical { what }));
    }
    for (x, y) in [(good.x, good.y + Fr::ONE), (good.y, good.x), (Fr::ZERO, Fr::ZERO)] {
        assert_eq!(read(&xy(x, y)), Some(Error::NotOnCurve { what }));
    }
    let mut low = of_order_eight();
    while !low.is_zero() {
        let mixed = (good + low).into_affine();
        for point in [low, mixed] {
            assert_eq!(read(&xy(point.x, point.y)), Some(Error::NotInSubgroup { what }));
        }
        low = (low + low).into_affine();
    }
}

#[test]
fn every_point_has_one_form() {
    one_form_of_points("the certifier key", |bytes| CertifierKey::from_bytes(bytes).err());
    one_form_of_points("the dataset type commitment", |bytes| {
        TypeCommitment::from_bytes(bytes).err()
    });
    let neutral = CertifierKey::from_bytes(&xy(Fr::ZERO, Fr::ONE));
    assert_eq!(neutral, Err(Error::Identity { what: "the certifier key" }));
    // A commitment to type 0 with blinding 0 is the neutral element, and a valid one.
    let zero = TypeBlinding::from_bytes(&[0; 32]).unwrap();
    let commitment = TypeCommitment::new(DatasetType(0), &zero);
    assert_eq!(TypeCommitment::from_bytes(&commitment.to_bytes()), Ok(commitment));
}

#[test]
fn a_certificate_has_one_form() {
    let what = "the certificate";
    let good = [xy(base8().x, base8().y), vec![0; 32]].concat();
    let read = |bytes: &[u8]| Certificate::from_bytes(bytes).err();
    assert_eq!(read(&good), None);
    for length in [0, 64, 95, 97] {
        let expected = Error::Length { what, expected: 96, found: length };
        assert_eq!(read(&vec![0; length]), Some(expected));
    }
    for value in [0, 1] {
        let mut bytes = good.clone();
        bytes[64..].copy_from_slice(&unreduced::<Scalar>(value));
        assert_eq!(read(&bytes), Some(Error::NotCanonical { what }));
    }
    let mixed = (base8() + of_order_eight()).into_affine();
    let bytes = [xy(mixed.x, mixed.y), vec![0; 32]].concat();
    assert_eq!(read(&bytes), Some(Error::NotInSubgroup { what }));
}

#[test]
fn a_certifiers_nonce_belongs_to_one_message() {
    let certifier = CertifierSecret::generate(&mut OsRng);
    let mpk = MasterSecret::generate(&mut OsRng).public_key();
    let d = DatasetDigest::of_chunks(["rows"]);
    let first = certifier.certify(d, mpk, DatasetType(1));
    assert_eq!(first, certifier.certify(d, mpk, DatasetType(1)));
    assert_ne!(first.r8(), certifier.certify(d, mpk, DatasetType(2)).r8());
    let other = CertifierSecret::generate(&mut OsRng);
    assert_ne!(first.r8(), other.certify(d, mpk, DatasetType(1)).r8());
}

mod message_keys {
    use super::*;
    use curve25519_dalek::constants::EIGHT_TORSION;
    use curve25519_dalek::edwards::EdwardsPoint;
    use curve25519_dalek::Scalar as Exponent;
    use sha2::{Digest, Sha512};

    const WHAT: &str = "the message key";

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect()
    }

    /// p + low with a sign bit; p = 2^255 − 19.
    fn above_p(low: u8, sign: bool) -> [u8; 32] {
        let mut bytes = [0xff; 32];
        bytes[0] = 0xed + low;
        bytes[31] = if sign { 0xff } else { 0x7f };
        bytes
    }

    #[test]
    fn the_first_signature_of_rfc_8032_is_ours() {
        let secret = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let secret = MessageSecret::from_bytes(&secret).unwrap();
        let key = secret.public_key();
        let public = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(key.to_bytes().to_vec(), public);
        let signature = hex(
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc6\
             1e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        );
        assert_eq!(secret.sign(b"").to_vec(), signature);
        key.verify(b"", &signature).unwrap();
        assert_eq!(key.verify(b"x", &signature), Err(Error::Signature { what: "the posting" }));
    }

    #[test]
    fn keys_of_low_order_are_refused_in_every_form() {
        for point in EIGHT_TORSION {
            let bytes = point.compress().to_bytes();
            let refused = MessageKey::from_bytes(&bytes);
            assert_eq!(refused, Err(Error::NotInSubgroup { what: WHAT }));
        }
        // The neutral element and the point of order 2 with a sign bit on x = 0.
        for y in [EIGHT_TORSION[0], EIGHT_TORSION[4]] {
            let mut bytes = y.compress().to_bytes();
            bytes[31] |= 0x80;
            MessageKey::from_bytes(&bytes).unwrap_err();
        }
    }

    #[test]
    fn keys_with_y_not_below_p_are_refused() {
        let mut points = 0;
        for low in 0..19 {
            for sign in [false, true] {
                let refused = MessageKey::from_bytes(&above_p(low, sign)).unwrap_err();
                points += usize::from(refused == Error::NotCanonical { what: WHAT });
            }
        }
        // About half of the y belong to points, so this is not only about the curve.
        assert!(points > 10, "{points}");
    }

    #[test]
    fn keys_of_another_length_or_off_the_curve_are_refused() {
        for length in [0, 31, 33, 64] {
            let expected = Error::Length { what: WHAT, expected: 32, found: length };
            assert_eq!(MessageKey::from_bytes(&vec![1; length]), Err(expected));
            let secret = MessageSecret::from_bytes(&vec![1; length]).unwrap_err();
            let what = "the message secret";
            assert_eq!(secret, Error::Length { what, expected: 32, found: length });
        }
        let mut bytes = [0; 32];
        bytes[0] = 2; // y = 2 belongs to no point.
        assert_eq!(MessageKey::from_bytes(&bytes), Err(Error::NotOnCurve { what: WHAT }));
    }

    #[test]
    fn the_other_sign_is_another_key() {
        let secret = MessageSecret::generate(&mut OsRng);
        let (key, signature) = (secret.public_key(), secret.sign(b"posting"));
        let mut bytes = key.to_bytes();
        bytes[31] ^= 0x80;
        let other = MessageKey::from_bytes(&bytes).unwrap();
        assert_ne!(other.hash(), key.hash());
        key.verify(b"posting", &signature).unwrap();
        other.verify(b"posting", &signature).unwrap_err();
    }

    #[test]
    fn a_signature_with_s_not_below_the_order_is_refused() {
        let secret = MessageSecret::generate(&mut OsRng);
        let signature = secret.sign(b"posting");
        // The order 2^252 + 27742317777372353535851937790883648493, added to S.
        let order = hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
        let mut changed = signature;
        let mut carry = 0u16;
        for (byte, add) in changed[32..].iter_mut().zip(order) {
            carry += u16::from(*byte) + u16::from(add);
            *byte = carry as u8;
            carry >>= 8;
        }
        let refused = secret.public_key().verify(b"posting", &changed);
        assert_eq!(refused, Err(Error::Signature { what: "the posting" }));
    }

    #[test]
    fn a_signature_of_another_length_is_refused() {
        let secret = MessageSecret::generate(&mut OsRng);
        for length in [0, 63, 65] {
            let refused = secret.public_key().verify(b"posting", &vec![0; length]);
            let what = "the signature";
            assert_eq!(refused, Err(Error::Length { what, expected: 64, found: length }));
        }
    }

    #[test]
    fn a_signature_that_only_the_equation_with_cofactor_accepts_is_refused() {
        // R' = R + T with T of order 8 and S = r + H(R', A, M)·a: 8·S·B = 8·R' + 8·h·A.
        let a = Exponent::from(12_345u64);
        let key_point = EdwardsPoint::mul_base(&a);
        let key = MessageKey::from_bytes(&key_point.compress().to_bytes()).unwrap();
        let r = Exponent::from(67_890u64);
        for torsion in [EIGHT_TORSION[0], EIGHT_TORSION[1]] {
            let commitment = (EdwardsPoint::mul_base(&r) + torsion).compress().to_bytes();
            let mut sha = Sha512::new();
            for part in [&commitment, &key.to_bytes()] {
                sha.update(part);
            }
            sha.update(b"posting");
            let h = Exponent::from_bytes_mod_order_wide(&sha.finalize().into());
            let signature = [commitment, (r + h * a).to_bytes()].concat();
            let verdict = key.verify(b"posting", &signature);
            assert_eq!(verdict.is_ok(), torsion == EIGHT_TORSION[0]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_flipped_bit_of_a_signature_is_noticed(bit in 0usize..512) {
            let secret = MessageSecret::generate(&mut OsRng);
            let mut signature = secret.sign(b"posting");
            signature[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(secret.public_key().verify(b"posting", &signature).is_err());
        }
    }
}

mod separation {
    use super::*;

    #[test]
    fn a_scope_or_epoch_equal_to_an_old_message_key_hash_gives_no_old_tag() {
        let msk = MasterSecret::generate(&mut OsRng);
        let d = DatasetDigest::of_chunks(["rows"]);
        let a = MessageSecret::generate(&mut OsRng).public_key().hash();
        let tag = msk.tag(a).to_bytes();
        let scope = Scope::from_bytes(&a.to_bytes()).unwrap();
        let epoch = Epoch::from_bytes(&a.to_bytes()).unwrap();
        let iteration = msk.iteration_nullifier(d, scope).to_bytes();
        let registration = msk.registration_nullifier(d, epoch).to_bytes();
        assert!(tag != iteration && tag != registration && iteration != registration);
    }

    #[test]
    fn the_same_inputs_hash_differently_in_every_domain() {
        let inputs: Vec<Fr> = (0..8).map(|_| Fr::rand(&mut OsRng)).collect();
        let mut found: Vec<Fr> =
            Domain::ALL.iter().map(|domain| hash(*domain, &inputs[..domain.arity()])).collect();
        // The same inputs filled up with zeros to other arities.
        for count in 1..8 {
            let mut filled = inputs[..count].to_vec();
            found.push(permute(Fr::ZERO, &filled));
            filled.push(Fr::ZERO);
            found.push(permute(Fr::ZERO, &filled));
        }
        let total = found.len() - 1; // One is the domain of circomlib's own hash.
        found.sort();
        found.dedup();
        assert_eq!(found.len(), total);
    }

    #[test]
    #[should_panic(expected = "Tag has another number of inputs")]
    fn a_hash_with_another_number_of_inputs_is_refused() {
        hash(Domain::Tag, &[Fr::ONE; 3]);
    }

    #[test]
    fn what_is_hashed_to_the_field_is_pinned() {
        // Computed with Python's hashlib: SHA-512 of the prefix's length, the prefix and the
        // bytes, read as a little-endian integer, modulo r.
        let genesis: [u8; 32] = std::array::from_fn(|i| i as u8);
        let key = MessageSecret::from_bytes(&[
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec,
            0x2c, 0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03,
            0x1c, 0xae, 0x7f, 0x60,
        ]);
        let found = [
            Epoch::new(&genesis, 5).element(),
            Scope::new(&genesis, 2, 7).element(),
            DatasetDigest::of_chunks(["a,b\n", "1,", "2\n"]).element(),
            key.unwrap().public_key().hash().element(),
        ];
        let expected = [
            "17199250898870741180823153231159066286658426379329076016436897285199700096680",
            "7177649683009735527212287032272001971960105766334672212341614838560112941952",
            "4360498269831668331969857394553684606285051819834507923307381747893109296212",
            "10917094684233814490804079264762421020499489085143070585627394197543926003398",
        ];
        assert_eq!(found.map(|value| value.to_string()), expected);
    }

    #[test]
    fn every_field_of_a_scope_counts() {
        let scopes = [
            Scope::new(&[1; 32], 0, 0),
            Scope::new(&[2; 32], 0, 0),
            Scope::new(&[1; 32], 1, 0),
            Scope::new(&[1; 32], 0, 1),
            Scope::new(&[1; 32], 1 << 32, 0),
        ];
        for (i, left) in scopes.iter().enumerate() {
            assert!(scopes[i + 1..].iter().all(|right| left != right));
        }
        assert_ne!(Epoch::new(&[1; 32], 0), Epoch::new(&[1; 32], 1));
        assert_ne!(Epoch::new(&[1; 32], 0), Epoch::new(&[2; 32], 0));
    }
}

#[test]
fn secrets_are_not_printed() {
    let certifier = CertifierSecret::generate(&mut OsRng);
    let msk = MasterSecret::generate(&mut OsRng);
    let d = DatasetDigest::of_chunks(["rows"]);
    let mut tree = Tree::new(TreeKind::Certifiers);
    tree.append(&[certifier.public_key().leaf()]).unwrap();
    let printed = [
        format!("{:?}", certifier.certify(d, msk.public_key(), DatasetType(1))),
        format!("{certifier:?}"),
        format!("{msk:?}"),
        format!("{:?}", Salt::generate(&mut OsRng)),
        format!("{:?}", TypeBlinding::generate(&mut OsRng)),
        format!("{:?}", MessageSecret::generate(&mut OsRng)),
        format!("{:?}", tree.path(0).unwrap()),
    ];
    let names = [
        "Certificate",
        "CertifierSecret",
        "MasterSecret",
        "Salt",
        "TypeBlinding",
        "MessageSecret",
        "Path",
    ];
    assert_eq!(printed, names.map(|name| format!("{name}(<redacted>)")));
}

mod possession {
    use super::*;
    use anofel_primitives::babyjubjub::generator_f;
    use anofel_primitives::eddsa::Possession;
    use sha2::{Digest, Sha512};

    const BAD: Result<(), Error> = Err(Error::Signature { what: "the proof of possession" });

    #[test]
    fn a_proof_of_possession_fits_one_board_identity_and_key() {
        let (certifier, other) =
            (CertifierSecret::generate(&mut OsRng), CertifierSecret::generate(&mut OsRng));
        let (genesis, identity) = ([1; 32], [2; 32]);
        let proof = certifier.prove_possession(genesis, identity);
        let (key, stranger) = (certifier.public_key(), other.public_key());
        assert_eq!(key.verify_possession(genesis, identity, &proof), Ok(()));
        assert_eq!(key.verify_possession([3; 32], identity, &proof), BAD);
        assert_eq!(key.verify_possession(genesis, [3; 32], &proof), BAD);
        assert_eq!(key.verify_possession(identity, genesis, &proof), BAD);
        assert_eq!(stranger.verify_possession(genesis, identity, &proof), BAD);
        let copied = other.prove_possession(genesis, identity);
        assert_eq!(key.verify_possession(genesis, identity, &copied), BAD);
    }

    #[test]
    fn a_proof_of_possession_signs_what_the_documentation_says() {
        let certifier = CertifierSecret::generate(&mut OsRng);
        let key = certifier.public_key();
        let prefix = b"anofel/1/certifier-possession";
        let text = [&[29], &prefix[..], &[1; 32], &[2; 32], &key.to_bytes()].concat();
        let message = Fr::from_le_bytes_mod_order(&Sha512::digest(text));
        let proof = certifier.prove_possession([1; 32], [2; 32]).to_bytes();
        key.verify_message(message, &Certificate::from_bytes(&proof).unwrap()).unwrap();
    }

    #[test]
    fn a_key_that_is_a_multiple_of_f_has_no_proof_from_another_secret() {
        let point = (generator_f() * Scalar::from(5u8)).into_affine();
        let key = CertifierKey::from_bytes(&xy(point.x, point.y)).unwrap();
        let proof = CertifierSecret::generate(&mut OsRng).prove_possession([1; 32], [2; 32]);
        assert_eq!(key.verify_possession([1; 32], [2; 32], &proof), BAD);
    }

    #[test]
    fn a_proof_of_possession_has_one_form() {
        let what = "the proof of possession";
        let proof = CertifierSecret::generate(&mut OsRng).prove_possession([1; 32], [2; 32]);
        let good = proof.to_bytes();
        assert_eq!(Possession::from_bytes(&good), Ok(proof));
        let short = Possession::from_bytes(&good[1..]);
        assert_eq!(short, Err(Error::Length { what, expected: 96, found: 95 }));
        let mut bytes = good;
        bytes[64..].copy_from_slice(&unreduced::<Scalar>(1));
        assert_eq!(Possession::from_bytes(&bytes), Err(Error::NotCanonical { what }));
        let mixed = (base8() + of_order_eight()).into_affine();
        let bytes = [xy(mixed.x, mixed.y), vec![0; 32]].concat();
        assert_eq!(Possession::from_bytes(&bytes), Err(Error::NotInSubgroup { what }));
    }
}
