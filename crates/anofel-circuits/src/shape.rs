//! The shape of a statement: what must not change without new keys.

use anofel_primitives::field;
use sha2::{Digest, Sha256};

use crate::statements::StatementKind;
use crate::system::System;

/// Counts and digest of a statement's matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows.
    pub constraints: usize,
    /// Variables, the constant one and the public inputs included.
    pub variables: usize,
    /// Public inputs.
    pub public_inputs: usize,
    /// Entries that are not 0, in all three matrices.
    pub entries: usize,
    /// SHA-256 of the matrices.
    pub digest: [u8; 32],
}

impl Shape {
    /// The digest covers the three counts (8 bytes each) and then, row by row, the rows of A, B
    /// and C: their length (4 bytes) and their entries (variable, 4 bytes; coefficient, 32 bytes),
    /// all little-endian.
    pub fn of_system(system: &System) -> Self {
        let variables = system.assignment().len();
        let constraints = system.constraints();
        let mut sha = Sha256::new();
        for count in [constraints.len(), variables, system.num_public()] {
            sha.update((count as u64).to_le_bytes());
        }
        let mut entries = 0;
        for constraint in constraints {
            for row in [&constraint.a, &constraint.b, &constraint.c] {
                sha.update((row.len() as u32).to_le_bytes());
                entries += row.len();
                for (variable, coefficient) in row {
                    sha.update(variable.to_le_bytes());
                    sha.update(field::to_bytes(coefficient));
                }
            }
        }
        Self {
            constraints: constraints.len(),
            variables,
            public_inputs: system.num_public(),
            entries,
            digest: sha.finalize().into(),
        }
    }
}

/// The digests that keys of this version carry; the tests hold them against the constraints.
pub const fn pinned(kind: StatementKind) -> [u8; 32] {
    match kind {
        StatementKind::Ownership => {
            decode("44f03c824752ffabc359e3616a8bf96eb3515ce540129335758d818575e7c8a7")
        }
        StatementKind::Registration => {
            decode("8b4386cd92862993f21e0872a6d4429ef686917e7ffff93c49f9b68e770ccd9e")
        }
        StatementKind::Submission => {
            decode("2bd8bd66c94de4b8a4d6e48f1e66280d20b39755e34336c8f780eca88c6ae5fb")
        }
    }
}

/// Reads 64 hexadecimal digits.
const fn decode(text: &str) -> [u8; 32] {
    const fn digit(byte: u8) -> u8 {
        match byte {
            b'0'..=b'9' => byte - b'0',
            _ => byte - b'a' + 10,
        }
    }
    let text = text.as_bytes();
    let mut bytes = [0; 32];
    let mut i = 0;
    while i < 32 {
        bytes[i] = digit(text[2 * i]) << 4 | digit(text[2 * i + 1]);
        i += 1;
    }
    bytes
}
