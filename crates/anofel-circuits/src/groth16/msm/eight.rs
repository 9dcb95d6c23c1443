//! Eight additions at a time, where the processor has AVX-512 IFMA.
//!
//! Coordinates stay in the Montgomery form of `ark-ff`, while a product here gives a·b/16 (see
//! [`super::lanes`]). In these products x/16 and y/16 are the coordinates, and with a quarter of
//! the slope, s = λ/4, the sum is x₃/16 = s² − x₁/16 − x₂/16 and y₃/16 = 4·s·(x₁/16 − x₃/16) − y₁/16. A
//! quarter of every slope is had by a quarter of the one inverse that they share.

use ark_bn254::{Fq, Fq2};
use ark_ff::batch_inversion;

use crate::groth16::msm::adder::Adder;
use crate::groth16::msm::coordinates::{Coordinates, Products};
use crate::groth16::msm::lanes::{canonical, Eight, Ifma, Line, LANES};

/// Adds eight points to eight others at once; leaves sums of equal and of opposite points to others.
pub struct EightAtOnce(Ifma);

impl EightAtOnce {
    /// None where the processor cannot.
    pub fn new() -> Option<Self> {
        Ifma::try_new().map(Self)
    }
}

/// A field of coordinates, eight elements at a time. Elements are below 3·p in memory, 8·p in
/// registers.
pub trait Octets: Products {
    /// The lines of a point.
    type Point: Copy + Send + Sync;
    /// Eight elements.
    type Eight: Copy;

    /// The lines of a point.
    fn lines(point: &Coordinates<Self>) -> Self::Point;
    /// The coordinates in a point's lines.
    fn coordinates(point: &Self::Point) -> Coordinates<Self>;
    /// Eight points' x and y.
    fn load(simd: Ifma, points: [&Self::Point; LANES]) -> (Self::Eight, Self::Eight);
    /// Eight points.
    fn store(simd: Ifma, x: Self::Eight, y: Self::Eight) -> [Self::Point; LANES];
    /// 1 among these products.
    fn unit(simd: Ifma) -> Self::Eight;
    /// a·b/16.
    fn multiply(simd: Ifma, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// a²/16.
    fn multiply_by_itself(simd: Ifma, a: Self::Eight) -> Self::Eight;
    /// a − b, of elements below 3·p.
    fn difference(simd: Ifma, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// a − b − c, of elements below 3·p.
    fn minus_both(simd: Ifma, a: Self::Eight, b: Self::Eight, c: Self::Eight) -> Self::Eight;
    /// 4·a − b, of elements below 3·p.
    fn four_times_minus(simd: Ifma, a: Self::Eight, b: Self::Eight) -> Self::Eight;
}

impl Octets for Fq {
    type Point = Line;
    type Eight = Eight;

    #[inline]
    fn lines(point: &Coordinates<Self>) -> Line {
        Line::of_numbers(&point.x, &point.y)
    }

    fn coordinates(point: &Line) -> Coordinates<Self> {
        Coordinates { x: canonical(&point.0[..4]), y: canonical(&point.0[4..]) }
    }

    #[inline(always)]
    fn load(simd: Ifma, points: [&Line; LANES]) -> (Eight, Eight) {
        Eight::of_lines(simd, points)
    }

    #[inline(always)]
    fn store(simd: Ifma, x: Eight, y: Eight) -> [Line; LANES] {
        Eight::to_lines(simd, x, y)
    }

    #[inline(always)]
    fn unit(simd: Ifma) -> Eight {
        Eight::one(simd)
    }

    #[inline(always)]
    fn multiply(simd: Ifma, a: Eight, b: Eight) -> Eight {
        Eight::products(simd, [(a, b)])
    }

    #[inline(always)]
    fn multiply_by_itself(simd: Ifma, a: Eight) -> Eight {
        Eight::products(simd, [(a, a)])
    }

    #[inline(always)]
    fn difference(simd: Ifma, a: Eight, b: Eight) -> Eight {
        a.minus::<4>(simd, b)
    }

    #[inline(always)]
    fn minus_both(simd: Ifma, a: Eight, b: Eight, c: Eight) -> Eight {
        a.minus_both(simd, b, c)
    }

    #[inline(always)]
    fn four_times_minus(simd: Ifma, a: Eight, b: Eight) -> Eight {
        a.four_times_minus(simd, b)
    }
}

impl Octets for Fq2 {
    type Point = [Line; 2];
    type Eight = [Eight; 2];

    #[inline]
    fn lines(point: &Coordinates<Self>) -> [Line; 2] {
        [Line::of_numbers(&point.x.c0, &point.x.c1), Line::of_numbers(&point.y.c0, &point.y.c1)]
    }

    fn coordinates(point: &[Line; 2]) -> Coordinates<Self> {
        let [x, y] =
            point.map(|Line(words)| Self::new(canonical(&words[..4]), canonical(&words[4..])));
        Coordinates { x, y }
    }

    #[inline(always)]
    fn load(simd: Ifma, points: [&[Line; 2]; LANES]) -> ([Eight; 2], [Eight; 2]) {
        let (x, y) = (points.map(|point| &point[0]), points.map(|point| &point[1]));
        (Eight::of_lines(simd, x).into(), Eight::of_lines(simd, y).into())
    }

    #[inline(always)]
    fn store(simd: Ifma, x: [Eight; 2], y: [Eight; 2]) -> [[Line; 2]; LANES] {
        let (x, y) = (Eight::to_lines(simd, x[0], x[1]), Eight::to_lines(simd, y[0], y[1]));
        std::array::from_fn(|i| [x[i], y[i]])
    }

    #[inline(always)]
    fn unit(simd: Ifma) -> [Eight; 2] {
        [Eight::one(simd), Eight::zero(simd)]
    }

    /// (a₀ + a₁·u)·(b₀ + b₁·u) with u² = −1.
    #[inline(always)]
    fn multiply(simd: Ifma, a: [Eight; 2], b: [Eight; 2]) -> [Eight; 2] {
        let minus = Eight::zero(simd).minus::<8>(simd, a[1]);
        [
            Eight::products(simd, [(a[0], b[0]), (minus, b[1])]),
            Eight::products(simd, [(a[0], b[1]), (a[1], b[0])]),
        ]
    }

    #[inline(always)]
    fn multiply_by_itself(simd: Ifma, a: [Eight; 2]) -> [Eight; 2] {
        let (sum, difference) = (a[0].plus(simd, a[1]), a[0].minus::<4>(simd, a[1]));
        let twice = a[0].plus(simd, a[0]);
        [Eight::products(simd, [(sum, difference)]), Eight::products(simd, [(twice, a[1])])]
    }

    #[inline(always)]
    fn difference(simd: Ifma, a: [Eight; 2], b: [Eight; 2]) -> [Eight; 2] {
        [a[0].minus::<4>(simd, b[0]), a[1].minus::<4>(simd, b[1])]
    }

    #[inline(always)]
    fn minus_both(simd: Ifma, a: [Eight; 2], b: [Eight; 2], c: [Eight; 2]) -> [Eight; 2] {
        [a[0].minus_both(simd, b[0], c[0]), a[1].minus_both(simd, b[1], c[1])]
    }

    #[inline(always)]
    fn four_times_minus(simd: Ifma, a: [Eight; 2], b: [Eight; 2]) -> [Eight; 2] {
        [a[0].four_times_minus(simd, b[0]), a[1].four_times_minus(simd, b[1])]
    }
}

impl<F: Octets> Adder<F> for EightAtOnce {
    type Point = F::Point;

    const TOGETHER: usize = 8192;

    #[inline]
    fn take(&self, point: &Coordinates<F>, negative: bool) -> F::Point {
        F::lines(&Coordinates { x: point.x, y: if negative { -point.y } else { point.y } })
    }

    fn sum_runs(
        &self,
        mut points: Vec<F::Point>,
        mut counts: Vec<u32>,
    ) -> Option<Vec<Option<F::Point>>> {
        let (mut pairs, mut waiting) = (Vec::new(), Vec::new());
        while counts.iter().any(|count| *count > 1) {
            // Sums first, then the points that are left over, each into its place.
            let length = counts.iter().map(|count| count.div_ceil(2) as usize).sum();
            let mut sums = vec![points[0]; length];
            pairs.clear();
            let (mut from, mut to) = (0, 0);
            for count in &mut counts {
                for _ in 0..*count / 2 {
                    pairs.push((from as u32, to as u32));
                    (from, to) = (from + 2, to + 1);
                }
                if *count % 2 == 1 {
                    sums[to] = points[from];
                    (from, to) = (from + 1, to + 1);
                }
                *count = count.div_ceil(2);
            }
            self.add_pairs::<F>(&points, &pairs, &mut sums, &mut waiting)?;
            points = sums;
        }
        let mut rest = points.into_iter();
        Some(counts.iter().map(|count| if *count == 1 { rest.next() } else { None }).collect())
    }

    fn give(&self, point: F::Point) -> Coordinates<F> {
        F::coordinates(&point)
    }
}

/// Chains of products, so that one need not wait for another.
const CHAINS: usize = 4;

/// The differences of x of eight pairs, and the product of those before them in their chain.
type Waiting<F> = Vec<(<F as Octets>::Eight, <F as Octets>::Eight)>;

impl EightAtOnce {
    /// sums[to] = points[from] + points[from + 1] for all pairs (from, to), with one inversion.
    /// None if two points have the same x.
    fn add_pairs<F: Octets>(
        &self,
        points: &[F::Point],
        pairs: &[(u32, u32)],
        sums: &mut [F::Point],
        waiting: &mut Waiting<F>,
    ) -> Option<()> {
        waiting.clear();
        let lanes = self.0.vectorize(Forward::<F> { simd: self.0, points, pairs, waiting });
        let mut inverses: Vec<F> = lanes.iter().map(|point| F::coordinates(point).x).collect();
        if inverses.iter().any(|product| product.is_zero()) {
            return None;
        }
        batch_inversion(&mut inverses);
        // The product is t/16 here, and a quarter of its inverse 4/t, for which 64/t stands.
        let lanes = std::array::from_fn(|i| {
            let quarter = F::from(64u64) * inverses[i];
            F::lines(&Coordinates { x: quarter, y: quarter })
        });
        self.0.vectorize(Backward::<F> { simd: self.0, points, pairs, sums, waiting, lanes });
        Some(())
    }
}

/// From pairs of points to the product of the differences of their x, lane by lane.
struct Forward<'a, F: Octets> {
    simd: Ifma,
    points: &'a [F::Point],
    pairs: &'a [(u32, u32)],
    waiting: &'a mut Waiting<F>,
}

impl<F: Octets> pulp::NullaryFnOnce for Forward<'_, F> {
    type Output = [F::Point; LANES];

    #[inline(always)]
    fn call(self) -> [F::Point; LANES] {
        let Self { simd, points, pairs, waiting } = self;
        let mut products = [F::unit(simd); CHAINS];
        for (place, pairs) in pairs.chunks(LANES).enumerate() {
            let ((left, _), (right, _)) = load_pairs::<F>(simd, points, pairs);
            let difference = F::difference(simd, right, left);
            let product = &mut products[place % CHAINS];
            waiting.push((difference, *product));
            *product = F::multiply(simd, *product, difference);
        }
        // The chains become one.
        for chain in 1..CHAINS {
            waiting.push((products[chain], products[0]));
            products[0] = F::multiply(simd, products[0], products[chain]);
        }
        F::store(simd, products[0], products[0])
    }
}

/// From the inverses of these products to the sums of the pairs.
struct Backward<'a, F: Octets> {
    simd: Ifma,
    points: &'a [F::Point],
    pairs: &'a [(u32, u32)],
    sums: &'a mut [F::Point],
    waiting: &'a mut Waiting<F>,
    lanes: [F::Point; LANES],
}

impl<F: Octets> pulp::NullaryFnOnce for Backward<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, points, pairs, sums, waiting, lanes } = self;
        let (inverse, _) = F::load(simd, std::array::from_fn(|lane| &lanes[lane]));
        let mut inverses = [inverse; CHAINS];
        for chain in (1..CHAINS).rev() {
            let (product, before) = waiting[pairs.len().div_ceil(LANES) + chain - 1];
            inverses[chain] = F::multiply(simd, inverses[0], before);
            inverses[0] = F::multiply(simd, inverses[0], product);
        }
        for (place, pairs) in pairs.chunks(LANES).enumerate().rev() {
            let ((left_x, left_y), (right_x, right_y)) = load_pairs::<F>(simd, points, pairs);
            let (difference, before) = waiting[place];
            let inverse = &mut inverses[place % CHAINS];
            let quotient = F::multiply(simd, *inverse, before);
            *inverse = F::multiply(simd, *inverse, difference);
            let slope = F::multiply(simd, quotient, F::difference(simd, right_y, left_y));
            let x = F::minus_both(simd, F::multiply_by_itself(simd, slope), left_x, right_x);
            let rise = F::multiply(simd, slope, F::difference(simd, left_x, x));
            let y = F::four_times_minus(simd, rise, left_y);
            for ((_, to), sum) in pairs.iter().zip(F::store(simd, x, y)) {
                sums[*to as usize] = sum;
            }
        }
    }
}

type Eights<F> = (<F as Octets>::Eight, <F as Octets>::Eight);

/// The coordinates of eight pairs; where there are fewer, of the last one again.
#[inline(always)]
fn load_pairs<F: Octets>(
    simd: Ifma,
    points: &[F::Point],
    pairs: &[(u32, u32)],
) -> (Eights<F>, Eights<F>) {
    let from = |lane: usize| pairs[lane.min(pairs.len() - 1)].0 as usize;
    let left = F::load(simd, std::array::from_fn(|lane| &points[from(lane)]));
    let right = F::load(simd, std::array::from_fn(|lane| &points[from(lane) + 1]));
    (left, right)
}
