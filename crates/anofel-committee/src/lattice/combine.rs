//! Opening a sum (step 8): t shares give Σs, Σs gives the mask, and the rest is decoding.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use super::contribution::{product, transform};
use super::contribution_proof::MAX_SECRET;
use super::logarithm::small_logarithms;
use super::share::VerifiedShare;
use super::sum::EncryptedSum;
use crate::group::{lagrange, multiply_small, weighted_sum};
use crate::ring::{expand_public, CBD_WIDTH, DEGREE};
use crate::Error;

/// The exact sum of the vectors, from at least t shares; `seed` is that of the public polynomials.
pub fn combine(
    total: &EncryptedSum,
    seed: &[u8; 32],
    threshold: u16,
    shares: &[&VerifiedShare],
) -> Result<Vec<i64>, Error> {
    let shares = chosen(threshold, shares)?;
    let largest = if total.codec.bounds().is_some() { MAX_SECRET } else { CBD_WIDTH };
    let limit = largest * i64::from(total.num_posts);
    let secret = small_logarithms(&open(total, &shares), limit)?;
    unmask(total, seed, &secret)
}

/// The t shares of the lowest members, each of another member.
fn chosen<'a>(
    threshold: u16,
    shares: &[&'a VerifiedShare],
) -> Result<Vec<&'a VerifiedShare>, Error> {
    let mut shares = shares.to_vec();
    shares.sort_by_key(|share| share.member);
    if shares.windows(2).any(|pair| pair[0].member == pair[1].member) {
        return Err(Error::Members { what: "a member's share was given twice" });
    }
    if shares.len() < threshold.into() {
        return Err(Error::Members { what: "fewer than t shares were given" });
    }
    shares.truncate(threshold.into());
    Ok(shares)
}

/// ΣC_j − Σ λ_i·D_ij = (Σ s_j)·G for every j.
fn open(total: &EncryptedSum, shares: &[&VerifiedShare]) -> Vec<RistrettoPoint> {
    let members: Vec<u16> = shares.iter().map(|share| share.member).collect();
    let weights: Vec<Scalar> =
        members.iter().map(|&member| -lagrange(&members, member, 0)).collect();
    let small: Option<Vec<SmallWeight>> = weights.iter().map(SmallWeight::of).collect();
    total
        .wrapped
        .par_iter()
        .with_min_len(16)
        .enumerate()
        .map(|(j, wrapped)| {
            let points = shares.iter().map(|share| share.points[j]);
            match &small {
                Some(weights) => weights
                    .iter()
                    .zip(points)
                    .fold(*wrapped, |sum, (weight, point)| sum + weight.times(&point)),
                None => wrapped + weighted_sum(&weights, &points.collect::<Vec<_>>()),
            }
        })
        .collect()
}

/// A weight that is a small integer, as those of neighbouring members are: a few additions instead
/// of a multiplication. All values are public.
struct SmallWeight {
    negative: bool,
    magnitude: u16,
}

impl SmallWeight {
    fn of(weight: &Scalar) -> Option<Self> {
        [(false, *weight), (true, -weight)].into_iter().find_map(|(negative, scalar)| {
            let bytes = scalar.as_bytes();
            let is_small = bytes[2..].iter().all(|&byte| byte == 0);
            is_small.then(|| Self { negative, magnitude: u16::from_le_bytes([bytes[0], bytes[1]]) })
        })
    }

    fn times(&self, point: &RistrettoPoint) -> RistrettoPoint {
        let product = multiply_small(point, self.magnitude);
        if self.negative {
            -product
        } else {
            product
        }
    }
}

fn unmask(total: &EncryptedSum, seed: &[u8; 32], secret: &[i64]) -> Result<Vec<i64>, Error> {
    let transformed = transform(secret);
    let mut decoded = vec![0; total.words.len()];
    decoded
        .par_chunks_exact_mut(DEGREE)
        .zip(total.words.par_chunks_exact(DEGREE))
        .enumerate()
        .try_for_each(|(block, (decoded, words))| {
            let mut mask = Box::new([0; DEGREE]);
            let public = expand_public(seed, block as u64);
            product(&public, &transformed, &mut mask);
            total.codec.decode(block, words, mask.as_slice(), total.num_posts, decoded)
        })?;
    decoded.truncate(total.codec.length());
    Ok(decoded)
}
