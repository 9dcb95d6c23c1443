//! One proof that many points share their logarithms pairwise: X_j = x_j·G and D_j = x_j·B.
//!
//! 1. Weights τ_j of 128 bits cover the statement: context, B, every X_j and every D_j.
//! 2. With x = Σ τ_j x_j, X = Σ τ_j X_j and D = Σ τ_j D_j, one Chaum–Pedersen proof shows
//!    X = x·G and D = x·B: first message (k·G, k·B), challenge e, response z = k + e·x.
//! 3. The verifier recomputes both first messages, z·G − e·X and z·B − e·D, and then e.
//!
//! A D_j that differs from x_j·B survives step 1 with probability at most 2^-128.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rand::{CryptoRng, RngCore};
use zeroize::Zeroize;

use crate::error::check_length;
use crate::group::{base, decode_scalar, random_scalar, weighted_sum, ELEMENT_BYTES};
use crate::transcript::Transcript;
use crate::Error;

/// e ‖ z.
pub const PROOF_BYTES: usize = 2 * ELEMENT_BYTES;

/// What is proven: D_j = x_j·B for the x_j behind X_j. Points come with their encodings.
pub struct Statement<'a> {
    /// What the proof is bound to.
    pub context: &'a [u8],
    /// B.
    pub base: &'a RistrettoPoint,
    /// X_j.
    pub keys: &'a [RistrettoPoint],
    /// X_j, encoded.
    pub encoded_keys: &'a [[u8; 32]],
    /// D_j.
    pub shares: &'a [RistrettoPoint],
    /// D_j, encoded.
    pub encoded_shares: &'a [[u8; 32]],
}

impl Statement<'_> {
    fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::new("anofel/1/committee/equality");
        transcript
            .field("context", self.context)
            .field("base", self.base.compress().as_bytes())
            .points("keys", self.encoded_keys)
            .points("shares", self.encoded_shares);
        transcript
    }

    fn combined(&self, weights: &[Scalar]) -> (RistrettoPoint, RistrettoPoint) {
        rayon::join(|| weighted_sum(weights, self.keys), || weighted_sum(weights, self.shares))
    }

    /// z·G − e·X and z·B − e·D.
    fn first_messages(
        &self,
        weights: &[Scalar],
        e: &Scalar,
        z: &Scalar,
    ) -> (RistrettoPoint, RistrettoPoint) {
        let (keys, shares) = self.combined(weights);
        let on_g = RistrettoPoint::vartime_double_scalar_mul_basepoint(&-e, &keys, z);
        (on_g, weighted_sum(&[*z, -e], &[*self.base, shares]))
    }

    /// Proves the statement with the secrets x_j.
    pub fn prove(
        &self,
        secrets: &[Scalar],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> [u8; PROOF_BYTES] {
        let transcript = self.transcript();
        let weights = transcript.clone().weights(secrets.len());
        let mut secret: Scalar = weights.iter().zip(secrets).map(|(weight, x)| weight * x).sum();
        let mut nonce = random_scalar(rng);
        let challenge = challenge(transcript, &base(&nonce), &(self.base * nonce));
        let response = respond(&nonce, &challenge, &secret);
        secret.zeroize();
        nonce.zeroize();
        let mut proof = [0; PROOF_BYTES];
        proof[..ELEMENT_BYTES].copy_from_slice(challenge.as_bytes());
        proof[ELEMENT_BYTES..].copy_from_slice(response.as_bytes());
        proof
    }

    /// Checks a proof.
    pub fn verify(&self, proof: &[u8]) -> Result<(), Error> {
        check_length("the equality proof", PROOF_BYTES, proof.len())?;
        let e = decode_scalar("the challenge", &proof[..ELEMENT_BYTES])?;
        let z = decode_scalar("the response", &proof[ELEMENT_BYTES..])?;
        let transcript = self.transcript();
        let weights = transcript.clone().weights(self.keys.len());
        let (first, second) = self.first_messages(&weights, &e, &z);
        if challenge(transcript, &first, &second) == e {
            Ok(())
        } else {
            Err(Error::Proof { what: "the equality of logarithms" })
        }
    }
}

/// z = k + e·x.
fn respond(nonce: &Scalar, challenge: &Scalar, secret: &Scalar) -> Scalar {
    nonce + challenge * secret
}

fn challenge(
    mut transcript: Transcript,
    first: &RistrettoPoint,
    second: &RistrettoPoint,
) -> Scalar {
    transcript
        .field("first message on G", first.compress().as_bytes())
        .field("first message on B", second.compress().as_bytes());
    transcript.scalar()
}

#[cfg(test)]
#[path = "equality_tests.rs"]
mod tests;
