//! A key that has gone through its ceremony, as the prover wants it.
//!
//! Only the basis of H differs: Z(τ)·τ^j/δ = −2·Σ_i c_i^j·H_i for j ≤ n − 2, with c_i the odd powers of
//! ω_{2n}. That is one transform in the group.

use anofel_primitives::Fr;
use ark_bn254::{Bn254, G1Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_poly::EvaluationDomain;
use rayon::prelude::*;

use super::first::Circuit;
use super::powers::domain;
use super::zkey::Zkey;
use crate::groth16::key::{Origin, ProvingKey, VerifyingKey};
use crate::shape;

/// Our verification key, which says by which transcript it claims to be made.
pub fn verifying_key(circuit: &Circuit, key: &Zkey, transcript: [u8; 32]) -> VerifyingKey {
    let origin = Origin::Ceremony { transcript };
    let kind = circuit.kind();
    VerifyingKey::new(kind, origin, shape::pinned(kind), verifying_points(key))
}

/// The verification key's points.
pub fn verifying_points(key: &Zkey) -> ark_groth16::VerifyingKey<Bn254> {
    ark_groth16::VerifyingKey {
        alpha_g1: key.alpha_g1,
        beta_g2: key.beta_g2,
        gamma_g2: key.gamma_g2,
        delta_g2: key.delta_g2,
        gamma_abc_g1: key.ic.clone(),
    }
}

/// The key of `ark-groth16`.
pub fn stock_key(key: &Zkey) -> ark_groth16::ProvingKey<Bn254> {
    let mut h: Vec<G1Projective> = key.h.iter().map(|p| p.into_group()).collect();
    domain(key.domain).fft_in_place(&mut h);
    let step = domain(2 * key.domain).group_gen();
    let factors: Vec<Fr> =
        std::iter::successors(Some(-Fr::from(2u64)), |x| Some(*x * step)).take(h.len()).collect();
    h.par_iter_mut().zip(factors).for_each(|(point, x)| *point *= x);
    h.pop();
    ark_groth16::ProvingKey {
        vk: verifying_points(key),
        beta_g1: key.beta_g1,
        delta_g1: key.delta_g1,
        a_query: key.a.clone(),
        b_g1_query: key.b_g1.clone(),
        b_g2_query: key.b_g2.clone(),
        h_query: CurveGroup::normalize_batch(&h),
        l_query: key.l.clone(),
    }
}

/// Our proving key for the same transcript.
pub fn proving_key(circuit: &Circuit, key: &Zkey, transcript: [u8; 32]) -> ProvingKey {
    let origin = Origin::Ceremony { transcript };
    ProvingKey::new(circuit.kind(), circuit.system(), origin, &stock_key(key))
}
