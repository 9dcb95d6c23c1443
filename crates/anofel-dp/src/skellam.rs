//! The Skellam distribution: the difference of two Poisson variables.
//!
//! N. Agarwal, P. Kairouz, Z. Liu, *The Skellam Mechanism for Differentially Private Federated
//! Learning*, arXiv 2110.04995. A Poisson variable of mean λ is drawn by rejection from the exact
//! discrete Laplace of scale ⌈√λ⌉ around λ. The acceptance probability is a 64-bit float: its
//! relative error is estimated below 2^−40 for every value within 12 standard deviations (by hand, and tested at sample points), and the comparison with a
//! 64-bit uniform adds an absolute error of 2^−63. So each sample's distribution is within a factor exp(±2^−39)
//! of a Skellam variable up to an absolute error of 2^−60. Where that matters, use the discrete Gaussian, which is exact.

use crate::discrete_gaussian::sample_laplace;
use crate::error::NoiseError;
use rand::RngCore;

/// σ may be at most 2^25: beyond, λ = σ²/2 leaves the range in which 64-bit floats count exactly.
pub const MAX_SIGMA_BITS: u32 = 25;

/// Below this ratio the deviance is summed as a series, since the closed form would cancel.
const SERIES_LIMIT: f64 = 0.05;

/// Where the rejection sampler of one Poisson variable stands: mean, proposal scale, envelope.
#[derive(Debug, Clone)]
struct Poisson {
    mean: f64,
    scale: u64,
    log_envelope: f64,
}

impl Poisson {
    /// The sampler for an integer mean of at least 1.
    fn new(mean: u64) -> Self {
        let scale = ((mean as f64).sqrt().ceil() as u64).max(1);
        let mut poisson = Self { mean: mean as f64, scale, log_envelope: 0.0 };
        // log p(mean + j) + |j|/scale is concave on either side of the mean (p is log-concave),
        // so a ternary search finds the largest value on each side.
        let right = poisson.maximum(0, 4 * scale as i64 + 4);
        let left = poisson.maximum(-(mean as i64).min(4 * scale as i64 + 4), 0);
        // The margin covers the rounding of the search itself; it only costs acceptance.
        poisson.log_envelope = right.max(left) + 1e-9;
        poisson
    }

    fn maximum(&self, low: i64, high: i64) -> f64 {
        let (mut low, mut high) = (low, high);
        while high - low > 2 {
            let third = (high - low) / 3;
            if self.log_ratio(low + third) < self.log_ratio(high - third) {
                low += third;
            } else {
                high -= third;
            }
        }
        (low..=high).map(|j| self.log_ratio(j)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// log of (Poisson probability of mean + j) / (Laplace weight of j), up to a constant.
    fn log_ratio(&self, j: i64) -> f64 {
        let count = self.mean + j as f64;
        if count < 0.0 {
            return f64::NEG_INFINITY;
        }
        if count == 0.0 {
            // p(0) = exp(−λ); the constant of Stirling's formula below is ½·log 2π.
            return -self.mean
                + 0.5 * (2.0 * std::f64::consts::PI).ln()
                + j.unsigned_abs() as f64 / self.scale as f64;
        }
        -self.mean * deviance(j as f64 / self.mean) - 0.5 * count.ln() - stirling_correction(count)
            + j.unsigned_abs() as f64 / self.scale as f64
    }

    fn sample_centred(&self, rng: &mut impl RngCore) -> i64 {
        loop {
            let j = sample_laplace(rng, self.scale);
            let accept = (self.log_ratio(j) - self.log_envelope).exp();
            // 2^−64 · uniform < accept, with 64 random bits.
            if (rng.next_u64() as f64) < accept * 18_446_744_073_709_551_616.0 {
                return j;
            }
        }
    }
}

/// (1 + r)·log(1 + r) − r, without cancellation for small r.
fn deviance(r: f64) -> f64 {
    if r.abs() >= SERIES_LIMIT {
        return (1.0 + r) * r.ln_1p() - r;
    }
    // Σ_{n≥2} (−r)^n / (n·(n−1)), summed from the smallest term: 0.05^14 is below 2^−60.
    let mut sum = 0.0;
    for n in (2..=14).rev() {
        let n = f64::from(n);
        sum = 1.0 / (n * (n - 1.0)) - r * sum;
    }
    r * r * sum
}

/// log k! − (k·log k − k + ½·log(2π·k)).
fn stirling_correction(count: f64) -> f64 {
    if count < 16.0 {
        let log_factorial: f64 = (1..=count as u32).map(|i| f64::from(i).ln()).sum();
        return log_factorial
            - (count * count.ln() - count + 0.5 * (2.0 * std::f64::consts::PI * count).ln());
    }
    let square = count * count;
    (1.0 / 12.0
        - (1.0 / 360.0
            - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square) / square)
            / square)
        / count
}

/// A Skellam sampler of integer variance at least σ² (the next even number).
#[derive(Debug, Clone)]
pub struct Skellam {
    half: Poisson,
}

impl Skellam {
    /// Prepare the sampler; raises for σ outside `[1, 2^25]`.
    pub fn new(sigma: u64) -> Result<Self, NoiseError> {
        if sigma == 0 || sigma > 1 << MAX_SIGMA_BITS {
            return Err(NoiseError::SigmaOutOfRange { sigma, max_bits: MAX_SIGMA_BITS });
        }
        Ok(Self { half: Poisson::new((sigma * sigma).div_ceil(2)) })
    }

    /// One sample.
    pub fn sample(&self, rng: &mut impl RngCore) -> i64 {
        self.half.sample_centred(rng) - self.half.sample_centred(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    /// Exact Poisson probabilities by the recurrence p(k+1) = p(k)·λ/(k+1).
    fn poisson_table(mean: u64) -> Vec<f64> {
        let mut table = vec![(-(mean as f64)).exp()];
        for k in 1..(20 * mean + 60) {
            table.push(table[table.len() - 1] * mean as f64 / k as f64);
        }
        table
    }

    #[test]
    fn small_skellam_matches_the_convolution() {
        for sigma in [1u64, 2, 5] {
            let table = poisson_table((sigma * sigma).div_ceil(2));
            let probability = |x: i64| -> f64 {
                (0..table.len() as i64)
                    .filter(|k| (0..table.len() as i64).contains(&(k + x)))
                    .map(|k| table[(k + x) as usize] * table[k as usize])
                    .sum()
            };
            let skellam = Skellam::new(sigma).expect("in range");
            let mut rng = ChaCha20Rng::seed_from_u64(sigma);
            const DRAWS: usize = 200_000;
            let mut counts = std::collections::HashMap::new();
            for _ in 0..DRAWS {
                *counts.entry(skellam.sample(&mut rng)).or_insert(0usize) += 1;
            }
            // Hoeffding at error probability 1e-9 for each point.
            let tolerance = ((2e9f64).ln() / (2.0 * DRAWS as f64)).sqrt();
            for x in -4 * sigma as i64..=4 * sigma as i64 {
                let frequency = *counts.get(&x).unwrap_or(&0) as f64 / DRAWS as f64;
                assert!((frequency - probability(x)).abs() < tolerance, "sigma {sigma}, value {x}");
            }
        }
    }

    #[test]
    fn log_ratio_follows_the_recurrence_exactly() {
        // p(k+1)/p(k) = λ/(k+1) is the definition; the float formula must follow it to 2^−40.
        for mean in [3u64, 50, 10_000, 134_217_728, 1 << 45] {
            let poisson = Poisson::new(mean);
            let reach = (12.0 * (mean as f64).sqrt()) as i64;
            for j in [-reach / 2, -reach / 7, -1, 0, 1, reach / 9, reach / 2, reach] {
                if mean as i64 + j < 1 {
                    continue;
                }
                let step = poisson.log_ratio(j + 1) - poisson.log_ratio(j);
                let laplace = ((j + 1).abs() - j.abs()) as f64 / poisson.scale as f64;
                let exact = -((j as f64 + 1.0) / mean as f64).ln_1p();
                assert!((step - laplace - exact).abs() < 2f64.powi(-40), "mean {mean}, j {j}");
            }
        }
    }

    #[test]
    fn envelope_is_never_exceeded() {
        for mean in [1u64, 2, 7, 1_000, 100_000] {
            let poisson = Poisson::new(mean);
            let reach = 20 * poisson.scale as i64;
            assert!((-reach..reach).all(|j| poisson.log_ratio(j) <= poisson.log_envelope));
        }
    }

    #[test]
    fn large_skellam_has_its_variance() {
        let sigma = 1u64 << MAX_SIGMA_BITS;
        let skellam = Skellam::new(sigma).expect("in range");
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let n = 100_000;
        let sum: f64 =
            (0..n).map(|_| (skellam.sample(&mut rng) as f64 / sigma as f64).powi(2)).sum();
        assert!((sum / f64::from(n) - 1.0).abs() < 0.03);
        assert!(Skellam::new(0).is_err());
        assert!(Skellam::new(sigma + 1).is_err());
    }
}
