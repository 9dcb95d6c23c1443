//! A client's contribution: the mask and the wrapped secret.
//!
//! Payload: the packed words of the vector, then C_0 … C_{N−1}. The proof of plaintext knowledge
//! stands in the envelope ([`super::envelope`]).

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rand::{CryptoRng, RngCore};
use rayon::prelude::*;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::codec::Codec;
use super::envelope::{prove_plaintext_knowledge, ENVELOPE_BYTES};
use crate::error::check_length;
use crate::group::{
    base, decode_points, decode_real_point, encode_doubles, half, random_scalar, small_scalar,
    ELEMENT_BYTES,
};
use crate::random::{seeds, with_generator};
use crate::ring::{self, Multiplier, Polynomial, CBD_WIDTH, DEGREE};
use crate::transcript::Transcript;
use crate::Error;

/// C_0 … C_{N−1}.
pub const WRAPPED_KEY_BYTES: usize = DEGREE * ELEMENT_BYTES;

/// Everything that a post is bound to.
#[derive(Debug, Clone)]
pub struct Post {
    /// The board.
    pub genesis: [u8; 32],
    /// The task, for the public polynomials.
    pub task: [u8; 32],
    /// The task's iteration, for the public polynomials.
    pub iteration: u64,
    /// The committee's key.
    pub key_id: [u8; 32],
    /// The committee's place in the bundle.
    pub position: u16,
    /// H(genesis, bundle, iteration).
    pub scope: [u8; 32],
    /// The iteration nullifier.
    pub nullifier: [u8; 32],
    /// The tag.
    pub tag: [u8; 32],
    /// The post's signing key.
    pub pk_sig: [u8; 32],
}

impl Post {
    /// The challenge of the proof of plaintext knowledge.
    pub(super) fn challenge(&self, r: &[u8], first_message: &[u8]) -> Scalar {
        let mut transcript = Transcript::new("anofel/1/committee/lattice/plaintext-knowledge");
        transcript
            .field("genesis", &self.genesis)
            .field("committee key", &self.key_id)
            .number("position", self.position.into())
            .field("scope", &self.scope)
            .field("nullifier", &self.nullifier)
            .field("tag", &self.tag)
            .field("pk_sig", &self.pk_sig)
            .field("R", r)
            .field("first message", first_message);
        transcript.scalar()
    }

    /// The seed of the public polynomials a_k: H(genesis, task, iteration, committee key).
    pub fn public_seed(&self) -> [u8; 32] {
        public_seed(&self.genesis, &self.task, self.iteration, &self.key_id)
    }
}

/// The seed of the public polynomials a_k: H(genesis, task, iteration, committee key).
pub fn public_seed(genesis: &[u8], task: &[u8], iteration: u64, key_id: &[u8]) -> [u8; 32] {
    let mut transcript = Transcript::new("anofel/1/committee/lattice/public");
    transcript
        .field("genesis", genesis)
        .field("task", task)
        .number("iteration", iteration)
        .field("committee key", key_id);
    let mut seed = [0; 32];
    seed.copy_from_slice(&transcript.bytes()[..32]);
    seed
}

/// Everything of a contribution that does not depend on the update (kept; used once).
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Prepared {
    #[zeroize(skip)]
    codec: Codec,
    masks: Vec<u64>,
    #[zeroize(skip)]
    envelope: [u8; ENVELOPE_BYTES],
    #[zeroize(skip)]
    wrapped: Vec<[u8; ELEMENT_BYTES]>,
}

impl Prepared {
    /// Draws s, e and r; makes masks a·s + e, the wrapped secret and its proof.
    pub fn new(
        codec: Codec,
        post: &Post,
        keys: &[RistrettoPoint],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Self {
        let secret: Zeroizing<Vec<i64>> =
            Zeroizing::new((0..DEGREE).map(|_| ring::centred_binomial(rng)).collect());
        let r = Zeroizing::new(random_scalar(rng));
        let envelope = prove_plaintext_knowledge(post, &r, rng);
        let wrapped = wrap(keys, &r, &secret);
        let masks = masks(&codec, &post.public_seed(), &secret, rng);
        Self { codec, masks, envelope, wrapped }
    }

    /// R ‖ T ‖ z.
    pub fn envelope(&self) -> &[u8; ENVELOPE_BYTES] {
        &self.envelope
    }

    /// The codec it was prepared for.
    pub fn codec(&self) -> &Codec {
        &self.codec
    }

    /// Encodes, masks, switches and packs the update, and appends the wrapped secret.
    pub fn seal(self, values: &[i64]) -> Result<Vec<u8>, Error> {
        self.codec.check(values)?;
        let mut payload = vec![0; self.codec.packed_bytes() + WRAPPED_KEY_BYTES];
        let (packed, wrapped) = payload.split_at_mut(self.codec.packed_bytes());
        self.codec.seal(&self.masks, values, packed);
        wrapped.copy_from_slice(self.wrapped.as_flattened());
        Ok(payload)
    }
}

/// C_j = r·pk_j + s_j·G; halves are computed, so that the encodings share inversions.
fn wrap(keys: &[RistrettoPoint], r: &Scalar, secret: &[i64]) -> Vec<[u8; ELEMENT_BYTES]> {
    let half_r = Zeroizing::new(half(r));
    let table: Vec<RistrettoPoint> =
        (-CBD_WIDTH..=CBD_WIDTH).map(|value| base(&half(&small_scalar(value)))).collect();
    let halves: Vec<RistrettoPoint> = keys
        .par_iter()
        .with_min_len(16)
        .zip(secret)
        .map(|(key, &coefficient)| key * *half_r + select(&table, coefficient))
        .collect();
    encode_doubles(&halves)
}

/// The table's entry for a coefficient, found without a branch or an address that depends on it.
fn select(table: &[RistrettoPoint], coefficient: i64) -> RistrettoPoint {
    let wanted = (coefficient + CBD_WIDTH) as u64;
    let mut found = RistrettoPoint::identity();
    for (index, entry) in table.iter().enumerate() {
        found.conditional_assign(entry, (index as u64).ct_eq(&wanted));
    }
    found
}

/// a_k·s + e_k for every block k, as coefficients.
fn masks(
    codec: &Codec,
    seed: &[u8; 32],
    secret: &[i64],
    rng: &mut (impl RngCore + CryptoRng),
) -> Vec<u64> {
    let transformed = transform(secret);
    let noise = seeds(codec.num_blocks(), rng);
    let mut masks = vec![0; codec.num_blocks() * DEGREE];
    let (blocks, _) = masks.as_chunks_mut();
    blocks.par_iter_mut().zip(noise.as_slice()).enumerate().for_each(|(k, (mask, noise))| {
        product(seed, k as u64, &transformed, mask);
        with_generator(noise, |noise| {
            for value in mask {
                *value = ring::add(*value, ring::residue(ring::centred_binomial(noise)));
            }
        });
    });
    masks
}

/// A secret polynomial, transformed once for all blocks.
pub(super) fn transform(secret: &[i64]) -> Zeroizing<Vec<Multiplier>> {
    let mut values = Box::new([0; DEGREE]);
    for (value, coefficient) in values.iter_mut().zip(secret) {
        *value = ring::residue(*coefficient);
    }
    ring::forward(&mut values);
    let multipliers = values.iter().map(|&value| Multiplier::new(value)).collect();
    values.zeroize();
    Zeroizing::new(multipliers)
}

/// a_k·s as coefficients, made where the mask will be: without noise, a copy would give s away.
pub(super) fn product(seed: &[u8; 32], k: u64, secret: &[Multiplier], mask: &mut Polynomial) {
    let public = ring::expand_public(seed, k);
    for ((value, a), factor) in mask.iter_mut().zip(public.iter()).zip(secret) {
        *value = factor.times(*a);
    }
    ring::inverse(mask);
}

/// A payload whose every part was parsed, ready to be added.
pub struct Checked {
    pub(super) codec: Codec,
    pub(super) packed: Vec<u8>,
    pub(super) r: RistrettoPoint,
    pub(super) wrapped: Vec<RistrettoPoint>,
}

impl Checked {
    /// Parses a payload: exact length and canonical points. R comes from the checked envelope.
    pub fn new(codec: Codec, r: &[u8], payload: &[u8]) -> Result<Self, Error> {
        let packed_bytes = codec.packed_bytes();
        check_length("the payload", packed_bytes + WRAPPED_KEY_BYTES, payload.len())?;
        let (packed, wrapped) = payload.split_at(packed_bytes);
        let wrapped = decode_points("the wrapped secret", DEGREE, wrapped)?;
        let r = decode_real_point("R", r)?;
        Ok(Self { codec, packed: packed.to_vec(), r, wrapped })
    }
}
