//! The linear and the quadratic equation (step 6), as prover and verifier derive them.

use curve25519_dalek::scalar::Scalar;

use super::bounds::{Bounds, SECRET_SQUARED};
use super::challenges::{Relations, Seed};
use super::fold::{fold_weights, Folded};
use super::ranges::{Place, RELATIONS_OF_A_RANGE};
use super::{
    COLUMNS, DRAWN_COLUMNS, FIRST, NORM_BITS, RANGE_ROWS, RELATIONS, ROWS, SECOND, SECRET_BITS,
};
use crate::group::small_scalar;
use crate::ring::{DEGREE, MODULUS};
use crate::transcript::Transcript;

/// ⟨first, x₁⟩ + ⟨second, x₂⟩ + ⟨on_secret, s⟩ + linear_on_bit·b = constant, and
/// Σ squares_j·x₁_j² + Σ linear_j·x₁_j + on_bit·b + quadratic_constant = 0.
pub(super) struct Equations {
    pub(super) first: Vec<Scalar>,
    pub(super) second: Vec<Scalar>,
    pub(super) on_secret: Vec<Scalar>,
    pub(super) linear_on_bit: Scalar,
    pub(super) constant: Scalar,
    pub(super) squares: Vec<Scalar>,
    pub(super) linear: Vec<Scalar>,
    pub(super) on_bit: Scalar,
    pub(super) quadratic_constant: Scalar,
}

/// What the equations are made of beside the weights.
pub(super) struct Parts<'a> {
    pub(super) tau: &'a Seed,
    pub(super) relations: &'a Relations,
    pub(super) folded: &'a Folded,
    pub(super) rows: &'a [[bool; DRAWN_COLUMNS]],
    pub(super) shown: &'a [u128],
    pub(super) bounds: &'a Bounds,
    pub(super) places: &'a [Place<'a>],
}

impl Equations {
    /// Draws the weights and puts both equations together.
    pub(super) fn new(transcript: &Transcript, parts: &Parts<'_>) -> Self {
        let gamma = Seed::new(transcript, "relations").weights(RELATIONS);
        let on_w = Seed::new(transcript, "secret").weights(ROWS);
        let omega = Seed::new(transcript, "range").weights(RANGE_ROWS);
        let on_ranges = parts.places.iter().map(|place| 2 * place.interval.bits).sum::<usize>();
        let xi = Seed::new(transcript, "squares").weights(2 + NORM_BITS + SECRET_BITS + on_ranges);
        let columns = columns(parts, &omega);
        let (mut first, second, mut constant) = linear(parts, &columns, &gamma, &on_w, &omega);
        let mut on_secret = fold_weights(parts.tau, &on_w);
        for (j, entry) in on_secret.iter_mut().enumerate().take(DEGREE) {
            let relations = gamma.iter().zip(&parts.folded.v);
            *entry = relations.map(|(g, v)| g * Scalar::from(v[j])).sum::<Scalar>() - *entry;
        }
        let mut linear_on_bit = Scalar::ZERO;
        let pairs =
            Seed::new(transcript, "coordinates").weights(RELATIONS_OF_A_RANGE * parts.places.len());
        let quotients = &columns[COLUMNS..];
        for ((of_place, weights), column) in
            parts.places.iter().zip(pairs.as_chunks().0).zip(quotients)
        {
            let [place, room] = weights;
            let interval = of_place.interval;
            first.push(column - place * Scalar::from(MODULUS));
            let powers = |weight: Scalar| {
                std::iter::successors(Some(weight), |power| Some(power + power)).take(interval.bits)
            };
            first.extend(powers(place + room).chain(powers(*room)));
            for (entry, a) in on_secret.iter_mut().zip(&of_place.row) {
                *entry += place * small_scalar(*a);
            }
            let error = Scalar::from(interval.error);
            linear_on_bit +=
                place * small_scalar(interval.low) - room * Scalar::from(interval.span);
            constant += place * (Scalar::from(of_place.lifted) + error) + room * (error + error);
        }
        let (on_norms, on_ranges) = xi.split_at(2 + NORM_BITS + SECRET_BITS);
        let mut squares = vec![xi[0]; ROWS];
        squares.extend(std::iter::repeat_n(xi[1], ROWS));
        squares.extend_from_slice(&on_norms[2..]);
        let mut linear = vec![Scalar::ZERO; 2 * ROWS];
        for (norm, bits) in
            [(xi[0], &on_norms[2..2 + NORM_BITS]), (xi[1], &on_norms[2 + NORM_BITS..])]
        {
            let mut power = norm;
            for weight in bits {
                linear.push(power - weight);
                power += power;
            }
        }
        let mut weights = on_ranges.iter();
        for place in parts.places {
            squares.push(Scalar::ZERO);
            linear.push(Scalar::ZERO);
            for weight in weights.by_ref().take(2 * place.interval.bits) {
                squares.push(*weight);
                linear.push(-weight);
            }
        }
        debug_assert_eq!(first.len(), squares.len());
        let (zero, one) = (parts.bounds.zero_squared, parts.bounds.one_squared);
        Self {
            first,
            second,
            on_secret,
            linear_on_bit,
            constant,
            squares,
            linear,
            on_bit: -xi[0] * Scalar::from(one - zero),
            quadratic_constant: -xi[0] * Scalar::from(zero) - xi[1] * Scalar::from(SECRET_SQUARED),
        }
    }

    /// Σ squares·x̄² + c·Σ linear·x̄ + c·on_bit·b̄ + c²·constant.
    pub(super) fn quadratic(&self, responses: &[Scalar], bit: &Scalar, c: &Scalar) -> Scalar {
        let terms = responses.iter().zip(self.squares.iter().zip(&self.linear));
        terms.map(|(x, (square, linear))| x * (square * x + c * linear)).sum::<Scalar>()
            + c * (self.on_bit * bit + c * self.quadratic_constant)
    }

    /// ⟨first, x₁⟩ + ⟨second, x₂⟩ + linear_on_bit·b.
    pub(super) fn on_committed(&self, first: &[Scalar], second: &[Scalar], bit: &Scalar) -> Scalar {
        dot(&self.first, first) + dot(&self.second, second) + self.linear_on_bit * bit
    }
}

/// Mᵀω.
fn columns(parts: &Parts<'_>, omega: &[Scalar]) -> Vec<Scalar> {
    let mut columns = vec![Scalar::ZERO; COLUMNS + parts.places.len()];
    for (row, weight) in parts.rows.iter().zip(omega) {
        for (column, on) in columns.iter_mut().zip(row) {
            if *on {
                *column += weight;
            }
        }
    }
    columns
}

fn linear(
    parts: &Parts<'_>,
    columns: &[Scalar],
    gamma: &[Scalar],
    on_w: &[Scalar],
    omega: &[Scalar],
) -> (Vec<Scalar>, Vec<Scalar>, Scalar) {
    let mut first = vec![Scalar::ZERO; FIRST];
    let mut second = vec![Scalar::ZERO; SECOND];
    for i in 0..ROWS {
        let relations = gamma.iter().zip(parts.relations);
        let on_z: Scalar = relations.map(|(g, rho)| g * Scalar::from(rho[i])).sum();
        first[i] = columns[i] + on_z;
        first[ROWS + i] = columns[ROWS + i] + on_w[i];
    }
    for (relation, entry) in second.iter_mut().enumerate().take(RELATIONS) {
        *entry = columns[2 * ROWS + relation] - gamma[relation] * Scalar::from(MODULUS);
    }
    second[RELATIONS..].copy_from_slice(omega);
    let modular: Scalar = gamma.iter().zip(parts.folded.u).map(|(g, u)| g * Scalar::from(u)).sum();
    let shown: Scalar = omega.iter().zip(parts.shown).map(|(o, p)| o * Scalar::from(*p)).sum();
    (first, second, modular + shown)
}

pub(super) fn dot(a: &[Scalar], b: &[Scalar]) -> Scalar {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
