//! What must be true of a key's log, and of the logs of all keys together.

use ark_bn254::{Bn254, G1Affine, G2Affine};
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::Field;
use sha2::{Digest, Sha256};

use super::contribution::{
    beacon_points, challenge, log_hash, Contribution, Parameters, MAX_EXPONENT,
};
use super::error::Error;
use super::points::{combine, factors, same_ratio};
use super::stream::hash_to_g2;
use super::zkey::Zkey;
use crate::statements::StatementKind;

/// How many people must have contributed before a ceremony can end.
pub const MIN_CONTRIBUTIONS: usize = 2;
/// A beacon is hashed 2^10 times.
pub const BEACON_EXPONENT: u8 = 10;

/// Refuses a key that does not come from the first one by the contributions in its log. The first
/// key was checked with [`super::first::Circuit::check_first`].
///
/// 1. Nothing is changed that no contribution may touch.
/// 2. Every contribution: its challenge is the hash of all before it; x is not ±1; its author knew x;
///    δ after it is the one before times x; a beacon is what its parameters give.
/// 3. Nothing follows a beacon.
/// 4. δ is the one after the last contribution, the same in both groups.
/// 5. L and H are those of the first key divided by δ: random combinations of all points, with
///    factors of 128 bits.
pub fn check_chain(first: &Zkey, key: &Zkey) -> Result<(), Error> {
    check_fixed(first, key)?; // (1)
    let mut delta = first.delta_g1;
    for (i, contribution) in key.contributions.iter().enumerate() {
        let before = log_hash(&key.circuit_hash, &key.contributions[..i]);
        let (s, sx) = (&contribution.s, &contribution.sx);
        if contribution.challenge != challenge(&before, s, sx) {
            return Err(Error::DoesNotFollow(i + 1)); // (2)
        }
        check_contribution(i + 1, delta, contribution)?;
        if contribution.is_beacon() == Some(true) && i + 1 < key.contributions.len() {
            return Err(Error::BeaconNotLast(i + 1)); // (3)
        }
        delta = contribution.delta_after;
    }
    if key.delta_g1 != delta {
        return Err(Error::LastDelta); // (4)
    }
    let (one, two) = (G1Affine::generator(), G2Affine::generator());
    if !same_ratio(one, delta, two, key.delta_g2) {
        return Err(Error::AnotherDelta);
    }
    for (name, old, new) in [("L", &first.l, &key.l), ("H", &first.h, &key.h)] {
        let r = factors(new.len());
        let (old, new) = rayon::join(|| combine(old, &r), || combine(new, &r));
        if !same_ratio(new.into_affine(), old.into_affine(), two, key.delta_g2) {
            return Err(Error::NotDivided(name)); // (5)
        }
    }
    Ok(())
}

fn check_fixed(first: &Zkey, key: &Zkey) -> Result<(), Error> {
    let counts = |key: &Zkey| (key.variables, key.public, key.domain, key.l.len(), key.h.len());
    for (name, same) in [
        ("a count", counts(first) == counts(key)),
        ("the circuit hash", first.circuit_hash == key.circuit_hash),
        ("the matrices", first.entries == key.entries),
        ("α", first.alpha_g1 == key.alpha_g1),
        ("β", (first.beta_g1, first.beta_g2) == (key.beta_g1, key.beta_g2)),
        ("γ", first.gamma_g2 == key.gamma_g2),
        ("IC", first.ic == key.ic),
        ("A", first.a == key.a),
        ("B in G1", first.b_g1 == key.b_g1),
        ("B in G2", first.b_g2 == key.b_g2),
    ] {
        if !same {
            return Err(Error::FixedChanged(name));
        }
    }
    Ok(())
}

fn check_contribution(number: usize, before: G1Affine, made: &Contribution) -> Result<(), Error> {
    if made.sx == made.s || made.sx == -made.s {
        return Err(Error::ChangesNothing(number));
    }
    let sp = hash_to_g2(&made.challenge);
    if !same_ratio(made.s, made.sx, sp, made.spx) {
        return Err(Error::NoKnowledge(number));
    }
    if !same_ratio(before, made.delta_after, sp, made.spx) {
        return Err(Error::DeltaDoesNotFollow(number));
    }
    let parameters = Parameters::read(&made.parameters).ok_or(Error::Parameters(number))?;
    match made.is_beacon() {
        None => Err(Error::UnknownContribution(number)),
        Some(false) if parameters.beacon.is_some() || parameters.exponent.is_some() => {
            Err(Error::Parameters(number))
        }
        Some(false) => Ok(()),
        Some(true) => {
            let (exponent, beacon) =
                parameters.exponent.zip(parameters.beacon).ok_or(Error::Parameters(number))?;
            if exponent > MAX_EXPONENT {
                return Err(Error::Parameters(number));
            }
            let (x, s) = beacon_points(&beacon, exponent);
            if made.s != s || made.sx != (s * x).into_affine() {
                return Err(Error::NotThatBeacon(number));
            }
            Ok(())
        }
    }
}

/// Refuses keys of one ceremony that are tied to each other, whose chains were checked.
///
/// 1. All keys have the same number of contributions: one person contributes to all of them.
/// 2. A contribution has another x in every key, also up to its sign. With equal δ in two keys,
///    points of one would serve as points of the other.
/// 3. All keys have different δ, also up to its sign.
pub fn check_together(keys: &[(StatementKind, &Zkey)]) -> Result<(), Error> {
    for (place, (left, one)) in keys.iter().enumerate() {
        for (right, other) in &keys[place + 1..] {
            let names = (left.name(), right.name());
            if one.contributions.len() != other.contributions.len() {
                return Err(Error::DifferentCounts(names.0, names.1));
            }
            let pairs = one.contributions.iter().zip(&other.contributions);
            for (i, (first, second)) in pairs.enumerate() {
                if same_secret(first, second) {
                    return Err(Error::SameSecret(i + 1, names.0, names.1));
                }
            }
            if !one.contributions.is_empty() && same_up_to_sign(&one.delta_g1, &other.delta_g1) {
                return Err(Error::SameDelta(names.0, names.1));
            }
        }
    }
    Ok(())
}

/// e(sx, sp') = e(s, spx') means x = x', and e(sx, sp')·e(s, spx') = 1 means x = −x'.
fn same_secret(first: &Contribution, second: &Contribution) -> bool {
    let sp = hash_to_g2(&second.challenge);
    let is_one = |sx| Bn254::multi_pairing([sx, first.s], [sp, second.spx]).0 == Field::ONE;
    is_one(-first.sx) || is_one(first.sx)
}

fn same_up_to_sign(left: &G1Affine, right: &G1Affine) -> bool {
    *left == *right || *left == -*right
}

/// Refuses a key whose ceremony has not ended as it should.
///
/// 1. At least two people contributed.
/// 2. The last contribution is a beacon,
/// 3. hashed 2^10 times,
/// 4. and derived for this statement from the announced one.
pub fn check_end(kind: StatementKind, key: &Zkey, announced: &[u8]) -> Result<(), Error> {
    let statement = kind.name();
    let (beacons, people): (Vec<_>, Vec<_>) =
        key.contributions.iter().partition(|c| c.is_beacon() == Some(true));
    if people.len() < MIN_CONTRIBUTIONS {
        let (needed, found) = (MIN_CONTRIBUTIONS, people.len());
        return Err(Error::TooFewContributions { statement, needed, found });
    }
    let beacon = beacons.last().ok_or(Error::NoBeacon(statement))?;
    let found = Parameters::read(&beacon.parameters).unwrap_or_default();
    if found.exponent != Some(BEACON_EXPONENT) {
        let (needed, found) = (BEACON_EXPONENT, found.exponent.unwrap_or_default());
        return Err(Error::BeaconExponent { statement, needed, found });
    }
    if found.beacon.as_deref() != Some(&statement_beacon(kind, announced)[..]) {
        return Err(Error::WrongBeacon(statement));
    }
    Ok(())
}

/// The beacon of a statement: SHA-256 over `anofel/1/ceremony-beacon`, the statement's name and the
/// announced beacon.
pub fn statement_beacon(kind: StatementKind, announced: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"anofel/1/ceremony-beacon");
    hash.update([kind as u8]);
    hash.update(announced);
    hash.finalize().into()
}
