//! The public inputs' part of the equation: Σ x·IC over a few points that the key fixes.

use anofel_primitives::Fr;
use ark_bn254::{G1Affine, G1Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::PrimeField;

use crate::groth16::msm::{fold, for_each_digit};

/// Bits of a window.
const WINDOW: usize = 6;
/// Digits of a scalar, and one more bit for the carry of signed digits.
const WINDOWS: usize = (Fr::MODULUS_BIT_SIZE as usize + 1).div_ceil(WINDOW);
/// Multiples for a digit: 1 to half of the window.
const MULTIPLES: usize = 1 << (WINDOW - 1);

/// Multiples m·2^(6·j)·P of the points of the public inputs, so that a sum has no doublings. They
/// take 88 kB for each input.
#[derive(Debug, Clone)]
pub struct InputTable {
    constant: G1Affine,
    multiples: Vec<G1Affine>,
}

impl InputTable {
    /// Of the points for the constant one and each input, in this order.
    pub fn new(points: &[G1Affine]) -> Self {
        let mut multiples = Vec::with_capacity((points.len() - 1) * WINDOWS * MULTIPLES);
        for point in &points[1..] {
            let mut base = point.into_group();
            for _ in 0..WINDOWS {
                let mut multiple = base;
                for _ in 0..MULTIPLES {
                    multiples.push(multiple);
                    multiple += base;
                }
                // The last one is half of the window.
                base = multiples[multiples.len() - 1] + multiples[multiples.len() - 1];
            }
        }
        Self { constant: points[0], multiples: G1Projective::normalize_batch(&multiples) }
    }

    /// The number of inputs.
    pub fn len(&self) -> usize {
        self.multiples.len() / (WINDOWS * MULTIPLES)
    }

    /// The point of the constant, and each input times its point. The inputs are public: its time
    /// depends on them.
    pub fn sum(&self, inputs: &[Fr]) -> G1Projective {
        let mut total = self.constant.into_group();
        for (input, multiples) in inputs.iter().zip(self.multiples.chunks(WINDOWS * MULTIPLES)) {
            let (magnitude, negative) = fold(&input.into_bigint());
            for_each_digit(&magnitude, WINDOW, |j, digit| {
                let point = multiples[j * MULTIPLES + digit.unsigned_abs() as usize - 1];
                if (digit < 0) == negative {
                    total += point;
                } else {
                    total -= point;
                }
            });
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, Field, UniformRand};
    use rand::rngs::OsRng;

    #[test]
    fn a_sum_equals_its_definition() {
        let points: Vec<G1Affine> =
            (0..4).map(|_| G1Projective::rand(&mut OsRng).into_affine()).collect();
        let table = InputTable::new(&points);
        assert_eq!(table.len(), 3);
        let half = Fr::from(Fr::MODULUS_MINUS_ONE_DIV_TWO);
        let random = || Fr::rand(&mut OsRng);
        for inputs in [
            [Fr::ZERO, Fr::ONE, -Fr::ONE],
            [half, -half, Fr::from(32u64)],
            [Fr::from(33u64), -Fr::from(31u64), Fr::from(64u64)],
            [random(), random(), random()],
        ] {
            let expected = inputs
                .iter()
                .zip(&points[1..])
                .fold(points[0].into_group(), |sum, (x, point)| sum + *point * x);
            assert_eq!(table.sum(&inputs), expected);
        }
    }
}
