//! Sums of scalar multiples of points that are known in advance.
//!
//! For every base P the table holds 2^(w·s·q)·P, where w is the window width and s the number of
//! bucket sets. A scalar is cut into signed windows; window j = q·s + t takes the q-th multiple
//! into one of the 2^(w−1) buckets of set t. So a sum needs no doublings but the few at its
//! end, and all additions into buckets are affine ones that share their inversions.
//!
//! Running times depend on the scalars, as in every prover in use; a client proves on its own
//! machine.

use anofel_primitives::Fr;
use ark_bn254::{Fq, Fq2};
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInteger, BigInteger256, Field, PrimeField, Zero};
use rayon::prelude::*;
use zeroize::Zeroize;

/// How a table is cut: windows and bucket sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bits of a window.
    pub window: usize,
    /// Bucket sets; the table holds one multiple for every so many windows.
    pub sets: usize,
}

impl Layout {
    /// A layout that is quick for this many bases: additions into buckets grow with
    /// bases · 255 / window, the final sums with 2^window.
    pub fn for_bases(bases: usize) -> Self {
        let window = match bases {
            0..=500 => 9,
            501..=2_000 => 11,
            2_001..=3_500 => 12,
            _ => 13,
        };
        Self { window, sets: 2 }
    }

    /// Windows of a scalar: one more bit than a scalar has, for the carry of signed digits.
    fn windows(self) -> usize {
        (Fr::MODULUS_BIT_SIZE as usize + 1).div_ceil(self.window)
    }

    /// Multiples of each base in the table.
    pub fn multiples(self) -> usize {
        self.windows().div_ceil(self.sets)
    }

    /// Buckets in a set.
    fn buckets(self) -> usize {
        1 << (self.window - 1)
    }
}

/// Affine coordinates; (0, 0), which is on neither curve, stands for the neutral element.
///
/// Aligned, so that reading a point from a large table touches no more cache lines than it fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
pub struct Coordinates<F> {
    /// x.
    pub x: F,
    /// y.
    pub y: F,
}

impl<F: Field> Coordinates<F> {
    const NEUTRAL: Self = Self { x: F::ZERO, y: F::ZERO };

    fn is_neutral(&self) -> bool {
        self.x.is_zero() && self.y.is_zero()
    }

    pub(crate) fn to_affine<P: SWCurveConfig<BaseField = F>>(self) -> Affine<P> {
        if self.is_neutral() {
            Affine::identity()
        } else {
            Affine::new_unchecked(self.x, self.y)
        }
    }
}

/// Products in a coordinate field, three of the prime field for one in the extension and two for a
/// square: `ark-ff` takes four multiplications with fewer reductions, which is slower without its
/// assembly.
pub trait Products: Field {
    /// self · other.
    fn times(&self, other: &Self) -> Self;
    /// self².
    fn squared(&self) -> Self;
}

impl Products for Fq {
    #[inline(always)]
    fn times(&self, other: &Self) -> Self {
        *self * other
    }

    #[inline(always)]
    fn squared(&self) -> Self {
        self.square()
    }
}

impl Products for Fq2 {
    #[inline(always)]
    fn times(&self, other: &Self) -> Self {
        let (low, high) = (self.c0 * other.c0, self.c1 * other.c1);
        let cross = (self.c0 + self.c1) * (other.c0 + other.c1);
        Self::new(low - high, cross - low - high)
    }

    #[inline(always)]
    fn squared(&self) -> Self {
        let cross = self.c0 * self.c1;
        Self::new((self.c0 + self.c1) * (self.c0 - self.c1), cross.double())
    }
}

/// Multiples of fixed bases, and which scalar each base belongs to.
#[derive(Clone)]
pub struct Table<P: SWCurveConfig> {
    layout: Layout,
    /// For every base, the position of its scalar. Bases that are the neutral element are left out.
    scalars: Vec<u32>,
    /// `multiples` points for every base.
    points: Vec<Coordinates<P::BaseField>>,
}

impl<P: SWCurveConfig<BaseField: Products>> Table<P> {
    /// Computes the multiples; neutral bases are left out.
    pub fn new(bases: &[Affine<P>]) -> Self {
        let (scalars, bases): (Vec<u32>, Vec<Affine<P>>) =
            (0..).zip(bases).filter(|(_, base)| !base.is_zero()).unzip();
        Self::of_bases(scalars, &bases)
    }

    /// Computes the multiples of bases that are not neutral, given the position of each scalar.
    pub fn of_bases(scalars: Vec<u32>, bases: &[Affine<P>]) -> Self {
        let layout = Layout::for_bases(bases.len());
        let shift = layout.window * layout.sets;
        let multiples: Vec<Projective<P>> = bases
            .par_iter()
            .flat_map_iter(|base| {
                let mut power = base.into_group();
                (0..layout.multiples()).map(move |q| {
                    if q > 0 {
                        for _ in 0..shift {
                            power.double_in_place();
                        }
                    }
                    power
                })
            })
            .collect();
        let points = Projective::normalize_batch(&multiples)
            .into_iter()
            .map(|point| Coordinates { x: point.x, y: point.y })
            .collect();
        Self { layout, scalars, points }
    }

    /// Puts a table together from its parts; the caller vouches for them.
    pub fn from_parts(
        layout: Layout,
        scalars: Vec<u32>,
        points: Vec<Coordinates<P::BaseField>>,
    ) -> Self {
        Self { layout, scalars, points }
    }

    /// How the table is cut.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The positions of the scalars.
    pub fn scalars(&self) -> &[u32] {
        &self.scalars
    }

    /// The bases: the first of the multiples of each.
    pub fn bases(&self) -> impl Iterator<Item = Affine<P>> + '_ {
        self.points.chunks(self.layout.multiples()).map(|multiples| multiples[0].to_affine())
    }

    /// All multiples.
    pub fn points(&self) -> &[Coordinates<P::BaseField>] {
        &self.points
    }

    /// Σ scalar·base.
    pub fn sum(&self, scalars: &[BigInteger256]) -> Projective<P> {
        let sums = self.bucket_sums(scalars);
        let sets: Vec<Projective<P>> =
            sums.par_chunks(self.layout.buckets()).map(weighted_sum).collect();
        let mut total = Projective::<P>::zero();
        for set in sets.iter().rev() {
            for _ in 0..self.layout.window {
                total.double_in_place();
            }
            total += set;
        }
        total
    }

    /// The sum of the points in every bucket, set after set.
    fn bucket_sums(&self, scalars: &[BigInteger256]) -> Vec<Coordinates<P::BaseField>> {
        let (mut entries, counts) = self.sort_by_bucket(scalars);
        // Ranges of buckets whose points stay in the cache, to be worked on in parallel.
        let mut ranges = Vec::new();
        let (mut bucket, mut start) = (0, 0);
        while bucket < counts.len() {
            let (first, from) = (bucket, start);
            while bucket < counts.len() && start - from < Self::RANGE {
                start += counts[bucket] as usize;
                bucket += 1;
            }
            ranges.push((&entries[from..start], &counts[first..bucket]));
        }
        let sums = ranges
            .into_par_iter()
            .flat_map_iter(|(entries, counts)| {
                // Copied first, so that the scattered reads overlap each other.
                let points: Vec<_> = entries
                    .iter()
                    .map(|entry| {
                        let point = self.points[(entry >> 1) as usize];
                        if entry & 1 == 1 {
                            Coordinates { x: point.x, y: -point.y }
                        } else {
                            point
                        }
                    })
                    .collect();
                reduce_runs(points, counts.to_vec())
            })
            .collect();
        // The digits of the scalars.
        entries.zeroize();
        sums
    }

    /// How many points a range of buckets has.
    const RANGE: usize = 4096;

    /// For every bucket in turn the multiples that go into it (twice the position in the table,
    /// plus one if negated), and how many there are.
    fn sort_by_bucket(&self, scalars: &[BigInteger256]) -> (Vec<u32>, Vec<u32>) {
        let Layout { window, sets } = self.layout;
        let (buckets, multiples) = (self.layout.buckets(), self.layout.multiples());
        let mut counts = vec![0u32; buckets * sets];
        let mut unsorted: Vec<(u32, u32)> = Vec::with_capacity(self.points.len() * sets);
        for (base, position) in self.scalars.iter().enumerate() {
            let (magnitude, negative) = fold(&scalars[*position as usize]);
            for_each_digit(&magnitude, window, |j, digit| {
                let bucket = (j % sets) * buckets + digit.unsigned_abs() as usize - 1;
                let point = (base * multiples + j / sets) as u32;
                counts[bucket] += 1;
                unsorted.push((bucket as u32, point << 1 | u32::from((digit < 0) != negative)));
            });
        }
        let mut next = 0;
        let mut places: Vec<u32> = counts
            .iter()
            .map(|count| {
                next += count;
                next - count
            })
            .collect();
        let mut sorted = vec![0; unsorted.len()];
        for (bucket, entry) in &unsorted {
            let place = &mut places[*bucket as usize];
            sorted[*place as usize] = *entry;
            *place += 1;
        }
        unsorted.zeroize();
        (sorted, counts)
    }
}

/// A scalar as ±magnitude with a magnitude of at most r/2, so that −1 costs no more than 1.
pub(crate) fn fold(scalar: &BigInteger256) -> (BigInteger256, bool) {
    if *scalar <= Fr::MODULUS_MINUS_ONE_DIV_TWO {
        return (*scalar, false);
    }
    let mut magnitude = Fr::MODULUS;
    magnitude.sub_with_borrow(scalar);
    (magnitude, true)
}

/// Calls `f(j, digit)` for the non-zero signed digits, −2^(w−1) < digit ≤ 2^(w−1).
pub(crate) fn for_each_digit(scalar: &BigInteger256, window: usize, mut f: impl FnMut(usize, i32)) {
    if scalar.0 == [0; 4] {
        return;
    }
    let limbs = &scalar.0;
    let mask = (1u64 << window) - 1;
    let half = 1i32 << (window - 1);
    let mut carry = 0;
    let windows = (Fr::MODULUS_BIT_SIZE as usize + 1).div_ceil(window);
    for j in 0..windows {
        let bit = j * window;
        let (limb, offset) = (bit / 64, bit % 64);
        let mut bits = limbs.get(limb).map_or(0, |value| value >> offset);
        if offset + window > 64 {
            bits |= limbs.get(limb + 1).map_or(0, |value| value << (64 - offset));
        }
        let mut digit = (bits & mask) as i32 + carry;
        carry = i32::from(digit > half);
        digit -= carry << window;
        if digit != 0 {
            f(j, digit);
        }
    }
}

/// Adds up runs of consecutive points, `counts[i]` points in the i-th run, by halving all runs
/// again and again. An empty run gives the neutral element.
fn reduce_runs<F: Products>(
    mut points: Vec<Coordinates<F>>,
    mut counts: Vec<u32>,
) -> Vec<Coordinates<F>> {
    let mut batch = Batch::default();
    while counts.iter().any(|count| *count > 1) {
        points = halve_runs(&mut batch, &points, &mut counts);
    }
    let mut rest = points.into_iter();
    counts
        .iter()
        .map(|count| if *count == 1 { rest.next() } else { None })
        .map(|point| point.unwrap_or(Coordinates::NEUTRAL))
        .collect()
}

/// Adds the points of every run in pairs.
fn halve_runs<F: Products>(
    batch: &mut Batch<F>,
    points: &[Coordinates<F>],
    counts: &mut [u32],
) -> Vec<Coordinates<F>> {
    let length = counts.iter().map(|count| count.div_ceil(2) as usize).sum();
    let mut sums = vec![Coordinates::NEUTRAL; length];
    let (mut from, mut to) = (0, 0);
    for count in counts {
        for _ in 0..*count / 2 {
            batch.add(points, from, &mut sums, to);
            from += 2;
            to += 1;
        }
        if *count % 2 == 1 {
            sums[to] = points[from];
            from += 1;
            to += 1;
        }
        *count = count.div_ceil(2);
    }
    batch.flush(points, &mut sums);
    sums
}

/// An affine addition of two neighbours that waits for a common inversion.
struct Addition<F> {
    denominator: F,
    /// The product of all denominators before this one.
    product: F,
    from: u32,
    to: u32,
}

struct Batch<F> {
    additions: Vec<Addition<F>>,
    product: F,
}

impl<F: Products> Default for Batch<F> {
    fn default() -> Self {
        Self { additions: Vec::with_capacity(Self::SIZE), product: F::ONE }
    }
}

impl<F: Products> Batch<F> {
    /// Additions per inversion: enough to forget its cost, few enough to stay in the cache.
    const SIZE: usize = 1024;

    /// sums[to] = points[from] + points[from + 1], now or at the next flush.
    #[inline]
    fn add(
        &mut self,
        points: &[Coordinates<F>],
        from: usize,
        sums: &mut [Coordinates<F>],
        to: usize,
    ) {
        let denominator = slope_denominator(&points[from], &points[from + 1]);
        let product = self.product;
        self.product = product.times(&denominator);
        let (from, to) = (from as u32, to as u32);
        self.additions.push(Addition { denominator, product, from, to });
        if self.additions.len() == Self::SIZE {
            self.flush(points, sums);
        }
    }

    fn flush(&mut self, points: &[Coordinates<F>], sums: &mut [Coordinates<F>]) {
        let mut inverse = self.product.inverse().expect("no denominator is 0");
        for addition in self.additions.iter().rev() {
            let from = addition.from as usize;
            let denominator_inverse = inverse.times(&addition.product);
            inverse = inverse.times(&addition.denominator);
            sums[addition.to as usize] =
                affine_sum(&points[from], &points[from + 1], denominator_inverse);
        }
        self.additions.clear();
        self.product = F::ONE;
    }
}

/// The denominator of the slope through p and q; 1 where there is none.
#[inline]
fn slope_denominator<F: Products>(p: &Coordinates<F>, q: &Coordinates<F>) -> F {
    if p.x != q.x {
        // If one is neutral, this is a coordinate of the other, and not used. No point of these
        // curves has x = 0 together with a neutral partner, because then both x are equal.
        q.x - p.x
    } else if p.y == q.y && !p.y.is_zero() {
        // No point of these curves has y = 0: their order is odd.
        p.y.double()
    } else {
        F::ONE
    }
}

#[inline]
fn affine_sum<F: Products>(
    p: &Coordinates<F>,
    q: &Coordinates<F>,
    denominator_inverse: F,
) -> Coordinates<F> {
    if p.is_neutral() {
        return *q;
    }
    if q.is_neutral() {
        return *p;
    }
    let slope = if p.x != q.x {
        (q.y - p.y).times(&denominator_inverse)
    } else if p.y == q.y {
        // Both curves are y² = x³ + b.
        let square = p.x.squared();
        (square.double() + square).times(&denominator_inverse)
    } else {
        return Coordinates::NEUTRAL;
    };
    let x = slope.squared() - p.x - q.x;
    let y = slope.times(&(p.x - x)) - p.y;
    Coordinates { x, y }
}

/// Σ (i + 1)·points[i] for 2^k points: with i = row·m + column this is
/// m·Σ row·R + Σ column·C + Σ R over the sums R of rows and C of columns, which are affine.
fn weighted_sum<P: SWCurveConfig<BaseField: Products>>(
    points: &[Coordinates<P::BaseField>],
) -> Projective<P> {
    let log = points.len().trailing_zeros();
    let columns = 1usize << (log / 2);
    let rows = points.len() / columns;
    let row_sums = reduce_runs(points.to_vec(), vec![columns as u32; rows]);
    let transposed = (0..points.len()).map(|i| points[(i % rows) * columns + i / rows]).collect();
    let column_sums = reduce_runs(transposed, vec![rows as u32; columns]);
    let (mut by_row, total) = index_weighted_sum(&row_sums);
    for _ in 0..log / 2 {
        by_row.double_in_place();
    }
    by_row + index_weighted_sum(&column_sums).0 + total
}

/// Σ i·points[i] and Σ points[i].
fn index_weighted_sum<P: SWCurveConfig>(
    points: &[Coordinates<P::BaseField>],
) -> (Projective<P>, Projective<P>) {
    let mut running = Projective::<P>::zero();
    let mut weighted = Projective::<P>::zero();
    for point in points.iter().rev() {
        weighted += running;
        running += point.to_affine::<P>();
    }
    (weighted, running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::{g1, g2, G1Affine};
    use ark_ff::UniformRand;
    use rand::rngs::OsRng;

    fn agrees<P: SWCurveConfig<ScalarField = Fr, BaseField: Products>>(
        bases: &[Affine<P>],
        scalars: &[Fr],
    ) {
        let integers: Vec<BigInteger256> = scalars.iter().map(|s| s.into_bigint()).collect();
        let expected: Projective<P> = bases.iter().zip(scalars).map(|(b, s)| *b * s).sum();
        assert_eq!(Table::new(bases).sum(&integers), expected);
    }

    fn random<P: SWCurveConfig<ScalarField = Fr>>(count: usize) -> (Vec<Affine<P>>, Vec<Fr>) {
        let bases = (0..count).map(|_| Projective::<P>::rand(&mut OsRng).into_affine()).collect();
        (bases, (0..count).map(|_| Fr::rand(&mut OsRng)).collect())
    }

    #[test]
    fn a_sum_equals_its_definition() {
        for count in [0, 1, 2, 33, 1_100] {
            let (bases, scalars) = random::<g1::Config>(count);
            agrees(&bases, &scalars);
        }
        let (bases, scalars) = random::<g2::Config>(40);
        agrees(&bases, &scalars);
    }

    #[test]
    fn extreme_scalars_and_equal_opposite_and_neutral_bases_are_summed() {
        let (mut bases, mut scalars) = random::<g1::Config>(40);
        bases[1] = bases[0];
        bases[2] = -bases[0];
        bases[3] = G1Affine::identity();
        for i in 0..8 {
            bases[10 + i] = bases[9];
            scalars[10 + i] = scalars[9];
        }
        scalars[0] = scalars[1];
        scalars[2] = scalars[1];
        let half = Fr::from(Fr::MODULUS_MINUS_ONE_DIV_TWO);
        let extremes =
            [Fr::ZERO, Fr::ONE, -Fr::ONE, Fr::from(2048u64), Fr::from(4096u64), half, -half];
        scalars[20..27].copy_from_slice(&extremes);
        agrees(&bases, &scalars);
        agrees(&vec![bases[0]; 64], &vec![-Fr::ONE; 64]);
        agrees(&bases, &vec![Fr::ZERO; 40]);
    }
}
