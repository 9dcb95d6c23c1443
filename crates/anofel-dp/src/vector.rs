//! Many samples at once.

use crate::discrete_gaussian;
use crate::error::NoiseError;
use crate::skellam::Skellam;
use rand::rngs::OsRng;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

/// Samples drawn from one ChaCha20 stream; every stream has its own seed from the operating system.
const CHUNK: usize = 1 << 14;

fn fill(values: &mut [i64], draw: impl Fn(&mut ChaCha20Rng) -> i64 + Sync) {
    values.par_chunks_mut(CHUNK).for_each(|chunk| {
        let mut seed = [0u8; 32];
        OsRng.fill_bytes(&mut seed);
        let mut rng = ChaCha20Rng::from_seed(seed);
        for value in chunk {
            *value = draw(&mut rng);
        }
    });
}

/// `count` independent samples of the exact discrete Gaussian N_Z(0, σ²).
pub fn discrete_gaussian(sigma: u64, count: usize) -> Result<Vec<i64>, NoiseError> {
    discrete_gaussian::check_sigma(sigma)?;
    let mut values = vec![0; count];
    fill(&mut values, |rng| discrete_gaussian::sample(rng, sigma));
    Ok(values)
}

/// `count` independent Skellam samples of variance at least σ².
pub fn skellam(sigma: u64, count: usize) -> Result<Vec<i64>, NoiseError> {
    let sampler = Skellam::new(sigma)?;
    let mut values = vec![0; count];
    fill(&mut values, |rng| sampler.sample(rng));
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_calls_share_nothing() {
        let first = discrete_gaussian(1 << 30, 64).expect("in range");
        let second = discrete_gaussian(1 << 30, 64).expect("in range");
        assert!(first.iter().zip(&second).all(|(a, b)| a != b));
    }

    #[test]
    fn chunks_are_independent_streams() {
        let values = skellam(1 << 20, 2 * CHUNK).expect("in range");
        assert_ne!(values[..CHUNK], values[CHUNK..]);
    }
}
