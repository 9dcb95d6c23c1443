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
    let tables = key.to_tables();
    let found = [hex(&id_of(&bytes)), hex(&id_of(&tables)), hex(&key.verifying_key().id())];
    assert_eq!((bytes.len(), tables.len()), (31_571, 938_147), "{found:?}");
    assert_eq!(
        found,
        [
            "6075c92bd40834b208d8692956b9f31e6e48b0e001222c391a6e463c24a2048a",
            "17aa999af136ac60a70edfe335f21231ff4fcb02cdc29cd8cee689022f273794",
            "f02103fc0dc8dc5e3be13f72ba17cc7d2157b977e18985996baf8744e6df6da1",
        ]
    );
    assert_eq!(PROOF_BYTES, 128);
}
