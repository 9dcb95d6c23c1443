//! Exact coins: every probability here is met exactly, given uniform random words.

use rand::RngCore;

/// A uniform integer in `[0, bound)`, by Lemire's multiplication with rejection.
///
/// `gen_range` of `rand` is as exact, but rejects up to half of its words, and this is the inner loop.
pub fn uniform_below(rng: &mut impl RngCore, bound: u64) -> u64 {
    debug_assert!(bound > 0);
    let mut product = u128::from(rng.next_u64()) * u128::from(bound);
    if (product as u64) < bound {
        // The lowest 2^64 mod bound residues are the surplus that would make some results likelier.
        let surplus = bound.wrapping_neg() % bound;
        while (product as u64) < surplus {
            product = u128::from(rng.next_u64()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

/// A uniform integer in `[0, bound)` for bounds beyond 64 bits, by masking and rejection.
fn uniform_below_wide(rng: &mut impl RngCore, bound: u128) -> u128 {
    if let Ok(narrow) = u64::try_from(bound) {
        return u128::from(uniform_below(rng, narrow));
    }
    let mask = u128::MAX >> bound.leading_zeros();
    loop {
        let candidate = ((u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64())) & mask;
        if candidate < bound {
            return candidate;
        }
    }
}

/// Whether a coin of probability exp(−1) comes up heads.
pub fn bernoulli_exp_minus_one(rng: &mut impl RngCore) -> bool {
    bernoulli_exp_unit(rng, 1, 1)
}

/// Whether a coin of probability exp(−numerator/denominator) comes up heads, for a fraction in [0, 1].
///
/// Algorithm 1 of Canonne, Kamath and Steinke: count how long a run of coins with
/// probabilities γ/1, γ/2, γ/3 … lasts; the parity of its length has probability exp(−γ).
pub fn bernoulli_exp_unit(rng: &mut impl RngCore, numerator: u128, denominator: u128) -> bool {
    debug_assert!(numerator <= denominator && denominator > 0);
    let mut k: u128 = 1;
    while uniform_below_wide(rng, denominator * k) < numerator {
        k += 1;
    }
    k % 2 == 1
}

/// Whether a coin of probability exp(−numerator/denominator) comes up heads, for any fraction ≥ 0.
pub fn bernoulli_exp(rng: &mut impl RngCore, numerator: u128, denominator: u128) -> bool {
    for _ in 0..numerator / denominator {
        if !bernoulli_exp_minus_one(rng) {
            return false;
        }
    }
    bernoulli_exp_unit(rng, numerator % denominator, denominator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    #[test]
    fn coins_meet_their_probability() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        const DRAWS: u32 = 200_000;
        for (numerator, denominator) in [(0u128, 7u128), (1, 2), (1, 1), (7, 3), (3 << 80, 1 << 81)]
        {
            let heads =
                (0..DRAWS).filter(|_| bernoulli_exp(&mut rng, numerator, denominator)).count();
            let expected = (-(numerator as f64) / denominator as f64).exp();
            // Hoeffding: fails with probability below 2·exp(−2·n·t²) < 1e-9.
            let tolerance = ((2e9f64).ln() / (2.0 * f64::from(DRAWS))).sqrt();
            assert!((heads as f64 / f64::from(DRAWS) - expected).abs() < tolerance);
        }
    }

    #[test]
    fn uniform_reaches_every_value_and_no_other() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[usize::try_from(uniform_below(&mut rng, 7)).expect("below 7")] += 1;
        }
        assert!(seen.iter().all(|count| (800..1_200).contains(count)));
        assert!((0..1_000).all(|_| uniform_below_wide(&mut rng, (1 << 70) + 1) <= 1 << 70));
    }
}
