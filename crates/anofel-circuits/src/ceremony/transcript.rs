//! One digest for a whole ceremony.

use sha2::{Digest, Sha256};

use super::zkey::Zkey;
use crate::shape;
use crate::statements::StatementKind;

/// SHA-256 over `anofel/1/ceremony`, the BLAKE2b-512 of the powers of tau and, for each statement:
/// its number (1 byte), the shape (32), the circuit hash (64), the number of contributions (4), and of
/// each its hash (64), its type (4), and the length (4) and bytes of its parameters. Integers are
/// little-endian.
///
/// It fixes the keys: the hash of a contribution covers δ after it, and the powers, the constraints
/// and δ leave no choice for any other point.
pub fn digest(powers: &[u8; 64], keys: &[(StatementKind, &Zkey)]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"anofel/1/ceremony");
    hash.update(powers);
    for (kind, key) in keys {
        hash.update([*kind as u8]);
        hash.update(shape::pinned(*kind));
        hash.update(key.circuit_hash);
        hash.update((key.contributions.len() as u32).to_le_bytes());
        for contribution in &key.contributions {
            hash.update(contribution.hash());
            hash.update(contribution.kind.to_le_bytes());
            hash.update((contribution.parameters.len() as u32).to_le_bytes());
            hash.update(&contribution.parameters);
        }
    }
    hash.finalize().into()
}
