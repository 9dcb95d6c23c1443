//! What is refused of a proving key on the wire and of tables, and in which words.

use anofel_circuits::groth16::key::{id_of, KeyId, ProvingKey, VerifyingKey};
use anofel_circuits::groth16::prover::prove;
use anofel_circuits::groth16::setup::insecure_development_key;
use anofel_circuits::groth16::verifier::Verifier;
use anofel_circuits::statements::Statement;
use anofel_circuits::statements::StatementKind::{self, Ownership, Submission};
use ark_bn254::{Fq, G1Affine};
use ark_ec::AffineRepr;
use ark_ff::{BigInteger, PrimeField};
use ark_serialize::CanonicalSerialize;
use proptest::prelude::*;
use rand::rngs::OsRng;

use crate::common::{key, matrices, off_subgroup, system, World};

/// Places in the file of the ownership proving key.
const ALPHA: usize = 83;
const BETA_2: usize = ALPHA + 32;
const GAMMA: usize = BETA_2 + 64;
const DELTA: usize = GAMMA + 64;
const IC: usize = DELTA + 64;
const A: usize = IC + 3 * 32;

fn wire() -> Vec<u8> {
    key(Ownership).to_bytes()
}

/// The place of the first point of B in G2, and of the last point of all.
fn b_and_last() -> (usize, usize) {
    let bytes = wire();
    let in_a = |i: u32| matrices(Ownership).iter().any(|row| row.a.iter().any(|(j, _)| *j == i));
    // The constant one and both inputs have a point in any case.
    let a = 3 + (3..system(Ownership).assignment().len() as u32).filter(|i| in_a(*i)).count();
    (A + 32 * a, bytes.len() - 64)
}

/// The sentence for a file that was changed and pinned as it is.
fn refusal(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = wire();
    change(&mut bytes);
    ProvingKey::from_bytes(Ownership, &bytes, &id_of(&bytes)).err().unwrap().to_string()
}

fn unsafe_because(reason: &str) -> String {
    format!("the ownership key is unsafe: {reason}")
}

fn compressed(point: &impl CanonicalSerialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    point.serialize_compressed(&mut bytes).unwrap();
    bytes
}

/// Every place with a point of G1, and every one with a point of G2.
fn places() -> ([usize; 5], [usize; 4]) {
    let (b, last) = b_and_last();
    ([ALPHA, IC, IC + 64, A, last], [BETA_2, GAMMA, DELTA, b])
}

fn with_g1(point: &[u8]) -> Vec<String> {
    let put = |place: &usize| refusal(|bytes| bytes[*place..*place + 32].copy_from_slice(point));
    places().0.iter().map(put).collect()
}

fn with_g2(point: &[u8]) -> Vec<String> {
    let put = |place: &usize| refusal(|bytes| bytes[*place..*place + 64].copy_from_slice(point));
    places().1.iter().map(put).collect()
}

fn all(sentences: Vec<String>, reason: &str) {
    assert!(sentences.iter().all(|found| *found == unsafe_because(reason)), "{sentences:?}");
}

#[test]
fn points_are_compressed_as_in_proofs() {
    let bytes = wire();
    let points = key(Ownership).verifying_key().points();
    assert_eq!(bytes[ALPHA..BETA_2], compressed(&points.alpha_g1));
    assert_eq!(bytes[GAMMA..DELTA], compressed(&points.gamma_g2));
    assert_eq!(bytes[IC..IC + 32], compressed(&points.gamma_abc_g1[0]));
}

#[test]
fn all_three_keys_have_at_most_two_megabytes() {
    let total: usize = StatementKind::ALL.iter().map(|kind| key(*kind).to_bytes().len()).sum();
    assert!(total <= 2_200_000, "{total}");
}

#[test]
fn a_coordinate_that_is_not_canonical_is_refused() {
    let mut unreduced = Fq::MODULUS;
    unreduced.add_with_carry(&G1Affine::generator().x.into_bigint());
    let g1 = unreduced.to_bytes_le();
    all(with_g1(&g1), "a coordinate is not canonical");
    let mut g2 = compressed(&key(Ownership).verifying_key().points().beta_g2);
    g2[..32].copy_from_slice(&Fq::MODULUS.to_bytes_le());
    all(with_g2(&g2), "a coordinate is not canonical");
}

#[test]
fn a_neutral_point_is_refused() {
    let mut neutral = [0; 64];
    neutral[63] = 0x40;
    all(with_g1(&neutral[32..]), "a point is the neutral element");
    all(with_g2(&neutral), "a point is the neutral element");
}

#[test]
fn another_form_of_a_point_is_refused() {
    let mut g1 = compressed(&G1Affine::generator());
    g1[31] |= 0x40;
    all(with_g1(&g1), "a point is not in canonical form");
    g1[31] |= 0xc0;
    all(with_g1(&g1), "a point is not in canonical form");
    // The neutral element with a sign.
    let mut g2 = [0; 64];
    g2[63] = 0xc0;
    all(with_g2(&g2), "a point is not in canonical form");
}

#[test]
fn a_point_off_its_curve_is_refused() {
    let x = (1u64..)
        .find(|x| G1Affine::get_point_from_x_unchecked(Fq::from(*x), true).is_none())
        .unwrap();
    all(with_g1(&Fq::from(x).into_bigint().to_bytes_le()), "a point is not on its curve");
    let x = (1u8..)
        .find(|x| {
            let x = ark_bn254::Fq2::from(u64::from(*x));
            ark_bn254::G2Affine::get_point_from_x_unchecked(x, true).is_none()
        })
        .unwrap();
    let mut g2 = [0; 64];
    g2[0] = x;
    all(with_g2(&g2), "a point is not on its curve");
}

#[test]
fn a_point_off_its_subgroup_is_refused() {
    all(with_g2(&compressed(&off_subgroup())), "a point is not in its subgroup");
}

#[test]
fn the_guards_of_verification_keys_apply() {
    let reason = "γ equals δ, so the second phase of its set-up was skipped";
    assert_eq!(
        refusal(|bytes| bytes.copy_within(DELTA..DELTA + 64, GAMMA)),
        unsafe_because(reason)
    );
}

#[test]
fn a_key_that_names_tables_of_another_is_refused() {
    let reason = unsafe_because("the tables that it names are not its own");
    assert_eq!(refusal(|bytes| *bytes.last_mut().unwrap() ^= 1), reason);
    // Another point, good in itself: the tables are those of the point that was there before.
    let point = compressed(&G1Affine::generator());
    assert_eq!(refusal(|bytes| bytes[A..A + 32].copy_from_slice(&point)), reason);
}

#[test]
fn a_truncated_and_a_too_long_key_are_refused() {
    let length = wire().len();
    let said = |state: &str, found: usize| {
        format!("the key file is {state}: it has {found} bytes instead of {length}")
    };
    assert_eq!(refusal(|bytes| bytes.truncate(length - 1)), said("truncated", length - 1));
    assert_eq!(refusal(|bytes| bytes.truncate(100)), said("truncated", 100));
    assert_eq!(refusal(|bytes| bytes.push(0)), said("too long", length + 1));
}

#[test]
fn tables_of_another_key_are_refused() {
    let bytes = wire();
    let other = insecure_development_key(Ownership, &mut OsRng);
    let load = |tables: &[u8], key: &[u8], id: KeyId| {
        ProvingKey::from_tables(Ownership, tables, key, &id).err().unwrap().to_string()
    };
    let refused = "these are not the tables of the ownership proving key";
    assert_eq!(load(&other.to_tables(), &bytes, id_of(&bytes)), refused);
    let mut tables = key(Ownership).to_tables();
    for place in [0, 12, 100, tables.len() - 1] {
        tables[place] ^= 1;
        assert_eq!(load(&tables, &bytes, id_of(&bytes)), refused);
        tables[place] ^= 1;
    }
    assert_eq!(load(&tables[..tables.len() - 1], &bytes, id_of(&bytes)), refused);
    assert_eq!(load(&[&tables[..], &[0]].concat(), &bytes, id_of(&bytes)), refused);
    // Its own tables under a key that is not pinned.
    let found = load(&other.to_tables(), &other.to_bytes(), id_of(&bytes));
    assert!(found.starts_with("this key is not the pinned one"), "{found}");
}

#[test]
fn tables_are_no_key() {
    let tables = key(Ownership).to_tables();
    let error = ProvingKey::from_bytes(Ownership, &tables, &id_of(&tables)).err().unwrap();
    assert_eq!(error.to_string(), "this file is tables; a proving key is needed");
    assert!(VerifyingKey::from_bytes(Ownership, &tables).is_err());
}

#[test]
fn a_key_from_its_file_proves() {
    let world = World::new();
    let (statement, witness) = world.submission(3);
    let bytes = key(Submission).to_bytes();
    let again = ProvingKey::from_bytes(Submission, &bytes, &id_of(&bytes)).unwrap();
    let proof = prove(&again, &statement, &witness, &mut OsRng).unwrap();
    let verifier = Verifier::new(key(Submission).verifying_key().clone());
    verifier.verify(&statement.public_inputs(), &proof).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_changed_byte_of_a_pinned_proving_key_is_noticed(
        place in any::<prop::sample::Index>(), change in 1u8..
    ) {
        let mut bytes = wire();
        let pinned = id_of(&bytes);
        let place = place.index(bytes.len());
        bytes[place] ^= change;
        prop_assert!(ProvingKey::from_bytes(Ownership, &bytes, &pinned).is_err());
    }

    /// Also by somebody who pins what it made: a file is canonical, and names its own tables.
    #[test]
    fn a_changed_byte_after_the_header_is_noticed_whatever_is_pinned(
        place in any::<prop::sample::Index>(), change in 1u8..
    ) {
        let mut bytes = wire();
        let place = ALPHA + place.index(bytes.len() - ALPHA);
        bytes[place] ^= change;
        prop_assert!(ProvingKey::from_bytes(Ownership, &bytes, &id_of(&bytes)).is_err());
    }
}
