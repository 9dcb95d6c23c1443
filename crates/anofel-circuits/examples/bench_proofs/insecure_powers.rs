//! Powers of tau with a known τ, as a `.ptau` file that snarkjs takes for `groth16 setup`.
//!
//! INSECURE: one party draws τ, α and β, and whoever has them proves anything. It exists because
//! snarkjs takes half an hour to make such a file, which only serves to time snarkjs.
//!
//! The file is the container of iden3, version 1. Points are affine, little-endian, in Montgomery
//! form. Sections 2 to 5 hold τ^i in G1 and G2, α·τ^i and β·τ^i; 12 to 15 hold the same for the
//! Lagrange polynomials of the domains of 1, 2, 4, … points, one after the other.

use anofel_primitives::Fr;
use ark_bn254::{Fq, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::scalar_mul::ScalarMul;
use ark_ec::{AffineRepr, PrimeGroup};
use ark_ff::{BigInteger, Field, PrimeField, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand::rngs::OsRng;

/// A file for circuits of at most 2^power rows.
pub fn insecure_powers_of_tau(power: u32) -> Vec<u8> {
    let [tau, alpha, beta] = [(); 3].map(|()| Fr::rand(&mut OsRng));
    let count = 1usize << power;
    let powers: Vec<Fr> =
        std::iter::successors(Some(Fr::ONE), |x| Some(tau * x)).take(2 * count - 1).collect();
    let lagrange: Vec<Fr> = (0..=power).flat_map(|log| lagrange_at(tau, log)).collect();
    let mut lagrange_and_next = lagrange.clone();
    lagrange_and_next.extend(truncated_lagrange_at(tau, power + 1));
    let times = |factor: Fr, values: &[Fr]| values.iter().map(|x| factor * x).collect::<Vec<_>>();

    let sections = [
        (1, header(power)),
        (2, g1(&powers)),
        (3, g2(&powers[..count])),
        (4, g1(&times(alpha, &powers[..count]))),
        (5, g1(&times(beta, &powers[..count]))),
        (6, g2(&[beta])),
        (7, 0u32.to_le_bytes().to_vec()), // no contributions
        (12, g1(&lagrange_and_next)),
        (13, g2(&lagrange)),
        (14, g1(&times(alpha, &lagrange))),
        (15, g1(&times(beta, &lagrange))),
    ];
    let mut bytes = b"ptau".to_vec();
    bytes.extend(1u32.to_le_bytes());
    bytes.extend((sections.len() as u32).to_le_bytes());
    for (kind, contents) in &sections {
        bytes.extend(u32::to_le_bytes(*kind));
        bytes.extend((contents.len() as u64).to_le_bytes());
        bytes.extend(contents);
    }
    bytes
}

/// The length and modulus of a coordinate, the power, and the power of the ceremony.
fn header(power: u32) -> Vec<u8> {
    let mut bytes = 32u32.to_le_bytes().to_vec();
    bytes.extend(Fq::MODULUS.to_bytes_le());
    bytes.extend(power.to_le_bytes());
    bytes.extend(power.to_le_bytes());
    bytes
}

/// L_j(τ) for the domain of 2^log points.
fn lagrange_at(tau: Fr, log: u32) -> Vec<Fr> {
    domain(log).evaluate_all_lagrange_coefficients(tau)
}

/// The same without the highest power of τ, which sections 2 and 12 do not have.
fn truncated_lagrange_at(tau: Fr, log: u32) -> Vec<Fr> {
    let domain = domain(log);
    let size = 1u64 << log;
    let highest = tau.pow([size - 1]) * domain.size_inv();
    lagrange_at(tau, log).iter().zip(domain.elements()).map(|(l, w)| *l - highest * w).collect()
}

fn domain(log: u32) -> Radix2EvaluationDomain<Fr> {
    Radix2EvaluationDomain::new(1 << log).expect("the field has roots of unity of order 2^28")
}

fn g1(scalars: &[Fr]) -> Vec<u8> {
    let points = G1Projective::generator().batch_mul(scalars);
    points.iter().flat_map(|p: &G1Affine| coordinates(p)).flat_map(montgomery).collect()
}

fn g2(scalars: &[Fr]) -> Vec<u8> {
    let points = G2Projective::generator().batch_mul(scalars);
    points
        .iter()
        .flat_map(|p: &G2Affine| coordinates(p))
        .flat_map(|x| [x.c0, x.c1])
        .flat_map(montgomery)
        .collect()
}

/// No scalar here is 0, so no point is the neutral element.
fn coordinates<P: AffineRepr>(point: &P) -> [P::BaseField; 2] {
    let (x, y) = point.xy().expect("not the neutral element");
    [x, y]
}

fn montgomery(coordinate: Fq) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, limb) in bytes.chunks_exact_mut(8).zip(coordinate.0 .0) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    bytes
}
