//! Proving: loaded once, used for many proofs.

use anofel_primitives::Fr;
use ark_bn254::Bn254;
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, BigInteger256, Field, PrimeField, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand::{CryptoRng, RngCore};
use zeroize::{Zeroize, Zeroizing};

use crate::groth16::key::ProvingKey;
use crate::groth16::proof::Proof;
use crate::statements::{run, Circuit, Statement};
use crate::system::{Mode, System};
use crate::Error;

/// Proves a statement. The blinding is fresh from `rng` for every proof.
///
/// Raises the name of the clause that the witness does not satisfy; it never returns a proof
/// that does not hold.
pub fn prove<S: Statement>(
    key: &ProvingKey,
    statement: &S,
    witness: &<S::Circuit as Circuit>::Witness,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<Proof, Error> {
    key.expect_kind(S::Circuit::KIND)?;
    let system = run::<S::Circuit>(Mode::Solving, &statement.public_inputs(), witness);
    if let Some(clause) = system.failed().first() {
        return Err(Error::Unsatisfied { clause });
    }
    let (factor, shift) = (Zeroizing::new(non_zero(rng)), Zeroizing::new(Fr::rand(rng)));
    let points = create(key, &system, &factor, &shift);
    Ok(Proof::from_points(S::Circuit::KIND, points))
}

/// Groth16's prover, blinded at the end: from A = α + Σ z·A, B = β + Σ z·B and C = Σ z·L + Σ h·H,
/// which satisfy the equation and hide nothing, to u·A, (B + t·δ)/u and C + t·A.
///
/// These satisfy it too, since e(A, t·δ) = e(t·A, δ). For u ≠ 0 and t from the operating system,
/// u·A is any point but the neutral one and (B + t·δ)/u any point, independently, and the equation
/// fixes C: so proofs have the distribution of Groth16's own prover, which adds r·δ and s·δ, up to
/// the neutral A, which that draws once in r times. Nothing of B is needed in G1. (A is neutral for
/// a witness alone that solves a discrete logarithm.)
fn create(key: &ProvingKey, system: &System, u: &Fr, t: &Fr) -> ark_groth16::Proof<Bn254> {
    let assignment = system.assignment();
    let mut scalars: Vec<BigInteger256> = assignment.iter().map(|z| z.into_bigint()).collect();
    let vk = key.verifying_key().points();
    let ((c, b), a) = rayon::join(
        || {
            rayon::join(
                || {
                    let mut h = quotient(system);
                    let mut all = Vec::with_capacity(scalars.len() + h.len());
                    all.extend_from_slice(&scalars);
                    all.extend_from_slice(&h);
                    h.zeroize();
                    let sum = key.c.sum(&all);
                    all.zeroize();
                    sum
                },
                || key.b.sum(&scalars) + vk.beta_g2,
            )
        },
        || key.a.sum(&scalars) + vk.alpha_g1,
    );
    scalars.zeroize();
    let inverse = Zeroizing::new(u.inverse().expect("u was drawn until it was not 0"));
    let (b, c) = ((b + vk.delta_g2 * t) * *inverse, c + a * t);
    ark_groth16::Proof { a: (a * u).into_affine(), b: b.into_affine(), c: c.into_affine() }
}

fn non_zero(rng: &mut (impl RngCore + CryptoRng)) -> Fr {
    loop {
        let drawn = Fr::rand(rng);
        if drawn != Fr::ZERO {
            return drawn;
        }
    }
}

/// The coefficients of h = (a·b − c) / Z, where a, b, c take the values of the constraints'
/// sides on the domain and Z = X^n − 1.
///
/// a·b = c + h·Z has degree below 2n − 1. Modulo X^n − 1 it is c; modulo X^n + 1 it is c − 2·h.
/// So h is half the difference, and c's own values on a coset are never needed.
fn quotient(system: &System) -> Vec<BigInteger256> {
    let inputs = &system.assignment()[..=system.num_public()];
    let domain = Radix2EvaluationDomain::<Fr>::new(system.left().len() + inputs.len())
        .expect("far fewer constraints than the field has roots of unity");
    // The 2n-th root of unity takes the domain to the roots of X^n + 1.
    let root = Radix2EvaluationDomain::<Fr>::new(2 * domain.size())
        .expect("far fewer constraints than the field has roots of unity")
        .group_gen();
    let coset = domain.get_coset(root).expect("a root of unity is not 0");

    let mut left = Vec::with_capacity(domain.size());
    left.extend_from_slice(system.left());
    // Rows that make public inputs independent of each other, as in libsnark: input × 0 = 0.
    left.extend_from_slice(inputs);
    left.resize(domain.size(), Fr::ZERO);
    let mut right = Vec::with_capacity(domain.size());
    right.extend_from_slice(system.right());
    right.resize(domain.size(), Fr::ZERO);
    let mut product: Vec<Fr> = left.iter().zip(&right).map(|(a, b)| *a * b).collect();

    let to_coset = |values: &mut Vec<Fr>| {
        domain.ifft_in_place(values);
        coset.fft_in_place(values);
    };
    rayon::join(
        || rayon::join(|| to_coset(&mut left), || to_coset(&mut right)),
        || domain.ifft_in_place(&mut product),
    );
    for (a, b) in left.iter_mut().zip(&right) {
        *a *= b;
    }
    coset.ifft_in_place(&mut left);
    let half = Fr::from(2u64).inverse().expect("2 is not 0 in the field");
    let quotient =
        product.iter().zip(&left).map(|(c, p)| ((*c - p) * half).into_bigint()).collect();
    left.zeroize();
    right.zeroize();
    product.zeroize();
    quotient
}
