//! Encode, switch, pack and decode against their formulas in wide integers.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use anofel_committee::lattice::{guard_bits, sum_bits, Codec, MAX_WIRE_BITS};
use anofel_committee::ring::{add, centred_binomial, residue, DEGREE, MODULUS};
use anofel_committee::Error;
use common::rng;
use proptest::prelude::*;
use rand::Rng;

const Q: i128 = MODULUS as i128;

/// Adds posts of the given vectors under random masks and decodes with the sum of the masks.
fn add_and_decode(codec: &Codec, vectors: &[Vec<i64>], seed: u64) -> Result<Vec<i64>, Error> {
    let mut rng = rng(seed);
    let mut sums = vec![0; codec.num_blocks() * DEGREE];
    let mut total_mask = vec![0; sums.len()];
    for vector in vectors {
        let clean: Vec<u64> = sums.iter().map(|_| rng.gen_range(0..MODULUS)).collect();
        let noisy: Vec<u64> =
            clean.iter().map(|m| add(*m, residue(centred_binomial(&mut rng)))).collect();
        let mut packed = vec![0; codec.packed_bytes()];
        codec.seal(&noisy, vector, &mut packed);
        codec.add_packed(&mut sums, &packed);
        total_mask.iter_mut().zip(&clean).for_each(|(total, mask)| *total = add(*total, *mask));
    }
    let mut decoded = vec![0; sums.len()];
    for block in 0..codec.num_blocks() {
        let range = block * DEGREE..(block + 1) * DEGREE;
        codec.decode(
            block,
            &sums[range.clone()],
            &total_mask[range.clone()],
            vectors.len() as u32,
            &mut decoded[range],
        )?;
    }
    decoded.truncate(codec.length());
    Ok(decoded)
}

#[test]
fn widths_are_those_of_the_design() {
    // (bound, posts) → b, g as in the table of the documentation.
    for (bound, posts, b, g) in [
        (32767, 512, 25, 7),
        (32767, 1024, 26, 8),
        (32767, 1 << 14, 30, 10),
        (524_287, 1024, 30, 8),
    ] {
        assert_eq!((sum_bits(bound, posts), guard_bits(posts)), (b, g));
        assert_eq!(Codec::new(5, bound, posts, None).unwrap().wire_bits(), b + g);
    }
}

#[test]
fn a_width_beyond_the_limit_is_refused_with_its_number() {
    let error = Codec::new(5, 524_287, 1 << 14, None).unwrap_err();
    assert_eq!(
        error,
        Error::Range {
            what: "the width of a value in bits",
            found: 44,
            least: 2,
            most: MAX_WIRE_BITS.into()
        }
    );
}

#[test]
fn the_guard_is_the_smallest_that_covers_eight_deviations() {
    for posts in (1..=64).chain([511, 512, 513, 767, 768, 769, 3071, 3072, 1 << 14]) {
        let g = guard_bits(posts);
        let covers = |g: u32| 8.0 * (f64::from(posts) / 12.0).sqrt() < 2f64.powi(g as i32 - 1);
        assert!(covers(g) && (g == 1 || !covers(g - 1)), "{posts} posts");
    }
}

#[test]
fn values_beyond_the_bound_and_wrong_lengths_are_refused() {
    let codec = Codec::new(3, 100, 8, None).unwrap();
    assert!(codec.check(&[100, -100, 0]).is_ok());
    assert!(codec.check(&[101, 0, 0]).is_err());
    assert!(codec.check(&[0, -101, 0]).is_err());
    assert!(codec.check(&[i64::MIN, 0, 0]).is_err());
    assert!(codec.check(&[0, 0]).is_err());
}

#[test]
fn all_extremes_at_once_are_added_exactly() {
    for bound in [1, 127, 32767, (1 << 29) - 1] {
        for sign in [1, -1] {
            let codec = Codec::new(DEGREE + 3, bound, 8, None).unwrap();
            let vectors = vec![vec![sign * bound as i64; DEGREE + 3]; 8];
            let sums = add_and_decode(&codec, &vectors, bound).unwrap();
            assert!(sums.iter().all(|sum| *sum == 8 * sign * bound as i64));
        }
    }
}

#[test]
fn a_uniform_word_vector_is_not_decodable() {
    let codec = Codec::new(DEGREE, 32767, 512, None).unwrap();
    let mut rng = rng(5);
    let words: Vec<u64> = (0..DEGREE).map(|_| rng.gen::<u64>() & codec.word_mask()).collect();
    let result = codec.decode(0, &words, &vec![0; DEGREE], 512, &mut vec![0; DEGREE]);
    assert!(matches!(result, Err(Error::Undecodable { .. })));
}

/// Words of a sum with zero mask, one of which is changed: which check refuses it?
fn decode_zeros_with(change: impl Fn(&mut [u64])) -> Result<(), Error> {
    let codec = Codec::new(DEGREE - 1, 32767, 512, None).unwrap();
    let mut words = vec![0; DEGREE];
    change(&mut words);
    codec.decode(0, &words, &vec![0; DEGREE], 4, &mut vec![0; DEGREE])
}

#[test]
fn each_check_of_the_decoder_refuses_alone() {
    let refused = |why| Err(Error::Undecodable { why });
    assert_eq!(decode_zeros_with(|_| ()), Ok(()));
    // Four posts: 8σ = 5.2, so 6 is too far and 5 is not.
    assert_eq!(decode_zeros_with(|words| words[0] = 5), Ok(()));
    assert_eq!(
        decode_zeros_with(|words| words[0] = 6),
        refused("a residual is beyond eight deviations")
    );
    // 2σ² < 1, so residuals of 1 everywhere are each fine and together too many.
    assert_eq!(
        decode_zeros_with(|words| words.fill(1)),
        refused("the residuals of a block are too large")
    );
    let word = |sum: u64| sum << guard_bits(512);
    assert_eq!(decode_zeros_with(|words| words[0] = word(4 * 32767)), Ok(()));
    assert_eq!(
        decode_zeros_with(|words| words[0] = word(4 * 32767 + 1)),
        refused("a sum is beyond what its posts can reach")
    );
    assert_eq!(
        decode_zeros_with(|words| words[DEGREE - 1] = word(1)),
        refused("the padding is not zero")
    );
}

#[test]
fn five_hundred_posts_stay_within_the_guard() {
    let codec = Codec::new(DEGREE, 32767, 512, None).unwrap();
    let mut rng = rng(9);
    let vectors: Vec<Vec<i64>> =
        (0..512).map(|_| (0..DEGREE).map(|_| rng.gen_range(-32767..=32767)).collect()).collect();
    let expected: Vec<i64> =
        (0..DEGREE).map(|i| vectors.iter().map(|vector| vector[i]).sum()).collect();
    assert_eq!(add_and_decode(&codec, &vectors, 10).unwrap(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sums_are_exact_over_the_whole_parameter_range(
        max_posts in prop_oneof![1u32..300, 300u32..=16_384],
        bits in 1u32..32,
        length in 1usize..2 * DEGREE,
        posts in prop_oneof![9 => 1u32..6, 1 => 30u32..60],
        seed: u64,
    ) {
        let bound = (1u64 << bits) - 1;
        let Ok(codec) = Codec::new(length, bound, max_posts, None) else { return Ok(()) };
        let mut rng = rng(seed);
        let largest = bound as i64;
        let vectors: Vec<Vec<i64>> = (0..posts.min(max_posts))
            .map(|_| (0..length).map(|_| match rng.gen_range(0..4) {
                0 => largest,
                1 => -largest,
                _ => rng.gen_range(-largest..=largest),
            }).collect())
            .collect();
        let expected: Vec<i64> = (0..length).map(|i| vectors.iter().map(|v| v[i]).sum()).collect();
        prop_assert_eq!(add_and_decode(&codec, &vectors, seed ^ 1).unwrap(), expected);
    }

    #[test]
    fn encode_and_switch_are_their_formulas(bound in 1u64..1 << 20, posts in 1u32..256, c in 0..MODULUS, m: i64) {
        let codec = Codec::new(1, bound, posts, None).unwrap();
        let (b, w) = (sum_bits(bound, posts), codec.wire_bits());
        let m = m % (bound as i64 + 1);
        let mu = (Q * i128::from(m) + (1 << (b - 1))).div_euclid(1 << b).rem_euclid(Q);
        prop_assert_eq!(i128::from(codec.encode(m)), mu);
        let switched = ((i128::from(c) << w) + Q / 2) / Q % (1 << w);
        prop_assert_eq!(i128::from(codec.switch(c)), switched);
    }

    #[test]
    fn packing_is_undone(seed: u64, bound in 1u64..1 << 24) {
        let codec = Codec::new(DEGREE, bound, 16, None).unwrap();
        let mut rng = rng(seed);
        let words: Vec<u64> = (0..DEGREE).map(|_| rng.gen::<u64>() & codec.word_mask()).collect();
        let mut bytes = vec![0; codec.packed_bytes()];
        codec.pack(words.iter().copied(), &mut bytes);
        prop_assert_eq!(codec.unpack(&bytes), words);
    }
}
