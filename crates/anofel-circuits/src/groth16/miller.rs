//! The Miller loop over several pairs.
//!
//! Written here because the one of `ark-ec` takes prepared points by value, 20 kB each to copy for
//! every proof, and goes through a pool of threads, also for three pairs: waking a thread costs more
//! than it could save, most of all where many proofs are checked at the same time.

use ark_bn254::{Bn254, Config, Fq12, G1Affine};
use ark_ec::bn::BnConfig;
use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::AffineRepr;
use ark_ff::Field;

type G2Prepared = <Bn254 as Pairing>::G2Prepared;

/// Π f(P, Q), of which the final exponentiation makes Π e(P, Q). A neutral point makes a factor of 1.
pub fn miller_loop<const N: usize>(pairs: [(G1Affine, &G2Prepared); N]) -> MillerLoopOutput<Bn254> {
    let mut pairs = pairs.map(|(point, prepared)| (point, prepared.ell_coeffs.iter()));
    let mut product = Fq12::ONE;
    // The next line of every pair, at its point.
    let mut next_lines = |product: &mut Fq12| {
        for (point, lines) in &mut pairs {
            // A neutral point of G2 has no lines.
            let Some((at_y, at_x, constant)) = lines.next() else { continue };
            if point.is_zero() {
                continue;
            }
            let (mut at_y, mut at_x) = (*at_y, *at_x);
            at_y.mul_assign_by_fp(&point.y);
            at_x.mul_assign_by_fp(&point.x);
            product.mul_by_034(&at_y, &at_x, constant);
        }
    };
    for (step, digit) in Config::ATE_LOOP_COUNT.iter().rev().skip(1).enumerate() {
        if step > 0 {
            product.square_in_place();
        }
        next_lines(&mut product);
        if *digit != 0 {
            next_lines(&mut product);
        }
    }
    // The two lines through the images of Q under Frobenius's map.
    next_lines(&mut product);
    next_lines(&mut product);
    MillerLoopOutput(product)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::{G1Projective, G2Affine, G2Projective};
    use ark_ec::CurveGroup;
    use ark_ff::UniformRand;
    use rand::rngs::OsRng;

    #[test]
    fn a_product_of_pairings_equals_that_of_ark() {
        let mut left = [(); 3].map(|()| G1Projective::rand(&mut OsRng).into_affine());
        let mut right = [(); 3].map(|()| G2Projective::rand(&mut OsRng).into_affine());
        let agrees = |left: [G1Affine; 3], right: [G2Affine; 3]| {
            let prepared = right.map(G2Prepared::from);
            let ours = miller_loop([0, 1, 2].map(|i| (left[i], &prepared[i])));
            let ours = Bn254::final_exponentiation(ours).expect("not 0");
            assert_eq!(ours, Bn254::multi_pairing(left, right));
        };
        agrees(left, right);
        left[1] = G1Affine::identity();
        agrees(left, right);
        right[2] = G2Affine::identity();
        agrees(left, right);
    }
}
