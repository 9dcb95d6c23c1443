//! The constants of Poseidon from the generator of its authors, where a table of them would be too long.
//!
//! `light-poseidon` keeps the same numbers as code, 1.6 MB of it; a page that is sent over a line has no room
//! for that. A test compares all of them. The generator is the Grain LFSR of the Poseidon paper, appendix E,
//! for a prime field of 254 bits and the S-box x^5.

use ark_ff::{BigInt, BigInteger, Field, PrimeField};

use crate::hash::Parameters;
use crate::Fr;

const FIELD_BITS: usize = 254;
const FULL_ROUNDS: usize = 8;
/// For the widths 2 to 9, as circomlib has them.
const PARTIAL_ROUNDS: [usize; 8] = [56, 57, 56, 60, 60, 63, 64, 63];
const STATE_BITS: usize = 80;
const TAPS: [usize; 6] = [62, 51, 38, 23, 13, 0];

/// The register: its bits, the next one at `at`.
struct Grain {
    bits: [bool; STATE_BITS],
    at: usize,
}

impl Grain {
    fn new(width: usize, partial_rounds: usize) -> Self {
        let fields = [
            (1, 2), // a prime field
            (0, 4), // the S-box is a power
            (FIELD_BITS, 12),
            (width, 12),
            (FULL_ROUNDS, 10),
            (partial_rounds, 10),
            ((1 << 30) - 1, 30),
        ];
        let mut bits = [false; STATE_BITS];
        let written = fields
            .iter()
            .flat_map(|&(value, size)| (0..size).rev().map(move |bit| value >> bit & 1 == 1));
        bits.iter_mut().zip(written).for_each(|(bit, value)| *bit = value);
        let mut grain = Self { bits, at: 0 };
        for _ in 0..160 {
            grain.step();
        }
        grain
    }

    fn step(&mut self) -> bool {
        let bit = TAPS.iter().fold(false, |sum, tap| sum ^ self.bits[(self.at + tap) % STATE_BITS]);
        self.bits[self.at] = bit;
        self.at = (self.at + 1) % STATE_BITS;
        bit
    }

    /// Of each pair of bits the second counts, if the first is 1.
    fn bit(&mut self) -> bool {
        loop {
            let (chosen, bit) = (self.step(), self.step());
            if chosen {
                return bit;
            }
        }
    }

    fn number(&mut self) -> BigInt<4> {
        let bits: Vec<bool> = (0..FIELD_BITS).map(|_| self.bit()).collect();
        BigInt::from_bits_be(&bits)
    }

    /// A number below the modulus; larger ones are drawn again.
    fn constant(&mut self) -> Fr {
        loop {
            if let Some(constant) = Fr::from_bigint(self.number()) {
                return constant;
            }
        }
    }

    /// A number modulo the modulus.
    fn reduced(&mut self) -> Fr {
        Fr::from_le_bytes_mod_order(&self.number().to_bytes_le())
    }
}

/// The parameters for a width from 2 to 9.
pub(crate) fn parameters(width: usize) -> Parameters {
    let partial_rounds = PARTIAL_ROUNDS[width - 2];
    let mut grain = Grain::new(width, partial_rounds);
    let constants = (0..(FULL_ROUNDS + partial_rounds) * width).map(|_| grain.constant()).collect();
    // A Cauchy matrix; the numbers of every width here differ, and no two have the sum zero.
    let drawn: Vec<Fr> = (0..2 * width).map(|_| grain.reduced()).collect();
    let (rows, columns) = drawn.split_at(width);
    let mds = rows
        .iter()
        .map(|x| columns.iter().map(|y| (*x + y).inverse().unwrap_or_default()).collect())
        .collect();
    Parameters { width, full_rounds: FULL_ROUNDS, partial_rounds, constants, mds }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use light_poseidon::parameters::bn254_x5::get_poseidon_parameters;

    use super::*;

    #[test]
    fn every_width_has_the_constants_of_light_poseidon() {
        for width in 2..=9 {
            let theirs = get_poseidon_parameters::<Fr>(width as u8).expect("it has these widths");
            let ours = parameters(width);
            assert_eq!(
                (ours.full_rounds, ours.partial_rounds),
                (theirs.full_rounds, theirs.partial_rounds)
            );
            assert_eq!(ours.constants, theirs.ark, "width {width}");
            assert_eq!(ours.mds, theirs.mds, "width {width}");
        }
    }
}
