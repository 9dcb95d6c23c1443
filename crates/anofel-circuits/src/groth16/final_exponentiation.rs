//! The final exponentiation of a pairing, by the chain of Fuentes-Castañeda, Knapp and
//! Rodríguez-Henríquez (2011) that `ark-ec` has too.
//!
//! Written here because most of it are squarings in the cyclotomic subgroup, and these are done in
//! registers where the processor has AVX-512 IFMA (see [`super::cyclotomic`]).

use ark_bn254::{Bn254, Config, Fq12};
use ark_ec::bn::BnConfig;
use ark_ec::pairing::MillerLoopOutput;
use ark_ff::biginteger::arithmetic::find_naf;
use ark_ff::{CyclotomicMultSubgroup, Field};

#[cfg(target_arch = "x86_64")]
use crate::groth16::cyclotomic::squared_in_registers;

/// f^((q¹² − 1)/r), up to a power that `ark-ec` has too; none if f is 0.
pub fn final_exponentiation(f: MillerLoopOutput<Bn254>) -> Option<Fq12> {
    let f = f.0;
    // f^((q⁶ − 1)·(q² + 1)): conjugates are inverses from here on.
    let f = conjugate(f) * f.inverse()?;
    let f = frobenius(f, 2) * f;

    let to_2x = squared(&conjugate(to_x(&f)), 1);
    let to_6x = squared(&to_2x, 1) * to_2x;
    let to_6xx = conjugate(to_x(&to_6x));
    let to_12xxx = to_x(&squared(&to_6xx, 1));
    let a = conjugate(to_6x) * to_12xxx * to_6xx;
    let b = a * to_2x;
    let c = a * to_6xx * f;
    Some(frobenius(b, 1) * c * frobenius(a, 2) * frobenius(conjugate(f) * b, 3))
}

/// f^x for the parameter x of the curve.
fn to_x(f: &Fq12) -> Fq12 {
    let inverse = conjugate(*f);
    let mut digits = find_naf(Config::X).into_iter().rev().skip_while(|digit| *digit == 0);
    // The highest digit is 1.
    digits.next();
    let (mut power, mut squarings) = (*f, 0);
    for digit in digits {
        squarings += 1;
        if digit != 0 {
            power = squared(&power, squarings) * if digit > 0 { f } else { &inverse };
            squarings = 0;
        }
    }
    squared(&power, squarings)
}

/// f^(2^times).
fn squared(f: &Fq12, times: usize) -> Fq12 {
    #[cfg(target_arch = "x86_64")]
    if let Some(power) = squared_in_registers(f, times) {
        return power;
    }
    let mut power = *f;
    for _ in 0..times {
        power.cyclotomic_square_in_place();
    }
    power
}

fn conjugate(mut f: Fq12) -> Fq12 {
    f.cyclotomic_inverse_in_place();
    f
}

fn frobenius(mut f: Fq12, times: usize) -> Fq12 {
    f.frobenius_map_in_place(times);
    f
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::{G1Projective, G2Projective};
    use ark_ec::pairing::Pairing;
    use ark_ff::{AdditiveGroup, UniformRand};
    use rand::rngs::OsRng;

    #[test]
    fn it_equals_that_of_ark() {
        let point = || (G1Projective::rand(&mut OsRng), G2Projective::rand(&mut OsRng));
        for (left, right) in [point(), point()] {
            let product = Bn254::multi_miller_loop([left], [right]);
            let expected = Bn254::final_exponentiation(product).expect("not 0").0;
            assert_eq!(final_exponentiation(product), Some(expected));
            for times in [0, 1, 2, 63] {
                let mut power = expected;
                for _ in 0..times {
                    power.cyclotomic_square_in_place();
                }
                assert_eq!(squared(&expected, times), power);
            }
        }
        assert_eq!(final_exponentiation(MillerLoopOutput(Fq12::ONE)), Some(Fq12::ONE));
        assert_eq!(final_exponentiation(MillerLoopOutput(Fq12::ZERO)), None);
    }
}
