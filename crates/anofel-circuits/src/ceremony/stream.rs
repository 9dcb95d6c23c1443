//! Points and numbers from hashes, as snarkjs draws them.
//!
//! The stream is ChaCha20 with a 32-byte seed whose words are big-endian, counter and nonce 0. A
//! field element is four 64-bit words, lowest first, each of two 32-bit words, higher first; the
//! highest two bits are dropped, values from the modulus on are drawn again, and the words are the
//! Montgomery form. A point is drawn by its x, and a bit chooses the sign of y.

use anofel_primitives::Fr;
use ark_bn254::{g2, Fq, Fq2, G1Affine, G2Affine};
use ark_ec::short_weierstrass::SWCurveConfig;
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// A stream of numbers and points.
pub struct Stream(ChaCha20Rng);

impl Stream {
    /// The stream of a seed.
    pub fn new(seed: &[u8; 32]) -> Self {
        let words = Zeroizing::new(std::array::from_fn(|i| seed[i / 4 * 4 + 3 - i % 4]));
        Self(ChaCha20Rng::from_seed(*words))
    }

    /// The stream of a beacon: SHA-256 applied 2^exponent times.
    pub fn of_beacon(beacon: &[u8], exponent: u8) -> Self {
        let mut seed: [u8; 32] = Sha256::digest(beacon).into();
        for _ in 1..1u64 << exponent {
            seed = Sha256::digest(seed).into();
        }
        Self::new(&seed)
    }

    fn limbs(&mut self) -> BigInt<4> {
        let mut word = || {
            let high = u64::from(self.0.next_u32());
            high << 32 | u64::from(self.0.next_u32())
        };
        let mut limbs: [u64; 4] = std::array::from_fn(|_| word());
        limbs[3] &= u64::MAX >> 2;
        BigInt(limbs)
    }

    /// A number modulo the order of the groups.
    pub fn scalar(&mut self) -> Fr {
        loop {
            let value = self.limbs();
            if value < Fr::MODULUS {
                return Fr::new_unchecked(value);
            }
        }
    }

    fn coordinate(&mut self) -> Fq {
        loop {
            let value = self.limbs();
            if value < Fq::MODULUS {
                return Fq::new_unchecked(value);
            }
        }
    }

    fn bit(&mut self) -> bool {
        self.0.next_u32() & 1 == 1
    }

    /// A point of G1 whose logarithm nobody knows.
    pub fn g1(&mut self) -> G1Affine {
        loop {
            let (x, greater) = (self.coordinate(), self.bit());
            if let Some(y) = (x * x * x + Fq::from(3u64)).sqrt() {
                return G1Affine::new_unchecked(x, if greater == is_greater(&y) { y } else { -y });
            }
        }
    }

    /// A point of G2 whose logarithm nobody knows.
    pub fn g2(&mut self) -> G2Affine {
        loop {
            let x = Fq2::new(self.coordinate(), self.coordinate());
            let greater = self.bit();
            if let Some(y) = (x * x * x + g2::Config::COEFF_B).sqrt() {
                let found = is_greater(if y.c1 == Fq::ZERO { &y.c0 } else { &y.c1 });
                let y = if greater == found { y } else { -y };
                return G2Affine::new_unchecked(x, y).mul_by_cofactor();
            }
        }
    }
}

/// Whether −y is smaller.
fn is_greater(y: &Fq) -> bool {
    y.into_bigint() > Fq::MODULUS_MINUS_ONE_DIV_TWO
}

/// The point of G2 that stands for a challenge.
pub fn hash_to_g2(challenge: &[u8; 64]) -> G2Affine {
    let (seed, _) = challenge.split_at(32);
    Stream::new(&std::array::from_fn(|i| seed[i])).g2()
}
