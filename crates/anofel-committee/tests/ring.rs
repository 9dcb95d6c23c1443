//! The ring against schoolbook arithmetic, and the distributions.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use anofel_committee::ring::{
    add, centred_binomial, expand_public, forward, inverse, reduce_once, residue, root_of_unity,
    subtract, Multiplier, CBD_WIDTH, DEGREE, MODULUS,
};
use common::rng;
use proptest::prelude::*;
use rand::Rng;

/// Σ a_i·b_j·X^(i+j) with X^N = −1, by its definition.
fn schoolbook(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut product = vec![0u64; DEGREE];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            let term = (u128::from(x) * u128::from(y) % u128::from(MODULUS)) as u64;
            let at = (i + j) % DEGREE;
            product[at] = if i + j < DEGREE {
                (product[at] + term) % MODULUS
            } else {
                (product[at] + MODULUS - term) % MODULUS
            };
        }
    }
    product
}

#[test]
fn a_product_by_transforms_is_the_schoolbook_product() {
    let mut rng = rng(1);
    let a: Vec<u64> = (0..DEGREE).map(|_| rng.gen_range(0..MODULUS)).collect();
    let extremes = [0, 1, MODULUS - 1, MODULUS / 2];
    let b: Vec<u64> = (0..DEGREE).map(|i| extremes[(i * i + rng.gen_range(0..4)) % 4]).collect();
    let mut left: Box<[u64; DEGREE]> = a.clone().into_boxed_slice().try_into().unwrap();
    let mut right: Box<[u64; DEGREE]> = b.clone().into_boxed_slice().try_into().unwrap();
    forward(&mut left);
    forward(&mut right);
    for (x, y) in left.iter_mut().zip(right.iter()) {
        *x = Multiplier::new(*y).times(*x);
    }
    inverse(&mut left);
    assert_eq!(left.to_vec(), schoolbook(&a, &b));
}

#[test]
fn the_modulus_is_the_largest_prime_below_two_to_46_that_is_one_modulo_4096() {
    let is_prime = |n: u64| {
        n % 2 == 1 && (3u64..).step_by(2).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
    };
    assert!(is_prime(MODULUS));
    let larger = (MODULUS + 4096..1 << 46).step_by(4096);
    assert!(larger.clone().count() > 0 && !larger.into_iter().any(is_prime));
}

#[test]
fn the_root_has_order_4096() {
    let root = Multiplier::new(root_of_unity());
    let power = (0..DEGREE).fold(1, |power, _| root.times(power));
    assert_eq!(power, MODULUS - 1);
}

#[test]
fn the_forward_transform_evaluates_at_odd_powers_in_reversed_order() {
    let mut rng = rng(2);
    let coefficients: Vec<u64> = (0..DEGREE).map(|_| rng.gen_range(0..MODULUS)).collect();
    let mut values: Box<[u64; DEGREE]> =
        coefficients.clone().into_boxed_slice().try_into().unwrap();
    forward(&mut values);
    for index in [0, 1, 2, 777, DEGREE - 1] {
        let reversed = index.reverse_bits() >> (usize::BITS - 11);
        let root = Multiplier::new(root_of_unity());
        let point = Multiplier::new((0..2 * reversed + 1).fold(1, |power, _| root.times(power)));
        let expected = coefficients.iter().rev().fold(0, |sum, c| add(point.times(sum), *c));
        assert_eq!(values[index], expected);
    }
}

#[test]
fn the_largest_residues_do_not_overflow() {
    let largest = Box::new([MODULUS - 1; DEGREE]);
    let mut values = largest.clone();
    forward(&mut values);
    assert!(values.iter().all(|value| *value < MODULUS));
    inverse(&mut values);
    assert!(values == largest);
    let mut alternating = Box::new(std::array::from_fn(|i| (i as u64 % 2) * (MODULUS - 1)));
    let before = alternating.clone();
    inverse(&mut alternating);
    assert!(alternating.iter().all(|value| *value < MODULUS));
    forward(&mut alternating);
    assert!(alternating == before);
}

#[test]
fn public_polynomials_differ_by_seed_and_index() {
    let one = expand_public(&[1; 32], 0);
    assert!(one.iter().all(|value| *value < MODULUS));
    assert_ne!(one, expand_public(&[1; 32], 1));
    assert_ne!(one, expand_public(&[2; 32], 0));
    assert_eq!(one, expand_public(&[1; 32], 0));
}

#[test]
fn the_centred_binomial_has_its_mean_variance_and_support() {
    let mut rng = rng(3);
    let samples: Vec<i64> = (0..1 << 18).map(|_| centred_binomial(&mut rng)).collect();
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<i64>() as f64 / count;
    let variance = samples.iter().map(|x| (x * x) as f64).sum::<f64>() / count;
    assert!(samples.iter().all(|x| x.abs() <= CBD_WIDTH));
    // Six deviations of the estimators: 4/√n and 16·√2/√n.
    assert!(mean.abs() < 6.0 * 4.0 / count.sqrt(), "mean {mean}");
    assert!((variance - 16.0).abs() < 6.0 * 16.0 * 1.42 / count.sqrt(), "variance {variance}");
}

proptest! {
    #[test]
    fn the_transform_is_undone(seed: u64) {
        let mut rng = rng(seed);
        let before: Box<[u64; DEGREE]> =
            (0..DEGREE).map(|_| rng.gen_range(0..MODULUS)).collect::<Vec<_>>().into_boxed_slice().try_into().unwrap();
        let mut after = before.clone();
        forward(&mut after);
        prop_assert_ne!(&before, &after);
        inverse(&mut after);
        prop_assert_eq!(before, after);
    }

    #[test]
    fn arithmetic_agrees_with_wide_integers(a in 0..MODULUS, b in 0..MODULUS, any: u64, small in -1_000_000i64..1_000_000) {
        prop_assert_eq!(add(a, b), (a + b) % MODULUS);
        prop_assert_eq!(subtract(a, b), (a + MODULUS - b) % MODULUS);
        prop_assert_eq!(reduce_once(a + b), (a + b) % MODULUS);
        let product = u128::from(a) * u128::from(any) % u128::from(MODULUS);
        prop_assert_eq!(u128::from(Multiplier::new(a).times(any)), product);
        prop_assert_eq!(i128::from(residue(small)), i128::from(small).rem_euclid(i128::from(MODULUS)));
    }
}
