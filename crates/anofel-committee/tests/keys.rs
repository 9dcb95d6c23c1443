//! Key generation and handover: honest runs, and every way to cheat.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use anofel_committee::group::{base, lagrange};
use anofel_committee::keys::dealing::Dealing;
use anofel_committee::keys::{dkg, handover, SecretShares, Shape, ThresholdKeys};
use anofel_committee::Error;
use common::{insecure_deal, rng};
use curve25519_dalek::scalar::Scalar;
use zeroize::Zeroizing;

const RUN: &[u8] = b"this run";

type Packages = BTreeMap<u16, Vec<u8>>;

struct Run {
    shape: Shape,
    packages: Packages,
    states: BTreeMap<u16, dkg::SecretState>,
    dealt: BTreeMap<u16, BTreeMap<u16, dkg::SecretState>>,
}

fn run(num_keys: usize, num_members: u16, threshold: u16) -> Run {
    let shape = Shape::new(num_keys, num_members, threshold).unwrap();
    let mut rng = rng(1);
    let (mut states, mut packages, mut dealt) = (BTreeMap::new(), Packages::new(), BTreeMap::new());
    for member in shape.members() {
        let (state, package) = dkg::part1(shape, member, RUN, &mut rng).unwrap();
        assert_eq!(package.len(), dkg::package_bytes(shape));
        states.insert(member, state);
        packages.insert(member, package);
    }
    for member in shape.members() {
        let (state, shares) = dkg::part2(shape, member, &states[&member], &packages).unwrap();
        states.insert(member, state);
        dealt.insert(member, shares);
    }
    Run { shape, packages, states, dealt }
}

impl Run {
    fn incoming(&self, member: u16) -> BTreeMap<u16, dkg::SecretState> {
        let others = self.shape.members().filter(|&dealer| dealer != member);
        others.map(|dealer| (dealer, self.dealt[&dealer][&member].clone())).collect()
    }

    fn finish(&self, member: u16) -> Result<(ThresholdKeys, SecretShares), Error> {
        dkg::part3(
            self.shape,
            member,
            RUN,
            &self.states[&member],
            &self.packages,
            &self.incoming(member),
        )
    }
}

fn reconstruct(shares: &[&SecretShares], key: usize) -> Scalar {
    let members: Vec<u16> = shares.iter().map(|share| share.member()).collect();
    shares.iter().map(|s| lagrange(&members, s.member(), 0) * s.scalars()[key]).sum()
}

/// What anyone makes of the posted packages.
fn observed(shape: Shape, packages: &Packages) -> Result<ThresholdKeys, Error> {
    let checked = packages
        .iter()
        .map(|(&member, package)| dkg::check_package(shape, member, RUN, package))
        .collect::<Result<Vec<_>, _>>()?;
    dkg::public_keys(shape, &checked.iter().collect::<Vec<_>>())
}

#[test]
fn everybody_gets_the_same_keys_and_any_t_hold_them() {
    for (n, t) in [(2, 2), (3, 2), (4, 3), (5, 3), (5, 5)] {
        let run = run(3, n, t);
        let ends: Vec<_> = run.shape.members().map(|member| run.finish(member).unwrap()).collect();
        let keys = observed(run.shape, &run.packages).unwrap();
        assert!(ends.iter().all(|(own, _)| own.to_bytes() == keys.to_bytes()));
        ThresholdKeys::from_bytes(run.shape, &keys.to_bytes()).unwrap();
        let last: Vec<&SecretShares> = ends.iter().rev().take(t.into()).map(|(_, s)| s).collect();
        for key in 0..3 {
            assert_eq!(base(&reconstruct(&last, key)), keys.public()[key]);
        }
        let few: Vec<&SecretShares> = last[1..].to_vec();
        assert_ne!(base(&reconstruct(&few, 0)), keys.public()[0], "t - 1 shares are not enough");
    }
}

#[test]
fn shapes_without_an_honest_majority_are_refused() {
    for (n, t) in [(1, 1), (3, 1), (4, 2), (5, 2), (3, 4), (17, 9), (0, 0)] {
        assert!(Shape::new(1, n, t).is_err(), "({n}, {t})");
    }
    assert!(Shape::new(0, 3, 2).is_err());
}

#[test]
fn a_bad_proof_of_knowledge_names_its_member() {
    let run = run(2, 3, 2);
    for key in 0..2 {
        // R of the proof, then μ, of each key alone.
        for part in 0..2 {
            let mut packages = run.packages.clone();
            let other = run.packages[&1].clone();
            let at = dkg::package_bytes(run.shape) - (3 - key) * 64 + part * 32;
            packages.get_mut(&2).unwrap()[at..at + 32].copy_from_slice(&other[at..at + 32]);
            let (state, _) = dkg::part1(run.shape, 1, RUN, &mut rng(3)).unwrap();
            let error = dkg::part2(run.shape, 1, &state, &packages).err().unwrap();
            let what = "the proof of knowledge of a dealt secret";
            assert_eq!(error, Error::Proof { what }.by(2));
            assert_eq!(observed(run.shape, &packages).err().unwrap().culprit(), Some(2));
        }
    }
}

#[test]
fn a_package_of_another_run_or_member_names_its_sender() {
    let what = "the proof that the package was made for this run";
    for num_keys in [1, 3] {
        let run = run(num_keys, 3, 2);
        let shape = run.shape;
        for (&member, package) in &run.packages {
            dkg::check_package(shape, member, RUN, package).unwrap();
            let elsewhere = dkg::check_package(shape, member, b"another run", package);
            assert_eq!(elsewhere.err(), Some(Error::Proof { what }.by(member)));
            let other = member % 3 + 1;
            let claimed = dkg::check_package(shape, other, RUN, package);
            assert_eq!(claimed.err(), Some(Error::Proof { what }.by(other)));
        }
        // The proof of another package, and each half of it.
        for range in [0..64, 0..32, 32..64] {
            let mut mixed = run.packages[&1].clone();
            let end = mixed.len() - 64;
            let range = end + range.start..end + range.end;
            mixed[range.clone()].copy_from_slice(&run.packages[&2][range]);
            let error = dkg::check_package(shape, 1, RUN, &mixed).err();
            assert_eq!(error, Some(Error::Proof { what }.by(1)));
        }
    }
}

#[test]
fn a_copied_package_is_refused() {
    let run = run(1, 3, 2);
    let mut packages = run.packages.clone();
    packages.insert(3, packages[&1].clone());
    assert_eq!(observed(run.shape, &packages).err().unwrap().culprit(), Some(3));
}

#[test]
fn malformed_packages_name_their_member() {
    let run = run(1, 3, 2);
    let mut short = run.packages.clone();
    short.get_mut(&2).unwrap().pop();
    assert_eq!(observed(run.shape, &short).err().unwrap().culprit(), Some(2));
    for at in [0, 32, 64, 96] {
        let mut bad = run.packages.clone();
        bad.get_mut(&2).unwrap()[at..at + 32].fill(0xff);
        assert_eq!(observed(run.shape, &bad).err().unwrap().culprit(), Some(2), "at {at}");
    }
    let mut missing = run.packages.clone();
    missing.remove(&2);
    assert!(observed(run.shape, &missing).is_err());
}

#[test]
fn a_bad_share_names_its_dealer_to_the_receiver_and_to_everybody() {
    let mut run = run(2, 3, 2);
    let check = |run: &Run| {
        let commitments = &run.packages[&1][..Dealing::length(run.shape)];
        let dealing = Dealing::from_bytes(run.shape, commitments).unwrap();
        dealing.check_shares(2, &run.dealt[&1][&2]).map(drop)
    };
    check(&run).unwrap();
    let share = run.dealt.get_mut(&1).unwrap().get_mut(&2).unwrap();
    share[32] ^= 1;
    assert_eq!(run.finish(2).err().unwrap().culprit(), Some(1));
    assert!(check(&run).is_err());
    run.finish(3).unwrap();
}

#[test]
fn a_damaged_state_is_refused() {
    let run = run(2, 3, 2);
    for state in [&run.states[&1][1..], &run.states[&1][..20], &[]] {
        assert!(dkg::part3(run.shape, 1, RUN, state, &run.packages, &run.incoming(1)).is_err());
    }
}

#[test]
fn keys_that_do_not_lie_on_one_polynomial_are_refused() {
    let mut rng = rng(4);
    let shape = Shape::new(2, 4, 3).unwrap();
    let dealt = insecure_deal(shape, &mut rng);
    let other = insecure_deal(shape, &mut rng);
    let (bytes, foreign) = (dealt.keys.to_bytes(), other.keys.to_bytes());
    for index in 0..10 {
        let mut changed = bytes.clone();
        changed[index * 32..(index + 1) * 32]
            .copy_from_slice(&foreign[index * 32..(index + 1) * 32]);
        let error = ThresholdKeys::from_bytes(shape, &changed).err().unwrap();
        assert_eq!(error, Error::Proof { what: "the degree of the committee's sharing" });
    }
    let mut neutral = bytes.clone();
    neutral[..32].fill(0);
    assert_eq!(
        ThresholdKeys::from_bytes(shape, &neutral).err().unwrap(),
        Error::Neutral { what: "a committee key" }
    );
    assert!(ThresholdKeys::from_bytes(shape, &bytes[1..]).is_err());
    let mut not_canonical = bytes;
    not_canonical[..32].fill(0xff);
    assert!(ThresholdKeys::from_bytes(shape, &not_canonical).is_err());
}

#[test]
fn shares_of_other_keys_are_refused() {
    let mut rng = rng(5);
    let shape = Shape::new(2, 3, 2).unwrap();
    let (one, two) = (insecure_deal(shape, &mut rng), insecure_deal(shape, &mut rng));
    assert!(one.shares[0].check(&two.keys).is_err());
    let bytes = one.shares[0].to_secret_bytes();
    assert!(SecretShares::from_bytes(&one.keys, 1, &bytes).is_ok());
    assert!(SecretShares::from_bytes(&one.keys, 2, &bytes).is_err());
    assert!(SecretShares::from_bytes(&one.keys, 4, &bytes).is_err());
    assert!(!format!("{:?}", one.shares[0]).contains(&format!("{:?}", one.shares[0].scalars()[0])));
}

struct HandedOver {
    keys: ThresholdKeys,
    shares: Vec<SecretShares>,
}

fn hand_over(old: &common::InsecureDealt, dealers: &[u16], new: Shape) -> HandedOver {
    let mut rng = rng(6);
    let dealt: Vec<handover::Dealt> = dealers
        .iter()
        .map(|&d| {
            handover::deal(&old.keys, &old.shares[usize::from(d) - 1], dealers, new, &mut rng)
                .unwrap()
        })
        .collect();
    let dealings: Vec<Dealing> = dealers
        .iter()
        .zip(&dealt)
        .map(|(&d, (commitments, _))| {
            handover::check_dealing(&old.keys, dealers, d, new, commitments).unwrap()
        })
        .collect();
    let keys = handover::new_keys(&old.keys, new, &dealings.iter().collect::<Vec<_>>()).unwrap();
    let shares = new
        .members()
        .map(|member| {
            let received: Vec<_> = dealings
                .iter()
                .zip(&dealt)
                .map(|(dealing, (_, shares))| {
                    dealing.check_shares(member, &shares[usize::from(member) - 1]).unwrap()
                })
                .collect();
            handover::receive(&keys, member, &received).unwrap()
        })
        .collect();
    HandedOver { keys, shares }
}

#[test]
fn a_refresh_and_a_change_of_members_keep_the_key_and_retire_the_shares() {
    let old = insecure_deal(Shape::new(2, 3, 2).unwrap(), &mut rng(7));
    for (dealers, n, t) in [([1, 2], 3, 2), ([2, 3], 3, 2), ([1, 3], 5, 3), ([1, 2], 2, 2)] {
        let new = hand_over(&old, &dealers, Shape::new(2, n, t).unwrap());
        assert_eq!(new.keys.encoded_public(), old.keys.encoded_public());
        ThresholdKeys::from_bytes(new.keys.shape(), &new.keys.to_bytes()).unwrap();
        let chosen: Vec<&SecretShares> = new.shares.iter().rev().take(t.into()).collect();
        assert_eq!(reconstruct(&chosen, 0), old.secrets[0]);
        assert_eq!(reconstruct(&chosen, 1), old.secrets[1]);
        // An old share is none of the new ones, and does not combine with them.
        assert!(old.shares[0].check(&new.keys).is_err());
        let mixed: Vec<&SecretShares> =
            std::iter::once(&old.shares[0]).chain(new.shares[1..usize::from(t)].iter()).collect();
        assert_ne!(reconstruct(&mixed, 0), old.secrets[0]);
    }
}

#[test]
fn a_dealer_cannot_change_the_key() {
    let old = insecure_deal(Shape::new(2, 3, 2).unwrap(), &mut rng(8));
    let new = Shape::new(2, 3, 2).unwrap();
    // Honest for the wrong quorum: the constant has another Lagrange weight.
    let (commitments, _) =
        handover::deal(&old.keys, &old.shares[0], &[1, 3], new, &mut rng(9)).unwrap();
    let error = handover::check_dealing(&old.keys, &[1, 2], 1, new, &commitments).err().unwrap();
    let what = "the match of the dealt secret with the dealer's own share";
    assert_eq!(error, Error::Proof { what }.by(1));
    let dealing = handover::check_dealing(&old.keys, &[1, 3], 1, new, &commitments).unwrap();
    let error = handover::new_keys(&old.keys, new, &[&dealing]).err().unwrap();
    assert_eq!(error, Error::Proof { what: "the unchanged public key" });
}

#[test]
fn dealers_are_t_old_members_with_current_shares() {
    let old = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng(10));
    let foreign = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng(11));
    let new = Shape::new(1, 3, 2).unwrap();
    for dealers in [&[1][..], &[1, 2, 3], &[2, 1], &[1, 1], &[1, 4], &[2, 3]] {
        assert!(
            handover::deal(&old.keys, &old.shares[0], dealers, new, &mut rng(12)).is_err(),
            "{dealers:?}"
        );
    }
    assert!(handover::deal(&old.keys, &foreign.shares[0], &[1, 2], new, &mut rng(12)).is_err());
}

#[test]
fn shares_dealt_to_another_are_refused() {
    let old = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng(13));
    let new = Shape::new(1, 3, 2).unwrap();
    let (commitments, shares): (Vec<u8>, Vec<Zeroizing<Vec<u8>>>) =
        handover::deal(&old.keys, &old.shares[0], &[1, 2], new, &mut rng(14)).unwrap();
    let dealing = handover::check_dealing(&old.keys, &[1, 2], 1, new, &commitments).unwrap();
    assert!(dealing.check_shares(1, &shares[0]).is_ok());
    assert!(dealing.check_shares(2, &shares[0]).is_err());
    assert!(dealing.check_shares(4, &shares[0]).is_err());
}
