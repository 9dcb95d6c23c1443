//! Ranges of single coordinates, exactly: an option of a task, in the same proof.
//!
//! A range says that coordinate j of the vector is within low … high where the bit is 1 and zero where it is 0.
//! With lo = ⌊q·low/2^b⌋, span = ⌈q·high/2^b⌉ − lo, and E ≥ |error and rounding of an honest value|, that is
//! y_j = b·lo − E + t with t ≥ 0 and u = b·span + 2·E − t ≥ 0. The prover commits to an integer k and to the
//! bits of t and u, and two relations join the linear equation:
//! - *place*: b·lo + Σ 2^i·t_i + ⟨a_j, s⟩ − q·k = c̃_j + E, where (A·s)_j = ⟨a_j, s⟩
//! - *room*: Σ 2^i·(t_i + u_i) − b·span = 2·E
//!
//! k is bounded by p as z, w and h are, so both are equations between integers. No projection is involved:
//! what passes is y_j within E of the range, and E is less than a unit's share of the guard bits.

use curve25519_dalek::scalar::Scalar;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::prover::signed;
use super::statement::Matrix;
use crate::error::check_range;
use crate::lattice::codec::Codec;
use crate::ring::{self, Polynomial, CBD_WIDTH, DEGREE, MODULUS};
use crate::transcript::Transcript;
use crate::Error;

/// At most this many coordinates have ranges; M has columns for them.
pub const MAX_RANGES: usize = 16;

/// Relations of a range.
pub(super) const RELATIONS_OF_A_RANGE: usize = 2;

/// Coordinate j lies within low … high where the bit is 1, and is zero where it is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// j.
    pub coordinate: usize,
    /// At most 0, since a missing update is zero.
    pub low: i64,
    /// At least 0.
    pub high: i64,
}

/// A range with its bounds on y.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lattice) struct Interval {
    pub(super) range: Range,
    /// lo.
    pub(super) low: i64,
    pub(super) span: u64,
    /// E.
    pub(super) error: u64,
    /// L: bits of span + 2·E.
    pub(super) bits: usize,
}

/// Checks a task's ranges and derives their bounds.
///
/// 1. There are at most [`MAX_RANGES`].
/// 2. Coordinates rise and are those of the vector.
/// 3. low ≤ 0 ≤ high, and neither is beyond the bound of a value.
pub(in crate::lattice) fn intervals(
    ranges: &[Range],
    length: usize,
    bound: u64,
    sum_bits: u32,
    wire_bits: u32,
) -> Result<Vec<Interval>, Error> {
    check_range("the number of ranges", ranges.len() as i128, 0, MAX_RANGES as i128)?;
    let mut next = 0;
    let mut intervals = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (coordinate, bound) = (range.coordinate as i128, i128::from(bound));
        check_range("the coordinate of a range", coordinate, next, length as i128 - 1)?;
        check_range("the low end of a range", range.low.into(), -bound, 0)?;
        check_range("the high end of a range", range.high.into(), 0, bound)?;
        next = coordinate + 1;
        intervals.push(Interval::new(*range, sum_bits, wire_bits));
    }
    Ok(intervals)
}

impl Interval {
    fn new(range: Range, sum_bits: u32, wire_bits: u32) -> Self {
        let scaled = |value: i64| i128::from(MODULUS) * i128::from(value);
        let low = (scaled(range.low) >> sum_bits) as i64;
        let high = -(-scaled(range.high) >> sum_bits) as i64;
        let span = (high - low) as u64;
        // |e| ≤ 32; switching moves a value by q/2^(w+1) and one half at most, lifting by another half.
        let error = CBD_WIDTH as u64 + (MODULUS >> (wire_bits + 1)) + 2;
        let bits = (u64::BITS - (span + 2 * error).leading_zeros()) as usize;
        Self { range, low, span, error, bits }
    }

    /// j.
    pub(super) fn coordinate(&self) -> usize {
        self.range.coordinate
    }

    /// Refuses a vector whose coordinate is out of its range.
    pub(in crate::lattice) fn check(&self, values: &[i64]) -> Result<(), Error> {
        let Range { coordinate, low, high } = self.range;
        check_range("a value with a range", values[coordinate].into(), low.into(), high.into())
    }

    /// k, then the bits of t and of u.
    pub(super) fn entries(&self) -> usize {
        1 + 2 * self.bits
    }

    pub(super) fn cover(&self, transcript: &mut Transcript) {
        let Range { coordinate, low, high } = self.range;
        let ends = [low.to_le_bytes(), high.to_le_bytes()];
        transcript
            .number("ranged coordinate", coordinate as u64)
            .field("range", ends.as_flattened());
    }
}

/// Entries that all ranges add to x₁.
pub(in crate::lattice) fn entries(intervals: &[Interval]) -> usize {
    intervals.iter().map(Interval::entries).sum()
}

/// What everybody computes for a range: c̃_j and a_j.
pub(super) struct Place<'a> {
    pub(super) interval: &'a Interval,
    pub(super) lifted: u64,
    /// a_j with coefficients in ±q/2.
    pub(super) row: Vec<i64>,
}

impl<'a> Place<'a> {
    fn new(interval: &'a Interval, codec: &Codec, packed: &[u8], matrix: &Matrix) -> Self {
        let (block, at) = (interval.range.coordinate / DEGREE, interval.range.coordinate % DEGREE);
        let mut coefficients: Box<Polynomial> = Box::new(*matrix.block(block));
        ring::inverse(&mut coefficients);
        let row = (0..DEGREE).map(|i| match at.checked_sub(i) {
            Some(power) => ring::centred(coefficients[power]),
            None => -ring::centred(coefficients[DEGREE + at - i]),
        });
        let lifted = codec.lift_one(packed, interval.range.coordinate);
        Self { interval, lifted, row: row.collect() }
    }

    pub(super) fn all(codec: &'a Codec, packed: &[u8], matrix: &Matrix) -> Vec<Self> {
        let intervals = codec.intervals().iter();
        intervals.map(|interval| Self::new(interval, codec, packed, matrix)).collect()
    }
}

/// What the prover commits to for a range.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Position {
    pub(super) k: i128,
    t: i64,
    u: i64,
    #[zeroize(skip)]
    bits: usize,
}

impl Position {
    /// For y_j, the secret and the bit; wraps where the witness is a lie.
    pub(super) fn new(
        place: &Place<'_>,
        y: i64,
        secret: &[i64],
        one: u8,
        divide: impl Fn(i128) -> i128,
    ) -> Self {
        let interval = place.interval;
        let (bit, error) = (i64::from(one), interval.error as i64);
        let t = y.wrapping_sub(bit * interval.low).wrapping_add(error);
        let u = (bit * interval.span as i64 + 2 * error).wrapping_sub(t);
        let masked = place.row.iter().zip(secret).fold(0i128, |sum, (a, s)| {
            sum.wrapping_add(i128::from(*a).wrapping_mul(i128::from(*s)))
        });
        let k = divide(i128::from(y) + masked - i128::from(place.lifted));
        Self { k, t, u, bits: interval.bits }
    }

    pub(super) fn fits(&self) -> bool {
        self.t >= 0 && self.u >= 0
    }

    /// The bits of t, then of u; the last of each is all that is left, so that they always add up.
    pub(super) fn bits(&self) -> impl Iterator<Item = Scalar> + '_ {
        let last = self.bits - 1;
        let of = move |value: i64| {
            let low = (0..last).map(move |i| Scalar::from((value >> i & 1) as u64));
            low.chain([signed((value >> last).into())])
        };
        of(self.t).chain(of(self.u))
    }

    /// Moves k and u away from what they should be.
    #[cfg(test)]
    pub(super) fn misplace(&mut self, k: i128, u: i64) {
        self.k += k;
        self.u += u;
    }
}
