//! The verifier: seven equations in the group, added up with random weights over many proofs.
//!
//! With c the last challenge and x̄, r̄, k̄, b̄ the responses:
//! 1. *first*: Σ x̄₁_i·G_i + ρ̄₁·H = A₁ + c·X₁
//! 2. *second*: Σ x̄₂_i·G'_i + ρ̄₂·H = A₂ + c·X₂
//! 3. *linear*: r̄·Σ v_j·pk_j − (⟨L, x̄⟩ + λ·b̄)·G = T_L + c·(Σ v_j·C_j − κ·G), with λ = 0 without ranges
//! 4. *key*: r̄·G = T_R + c·R
//! 5. *bit U*: k̄·G = T_U + c·U
//! 6. *bit V*: k̄·Y + b̄·G = T_V + c·V
//! 7. *quadratic*: Q(x̄, b̄, c)·G + ε̄·H = c·E₁ + E₀

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rand::{CryptoRng, Rng, RngCore};
use rayon::prelude::*;

use super::challenges::Seed;
use super::equations::{Equations, Parts};
use super::fold::fold;
use super::proof::{
    cover_commitment, cover_shown, generators, last_challenge, range_generators, Proof, BASE,
};
use super::ranges::{entries, Place};
use super::statement::{Matrix, Statement};
use super::{FIRST, SECOND};
use crate::count::Ciphertext;
use crate::group::{decode_point, weighted_sum};
use crate::ring::DEGREE;
use crate::Error;

/// How many equations a proof has.
pub(super) const EQUATIONS: usize = 7;

const FAILED: Error = Error::Proof { what: "the contribution proof" };

/// Points per multiplication: enough for its buckets to pay.
const CHUNK: usize = 4096;

/// A statement, its proof, and the points of C, which were parsed before.
pub struct Claim<'a> {
    /// What is claimed.
    pub statement: Statement<'a>,
    /// C_0 … C_{N−1}.
    pub wrapped: &'a [RistrettoPoint],
    /// The proof.
    pub proof: &'a [u8],
}

/// A claim after everything but the group was computed.
struct Reduced<'a> {
    claim: &'a Claim<'a>,
    proof: Proof,
    equations: Equations,
    c: Scalar,
    r: RistrettoPoint,
    bit: Ciphertext,
}

impl<'a> Reduced<'a> {
    fn new(claim: &'a Claim<'a>, matrix: &Matrix) -> Result<Self, Error> {
        let statement = &claim.statement;
        if matrix.seed != statement.post.public_seed() {
            return Err(Error::Proof { what: "the iteration of the public polynomials" });
        }
        let proof = Proof::from_bytes(entries(statement.codec.intervals()), claim.proof)?;
        let mut transcript = statement.transcript(&proof.salt);
        let (t, tau) = (Seed::new(&transcript, "T"), Seed::new(&transcript, "tau"));
        cover_commitment(&mut transcript, &proof.commitments[0]);
        let relations = Seed::new(&transcript, "rho").relations();
        let folded = fold(&t, &relations, statement.codec, statement.packed, matrix);
        cover_commitment(&mut transcript, &proof.commitments[1]);
        let rows = Seed::new(&transcript, "rows").range_rows();
        cover_shown(&mut transcript, &proof.shown);
        let places = Place::all(statement.codec, statement.packed, matrix);
        let parts = Parts {
            tau: &tau,
            relations: &relations,
            folded: &folded,
            rows: &rows,
            shown: &proof.shown,
            bounds: &statement.bounds,
            places: &places,
        };
        let equations = Equations::new(&transcript, &parts);
        let c = last_challenge(&transcript, &proof.messages);
        let r = decode_point("R", statement.r)?;
        let bit = Ciphertext::from_bytes(statement.bit)?;
        Ok(Self { claim, proof, equations, c, r, bit })
    }
}

/// A sum of equations: scalars of the bases that all proofs share, and all other points.
struct Sum {
    generators: Vec<Scalar>,
    range_generators: Vec<Scalar>,
    keys: Vec<Scalar>,
    base: Scalar,
    blinding: Scalar,
    count_key: Scalar,
    scalars: Vec<Scalar>,
    points: Vec<RistrettoPoint>,
}

impl Sum {
    fn new(entries: usize) -> Self {
        Self {
            generators: vec![Scalar::ZERO; FIRST + SECOND],
            range_generators: vec![Scalar::ZERO; entries],
            keys: vec![Scalar::ZERO; DEGREE],
            base: Scalar::ZERO,
            blinding: Scalar::ZERO,
            count_key: Scalar::ZERO,
            scalars: Vec::new(),
            points: Vec::new(),
        }
    }

    /// Adds the equations of one proof, left side less right side, each times its weight.
    fn add(&mut self, reduced: &Reduced<'_>, weights: &[Scalar; EQUATIONS]) {
        let [first, second, linear, key, bit_u, bit_v, quadratic] = weights;
        let (c, answers, equations) = (&reduced.c, &reduced.proof.responses, &reduced.equations);
        let (on_first, on_second) = self.generators.split_at_mut(FIRST);
        let on_first = on_first.iter_mut().chain(&mut self.range_generators);
        on_first.zip(&answers.first).for_each(|(sum, x)| *sum += first * x);
        on_second.iter_mut().zip(&answers.second).for_each(|(sum, x)| *sum += second * x);
        self.blinding += first * answers.blindings[0]
            + second * answers.blindings[1]
            + quadratic * answers.cross;
        let on_keys = linear * answers.r;
        let on_wrapped = -linear * c;
        for (sum, v) in self.keys.iter_mut().zip(&equations.on_secret) {
            *sum += on_keys * v;
        }
        self.scalars.extend(equations.on_secret.iter().map(|v| on_wrapped * v));
        self.points.extend_from_slice(reduced.claim.wrapped);
        let committed = equations.on_committed(&answers.first, &answers.second, &answers.bit);
        self.base += linear * (c * equations.constant - committed)
            + key * answers.r
            + bit_u * answers.k
            + bit_v * answers.bit
            + quadratic * equations.quadratic(&answers.first, &answers.bit, c);
        self.count_key += bit_v * answers.k;
        let (messages, [x1, x2]) = (&reduced.proof.messages, &reduced.proof.commitments);
        let [e1, e0] = &messages.cross;
        for (weight, message, point) in [
            (first, &messages.first, x1),
            (second, &messages.second, x2),
            (key, &messages.r, &reduced.r),
            (bit_u, &messages.u, &reduced.bit.u),
            (bit_v, &messages.v, &reduced.bit.v),
            (quadratic, e0, e1),
        ] {
            self.scalars.extend([-weight, -weight * c]);
            self.points.extend([message, point]);
        }
        self.scalars.push(-linear);
        self.points.push(messages.linear);
    }

    fn vanishes(mut self, keys: &[RistrettoPoint], count_key: RistrettoPoint) -> bool {
        let generators = generators();
        self.scalars.append(&mut self.generators);
        self.points.extend_from_slice(&generators.points);
        self.points.extend_from_slice(range_generators(self.range_generators.len()));
        self.scalars.append(&mut self.range_generators);
        self.scalars.append(&mut self.keys);
        self.points.extend_from_slice(keys);
        self.scalars.extend([self.base, self.blinding, self.count_key]);
        self.points.extend([BASE, generators.blinding, count_key]);
        let sum: RistrettoPoint = self
            .scalars
            .par_chunks(CHUNK)
            .zip(self.points.par_chunks(CHUNK))
            .map(|(scalars, points)| weighted_sum(scalars, points))
            .sum();
        sum == RistrettoPoint::identity()
    }
}

/// Whether the equations of all of them hold; all belong to one committee.
fn hold(reduced: &[&Reduced<'_>], rng: &mut (impl RngCore + CryptoRng)) -> bool {
    let Some(one) = reduced.first() else { return true };
    let statement = &one.claim.statement;
    let mut sum = Sum::new(entries(statement.codec.intervals()));
    for proof in reduced {
        sum.add(proof, &std::array::from_fn(|_| Scalar::from(rng.gen::<u128>())));
    }
    sum.vanishes(statement.keys, statement.count_key)
}

/// Checks many proofs of one committee and iteration, and returns the bad ones by their place, in order.
///
/// All equations become one, with weights of 128 bits that are drawn after the proofs were given. If
/// it fails, each proof is checked alone.
pub fn refused(
    claims: &[Claim<'_>],
    matrix: &Matrix,
    rng: &mut (impl RngCore + CryptoRng),
) -> Vec<(usize, Error)> {
    let reduced: Vec<Result<Reduced<'_>, Error>> =
        claims.par_iter().map(|claim| Reduced::new(claim, matrix)).collect();
    let all_hold = hold(&reduced.iter().flatten().collect::<Vec<_>>(), rng);
    reduced
        .iter()
        .enumerate()
        .filter_map(|(index, reduced)| match reduced {
            Err(error) => Some((index, error.clone())),
            Ok(one) if all_hold || hold(&[one], rng) => None,
            Ok(_) => Some((index, FAILED)),
        })
        .collect()
}

/// Which equations of a proof fail, by their number less one.
#[cfg(test)]
pub(super) fn failing(claim: &Claim<'_>, matrix: &Matrix) -> Result<Vec<usize>, Error> {
    let reduced = Reduced::new(claim, matrix)?;
    let statement = &claim.statement;
    let holds = |equation: usize| {
        let mut sum = Sum::new(entries(statement.codec.intervals()));
        sum.add(&reduced, &std::array::from_fn(|index| Scalar::from(u64::from(index == equation))));
        sum.vanishes(statement.keys, statement.count_key)
    };
    Ok((0..EQUATIONS).filter(|equation| !holds(*equation)).collect())
}
