//! The exact discrete Gaussian N_Z(0, σ²) and the discrete Laplace it is drawn from.
//!
//! C. Canonne, G. Kamath, T. Steinke, *The Discrete Gaussian for Differential Privacy*,
//! arXiv 2004.00010, algorithms 1 to 3. No floating-point number is involved.
//!
//! σ is a positive integer. At the scales of a task (σ in the thousands) rounding it up
//! costs next to nothing, and it makes the acceptance exponent (|x| − σ)² / 2σ² a fraction
//! of small integers, which is what makes an exact sampler fast.

use crate::bernoulli::{bernoulli_exp, bernoulli_exp_minus_one, bernoulli_exp_unit, uniform_below};
use crate::error::NoiseError;
use rand::RngCore;

/// σ may be at most 2^40, so that (|x| − σ)² fits 128 bits with room to spare.
pub const MAX_SIGMA_BITS: u32 = 40;

/// Refuse a standard deviation outside `[1, 2^40]`.
pub fn check_sigma(sigma: u64) -> Result<(), NoiseError> {
    if sigma == 0 || sigma > 1 << MAX_SIGMA_BITS {
        return Err(NoiseError::SigmaOutOfRange { sigma, max_bits: MAX_SIGMA_BITS });
    }
    Ok(())
}

/// One sample of the discrete Laplace with Pr\[x\] ∝ exp(−|x| / scale) (algorithm 2).
pub fn sample_laplace(rng: &mut impl RngCore, scale: u64) -> i64 {
    loop {
        let remainder = uniform_below(rng, scale);
        if !bernoulli_exp_unit(rng, u128::from(remainder), u128::from(scale)) {
            continue;
        }
        let mut quotient: u64 = 0;
        while bernoulli_exp_minus_one(rng) {
            quotient += 1;
        }
        let magnitude = (remainder + scale * quotient) as i64;
        let negative = rng.next_u32() & 1 == 1;
        if negative && magnitude == 0 {
            continue; // zero must not be counted for both signs
        }
        return if negative { -magnitude } else { magnitude };
    }
}

/// One sample of N_Z(0, σ²) (algorithm 3, with the Laplace scale t = σ). `sigma` must pass [`check_sigma`].
pub fn sample(rng: &mut impl RngCore, sigma: u64) -> i64 {
    loop {
        let candidate = sample_laplace(rng, sigma);
        let distance = u128::from(candidate.unsigned_abs().abs_diff(sigma));
        let sigma = u128::from(sigma);
        if bernoulli_exp(rng, distance * distance, 2 * sigma * sigma) {
            return candidate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    /// The statistical tests fail on a correct sampler with this probability each.
    const ERROR_PROBABILITY: f64 = 1e-9;

    /// Largest distance between empirical and exact distribution function.
    fn distance(samples: &mut [i64], cdf: impl Fn(i64) -> f64) -> f64 {
        samples.sort_unstable();
        let n = samples.len() as f64;
        let mut worst: f64 = 0.0;
        for (rank, window) in samples.windows(2).enumerate() {
            if window[0] != window[1] {
                worst = worst.max(((rank as f64 + 1.0) / n - cdf(window[0])).abs());
            }
        }
        worst
    }

    /// Dvoretzky–Kiefer–Wolfowitz with Massart's constant.
    fn tolerance(n: usize) -> f64 {
        ((2.0 / ERROR_PROBABILITY).ln() / (2.0 * n as f64)).sqrt()
    }

    #[test]
    fn distribution_is_the_discrete_gaussian() {
        for sigma in [1u64, 2, 5, 40, 1_000] {
            let mut rng = ChaCha20Rng::seed_from_u64(sigma);
            let mut samples: Vec<i64> = (0..200_000).map(|_| sample(&mut rng, sigma)).collect();
            let reach = 14 * sigma as i64;
            let weights: Vec<f64> = (-reach..=reach)
                .map(|x| (-(x as f64).powi(2) / (2.0 * (sigma as f64).powi(2))).exp())
                .collect();
            let total: f64 = weights.iter().sum();
            let cumulative: Vec<f64> = weights
                .iter()
                .scan(0.0, |sum, weight| {
                    *sum += weight / total;
                    Some(*sum)
                })
                .collect();
            let limit = tolerance(samples.len());
            let worst = distance(&mut samples, |x| cumulative[(x + reach) as usize]);
            assert!(worst < limit, "sigma {sigma}: {worst} is not below {limit}");
        }
    }

    #[test]
    fn wide_sigma_has_its_variance() {
        let sigma = 1u64 << MAX_SIGMA_BITS;
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let n = 100_000;
        let sum: f64 =
            (0..n).map(|_| (sample(&mut rng, sigma) as f64 / sigma as f64).powi(2)).sum();
        // Chi-square with n degrees of freedom: |mean − 1| < 0.03 fails with probability below 1e-9.
        assert!((sum / f64::from(n) - 1.0).abs() < 0.03);
    }

    #[test]
    fn sigma_out_of_range_is_refused() {
        assert!(check_sigma(0).is_err());
        assert!(check_sigma((1 << MAX_SIGMA_BITS) + 1).is_err());
        assert!(check_sigma(1).is_ok());
    }
}
