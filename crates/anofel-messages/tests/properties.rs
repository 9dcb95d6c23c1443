//! What decodes encodes to the same bytes again, and nothing makes the decoder panic.
#![allow(clippy::unwrap_used)]

mod common;

use anofel_messages::{
    decode, decode_posting, encode, encode_posting, find, Error, KINDS, LAYOUTS,
};
use common::{arb_record, arb_value, hex, vectors};
use proptest::prelude::*;
use proptest::sample::select;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// How often a default run draws; the long run is ignored by default.
const SHORT: usize = 20_000;
const LONG: usize = 500_000;

/// Reads a record or, without a name, a posting; what was read must give the same bytes.
fn read_again(layout: Option<&str>, bytes: &[u8]) -> Result<(), Error> {
    let again = match layout {
        Some(name) => {
            let layout = find(name).unwrap();
            encode(layout, &decode(layout, bytes)?).unwrap()
        }
        None => {
            let posting = decode_posting(bytes)?;
            let content = encode_posting(posting.kind, &posting.author, &posting.body).unwrap();
            [content, posting.signature].concat()
        }
    };
    assert_eq!(again, bytes);
    Ok(())
}

/// Each vector: the name of a record, or none for a posting, and the bytes.
fn seeds() -> Vec<(Option<String>, Vec<u8>)> {
    let name = |vector: &serde_json::Value| vector["layout"].as_str().unwrap().to_owned();
    let record = |vector: &serde_json::Value| vector.get("kind").is_none().then(|| name(vector));
    vectors().iter().map(|vector| (record(vector), hex(&vector["bytes"]))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_records_come_back(
        (layout, values) in select(LAYOUTS)
            .prop_flat_map(|layout| (Just(layout), arb_record(layout)))
    ) {
        let bytes = encode(layout, &values).unwrap();
        prop_assert_eq!(decode(layout, &bytes), Ok(values));
    }

    #[test]
    fn random_postings_come_back(
        (kind, author, body) in (0..KINDS.len()).prop_flat_map(|index| {
            let kind = &KINDS[index];
            let author: &'static _ = Box::leak(Box::new(kind.author.layout_type()));
            (Just(kind), arb_value(author), arb_record(kind.body))
        }),
        signature in prop::collection::vec(any::<u8>(), 64)
    ) {
        let content = encode_posting(kind, &author, &body).unwrap();
        let posting = decode_posting(&[content.clone(), signature.clone()].concat()).unwrap();
        prop_assert_eq!(posting.signed_length, content.len());
        prop_assert_eq!((posting.kind, posting.author, posting.body), (kind, author, body));
        prop_assert_eq!(posting.signature, signature);
    }
}

fn change_every_byte(masks: &[u8]) {
    for (layout, mut bytes) in seeds() {
        for position in 0..bytes.len() {
            for mask in masks {
                bytes[position] ^= mask;
                let _ = read_again(layout.as_deref(), &bytes);
                bytes[position] ^= mask;
            }
        }
        read_again(layout.as_deref(), &bytes).unwrap();
    }
}

#[test]
fn every_changed_byte_is_refused_or_means_something_else() {
    change_every_byte(&[1, 0x80, 0xff]);
}

#[test]
#[ignore = "takes a minute"]
fn every_changed_byte_is_refused_or_means_something_else_for_all_changes() {
    change_every_byte(&(1..=255).collect::<Vec<_>>());
}

/// Cuts, repeats, overwrites or inserts, as a careless or hostile sender might.
fn mutate(rng: &mut ChaCha20Rng, bytes: &mut Vec<u8>) {
    let position = rng.gen_range(0..=bytes.len());
    match rng.gen_range(0..5) {
        0 => bytes.truncate(position),
        1 => bytes.insert(position, rng.gen()),
        2 => bytes.extend_from_within(position..),
        3 => bytes.iter_mut().skip(position).take(4).for_each(|byte| *byte = 0xff),
        _ => bytes.iter_mut().skip(position).take(2).for_each(|byte| *byte = rng.gen_range(0..4)),
    }
}

fn fuzz(rounds: usize, seed: u64) {
    let (mut rng, seeds) = (ChaCha20Rng::seed_from_u64(seed), seeds());
    for round in 0..rounds {
        let (layout, mut bytes) = seeds[round % seeds.len()].clone();
        if rng.gen_bool(0.25) {
            bytes = (0..rng.gen_range(0..600)).map(|_| rng.gen()).collect();
        }
        for _ in 0..rng.gen_range(0..4) {
            mutate(&mut rng, &mut bytes);
        }
        let _ = read_again(layout.as_deref(), &bytes);
    }
}

#[test]
fn random_and_mutated_bytes_never_panic() {
    fuzz(SHORT, 1);
}

#[test]
#[ignore = "takes minutes"]
fn random_and_mutated_bytes_never_panic_in_a_long_run() {
    fuzz(LONG, rand::random());
}

#[test]
fn no_type_takes_no_bytes() {
    for layout in LAYOUTS {
        for (name, kind) in layout.fields {
            assert!(kind.min_bytes() > 0, "{}.{name}", layout.name);
        }
    }
}

#[test]
fn names_and_numbers_are_unique() {
    for (index, layout) in LAYOUTS.iter().enumerate() {
        assert_eq!(find(layout.name).unwrap(), *layout);
        assert!(LAYOUTS[..index].iter().all(|other| other.name != layout.name));
    }
    let numbers: Vec<_> = KINDS.iter().map(|kind| usize::from(kind.number)).collect();
    assert_eq!(numbers, (1..=KINDS.len()).collect::<Vec<_>>());
}
