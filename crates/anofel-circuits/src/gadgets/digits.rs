//! Scalars as digits, and integers as bits.
//!
//! A fixed-base multiplication reads its scalar as odd digits: each window of three bits
//! t ∈ {0 … 7} stands for u = 2t − 7 ∈ {±1, ±3, ±5, ±7}. With n windows,
//! Σ u_i·8^i = 2·Σ t_i·8^i − (8^n − 1), so the odd sum determines the scalar and, because no
//! digit is 0, the additions of the multiplication never meet their exceptional cases.

use anofel_primitives::Fr;
use ark_ff::{AdditiveGroup, BigInteger, BigInteger256, Field, PrimeField};

use crate::system::{Lc, System};

/// Bits in a window.
pub const WINDOW_BITS: usize = 3;

/// An odd digit u with the powers of w = u² that a table look-up needs.
#[derive(Debug, Clone)]
pub struct OddDigit {
    /// u.
    pub digit: Lc,
    /// w = u², w², w³ for u ∈ {±1, ±3, ±5, ±7}; only w for u ∈ {±1, ±3}.
    pub powers: Vec<Lc>,
}

impl OddDigit {
    /// u ∈ {±1, ±3, ±5, ±7}, from t ∈ {0 … 7}. Three constraints and one for w³.
    pub fn of_three_bits(system: &mut System, t: u64) -> Self {
        let digit = system.variable(Fr::from(2 * (t & 7)) - Fr::from(7u64));
        let w = system.product(&digit, &digit);
        let w2 = system.product(&w, &w);
        // (w − 1)(w − 49) · (w − 9)(w − 25) = 0
        let outer = polynomial(system, &[49, -50], &[&w]).plus(&w2);
        let inner = polynomial(system, &[225, -34], &[&w]).plus(&w2);
        let zero = system.constant(Fr::ZERO);
        system.enforce(&outer, &inner, &zero);
        let w3 = system.product(&w2, &w);
        Self { digit, powers: vec![w, w2, w3] }
    }

    /// u ∈ {±1, ±3}, from t ∈ {0 … 3}. Two constraints.
    pub fn of_two_bits(system: &mut System, t: u64) -> Self {
        let digit = system.variable(Fr::from(2 * (t & 3)) - Fr::from(3u64));
        let w = system.product(&digit, &digit);
        // (w − 1)(w − 9) = 0
        let low = polynomial(system, &[-1, 1], &[&w]);
        let high = polynomial(system, &[-9, 1], &[&w]);
        let zero = system.constant(Fr::ZERO);
        system.enforce(&low, &high, &zero);
        Self { digit, powers: vec![w] }
    }
}

/// The odd digits of an integer in windows of three bits, lowest first.
pub fn odd_digits(system: &mut System, integer: &BigInteger256, count: usize) -> Vec<OddDigit> {
    (0..count)
        .map(|window| {
            let bit = |i: usize| u64::from(integer.get_bit(WINDOW_BITS * window + i)) << i;
            OddDigit::of_three_bits(system, bit(0) | bit(1) | bit(2))
        })
        .collect()
}

/// c_0 + c_1·x_1 + c_2·x_2 + …
fn polynomial(system: &System, coefficients: &[i64], powers: &[&Lc]) -> Lc {
    let one = system.constant(Fr::ONE);
    Lc::sum(
        coefficients
            .iter()
            .map(|c| Fr::from(*c))
            .zip(std::iter::once(&one).chain(powers.iter().copied())),
    )
}

/// The integer Σ t_i·8^i behind odd digits, lowest first and every
/// window of three bits but for a last one of two.
pub fn integer(system: &System, digits: &[OddDigit]) -> Lc {
    let half = Fr::from(2u64).inverse().expect("2 is not 0 in the field");
    let mut power = half;
    let mut parts = Vec::with_capacity(digits.len());
    let mut offset = Fr::ZERO;
    for odd in digits {
        parts.push((power, &odd.digit));
        let largest = if odd.powers.len() == 1 { 3u64 } else { 7 };
        offset += power * Fr::from(largest);
        power *= Fr::from(8u64);
    }
    Lc::sum(parts).plus(&system.constant(offset))
}

/// Enforces 0 ≤ value < 2^bits, one constraint for each bit and one for their sum.
pub fn enforce_bits(system: &mut System, value: &Lc, bits: usize) {
    let integer = value.value().into_bigint();
    let mut parts = Vec::with_capacity(bits);
    let mut power = Fr::ONE;
    for position in 0..bits {
        let bit = system.variable(Fr::from(integer.get_bit(position)));
        let complement = system.constant(Fr::ONE).minus(&bit);
        let zero = system.constant(Fr::ZERO);
        system.enforce(&bit, &complement, &zero);
        parts.push((power, bit));
        power.double_in_place();
    }
    let sum = Lc::sum(parts.iter().map(|(power, bit)| (*power, bit)));
    system.enforce_equal(&sum, value);
}
