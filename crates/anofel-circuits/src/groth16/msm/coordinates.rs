//! Points by their coordinates, and products in the fields of coordinates.

use ark_bn254::{Fq, Fq2};
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{AdditiveGroup, Field};

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
    pub(crate) const NEUTRAL: Self = Self { x: F::ZERO, y: F::ZERO };

    pub(crate) fn is_neutral(&self) -> bool {
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
