//! Fiat–Shamir: labelled, length-framed fields under SHA-512.
//!
//! A field is absorbed as one byte of label length, the label, eight bytes (little-endian) of
//! data length, the data. The domain is the first field. So no two lists of fields collide, and
//! any language with SHA-512 recomputes a challenge.

use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha512};

/// Collects what a challenge covers.
#[derive(Clone)]
pub struct Transcript(Sha512);

impl Transcript {
    /// Starts a transcript for one statement.
    pub fn new(domain: &str) -> Self {
        let mut transcript = Self(Sha512::new());
        transcript.field("domain", domain.as_bytes());
        transcript
    }

    /// Covers one field.
    pub fn field(&mut self, label: &str, data: &[u8]) -> &mut Self {
        self.begin(label, data.len());
        self.0.update(data);
        self
    }

    /// Covers a number.
    pub fn number(&mut self, label: &str, value: u64) -> &mut Self {
        self.field(label, &value.to_le_bytes())
    }

    /// Covers a list of encoded points.
    pub fn points(&mut self, label: &str, points: &[[u8; 32]]) -> &mut Self {
        self.field(label, points.as_flattened())
    }

    /// The 64 bytes of the hash.
    pub fn bytes(self) -> [u8; 64] {
        self.0.finalize().into()
    }

    /// A challenge modulo the order of ristretto255.
    pub fn scalar(self) -> Scalar {
        Scalar::from_bytes_mod_order_wide(&self.bytes())
    }

    /// A challenge of 128 bits, for proofs whose branches live in groups of different orders.
    pub fn challenge_128(self) -> u128 {
        let digest = self.bytes();
        let mut low = [0; 16];
        low.copy_from_slice(&digest[..16]);
        u128::from_le_bytes(low)
    }

    /// `count` weights of 128 bits: the i-th covers everything so far and i.
    pub fn weights(self, count: usize) -> Vec<Scalar> {
        let seed = self.bytes();
        (0..count as u64)
            .map(|index| {
                let mut weight = Self::new("anofel/1/committee/weight");
                weight.field("seed", &seed).number("index", index);
                Scalar::from(weight.challenge_128())
            })
            .collect()
    }

    fn begin(&mut self, label: &str, length: usize) {
        debug_assert!(label.len() < 256, "labels are short literals");
        self.0.update([label.len() as u8]);
        self.0.update(label);
        self.0.update((length as u64).to_le_bytes());
    }
}
