//! Sums of runs of affine points, whose additions share their inversions.

use ark_ff::Field;

use crate::groth16::msm::coordinates::{Coordinates, Products};

/// A way to add points up. All ways give the same sums.
pub trait Adder<F: Field>: Sync {
    /// A point while it is added to others.
    type Point: Copy + Send + Sync;

    /// How many points are worked on together: enough to share an inversion, few enough to stay
    /// in the cache.
    const TOGETHER: usize;

    /// A point that is not neutral, or its negative.
    fn take(&self, point: &Coordinates<F>, negative: bool) -> Self::Point;

    /// Adds up runs of consecutive points, `counts[i]` points in the i-th run; the sum of an empty
    /// run and a neutral sum are none. None for all of them where an addition needs a case that
    /// this way leaves to another one.
    fn sum_runs(
        &self,
        points: Vec<Self::Point>,
        counts: Vec<u32>,
    ) -> Option<Vec<Option<Self::Point>>>;

    /// The coordinates of a point.
    fn give(&self, point: Self::Point) -> Coordinates<F>;
}

/// One addition after the other; it knows every case.
pub struct OneByOne;

impl<F: Products> Adder<F> for OneByOne {
    type Point = Coordinates<F>;

    const TOGETHER: usize = 4096;

    #[inline]
    fn take(&self, point: &Coordinates<F>, negative: bool) -> Coordinates<F> {
        Coordinates { x: point.x, y: if negative { -point.y } else { point.y } }
    }

    fn sum_runs(
        &self,
        mut points: Vec<Coordinates<F>>,
        mut counts: Vec<u32>,
    ) -> Option<Vec<Option<Coordinates<F>>>> {
        let mut batch = Batch::default();
        while counts.iter().any(|count| *count > 1) {
            points = halve_runs(&mut batch, &points, &mut counts);
        }
        let mut rest = points.into_iter();
        let sums = counts.iter().map(|count| if *count == 1 { rest.next() } else { None });
        Some(sums.map(|sum| sum.filter(|point| !point.is_neutral())).collect())
    }

    fn give(&self, point: Coordinates<F>) -> Coordinates<F> {
        point
    }
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
