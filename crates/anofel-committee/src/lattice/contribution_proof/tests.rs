//! Honest proofs, every lie, every equation and every field of the transcript, each alone.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::OnceLock;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::bounds::root_above;
use super::prover::{attempt, Manner};
use super::verifier::failing;
use super::*;
use crate::count::CIPHERTEXT_BYTES;
use crate::error::Error;
use crate::group::{base, encode_points, random_scalar, small_scalar};
use crate::lattice::codec::{Codec, Proven};
use crate::lattice::contribution::{product, transform, Post};
use crate::ring::{self, DEGREE, MODULUS};

pub(super) const LENGTH: usize = 34;
pub(super) const NORM: u64 = 3000;
pub(super) const LINEAR: usize = 2;
pub(super) const QUADRATIC: usize = 6;
pub(super) const GO_ON: Manner = Manner::Cheating { offset: None, fork: 0 };

pub(super) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn codec() -> Codec {
    Codec::new(LENGTH, 1000, 16, Some(proven(NORM, 2, &[]))).unwrap()
}

pub(super) fn proven(norm: u64, max_liars: u32, ranges: &[Range]) -> Proven {
    Proven { norm, max_liars, ranges: ranges.to_vec() }
}

pub(super) struct Committee {
    keys: Vec<RistrettoPoint>,
    count_key: RistrettoPoint,
    pub(super) matrix: Matrix,
}

pub(super) fn committee() -> &'static Committee {
    static COMMITTEE: OnceLock<Committee> = OnceLock::new();
    COMMITTEE.get_or_init(|| {
        let mut rng = rng(1);
        let keys = (0..DEGREE).map(|_| base(&random_scalar(&mut rng))).collect();
        let count_key = base(&random_scalar(&mut rng));
        Committee { keys, count_key, matrix: Matrix::new(post().public_seed(), 2) }
    })
}

fn post() -> Post {
    Post {
        genesis: [1; 32],
        task: [2; 32],
        iteration: 3,
        key_id: [4; 32],
        position: 1,
        scope: [5; 32],
        nullifier: [6; 32],
        tag: [7; 32],
        pk_sig: [8; 32],
    }
}

/// Everything that a client sends and knows; tests change it at will.
pub(super) struct Sent {
    pub(super) codec: Codec,
    bounds: Bounds,
    post: Post,
    keys: Vec<RistrettoPoint>,
    count_key: RistrettoPoint,
    bit: [u8; CIPHERTEXT_BYTES],
    r: [u8; 32],
    wrapped: Vec<u8>,
    points: Vec<RistrettoPoint>,
    packed: Vec<u8>,
    pub(super) witness: Witness,
}

fn sent(values: &[i64], one: u8, stretch: i64, seed: u64) -> Sent {
    sent_by(codec(), values, one, stretch, seed)
}

pub(super) fn sent_by(codec: Codec, values: &[i64], one: u8, stretch: i64, seed: u64) -> Sent {
    let (committee, mut rng) = (committee(), rng(seed));
    let secret: Vec<i64> =
        (0..DEGREE).map(|_| stretch * ring::centred_binomial(&mut rng)).collect();
    let (r, k) = (random_scalar(&mut rng), random_scalar(&mut rng));
    let points: Vec<RistrettoPoint> = committee
        .keys
        .iter()
        .zip(&secret)
        .map(|(key, s)| key * r + base(&small_scalar(*s)))
        .collect();
    let plain = masks(&secret, codec.num_blocks());
    let noisy = |value: &u64| ring::add(*value, ring::residue(ring::centred_binomial(&mut rng)));
    let masks: Vec<u64> = plain.iter().map(noisy).collect();
    let mut packed = vec![0; codec.packed_bytes()];
    codec.seal(&masks, values, &mut packed);
    let mut bit = [0; CIPHERTEXT_BYTES];
    bit[..32].copy_from_slice(base(&k).compress().as_bytes());
    let v = committee.count_key * k + base(&Scalar::from(one));
    bit[32..].copy_from_slice(v.compress().as_bytes());
    let mut sent = Sent {
        bounds: codec.bounds().unwrap(),
        codec,
        post: post(),
        keys: committee.keys.clone(),
        count_key: committee.count_key,
        bit,
        r: base(&r).compress().to_bytes(),
        wrapped: encode_points(&points).as_flattened().to_vec(),
        points,
        packed,
        witness: Witness { secret, r, k, one, y: Vec::new() },
    };
    sent.witness.y = added(&sent, &plain);
    sent
}

/// A·s without noise.
fn masks(secret: &[i64], num_blocks: usize) -> Vec<u64> {
    let transformed = transform(secret);
    let mut masks = vec![0; num_blocks * DEGREE];
    for (k, block) in masks.as_chunks_mut().0.iter_mut().enumerate() {
        product(committee().matrix.block(k), &transformed, block);
    }
    masks
}

fn added(sent: &Sent, plain: &[u64]) -> Vec<i64> {
    let mut lifted = vec![0; plain.len()];
    let blocks = sent.packed.chunks_exact(sent.codec.block_bytes());
    for (lifted, packed) in lifted.chunks_exact_mut(DEGREE).zip(blocks) {
        sent.codec.lift_block(packed, lifted);
    }
    lifted.iter().zip(plain).map(|(a, b)| ring::centred(ring::subtract(*a, *b))).collect()
}

impl Sent {
    fn statement(&self) -> Statement<'_> {
        Statement {
            codec: &self.codec,
            bounds: self.bounds,
            post: &self.post,
            keys: &self.keys,
            count_key: self.count_key,
            bit: &self.bit,
            r: &self.r,
            wrapped: &self.wrapped,
            packed: &self.packed,
        }
    }

    pub(super) fn claim<'a>(&'a self, proof: &'a [u8]) -> Claim<'a> {
        Claim { statement: self.statement(), wrapped: &self.points, proof }
    }

    pub(super) fn prove(&self) -> Result<Vec<u8>, Error> {
        prove(&self.statement(), &committee().matrix, &self.witness, &mut rng(77))
    }

    pub(super) fn cheat(&self, manner: Manner) -> Vec<u8> {
        attempt(&self.statement(), &committee().matrix, &self.witness, manner, &mut rng(78))
            .unwrap()
            .to_bytes()
    }

    pub(super) fn verify(&self, proof: &[u8]) -> Result<(), Error> {
        let refused = refused(&[self.claim(proof)], &committee().matrix, &mut rng(79));
        refused.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    pub(super) fn failing(&self, proof: &[u8]) -> Vec<usize> {
        failing(&self.claim(proof), &committee().matrix).unwrap()
    }
}

fn update() -> Vec<i64> {
    (0..LENGTH as i64).map(|i| (i * 377) % 1001 - 500).collect()
}

fn honest() -> Sent {
    sent(&update(), 1, 1, 2)
}

const ZEROS: [i64; LENGTH] = [0; LENGTH];

#[test]
fn honest_proofs_hold_and_have_one_length() {
    for (number, (values, one)) in
        [(update(), 1), (ZEROS.to_vec(), 0), (ZEROS.to_vec(), 1)].into_iter().enumerate()
    {
        let sent = sent(&values, one, 1, 10 + number as u64);
        let proof = sent.prove().unwrap();
        assert_eq!(proof.len(), PROOF_BYTES);
        assert_eq!(sent.failing(&proof), Vec::<usize>::new());
        assert_eq!(sent.verify(&proof), Ok(()));
    }
}

#[test]
fn a_vector_of_exactly_the_norm_is_proven() {
    let mut values = ZEROS;
    values[0] = NORM as i64;
    let sent = sent(&values, 1, 1, 20);
    assert_eq!(sent.verify(&sent.prove().unwrap()), Ok(()));
}

#[test]
fn each_equation_fails_alone() {
    let sent = honest();
    for (offset, equation) in [0, 1, 2, 3, 4, 5, 6, 6].into_iter().enumerate() {
        let proof = sent.cheat(Manner::Cheating { offset: Some(offset), fork: 0 });
        assert_eq!(sent.failing(&proof), [equation]);
        assert!(sent.verify(&proof).is_err());
    }
}

/// Proofs of false statements by a prover who goes on: which equation stops it.
#[test]
fn each_lie_is_caught_by_its_equation() {
    // An update where the bit says zero.
    let decoy = sent(&update(), 0, 1, 30);
    assert!(decoy.prove().is_err());
    assert_eq!(decoy.failing(&decoy.cheat(GO_ON)), [QUADRATIC]);

    // The same, with a witness that claims the bit is one.
    let mut claimed = sent(&update(), 0, 1, 30);
    claimed.witness.one = 1;
    assert_eq!(claimed.failing(&claimed.prove().unwrap()), [5], "V = k·Y + b·G");

    // Four times the norm.
    let mut values = ZEROS;
    values[3] = 4 * NORM as i64;
    let long = sent(&values, 1, 1, 31);
    assert!(long.prove().is_err());
    assert_eq!(long.failing(&long.cheat(GO_ON)), [QUADRATIC]);

    // The same, with a short y that is not what the words hold.
    let mut short = sent(&values, 1, 1, 31);
    short.witness.y = vec![0; DEGREE];
    assert_eq!(short.failing(&short.cheat(GO_ON)), [LINEAR]);

    // A long secret, and a short one that is not what C holds.
    let stretched = sent(&update(), 1, 8, 32);
    assert!(stretched.prove().is_err());
    assert_eq!(stretched.failing(&stretched.cheat(GO_ON)), [QUADRATIC]);
    let mut other = sent(&update(), 1, 8, 32);
    other.witness.secret.iter_mut().for_each(|s| *s /= 8);
    assert_eq!(other.failing(&other.cheat(GO_ON)), [LINEAR]);

    // A word of garbage.
    let mut garbage = honest();
    garbage.packed[2] ^= 0x80;
    assert_eq!(garbage.failing(&garbage.cheat(GO_ON)), [LINEAR]);

    // Another r, another k.
    let mut sent = honest();
    sent.witness.r += Scalar::ONE;
    assert_eq!(sent.failing(&sent.prove().unwrap()), [LINEAR, 3]);
    let mut sent = honest();
    sent.witness.k += Scalar::ONE;
    assert_eq!(sent.failing(&sent.prove().unwrap()), [4, 5]);
}

#[test]
fn values_around_q_are_not_small() {
    // y = q − 1 in one place is −1 and passes; y near q/2 is as long as can be, and does not wrap.
    let mut sent = honest();
    let mut words = vec![0; DEGREE];
    sent.codec.add_packed(&mut words, &sent.packed);
    words[7] = (words[7] + (1 << (sent.codec.wire_bits() - 1))) & sent.codec.word_mask();
    sent.codec.pack(words.into_iter(), &mut sent.packed);
    sent.witness.y = added(&sent, &masks(&sent.witness.secret, 1));
    assert!(sent.witness.y[7].unsigned_abs() > MODULUS / 3);
    assert!(sent.prove().is_err());
}

#[test]
fn every_field_of_the_transcript_counts() {
    let original = honest();
    let proof = original.prove().unwrap();
    type Change = fn(&mut Sent);
    let changes: [(&str, Change); 20] = [
        ("genesis", |sent| sent.post.genesis[0] ^= 1),
        ("task", |sent| sent.post.task[0] ^= 1),
        ("iteration", |sent| sent.post.iteration += 1),
        ("committee key", |sent| sent.post.key_id[0] ^= 1),
        ("position", |sent| sent.post.position += 1),
        ("scope", |sent| sent.post.scope[0] ^= 1),
        ("nullifier", |sent| sent.post.nullifier[0] ^= 1),
        ("tag", |sent| sent.post.tag[0] ^= 1),
        ("pk_sig", |sent| sent.post.pk_sig[0] ^= 1),
        ("length", |sent| sent.codec = other_codec(LENGTH + 1, 1000, 16, NORM)),
        ("bound", |sent| sent.codec = other_codec(LENGTH, 1001, 16, NORM)),
        ("norm", |sent| sent.bounds.norm -= 1),
        ("bound of a zero", |sent| sent.bounds.zero_squared += 1),
        ("bound of a one", |sent| sent.bounds.one_squared += 1),
        ("pk", |sent| sent.keys[5] += base(&Scalar::ONE)),
        ("count key", |sent| sent.count_key += base(&Scalar::ONE)),
        ("encrypted bit", |sent| sent.bit = honest_with_seed(3).bit),
        ("R", |sent| sent.r = honest_with_seed(3).r),
        ("wrapped secret", |sent| {
            let other = honest_with_seed(3);
            (sent.wrapped, sent.points) = (other.wrapped.clone(), other.points.clone());
        }),
        ("words", |sent| sent.packed[0] ^= 1),
    ];
    assert_eq!(original.verify(&proof), Ok(()));
    for (name, change) in changes {
        let mut changed = honest();
        change(&mut changed);
        assert!(changed.verify(&proof).is_err(), "{name}");
    }
}

fn other_codec(length: usize, bound: u64, posts: u32, norm: u64) -> Codec {
    Codec::new(length, bound, posts, Some(proven(norm, 2, &[]))).unwrap()
}

fn honest_with_seed(seed: u64) -> Sent {
    sent(&update(), 1, 1, seed)
}

#[test]
fn every_part_of_the_proof_counts() {
    let sent = honest();
    let proof = sent.prove().unwrap();
    // One place in each part: salt, ten points, p, and every kind of response.
    let scalars = 32 + 320 + RANGE_ROWS * 15;
    let responses = [0, ROWS, 2 * ROWS, 2 * ROWS + NORM_BITS, FIRST, FIRST + RELATIONS];
    let last = FIRST + SECOND;
    let places = (0..11)
        .map(|part| part * 32)
        .chain([352])
        .chain(responses.into_iter().chain(last..last + 6).map(|place| scalars + 32 * place));
    for place in places {
        let mut changed = proof.clone();
        changed[place] ^= 2;
        assert!(sent.verify(&changed).is_err(), "byte {place}");
    }
    assert!(matches!(sent.verify(&proof[1..]), Err(Error::Length { .. })));
    let mut changed = proof.clone();
    changed[scalars + 31] = 0xff;
    assert!(matches!(sent.verify(&changed), Err(Error::NotCanonical { .. })));
    let mut changed = proof.clone();
    changed[352..367].fill(0);
    assert!(matches!(sent.verify(&changed), Err(Error::Range { .. })), "p is too small");
    changed[352..367].fill(0xff);
    assert!(matches!(sent.verify(&changed), Err(Error::Range { .. })), "p is too large");
}

#[test]
fn a_batch_names_the_bad_ones() {
    let all: Vec<Sent> = (40..44).map(honest_with_seed).collect();
    let mut proofs: Vec<Vec<u8>> = all.iter().map(|sent| sent.prove().unwrap()).collect();
    let check = |proofs: &[Vec<u8>]| -> Vec<usize> {
        let claims: Vec<Claim<'_>> =
            all.iter().zip(proofs).map(|(sent, proof)| sent.claim(proof)).collect();
        let refused = refused(&claims, &committee().matrix, &mut rng(80));
        refused.into_iter().map(|(index, _)| index).collect()
    };
    assert_eq!(check(&proofs), Vec::<usize>::new());
    proofs.swap(1, 2);
    proofs[3].pop();
    assert_eq!(check(&proofs), [1, 2, 3]);
}

#[test]
fn another_iterations_polynomials_are_refused() {
    let sent = honest();
    let proof = sent.prove().unwrap();
    let other = Matrix::new([9; 32], 1);
    assert!(!refused(&[sent.claim(&proof)], &other, &mut rng(81)).is_empty());
}

/// Two answers to the same first messages give the witness away: what was proven was known.
#[test]
fn two_challenges_extract_the_witness() {
    let sent = honest();
    let run = |fork| {
        let manner = Manner::Cheating { offset: None, fork };
        attempt(&sent.statement(), &committee().matrix, &sent.witness, manner, &mut rng(82))
            .unwrap()
    };
    let (one, two) = (run(0), run(1));
    assert_eq!(one.messages.linear, two.messages.linear);
    let extract = |a: &Scalar, b: &Scalar| b - a;
    assert_eq!(extract(&one.responses.r, &two.responses.r), sent.witness.r);
    assert_eq!(extract(&one.responses.k, &two.responses.k), sent.witness.k);
    assert_eq!(extract(&one.responses.bit, &two.responses.bit), Scalar::ONE);
    let first: Vec<Scalar> =
        one.responses.first.iter().zip(&two.responses.first).map(|(a, b)| extract(a, b)).collect();
    let squares: Scalar = first[..ROWS].iter().map(|z| z * z).sum();
    let mut power = Scalar::ONE;
    let mut rest = Scalar::ZERO;
    for bit in &first[2 * ROWS..2 * ROWS + NORM_BITS] {
        assert_eq!(bit * bit, *bit);
        rest += bit * power;
        power += power;
    }
    assert_eq!(squares + rest, Scalar::from(sent.bounds.one_squared));
}

#[test]
fn projections_agree_with_their_definition() {
    let transcript = crate::transcript::Transcript::new("test");
    let seed = challenges::Seed::new(&transcript, "T");
    let y: Vec<i64> = (0..2 * DEGREE as i64).map(|i| i * 7 % 1000 - 500).collect();
    let z = fold::project(&seed, &y);
    let mut columns = vec![0; 2 * ROW_BYTES * DEGREE];
    for row in [0, 9, 255] {
        let mut expected = 0;
        for (k, block) in y.chunks(DEGREE).enumerate() {
            seed.columns(k, &mut columns);
            for (j, value) in block.iter().enumerate() {
                let bit = |at: usize| i64::from(columns[at] >> (row % 8) & 1);
                let at = row / 8 * DEGREE + j;
                expected += value * (bit(at) - bit(ROW_BYTES * DEGREE + at));
            }
        }
        assert_eq!(z[row], i128::from(expected));
    }
}

#[test]
fn widths_leave_room_for_liars_and_for_the_lemma() {
    for (length, bound, posts, norm, liars) in [
        (34, 1000, 16, 3000, 2),
        (832_456, 32_767, 512, 32_767, 1),
        (5, 1, 1, 1, 0),
        (61_706, 131_072, 512, 1 << 23, 50),
    ] {
        let codec = Codec::new(length, bound, posts, Some(proven(norm, liars, &[]))).unwrap();
        let bounds = codec.bounds().unwrap();
        assert!(bounds.fit(), "{length}");
        assert!(bounds.one_squared < 1 << NORM_BITS);
        assert!(bounds.zero_squared < bounds.one_squared);
        let liar = root_above(bounds.one_squared / 225) << codec.sum_bits();
        let one_liar = super::slack(liar) / u128::from(MODULUS);
        let most = u128::from(bound) * u128::from(posts) + u128::from(liars) * one_liar;
        assert!(2 * most < 1 << codec.sum_bits(), "{length}");
    }
    const { assert!(bounds::SECRET_SQUARED < 1 << SECRET_BITS) };
    assert!(super::slack(root_above(40_068)) <= MAX_SECRET as u128);
}
