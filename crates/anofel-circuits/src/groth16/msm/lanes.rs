//! Eight elements of the field of coordinates at a time, with the instructions AVX-512 IFMA.
//!
//! An element is five limbs of 52 bits. A product divides by 2^260, so with numbers in the
//! Montgomery form of `ark-ff`, which is a·2^256, it gives a·b/16; who calls undoes that. Numbers
//! are not always below the modulus p: each function says what it takes and what it gives. Since
//! 84·p < 2^260, a product of numbers below k·p and l·p is below (k·l/84 + 1)·p.
//!
//! Written here because `ark-ff` has no such products and no other crate for this field was found
//! that chooses them while it runs. The crate `pulp` checks the processor, so nothing here is unsafe.

use core::arch::x86_64::__m512i;

use ark_bn254::Fq;
use ark_ff::{BigInt, BigInteger, PrimeField};

pulp::simd_type!({
    /// Shows that this processor has the instructions.
    pub struct Ifma {
        f: feature!("avx512f"),
        ifma: feature!("avx512ifma"),
    }
});

/// Numbers in a register.
pub const LANES: usize = 8;

const LIMBS: usize = 5;
const LIMB_BITS: u32 = 52;
const MASK: u64 = (1 << LIMB_BITS) - 1;
const MODULUS: [u64; LIMBS] = multiple_of_modulus(1);

/// 2^260 − p.
const MINUS_MODULUS: [u64; LIMBS] = {
    let mut limbs = [0; LIMBS];
    let (mut i, mut borrow) = (0, 0);
    while i < LIMBS {
        let difference = (1 << LIMB_BITS) - MODULUS[i] - borrow;
        limbs[i] = difference & MASK;
        borrow = 1 - (difference >> LIMB_BITS);
        i += 1;
    }
    limbs
};

/// −1/p mod 2^52, by Newton's iteration: each step doubles the bits that are right.
const INVERSE: u64 = {
    let mut inverse = 1u64;
    let mut i = 0;
    while i < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(MODULUS[0].wrapping_mul(inverse)));
        i += 1;
    }
    inverse.wrapping_neg() & MASK
};

/// ⌊2^260/p⌋.
const QUOTIENT: u64 = 84;

const fn limbs_of([a, b, c, d]: [u64; 4]) -> [u64; LIMBS] {
    let middle = [a >> 52 | b << 12, b >> 40 | c << 24, c >> 28 | d << 36];
    [a & MASK, middle[0] & MASK, middle[1] & MASK, middle[2] & MASK, d >> 16]
}

const fn multiple_of_modulus(factor: u64) -> [u64; LIMBS] {
    let modulus = limbs_of(Fq::MODULUS.0);
    let mut limbs = [0; LIMBS];
    let (mut i, mut carry) = (0, 0);
    while i < LIMBS {
        let product = modulus[i] * factor + carry;
        limbs[i] = product & MASK;
        carry = product >> LIMB_BITS;
        i += 1;
    }
    limbs
}

/// Eight numbers in memory: a cache line for each, two numbers of 256 bits.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Line(pub [u64; 8]);

impl Line {
    /// Two numbers as they are.
    #[inline]
    pub fn of_numbers(first: &Fq, second: &Fq) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (first.0 .0, second.0 .0);
        Self([a, b, c, d, e, f, g, h])
    }
}

/// Eight numbers, limb by limb. Limbs have 52 bits.
#[derive(Clone, Copy)]
pub struct Eight([__m512i; LIMBS]);

#[inline(always)]
fn all(simd: Ifma, value: u64) -> __m512i {
    simd.f._mm512_set1_epi64(value as i64)
}

/// Limbs of 52 bits from signed ones, of a number in [0, 2^260), or modulo 2^260.
#[inline(always)]
fn carried(simd: Ifma, mut limbs: [__m512i; LIMBS]) -> Eight {
    let mask = all(simd, MASK);
    for i in 0..LIMBS {
        if i + 1 < LIMBS {
            let carry = simd.f._mm512_srai_epi64::<LIMB_BITS>(limbs[i]);
            limbs[i + 1] = simd.f._mm512_add_epi64(limbs[i + 1], carry);
        }
        limbs[i] = simd.f._mm512_and_si512(limbs[i], mask);
    }
    Eight(limbs)
}

/// The same number modulo p and below 3·p, of one in [p, 80·p) with signed limbs.
///
/// The quotient is estimated from the highest limb, never too high: 84/2^52 is less than
/// 2^208/p, and p more than makes up for the carries that this limb has not got yet.
#[inline(always)]
fn reduced(simd: Ifma, mut limbs: [__m512i; LIMBS]) -> Eight {
    let (f, ifma) = (simd.f, simd.ifma);
    let quotient = ifma._mm512_madd52hi_epu64(all(simd, 0), limbs[LIMBS - 1], all(simd, QUOTIENT));
    for i in 0..LIMBS {
        let factor = all(simd, MINUS_MODULUS[i]);
        limbs[i] = ifma._mm512_madd52lo_epu64(limbs[i], quotient, factor);
        if i + 1 < LIMBS {
            let high = ifma._mm512_madd52hi_epu64(all(simd, 0), quotient, factor);
            limbs[i + 1] = f._mm512_add_epi64(limbs[i + 1], high);
        }
    }
    carried(simd, limbs)
}

impl Eight {
    /// 0.
    #[inline(always)]
    pub fn zero(simd: Ifma) -> Self {
        Self([all(simd, 0); LIMBS])
    }

    /// 1 where a product divides by 2^260: 2^260 − 84·p.
    #[inline(always)]
    pub fn one(simd: Ifma) -> Self {
        let limbs = const { multiple_of_modulus(QUOTIENT) };
        let difference = limbs.map(|limb| simd.f._mm512_sub_epi64(all(simd, 0), all(simd, limb)));
        carried(simd, difference)
    }

    /// The same number in every lane, as it is.
    #[inline(always)]
    pub fn same(simd: Ifma, number: Fq) -> Self {
        Self(limbs_of(number.0 .0).map(|limb| all(simd, limb)))
    }

    /// (Σ a·b)/2^260 of numbers below 8·p, with one reduction: below 3·p.
    #[inline(always)]
    pub fn products<const N: usize>(simd: Ifma, pairs: [(Self, Self); N]) -> Self {
        let (f, ifma) = (simd.f, simd.ifma);
        let zero = all(simd, 0);
        let mut sum = [zero; LIMBS];
        for i in 0..LIMBS {
            let mut high = [zero; LIMBS];
            for (a, b) in &pairs {
                for j in 0..LIMBS {
                    sum[j] = ifma._mm512_madd52lo_epu64(sum[j], a.0[j], b.0[i]);
                    high[j] = ifma._mm512_madd52hi_epu64(high[j], a.0[j], b.0[i]);
                }
            }
            // The multiple of p that makes the lowest limb 0.
            let factor = ifma._mm512_madd52lo_epu64(zero, sum[0], all(simd, INVERSE));
            for j in 0..LIMBS {
                let limb = all(simd, MODULUS[j]);
                sum[j] = ifma._mm512_madd52lo_epu64(sum[j], factor, limb);
                high[j] = ifma._mm512_madd52hi_epu64(high[j], factor, limb);
            }
            let carry = f._mm512_srli_epi64::<LIMB_BITS>(sum[0]);
            for j in 0..LIMBS - 1 {
                sum[j] = f._mm512_add_epi64(sum[j + 1], high[j]);
            }
            sum[0] = f._mm512_add_epi64(sum[0], carry);
            sum[LIMBS - 1] = high[LIMBS - 1];
        }
        carried(simd, sum)
    }

    /// a + b.
    #[inline(always)]
    pub fn plus(self, simd: Ifma, other: Self) -> Self {
        carried(simd, std::array::from_fn(|i| simd.f._mm512_add_epi64(self.0[i], other.0[i])))
    }

    /// a − b + k·p, for b below k·p.
    #[inline(always)]
    pub fn minus<const K: u64>(self, simd: Ifma, other: Self) -> Self {
        carried(simd, self.signed_difference::<K>(simd, other))
    }

    /// a − b − c + 8·p, for b and c below 3·p: below 3·p.
    #[inline(always)]
    pub fn minus_both(self, simd: Ifma, first: Self, second: Self) -> Self {
        let left = self.signed_difference::<8>(simd, first);
        let limbs = std::array::from_fn(|i| simd.f._mm512_sub_epi64(left[i], second.0[i]));
        reduced(simd, limbs)
    }

    /// 4·a − b + 4·p, for a below 2.5·p and b below 3·p: below 3·p.
    #[inline(always)]
    pub fn four_times_minus(self, simd: Ifma, other: Self) -> Self {
        let four_times = Self(self.0.map(|limb| simd.f._mm512_slli_epi64::<2>(limb)));
        reduced(simd, four_times.signed_difference::<4>(simd, other))
    }

    #[inline(always)]
    fn signed_difference<const K: u64>(self, simd: Ifma, other: Self) -> [__m512i; LIMBS] {
        let multiple = const { multiple_of_modulus(K) };
        std::array::from_fn(|i| {
            let difference = simd.f._mm512_sub_epi64(self.0[i], other.0[i]);
            simd.f._mm512_add_epi64(difference, all(simd, multiple[i]))
        })
    }

    /// The first and the second number of eight lines.
    #[inline(always)]
    pub fn of_lines(simd: Ifma, lines: [&Line; LANES]) -> (Self, Self) {
        let [a, b, c, d, e, f, g, h] = transposed(simd, lines.map(|line| pulp::cast(line.0)));
        (Self::of_words(simd, [a, b, c, d]), Self::of_words(simd, [e, f, g, h]))
    }

    /// Eight lines of two numbers, both below 2^256.
    #[inline(always)]
    pub fn to_lines(simd: Ifma, first: Self, second: Self) -> [Line; LANES] {
        let ([a, b, c, d], [e, f, g, h]) = (first.words(simd), second.words(simd));
        transposed(simd, [a, b, c, d, e, f, g, h]).map(|line| Line(pulp::cast(line)))
    }

    #[inline(always)]
    fn of_words(simd: Ifma, words: [__m512i; 4]) -> Self {
        let ([a, b, c, d], f, mask) = (words, simd.f, all(simd, MASK));
        let middle = |low, high| f._mm512_and_si512(f._mm512_or_si512(low, high), mask);
        Self([
            f._mm512_and_si512(a, mask),
            middle(f._mm512_srli_epi64::<52>(a), f._mm512_slli_epi64::<12>(b)),
            middle(f._mm512_srli_epi64::<40>(b), f._mm512_slli_epi64::<24>(c)),
            middle(f._mm512_srli_epi64::<28>(c), f._mm512_slli_epi64::<36>(d)),
            f._mm512_srli_epi64::<16>(d),
        ])
    }

    #[inline(always)]
    fn words(self, simd: Ifma) -> [__m512i; 4] {
        let ([a, b, c, d, e], f) = (self.0, simd.f);
        [
            f._mm512_or_si512(a, f._mm512_slli_epi64::<52>(b)),
            f._mm512_or_si512(f._mm512_srli_epi64::<12>(b), f._mm512_slli_epi64::<40>(c)),
            f._mm512_or_si512(f._mm512_srli_epi64::<24>(c), f._mm512_slli_epi64::<28>(d)),
            f._mm512_or_si512(f._mm512_srli_epi64::<36>(d), f._mm512_slli_epi64::<16>(e)),
        ]
    }
}

impl Eight {
    /// The first four lanes and the last four change places.
    #[inline(always)]
    pub fn swapped(self, simd: Ifma) -> Self {
        Self(self.0.map(|limb| simd.f._mm512_shuffle_i64x2::<0b01_00_11_10>(limb, limb)))
    }

    /// The first four lanes of one, the last four of another.
    #[inline(always)]
    pub fn first_and_last(simd: Ifma, first: Self, last: Self) -> Self {
        let halves = |i| simd.f._mm512_shuffle_i64x2::<0b11_10_01_00>(first.0[i], last.0[i]);
        Self([halves(0), halves(1), halves(2), halves(3), halves(4)])
    }

    /// 4·p, to add to and subtract from.
    #[inline(always)]
    pub fn raw(simd: Ifma) -> Raw {
        Raw(const { multiple_of_modulus(4) }.map(|limb| all(simd, limb)))
    }

    /// 3·a − 2·z + 8·p in the lanes 0, 2 and 5, 3·a + 2·z + 8·p in the others, for a and z below 3·p:
    /// below 3·p.
    #[inline(always)]
    pub fn thrice_and_twice(self, simd: Ifma, z: Self) -> Self {
        let f = simd.f;
        let multiple = const { multiple_of_modulus(8) };
        let mut limbs = self.0;
        for i in 0..LIMBS {
            let twice = f._mm512_slli_epi64::<1>(self.0[i]);
            let thrice = f._mm512_add_epi64(self.0[i], twice);
            let raised = f._mm512_add_epi64(thrice, all(simd, multiple[i]));
            let twice_z = f._mm512_slli_epi64::<1>(z.0[i]);
            let plus = f._mm512_add_epi64(raised, twice_z);
            limbs[i] = f._mm512_mask_sub_epi64(plus, 0b0010_0101, raised, twice_z);
        }
        reduced(simd, limbs)
    }
}

/// Eight numbers whose limbs are signed and not carried.
#[derive(Clone, Copy)]
pub struct Raw([__m512i; LIMBS]);

impl Raw {
    /// self + K·a.
    #[inline(always)]
    pub fn add_times<const K: u64>(mut self, simd: Ifma, a: Eight) -> Self {
        let f = simd.f;
        for (sum, limb) in self.0.iter_mut().zip(a.0) {
            let multiple = match K {
                1 => limb,
                2 => f._mm512_slli_epi64::<1>(limb),
                9 => f._mm512_add_epi64(limb, f._mm512_slli_epi64::<3>(limb)),
                18 => {
                    let twice = f._mm512_slli_epi64::<1>(limb);
                    f._mm512_add_epi64(twice, f._mm512_slli_epi64::<4>(limb))
                }
                _ => unreachable!("the multiples above are all that there are"),
            };
            *sum = f._mm512_add_epi64(*sum, multiple);
        }
        self
    }

    /// self − 2·a.
    #[inline(always)]
    pub fn subtract_twice(mut self, simd: Ifma, a: Eight) -> Self {
        for (sum, limb) in self.0.iter_mut().zip(a.0) {
            *sum = simd.f._mm512_sub_epi64(*sum, simd.f._mm512_slli_epi64::<1>(limb));
        }
        self
    }

    /// Lanes of this (0 to 7) and another (8 to 15).
    #[inline(always)]
    pub fn pick(mut self, simd: Ifma, lanes: [u64; LANES], other: Self) -> Self {
        let lanes = pulp::cast(lanes);
        for (limb, another) in self.0.iter_mut().zip(other.0) {
            *limb = simd.f._mm512_permutex2var_epi64(*limb, lanes, another);
        }
        self
    }

    /// The second lane becomes a lane of another.
    #[inline(always)]
    pub fn with_second_lane(mut self, simd: Ifma, other: Self, lane: u64) -> Self {
        let lanes = pulp::cast([lane; LANES]);
        for (limb, another) in self.0.iter_mut().zip(other.0) {
            *limb = simd.f._mm512_mask_permutexvar_epi64(*limb, 0b10, lanes, another);
        }
        self
    }

    /// Limbs of 52 bits, of a number in [p, 80·p): below 3·p.
    #[inline(always)]
    pub fn reduced(self, simd: Ifma) -> Eight {
        reduced(simd, self.0)
    }
}

/// Rows become columns.
#[inline(always)]
fn transposed(simd: Ifma, rows: [__m512i; LANES]) -> [__m512i; LANES] {
    let [a, b, c, d, e, f, g, h] = rows;
    let low = |left, right| simd.f._mm512_unpacklo_epi64(left, right);
    let high = |left, right| simd.f._mm512_unpackhi_epi64(left, right);
    let even = every_fourth(simd, low(a, b), low(c, d), low(e, f), low(g, h));
    let odd = every_fourth(simd, high(a, b), high(c, d), high(e, f), high(g, h));
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
}

/// Of four registers of four pairs of words: the first pairs, the second, the third, the fourth.
#[inline(always)]
fn every_fourth(simd: Ifma, a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    let even = |left, right| simd.f._mm512_shuffle_i64x2::<0x88>(left, right);
    let odd = |left, right| simd.f._mm512_shuffle_i64x2::<0xdd>(left, right);
    let (even_ab, even_cd, odd_ab, odd_cd) = (even(a, b), even(c, d), odd(a, b), odd(c, d));
    [even(even_ab, even_cd), even(odd_ab, odd_cd), odd(even_ab, even_cd), odd(odd_ab, odd_cd)]
}

/// The words of one number of a line, below the modulus.
pub fn canonical(words: &[u64]) -> Fq {
    let mut value = BigInt(std::array::from_fn(|i| words[i]));
    while value >= Fq::MODULUS {
        value.sub_with_borrow(&Fq::MODULUS);
    }
    Fq::new_unchecked(value)
}
