//! A client's contribution: the mask and the wrapped secret.
//!
//! Payload: the packed words of the vector, C_0 … C_{N−1}, and the contribution proof
//! ([`super::contribution_proof`]) unless the task does without. The proof of plaintext knowledge stands
//! in the envelope ([`super::envelope`]).

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rand::{CryptoRng, RngCore};
use rayon::prelude::*;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::codec::Codec;
use super::contribution_proof::{self, Claim, EncryptedBit, Matrix, Statement, Witness};
use super::envelope::{prove_plaintext_knowledge, ENVELOPE_BYTES};
use crate::count::CIPHERTEXT_BYTES;
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
    opening: Option<Opening>,
}

/// What the contribution proof needs of a preparation (kept).
#[derive(Zeroize, ZeroizeOnDrop)]
struct Opening {
    secret: Vec<i64>,
    r: Scalar,
    errors: Vec<i8>,
    bit: EncryptedBit,
    #[zeroize(skip)]
    post: Post,
    #[zeroize(skip)]
    keys: Vec<RistrettoPoint>,
    #[zeroize(skip)]
    count_key: RistrettoPoint,
    #[zeroize(skip)]
    matrix: Matrix,
}

impl Prepared {
    /// Draws s, e and r; makes masks a·s + e, the wrapped secret and its proof.
    ///
    /// `keys` are those of the coefficients and of the count. A codec with bounds needs the ballot's
    /// bit for this committee, and its proof is bound to it.
    pub fn new(
        codec: Codec,
        post: &Post,
        keys: &[RistrettoPoint],
        bit: Option<EncryptedBit>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Self, Error> {
        let (coefficients, count_key) = split_keys(keys)?;
        if codec.bounds().is_some() && bit.is_none() {
            return Err(Error::Members { what: "a proven contribution needs the ballot's bit" });
        }
        let secret: Zeroizing<Vec<i64>> =
            Zeroizing::new((0..DEGREE).map(|_| ring::centred_binomial(rng)).collect());
        let r = Zeroizing::new(random_scalar(rng));
        let envelope = prove_plaintext_knowledge(post, &r, rng);
        let wrapped = wrap(coefficients, &r, &secret);
        let matrix = Matrix::new(post.public_seed(), codec.num_blocks());
        let (masks, errors) = masks(&codec, &matrix, &secret, rng);
        let opening = codec.bounds().and(bit).map(|bit| Opening {
            secret: secret.to_vec(),
            r: *r,
            errors: errors.to_vec(),
            bit,
            post: post.clone(),
            keys: coefficients.to_vec(),
            count_key: *count_key,
            matrix,
        });
        Ok(Self { codec, masks, envelope, wrapped, opening })
    }

    /// R ‖ T ‖ z.
    pub fn envelope(&self) -> &[u8; ENVELOPE_BYTES] {
        &self.envelope
    }

    /// The codec it was prepared for.
    pub fn codec(&self) -> &Codec {
        &self.codec
    }

    /// Encodes, masks, switches and packs the update; appends the wrapped secret and the proof.
    ///
    /// Where contributions are proven, the vector is zero unless the ballot's bit is 1.
    pub fn seal(
        self,
        values: &[i64],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Vec<u8>, Error> {
        self.codec.check(values)?;
        let packed_bytes = self.codec.packed_bytes();
        let mut payload = vec![0; packed_bytes + WRAPPED_KEY_BYTES];
        let (packed, wrapped) = payload.split_at_mut(packed_bytes);
        self.codec.seal(&self.masks, values, packed);
        wrapped.copy_from_slice(self.wrapped.as_flattened());
        if let Some((opening, bounds)) = self.opening.as_ref().zip(self.codec.bounds()) {
            let mut r = [0; ELEMENT_BYTES];
            r.copy_from_slice(&self.envelope[..ELEMENT_BYTES]);
            let statement = Statement {
                codec: &self.codec,
                bounds,
                post: &opening.post,
                keys: &opening.keys,
                count_key: opening.count_key,
                bit: &opening.bit.ciphertext,
                r: &r,
                wrapped,
                packed,
            };
            let witness = Witness {
                secret: opening.secret.clone(),
                r: opening.r,
                k: opening.bit.k,
                one: opening.bit.one,
                y: self.added(packed, &opening.errors),
            };
            let proof = contribution_proof::prove(&statement, &opening.matrix, &witness, rng)?;
            payload.extend_from_slice(&proof);
        }
        Ok(payload)
    }

    /// y = [c̃ − a·s]_q, centred, where a·s is the mask without its error.
    fn added(&self, packed: &[u8], errors: &[i8]) -> Vec<i64> {
        let mut y = vec![0; self.masks.len()];
        y.par_chunks_exact_mut(DEGREE)
            .zip(packed.par_chunks_exact(self.codec.block_bytes()))
            .zip(self.masks.par_chunks_exact(DEGREE).zip(errors.par_chunks_exact(DEGREE)))
            .for_each(|((y, packed), (masks, errors))| {
                let mut lifted = Zeroizing::new(vec![0; DEGREE]);
                self.codec.lift_block(packed, &mut lifted);
                for ((y, lifted), (mask, error)) in
                    y.iter_mut().zip(lifted.iter()).zip(masks.iter().zip(errors))
                {
                    let added =
                        ring::add(ring::subtract(*lifted, *mask), ring::residue(i64::from(*error)));
                    *y = ring::centred(added);
                }
            });
        y
    }
}

/// The keys of the coefficients, and that of the count.
fn split_keys(keys: &[RistrettoPoint]) -> Result<(&[RistrettoPoint], &RistrettoPoint), Error> {
    let few = Error::Members { what: "the committee has too few keys" };
    let (coefficients, rest) = keys.split_at_checked(DEGREE).ok_or(few.clone())?;
    Ok((coefficients, rest.first().ok_or(few)?))
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

/// a_k·s + e_k for every block k, as coefficients, and e.
fn masks(
    codec: &Codec,
    matrix: &Matrix,
    secret: &[i64],
    rng: &mut (impl RngCore + CryptoRng),
) -> (Vec<u64>, Zeroizing<Vec<i8>>) {
    let transformed = transform(secret);
    let noise = seeds(codec.num_blocks(), rng);
    let mut masks = vec![0; codec.num_blocks() * DEGREE];
    let mut errors = Zeroizing::new(vec![0; codec.num_blocks() * DEGREE]);
    let (blocks, _) = masks.as_chunks_mut();
    blocks
        .par_iter_mut()
        .zip(errors.par_chunks_exact_mut(DEGREE))
        .zip(noise.as_slice())
        .enumerate()
        .for_each(|(k, ((mask, errors), noise))| {
            product(matrix.block(k), &transformed, mask);
            with_generator(noise, |noise| {
                for (value, error) in mask.iter_mut().zip(errors) {
                    let drawn = ring::centred_binomial(noise);
                    *value = ring::add(*value, ring::residue(drawn));
                    *error = drawn as i8;
                }
            });
        });
    (masks, errors)
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
pub(super) fn product(public: &Polynomial, secret: &[Multiplier], mask: &mut Polynomial) {
    for ((value, a), factor) in mask.iter_mut().zip(public.iter()).zip(secret) {
        *value = factor.times(*a);
    }
    ring::inverse(mask);
}

/// A payload whose every part was parsed, ready to be added once its proof was checked.
pub struct Checked {
    pub(super) codec: Codec,
    pub(super) packed: Vec<u8>,
    pub(super) r: RistrettoPoint,
    pub(super) wrapped: Vec<RistrettoPoint>,
    /// Whether nothing is left to be proven.
    pub(super) proven: bool,
}

/// One payload with what its proof is bound to.
pub struct Submitted<'a> {
    /// Everything that the post is bound to.
    pub post: &'a Post,
    /// R ‖ T ‖ z, which was checked.
    pub envelope: &'a [u8],
    /// U ‖ V for this committee, from a ballot that was checked; not read without a proof.
    pub bit: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
}

impl Checked {
    /// Parses a payload: exact length and canonical points. R comes from the checked envelope.
    fn parse(codec: Codec, r: &[u8], payload: &[u8]) -> Result<Self, Error> {
        check_length("the payload", codec.payload_bytes(), payload.len())?;
        let (packed, rest) = payload.split_at(codec.packed_bytes());
        let wrapped = &rest[..WRAPPED_KEY_BYTES];
        let wrapped = decode_points("the wrapped secret", DEGREE, wrapped)?;
        let r = decode_real_point("R", r)?;
        let proven = codec.bounds().is_none();
        Ok(Self { codec, packed: packed.to_vec(), r, wrapped, proven })
    }

    /// Parses payloads of one committee and iteration and checks their proofs together.
    ///
    /// What is returned for a payload does not depend on the others.
    pub fn all(
        codec: &Codec,
        keys: &[RistrettoPoint],
        submitted: &[Submitted<'_>],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Vec<Result<Self, Error>> {
        let mut parsed: Vec<Result<Self, Error>> = submitted
            .par_iter()
            .map(|one| {
                let r = &one.envelope[..one.envelope.len().min(ELEMENT_BYTES)];
                Self::parse(codec.clone(), r, one.payload)
            })
            .collect();
        let (Some(bounds), Some(first)) = (codec.bounds(), submitted.first()) else {
            return parsed;
        };
        let (coefficients, count_key) = match split_keys(keys) {
            Ok(keys) => keys,
            Err(error) => return submitted.iter().map(|_| Err(error.clone())).collect(),
        };
        let matrix = Matrix::new(first.post.public_seed(), codec.num_blocks());
        let (mut places, mut claims) = (Vec::new(), Vec::new());
        let mut malformed = Vec::new();
        for (place, (one, checked)) in submitted.iter().zip(&parsed).enumerate() {
            let Ok(checked) = checked else { continue };
            let Ok(bit) = one.bit.try_into() else {
                malformed.push(place);
                continue;
            };
            let r = one.envelope.first_chunk().expect("R was parsed, so it is there");
            let (packed, rest) = one.payload.split_at(codec.packed_bytes());
            let (wrapped, proof) = rest.split_at(WRAPPED_KEY_BYTES);
            let statement = Statement {
                codec,
                bounds,
                post: one.post,
                keys: coefficients,
                count_key: *count_key,
                bit,
                r,
                wrapped,
                packed,
            };
            places.push(place);
            claims.push(Claim { statement, wrapped: &checked.wrapped, proof });
        }
        let refused = contribution_proof::refused(&claims, &matrix, rng);
        drop(claims);
        for place in malformed {
            let found = submitted[place].bit.len();
            let what = "the encrypted bit";
            parsed[place] = Err(Error::Length { what, expected: CIPHERTEXT_BYTES, found });
        }
        for (index, error) in refused {
            parsed[places[index]] = Err(error);
        }
        parsed.iter_mut().flatten().for_each(|checked| checked.proven = true);
        parsed
    }
}
