//! Encode, switch, pack and decode: how an integer vector becomes w-bit words that add.
//!
//! 1. b bits hold every sum: the smallest b with 2·n_posts·bound + 1 ≤ 2^b.
//! 2. g guard bits hold every rounding error: the smallest g with 8·√(n_posts/12) < 2^(g−1).
//! 3. Encode: μ(m) = ⌊(q·m + 2^(b−1)) / 2^b⌋ in Z_q.
//! 4. Switch: c' = ⌊(c·2^w + ⌊q/2⌋) / q⌋ mod 2^w with w = b + g. Words are packed in w bits.
//! 5. Decode: d = Σc' − switch(a·Σs) mod 2^w, centred; the sum is the nearest integer to
//!    d / 2^g and the rest is the residual.
//! 6. A residual beyond 8σ, a block whose mean square residual exceeds 2σ², a sum beyond
//!    n·bound, or padding that is not zero is *not decodable*. Here n is the number of posts
//!    added and σ² = n·(1/12 + (16 + 1/12)·4^(w−46)) + 1/12.
//!
//! With proven contributions of norm B, f of them lies:
//! 7. b bits hold every sum: the smallest b with 2·(n_posts·bound + 2.85·f·B') + 1 ≤ 2^b and
//!    23·B' ≤ 2^b, where B' is B and its share of the rounding.
//! 8. Decode rounds and checks nothing: what was added was proven.

use std::sync::Arc;

use rayon::prelude::*;

use super::contribution_proof::{
    entries, intervals, norm_with_rounding, proof_bytes, slack, Bounds, Interval, Range,
};
use crate::error::check_range;
use crate::ring::{self, DEGREE, MODULUS, MODULUS_BITS};
use crate::Error;

/// w ≤ 40 keeps q ≥ 2^(w+6), so that the errors e stay far below the rounding.
pub const MAX_WIRE_BITS: u32 = 40;

/// How many standard deviations the guard covers.
const GUARD_DEVIATIONS: i128 = 8;

/// 12·(16 + 1/12): twelve times the variance of e plus that of μ's rounding.
const TWELVE_ERROR_VARIANCES: i128 = 193;

/// The widths of one task's vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Codec {
    length: usize,
    bound: u64,
    sum_bits: u32,
    guard_bits: u32,
    reciprocal: u64,
    bounds: Option<Bounds>,
    intervals: Arc<[Interval]>,
}

/// What a task with proven contributions counts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proven {
    /// B: the largest norm of an honest vector.
    pub norm: u64,
    /// f: how many lying posts a sum has room for.
    pub max_liars: u32,
    /// Coordinates whose ranges are proven, in rising order.
    pub ranges: Vec<Range>,
}

/// B is below this, so that nothing here overflows; wider sums are refused anyway.
const MAX_NORM: u64 = 1 << 45;

/// b: bits that hold every sum of `max_posts` values up to `bound` in absolute value.
pub fn sum_bits(bound: u64, max_posts: u32) -> u32 {
    let range = 2 * u128::from(bound) * u128::from(max_posts);
    u128::BITS - range.leading_zeros()
}

/// b for proven contributions (rule 7).
fn proven_sum_bits(bound: u64, max_posts: u32, liars: u32, norm: u128) -> u32 {
    let range = u128::from(bound) * u128::from(max_posts) + slack(u128::from(liars) * norm);
    let bits = u128::BITS - (2 * range).leading_zeros();
    let lemma = u128::BITS - (23 * norm - 1).leading_zeros();
    bits.max(lemma)
}

/// g: the smallest with 8·√(n/12) < 2^(g−1), that is 64·n < 12·4^(g−1).
pub fn guard_bits(max_posts: u32) -> u32 {
    (1..).find(|g| 64 * u64::from(max_posts) < 12 << (2 * (g - 1))).expect("4^g outgrows 2^32")
}

impl Codec {
    /// The widths for a vector of `length` values; refused if w would exceed [`MAX_WIRE_BITS`].
    pub fn new(
        length: usize,
        bound: u64,
        max_posts: u32,
        proven: Option<Proven>,
    ) -> Result<Self, Error> {
        check_range("the length of the vector", length as i128, 1, 1 << 27)?;
        let guard_bits = guard_bits(max_posts);
        let blocks = length.div_ceil(DEGREE);
        let sum_bits = match &proven {
            None => sum_bits(bound, max_posts),
            Some(Proven { norm, max_liars, .. }) => {
                check_range("the norm of a contribution", i128::from(*norm), 1, MAX_NORM.into())?;
                let norm = norm_with_rounding(*norm, guard_bits, blocks);
                proven_sum_bits(bound, max_posts, *max_liars, norm)
            }
        };
        let wire_bits = sum_bits + guard_bits;
        check_range("the width of a value in bits", wire_bits.into(), 2, MAX_WIRE_BITS.into())?;
        let reciprocal = ((1u128 << (wire_bits + 64)) / u128::from(MODULUS)) as u64;
        let ranges = proven.as_ref().map_or(&[][..], |proven| &proven.ranges);
        let intervals = intervals(ranges, length, bound, sum_bits, wire_bits)?.into();
        let bounds = proven.map(|proven| Bounds::new(proven.norm, sum_bits, wire_bits, blocks));
        Ok(Self { length, bound, sum_bits, guard_bits, reciprocal, bounds, intervals })
    }

    /// The bounds of the contribution proof, if there is one.
    pub fn bounds(&self) -> Option<Bounds> {
        self.bounds
    }

    /// The ranges of the contribution proof.
    pub(super) fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Bytes of a payload: words, wrapped secret, and the proof where there is one.
    pub fn payload_bytes(&self) -> usize {
        let proof = self.bounds.map_or(0, |_| proof_bytes(entries(&self.intervals)));
        self.packed_bytes() + super::contribution::WRAPPED_KEY_BYTES + proof
    }

    /// The largest absolute value.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// b: bits that hold every sum.
    pub fn sum_bits(&self) -> u32 {
        self.sum_bits
    }

    /// How many values a vector has.
    pub fn length(&self) -> usize {
        self.length
    }

    /// w: bits per value on the wire.
    pub fn wire_bits(&self) -> u32 {
        self.sum_bits + self.guard_bits
    }

    /// Polynomials that hold the vector.
    pub fn num_blocks(&self) -> usize {
        self.length.div_ceil(DEGREE)
    }

    /// Bytes of one packed polynomial.
    pub fn block_bytes(&self) -> usize {
        DEGREE / 8 * self.wire_bits() as usize
    }

    /// Bytes of the packed vector.
    pub fn packed_bytes(&self) -> usize {
        self.num_blocks() * self.block_bytes()
    }

    /// Refuses a vector of the wrong length, with a value beyond the bound or its range, or of too large a norm.
    pub fn check(&self, values: &[i64]) -> Result<(), Error> {
        check_range(
            "the length of the vector",
            values.len() as i128,
            self.length as i128,
            self.length as i128,
        )?;
        let bound = i128::from(self.bound);
        if let Some(&value) = values.iter().find(|value| value.unsigned_abs() > self.bound) {
            check_range("a value", value.into(), -bound, bound)?;
        }
        self.intervals.iter().try_for_each(|interval| interval.check(values))?;
        let Some(bounds) = self.bounds else { return Ok(()) };
        let most = i128::from(bounds.norm()) * i128::from(bounds.norm());
        let squares = values.iter().map(|value| i128::from(*value) * i128::from(*value)).sum();
        check_range("the square of the vector's norm", squares, 0, most)
    }

    /// μ(m) = ⌊(q·m + 2^(b−1)) / 2^b⌋ in Z_q.
    #[inline]
    pub fn encode(&self, value: i64) -> u64 {
        let half = 1i128 << (self.sum_bits - 1);
        let scaled = (i128::from(MODULUS) * i128::from(value) + half) >> self.sum_bits;
        ring::residue(scaled as i64)
    }

    /// ⌊(c·2^w + ⌊q/2⌋) / q⌋ mod 2^w.
    #[inline]
    pub fn switch(&self, c: u64) -> u64 {
        // The estimate is at most two below the quotient, so the rest fits a machine word.
        let estimate = ((u128::from(c) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = (c << self.wire_bits())
            .wrapping_add(MODULUS / 2)
            .wrapping_sub(estimate.wrapping_mul(MODULUS));
        let quotient = estimate + u64::from(rest >= MODULUS) + u64::from(rest >= 2 * MODULUS);
        quotient & self.word_mask()
    }

    /// c̃: a word lifted back to Z_q, ⌊(c'·q + 2^(w−1)) / 2^w⌋ mod q.
    #[inline]
    pub fn lift(&self, word: u64) -> u64 {
        let half = 1u128 << (self.wire_bits() - 1);
        ring::reduce_once(
            ((u128::from(word) * u128::from(MODULUS) + half) >> self.wire_bits()) as u64,
        )
    }

    /// c̃ for one packed block.
    pub fn lift_block(&self, packed: &[u8], lifted: &mut [u64]) {
        let (width, mask) = (self.wire_bits() as usize, self.word_mask());
        for (index, value) in lifted.iter_mut().enumerate() {
            *value = self.lift(read_word(packed, index * width) & mask);
        }
    }

    /// c̃ at one place of the packed vector.
    pub(super) fn lift_one(&self, packed: &[u8], index: usize) -> u64 {
        let (block, at) = (index / DEGREE * self.block_bytes(), index % DEGREE);
        self.lift(read_word(&packed[block..], at * self.wire_bits() as usize) & self.word_mask())
    }

    /// Masks the encoded vector, switches and packs it: step 3 and 4 for every value.
    pub fn seal(&self, masks: &[u64], values: &[i64], packed: &mut [u8]) {
        packed
            .par_chunks_exact_mut(self.block_bytes())
            .zip(masks.par_chunks_exact(DEGREE))
            .enumerate()
            .for_each(|(block, (bytes, masks))| {
                let start = (block * DEGREE).min(values.len());
                let values = &values[start..values.len().min(start + DEGREE)];
                let padding = std::iter::repeat_n(&0, DEGREE - values.len());
                let words = values
                    .iter()
                    .chain(padding)
                    .zip(masks)
                    .map(|(value, mask)| self.switch(ring::add(*mask, self.encode(*value))));
                self.pack(words, bytes);
            });
    }

    /// Writes words of w bits, lowest bit first.
    pub fn pack(&self, words: impl Iterator<Item = u64>, bytes: &mut [u8]) {
        let width = self.wire_bits();
        let (mut pending, mut filled, mut at) = (0u64, 0, 0);
        for word in words {
            pending |= word << filled;
            filled += width;
            while filled >= 8 {
                bytes[at] = pending as u8;
                at += 1;
                pending >>= 8;
                filled -= 8;
            }
        }
    }

    /// Adds packed words to running sums.
    pub fn add_packed(&self, sums: &mut [u64], packed: &[u8]) {
        let (width, mask) = (self.wire_bits() as usize, self.word_mask());
        sums.par_chunks_exact_mut(DEGREE)
            .zip(packed.par_chunks_exact(self.block_bytes()))
            .for_each(|(sums, bytes)| {
                for (index, sum) in sums.iter_mut().enumerate() {
                    *sum += read_word(bytes, index * width) & mask;
                }
            });
    }

    /// Reads packed words.
    pub fn unpack(&self, packed: &[u8]) -> Vec<u64> {
        let mut words = vec![0; self.num_blocks() * DEGREE];
        self.add_packed(&mut words, packed);
        words
    }

    /// Decodes one block of sums whose mask is a·Σs; `num_posts` were added.
    pub fn decode(
        &self,
        block: usize,
        sums: &[u64],
        mask: &[u64],
        num_posts: u32,
        decoded: &mut [i64],
    ) -> Result<(), Error> {
        if self.bounds.is_some() {
            for (value, (sum, mask)) in decoded.iter_mut().zip(sums.iter().zip(mask)) {
                *value = self.decode_word(sum.wrapping_sub(self.switch(*mask))).0;
            }
            return Ok(());
        }
        let limits = Limits::new(self, num_posts);
        let mut squares = 0;
        for (index, (sum, mask)) in sums.iter().zip(mask).enumerate() {
            let (value, residual) = self.decode_word(sum.wrapping_sub(self.switch(*mask)));
            squares += i128::from(residual) * i128::from(residual);
            limits.check_residual(residual)?;
            limits.check_value(value)?;
            if block * DEGREE + index < self.length {
                decoded[index] = value;
            } else if value != 0 {
                return Err(Error::Undecodable { why: "the padding is not zero" });
            }
        }
        limits.check_squares(squares)
    }

    fn decode_word(&self, word: u64) -> (i64, i64) {
        let spare = u64::BITS - self.wire_bits();
        let centred = ((word << spare) as i64) >> spare;
        let value = (centred + (1 << (self.guard_bits - 1))) >> self.guard_bits;
        (value, centred - (value << self.guard_bits))
    }

    /// The w low bits.
    pub fn word_mask(&self) -> u64 {
        (1 << self.wire_bits()) - 1
    }
}

/// The bounds of rule 6 for a number of posts, in integers: σ² is kept times 12·4^(46−w).
struct Limits {
    largest_sum: i128,
    scale: i128,
    scaled_variance: i128,
}

impl Limits {
    fn new(codec: &Codec, num_posts: u32) -> Self {
        let posts = i128::from(num_posts);
        let unit = 1i128 << (2 * (MODULUS_BITS - codec.wire_bits()));
        Self {
            largest_sum: posts * i128::from(codec.bound),
            scale: 12 * unit,
            scaled_variance: posts * (unit + TWELVE_ERROR_VARIANCES) + unit,
        }
    }

    fn check_residual(&self, residual: i64) -> Result<(), Error> {
        let residual = i128::from(residual);
        let limit = GUARD_DEVIATIONS * GUARD_DEVIATIONS * self.scaled_variance;
        if residual * residual * self.scale > limit {
            return Err(Error::Undecodable { why: "a residual is beyond eight deviations" });
        }
        Ok(())
    }

    fn check_value(&self, value: i64) -> Result<(), Error> {
        if i128::from(value).abs() > self.largest_sum {
            return Err(Error::Undecodable { why: "a sum is beyond what its posts can reach" });
        }
        Ok(())
    }

    fn check_squares(&self, squares: i128) -> Result<(), Error> {
        if squares * self.scale > 2 * self.scaled_variance * DEGREE as i128 {
            return Err(Error::Undecodable { why: "the residuals of a block are too large" });
        }
        Ok(())
    }
}

/// The bits from a position on, of which the caller keeps the low w ≤ 40.
#[inline]
fn read_word(bytes: &[u8], bit: usize) -> u64 {
    let tail = &bytes[bit / 8..];
    let word = match tail.first_chunk::<8>() {
        Some(word) => u64::from_le_bytes(*word),
        None => tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    word >> (bit % 8)
}
