//! The prover: nothing here branches on a secret, save for beginning again once in 2^35 times.

use curve25519_dalek::scalar::Scalar;
use rand::{CryptoRng, RngCore};
use subtle::{Choice, ConditionallySelectable};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::bounds::SECRET_SQUARED;
use super::challenges::{Relations, Seed};
use super::equations::{Equations, Parts};
use super::fold::{fold, project, Folded};
use super::proof::{
    check_shown, cover_commitment, cover_shown, generators, last_challenge, FirstMessages, Proof,
    Responses,
};
use super::ranges::{entries, Place, Position};
use super::statement::{Matrix, Statement};
use super::witness::Witness;
use super::{FIRST, MASK_BITS, NORM_BITS, RANGE_ROWS, RELATIONS, ROWS, SECOND, SECRET_BITS};
use crate::group::{base, random_scalar, weighted_sum};
use crate::ring::MODULUS;
use crate::Error;

/// A proof is begun again this often before the witness is given up: an honest one fails once in 2^35.
const ATTEMPTS: usize = 8;

/// How a prover behaves; only tests have one that goes on where an honest one stops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Honest,
    /// Ends a false statement's proof all the same; `offset` moves one first message by G.
    #[cfg(test)]
    Cheating {
        offset: Option<usize>,
        fork: u64,
    },
    /// Ends the proof with another k and another u for every range.
    #[cfg(test)]
    Misplacing {
        k: i128,
        u: i64,
    },
}

/// Proves that the witness opens the statement within its bounds.
///
/// Refused if it does not: too long a vector or secret.
pub fn prove(
    statement: &Statement<'_>,
    matrix: &Matrix,
    witness: &Witness,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<Vec<u8>, Error> {
    (0..ATTEMPTS)
        .find_map(|_| attempt(statement, matrix, witness, Manner::Honest, rng))
        .map(|proof| proof.to_bytes())
        .ok_or(Error::Proof { what: "the bound on the norm of the contribution" })
}

/// z and w, and what their squares leave of the bounds.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Projections {
    z: Vec<i128>,
    w: Vec<i128>,
    rest: i128,
    rest_of_secret: i128,
}

impl Projections {
    fn new(statement: &Statement<'_>, witness: &Witness, t: &Seed, tau: &Seed) -> Self {
        let (mut z, mut w) = (project(t, &witness.y), project(tau, &witness.secret));
        let (zero, one) = (statement.bounds.zero_squared, statement.bounds.one_squared);
        let bound = zero + (one - zero) * u128::from(witness.one);
        let squares = |values: &[i128]| {
            values.iter().fold(0i128, |sum, value| sum.wrapping_add(value.wrapping_mul(*value)))
        };
        let rest = (bound as i128).wrapping_sub(squares(&z));
        let rest_of_secret = (SECRET_SQUARED as i128).wrapping_sub(squares(&w));
        Self { z: std::mem::take(&mut z), w: std::mem::take(&mut w), rest, rest_of_secret }
    }

    fn fit(&self) -> bool {
        self.rest >= 0 && self.rest_of_secret >= 0
    }

    /// x₁.
    fn committed(&self, positions: &[Position], entries: usize) -> Zeroizing<Vec<Scalar>> {
        // A vector that grows leaves copies behind, so the room is made first.
        let mut values = Zeroizing::new(Vec::with_capacity(FIRST + entries));
        values.extend(self.z.iter().chain(&self.w).map(|value| signed(*value)));
        for (rest, bits) in [(self.rest, NORM_BITS), (self.rest_of_secret, SECRET_BITS)] {
            values.extend((0..bits).map(|bit| Scalar::from((rest >> bit & 1) as u64)));
        }
        for position in positions {
            values.push(signed(position.k));
            values.extend(position.bits());
        }
        values
    }
}

/// A number as a scalar, without a branch.
pub(super) fn signed(value: i128) -> Scalar {
    let magnitude = Scalar::from(value.unsigned_abs());
    let negative = Choice::from((value >> 127) as u8 & 1);
    Scalar::conditional_select(&magnitude, &-magnitude, negative)
}

/// value/q for a multiple of q: a product with 1/q modulo 2^128, so that its time tells nothing.
fn divide_exactly(value: i128) -> i128 {
    // Newton's iteration doubles the right bits; q is odd, so 1/q = q to three bits.
    let modulus = i128::from(MODULUS);
    let inverse = (0..6).fold(modulus, |inverse, _| {
        inverse.wrapping_mul(2i128.wrapping_sub(modulus.wrapping_mul(inverse)))
    });
    value.wrapping_mul(inverse)
}

/// h_c = (⟨ρ^c, z⟩ + ⟨V_c, s⟩ − U_c)/q.
fn quotients(
    relations: &Relations,
    folded: &Folded,
    z: &[i128],
    secret: &[i64],
    divide: impl Fn(i128) -> i128,
) -> Zeroizing<Vec<i128>> {
    let quotient = |relation: usize| {
        let on_z = relations[relation]
            .iter()
            .zip(z)
            .fold(0i128, |sum, (rho, z)| sum.wrapping_add(i128::from(*rho).wrapping_mul(*z)));
        let on_s = folded.v[relation].iter().zip(secret).fold(0i128, |sum, (v, s)| {
            sum.wrapping_add(i128::from(*v).wrapping_mul(i128::from(*s)))
        });
        divide(on_z.wrapping_add(on_s).wrapping_sub(i128::from(folded.u[relation])))
    };
    Zeroizing::new((0..RELATIONS).map(quotient).collect())
}

/// The masks m of the last step.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Nonces {
    first: Vec<Scalar>,
    second: Vec<Scalar>,
    blindings: [Scalar; 2],
    r: Scalar,
    k: Scalar,
    bit: Scalar,
    cross: [Scalar; 2],
}

impl Nonces {
    fn new(entries: usize, rng: &mut (impl RngCore + CryptoRng)) -> Self {
        Self {
            first: (0..FIRST + entries).map(|_| random_scalar(rng)).collect(),
            second: (0..SECOND).map(|_| random_scalar(rng)).collect(),
            blindings: [random_scalar(rng), random_scalar(rng)],
            r: random_scalar(rng),
            k: random_scalar(rng),
            bit: random_scalar(rng),
            cross: [random_scalar(rng), random_scalar(rng)],
        }
    }

    fn messages(
        &self,
        statement: &Statement<'_>,
        equations: &Equations,
        committed: &[Scalar],
    ) -> FirstMessages {
        let generators = generators();
        let (first, (second, weighted_keys)) = rayon::join(
            || generators.commit_first(&self.first, &self.blindings[0]),
            || {
                let second = generators.commit_second(&self.second, &self.blindings[1]);
                (second, weighted_sum(&equations.on_secret, statement.keys))
            },
        );
        let two = Scalar::from(2u8);
        let terms = self.first.iter().zip(committed);
        let weights = equations.squares.iter().zip(&equations.linear);
        let mut linear_cross: Scalar = terms
            .zip(weights)
            .map(|((m, x), (square, linear))| m * (two * square * x + linear))
            .sum();
        linear_cross += equations.on_bit * self.bit;
        let squares = self.first.iter().zip(&equations.squares);
        let constant_cross: Scalar = squares.map(|(m, square)| square * m * m).sum();
        let cross = [(linear_cross, self.cross[0]), (constant_cross, self.cross[1])]
            .map(|(value, blinding)| base(&value) + generators.blinding * blinding);
        FirstMessages {
            first,
            second,
            linear: weighted_keys * self.r
                - base(&equations.on_committed(&self.first, &self.second, &self.bit)),
            r: base(&self.r),
            u: base(&self.k),
            v: statement.count_key * self.k + base(&self.bit),
            cross,
        }
    }
}

/// One run; nothing if p or a norm leaves its range.
pub(super) fn attempt(
    statement: &Statement<'_>,
    matrix: &Matrix,
    witness: &Witness,
    manner: Manner,
    rng: &mut (impl RngCore + CryptoRng),
) -> Option<Proof> {
    let mut salt = [0; 32];
    rng.fill_bytes(&mut salt);
    let mut transcript = statement.transcript(&salt);
    let (t, tau) = (Seed::new(&transcript, "T"), Seed::new(&transcript, "tau"));
    let projections = Projections::new(statement, witness, &t, &tau);
    let places = Place::all(statement.codec, statement.packed, matrix);
    let position = |place: &Place<'_>| {
        let y = witness.y[place.interval.coordinate()];
        Position::new(place, y, &witness.secret, witness.one, divide(manner))
    };
    let positions: Vec<Position> = places.iter().map(position).collect();
    let positions = misplaced(manner, positions);
    let fit = projections.fit() && positions.iter().all(Position::fits);
    if manner == Manner::Honest && !fit {
        return None;
    }
    let generators = generators();
    let entries = entries(statement.codec.intervals());
    let first = projections.committed(&positions, entries);
    let blindings = Zeroizing::new([random_scalar(rng), random_scalar(rng)]);
    let first_commitment = generators.commit_first(&first, &blindings[0]);
    cover_commitment(&mut transcript, &first_commitment);

    let relations = Seed::new(&transcript, "rho").relations();
    let folded = fold(&t, &relations, statement.codec, statement.packed, matrix);
    let h = quotients(&relations, &folded, &projections.z, &witness.secret, divide(manner));
    let masks = Zeroizing::new((0..RANGE_ROWS).map(|_| mask(rng)).collect::<Vec<u128>>());
    let mut second = Zeroizing::new(Vec::with_capacity(SECOND));
    second.extend(h.iter().map(|value| signed(*value)));
    second.extend(masks.iter().map(|mask| Scalar::from(*mask)));
    let second_commitment = generators.commit_second(&second, &blindings[1]);
    cover_commitment(&mut transcript, &second_commitment);

    let rows = Seed::new(&transcript, "rows").range_rows();
    let norms = projections.z.iter().chain(&projections.w);
    let quotients = h.iter().chain(positions.iter().map(|position| &position.k));
    let columns: Zeroizing<Vec<i128>> = Zeroizing::new(norms.chain(quotients).copied().collect());
    let shown: Vec<u128> = rows
        .iter()
        .zip(masks.iter())
        .map(|(row, mask)| {
            let chosen = row.iter().zip(columns.iter()).filter(|(on, _)| **on);
            let sum = chosen.fold(0i128, |sum, (_, value)| sum.wrapping_add(*value));
            sum.wrapping_add(*mask as i128) as u128
        })
        .collect();
    if manner == Manner::Honest && shown.iter().any(|value| check_shown(*value).is_err()) {
        return None;
    }
    cover_shown(&mut transcript, &shown);
    let parts = Parts {
        tau: &tau,
        relations: &relations,
        folded: &folded,
        rows: &rows,
        shown: &shown,
        bounds: &statement.bounds,
        places: &places,
    };
    let equations = Equations::new(&transcript, &parts);

    let nonces = Nonces::new(entries, rng);
    let messages = moved(manner, nonces.messages(statement, &equations, &first));
    let c = challenge(manner, &transcript, &messages);
    let respond = |values: &[Scalar], masks: &[Scalar]| -> Vec<Scalar> {
        values.iter().zip(masks).map(|(value, mask)| c * value + mask).collect()
    };
    let responses = Responses {
        first: respond(&first, &nonces.first),
        second: respond(&second, &nonces.second),
        blindings: [0, 1].map(|index| c * blindings[index] + nonces.blindings[index]),
        r: c * witness.r + nonces.r,
        k: c * witness.k + nonces.k,
        bit: c * Scalar::from(witness.one) + nonces.bit,
        cross: c * nonces.cross[0] + nonces.cross[1],
    };
    debug_assert_eq!(projections.z.len(), ROWS);
    let commitments = [first_commitment, second_commitment];
    Some(Proof { salt, commitments, shown, messages, responses })
}

/// A uniform mask below 2^116.
fn mask(rng: &mut (impl RngCore + CryptoRng)) -> u128 {
    let high = u128::from(rng.next_u64()) << 64;
    (high | u128::from(rng.next_u64())) & ((1 << MASK_BITS) - 1)
}

#[cfg(not(test))]
fn moved(_manner: Manner, messages: FirstMessages) -> FirstMessages {
    messages
}

#[cfg(not(test))]
fn misplaced(_manner: Manner, positions: Vec<Position>) -> Vec<Position> {
    positions
}

#[cfg(not(test))]
fn challenge(
    _manner: Manner,
    transcript: &crate::transcript::Transcript,
    messages: &FirstMessages,
) -> Scalar {
    last_challenge(transcript, messages)
}

#[cfg(not(test))]
fn divide(_manner: Manner) -> fn(i128) -> i128 {
    divide_exactly
}

/// A cheating prover takes the nearest quotient, which keeps p in its range.
#[cfg(test)]
fn divide(manner: Manner) -> fn(i128) -> i128 {
    match manner {
        Manner::Honest => divide_exactly,
        Manner::Cheating { .. } | Manner::Misplacing { .. } => {
            |value| value.div_euclid(i128::from(MODULUS))
        }
    }
}

#[cfg(test)]
fn moved(manner: Manner, mut messages: FirstMessages) -> FirstMessages {
    let Manner::Cheating { offset: Some(offset), .. } = manner else { return messages };
    let [one, zero] = &mut messages.cross;
    let places: [&mut curve25519_dalek::RistrettoPoint; 8] = [
        &mut messages.first,
        &mut messages.second,
        &mut messages.linear,
        &mut messages.r,
        &mut messages.u,
        &mut messages.v,
        one,
        zero,
    ];
    *places.into_iter().nth(offset).expect("one of eight") += super::proof::BASE;
    messages
}

#[cfg(test)]
fn misplaced(manner: Manner, mut positions: Vec<Position>) -> Vec<Position> {
    if let Manner::Misplacing { k, u } = manner {
        positions.iter_mut().for_each(|position| position.misplace(k, u));
    }
    positions
}

#[cfg(test)]
fn challenge(
    manner: Manner,
    transcript: &crate::transcript::Transcript,
    messages: &FirstMessages,
) -> Scalar {
    let c = last_challenge(transcript, messages);
    match manner {
        Manner::Honest | Manner::Misplacing { .. } => c,
        Manner::Cheating { fork, .. } => c + Scalar::from(fork),
    }
}
