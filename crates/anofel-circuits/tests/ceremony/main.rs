//! A ceremony for the small ownership statement, and everything that is refused, each for its own reason.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../examples/bench_proofs/insecure_powers.rs"]
mod insecure_powers;
mod phase1;
mod refused;

use std::sync::OnceLock;

use anofel_circuits::ceremony::first::Circuit;
use anofel_circuits::ceremony::powers::{self, Powers};
use anofel_circuits::ceremony::verify::{
    check_chain, check_end, check_together, statement_beacon, BEACON_EXPONENT,
};
use anofel_circuits::ceremony::zkey::Zkey;
use anofel_circuits::ceremony::{convert, transcript, Error};
use anofel_circuits::groth16::key::{id_of, Origin, ProvingKey, VerifyingKey};
use anofel_circuits::groth16::prover;
use anofel_circuits::groth16::verifier::Verifier;
use anofel_circuits::statements::{Statement, StatementKind};
use insecure_powers::insecure_powers_of_tau;
use rand::rngs::OsRng;

const BEACON: &[u8] = b"announced long before";
const KIND: StatementKind = StatementKind::Ownership;

/// A ceremony of three people, made once for all tests.
struct Ceremony {
    file: Vec<u8>,
    powers: Powers,
    circuit: Circuit,
    first: Zkey,
    /// After each contribution; the last state is the end.
    states: Vec<Zkey>,
}

impl Ceremony {
    fn last(&self) -> &Zkey {
        self.states.last().unwrap()
    }
}

fn ceremony() -> &'static Ceremony {
    static MADE: OnceLock<Ceremony> = OnceLock::new();
    MADE.get_or_init(|| {
        let file = insecure_powers_of_tau(8);
        let powers = Powers::read(&file).unwrap();
        let circuit = Circuit::new(KIND);
        let lagrange = powers.lagrange(&file, circuit.power()).unwrap();
        let first = circuit.first_key(&powers, &lagrange).unwrap();
        let mut key = first.clone();
        let mut states = Vec::new();
        for name in ["Clinic A", "Clinic B", "Clinic C"] {
            key.contribute(name).unwrap();
            states.push(key.clone());
        }
        key.add_beacon(&statement_beacon(KIND, BEACON), BEACON_EXPONENT, "beacon").unwrap();
        states.push(key);
        Ceremony { file, powers, circuit, first, states }
    })
}

/// Everything that a verifier does with a finished file.
fn verify(bytes: &[u8]) -> Result<Zkey, Error> {
    let made = ceremony();
    let key = Zkey::read(bytes)?;
    made.circuit.expect(&key)?;
    check_chain(&made.first, &key)?;
    check_end(KIND, &key, BEACON)?;
    Ok(key)
}

#[test]
fn a_ceremony_makes_a_key_that_proves() {
    let made = ceremony();
    made.circuit.check_first(&made.first, &made.powers).unwrap();
    let key = verify(&made.last().to_bytes()).unwrap();
    let digest = transcript::digest(&powers::digest(&made.file), &[(KIND, &key)]);
    let proving = convert::proving_key(&made.circuit, &key, digest);
    let bytes = proving.to_bytes();
    let proving = ProvingKey::from_bytes(KIND, &bytes, &id_of(&bytes)).unwrap();
    assert_eq!(proving.verifying_key().origin(), Origin::Ceremony { transcript: digest });
    assert_eq!(proving.verifying_key().points(), &convert::verifying_points(&key));
    let verifying = convert::verifying_key(&made.circuit, &key, digest);
    assert_eq!(&verifying, proving.verifying_key());
    let again = VerifyingKey::from_bytes(KIND, &verifying.to_bytes()).unwrap();
    assert_eq!(again.origin().describe(), "ceremony (claimed)");
    let (statement, witness) = common::World::new().ownership();
    let proof = prover::prove(&proving, &statement, &witness, &mut OsRng).unwrap();
    Verifier::new(again).verify(&statement.public_inputs(), &proof).unwrap();
}

#[test]
fn files_are_read_as_they_were_written() {
    for key in &ceremony().states {
        let bytes = key.to_bytes();
        assert!(Zkey::read(&bytes).unwrap() == *key);
        assert_eq!(Zkey::read(&bytes).unwrap().to_bytes(), bytes);
    }
}

#[test]
fn computed_lagrange_points_are_those_of_the_file() {
    let made = ceremony();
    let found = made.powers.lagrange(&made.file, 8).unwrap();
    let mut bare = Vec::new(); // the same file without sections 12 to 15
    refused::rewrite(&made.file, "ptau", |sections| {
        sections.retain(|(number, _)| *number < 12);
        bare = refused::join("ptau", sections);
    });
    let computed = made.powers.lagrange(&bare, 8).unwrap();
    assert_eq!(found.tau_g1, computed.tau_g1);
    assert_eq!(found.tau_g2, computed.tau_g2);
    assert_eq!(found.alpha_g1, computed.alpha_g1);
    assert_eq!(found.beta_g1, computed.beta_g1);
}

#[test]
fn the_digest_covers_every_contribution_and_its_parameters() {
    let made = ceremony();
    let of = |key: &Zkey| transcript::digest(&powers::digest(&made.file), &[(KIND, key)]);
    let whole = of(made.last());
    let mut renamed = made.last().clone();
    renamed.contributions[0].parameters = vec![1, 3, b'e', b'v', b'e'];
    verify(&renamed.to_bytes()).unwrap(); // no proof covers a name
    for other in [&made.states[2], &made.states[1], &renamed] {
        assert_ne!(of(other), whole);
    }
    assert_ne!(transcript::digest(&[0; 64], &[(KIND, made.last())]), whole);
    let kind = StatementKind::Submission;
    assert_ne!(transcript::digest(&powers::digest(&made.file), &[(kind, made.last())]), whole);
}

#[test]
fn keys_of_one_ceremony_share_no_secret() {
    let made = ceremony();
    let other = StatementKind::Registration;
    let (a, b) = (KIND.name(), other.name());
    // A second ceremony of the same circuit stands in for another statement.
    let mut second = made.first.clone();
    second.contribute("Clinic A").unwrap();
    check_together(&[(KIND, &made.states[0]), (other, &second)]).unwrap();
    let same = check_together(&[(KIND, &made.states[0]), (other, &made.states[0])]);
    assert_eq!(same.unwrap_err(), Error::SameSecret(1, a, b));
    let fewer = check_together(&[(KIND, &made.states[1]), (other, &second)]);
    assert_eq!(fewer.unwrap_err(), Error::DifferentCounts(a, b));
    // The same x with another s, and −x.
    let x = refused::known_scalar();
    for (left, right) in [(x, x), (x, -x)] {
        let [one, two] = [left, right].map(|x| refused::contribute_known(&made.first, x));
        check_chain(&made.first, &two).unwrap();
        let tied = check_together(&[(KIND, &one), (other, &two)]);
        assert_eq!(tied.unwrap_err(), Error::SameSecret(1, a, b));
    }
    // Different x at every step, and yet the same δ: x·y and y·x.
    let y = x + x + x;
    let one = refused::contribute_known(&refused::contribute_known(&made.first, x), y);
    let two = refused::contribute_known(&refused::contribute_known(&made.first, y), x);
    let tied = check_together(&[(KIND, &one), (other, &two)]);
    assert_eq!(tied.unwrap_err(), Error::SameDelta(a, b));
    let two = refused::contribute_known(&refused::contribute_known(&made.first, -y), x);
    let tied = check_together(&[(KIND, &one), (other, &two)]);
    assert_eq!(tied.unwrap_err(), Error::SameDelta(a, b));
}
