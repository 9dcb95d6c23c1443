//! Key generation without a dealer: one FROST run per key, batched over the wire.
//!
//! The three parts are those of the FROST crate; each key has its own polynomial and its own
//! proof of knowledge. This module lays many of them side by side and adds one proof for all.
//! The challenge of FROST's own proofs covers the member's number and nothing of the run, so a
//! package could be sent again in another run by somebody who knows no secret behind it. The
//! *proof of possession* binds it: with weights w_j and a challenge c that cover run, member,
//! commitments and proofs, it is a Schnorr proof (R, z) for X = Σ w_j·φ_j0, z = k + c·Σ w_j·a_j0.
//!
//! Package (sent to all): K·t commitments, K proofs of knowledge of 64 bytes, then the proof of
//! possession, 64 bytes.
//! Share (sent to one member, sealed): K scalars.

use std::collections::BTreeMap;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use frost_ristretto255::keys::dkg::{self, round1, round2};
use frost_ristretto255::keys::{SigningShare, VerifiableSecretSharingCommitment};
use frost_ristretto255::{Ciphersuite, Identifier, Ristretto255Sha512, Signature};
use rand::{CryptoRng, RngCore};
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::dealing::{summed_keys, Dealing};
use super::{SecretShares, Shape, ThresholdKeys};
use crate::error::check_length;
use crate::group::{base, decode_point, decode_scalar, random_scalar, weighted_sum, ELEMENT_BYTES};
use crate::random::{seeds, with_generator};
use crate::transcript::Transcript;
use crate::Error;

/// A proof of knowledge or of possession.
const PROOF_BYTES: usize = 64;

/// What a member keeps after part one or two; its bytes are secret.
pub type SecretState = Zeroizing<Vec<u8>>;

/// Bytes of a package.
pub fn package_bytes(shape: Shape) -> usize {
    Dealing::length(shape) + (shape.num_keys + 1) * PROOF_BYTES
}

/// Part one: draws a polynomial per key. Returns what is kept and the package for this `run`.
pub fn part1(
    shape: Shape,
    member: u16,
    run: &[u8],
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<(SecretState, Vec<u8>), Error> {
    let identifier = identifier(shape, member)?;
    let seeds = seeds(shape.num_keys, rng);
    let mut constants = Zeroizing::new(vec![Scalar::ZERO; shape.num_keys]);
    let runs: Vec<(SecretState, round1::Package)> = seeds
        .par_iter()
        .zip(constants.par_iter_mut())
        .map(|(seed, constant)| {
            let (secret, package) = with_generator(seed, |rng| {
                dkg::part1(identifier, shape.num_members, shape.threshold, rng)
            })?;
            *constant = Zeroizing::new(secret.coefficients())[0];
            Ok((secret.serialize()?.into(), package))
        })
        .collect::<Result<_, _>>()
        .map_err(refuse)?;
    let mut package = Vec::with_capacity(package_bytes(shape));
    for (_, dealt) in &runs {
        for point in dealt.commitment().serialize().map_err(refuse)? {
            package.extend_from_slice(&point);
        }
    }
    for (_, dealt) in &runs {
        package.extend_from_slice(&dealt.proof_of_knowledge().serialize().map_err(refuse)?);
    }
    let possession = Possession::new(shape, member, run, &package).prove(&constants, rng);
    package.extend_from_slice(&possession);
    Ok((write_states(runs.iter().map(|(state, _)| state)), package))
}

/// Part two: checks every other member's proofs of knowledge. Returns what is kept and the
/// shares for each other member.
pub fn part2(
    shape: Shape,
    member: u16,
    state: &[u8],
    packages: &BTreeMap<u16, Vec<u8>>,
) -> Result<(SecretState, BTreeMap<u16, SecretState>), Error> {
    let others = read_packages(shape, member, packages)?;
    let states = read_states(shape, state)?;
    // A growing vector leaves copies behind: only pointers to secrets are collected.
    let runs: Vec<(SecretState, BTreeMap<Identifier, round2::Package>)> = states
        .par_iter()
        .zip(&others)
        .map(|(state, packages)| {
            let secret = round1::SecretPackage::deserialize(state).map_err(refuse)?;
            let (secret, outgoing) =
                dkg::part2(secret, packages).map_err(|error| blame(shape, error))?;
            Ok((secret.serialize().map_err(refuse)?.into(), outgoing))
        })
        .collect::<Result<_, Error>>()?;
    let mut shares: BTreeMap<u16, SecretState> = BTreeMap::new();
    for other in shape.members().filter(|&other| other != member) {
        let to = identifier(shape, other)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(shape.num_keys * ELEMENT_BYTES));
        for (_, outgoing) in &runs {
            let package = outgoing.get(&to).ok_or(Error::Members { what: "a share is missing" })?;
            bytes.extend_from_slice(&Zeroizing::new(package.signing_share().serialize()));
        }
        shares.insert(other, bytes);
    }
    Ok((write_states(runs.iter().map(|(state, _)| state)), shares))
}

/// Part three: checks every share and adds them. Returns the keys and the own shares.
pub fn part3(
    shape: Shape,
    member: u16,
    run: &[u8],
    state: &[u8],
    packages: &BTreeMap<u16, Vec<u8>>,
    shares: &BTreeMap<u16, SecretState>,
) -> Result<(ThresholdKeys, SecretShares), Error> {
    let others = read_packages(shape, member, packages)?;
    let states = read_states(shape, state)?;
    for (&dealer, bytes) in shares {
        check_length("the dealt shares", shape.num_keys * ELEMENT_BYTES, bytes.len())
            .map_err(|error| error.by(dealer))?;
    }
    let mut scalars = Zeroizing::new(vec![Scalar::ZERO; shape.num_keys]);
    scalars.par_iter_mut().zip(states).zip(&others).enumerate().try_for_each(
        |(key, ((scalar, state), packages))| {
            let secret = round2::SecretPackage::deserialize(state).map_err(refuse)?;
            let incoming = incoming(shape, key, shares)?;
            let (own, _) =
                dkg::part3(&secret, packages, &incoming).map_err(|error| blame(shape, error))?;
            let own = Zeroizing::new(own.signing_share().serialize());
            *scalar = decode_scalar("the own share", &own)?;
            Ok(())
        },
    )?;
    let checked: Vec<CheckedPackage> = packages
        .iter()
        .map(|(&dealer, package)| check_package(shape, dealer, run, package))
        .collect::<Result<_, _>>()?;
    let keys = public_keys(shape, &checked.iter().collect::<Vec<_>>())?;
    let own = SecretShares::new(member, scalars);
    own.check(&keys)?;
    Ok((keys, own))
}

/// Checks one member's package for a run: encodings and every proof; anyone can.
///
/// FROST checks the proofs inside part two, which needs a member's secrets; an observer has none.
/// So the equations R = μ·G − c·φ_0 of all keys are checked here, together, with weights.
pub fn check_package(
    shape: Shape,
    member: u16,
    run: &[u8],
    package: &[u8],
) -> Result<CheckedPackage, Error> {
    let check = || {
        check_length("the package", package_bytes(shape), package.len())?;
        let (dealt, possession) = package.split_at(package.len() - PROOF_BYTES);
        let (commitments, proofs) = dealt.split_at(Dealing::length(shape));
        let dealing = Dealing::from_bytes(shape, commitments)?;
        Possession::new(shape, member, run, dealt).check(&dealing, possession)?;
        check_proofs(shape, member, &dealing, dealt, proofs)?;
        Ok(CheckedPackage { shape, member, dealing })
    };
    check().map_err(|error: Error| error.by(member))
}

/// A member's package whose proofs hold; only [`check_package`] makes one.
pub struct CheckedPackage {
    shape: Shape,
    member: u16,
    dealing: Dealing,
}

/// One Schnorr proof that the sender knows the secrets of a package, for this run.
struct Possession {
    transcript: Transcript,
    weights: Vec<Scalar>,
}

impl Possession {
    /// For a package without its last proof.
    fn new(shape: Shape, member: u16, run: &[u8], dealt: &[u8]) -> Self {
        let mut transcript = Transcript::new("anofel/1/committee/possession-of-dealt-secrets");
        transcript.field("run", run).number("member", member.into()).field("dealt", dealt);
        let weights = transcript.clone().weights(shape.num_keys);
        Self { transcript, weights }
    }

    fn prove(
        self,
        constants: &[Scalar],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> [u8; PROOF_BYTES] {
        let secret: Zeroizing<Scalar> =
            Zeroizing::new(self.weights.iter().zip(constants).map(|(w, a)| w * a).sum());
        let nonce = Zeroizing::new(random_scalar(rng));
        let first = base(&nonce).compress().to_bytes();
        let answer = *nonce + self.challenge(&first) * *secret;
        let mut proof = [0; PROOF_BYTES];
        proof[..ELEMENT_BYTES].copy_from_slice(&first);
        proof[ELEMENT_BYTES..].copy_from_slice(answer.as_bytes());
        proof
    }

    fn check(self, dealing: &Dealing, proof: &[u8]) -> Result<(), Error> {
        let what = "the proof that the package was made for this run";
        let (first, answer) = proof.split_at(ELEMENT_BYTES);
        let (point, answer) = (decode_point(what, first)?, decode_scalar(what, answer)?);
        let constants: Vec<RistrettoPoint> = dealing.constants().map(|(point, _)| point).collect();
        let sum = weighted_sum(&self.weights, &constants);
        if base(&answer) == point + self.challenge(first) * sum {
            Ok(())
        } else {
            Err(Error::Proof { what })
        }
    }

    fn challenge(self, first: &[u8]) -> Scalar {
        let mut transcript = self.transcript;
        transcript.field("first message", first);
        transcript.scalar()
    }
}

fn check_proofs(
    shape: Shape,
    member: u16,
    dealing: &Dealing,
    package: &[u8],
    proofs: &[u8],
) -> Result<(), Error> {
    let what = "the proof of knowledge of a dealt secret";
    let identifier = identifier(shape, member)?.serialize();
    let mut transcript = Transcript::new("anofel/1/committee/knowledge-of-dealt-secrets");
    transcript.number("member", member.into()).field("package", package);
    let weights = transcript.weights(shape.num_keys);
    let (mut on_base, mut scalars, mut points) = (Scalar::ZERO, Vec::new(), Vec::new());
    for ((proof, (constant, encoded)), weight) in
        proofs.chunks_exact(PROOF_BYTES).zip(dealing.constants()).zip(weights)
    {
        let (r, mu) = proof.split_at(ELEMENT_BYTES);
        let challenge = Ristretto255Sha512::HDKG(&[&identifier, encoded, r].concat())
            .ok_or(Error::Proof { what })?;
        on_base += weight * decode_scalar(what, mu)?;
        scalars.extend([-(weight * challenge), -weight]);
        points.extend([constant, decode_point(what, r)?]);
    }
    if base(&on_base) + weighted_sum(&scalars, &points) == RistrettoPoint::default() {
        Ok(())
    } else {
        Err(Error::Proof { what })
    }
}

/// The keys that the packages of all members, in their order, together make.
pub fn public_keys(shape: Shape, packages: &[&CheckedPackage]) -> Result<ThresholdKeys, Error> {
    let are_all = packages.iter().map(|package| package.member).eq(shape.members());
    if !are_all || packages.iter().any(|package| package.shape != shape) {
        return Err(Error::Members { what: "a package is missing or foreign" });
    }
    let dealings: Vec<&Dealing> = packages.iter().map(|package| &package.dealing).collect();
    Ok(summed_keys(shape, &dealings))
}

fn identifier(shape: Shape, member: u16) -> Result<Identifier, Error> {
    shape.check_member(member)?;
    Identifier::try_from(member).map_err(refuse)
}

/// The packages of all other members, key by key.
fn read_packages(
    shape: Shape,
    member: u16,
    packages: &BTreeMap<u16, Vec<u8>>,
) -> Result<Vec<BTreeMap<Identifier, round1::Package>>, Error> {
    if !packages.keys().copied().eq(shape.members()) {
        return Err(Error::Members { what: "a package is missing or foreign" });
    }
    for (&other, package) in packages {
        check_length("the package", package_bytes(shape), package.len())
            .map_err(|error| error.by(other))?;
    }
    (0..shape.num_keys)
        .into_par_iter()
        .map(|key| {
            packages
                .iter()
                .filter(|(&other, _)| other != member)
                .map(|(&other, package)| {
                    let package = read_package(shape, key, package).map_err(|e| e.by(other))?;
                    Ok((identifier(shape, other)?, package))
                })
                .collect()
        })
        .collect()
}

fn read_package(shape: Shape, key: usize, package: &[u8]) -> Result<round1::Package, Error> {
    let (commitments, proofs) = package.split_at(Dealing::length(shape));
    let row = usize::from(shape.threshold) * ELEMENT_BYTES;
    let not_canonical = |what| move |_| Error::NotCanonical { what, index: key };
    let commitment = VerifiableSecretSharingCommitment::deserialize(
        commitments[key * row..(key + 1) * row].chunks_exact(ELEMENT_BYTES),
    )
    .map_err(not_canonical("the dealer's commitments"))?;
    let proof = Signature::deserialize(&proofs[key * PROOF_BYTES..(key + 1) * PROOF_BYTES])
        .map_err(not_canonical("the proof of knowledge"))?;
    Ok(round1::Package::new(commitment, proof))
}

fn incoming(
    shape: Shape,
    key: usize,
    shares: &BTreeMap<u16, SecretState>,
) -> Result<BTreeMap<Identifier, round2::Package>, Error> {
    // Inserted one by one: collecting would sort them in a vector that is not wiped.
    let mut incoming = BTreeMap::new();
    for (&dealer, bytes) in shares {
        let share = &bytes[key * ELEMENT_BYTES..(key + 1) * ELEMENT_BYTES];
        let share = SigningShare::deserialize(share)
            .map_err(|_| Error::NotCanonical { what: "the dealt shares", index: key }.by(dealer))?;
        incoming.insert(identifier(shape, dealer)?, round2::Package::new(share));
    }
    Ok(incoming)
}

/// One length (4 bytes, little-endian) and one state per key.
fn write_states<'a>(states: impl Iterator<Item = &'a SecretState> + Clone) -> SecretState {
    let length = states.clone().map(|state| 4 + state.len()).sum();
    let mut bytes = Zeroizing::new(Vec::with_capacity(length));
    for state in states {
        bytes.extend_from_slice(&(state.len() as u32).to_le_bytes());
        bytes.extend_from_slice(state);
    }
    bytes
}

fn read_states(shape: Shape, mut bytes: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let what = "the stored state of key generation";
    let damaged = Error::NotCanonical { what, index: 0 };
    let mut states = Vec::with_capacity(shape.num_keys);
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (state, rest) = rest.split_at_checked(length).ok_or_else(|| damaged.clone())?;
        states.push(state);
        bytes = rest;
    }
    if bytes.is_empty() && states.len() == shape.num_keys {
        Ok(states)
    } else {
        Err(damaged)
    }
}

/// A FROST error with its culprit, in our words.
fn blame(shape: Shape, error: frost_ristretto255::Error) -> Error {
    let culprit = error.culprits().first().and_then(|culprit| {
        shape.members().find(|&member| identifier(shape, member).as_ref() == Ok(culprit))
    });
    let what = match error {
        frost_ristretto255::Error::InvalidProofOfKnowledge { .. } => {
            "the proof of knowledge of a dealt secret"
        }
        frost_ristretto255::Error::InvalidSecretShare { .. } => {
            "the match of the dealt shares with their commitments"
        }
        _ => "a step of key generation",
    };
    match culprit {
        Some(member) => Error::Proof { what }.by(member),
        None => Error::Proof { what },
    }
}

fn refuse(_: frost_ristretto255::Error) -> Error {
    Error::Proof { what: "a step of key generation" }
}
