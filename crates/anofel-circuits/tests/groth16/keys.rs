//! What the loader of keys refuses, and in which words.

use anofel_circuits::groth16::key::{id_of, Description, Origin, ProvingKey, VerifyingKey};
use anofel_circuits::groth16::setup::insecure_development_key;
use anofel_circuits::statements::StatementKind::{self, Ownership, Registration, Submission};
use ark_bn254::{Fq, Fq2, G1Affine, G2Affine};
use ark_ec::AffineRepr;
use ark_ff::{BigInt, BigInteger, PrimeField};
use proptest::prelude::*;
use rand::rngs::OsRng;

use crate::common::key;

/// Places in a key file.
const VERSION: usize = 10;
const ROLE: usize = 12;
const KIND: usize = 13;
const ORIGIN: usize = 14;
const TRANSCRIPT: usize = 15;
const SHAPE: usize = 47;
const INPUTS: usize = 79;
const ALPHA: usize = 83;
const BETA: usize = ALPHA + 64;
const GAMMA: usize = BETA + 128;
const DELTA: usize = GAMMA + 128;
const IC: usize = DELTA + 128;

/// The smallest statement's verification key.
fn file() -> Vec<u8> {
    key(Ownership).verifying_key().to_bytes()
}

fn g1(point: &G1Affine) -> Vec<u8> {
    [point.x, point.y].iter().flat_map(limbs).collect()
}

fn g2(point: &G2Affine) -> Vec<u8> {
    let Fq2 { c0, c1, .. } = point.x;
    [c0, c1, point.y.c0, point.y.c1].iter().flat_map(limbs).collect()
}

fn limbs(coordinate: &Fq) -> Vec<u8> {
    coordinate.0 .0.iter().flat_map(|limb| limb.to_le_bytes()).collect()
}

/// The sentence with which a changed file is refused.
fn refusal(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = file();
    change(&mut bytes);
    VerifyingKey::from_bytes(Ownership, &bytes).unwrap_err().to_string()
}

/// The sentence for a file in which a point is replaced.
fn with_point(place: usize, point: &[u8]) -> String {
    refusal(|bytes| bytes[place..place + point.len()].copy_from_slice(point))
}

fn unsafe_because(reason: &str) -> String {
    format!("the ownership key is unsafe: {reason}")
}

#[test]
fn keys_survive_their_files() {
    for kind in StatementKind::ALL {
        let proving = key(kind);
        let bytes = proving.to_bytes();
        let again = ProvingKey::from_bytes(kind, &bytes, &id_of(&bytes)).unwrap();
        assert_eq!(again.to_bytes(), bytes);
        let tables = proving.to_tables();
        assert_eq!(again.to_tables(), tables, "tables follow from the key, bit for bit");
        let again = ProvingKey::from_tables(kind, &tables, &bytes, &id_of(&bytes)).unwrap();
        assert_eq!((again.to_bytes(), again.to_tables()), (bytes, tables));
        let vk = proving.verifying_key();
        assert_eq!(&VerifyingKey::from_bytes(kind, &vk.to_bytes()).unwrap(), vk);
        assert_eq!(vk.id(), id_of(&vk.to_bytes()));
        assert_eq!(vk.origin(), Origin::Development);
        assert_eq!(vk.origin().describe(), "insecure development setup");
    }
}

#[test]
fn a_key_whose_gamma_is_delta_is_refused() {
    let reason = unsafe_because("γ equals δ, so the second phase of its set-up was skipped");
    let points = key(Ownership).verifying_key().points();
    assert_eq!(with_point(GAMMA, &g2(&points.delta_g2)), reason);
    assert_eq!(with_point(GAMMA, &g2(&-points.delta_g2)), reason);
}

#[test]
fn a_key_whose_delta_is_the_generator_is_refused() {
    let reason =
        unsafe_because("δ is the generator, so the second phase of its set-up was skipped");
    let generator = G2Affine::generator();
    assert_eq!(with_point(DELTA, &g2(&generator)), reason);
    assert_eq!(with_point(DELTA, &g2(&-generator)), reason);
}

#[test]
fn unreduced_coordinates_do_not_slip_past_the_guards() {
    let reason = unsafe_because("a coordinate is not canonical");
    let points = key(Ownership).verifying_key().points();
    let unreduced = |place: usize, mut point: Vec<u8>| {
        let mut first = BigInt::<4>(std::array::from_fn(|i| {
            u64::from_le_bytes(point[8 * i..8 * i + 8].try_into().unwrap())
        }));
        assert!(!first.add_with_carry(&Fq::MODULUS));
        point[..32].copy_from_slice(&first.to_bytes_le());
        with_point(place, &point)
    };
    // γ = δ and δ = the generator in another guise.
    assert_eq!(unreduced(GAMMA, g2(&points.delta_g2)), reason);
    assert_eq!(unreduced(DELTA, g2(&G2Affine::generator())), reason);
    assert_eq!(unreduced(BETA, g2(&points.beta_g2)), reason);
    assert_eq!(unreduced(ALPHA, g1(&points.alpha_g1)), reason);
    assert_eq!(unreduced(IC, g1(&points.gamma_abc_g1[0])), reason);
    assert_eq!(with_point(ALPHA, &[0xff; 64]), reason);
}

#[test]
fn a_key_with_a_neutral_point_is_refused() {
    let reason = unsafe_because("a point is the neutral element");
    for (place, length) in [(ALPHA, 64), (BETA, 128), (GAMMA, 128), (DELTA, 128)] {
        assert_eq!(with_point(place, &vec![0; length]), reason);
    }
    // An input whose point is neutral is not bound by the proof.
    for input in 0..3 {
        assert_eq!(with_point(IC + 64 * input, &[0; 64]), reason);
    }
}

#[test]
fn a_key_with_a_point_off_its_curve_is_refused() {
    let reason = unsafe_because("a point is not on its curve");
    for place in [ALPHA, BETA, GAMMA, DELTA, IC, IC + 64, IC + 128] {
        // Fq's 1 and 0 are canonical, and (1, 0) and (1, 0, 0, 0) are on neither curve.
        let mut point = limbs(&Fq::from(1));
        point.resize(if place >= IC || place == ALPHA { 64 } else { 128 }, 0);
        assert_eq!(with_point(place, &point), reason);
    }
}

#[test]
fn a_key_with_a_point_off_its_subgroup_is_refused() {
    let reason = unsafe_because("a point is not in its subgroup");
    let point = crate::common::off_subgroup();
    for place in [BETA, GAMMA, DELTA] {
        assert_eq!(with_point(place, &g2(&point)), reason);
    }
}

#[test]
fn a_key_with_a_wrong_number_of_inputs_is_refused() {
    let reason = unsafe_because("it has a wrong number of public inputs");
    for inputs in [0, 1, 3, u8::MAX] {
        assert_eq!(refusal(|bytes| bytes[INPUTS] = inputs), reason);
    }
}

#[test]
fn a_truncated_and_a_too_long_key_are_refused() {
    let length = file().len();
    assert_eq!(length, 723);
    assert_eq!(
        refusal(|bytes| bytes.truncate(722)),
        "the key file is truncated: it has 722 bytes instead of 723"
    );
    assert_eq!(
        refusal(|bytes| bytes.truncate(40)),
        "the key file is truncated: it has 40 bytes instead of 83"
    );
    assert_eq!(
        refusal(|bytes| bytes.push(0)),
        "the key file is too long: it has 724 bytes instead of 723"
    );
}

#[test]
fn something_else_is_not_a_key() {
    let reason = "this is not an anofel key file";
    assert_eq!(refusal(|bytes| bytes.clear()), reason);
    assert_eq!(refusal(|bytes| bytes.truncate(9)), reason);
    assert_eq!(refusal(|bytes| bytes[0] ^= 1), reason);
    assert_eq!(refusal(|bytes| *bytes = b"{\"protocol\": \"groth16\"}".to_vec()), reason);
    assert_eq!(refusal(|bytes| bytes[ROLE] = 3), reason);
    assert_eq!(refusal(|bytes| bytes[KIND] = 3), reason);
    assert_eq!(refusal(|bytes| bytes[ORIGIN] = 2), reason);
    // A development key has no transcript, so that it has one encoding.
    assert_eq!(refusal(|bytes| bytes[TRANSCRIPT] = 1), reason);
}

#[test]
fn a_key_of_another_version_is_refused() {
    assert_eq!(
        refusal(|bytes| bytes[VERSION] = 1),
        "the key file has format version 1; this program reads version 3"
    );
}

#[test]
fn a_key_of_the_other_role_is_refused() {
    let proving = key(Ownership).to_bytes();
    let error = VerifyingKey::from_bytes(Ownership, &proving).unwrap_err();
    assert_eq!(error.to_string(), "this is a proving key; a verification key is needed");
    let bytes = file();
    let error = ProvingKey::from_bytes(Ownership, &bytes, &id_of(&bytes)).err().unwrap();
    assert_eq!(error.to_string(), "this is a verification key; a proving key is needed");
}

#[test]
fn a_key_of_another_statement_is_refused() {
    let reason =
        "this key is for the registration statement; a key for the submission statement is needed";
    let vk = key(Registration).verifying_key().to_bytes();
    assert_eq!(VerifyingKey::from_bytes(Submission, &vk).unwrap_err().to_string(), reason);
    let proving = key(Registration).to_bytes();
    let error = ProvingKey::from_bytes(Submission, &proving, &id_of(&proving)).err().unwrap();
    assert_eq!(error.to_string(), reason);
}

#[test]
fn a_key_for_other_constraints_is_refused() {
    let reason = "this key was made for another version of the ownership constraints";
    assert_eq!(refusal(|bytes| bytes[SHAPE] ^= 1), reason);
    let mut proving = key(Ownership).to_bytes();
    proving[SHAPE] ^= 1;
    let error = ProvingKey::from_bytes(Ownership, &proving, &id_of(&proving)).err().unwrap();
    assert_eq!(error.to_string(), reason);
}

#[test]
fn a_proving_key_that_is_not_the_pinned_one_is_refused() {
    let hex = |id: [u8; 32]| id.map(|byte| format!("{byte:02x}")).concat();
    let (pinned, other) = (key(Ownership), insecure_development_key(Ownership, &mut OsRng));
    let (pinned, other) = (id_of(&pinned.to_bytes()), other.to_bytes());
    let error = ProvingKey::from_bytes(Ownership, &other, &pinned).err().unwrap();
    let expected = format!(
        "this key is not the pinned one: its id is {}, pinned is {}",
        hex(id_of(&other)),
        hex(pinned)
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_file_that_says_it_comes_from_a_ceremony_only_claims_it() {
    let transcript = [5; 32];
    let mut bytes = file();
    bytes[ORIGIN] = 1;
    bytes[TRANSCRIPT..TRANSCRIPT + 32].copy_from_slice(&transcript);
    let found = VerifyingKey::from_bytes(Ownership, &bytes).unwrap();
    assert_eq!(found.origin(), Origin::Ceremony { transcript });
    assert_eq!(Description::read(&bytes).unwrap().origin.describe(), "ceremony (claimed)");
    assert_ne!(found.id(), id_of(&file()));
    bytes[ORIGIN] = 0;
    assert_eq!(
        Description::read(&bytes).unwrap_err().to_string(),
        "this is not an anofel key file"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_changed_byte_of_a_verification_key_is_noticed(place in 0usize..723, change in 1u8..) {
        let mut bytes = file();
        bytes[place] ^= change;
        prop_assert!(VerifyingKey::from_bytes(Ownership, &bytes).is_err());
    }
}
