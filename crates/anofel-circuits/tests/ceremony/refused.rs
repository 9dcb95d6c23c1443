//! Spoiled files. Each test changes one thing and names the error that must answer it.

use anofel_circuits::ceremony::contribution::Contribution;
use anofel_circuits::ceremony::first::Circuit;
use anofel_circuits::ceremony::powers::Powers;
use anofel_circuits::ceremony::stream::hash_to_g2;
use anofel_circuits::ceremony::verify::{
    check_chain, check_end, statement_beacon, BEACON_EXPONENT,
};
use anofel_circuits::ceremony::zkey::Zkey;
use anofel_circuits::ceremony::{points, Error};
use anofel_circuits::statements::StatementKind;
use anofel_primitives::Fr;
use ark_bn254::{Fq, G1Affine, G2Affine};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{Field, One, PrimeField, UniformRand};
use blake2::{Blake2b512, Digest};
use rand::rngs::OsRng;

use super::common::off_subgroup;
use super::insecure_powers::insecure_powers_of_tau;
use super::{ceremony, verify, BEACON, KIND};

type Section = (u32, Vec<u8>);

/// Splits a file into sections without any of the code under test.
pub fn split(bytes: &[u8]) -> Vec<Section> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut sections) = (12, Vec::new());
    for _ in 0..number(8) {
        let length = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap()) as usize;
        sections.push((number(at), bytes[at + 12..at + 12 + length].to_vec()));
        at += 12 + length;
    }
    sections
}

pub fn join(kind: &str, sections: &[Section]) -> Vec<u8> {
    let mut bytes = [kind.as_bytes(), &1u32.to_le_bytes()].concat();
    bytes.extend((sections.len() as u32).to_le_bytes());
    for (number, contents) in sections {
        bytes.extend(number.to_le_bytes());
        bytes.extend((contents.len() as u64).to_le_bytes());
        bytes.extend(contents);
    }
    bytes
}

pub fn rewrite(bytes: &[u8], kind: &str, change: impl FnOnce(&mut Vec<Section>)) -> Vec<u8> {
    let mut sections = split(bytes);
    change(&mut sections);
    join(kind, &sections)
}

pub fn known_scalar() -> Fr {
    Fr::rand(&mut OsRng)
}

/// A contribution as the formulas say it, for somebody who chooses x.
pub fn contribute_known(key: &Zkey, x: Fr) -> Zkey {
    let mut key = key.clone();
    let mut hash = Blake2b512::new();
    hash.update(key.circuit_hash);
    let absorb = |hash: &mut Blake2b512, c: &Contribution| {
        [c.delta_after, c.s, c.sx].iter().for_each(|p| hash.update(points::hashed(p)));
        hash.update(points::hashed(&c.spx));
        hash.update(c.challenge);
    };
    key.contributions.iter().for_each(|c| absorb(&mut hash, c));
    let s = G1Affine::rand(&mut OsRng);
    let sx = (s * x).into_affine();
    hash.update(points::hashed(&s));
    hash.update(points::hashed(&sx));
    let challenge: [u8; 64] = hash.finalize().into();
    let spx = (hash_to_g2(&challenge) * x).into_affine();
    key.delta_g1 = (key.delta_g1 * x).into_affine();
    key.delta_g2 = (key.delta_g2 * x).into_affine();
    let inverse = x.inverse().unwrap();
    for points in [&mut key.l, &mut key.h] {
        points.iter_mut().for_each(|p| *p = (*p * inverse).into_affine());
    }
    let delta_after = key.delta_g1;
    let parameters = Vec::new();
    let made = Contribution { delta_after, s, sx, spx, challenge, kind: 0, parameters };
    key.contributions.push(made);
    key
}

fn moved(point: G1Affine) -> G1Affine {
    (point + G1Affine::generator()).into_affine()
}

fn refusal(spoil: impl FnOnce(&mut Zkey)) -> Error {
    let mut key = ceremony().last().clone();
    spoil(&mut key);
    verify(&key.to_bytes()).err().unwrap()
}

#[test]
fn a_changed_point_is_refused_by_its_section() {
    assert_eq!(refusal(|key| key.l[100] = moved(key.l[100])), Error::NotDivided("L"));
    assert_eq!(refusal(|key| key.a[5] = moved(key.a[5])), Error::FixedChanged("A"));
    assert_eq!(refusal(|key| key.b_g1[5] = moved(key.b_g1[5])), Error::FixedChanged("B in G1"));
    assert_eq!(refusal(|key| key.b_g2.swap(5, 6)), Error::FixedChanged("B in G2"));
    assert_eq!(refusal(|key| key.ic[1] = moved(key.ic[1])), Error::FixedChanged("IC"));
    assert_eq!(refusal(|key| key.alpha_g1 = moved(key.alpha_g1)), Error::FixedChanged("α"));
    assert_eq!(refusal(|key| key.beta_g1 = moved(key.beta_g1)), Error::FixedChanged("β"));
    assert_eq!(refusal(|key| key.gamma_g2 = key.delta_g2), Error::FixedChanged("γ"));
    let hash = refusal(|key| key.circuit_hash[0] ^= 1);
    assert_eq!(hash, Error::FixedChanged("the circuit hash"));
}

#[test]
fn every_point_of_h_is_covered() {
    let count = ceremony().last().h.len();
    for place in [0, 1, 7, count / 2, count - 2, count - 1] {
        let found = refusal(|key| key.h[place] = moved(key.h[place]));
        assert_eq!(found, Error::NotDivided("H"), "{place}");
    }
    // A multiple of one vector added to all of H: some combinations of it vanish, ours do not.
    let all = refusal(|key| key.h.iter_mut().for_each(|p| *p = moved(*p)));
    assert_eq!(all, Error::NotDivided("H"));
}

#[test]
fn the_matrices_are_the_statement_s() {
    let found = refusal(|key| *key.entries.last_mut().unwrap() ^= 1);
    assert_eq!(found, Error::AnotherCircuit("ownership"));
    let other = Circuit::new(StatementKind::Submission);
    let found = other.expect(ceremony().last()).unwrap_err();
    assert_eq!(found, Error::AnotherCircuit("submission"));
}

#[test]
fn l_and_h_must_be_divided() {
    let made = ceremony();
    let before = &made.states[2];
    let not_divided = |l: bool, h: bool| {
        let mut key = contribute_known(before, known_scalar());
        if !l {
            key.l.clone_from(&before.l);
        }
        if !h {
            key.h.clone_from(&before.h);
        }
        check_chain(&made.first, &key)
    };
    assert_eq!(not_divided(true, true), Ok(()));
    assert_eq!(not_divided(false, false), Err(Error::NotDivided("L")));
    assert_eq!(not_divided(true, false), Err(Error::NotDivided("H")));
}

#[test]
fn the_log_is_in_its_order_and_whole() {
    assert_eq!(refusal(|key| key.contributions.swap(0, 1)), Error::DoesNotFollow(1));
    assert_eq!(refusal(|key| drop(key.contributions.remove(0))), Error::DoesNotFollow(1));
    assert_eq!(refusal(|key| drop(key.contributions.pop())), Error::LastDelta);
    let replayed = refusal(|key| {
        let again = key.contributions[2].clone();
        key.contributions.insert(3, again);
    });
    assert_eq!(replayed, Error::DoesNotFollow(4));
}

#[test]
fn a_proof_from_another_ceremony_is_refused() {
    let made = ceremony();
    let mut elsewhere = made.first.clone();
    elsewhere.circuit_hash[0] ^= 1;
    let stolen = contribute_known(&elsewhere, known_scalar()).contributions.remove(0);
    let mut key = made.first.clone();
    key.delta_g1 = stolen.delta_after;
    key.contributions.push(stolen);
    assert_eq!(check_chain(&made.first, &key), Err(Error::DoesNotFollow(1)));
}

#[test]
fn a_contribution_that_changes_nothing_is_refused() {
    let made = ceremony();
    for x in [Fr::one(), -Fr::one()] {
        let key = contribute_known(&made.states[1], x);
        assert_eq!(check_chain(&made.first, &key), Err(Error::ChangesNothing(3)));
    }
}

#[test]
fn delta_follows_from_the_contributions_alone() {
    let double = |p: G2Affine| (p + p).into_affine();
    assert_eq!(refusal(|key| key.delta_g2 = double(key.delta_g2)), Error::AnotherDelta);
    assert_eq!(refusal(|key| key.delta_g1 = moved(key.delta_g1)), Error::LastDelta);
    // δ set to a chosen value under a proof for another x.
    let made = ceremony();
    let mut key = made.states[2].clone();
    let x = known_scalar();
    key.contributions[2].delta_after = (G1Affine::generator() * x).into_affine();
    key.delta_g1 = key.contributions[2].delta_after;
    key.delta_g2 = (G2Affine::generator() * x).into_affine();
    assert_eq!(check_chain(&made.first, &key), Err(Error::DeltaDoesNotFollow(3)));
}

#[test]
fn a_contribution_without_knowledge_is_refused() {
    let made = ceremony();
    let mut key = made.states[0].clone();
    key.contributions[0].spx = G2Affine::generator();
    assert_eq!(check_chain(&made.first, &key), Err(Error::NoKnowledge(1)));
}

#[test]
fn points_are_canonical_on_their_curve_and_in_their_subgroup() {
    let off = |p: G1Affine| G1Affine::new_unchecked(p.x, p.y + Fq::one());
    assert_eq!(refusal(|key| key.l[3] = off(key.l[3])), Error::NotOnCurve("L"));
    assert_eq!(refusal(|key| key.h[3] = off(key.h[3])), Error::NotOnCurve("H"));
    assert_eq!(refusal(|key| key.a[3] = off(key.a[3])), Error::NotOnCurve("A"));
    let torsion = off_subgroup().mul_bigint(Fr::MODULUS).into_affine();
    let shifted = |p: G2Affine| (p + torsion).into_affine();
    let found = refusal(|key| key.delta_g2 = shifted(key.delta_g2));
    assert_eq!(found, Error::NotInSubgroup("δ in G2"));
    let found = refusal(|key| key.b_g2[9] = shifted(key.b_g2[9]));
    assert_eq!(found, Error::NotInSubgroup("B in G2"));
    let found = refusal(|key| key.contributions[1].spx = shifted(key.contributions[1].spx));
    assert_eq!(found, Error::NotInSubgroup("spx of a contribution"));
    let found = refusal(|key| key.delta_g1 = G1Affine::identity());
    assert_eq!(found, Error::Neutral("δ in G1"));
    let found = refusal(|key| key.contributions[0].s = G1Affine::identity());
    assert_eq!(found, Error::Neutral("s of a contribution"));
    // The same point again, with the modulus added to a coordinate.
    let bytes = rewrite(&ceremony().last().to_bytes(), "zkey", |sections| {
        let x = &mut sections[7].1[..32];
        let (mut carry, limbs) = (0u128, Fq::MODULUS.0);
        for (i, limb) in limbs.into_iter().enumerate() {
            let old = u64::from_le_bytes(x[8 * i..8 * i + 8].try_into().unwrap());
            let sum = u128::from(old) + u128::from(limb) + carry;
            x[8 * i..8 * i + 8].copy_from_slice(&(sum as u64).to_le_bytes());
            carry = sum >> 64;
        }
    });
    assert_eq!(verify(&bytes).err(), Some(Error::NotCanonical("L")));
}

#[test]
fn every_byte_of_a_file_has_one_meaning() {
    let bytes = ceremony().last().to_bytes();
    let found = |bytes: &[u8]| verify(bytes).err().unwrap();
    assert_eq!(found(&bytes[..bytes.len() - 100]), Error::Truncated);
    assert_eq!(found(&[&bytes[..], &[0]].concat()), Error::TrailingBytes);
    assert_eq!(found(b"hello"), Error::AnotherKind { expected: "zkey" });
    assert_eq!(found(&[b"ptau", &bytes[4..]].concat()), Error::AnotherKind { expected: "zkey" });
    assert_eq!(found(&[b"zkey\x02", &bytes[5..]].concat()), Error::Version(2));
    let changed = |change: &dyn Fn(&mut Vec<Section>)| found(&rewrite(&bytes, "zkey", change));
    let twice = changed(&|sections| sections.push(sections[7].clone()));
    assert_eq!(twice, Error::SectionTwice(8));
    assert_eq!(changed(&|sections| drop(sections.remove(7))), Error::SectionMissing(8));
    assert_eq!(changed(&|sections| sections.push((11, vec![]))), Error::SectionUnknown(11));
    assert_eq!(changed(&|sections| sections[8].1.truncate(64)), Error::SectionLength(9));
    assert_eq!(changed(&|sections| sections[9].1.push(0)), Error::SectionLength(10));
    assert_eq!(changed(&|sections| sections[0].1[0] = 2), Error::AnotherSystem);
    assert_eq!(changed(&|sections| sections[1].1[4] ^= 1), Error::AnotherCurve);
}

#[test]
fn a_ceremony_ends_with_two_people_and_the_announced_beacon() {
    let made = ceremony();
    let statement = "ownership";
    let end = |key: &Zkey| {
        check_chain(&made.first, key).unwrap();
        check_end(KIND, key, BEACON)
    };
    let (needed, found) = (2, 0);
    let nobody = Error::TooFewContributions { statement, needed, found };
    assert_eq!(end(&made.first), Err(nobody));
    let one = Error::TooFewContributions { statement, needed, found: 1 };
    assert_eq!(end(&made.states[0]), Err(one));
    assert_eq!(end(&made.states[1]), Err(Error::NoBeacon(statement)));
    let ended = |beacon: &[u8], exponent| {
        let mut key = made.states[1].clone();
        key.add_beacon(beacon, exponent, "beacon").unwrap();
        end(&key)
    };
    let right = statement_beacon(KIND, BEACON);
    assert_eq!(ended(&right, BEACON_EXPONENT), Ok(()));
    assert_eq!(ended(&[7; 32], BEACON_EXPONENT), Err(Error::WrongBeacon(statement)));
    let other = statement_beacon(StatementKind::Submission, BEACON);
    assert_eq!(ended(&other, BEACON_EXPONENT), Err(Error::WrongBeacon(statement)));
    let exponent = Error::BeaconExponent { statement, needed: BEACON_EXPONENT, found: 11 };
    assert_eq!(ended(&right, 11), Err(exponent));
}

#[test]
fn a_beacon_is_what_its_parameters_give() {
    let claim = |parameters: &[u8]| {
        let parameters = parameters.to_vec();
        refusal(|key| key.contributions[3].parameters = parameters)
    };
    let value = [&[3, 32][..], &[9; 32]].concat();
    assert_eq!(claim(&[&[2, 10][..], &value].concat()), Error::NotThatBeacon(4));
    assert_eq!(claim(&value), Error::Parameters(4));
    assert_eq!(claim(&[2, 10]), Error::Parameters(4));
    assert_eq!(claim(&[&[2, 63][..], &value].concat()), Error::Parameters(4));
    assert_eq!(claim(&[9, 9]), Error::Parameters(4));
    assert_eq!(claim(&[1, 200, b'x']), Error::Parameters(4));
    // A person's x under the name of a beacon, and a beacon that hides as a person.
    let known = refusal(|key| {
        key.contributions[0].kind = 1;
        key.contributions[0].parameters = [&[2, 10][..], &value].concat();
    });
    assert_eq!(known, Error::NotThatBeacon(1));
    assert_eq!(refusal(|key| key.contributions[3].kind = 0), Error::Parameters(4));
    assert_eq!(refusal(|key| key.contributions[0].kind = 2), Error::UnknownContribution(1));
    // Another one after it.
    let after = contribute_known(ceremony().last(), known_scalar());
    assert_eq!(check_chain(&ceremony().first, &after), Err(Error::BeaconNotLast(4)));
    let mut ended = ceremony().last().clone();
    assert_eq!(ended.contribute("late"), Err(Error::Ended));
    assert_eq!(ended.add_beacon(&[1; 32], 10, "late"), Err(Error::Ended));
}

#[test]
fn names_and_beacons_have_limits() {
    let mut key = ceremony().first.clone();
    for name in ["", "a\nb", &"x".repeat(65)] {
        assert_eq!(key.contribute(name), Err(Error::Name));
    }
    assert_eq!(key.add_beacon(&[1; 15], 10, "x"), Err(Error::BeaconLength));
    assert_eq!(key.add_beacon(&[1; 256], 10, "x"), Err(Error::BeaconLength));
}

fn first_refusal(spoil: impl FnOnce(&mut Zkey)) -> Error {
    let made = ceremony();
    let mut first = made.first.clone();
    spoil(&mut first);
    made.circuit.check_first(&first, &made.powers).unwrap_err()
}

#[test]
fn the_first_key_follows_from_the_powers() {
    let two = (G2Affine::generator() + G2Affine::generator()).into_affine();
    let at = |name| Error::FirstPoints(name);
    assert_eq!(first_refusal(|first| first.a[5] = moved(first.a[5])), at("A"));
    assert_eq!(first_refusal(|first| first.b_g1[5] = moved(first.b_g1[5])), at("B in G1"));
    assert_eq!(first_refusal(|first| first.b_g2.swap(5, 6)), at("B in G2"));
    assert_eq!(first_refusal(|first| first.ic[1] = moved(first.ic[1])), at("IC or L"));
    assert_eq!(first_refusal(|first| first.l[1] = moved(first.l[1])), at("IC or L"));
    for place in [0, 1, 128, 254, 255] {
        assert_eq!(first_refusal(|first| first.h[place] = moved(first.h[place])), at("H"));
    }
    let header = |name| Error::FirstHeader(name);
    assert_eq!(first_refusal(|first| first.gamma_g2 = two), header("γ"));
    assert_eq!(first_refusal(|first| first.delta_g2 = two), header("δ"));
    assert_eq!(first_refusal(|first| first.delta_g1 = moved(first.delta_g1)), header("δ"));
    assert_eq!(first_refusal(|first| first.alpha_g1 = moved(first.alpha_g1)), header("α"));
    assert_eq!(first_refusal(|first| first.beta_g2 = two), header("β"));
    assert_eq!(first_refusal(|first| first.circuit_hash[0] ^= 1), Error::CircuitHash);
    let entry = ceremony().last().contributions[0].clone();
    assert_eq!(first_refusal(|first| first.contributions.push(entry)), Error::FirstContributed);
}

#[test]
fn a_ceremony_over_other_powers_is_refused() {
    let made = ceremony();
    let other = Powers::read(&insecure_powers_of_tau(8)).unwrap();
    let found = made.circuit.check_first(&made.first, &other).unwrap_err();
    assert_eq!(found, Error::FirstHeader("α"));
    let small = Powers::read(&insecure_powers_of_tau(7)).unwrap();
    let found = made.circuit.check_first(&made.first, &small).unwrap_err();
    assert_eq!(found, Error::TooFewPowers { needed: 8, found: 7 });
}

#[test]
fn powers_of_tau_are_powers_of_one_tau() {
    let made = ceremony();
    let changed = |section: u32, change: &dyn Fn(&mut Vec<u8>)| {
        let bytes = rewrite(&made.file, "ptau", |sections| {
            change(&mut sections.iter_mut().find(|(number, _)| *number == section).unwrap().1);
        });
        Powers::read(&bytes).err().unwrap()
    };
    // Two neighbours change places: both are good points.
    let swap = |size: usize, at: usize| {
        move |contents: &mut Vec<u8>| {
            let (left, right) = contents[at * size..].split_at_mut(size);
            left.swap_with_slice(&mut right[..size]);
        }
    };
    assert_eq!(changed(2, &swap(64, 200)), Error::NotPowers("τ^i in G1"));
    assert_eq!(changed(2, &swap(64, 509)), Error::NotPowers("τ^i in G1"));
    assert_eq!(changed(3, &swap(128, 254)), Error::NotPowers("τ^i in G2"));
    assert_eq!(changed(4, &swap(64, 254)), Error::NotPowers("α·τ^i"));
    assert_eq!(changed(5, &swap(64, 254)), Error::NotPowers("β·τ^i"));
    assert_eq!(changed(2, &swap(64, 0)), Error::NoGenerator);
    let generator = points::to_bytes(&[G2Affine::generator()]);
    let found = changed(6, &|contents| contents.clone_from(&generator));
    assert_eq!(found, Error::AnotherBeta);
    assert_eq!(changed(4, &|contents| contents[..64].fill(0)), Error::Neutral("α·τ^i"));
    assert_eq!(changed(1, &|contents| contents[4] ^= 1), Error::AnotherCurve);
    assert_eq!(changed(5, &|contents| contents.truncate(640)), Error::SectionLength(5));
}

#[test]
fn lagrange_points_are_checked_before_they_are_used() {
    let made = ceremony();
    for (section, size, name) in
        [(12, 64, "τ in G1"), (13, 128, "τ in G2"), (14, 64, "α"), (15, 64, "β")]
    {
        let bytes = rewrite(&made.file, "ptau", |sections| {
            let (_, contents) = sections.iter_mut().find(|(n, _)| *n == section).unwrap();
            let (left, right) = contents[300 * size..].split_at_mut(size);
            left.swap_with_slice(&mut right[..size]);
        });
        let found = made.powers.lagrange(&bytes, 8).err();
        assert_eq!(found, Some(Error::WrongLagrange(name)));
    }
}
