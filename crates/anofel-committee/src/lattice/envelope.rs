//! The envelope of a contribution: the proof of plaintext knowledge (D-10).
//!
//! R ‖ T ‖ z, a Schnorr proof for R = r·G with z·G = T + e·R. Knowing r is knowing every
//! plaintext, so this one proof is the proof of plaintext knowledge. The challenge e covers
//! genesis, domain, committee key, position in the bundle, scope, nullifier, tag, pk_sig, R and
//! the first message T.
//!
//! Many envelopes are checked by one equation with random weights w_i of 128 bits:
//! (Σ w_i·z_i)·G = Σ w_i·T_i + Σ w_i·e_i·R_i. If one of the equations is false, this one holds
//! with probability at most 2^-128, because the weights are drawn after the envelopes were given.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rand::{CryptoRng, Rng, RngCore};
use rayon::prelude::*;
use zeroize::Zeroize;

use super::contribution::Post;
use crate::error::check_length;
use crate::group::{
    base, decode_point, decode_real_point, decode_scalar, random_scalar, weighted_sum,
    ELEMENT_BYTES,
};
use crate::Error;

/// R ‖ T ‖ z.
pub const ENVELOPE_BYTES: usize = 3 * ELEMENT_BYTES;

/// Envelopes per parallel task: a few hundred microseconds.
const CHUNK: usize = 16;

const FAILED: Error = Error::Proof { what: "the proof of plaintext knowledge" };

pub(super) fn prove_plaintext_knowledge(
    post: &Post,
    r: &Scalar,
    rng: &mut (impl RngCore + CryptoRng),
) -> [u8; ENVELOPE_BYTES] {
    let mut nonce = random_scalar(rng);
    let public = base(r).compress().to_bytes();
    let first_message = base(&nonce).compress().to_bytes();
    let response = nonce + post.challenge(&public, &first_message) * r;
    nonce.zeroize();
    let mut envelope = [0; ENVELOPE_BYTES];
    for (part, bytes) in
        envelope.chunks_exact_mut(ELEMENT_BYTES).zip([public, first_message, response.to_bytes()])
    {
        part.copy_from_slice(&bytes);
    }
    envelope
}

/// A parsed envelope with its challenge; the equation is still to be checked.
struct Claim {
    r: RistrettoPoint,
    t: RistrettoPoint,
    z: Scalar,
    e: Scalar,
}

impl Claim {
    fn read(post: &Post, envelope: &[u8]) -> Result<Self, Error> {
        check_length("the envelope", ENVELOPE_BYTES, envelope.len())?;
        let (public, rest) = envelope.split_at(ELEMENT_BYTES);
        let (first_message, response) = rest.split_at(ELEMENT_BYTES);
        Ok(Self {
            r: decode_real_point("R", public)?,
            t: decode_point("the first message", first_message)?,
            z: decode_scalar("the response", response)?,
            e: post.challenge(public, first_message),
        })
    }

    /// z·G = T + e·R.
    fn holds(&self) -> bool {
        RistrettoPoint::vartime_double_scalar_mul_basepoint(&-self.e, &self.r, &self.z) == self.t
    }
}

/// Checks an envelope: encodings, and z·G = T + e·R. Returns R.
pub fn verify_envelope(post: &Post, envelope: &[u8]) -> Result<RistrettoPoint, Error> {
    let claim = Claim::read(post, envelope)?;
    if claim.holds() {
        Ok(claim.r)
    } else {
        Err(FAILED)
    }
}

/// Checks many envelopes at once and returns the bad ones by their place, in order.
pub fn refused_envelopes(
    envelopes: &[(&Post, &[u8])],
    rng: &mut (impl RngCore + CryptoRng),
) -> Vec<(usize, Error)> {
    let read: Vec<Result<Claim, Error>> = envelopes
        .par_iter()
        .with_min_len(CHUNK)
        .map(|(post, envelope)| Claim::read(post, envelope))
        .collect();
    let claims: Vec<&Claim> = read.iter().flatten().collect();
    let all_hold = hold_together(&claims, rng);
    read.into_par_iter()
        .with_min_len(CHUNK)
        .enumerate()
        .filter_map(|(index, claim)| match claim {
            Err(error) => Some((index, error)),
            Ok(claim) if all_hold || claim.holds() => None,
            Ok(_) => Some((index, FAILED)),
        })
        .collect()
}

/// Σ w_i·T_i + Σ w_i·e_i·R_i − (Σ w_i·z_i)·G = 0.
fn hold_together(claims: &[&Claim], rng: &mut (impl RngCore + CryptoRng)) -> bool {
    let weights: Vec<Scalar> = claims.iter().map(|_| Scalar::from(rng.gen::<u128>())).collect();
    let on_base: Scalar = claims.iter().zip(&weights).map(|(claim, w)| w * claim.z).sum();
    let (on_t, on_r) = rayon::join(
        || {
            let points: Vec<RistrettoPoint> = claims.iter().map(|claim| claim.t).collect();
            weighted_sum(&weights, &points)
        },
        || {
            let scalars = claims.iter().zip(&weights).map(|(claim, w)| w * claim.e);
            let scalars: Vec<Scalar> = scalars.chain([-on_base]).collect();
            let points = claims.iter().map(|claim| claim.r);
            let points: Vec<RistrettoPoint> = points.chain([RISTRETTO_BASEPOINT_POINT]).collect();
            weighted_sum(&scalars, &points)
        },
    );
    on_t + on_r == RistrettoPoint::identity()
}
