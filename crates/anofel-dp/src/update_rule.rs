//! The rules `integer-mean`, `integer-adam` and `integer-yogi`: how the owner turns a sum of updates into the next model (step 8′).
//!
//! v′ = round(β·v / 2^16) + round(lr_num·S / (lr_den·count)), m′ = m + v′,
//! with round half to even, 128-bit intermediates, and overflow an error. Everyone who
//! applies it to the same integers gets the same model to the last bit.
//!
//! With a bound M on the norm of the mean, S is shortened first: let R = ⌈√(ΣS²)⌉ and L = M·count.
//! If R > L, every entry of S becomes round(S·L / R); otherwise S stays. So the norm of the mean is
//! at most M and half a step of the sum per entry, whoever lied how much.

use crate::error::UpdateError;
use rayon::prelude::*;
use std::borrow::Cow;

/// β is given in units of 2^−16.
pub const MOMENTUM_BITS: u32 = 16;

const LIMIT: u64 = 1 << 62;

/// The rational numbers of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerMean {
    momentum: u32,
    rate: (u64, u64),
    numerator: i128,
    denominator: i128,
    max_norm: Option<i128>,
}

impl IntegerMean {
    /// The rule for one iteration: β = `momentum`/2^16 in \[0, 1), learning rate `lr_num`/`lr_den` > 0, `count`
    /// contributors, and perhaps M = `max_mean`, a bound on the norm of their mean.
    pub fn new(
        momentum: u32,
        lr_num: u64,
        lr_den: u64,
        count: u64,
        max_mean: Option<u64>,
    ) -> Result<Self, UpdateError> {
        if momentum >= 1 << MOMENTUM_BITS {
            return Err(UpdateError::BadRule("a momentum below 1"));
        }
        if lr_num == 0 || lr_den == 0 || lr_num > LIMIT || lr_den > LIMIT {
            return Err(UpdateError::BadRule(
                "a learning rate of two positive integers up to 2^62",
            ));
        }
        Ok(Self {
            momentum,
            rate: (lr_num, lr_den),
            numerator: i128::from(lr_num),
            denominator: i128::from(lr_den) * i128::from(checked_count(count)?),
            max_norm: max_mean.map(|bound| longest_sum(bound, count)).transpose()?,
        })
    }

    fn velocity(&self, velocity: i64, sum: i64) -> Option<i64> {
        let decayed =
            round_half_even(i128::from(self.momentum) * i128::from(velocity), 1 << MOMENTUM_BITS);
        let step = round_half_even(self.numerator * i128::from(sum), self.denominator);
        i64::try_from(decayed + step).ok()
    }

    /// Apply the rule in place to a model and its velocity. On an error neither is changed.
    pub fn apply(
        &self,
        model: &mut [i64],
        velocity: &mut [i64],
        sum: &[i64],
    ) -> Result<(), UpdateError> {
        if model.len() != sum.len() || velocity.len() != sum.len() {
            return Err(UpdateError::LengthsDiffer {
                model: model.len(),
                velocity: velocity.len(),
                sum: sum.len(),
            });
        }
        let sum = match self.max_norm {
            Some(longest) => shortened(sum, longest)?,
            None => Cow::Borrowed(sum),
        };
        let next = |(index, ((&m, &v), &s)): (usize, ((&i64, &i64), &i64))| {
            let new_velocity = self.velocity(v, s).ok_or(UpdateError::Overflow { index })?;
            let new_parameter =
                m.checked_add(new_velocity).ok_or(UpdateError::Overflow { index })?;
            Ok((new_parameter, new_velocity))
        };
        let updated: Vec<Result<(i64, i64), UpdateError>> = model
            .par_iter()
            .zip(velocity.par_iter())
            .zip(sum.par_iter())
            .enumerate()
            .map(next)
            .collect();
        // Collected first so that the reported parameter is the first one, whatever the threads did.
        let updated: Vec<(i64, i64)> = updated.into_iter().collect::<Result<_, _>>()?;
        for ((m, v), (new_m, new_v)) in model.iter_mut().zip(velocity.iter_mut()).zip(updated) {
            (*m, *v) = (new_m, new_v);
        }
        Ok(())
    }
}

/// Which second moment an adaptive rule keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adaptive {
    /// A decaying mean of squares.
    Adam,
    /// It moves towards each square by a share of that square, so it forgets slowly.
    Yogi,
}

/// The rational numbers of `integer-adam` and `integer-yogi`.
///
/// g = round(S / count), u′ = round((β₁·u + (2^16 − β₁)·g) / 2^16), and the second moment
/// v′ = round((β₂·v + (2^16 − β₂)·g²) / 2^16) (adam) or
/// v′ = v − sign(v − g²)·round((2^16 − β₂)·g² / 2^16) (yogi);
/// m′ = m + round(lr_num·2^f·u′ / (lr_den·(⌊√v′⌋ + τ))).
/// Rounding, intermediates, overflow and the bound on the mean are those of `integer-mean`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerAdaptive {
    kind: Adaptive,
    mean: IntegerMean,
    count: i128,
    second_momentum: i128,
    floor: i128,
    scale_bits: u32,
}

/// A second moment is no larger than 2^62.
const LARGEST_SQUARE: i128 = 1 << 62;

impl IntegerAdaptive {
    /// The rule for one iteration: `mean` has β₁, the rate and the bound; β₂ = `second_momentum`/2^16, and the
    /// floor τ is in integer steps.
    pub fn new(
        kind: Adaptive,
        mean: IntegerMean,
        count: u64,
        second_momentum: u32,
        floor: u64,
        scale_bits: u32,
    ) -> Result<Self, UpdateError> {
        if second_momentum >= 1 << MOMENTUM_BITS {
            return Err(UpdateError::BadRule("a second momentum below 1"));
        }
        if floor == 0 || floor > LIMIT {
            return Err(UpdateError::BadRule("a floor from 1 to 2^62"));
        }
        if scale_bits > 40 {
            return Err(UpdateError::BadRule("a scale up to 2^40"));
        }
        Ok(Self {
            kind,
            mean,
            count: i128::from(checked_count(count)?),
            second_momentum: i128::from(second_momentum),
            floor: i128::from(floor),
            scale_bits,
        })
    }

    /// The next parameter, first and second moment; `None` is an overflow.
    fn next(&self, model: i64, first: i64, second: i64, sum: i64) -> Option<(i64, i64, i64)> {
        let one = 1_i128 << MOMENTUM_BITS;
        let gradient = round_half_even(i128::from(sum), self.count);
        let beta = i128::from(self.mean.momentum);
        let first = round_half_even(beta * i128::from(first) + (one - beta) * gradient, one);
        let (square, second) = (gradient * gradient, i128::from(second));
        let share = (one - self.second_momentum).checked_mul(square)?;
        let second = match self.kind {
            Adaptive::Adam => {
                round_half_even((self.second_momentum * second).checked_add(share)?, one)
            }
            Adaptive::Yogi => second - (second - square).signum() * round_half_even(share, one),
        };
        if !(0..=LARGEST_SQUARE).contains(&second) {
            return None;
        }
        let numerator = i128::from(self.mean.rate.0)
            .checked_mul(1_i128 << self.scale_bits)?
            .checked_mul(first)?;
        let denominator = i128::from(self.mean.rate.1).checked_mul(second.isqrt() + self.floor)?;
        let step = i64::try_from(round_half_even(numerator, denominator)).ok()?;
        let first = i64::try_from(first).ok()?;
        Some((model.checked_add(step)?, first, i64::try_from(second).ok()?))
    }

    /// Apply the rule in place to a model and its two moments. On an error nothing is changed.
    pub fn apply(
        &self,
        model: &mut [i64],
        first: &mut [i64],
        second: &mut [i64],
        sum: &[i64],
    ) -> Result<(), UpdateError> {
        for (velocity, other) in [(first.len(), sum.len()), (second.len(), sum.len())] {
            if model.len() != other || velocity != other {
                return Err(UpdateError::LengthsDiffer {
                    model: model.len(),
                    velocity,
                    sum: sum.len(),
                });
            }
        }
        let sum = match self.mean.max_norm {
            Some(longest) => shortened(sum, longest)?,
            None => Cow::Borrowed(sum),
        };
        let updated: Vec<Option<(i64, i64, i64)>> = (0..sum.len())
            .into_par_iter()
            .map(|index| self.next(model[index], first[index], second[index], sum[index]))
            .collect();
        // Collected first so that the reported parameter is the first one, whatever the threads did.
        let updated = updated
            .into_iter()
            .enumerate()
            .map(|(index, next)| next.ok_or(UpdateError::Overflow { index }))
            .collect::<Result<Vec<_>, _>>()?;
        for (index, next) in updated.into_iter().enumerate() {
            (model[index], first[index], second[index]) = next;
        }
        Ok(())
    }
}

fn checked_count(count: u64) -> Result<u64, UpdateError> {
    match count {
        1..=LIMIT => Ok(count),
        _ => Err(UpdateError::BadRule("at least one contributor")),
    }
}

/// L = M·count: the longest sum whose mean has a norm of `max_mean` at most.
fn longest_sum(max_mean: u64, count: u64) -> Result<i128, UpdateError> {
    if max_mean == 0 || max_mean > LIMIT {
        return Err(UpdateError::BadRule("a bound on the mean from 1 to 2^62"));
    }
    Ok(i128::from(max_mean) * i128::from(checked_count(count)?))
}

/// R = ⌈√(ΣS²)⌉: the norm of a sum, rounded up.
fn norm(sum: &[i64]) -> Result<i128, UpdateError> {
    let mut square: u128 = 0;
    for &entry in sum {
        let magnitude = u128::from(entry.unsigned_abs());
        square = square.checked_add(magnitude * magnitude).ok_or(UpdateError::NormOverflow)?;
    }
    let floor = square.isqrt();
    let root = if floor * floor == square { floor } else { floor + 1 };
    i128::try_from(root).map_err(|_| UpdateError::NormOverflow)
}

/// The sum itself, or one of norm L in the same direction if it is longer.
fn shortened(sum: &[i64], longest: i128) -> Result<Cow<'_, [i64]>, UpdateError> {
    let norm = norm(sum)?;
    if norm <= longest {
        return Ok(Cow::Borrowed(sum));
    }
    let entry = |(index, &entry): (usize, &i64)| {
        i128::from(entry)
            .checked_mul(longest)
            .and_then(|product| i64::try_from(round_half_even(product, norm)).ok())
            .ok_or(UpdateError::Overflow { index })
    };
    sum.iter().enumerate().map(entry).collect::<Result<_, _>>().map(Cow::Owned)
}

/// Whether the mean of `count` updates with this sum is longer than `max_mean`, so that the rule shortens it.
pub fn is_too_long(sum: &[i64], count: u64, max_mean: u64) -> Result<bool, UpdateError> {
    Ok(norm(sum)? > longest_sum(max_mean, count)?)
}

/// How finely a mean is given that is no plain sum over a count: in units of 2^−16 of a step.
pub const MEAN_BITS: u32 = 16;

/// The largest entry of such a mean in steps, so that 32 of them with their fractions stay within 64 bits.
const LARGEST_MEAN: i128 = 1 << (62 - MEAN_BITS - 5);

/// round(2^16·numerator·S / divisor) for each entry, half to even; one beyond ±2^41 steps is cut to them.
pub fn fine_mean(sum: &[i64], numerator: u64, divisor: u64) -> Result<Vec<i64>, UpdateError> {
    // 2^63·2^46·2^16 stays within 127 bits.
    if numerator == 0 || numerator >> 46 != 0 || divisor == 0 {
        return Err(UpdateError::BadRule("a mean by a factor of 1 to 2^46 and a positive divisor"));
    }
    let (factor, divisor) = (i128::from(numerator) << MEAN_BITS, i128::from(divisor));
    let most = LARGEST_MEAN << MEAN_BITS;
    let entry =
        |&s: &i64| round_half_even(factor * i128::from(s), divisor).clamp(-most, most) as i64;
    Ok(sum.par_iter().map(entry).collect())
}

/// The integer nearest to numerator/denominator; a tie goes to the even one. `denominator` is positive.
pub fn round_half_even(numerator: i128, denominator: i128) -> i128 {
    let floor = numerator.div_euclid(denominator);
    let remainder = numerator.rem_euclid(denominator);
    match (remainder).cmp(&(denominator - remainder)) {
        std::cmp::Ordering::Less => floor,
        std::cmp::Ordering::Greater => floor + 1,
        std::cmp::Ordering::Equal => floor + (floor & 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_to_the_even_neighbour() {
        let rounded: Vec<i128> = (-7..=7).map(|n| round_half_even(n, 2)).collect();
        assert_eq!(rounded, [-4, -3, -2, -2, -2, -1, 0, 0, 0, 1, 2, 2, 2, 3, 4]);
    }

    fn adaptive(kind: Adaptive, momentum: u32, second: u32) -> IntegerAdaptive {
        let mean = IntegerMean::new(momentum, 1, 10, 4, None).expect("a rule");
        IntegerAdaptive::new(kind, mean, 4, second, 5, 8).expect("a rule")
    }

    #[test]
    fn the_adaptive_rules_follow_their_formulas() {
        // g = 100; half of it is 50; half of 100² is 5000, whose root is 70; 256·50 / (10·75) = 17.07.
        let (mut model, mut first, mut second) = ([3], [0], [0]);
        let half = adaptive(Adaptive::Adam, 1 << 15, 1 << 15);
        half.apply(&mut model, &mut first, &mut second, &[400]).expect("no overflow");
        assert_eq!((model, first, second), ([20], [50], [5000]));
        // v = 20000 > g² falls by half of g², v = 100 < g² rises by it.
        let yogi = adaptive(Adaptive::Yogi, 0, 1 << 15);
        let (mut model, mut first, mut second) = ([0, 0], [9, 9], [20_000, 100]);
        yogi.apply(&mut model, &mut first, &mut second, &[400, -400]).expect("no overflow");
        assert_eq!((first, second), ([100, -100], [15_000, 5100]));
        assert_eq!(model, [20, -34]); // 2560/(122 + 5), 2560/(71 + 5), both to the nearest
    }

    #[test]
    fn a_fine_mean_follows_its_formula() {
        assert_eq!(fine_mean(&[3, -3, 0], 1, 2), Ok(vec![3 << 15, -3 << 15, 0]));
        // 2^16·5·7 / 3·2^17 = 5.83; a tie goes to the even neighbour.
        assert_eq!(fine_mean(&[7], 5, 3 << 17), Ok(vec![6]));
        assert_eq!(fine_mean(&[1, 3], 1, 1 << 17), Ok(vec![0, 2]));
        let most = 1 << 57;
        assert_eq!(fine_mean(&[i64::MAX, i64::MIN], (1 << 46) - 1, 1), Ok(vec![most, -most]));
        for (numerator, divisor) in [(0, 1), (1 << 46, 1), (1, 0)] {
            assert!(fine_mean(&[1], numerator, divisor).is_err());
        }
    }

    #[test]
    fn an_adaptive_overflow_changes_nothing() {
        let rule = adaptive(Adaptive::Adam, 0, 0);
        let (mut model, mut first, mut second) = ([1, 1], [2, 2], [3, 3]);
        let result = rule.apply(&mut model, &mut first, &mut second, &[0, i64::MAX]);
        assert_eq!(result, Err(UpdateError::Overflow { index: 1 }));
        assert_eq!((model, first, second), ([1, 1], [2, 2], [3, 3]));
    }

    #[test]
    fn bad_numbers_of_an_adaptive_rule_are_refused() {
        let mean = IntegerMean::new(0, 1, 1, 1, None).expect("a rule");
        for (count, second, floor, scale) in [
            (0, 0, 1, 8),
            (1, 1 << 16, 1, 8),
            (1, 0, 0, 8),
            (1, 0, (1 << 62) + 1, 8),
            (1, 0, 1, 41),
        ] {
            assert!(
                IntegerAdaptive::new(Adaptive::Adam, mean, count, second, floor, scale).is_err()
            );
        }
        let (mut one, mut two) = ([0], [0, 0]);
        let rule = adaptive(Adaptive::Yogi, 0, 0);
        assert!(rule.apply(&mut [0], &mut one, &mut two, &[0]).is_err());
    }

    #[test]
    fn the_rule_follows_its_formula() {
        let rule = IntegerMean::new(1 << 15, 1, 2, 3, None).expect("a rule");
        let (mut model, mut velocity) = ([10, -10, 0], [3, -5, 0]);
        rule.apply(&mut model, &mut velocity, &[9, -9, 3]).expect("no overflow");
        // round(1.5) + round(1.5) = 4; round(-2.5) + round(-1.5) = -4; 0 + round(0.5) = 0.
        assert_eq!(velocity, [4, -4, 0]);
        assert_eq!(model, [14, -14, 0]);
    }

    #[test]
    fn overflow_names_the_first_parameter_and_changes_nothing() {
        let rule = IntegerMean::new(0, 1, 1, 1, None).expect("a rule");
        let (mut model, mut velocity) = ([0, i64::MAX, i64::MAX], [0; 3]);
        let error = rule.apply(&mut model, &mut velocity, &[5, 1, 1]);
        assert_eq!(error, Err(UpdateError::Overflow { index: 1 }));
        assert_eq!(model, [0, i64::MAX, i64::MAX]);
        let fast = IntegerMean::new(0, 3, 1, 1, None).expect("a rule");
        assert!(fast.apply(&mut [0], &mut [0], &[i64::MAX]).is_err());
    }

    #[test]
    fn bad_rules_are_refused() {
        assert!(IntegerMean::new(1 << 16, 1, 1, 1, None).is_err());
        assert!(IntegerMean::new(0, 0, 1, 1, None).is_err());
        assert!(IntegerMean::new(0, 1, 0, 1, None).is_err());
        assert!(IntegerMean::new(0, 1, 1, 0, None).is_err());
        let rule = IntegerMean::new(0, 1, 1, 1, None).expect("a rule");
        assert!(rule.apply(&mut [0], &mut [0, 0], &[0]).is_err());
    }

    #[test]
    fn a_mean_beyond_the_bound_is_shortened_to_it() {
        let rule = IntegerMean::new(0, 1, 1, 2, Some(5)).expect("a rule");
        let (mut model, mut velocity) = ([0, 0], [0, 0]);
        // Norm 10 = 5·2: just within. Norm 20: halved, and ties go to the even neighbour afterwards.
        rule.apply(&mut model, &mut velocity, &[6, -8]).expect("no overflow");
        assert_eq!(model, [3, -4]);
        rule.apply(&mut model, &mut velocity, &[12, -16]).expect("no overflow");
        assert_eq!(velocity, [3, -4]);
        // Norm √101 is rounded up to 11: round(10·10/11) = 9, round(10/11) = 1, then halved.
        rule.apply(&mut model, &mut velocity, &[10, 1]).expect("no overflow");
        assert_eq!(velocity, [4, 0]);
        assert_eq!(is_too_long(&[6, -8], 2, 5), Ok(false));
        assert_eq!(is_too_long(&[10, 1], 2, 5), Ok(true));
    }

    #[test]
    fn a_norm_beyond_128_bits_changes_nothing() {
        let rule = IntegerMean::new(0, 1, 1, 1, Some(1)).expect("a rule");
        let (mut model, mut velocity) = ([1; 5], [0; 5]);
        let error = rule.apply(&mut model, &mut velocity, &[i64::MIN; 5]);
        assert_eq!(error, Err(UpdateError::NormOverflow));
        assert_eq!(model, [1; 5]);
        let far = IntegerMean::new(0, 1, 1, 1 << 40, Some(1 << 25)).expect("a rule");
        let error = far.apply(&mut [0; 5], &mut [0; 5], &[i64::MAX, i64::MAX, i64::MAX, 0, 0]);
        assert_eq!(error, Ok(()));
    }

    #[test]
    fn bounds_out_of_range_are_refused() {
        assert!(IntegerMean::new(0, 1, 1, 1, Some(0)).is_err());
        assert!(IntegerMean::new(0, 1, 1, 1, Some((1 << 62) + 1)).is_err());
        assert!(is_too_long(&[1], 0, 1).is_err());
    }

    proptest! {
        #[test]
        fn a_shortened_sum_is_no_longer_than_its_bound(sum in proptest::collection::vec(-(1i64 << 40)..(1i64 << 40), 1..40), longest in 1i128..(1i128 << 44)) {
            let made = shortened(&sum, longest).expect("no overflow");
            let squared: f64 = made.iter().map(|&entry| (entry as f64).powi(2)).sum();
            let room = (sum.len() as f64).sqrt() / 2.0;
            prop_assert!(squared.sqrt() <= longest as f64 * (1.0 + 1e-12) + room);
            if norm(&sum).expect("no overflow") <= longest {
                prop_assert_eq!(made.as_ref(), sum.as_slice());
            }
        }

        #[test]
        fn rounding_is_nearest_and_even(numerator in -(1i128 << 100)..(1i128 << 100), denominator in 1i128..(1i128 << 90)) {
            let rounded = round_half_even(numerator, denominator);
            let error = (numerator - rounded * denominator).abs();
            prop_assert!(2 * error <= denominator);
            prop_assert!(2 * error < denominator || rounded % 2 == 0);
        }

        #[test]
        fn extremes_never_panic(m: i64, v: i64, s: i64, momentum in 0u32..(1 << 16), num in 1u64..=(1 << 62), den in 1u64..=(1 << 62), count in 1u64..=(1 << 62)) {
            let rule = IntegerMean::new(momentum, num, den, count, None).expect("in range");
            let _ = rule.apply(&mut [m], &mut [v], &[s]);
        }
    }
}
