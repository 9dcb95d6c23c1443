//! The formats of other programs, read back by code that shares nothing with the writers.
//! `tests/test_snarkjs.py` holds the same files against snarkjs itself.
#![allow(clippy::unwrap_used)]

mod common;

use anofel_circuits::export::{iden3, snarkjs};
use anofel_circuits::groth16::prover::prove;
use anofel_circuits::groth16::setup::insecure_development_key;
use anofel_circuits::statements::ownership::OwnershipCircuit;
use anofel_circuits::statements::{run, Statement, StatementKind};
use anofel_circuits::system::{Mode, System};
use anofel_primitives::Fr;
use ark_bn254::{Fq, Fq2, G1Affine, G2Affine};
use ark_ff::{BigInteger, Field, PrimeField};
use rand::rngs::OsRng;
use serde_json::Value;

/// A system of two constraints: x·y = 6 with public y, and (x + 5)·1 = −(−7).
fn small(mode: Mode) -> System {
    let (mut system, public) = System::new(mode, &[Fr::from(3)]);
    let x = system.variable(Fr::from(2));
    let constant = |system: &System, value: i64| system.constant(Fr::from(value));
    let six = constant(&system, 6);
    system.enforce(&x, &public[0], &six);
    let sum = x.plus(&constant(&system, 5));
    let seven = constant(&system, -7).scale(-Fr::ONE);
    system.enforce_equal(&sum, &seven);
    system
}

/// Cuts a file of iden3 into its sections.
fn sections<'a>(bytes: &'a [u8], letters: &str, version: u32) -> Vec<(u32, &'a [u8])> {
    assert_eq!(&bytes[..4], letters.as_bytes());
    assert_eq!(bytes[4..8], version.to_le_bytes());
    let count = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    let mut rest = &bytes[12..];
    let sections = (0..count)
        .map(|_| {
            let kind = u32::from_le_bytes(rest[..4].try_into().unwrap());
            let length = u64::from_le_bytes(rest[4..12].try_into().unwrap()) as usize;
            let contents = &rest[12..12 + length];
            rest = &rest[12 + length..];
            (kind, contents)
        })
        .collect();
    assert!(rest.is_empty());
    sections
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// An element of the field, given as a small integer, as 32 bytes.
fn element(value: i64) -> Vec<u8> {
    Fr::from(value).into_bigint().to_bytes_le()
}

fn field_header() -> Vec<u8> {
    [words(&[32]), Fr::MODULUS.to_bytes_le()].concat()
}

#[test]
fn constraints_are_written_as_an_r1cs_file() {
    let bytes = iden3::r1cs(&small(Mode::Recording));
    // Three variables, no output, one public input, none private, three labels, two constraints.
    let header = [field_header(), words(&[3, 0, 1, 0, 3, 0, 2])].concat();
    let term = |variable: u32, value: i64| [words(&[variable]), element(value)].concat();
    let rows = [
        [words(&[1]), term(2, 1)].concat(),
        [words(&[1]), term(1, 1)].concat(),
        [words(&[1]), term(0, 6)].concat(),
        [words(&[2]), term(0, 5), term(2, 1)].concat(),
        [words(&[1]), term(0, 1)].concat(),
        [words(&[1]), term(0, 7)].concat(),
    ]
    .concat();
    let labels = words(&[0, 0, 1, 0, 2, 0]);
    let expected: [(u32, &[u8]); 3] = [(1, &header), (2, &rows), (3, &labels)];
    assert_eq!(sections(&bytes, "r1cs", 1), expected);
}

#[test]
fn an_assignment_is_written_as_a_wtns_file() {
    for mode in [Mode::Recording, Mode::Solving] {
        let bytes = iden3::wtns(&small(mode));
        let header = [field_header(), words(&[3])].concat();
        let values = [element(1), element(3), element(2)].concat();
        let expected: [(u32, &[u8]); 2] = [(1, &header), (2, &values)];
        assert_eq!(sections(&bytes, "wtns", 2), expected);
    }
}

#[test]
#[should_panic(expected = "solved, not recorded")]
fn a_solved_system_is_not_written_as_constraints() {
    iden3::r1cs(&small(Mode::Solving));
}

/// Reads a coordinate: a decimal string.
fn coordinate(value: &Value) -> Fq {
    value.as_str().unwrap().parse().unwrap()
}

fn pair(value: &Value) -> Fq2 {
    assert_eq!(value.as_array().unwrap().len(), 2);
    Fq2::new(coordinate(&value[0]), coordinate(&value[1]))
}

/// Reads a point and checks that it is on its curve.
fn g1(value: &Value) -> G1Affine {
    assert_eq!(value[2], "1");
    G1Affine::new(coordinate(&value[0]), coordinate(&value[1]))
}

fn g2(value: &Value) -> G2Affine {
    assert_eq!(value[2], serde_json::json!(["1", "0"]));
    G2Affine::new(pair(&value[0]), pair(&value[1]))
}

#[test]
fn key_proof_and_public_inputs_are_written_as_snarkjs_reads_them() {
    let (statement, witness) = common::World::new().ownership();
    let key = insecure_development_key(StatementKind::Ownership, &mut OsRng);
    let proof = prove(&key, &statement, &witness, &mut OsRng).unwrap();

    let json: Value =
        serde_json::from_str(&snarkjs::verification_key(key.verifying_key())).unwrap();
    let points = key.verifying_key().points();
    assert_eq!((&json["protocol"], &json["curve"]), (&"groth16".into(), &"bn128".into()));
    assert_eq!(json["nPublic"], 2);
    assert_eq!(g1(&json["vk_alpha_1"]), points.alpha_g1);
    assert_eq!(g2(&json["vk_beta_2"]), points.beta_g2);
    assert_eq!(g2(&json["vk_gamma_2"]), points.gamma_g2);
    assert_eq!(g2(&json["vk_delta_2"]), points.delta_g2);
    let inputs: Vec<G1Affine> = json["IC"].as_array().unwrap().iter().map(g1).collect();
    assert_eq!(inputs, points.gamma_abc_g1);

    let json: Value = serde_json::from_str(&snarkjs::proof(&proof)).unwrap();
    assert_eq!((&json["protocol"], &json["curve"]), (&"groth16".into(), &"bn128".into()));
    assert_eq!(g1(&json["pi_a"]), proof.points().a);
    assert_eq!(g2(&json["pi_b"]), proof.points().b);
    assert_eq!(g1(&json["pi_c"]), proof.points().c);

    let public = statement.public_inputs();
    let json: Value = serde_json::from_str(&snarkjs::public_inputs(&public)).unwrap();
    let found: Vec<Fr> =
        json.as_array().unwrap().iter().map(|x| x.as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(found, public);
}

#[test]
fn zero_and_minus_one_are_written_in_decimal() {
    let text = snarkjs::public_inputs(&[Fr::from(0), -Fr::ONE]);
    let minus_one = "21888242871839275222246405745257275088548364400416034343698204186575808495616";
    let expected = serde_json::json!(["0", minus_one]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}

#[test]
fn a_recorded_run_is_written_with_its_values() {
    let (statement, witness) = common::World::new().ownership();
    let system = run::<OwnershipCircuit>(Mode::Recording, &statement.public_inputs(), &witness);
    let r1cs = iden3::r1cs(&system);
    let constraints = sections(&r1cs, "r1cs", 1)[0].1;
    assert_eq!(constraints[constraints.len() - 4..], words(&[215]));
    let wtns = iden3::wtns(&system);
    let values = sections(&wtns, "wtns", 2)[1].1;
    assert_eq!(values.len(), 32 * 218);
    let public: Vec<u8> =
        statement.public_inputs().iter().flat_map(|x| x.into_bigint().to_bytes_le()).collect();
    assert_eq!(values[32..32 * 3], public);
}
