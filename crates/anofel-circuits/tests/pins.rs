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
    assert_eq!((bytes.len(), tables.len()), (36_211, 958_431), "{found:?}");
    assert_eq!(
        found,
        [
            "a2412afddc82a8122884f404670dab8924810ff0a7e26b3db3ea390a1a97d7c6",
            "11b41b4cde6ea5b949c08d0b9acfd1021c8bf6cc71e8b634942420f72d15f1c7",
            "f7fe8c3fead0866320ec4415471fd29be73b7579258f15b6768e46f13f29339e",
        ]
    );
    assert_eq!(PROOF_BYTES, 128);
}
