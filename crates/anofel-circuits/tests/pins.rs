//! What must not move without a new key and a new version.
#![allow(clippy::unwrap_used)]

mod common;

use anofel_circuits::groth16::key::id_of;
use anofel_circuits::groth16::proof::PROOF_BYTES;
use anofel_circuits::groth16::setup::insecure_development_key;
use anofel_circuits::shape::{pinned, Shape};
use anofel_circuits::statements::StatementKind;
use rand::SeedableRng;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn shapes_are_pinned() {
    let found = StatementKind::ALL.map(|kind| {
        let shape = Shape::of_system(&kind.record());
        assert_eq!(shape.digest, pinned(kind), "{}: {}", kind.name(), hex(&shape.digest));
        (shape.constraints, shape.variables, shape.public_inputs, shape.entries)
    });
    assert_eq!(found, [(215, 218, 2, 6019), (6256, 6287, 6, 114510), (4435, 4490, 7, 112144)]);
}

#[test]
fn key_ids_and_lengths_are_pinned() {
    // Seeded, so that the same key comes out every time; no key in use is made this way.
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(1);
    let key = insecure_development_key(StatementKind::Ownership, &mut rng);
    let bytes = key.to_bytes();
    assert_eq!(bytes.len(), 958_431);
    assert_eq!(
        hex(&id_of(&bytes)),
        "98463d0015884661d3527613c3dce48f6b2275b38d4b8c6db74e1dae40ab24b7"
    );
    assert_eq!(
        hex(&key.verifying_key().id()),
        "7d93a6f8bd501e4305c5900b087f5a30429723f71f674d0e2fe86786745406ad"
    );
    assert_eq!(PROOF_BYTES, 128);
}
