//! ristretto255: encodings, batches, and the polynomials behind threshold keys.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, VartimeMultiscalarMul};
use rand::{CryptoRng, RngCore};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::error::check_length;
use crate::Error;

/// An encoded point or scalar.
pub const ELEMENT_BYTES: usize = 32;

/// Work per parallel task: a few hundred microseconds of curve arithmetic.
const CHUNK: usize = 64;

/// Reads a point; only the canonical encoding is accepted.
pub fn decode_point(what: &'static str, bytes: &[u8]) -> Result<RistrettoPoint, Error> {
    check_length(what, ELEMENT_BYTES, bytes.len())?;
    CompressedRistretto::from_slice(bytes)
        .ok()
        .and_then(|encoded| encoded.decompress())
        .ok_or(Error::NotCanonical { what, index: 0 })
}

/// Reads a point that is not the neutral element.
pub fn decode_real_point(what: &'static str, bytes: &[u8]) -> Result<RistrettoPoint, Error> {
    let point = decode_point(what, bytes)?;
    if point == RistrettoPoint::identity() {
        return Err(Error::Neutral { what });
    }
    Ok(point)
}

/// Reads a list of points, in parallel.
pub fn decode_points(
    what: &'static str,
    count: usize,
    bytes: &[u8],
) -> Result<Vec<RistrettoPoint>, Error> {
    check_length(what, count * ELEMENT_BYTES, bytes.len())?;
    bytes
        .par_chunks_exact(ELEMENT_BYTES)
        .with_min_len(CHUNK)
        .enumerate()
        .map(|(index, encoded)| {
            CompressedRistretto::from_slice(encoded)
                .ok()
                .and_then(|point| point.decompress())
                .ok_or(Error::NotCanonical { what, index })
        })
        .collect()
}

/// Reads a scalar below the group order.
pub fn decode_scalar(what: &'static str, bytes: &[u8]) -> Result<Scalar, Error> {
    let bytes: [u8; ELEMENT_BYTES] = bytes.try_into().map_err(|_| Error::Length {
        what,
        expected: ELEMENT_BYTES,
        found: bytes.len(),
    })?;
    Option::from(Scalar::from_canonical_bytes(bytes)).ok_or(Error::NotCanonical { what, index: 0 })
}

/// Reads a list of secret scalars.
pub fn decode_scalars(
    what: &'static str,
    count: usize,
    bytes: &[u8],
) -> Result<Zeroizing<Vec<Scalar>>, Error> {
    check_length(what, count * ELEMENT_BYTES, bytes.len())?;
    // A vector that grows leaves copies behind, so the room is made first.
    let mut scalars = Zeroizing::new(Vec::with_capacity(count));
    for (index, encoded) in bytes.chunks_exact(ELEMENT_BYTES).enumerate() {
        let scalar = decode_scalar(what, encoded);
        scalars.push(scalar.map_err(|_| Error::NotCanonical { what, index })?);
    }
    Ok(scalars)
}

/// Encodes a list of secret scalars.
pub fn encode_scalars(scalars: impl ExactSizeIterator<Item = Scalar>) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(scalars.len() * ELEMENT_BYTES));
    scalars.for_each(|scalar| bytes.extend_from_slice(scalar.as_bytes()));
    bytes
}

/// Encodes points one by one, in parallel.
pub fn encode_points(points: &[RistrettoPoint]) -> Vec<[u8; ELEMENT_BYTES]> {
    points.par_iter().with_min_len(CHUNK).map(|point| point.compress().to_bytes()).collect()
}

/// Encodes the doubles of points with shared inversions: several times faster than one by one.
pub fn encode_doubles(halves: &[RistrettoPoint]) -> Vec<[u8; ELEMENT_BYTES]> {
    halves
        .par_chunks(8 * CHUNK)
        .flat_map_iter(|chunk| {
            RistrettoPoint::double_and_compress_batch(chunk)
                .into_iter()
                .map(|encoded| encoded.to_bytes())
        })
        .collect()
}

/// Half of a scalar, for [`encode_doubles`].
pub fn half(scalar: &Scalar) -> Scalar {
    scalar * Scalar::from(2u8).invert()
}

/// scalar·G in constant time.
pub fn base(scalar: &Scalar) -> RistrettoPoint {
    RISTRETTO_BASEPOINT_TABLE * scalar
}

/// A uniform scalar.
pub fn random_scalar(rng: &mut (impl RngCore + CryptoRng)) -> Scalar {
    Scalar::random(rng)
}

/// Σ weight·point over public values.
pub fn weighted_sum(weights: &[Scalar], points: &[RistrettoPoint]) -> RistrettoPoint {
    RistrettoPoint::vartime_multiscalar_mul(weights, points)
}

/// A signed small integer as a scalar.
pub fn small_scalar(value: i64) -> Scalar {
    let magnitude = Scalar::from(value.unsigned_abs());
    if value < 0 {
        -magnitude
    } else {
        magnitude
    }
}

/// λ_i(x): the weight of f(i) in f(x), where f is interpolated at the given members.
pub fn lagrange(members: &[u16], member: u16, at: u16) -> Scalar {
    let at = Scalar::from(u64::from(at));
    let own = Scalar::from(u64::from(member));
    let (numerator, denominator) = members
        .iter()
        .filter(|&&other| other != member)
        .map(|&other| Scalar::from(u64::from(other)))
        .fold((Scalar::ONE, Scalar::ONE), |(numerator, denominator), other| {
            (numerator * (at - other), denominator * (own - other))
        });
    numerator * denominator.invert()
}

/// f(x) for a polynomial given by its coefficients, lowest first.
pub fn evaluate(coefficients: &[Scalar], at: u16) -> Scalar {
    let at = Scalar::from(u64::from(at));
    coefficients.iter().rev().fold(Scalar::ZERO, |value, coefficient| value * at + coefficient)
}

/// f(x)·G for a polynomial given by commitments to its coefficients, lowest first.
pub fn evaluate_commitment(commitments: &[RistrettoPoint], at: u16) -> RistrettoPoint {
    // Horner with a 16-bit multiplier is a handful of additions; the values are public.
    commitments.iter().rev().fold(RistrettoPoint::identity(), |value, commitment| {
        multiply_small(&value, at) + commitment
    })
}

/// factor·point for a small public factor.
pub fn multiply_small(point: &RistrettoPoint, factor: u16) -> RistrettoPoint {
    let mut result = RistrettoPoint::identity();
    for bit in (0..u16::BITS - factor.leading_zeros()).rev() {
        result = result + result;
        if factor >> bit & 1 == 1 {
            result += point;
        }
    }
    result
}
