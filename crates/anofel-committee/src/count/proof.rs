//! One proof for a bundle's encrypted bits (Cramer–Damgård–Schoenmakers OR-proofs).
//!
//! For every committee j, with D the dataset type commitment:
//! 1. *zero*: U_j = k·G and V_j = k·Y_j, or
//! 2. *one*, for a type τ that the task takes: U_j = k·G, V_j − G = k·Y_j and D − τ·G' = ρ·H'
//!    on Baby Jubjub (without the last equation if the task takes any type).
//!
//! And for the whole bundle, with V = Σ V_j:
//! 3. *none*: U_j = k_j·G for all j and V = Σ k_j·Y_j, or
//! 4. *single*: U_j = k_j·G for all j and V − G = Σ k_j·Y_j.
//!
//! One challenge of 128 bits covers the bundle, the ciphertexts and all first messages; the
//! challenges of the branches of each OR add up to it modulo 2^128. A branch's challenge is
//! the same integer in both groups, whose orders exceed 2^128, so each branch extracts. The
//! proof carries challenges and responses; the verifier recomputes the first messages. Its size
//! and cost are linear in the number of committees (and of listed types).

use anofel_primitives::babyjubjub::{
    generator_g, generator_h, point_to_bytes, Point, Scalar as TypeScalar,
};
use anofel_primitives::field;
use ark_ec::scalar_mul::wnaf::WnafContext;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::UniformRand;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rand::{CryptoRng, RngCore};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::ballot::{Bundle, Ciphertext, Opening};
use crate::group::{base, decode_scalar, random_scalar, weighted_sum, ELEMENT_BYTES};
use crate::transcript::Transcript;
use crate::Error;

/// A branch's challenge.
const CHALLENGE_BYTES: usize = 16;

/// The branches *none* and *single*.
const TOTALS: [bool; 2] = [false, true];

/// One branch: its challenge and responses.
#[derive(Debug, Clone, PartialEq, Eq, Zeroize)]
struct Branch {
    challenge: u128,
    responses: Vec<Scalar>,
    type_response: Option<TypeScalar>,
}

/// The branches of every OR: one per committee, then the one over the whole bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    ors: Vec<Vec<Branch>>,
}

/// What a branch claims.
struct Claim {
    /// Which ciphertexts' randomness it speaks of.
    committees: std::ops::Range<usize>,
    /// What is subtracted from the sum of their V: 0·G or 1·G.
    one: bool,
    /// The dataset type it opens, if it opens one.
    dataset_type: Option<u32>,
}

/// The first messages of a branch, encoded.
struct FirstMessages {
    bytes: Vec<u8>,
}

fn claims(bundle: &Bundle) -> Vec<Vec<Claim>> {
    let all = 0..bundle.committees.len();
    let per_committee = bundle.committees.iter().enumerate().map(|(j, committee)| {
        let zero = Claim { committees: j..j + 1, one: false, dataset_type: None };
        let ones = committee.branches().into_iter().map(|dataset_type| Claim {
            committees: j..j + 1,
            one: true,
            dataset_type,
        });
        std::iter::once(zero).chain(ones).collect()
    });
    let total = TOTALS
        .map(|one| Claim { committees: all.clone(), one, dataset_type: None })
        .into_iter()
        .collect();
    per_committee.chain(std::iter::once(total)).collect()
}

/// Width of the signed digits in multiplications of published values.
const WNAF_WINDOW: usize = 4;

impl Claim {
    /// z_j·G − e·U_j for every j, then Σ z_j·Y_j − e·(V − one·G), then ζ·H' − e·(D − τ·G').
    fn recompute(
        &self,
        bundle: &Bundle,
        ciphertexts: &[Ciphertext],
        branch: &Branch,
    ) -> FirstMessages {
        let negative = -Scalar::from(branch.challenge);
        let ciphertexts = &ciphertexts[self.committees.clone()];
        let mut points: Vec<RistrettoPoint> = ciphertexts
            .iter()
            .zip(&branch.responses)
            .map(|(ciphertext, z)| {
                RistrettoPoint::vartime_double_scalar_mul_basepoint(&negative, &ciphertext.u, z)
            })
            .collect();
        let scalars: Vec<Scalar> = branch.responses.iter().copied().chain([negative]).collect();
        let bases: Vec<RistrettoPoint> = bundle.committees[self.committees.clone()]
            .iter()
            .map(|committee| committee.key)
            .chain([self.message(ciphertexts)])
            .collect();
        points.push(weighted_sum(&scalars, &bases));
        let on_type = self.dataset_type.zip(branch.type_response).map(|(tau, response)| {
            let challenge = TypeScalar::from(branch.challenge);
            // Everything here is published, so the running time may depend on it.
            let wnaf = WnafContext::new(WNAF_WINDOW);
            let typed = wnaf.mul(generator_g().into_group(), &TypeScalar::from(tau));
            let shifted = bundle.type_commitment.point().into_group() - typed;
            let left = wnaf.mul(generator_h().into_group(), &response);
            (left - wnaf.mul(shifted, &challenge)).into_affine()
        });
        FirstMessages::new(&points, on_type.as_ref())
    }

    /// V − one·G.
    fn message(&self, ciphertexts: &[Ciphertext]) -> RistrettoPoint {
        let sum: RistrettoPoint = ciphertexts.iter().map(|ciphertext| ciphertext.v).sum();
        if self.one {
            sum - RISTRETTO_BASEPOINT_POINT
        } else {
            sum
        }
    }

    fn is_true(&self, opening: &Opening) -> bool {
        let has_one = opening.target.is_some_and(|target| self.committees.contains(&target));
        let type_fits = self.dataset_type.is_none_or(|tau| tau == opening.dataset_type.0);
        self.one == has_one && type_fits
    }

    /// A branch that is not known to be true: challenge and responses first, then the messages.
    fn simulate(&self, rng: &mut (impl RngCore + CryptoRng)) -> Branch {
        Branch {
            challenge: rand::Rng::gen(rng),
            responses: self.committees.clone().map(|_| random_scalar(rng)).collect(),
            type_response: self.dataset_type.map(|_| TypeScalar::rand(rng)),
        }
    }
}

impl FirstMessages {
    fn new(points: &[RistrettoPoint], on_type: Option<&Point>) -> Self {
        let mut bytes: Vec<u8> =
            points.iter().flat_map(|point| point.compress().to_bytes()).collect();
        bytes.extend(on_type.into_iter().flat_map(point_to_bytes));
        Self { bytes }
    }
}

/// The nonces of a true branch, in the place of its responses.
#[derive(ZeroizeOnDrop)]
struct Nonces(Branch);

impl Nonces {
    fn new(claim: &Claim, rng: &mut (impl RngCore + CryptoRng)) -> Self {
        Self(Branch { challenge: 0, ..claim.simulate(rng) })
    }

    /// k_j·G for every j, then Σ k_j·Y_j, then κ·H'.
    fn first_messages(&self, claim: &Claim, bundle: &Bundle) -> FirstMessages {
        let mut points: Vec<RistrettoPoint> = self.0.responses.iter().map(base).collect();
        let keys = &bundle.committees[claim.committees.clone()];
        points.push(keys.iter().zip(&self.0.responses).map(|(c, nonce)| c.key * nonce).sum());
        let on_type = self.0.type_response.map(|nonce| (generator_h() * nonce).into_affine());
        FirstMessages::new(&points, on_type.as_ref())
    }

    /// z_j = nonce_j + e·k_j and ζ = κ + e·ρ.
    fn respond(
        &self,
        claim: &Claim,
        challenge: u128,
        randomness: &[Scalar],
        rho: &TypeScalar,
    ) -> Branch {
        let e = Scalar::from(challenge);
        let secrets = &randomness[claim.committees.clone()];
        Branch {
            challenge,
            responses: self.0.responses.iter().zip(secrets).map(|(n, k)| n + e * k).collect(),
            type_response: self.0.type_response.map(|n| n + TypeScalar::from(challenge) * rho),
        }
    }
}

/// Which branch of every OR an opening that was checked makes true.
pub(super) fn truths(bundle: &Bundle, opening: &Opening) -> Vec<usize> {
    claims(bundle)
        .iter()
        .map(|claims| {
            claims
                .iter()
                .position(|claim| claim.is_true(opening))
                .expect("an opening that was checked makes one branch of every OR true")
        })
        .collect()
}

/// Proves a ballot by the given branches; all others are simulated.
pub(super) fn prove(
    bundle: &Bundle,
    ciphertexts: &[Ciphertext],
    randomness: &[Scalar],
    rho: &TypeScalar,
    truths: &[usize],
    rng: &mut (impl RngCore + CryptoRng),
) -> Proof {
    let claims = claims(bundle);
    let mut transcript = begin(bundle, ciphertexts);
    // The nonces are not moved, so that they are wiped where they are.
    let mut pending = Vec::with_capacity(claims.len());
    for (claims, &truth) in claims.iter().zip(truths) {
        let nonces = Nonces::new(&claims[truth], rng);
        let branches: Vec<Branch> = claims.iter().map(|claim| claim.simulate(rng)).collect();
        for (index, (claim, branch)) in claims.iter().zip(&branches).enumerate() {
            let messages = if index == truth {
                nonces.first_messages(claim, bundle)
            } else {
                claim.recompute(bundle, ciphertexts, branch)
            };
            transcript.field("first messages", &messages.bytes);
        }
        pending.push((nonces, branches));
    }
    let total = transcript.challenge_128();
    let ors = pending
        .iter_mut()
        .zip(claims.iter().zip(truths))
        .map(|((nonces, branches), (claims, &truth))| {
            let others = branches.iter().enumerate().filter(|(index, _)| *index != truth);
            let rest = others.fold(total, |rest, (_, branch)| rest.wrapping_sub(branch.challenge));
            branches[truth] = nonces.respond(&claims[truth], rest, randomness, rho);
            std::mem::take(branches)
        })
        .collect();
    Proof { ors }
}

/// Checks every branch and that the challenges of each OR add up to the one challenge.
pub(super) fn verify(
    bundle: &Bundle,
    ciphertexts: &[Ciphertext],
    proof: &Proof,
) -> Result<(), Error> {
    let mut transcript = begin(bundle, ciphertexts);
    for (claims, branches) in claims(bundle).iter().zip(&proof.ors) {
        for (claim, branch) in claims.iter().zip(branches) {
            let messages = claim.recompute(bundle, ciphertexts, branch);
            transcript.field("first messages", &messages.bytes);
        }
    }
    let total = transcript.challenge_128();
    let adds_up = |branches: &Vec<Branch>| {
        branches.iter().fold(0u128, |sum, branch| sum.wrapping_add(branch.challenge)) == total
    };
    if proof.ors.iter().all(adds_up) {
        Ok(())
    } else {
        Err(Error::Proof { what: "the proof of the encrypted bits" })
    }
}

fn begin(bundle: &Bundle, ciphertexts: &[Ciphertext]) -> Transcript {
    let mut transcript = bundle.transcript();
    for ciphertext in ciphertexts {
        transcript.field("encrypted bit", &ciphertext.to_bytes());
    }
    transcript
}

impl Proof {
    /// Bytes of a proof for this bundle.
    pub(super) fn length(bundle: &Bundle) -> usize {
        claims(bundle).iter().flatten().map(Claim::length).sum()
    }

    /// Every branch in order: challenge, responses, response on Baby Jubjub.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        for branch in self.ors.iter().flatten() {
            bytes.extend_from_slice(&branch.challenge.to_le_bytes());
            branch.responses.iter().for_each(|z| bytes.extend_from_slice(z.as_bytes()));
            bytes.extend(branch.type_response.iter().flat_map(field::to_bytes));
        }
    }

    /// Reads a proof of the right length; scalars must be canonical.
    pub(super) fn read(bundle: &Bundle, bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader(bytes);
        let ors = claims(bundle)
            .iter()
            .map(|claims| claims.iter().map(|claim| claim.read(&mut reader)).collect())
            .collect::<Result<_, _>>()?;
        Ok(Self { ors })
    }
}

impl Claim {
    fn length(&self) -> usize {
        let scalars = self.committees.len() + usize::from(self.dataset_type.is_some());
        CHALLENGE_BYTES + scalars * ELEMENT_BYTES
    }

    fn read(&self, reader: &mut Reader<'_>) -> Result<Branch, Error> {
        let mut challenge = [0; CHALLENGE_BYTES];
        challenge.copy_from_slice(reader.take(CHALLENGE_BYTES)?);
        let responses = self
            .committees
            .clone()
            .map(|_| decode_scalar("a response of the count proof", reader.take(ELEMENT_BYTES)?))
            .collect::<Result<_, _>>()?;
        let what = "a response on Baby Jubjub";
        let type_response = match self.dataset_type {
            None => None,
            Some(_) => Some(
                field::from_bytes(what, reader.take(ELEMENT_BYTES)?)
                    .map_err(|_| Error::NotCanonical { what, index: 0 })?,
            ),
        };
        Ok(Branch { challenge: u128::from_le_bytes(challenge), responses, type_response })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let found = self.0.len();
        let what = "the count proof";
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or(Error::Length { what, expected: count, found })?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
