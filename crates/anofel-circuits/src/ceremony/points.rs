//! Points in files and hashes.
//!
//! In files a point is its affine coordinates, little-endian in Montgomery form (times 2^256); in
//! hashes they are big-endian and not in Montgomery form, the second component of an element of
//! Fq2 first. The neutral element is all zeros in both. A point is read only if its coordinates are
//! canonical and it lies on its curve and in its subgroup.

use anofel_primitives::Fr;
use ark_bn254::{g1, g2, Bn254, Fq, Fq2, G1Affine, G2Affine};
use ark_ec::pairing::Pairing;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup, VariableBaseMSM};
use ark_ff::{BigInt, BigInteger, Field, PrimeField};
use rand::rngs::OsRng;
use rand::RngCore;
use rayon::prelude::*;

use super::error::Error;

/// A curve whose points stand in files.
pub trait Curve: SWCurveConfig<ScalarField = Fr> {
    /// Bytes of a point.
    const BYTES: usize;
    /// Writes a coordinate as it stands in a file.
    fn write_coordinate(x: &Self::BaseField, bytes: &mut Vec<u8>);
    /// Reads it; nothing if it is not canonical.
    fn read_coordinate(bytes: &[u8]) -> Option<Self::BaseField>;
    /// Writes a coordinate as it is hashed.
    fn hash_coordinate(x: &Self::BaseField, bytes: &mut Vec<u8>);
}

impl Curve for g1::Config {
    const BYTES: usize = 64;

    fn write_coordinate(x: &Fq, bytes: &mut Vec<u8>) {
        bytes.extend(x.0 .0.iter().flat_map(|limb| limb.to_le_bytes()));
    }

    fn read_coordinate(bytes: &[u8]) -> Option<Fq> {
        let (limbs, _) = bytes.as_chunks::<8>();
        let value = BigInt(std::array::from_fn(|i| u64::from_le_bytes(limbs[i])));
        (value < Fq::MODULUS).then(|| Fq::new_unchecked(value))
    }

    fn hash_coordinate(x: &Fq, bytes: &mut Vec<u8>) {
        bytes.extend(x.into_bigint().to_bytes_be());
    }
}

impl Curve for g2::Config {
    const BYTES: usize = 128;

    fn write_coordinate(x: &Fq2, bytes: &mut Vec<u8>) {
        g1::Config::write_coordinate(&x.c0, bytes);
        g1::Config::write_coordinate(&x.c1, bytes);
    }

    fn read_coordinate(bytes: &[u8]) -> Option<Fq2> {
        let (c0, c1) = bytes.split_at(32);
        Some(Fq2::new(g1::Config::read_coordinate(c0)?, g1::Config::read_coordinate(c1)?))
    }

    fn hash_coordinate(x: &Fq2, bytes: &mut Vec<u8>) {
        g1::Config::hash_coordinate(&x.c1, bytes);
        g1::Config::hash_coordinate(&x.c0, bytes);
    }
}

/// Writes points one after the other.
pub fn write<C: Curve>(points: &[Affine<C>], bytes: &mut Vec<u8>) {
    for point in points {
        match point.xy() {
            None => bytes.resize(bytes.len() + C::BYTES, 0),
            Some((x, y)) => {
                C::write_coordinate(&x, bytes);
                C::write_coordinate(&y, bytes);
            }
        }
    }
}

/// The bytes of points.
pub fn to_bytes<C: Curve>(points: &[Affine<C>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(points.len() * C::BYTES);
    write(points, &mut bytes);
    bytes
}

/// Reads one point; `place` names it to people.
pub fn read<C: Curve>(bytes: &[u8], place: &'static str) -> Result<Affine<C>, Error> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(Affine::identity());
    }
    let (x, y) = bytes.split_at(C::BYTES / 2);
    let coordinates = C::read_coordinate(x).zip(C::read_coordinate(y));
    let (x, y) = coordinates.ok_or(Error::NotCanonical(place))?;
    let point = Affine::new_unchecked(x, y);
    if !point.is_on_curve() {
        return Err(Error::NotOnCurve(place));
    }
    if !point.is_in_correct_subgroup_assuming_on_curve() {
        return Err(Error::NotInSubgroup(place));
    }
    Ok(point)
}

/// Reads one point that is not the neutral element.
pub fn read_one<C: Curve>(bytes: &[u8], place: &'static str) -> Result<Affine<C>, Error> {
    let point = read(bytes, place)?;
    if point.is_zero() {
        return Err(Error::Neutral(place));
    }
    Ok(point)
}

/// Reads points one after the other, on all cores.
pub fn read_all<C: Curve>(bytes: &[u8], place: &'static str) -> Result<Vec<Affine<C>>, Error> {
    bytes.par_chunks_exact(C::BYTES).map(|bytes| read(bytes, place)).collect()
}

/// Reads points of which none is the neutral element.
pub fn read_powers<C: Curve>(bytes: &[u8], place: &'static str) -> Result<Vec<Affine<C>>, Error> {
    bytes.par_chunks_exact(C::BYTES).map(|bytes| read_one(bytes, place)).collect()
}

/// The bytes of a point as it is hashed.
pub fn hashed<C: Curve>(point: &Affine<C>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(C::BYTES);
    match point.xy() {
        None => bytes.resize(C::BYTES, 0),
        Some((x, y)) => {
            C::hash_coordinate(&x, &mut bytes);
            C::hash_coordinate(&y, &mut bytes);
        }
    }
    bytes
}

/// Whether `ax` is to `a` what `dx` is to `d`: e(a, dx) = e(ax, d), none of them neutral.
pub fn same_ratio(a: G1Affine, ax: G1Affine, d: G2Affine, dx: G2Affine) -> bool {
    if a.is_zero() || ax.is_zero() || d.is_zero() || dx.is_zero() {
        return false;
    }
    Bn254::multi_pairing([a, -ax], [dx, d]).0 == Field::ONE
}

/// Factors of 128 bits from the operating system, for random combinations.
pub fn factors(count: usize) -> Vec<Fr> {
    let half = || u128::from(OsRng.next_u64());
    (0..count).map(|_| Fr::from(half() << 64 | half())).collect()
}

/// Σ factor·point.
pub fn combine<C: Curve>(
    points: &[Affine<C>],
    factors: &[Fr],
) -> ark_ec::short_weierstrass::Projective<C> {
    VariableBaseMSM::msm_unchecked(points, factors)
}

/// Every point times its factor.
pub fn scale<C: Curve>(points: &[Affine<C>], factors: &[Fr]) -> Vec<Affine<C>> {
    let scaled: Vec<_> = points.par_iter().zip(factors).map(|(p, x)| *p * x).collect();
    CurveGroup::normalize_batch(&scaled)
}
