//! Secret randomness for work that runs in parallel: one seed, and so one generator, per task.

use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use zeroize::{optimization_barrier, Zeroizing};

/// Fresh seeds.
pub fn seeds(count: usize, rng: &mut (impl RngCore + CryptoRng)) -> Zeroizing<Vec<[u8; 32]>> {
    let mut seeds = Zeroizing::new(vec![[0; 32]; count]);
    seeds.iter_mut().for_each(|seed| rng.fill_bytes(seed));
    seeds
}

/// Draws from the generator of a seed.
pub fn with_generator<T>(seed: &[u8; 32], draw: impl FnOnce(&mut ChaCha20Rng) -> T) -> T {
    let mut rng = ChaCha20Rng::from_seed(*seed);
    let drawn = draw(&mut rng);
    // The generator holds the seed and its last output, and does not wipe itself.
    rng = ChaCha20Rng::from_seed([0; 32]);
    optimization_barrier(&rng);
    drawn
}
