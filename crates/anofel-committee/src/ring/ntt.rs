//! The negacyclic number-theoretic transform, with Shoup's precomputed quotients.
//!
//! `forward` takes coefficients to values: entry i is the polynomial at ψ^(2·rev(i)+1), where ψ
//! is [`root_of_unity`] and rev reverses 11 bits. `inverse` undoes it. No library is used because
//! none on the registry offers this ring without a whole homomorphic encryption stack.

use std::sync::OnceLock;

use super::{add, reduce_once, subtract, Polynomial, DEGREE, MODULUS};

/// A factor with ⌊factor·2^64/q⌋, so that a product modulo q takes two multiplications.
#[derive(Clone, Copy, Default)]
pub struct Multiplier {
    factor: u64,
    quotient: u64,
}

impl Multiplier {
    /// Precomputes for a residue. The division takes time that may depend on the residue.
    pub fn new(factor: u64) -> Self {
        Self { factor, quotient: ((u128::from(factor) << 64) / u128::from(MODULUS)) as u64 }
    }

    /// factor·value mod q for any 64-bit value.
    #[inline]
    pub fn times(self, value: u64) -> u64 {
        let estimate = ((u128::from(self.quotient) * u128::from(value)) >> 64) as u64;
        reduce_once(self.factor.wrapping_mul(value).wrapping_sub(estimate.wrapping_mul(MODULUS)))
    }
}

struct Tables {
    forward: Vec<Multiplier>,
    inverse: Vec<Multiplier>,
    scale: Multiplier,
}

/// ψ: the smallest base b ≥ 2 for which b^((q−1)/2N) has order 2N gives ψ = b^((q−1)/2N).
pub fn root_of_unity() -> u64 {
    let exponent = (MODULUS - 1) / (2 * DEGREE as u64);
    (2..)
        .map(|base| power(base, exponent))
        .find(|&root| power(root, DEGREE as u64) == MODULUS - 1)
        .expect("q is prime and 2N divides q - 1, so half of all bases qualify")
}

/// Coefficients to values, in place.
pub fn forward(values: &mut Polynomial) {
    let tables = tables();
    let mut length = DEGREE / 2;
    let mut groups = 1;
    while groups < DEGREE {
        for (block, twiddle) in
            values.chunks_exact_mut(2 * length).zip(&tables.forward[groups..2 * groups])
        {
            let (low, high) = block.split_at_mut(length);
            for (u, v) in low.iter_mut().zip(high) {
                let product = twiddle.times(*v);
                (*u, *v) = (add(*u, product), subtract(*u, product));
            }
        }
        length /= 2;
        groups *= 2;
    }
}

/// Values to coefficients, in place.
pub fn inverse(values: &mut Polynomial) {
    let tables = tables();
    let mut length = 1;
    let mut groups = DEGREE / 2;
    while groups >= 1 {
        for (block, twiddle) in
            values.chunks_exact_mut(2 * length).zip(&tables.inverse[groups..2 * groups])
        {
            let (low, high) = block.split_at_mut(length);
            for (u, v) in low.iter_mut().zip(high) {
                (*u, *v) = (add(*u, *v), twiddle.times(*u + MODULUS - *v));
            }
        }
        length *= 2;
        groups /= 2;
    }
    for value in values.iter_mut() {
        *value = tables.scale.times(*value);
    }
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let root = root_of_unity();
        let inverse_root = power(root, MODULUS - 2);
        Tables {
            forward: powers_in_reversed_order(root),
            inverse: powers_in_reversed_order(inverse_root),
            scale: Multiplier::new(power(DEGREE as u64, MODULUS - 2)),
        }
    })
}

fn powers_in_reversed_order(root: u64) -> Vec<Multiplier> {
    let mut powers = vec![Multiplier::default(); DEGREE];
    let mut power = 1;
    let step = Multiplier::new(root);
    for index in 0..DEGREE {
        let reversed = index.reverse_bits() >> (usize::BITS - DEGREE.trailing_zeros());
        powers[reversed] = Multiplier::new(power);
        power = step.times(power);
    }
    powers
}

fn power(base: u64, mut exponent: u64) -> u64 {
    let mut result = 1;
    let mut square = Multiplier::new(base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = square.times(result);
        }
        square = Multiplier::new(square.times(square.factor));
        exponent >>= 1;
    }
    result
}
