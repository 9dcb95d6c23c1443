//! Z_q[X]/(X^N + 1) with N = 2048 and q = 70368744067073.
//!
//! q is the largest prime below 2^46 with q ≡ 1 (mod 2N), so products of polynomials are
//! number-theoretic transforms, and two lazy additions still fit a machine word.

mod ntt;
mod sample;

pub use ntt::{forward, inverse, root_of_unity, Multiplier};
pub use sample::{centred_binomial, expand_public, CBD_WIDTH};

/// N: coefficients per polynomial.
pub const DEGREE: usize = 2048;

/// q: the modulus.
pub const MODULUS: u64 = 70_368_744_067_073;

/// ⌈log2 q⌉.
pub const MODULUS_BITS: u32 = 46;

/// One polynomial: N residues below q.
pub type Polynomial = [u64; DEGREE];

/// a + b mod q for residues.
#[inline]
pub fn add(a: u64, b: u64) -> u64 {
    reduce_once(a + b)
}

/// a − b mod q for residues.
#[inline]
pub fn subtract(a: u64, b: u64) -> u64 {
    reduce_once(a + MODULUS - b)
}

/// The residue of a number below 2q, without a branch: for a < q the subtraction wraps and is the larger.
#[inline]
pub fn reduce_once(a: u64) -> u64 {
    a.min(a.wrapping_sub(MODULUS))
}

/// The residue of a small signed number, without a branch.
#[inline]
pub fn residue(value: i64) -> u64 {
    debug_assert!(value.unsigned_abs() < MODULUS);
    (value + (MODULUS as i64 & (value >> 63))) as u64
}
