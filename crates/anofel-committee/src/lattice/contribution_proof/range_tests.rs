//! Ranges: honest proofs, every relation alone, every lie, and what a task may ask for.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::prover::Manner;
use super::tests::{committee, proven, rng, sent_by, Sent, GO_ON, LENGTH, LINEAR, NORM, QUADRATIC};
use super::*;
use crate::error::Error;
use crate::lattice::codec::Codec;

const BOUND: u64 = 1000;
const RANGES: [Range; 2] =
    [Range { coordinate: 3, low: -7, high: 20 }, Range { coordinate: 33, low: 0, high: 1000 }];

fn codec_with(length: usize, posts: u32, ranges: &[Range]) -> Result<Codec, Error> {
    Codec::new(length, BOUND, posts, Some(proven(NORM, 2, ranges)))
}

fn codec() -> Codec {
    codec_with(LENGTH, 16, &RANGES).unwrap()
}

fn vector(at_3: i64, at_33: i64) -> Vec<i64> {
    let mut values: Vec<i64> = (0..LENGTH as i64).map(|i| (i * 377) % 1001 - 500).collect();
    (values[3], values[33]) = (at_3, at_33);
    values
}

fn sent(values: &[i64], one: u8) -> Sent {
    sent_by(codec(), values, one, 1, 5)
}

#[test]
fn values_within_their_ranges_are_proven_at_both_ends() {
    let entries = entries(codec().intervals());
    for (values, one) in [
        (vector(-7, 0), 1),
        (vector(20, 1000), 1),
        (vector(0, 0), 1),
        (vec![0; LENGTH], 1),
        (vec![0; LENGTH], 0),
    ] {
        let sent = sent(&values, one);
        let proof = sent.prove().unwrap();
        assert_eq!(proof.len(), PROOF_BYTES + 32 * entries);
        assert_eq!(sent.failing(&proof), Vec::<usize>::new());
        assert_eq!(sent.verify(&proof), Ok(()));
    }
}

#[test]
fn a_value_one_beyond_its_range_is_refused() {
    for values in [vector(-8, 0), vector(21, 0), vector(0, -1), vector(0, 1001)] {
        let lie = sent(&values, 1);
        assert!(lie.codec.check(&values).is_err());
        assert!(lie.prove().is_err());
        assert_eq!(lie.failing(&lie.cheat(GO_ON)), [QUADRATIC], "a digit that is no bit");
        // What the range stops is nothing that the norm would stop.
        let without = sent_by(codec_with(LENGTH, 16, &[]).unwrap(), &values, 1, 1, 5);
        assert!(without.prove().is_ok());
    }
}

/// Rounding leaves a decoy room for small values, but not where a range is proven.
#[test]
fn one_unit_in_a_decoy_is_refused() {
    let mut values = vec![0; LENGTH];
    values[3] = 1;
    let without = sent_by(codec_with(LENGTH, 2, &[]).unwrap(), &values, 0, 1, 6);
    assert!(without.prove().is_ok());
    let lie = sent_by(codec_with(LENGTH, 2, &RANGES).unwrap(), &values, 0, 1, 6);
    assert!(lie.prove().is_err());
    assert_eq!(lie.failing(&lie.cheat(GO_ON)), [QUADRATIC]);
}

#[test]
fn each_relation_of_a_range_fails_alone() {
    let honest = sent(&vector(5, 500), 1);
    let place = honest.cheat(Manner::Misplacing { k: 1, u: 0 });
    assert_eq!(honest.failing(&place), [LINEAR], "place: another k");
    let room = honest.cheat(Manner::Misplacing { k: 0, u: 1 });
    assert_eq!(honest.failing(&room), [LINEAR], "room: another u");
    assert_eq!(
        honest.failing(&honest.cheat(Manner::Misplacing { k: 0, u: 0 })),
        Vec::<usize>::new()
    );
}

#[test]
fn a_range_is_about_the_words_that_were_sent() {
    // The witness claims a value within its range; the words hold another.
    let mut lie = sent(&vector(400, 0), 1);
    let honest = sent(&vector(5, 0), 1);
    lie.witness.y[3] = honest.witness.y[3];
    assert_eq!(lie.failing(&lie.cheat(GO_ON)), [LINEAR]);
}

#[test]
fn every_field_of_a_range_counts() {
    let original = sent(&vector(5, 500), 1);
    let proof = original.prove().unwrap();
    for (name, first) in [
        ("coordinate", Range { coordinate: 4, low: -7, high: 20 }),
        ("low", Range { coordinate: 3, low: -8, high: 20 }),
        ("high", Range { coordinate: 3, low: -7, high: 21 }),
    ] {
        let mut changed = sent(&vector(5, 500), 1);
        changed.codec = codec_with(LENGTH, 16, &[first, RANGES[1]]).unwrap();
        assert_eq!(entries(changed.codec.intervals()), entries(original.codec.intervals()));
        assert!(changed.verify(&proof).is_err(), "{name}");
    }
    let mut none = sent(&vector(5, 500), 1);
    none.codec = codec_with(LENGTH, 16, &[]).unwrap();
    assert!(matches!(none.verify(&proof), Err(Error::Length { .. })));
}

#[test]
fn the_last_value_of_a_second_block_has_its_range() {
    let range = Range { coordinate: 2100, low: 0, high: 10 };
    let codec = codec_with(2101, 16, &[range]).unwrap();
    let mut values = vec![0; 2101];
    values[2100] = 10;
    let honest = sent_by(codec.clone(), &values, 1, 1, 7);
    assert_eq!(honest.verify(&honest.prove().unwrap()), Ok(()));
    values[2100] = 11;
    let lie = sent_by(codec, &values, 1, 1, 7);
    assert_eq!(lie.failing(&lie.cheat(GO_ON)), [QUADRATIC]);
}

#[test]
fn a_batch_with_ranges_names_the_bad_one() {
    let all = [sent(&vector(5, 500), 1), sent(&vec![0; LENGTH], 0), sent(&vector(1, 2), 1)];
    let mut proofs: Vec<Vec<u8>> = all.iter().map(|sent| sent.prove().unwrap()).collect();
    proofs[1] = proofs[2].clone();
    let claims: Vec<Claim<'_>> =
        all.iter().zip(&proofs).map(|(sent, proof)| sent.claim(proof)).collect();
    let refused = refused(&claims, &committee().matrix, &mut rng(83));
    assert_eq!(refused.into_iter().map(|(index, _)| index).collect::<Vec<_>>(), [1]);
}

#[test]
fn what_a_task_may_not_ask_for_is_refused() {
    let range = |coordinate, low, high| Range { coordinate, low, high };
    for ranges in [
        (0..=MAX_RANGES).map(|j| range(j, 0, 1)).collect(),
        vec![range(5, 0, 1), range(5, 0, 1)],
        vec![range(5, 0, 1), range(4, 0, 1)],
        vec![range(LENGTH, 0, 1)],
        vec![range(0, 1, 2)],
        vec![range(0, -2, -1)],
        vec![range(0, 0, BOUND as i64 + 1)],
        vec![range(0, -(BOUND as i64) - 1, 0)],
    ] {
        assert!(matches!(codec_with(LENGTH, 16, &ranges), Err(Error::Range { .. })), "{ranges:?}");
    }
    assert!(codec_with(LENGTH, 16, &[range(0, 0, 0)]).is_ok());
}
