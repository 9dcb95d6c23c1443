//! Challenges: ChaCha12 under the first 32 bytes of the transcript's hash, one key for each use.

use curve25519_dalek::scalar::Scalar;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::{DRAWN_COLUMNS, RANGE_ROWS, RELATIONS, ROWS, ROW_BYTES};
use crate::ring::{DEGREE, MODULUS, MODULUS_BITS};
use crate::transcript::Transcript;

/// A key that covers everything so far.
#[derive(Clone, Copy)]
pub(super) struct Seed([u8; 32]);

/// ρ¹, ρ², ρ³.
pub(super) type Relations = [[u64; ROWS]; RELATIONS];

impl Seed {
    pub(super) fn new(transcript: &Transcript, use_of_it: &str) -> Self {
        let mut transcript = transcript.clone();
        transcript.field("challenge", use_of_it.as_bytes());
        let mut seed = [0; 32];
        seed.copy_from_slice(&transcript.bytes()[..32]);
        Self(seed)
    }

    fn generator(&self) -> ChaCha12Rng {
        ChaCha12Rng::from_seed(self.0)
    }

    /// Columns of T for block k, from stream k: 32 rows of N plus bytes, then as many minus bytes.
    ///
    /// Bit i mod 8 of byte ⌊i/8⌋ belongs to row i; an entry of T is its plus bit less its minus bit.
    pub(super) fn columns(&self, k: usize, buffer: &mut [u8]) {
        debug_assert_eq!(buffer.len(), 2 * ROW_BYTES * DEGREE);
        let mut generator = self.generator();
        generator.set_stream(k as u64);
        generator.fill_bytes(buffer);
    }

    /// Uniform numbers below q: eight bytes at a time, the low 46 bits, those not below q skipped.
    pub(super) fn relations(&self) -> Relations {
        let mut generator = self.generator();
        let mut relations = [[0; ROWS]; RELATIONS];
        for number in relations.as_flattened_mut() {
            *number = loop {
                let candidate = generator.next_u64() & ((1 << MODULUS_BITS) - 1);
                if candidate < MODULUS {
                    break candidate;
                }
            };
        }
        relations
    }

    /// Weights of 128 bits.
    pub(super) fn weights(&self, count: usize) -> Vec<Scalar> {
        let mut generator = self.generator();
        (0..count)
            .map(|_| {
                let mut bytes = [0; 16];
                generator.fill_bytes(&mut bytes);
                Scalar::from(u128::from_le_bytes(bytes))
            })
            .collect()
    }

    /// M: for each row 68 bytes, whose bits are its columns, lowest first; what is beyond the last is not used.
    pub(super) fn range_rows(&self) -> Vec<[bool; DRAWN_COLUMNS]> {
        let mut generator = self.generator();
        (0..RANGE_ROWS)
            .map(|_| {
                let mut bytes = [0; DRAWN_COLUMNS / 8];
                generator.fill_bytes(&mut bytes);
                std::array::from_fn(|column| bytes[column / 8] >> (column % 8) & 1 == 1)
            })
            .collect()
    }
}
