//! Sums of scalar multiples of points that are known in advance.
//!
//! For every base P the table holds 2^(w·s·q)·P, where w is the window width and s the number of
//! bucket sets. A scalar is cut into signed windows; window j = q·s + t takes the q-th multiple
//! into one of the 2^(w−1) buckets of set t. So a sum needs no doublings but the few at its
//! end, and all additions into buckets are affine ones that share their inversions.
//!
//! Running times depend on the scalars, as in every prover in use; a client proves on its own
//! machine.

mod adder;
mod coordinates;
#[cfg(target_arch = "x86_64")]
mod eight;
#[cfg(not(target_arch = "x86_64"))]
#[path = "eight_elsewhere.rs"]
mod eight;
#[cfg(target_arch = "x86_64")]
pub(crate) mod lanes;

use anofel_primitives::Fr;
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInteger, BigInteger256, PrimeField, Zero};
use rayon::prelude::*;
use zeroize::Zeroize;

use self::adder::{Adder, OneByOne};
pub use self::coordinates::{Coordinates, Products};
use self::eight::EightAtOnce;
pub use self::eight::Octets;

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

/// Multiples of fixed bases, and which scalar each base belongs to.
#[derive(Clone)]
pub struct Table<P: SWCurveConfig> {
    layout: Layout,
    /// For every base, the position of its scalar. Bases that are the neutral element are left out.
    scalars: Vec<u32>,
    /// `multiples` points for every base.
    points: Vec<Coordinates<P::BaseField>>,
}

impl<P: SWCurveConfig<BaseField: Octets>> Table<P> {
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
        let (mut entries, counts) = self.sort_by_bucket(scalars);
        let eight = EightAtOnce::new();
        let sums = eight.and_then(|adder| self.lines(&adder, &entries, &counts));
        let sums = sums.or_else(|| self.lines(&OneByOne, &entries, &counts));
        // The digits of the scalars.
        entries.zeroize();
        self.add_sets(&sums.expect("one by one, every addition is known"))
    }

    fn add_sets(&self, sets: &[Lines<P::BaseField>]) -> Projective<P> {
        let mut total = Projective::<P>::zero();
        for set in sets.iter().rev() {
            for _ in 0..self.layout.window {
                total.double_in_place();
            }
            total += set.weighted_sum::<P>();
        }
        total
    }

    /// The sums of lines of buckets, for every set; none if this way of adding leaves a case out.
    fn lines<A: Adder<P::BaseField>>(
        &self,
        adder: &A,
        entries: &[u32],
        counts: &[u32],
    ) -> Option<Vec<Lines<P::BaseField>>> {
        let buckets = self.bucket_sums(adder, entries, counts)?;
        buckets.par_chunks(self.layout.buckets()).map(|set| Lines::of_buckets(adder, set)).collect()
    }

    /// The sum of the points in every bucket, set after set.
    fn bucket_sums<A: Adder<P::BaseField>>(
        &self,
        adder: &A,
        entries: &[u32],
        counts: &[u32],
    ) -> Option<Vec<Option<A::Point>>> {
        // Ranges of buckets whose points stay in the cache, to be worked on in parallel.
        let mut ranges = Vec::new();
        let (mut bucket, mut start) = (0, 0);
        while bucket < counts.len() {
            let (first, from) = (bucket, start);
            while bucket < counts.len() && start - from < A::TOGETHER {
                start += counts[bucket] as usize;
                bucket += 1;
            }
            ranges.push((&entries[from..start], &counts[first..bucket]));
        }
        let sums: Option<Vec<_>> = ranges
            .into_par_iter()
            .map(|(entries, counts)| {
                // Copied first, so that the scattered reads overlap each other.
                let take =
                    |entry: &u32| adder.take(&self.points[(entry >> 1) as usize], entry & 1 == 1);
                adder.sum_runs(entries.iter().map(take).collect(), counts.to_vec())
            })
            .collect();
        Some(sums?.concat())
    }

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

/// Sums of the rows and of the columns of buckets that are laid out in a rectangle.
struct Lines<F> {
    rows: Vec<Coordinates<F>>,
    columns: Vec<Coordinates<F>>,
}

impl<F: Products> Lines<F> {
    fn of_buckets<A: Adder<F>>(adder: &A, buckets: &[Option<A::Point>]) -> Option<Self> {
        let columns = 1usize << (buckets.len().trailing_zeros() / 2);
        let rows = buckets.len() / columns;
        let sums = |lines: usize, bucket: &dyn Fn(usize, usize) -> usize| {
            let (mut points, mut counts) = (Vec::new(), Vec::new());
            for line in 0..lines {
                let before = points.len();
                let places = (0..buckets.len() / lines).map(|place| bucket(line, place));
                points.extend(places.filter_map(|place| buckets[place]));
                counts.push((points.len() - before) as u32);
            }
            let sums = adder.sum_runs(points, counts)?;
            let give =
                |sum: Option<A::Point>| sum.map_or(Coordinates::NEUTRAL, |sum| adder.give(sum));
            Some(sums.into_iter().map(give).collect())
        };
        Some(Self {
            rows: sums(rows, &|row, column| row * columns + column)?,
            columns: sums(columns, &|column, row| row * columns + column)?,
        })
    }

    /// Σ (i + 1)·bucket[i]: with i = row·m + column this is m·Σ row·R + Σ column·C + Σ R over the
    /// sums R of rows and C of columns.
    fn weighted_sum<P: SWCurveConfig<BaseField = F>>(&self) -> Projective<P> {
        let (mut by_row, total) = index_weighted_sum(&self.rows);
        for _ in 0..self.columns.len().trailing_zeros() {
            by_row.double_in_place();
        }
        by_row + index_weighted_sum(&self.columns).0 + total
    }
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
    use ark_ff::{Field, UniformRand};
    use rand::rngs::OsRng;

    fn agrees<P: SWCurveConfig<ScalarField = Fr, BaseField: Octets>>(
        bases: &[Affine<P>],
        scalars: &[Fr],
    ) {
        let integers: Vec<BigInteger256> = scalars.iter().map(|s| s.into_bigint()).collect();
        let expected: Projective<P> = bases.iter().zip(scalars).map(|(b, s)| *b * s).sum();
        let table = Table::new(bases);
        assert_eq!(table.sum(&integers), expected);
        // Whichever way `sum` takes on this machine.
        let (entries, counts) = table.sort_by_bucket(&integers);
        let lines = table.lines(&OneByOne, &entries, &counts).expect("it knows every case");
        assert_eq!(table.add_sets(&lines), expected);
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

    fn eight_at_once_is_enough<P: SWCurveConfig<ScalarField = Fr, BaseField: Octets>>(n: usize) {
        let Some(adder) = EightAtOnce::new() else { return };
        let (bases, mut scalars) = random::<P>(n);
        scalars[1] = Fr::ZERO;
        let integers: Vec<BigInteger256> = scalars.iter().map(|s| s.into_bigint()).collect();
        let table = Table::new(&bases);
        let (entries, counts) = table.sort_by_bucket(&integers);
        let lines = table.lines(&adder, &entries, &counts).expect("no two points are equal");
        let expected: Projective<P> = bases.iter().zip(&scalars).map(|(b, s)| *b * s).sum();
        assert_eq!(table.add_sets(&lines), expected);
    }

    #[test]
    fn eight_additions_at_once_give_the_same_sum() {
        for bases in [2, 7, 150, 1_000] {
            eight_at_once_is_enough::<g1::Config>(bases);
            eight_at_once_is_enough::<g2::Config>(bases);
        }
    }

    #[test]
    fn eight_at_once_leaves_equal_and_opposite_points_to_others() {
        let Some(adder) = EightAtOnce::new() else { return };
        let (mut bases, mut scalars) = random::<g1::Config>(2);
        for opposite in [bases[0], -bases[0]] {
            bases[1] = opposite;
            scalars[1] = scalars[0];
            let integers: Vec<BigInteger256> = scalars.iter().map(|s| s.into_bigint()).collect();
            let table = Table::new(&bases);
            let (entries, counts) = table.sort_by_bucket(&integers);
            assert!(table.lines(&adder, &entries, &counts).is_none());
        }
    }
}
