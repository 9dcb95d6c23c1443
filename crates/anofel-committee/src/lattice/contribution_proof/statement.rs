//! What is proven, and the transcript that covers it.

use curve25519_dalek::ristretto::RistrettoPoint;
use rayon::prelude::*;

use super::bounds::{Bounds, SECRET_SQUARED};
use crate::count::CIPHERTEXT_BYTES;
use crate::group::ELEMENT_BYTES;
use crate::lattice::codec::Codec;
use crate::lattice::contribution::Post;
use crate::ring::{self, Polynomial};
use crate::transcript::Transcript;

/// The public polynomials of an iteration, as values; the same for all its posts.
pub struct Matrix {
    pub(super) seed: [u8; 32],
    blocks: Vec<Box<Polynomial>>,
}

impl Matrix {
    /// Expands all of them.
    pub fn new(seed: [u8; 32], num_blocks: usize) -> Self {
        let blocks = (0..num_blocks).into_par_iter();
        Self { seed, blocks: blocks.map(|k| ring::expand_public(&seed, k as u64)).collect() }
    }

    /// a_k.
    pub(in crate::lattice) fn block(&self, k: usize) -> &Polynomial {
        &self.blocks[k]
    }
}

/// A payload, its post, its committee and its encrypted bit.
pub struct Statement<'a> {
    /// The widths, whose bounds are those of the proof.
    pub codec: &'a Codec,
    /// β₀ and β₁ of the codec.
    pub bounds: Bounds,
    /// Everything that the post is bound to; its key id names pk.
    pub post: &'a Post,
    /// pk_0 … pk_{N−1}.
    pub keys: &'a [RistrettoPoint],
    /// Y.
    pub count_key: RistrettoPoint,
    /// U ‖ V.
    pub bit: &'a [u8; CIPHERTEXT_BYTES],
    /// R.
    pub r: &'a [u8; ELEMENT_BYTES],
    /// C_0 … C_{N−1}.
    pub wrapped: &'a [u8],
    /// The packed words.
    pub packed: &'a [u8],
}

impl Statement<'_> {
    /// Covers every field and the salt.
    pub(super) fn transcript(&self, salt: &[u8; 32]) -> Transcript {
        let (post, codec) = (self.post, self.codec);
        let mut transcript = Transcript::new("anofel/1/committee/lattice/contribution");
        transcript
            .field("genesis", &post.genesis)
            .field("task", &post.task)
            .number("iteration", post.iteration)
            .field("committee key", &post.key_id)
            .number("position", post.position.into())
            .field("scope", &post.scope)
            .field("nullifier", &post.nullifier)
            .field("tag", &post.tag)
            .field("pk_sig", &post.pk_sig)
            .number("length", codec.length() as u64)
            .number("bound", codec.bound())
            .number("sum bits", codec.sum_bits().into())
            .number("wire bits", codec.wire_bits().into())
            .number("norm", self.bounds.norm())
            .field("bound of a zero", &self.bounds.zero_squared.to_le_bytes())
            .field("bound of a one", &self.bounds.one_squared.to_le_bytes())
            .field("bound of the secret", &SECRET_SQUARED.to_le_bytes());
        codec.intervals().iter().for_each(|interval| interval.cover(&mut transcript));
        transcript
            .field("count key", self.count_key.compress().as_bytes())
            .field("encrypted bit", self.bit)
            .field("R", self.r)
            .field("wrapped secret", self.wrapped)
            .field("words", self.packed)
            .field("salt", salt);
        transcript
    }
}
