//! Checking proofs, one by one or in batches.

use anofel_primitives::Fr;
use ark_bn254::{Bn254, G1Affine, G1Projective};
use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::{CurveGroup, VariableBaseMSM};
use ark_ff::{AdditiveGroup, Field};
use rand::{CryptoRng, RngCore};
use rayon::prelude::*;

use crate::groth16::final_exponentiation::final_exponentiation;
use crate::groth16::inputs::InputTable;
use crate::groth16::key::VerifyingKey;
use crate::groth16::miller::miller_loop;
use crate::groth16::proof::Proof;
use crate::Error;

type G2Prepared = <Bn254 as Pairing>::G2Prepared;

type Target = <Bn254 as Pairing>::TargetField;

/// Checks proofs of one statement under one key.
#[derive(Debug, Clone)]
pub struct Verifier {
    key: VerifyingKey,
    inputs: InputTable,
    /// e(α, β).
    alpha_beta: Target,
    beta: G2Prepared,
    minus_gamma: G2Prepared,
    minus_delta: G2Prepared,
}

impl Verifier {
    /// Prepares a key.
    pub fn new(key: VerifyingKey) -> Self {
        let points = key.points();
        let inputs = InputTable::new(&points.gamma_abc_g1);
        let alpha_beta = Bn254::pairing(points.alpha_g1, points.beta_g2).0;
        let (beta, minus_gamma, minus_delta) =
            (points.beta_g2.into(), (-points.gamma_g2).into(), (-points.delta_g2).into());
        Self { key, inputs, alpha_beta, beta, minus_gamma, minus_delta }
    }

    /// The key.
    pub fn key(&self) -> &VerifyingKey {
        &self.key
    }

    /// Checks one proof.
    pub fn verify(&self, public: &[Fr], proof: &Proof) -> Result<(), Error> {
        self.key.expect_kind(proof.kind())?;
        if self.holds(public, proof) {
            Ok(())
        } else {
            Err(Error::InvalidProof { statement: self.key.kind().name() })
        }
    }

    /// e(A, B)·e(x, −γ)·e(C, −δ) = e(α, β), in one Miller loop and one final exponentiation.
    fn holds(&self, public: &[Fr], proof: &Proof) -> bool {
        if public.len() != self.inputs.len() {
            return false;
        }
        let ark_groth16::Proof { a, b, c } = proof.points();
        let statement = self.inputs.sum(public).into_affine();
        let b = G2Prepared::from(b);
        let pairs = [(*a, &b), (statement, &self.minus_gamma), (*c, &self.minus_delta)];
        equals(miller_loop(pairs), self.alpha_beta)
    }

    /// Checks many proofs at once: Π e(r_i·A_i, B_i) = e(Σ r_i·α, β)·e(Σ r_i·x_i, γ)·e(Σ r_i·C_i, δ)
    /// with 128-bit factors r_i fresh from `rng`. On failure each proof is checked alone, and
    /// the bad ones are named.
    pub fn verify_batch(
        &self,
        batch: &[(Vec<Fr>, Proof)],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<(), Error> {
        for (_, proof) in batch {
            self.key.expect_kind(proof.kind())?;
        }
        if batch.is_empty() || self.batch_holds(batch, rng) {
            return Ok(());
        }
        let indices: Vec<usize> = (0..batch.len())
            .into_par_iter()
            .filter(|i| !self.holds(&batch[*i].0, &batch[*i].1))
            .collect();
        Err(Error::InvalidBatch { statement: self.key.kind().name(), total: batch.len(), indices })
    }

    fn batch_holds(
        &self,
        batch: &[(Vec<Fr>, Proof)],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> bool {
        let points = self.key.points();
        let inputs = points.gamma_abc_g1.len();
        if batch.iter().any(|(public, _)| public.len() + 1 != inputs) {
            return false;
        }
        let factors: Vec<Fr> = batch
            .iter()
            .map(|_| Fr::from(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())))
            .collect();
        // Σ r_i·(1, x_i): the scalars of the public-input points.
        let mut scalars = vec![Fr::ZERO; inputs];
        for ((public, _), factor) in batch.iter().zip(&factors) {
            scalars[0] += factor;
            for (scalar, value) in scalars[1..].iter_mut().zip(public) {
                *scalar += *factor * value;
            }
        }
        let statement = multiply(&points.gamma_abc_g1, &scalars);
        let alpha = points.alpha_g1 * scalars[0];
        let c: Vec<G1Affine> = batch.iter().map(|(_, proof)| proof.points().c).collect();
        let c = multiply(&c, &factors);
        let [alpha, statement, c] = [-alpha, statement, c].map(|point| point.into_affine());
        let fixed = miller_loop([
            (alpha, &self.beta),
            (statement, &self.minus_gamma),
            (c, &self.minus_delta),
        ]);
        // One Miller loop over a few proofs at a time shares its squarings.
        let product = batch
            .par_chunks(16)
            .zip(factors.par_chunks(16))
            .map(|(proofs, factors)| {
                let a: Vec<G1Projective> = proofs
                    .iter()
                    .zip(factors)
                    .map(|((_, proof), factor)| proof.points().a * factor)
                    .collect();
                let b = proofs.iter().map(|(_, proof)| proof.points().b);
                Bn254::multi_miller_loop(G1Projective::normalize_batch(&a), b).0
            })
            .reduce(|| Target::ONE, |x, y| x * y);
        equals(MillerLoopOutput(product * fixed.0), Target::ONE)
    }
}

fn equals(product: MillerLoopOutput<Bn254>, expected: Target) -> bool {
    final_exponentiation(product).is_some_and(|output| output == expected)
}

fn multiply(bases: &[G1Affine], scalars: &[Fr]) -> G1Projective {
    G1Projective::msm_unchecked(bases, scalars)
}
