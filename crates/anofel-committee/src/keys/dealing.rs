//! What a dealer publishes and sends: commitments to polynomials, and their values (Feldman).
//!
//! Per key: t commitments A_0 … A_{t−1} to the coefficients of f. The share for member i is
//! f(i), and f(i)·G = Σ A_k·i^k. All keys are checked at once with weights of 128 bits that
//! cover commitments and shares, so a wrong share passes with probability at most 2^-128.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::{Shape, ThresholdKeys};
use crate::group::{
    base, decode_points, decode_scalars, evaluate_commitment, weighted_sum, ELEMENT_BYTES,
};
use crate::transcript::Transcript;
use crate::Error;

/// The commitments of one dealer, for every key.
#[derive(Clone)]
pub struct Dealing {
    shape: Shape,
    commitments: Vec<RistrettoPoint>,
    encoded: Vec<u8>,
}

impl Dealing {
    /// Reads K·t points: for each key, lowest coefficient first.
    pub fn from_bytes(shape: Shape, bytes: &[u8]) -> Result<Self, Error> {
        let count = shape.num_keys * usize::from(shape.threshold);
        let commitments = decode_points("the dealer's commitments", count, bytes)?;
        Ok(Self { shape, commitments, encoded: bytes.to_vec() })
    }

    /// Bytes of a dealing.
    pub fn length(shape: Shape) -> usize {
        shape.num_keys * usize::from(shape.threshold) * ELEMENT_BYTES
    }

    /// The commitments to f(0), one per key, with their encodings.
    pub fn constants(&self) -> impl Iterator<Item = (RistrettoPoint, &[u8])> {
        let encoded = self.encoded.chunks_exact(ELEMENT_BYTES);
        self.commitments.iter().copied().zip(encoded).step_by(self.shape.threshold.into())
    }

    /// Checks the shares f(member), one per key, and returns them.
    pub fn check_shares(
        &self,
        member: u16,
        shares: &[u8],
    ) -> Result<Zeroizing<Vec<Scalar>>, Error> {
        self.shape.check_member(member)?;
        let scalars = decode_scalars("the dealt shares", self.shape.num_keys, shares)?;
        let mut transcript = Transcript::new("anofel/1/committee/dealt-shares");
        transcript
            .number("member", member.into())
            .field("commitments", &self.encoded)
            .field("shares", shares);
        let weights = transcript.weights(scalars.len());
        let expected = evaluate_commitment(&self.weighted(&weights), member);
        let sum: Zeroizing<Scalar> =
            Zeroizing::new(weights.iter().zip(scalars.iter()).map(|(w, share)| w * share).sum());
        if base(&sum) == expected {
            Ok(scalars)
        } else {
            Err(Error::Proof { what: "the match of the dealt shares with their commitments" })
        }
    }

    /// Σ over keys of weight·A_k, for each k.
    fn weighted(&self, weights: &[Scalar]) -> Vec<RistrettoPoint> {
        let threshold = usize::from(self.shape.threshold);
        (0..threshold)
            .into_par_iter()
            .map(|k| {
                let column: Vec<RistrettoPoint> =
                    self.commitments.iter().skip(k).step_by(threshold).copied().collect();
                weighted_sum(weights, &column)
            })
            .collect()
    }
}

/// The keys that the sum of several dealings makes.
pub fn summed_keys(shape: Shape, dealings: &[&Dealing]) -> ThresholdKeys {
    let threshold = usize::from(shape.threshold);
    let sums: Vec<RistrettoPoint> = (0..shape.num_keys * threshold)
        .map(|index| dealings.iter().map(|dealing| dealing.commitments[index]).sum())
        .collect();
    let rows = (0..=shape.num_members)
        .into_par_iter()
        .map(|at| sums.chunks_exact(threshold).map(|row| evaluate_commitment(row, at)).collect())
        .collect();
    ThresholdKeys::from_rows(shape, rows)
}
