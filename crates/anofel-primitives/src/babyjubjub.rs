//! Points of Baby Jubjub in the coordinates of ERC-2494: 168700·x² + y² = 1 + 168696·x²·y².

use std::sync::OnceLock;

use ark_bn254::Fr;
use ark_ec::twisted_edwards::TECurveConfig;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, Field, PrimeField};
pub use taceo_ark_babyjubjub::{EdwardsAffine as Point, EdwardsConfig, Fr as Scalar};

use crate::field::{self, hash_to_field, FieldHash, FIELD_BYTES};
use crate::Error;

/// A point on the wire: x then y, each a canonical field element.
pub const POINT_BYTES: usize = 2 * FIELD_BYTES;

/// Reads x ‖ y; the result is on the curve and in the prime-order subgroup.
pub fn point_from_bytes(what: &'static str, bytes: &[u8]) -> Result<Point, Error> {
    if bytes.len() != POINT_BYTES {
        return Err(Error::Length { what, expected: POINT_BYTES, found: bytes.len() });
    }
    let x = field::from_bytes(what, &bytes[..FIELD_BYTES])?;
    let y = field::from_bytes(what, &bytes[FIELD_BYTES..])?;
    let point = Point::new_unchecked(x, y);
    if !point.is_on_curve() {
        return Err(Error::NotOnCurve { what });
    }
    if !point.is_in_correct_subgroup_assuming_on_curve() {
        return Err(Error::NotInSubgroup { what });
    }
    Ok(point)
}

/// Writes x ‖ y.
pub fn point_to_bytes(point: &Point) -> [u8; POINT_BYTES] {
    let mut bytes = [0; POINT_BYTES];
    bytes[..FIELD_BYTES].copy_from_slice(&field::to_bytes(&point.x));
    bytes[FIELD_BYTES..].copy_from_slice(&field::to_bytes(&point.y));
    bytes
}

/// B8: the generator of the prime-order subgroup that iden3's EdDSA uses.
pub fn base8() -> Point {
    EdwardsConfig::GENERATOR
}

/// G of the dataset type commitment; a nothing-up-my-sleeve point.
pub fn generator_g() -> Point {
    static POINT: OnceLock<Point> = OnceLock::new();
    *POINT.get_or_init(|| nothing_up_my_sleeve(b"G"))
}

/// H of the dataset type commitment; a nothing-up-my-sleeve point.
pub fn generator_h() -> Point {
    static POINT: OnceLock<Point> = OnceLock::new();
    *POINT.get_or_init(|| nothing_up_my_sleeve(b"H"))
}

/// F, where the circuit starts its variable-base multiplication; a nothing-up-my-sleeve point.
pub fn generator_f() -> Point {
    static POINT: OnceLock<Point> = OnceLock::new();
    *POINT.get_or_init(|| nothing_up_my_sleeve(b"F"))
}

/// The first counter 0, 1, … (one byte) for which y = hash_to_field(name ‖ counter) belongs to
/// a point; of its two x the even one; times the cofactor 8; not the neutral element.
fn nothing_up_my_sleeve(name: &[u8; 1]) -> Point {
    (0..=u8::MAX)
        .find_map(|counter| {
            let y: Fr = hash_to_field(FieldHash::Generator, &[name, &[counter]]);
            let y2 = y.square();
            let denominator = (EdwardsConfig::COEFF_A - EdwardsConfig::COEFF_D * y2).inverse()?;
            let x = ((Fr::ONE - y2) * denominator).sqrt()?;
            let x = if x.into_bigint().is_even() { x } else { -x };
            let point = Point::new_unchecked(x, y).mul_by_cofactor_to_group().into_affine();
            (!point.is_zero()).then_some(point)
        })
        .expect("each counter succeeds with probability one half; the tests pin the results")
}
