//! The two bounds of a task, in integers, so that every machine proves and checks the same.
//!
//! 1. B₀² = d·((q/2^w)²/12 + 16.2)·(1 + √(45/d)): rounding and errors of d = N·blocks values, 7.5
//!    deviations above their mean.
//! 2. B₁ = (q/2^b)·B + B₀.
//! 3. β_b = 15·B_b and β_w² = 225·40,068; what passes has at most 2.85 times the norm.

use crate::ring::{DEGREE, MODULUS};

/// ‖s‖² of an honest secret is at most this (mean 32,768, 7.2 deviations).
const SECRET_NORM_SQUARED: u128 = 40_068;

/// (β/B)²: a projected norm exceeds 15 times the norm with probability below 2^−35.
const SPREAD: u128 = 225;

/// β_w².
pub(super) const SECRET_SQUARED: u128 = SPREAD * SECRET_NORM_SQUARED;

/// No coefficient of a proven secret is larger: 2.85·√40,068 < 573.
pub const MAX_SECRET: i64 = 573;

/// Fractional bits of the variance of one value.
const FRACTION: u32 = 16;

/// ⌈16.2·2^16⌉: variances of e, of μ's rounding and of the lift.
const ERROR_VARIANCE: u128 = 1_061_684;

/// β₀² and β₁² of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub(super) norm: u64,
    pub(super) zero_squared: u128,
    pub(super) one_squared: u128,
}

/// ⌈√value⌉.
pub(super) fn root_above(value: u128) -> u128 {
    let root = value.isqrt();
    root + u128::from(root * root < value)
}

/// ⌈2.85·value⌉: what may pass for `value`.
pub(in crate::lattice) fn slack(value: u128) -> u128 {
    (57 * value).div_ceil(20)
}

/// B' = B and what B₀ adds to it, in units of the vector, rounded up.
pub(in crate::lattice) fn norm_with_rounding(norm: u64, guard_bits: u32, blocks: usize) -> u128 {
    let root = root_above((blocks * DEGREE) as u128);
    u128::from(norm) + (root >> (guard_bits + 1)) + 1
}

impl Bounds {
    /// The bounds for vectors of norm `norm` in so many blocks, with b and w bits.
    pub fn new(norm: u64, sum_bits: u32, wire_bits: u32, blocks: usize) -> Self {
        let count = (blocks * DEGREE) as u128;
        let square = u128::from(MODULUS) * u128::from(MODULUS);
        let rounding = (square << FRACTION).div_ceil(12 << (2 * wire_bits));
        let effective = count + root_above(45 * count);
        let noise_squared = ((rounding + ERROR_VARIANCE) * effective).div_ceil(1 << FRACTION);
        let signal = (u128::from(MODULUS) * u128::from(norm)).div_ceil(1 << sum_bits);
        let one = signal + root_above(noise_squared);
        Self { norm, zero_squared: SPREAD * noise_squared, one_squared: SPREAD * one * one }
    }

    /// B.
    pub fn norm(&self) -> u64 {
        self.norm
    }

    /// 23·B₁ ≤ q, which the lemma needs (2.85·B₁ ≤ q/8); rule 7 of the codec sees to it.
    #[cfg(test)]
    pub(super) fn fit(&self) -> bool {
        23 * 23 * (self.one_squared / SPREAD) <= u128::from(MODULUS) * u128::from(MODULUS)
    }
}
