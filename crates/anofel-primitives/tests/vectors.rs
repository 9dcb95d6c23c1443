//! Poseidon and EdDSA against vectors that circomlibjs computed (see `vectors/generate.mjs`).
#![allow(clippy::unwrap_used)]

use std::str::FromStr;

use anofel_primitives::babyjubjub::{base8, generator_f, generator_g, generator_h, Scalar};
use anofel_primitives::eddsa::{Certificate, CertifierKey, CertifierSecret};
use anofel_primitives::field;
use anofel_primitives::hash::{permute, Domain};
use anofel_primitives::identity::{DatasetDigest, DatasetType, MasterSecret};
use anofel_primitives::Fr;
use light_poseidon::{Poseidon, PoseidonHasher};
use serde_json::Value;

fn number<F: FromStr>(value: &Value) -> F
where
    F::Err: std::fmt::Debug,
{
    F::from_str(value.as_str().unwrap()).unwrap()
}

fn vectors(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn poseidon_equals_circomlib_for_one_to_eight_inputs() {
    let vectors = vectors(include_str!("../../../vectors/poseidon.json"));
    assert_eq!(vectors.len(), 40);
    for vector in vectors {
        let inputs: Vec<Fr> = vector["inputs"].as_array().unwrap().iter().map(number).collect();
        let expected: Fr = number(&vector["output"]);
        assert_eq!(permute(number(&vector["first"]), &inputs), expected, "{vector}");
    }
}

#[test]
fn poseidon_equals_light_poseidon_in_every_domain() {
    for domain in Domain::ALL {
        let inputs: Vec<Fr> = (1..=domain.arity() as u64).map(Fr::from).collect();
        let mut theirs =
            Poseidon::<Fr>::with_domain_tag_circom(inputs.len(), domain.constant()).unwrap();
        assert_eq!(
            permute(domain.constant(), &inputs),
            theirs.hash(&inputs).unwrap(),
            "{domain:?}"
        );
    }
}

fn signature(vector: &Value) -> (CertifierKey, Fr, Vec<u8>) {
    let field_bytes = |value: &Value| field::to_bytes(&number::<Fr>(value));
    let key = [field_bytes(&vector["A"][0]), field_bytes(&vector["A"][1])].concat();
    let certificate = [
        field_bytes(&vector["R8"][0]),
        field_bytes(&vector["R8"][1]),
        field::to_bytes(&number::<Scalar>(&vector["S"])),
    ]
    .concat();
    (CertifierKey::from_bytes(&key).unwrap(), number(&vector["message"]), certificate)
}

#[test]
fn signatures_of_circomlibjs_verify() {
    for vector in vectors(include_str!("../../../vectors/eddsa.json")) {
        let (key, message, bytes) = signature(&vector);
        let certificate = Certificate::from_bytes(&bytes).unwrap();
        key.verify_message(message, &certificate).unwrap();
        key.verify_message(message + Fr::from(1), &certificate).unwrap_err();
    }
}

#[test]
fn a_signature_with_s_not_below_the_group_order_is_refused() {
    let vector = &vectors(include_str!("../../../vectors/eddsa.json"))[0];
    let (_, _, mut bytes) = signature(vector);
    // S + l: the equation still holds, but the encoding is not canonical.
    let order = <Scalar as ark_ff::PrimeField>::MODULUS;
    let mut s = <Scalar as ark_ff::PrimeField>::into_bigint(number(&vector["S"]));
    ark_ff::BigInteger::add_with_carry(&mut s, &order);
    bytes[64..].copy_from_slice(&ark_ff::BigInteger::to_bytes_le(&s));
    let error = Certificate::from_bytes(&bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the certificate is not canonical: the integer is not below the modulus"
    );
}

#[test]
fn a_certificate_covers_digest_key_and_type() {
    let mut rng = rand::rngs::OsRng;
    let certifier = CertifierSecret::generate(&mut rng);
    let key = certifier.public_key();
    let mpk = MasterSecret::generate(&mut rng).public_key();
    let other_mpk = MasterSecret::generate(&mut rng).public_key();
    let d = DatasetDigest::of_chunks([b"rows"]);
    let other_d = DatasetDigest::of_chunks([b"other rows"]);
    let dt = DatasetType(7);
    let certificate = certifier.certify(d, mpk, dt);
    key.verify(d, mpk, dt, &certificate).unwrap();
    key.verify(other_d, mpk, dt, &certificate).unwrap_err();
    key.verify(d, other_mpk, dt, &certificate).unwrap_err();
    key.verify(d, mpk, DatasetType(8), &certificate).unwrap_err();
    CertifierSecret::generate(&mut rng).public_key().verify(d, mpk, dt, &certificate).unwrap_err();
    let again = Certificate::from_bytes(&*certificate.to_secret_bytes()).unwrap();
    key.verify(d, mpk, dt, &again).unwrap();
}

#[test]
fn the_generators_are_pinned() {
    let found = [generator_g(), generator_h(), generator_f()].map(|point| point.y.to_string());
    let expected = [
        "11439118911237384092165757731417152713811855906709485172257180425973908152491",
        "3165888461567993648341696488096386390994678742637097627980958477972755361741",
        "3753261931822004053069140315256628119702848595318262994492259360243963712356",
    ];
    assert_eq!(found, expected);
    assert_eq!(
        base8().x.to_string(),
        "5299619240641551281634865583518297030282874472190772894086521144482721001553"
    );
}

#[test]
fn domains_are_distinct_and_canonical() {
    for (i, left) in Domain::ALL.iter().enumerate() {
        assert!(left.text().len() <= 31, "{left:?} would wrap around the modulus");
        for right in &Domain::ALL[i + 1..] {
            assert_ne!(left.constant(), right.constant());
        }
    }
}
