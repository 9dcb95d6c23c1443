//! The scheme end to end with dealt keys: exactness, every check, every attack.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::OnceLock;

use anofel_committee::group::{base, random_scalar};
use anofel_committee::keys::Shape;
use anofel_committee::lattice::{
    combine, partial_decrypt, refused_envelopes, verify_envelope, verify_share, Accumulator,
    Checked, Codec, EncryptedSum, Post, Prepared, Submitted, ENVELOPE_BYTES, NUM_KEYS, SHARE_BYTES,
};
use anofel_committee::ring::{centred_binomial, DEGREE};
use anofel_committee::transcript::Transcript;
use anofel_committee::Error;
use common::{insecure_deal, rng, InsecureDealt};
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;

type Change = fn(&mut Post);

const LENGTH: usize = 40;
const POSTS: u32 = 8;

fn committee() -> &'static InsecureDealt {
    static DEALT: OnceLock<InsecureDealt> = OnceLock::new();
    DEALT.get_or_init(|| insecure_deal(Shape::new(NUM_KEYS, 5, 3).unwrap(), &mut rng(99)))
}

fn codec() -> Codec {
    Codec::new(LENGTH, 1000, POSTS, None).unwrap()
}

fn post(number: u8) -> Post {
    Post {
        genesis: [1; 32],
        task: [2; 32],
        iteration: 3,
        key_id: [4; 32],
        position: 1,
        scope: [5; 32],
        nullifier: [number; 32],
        tag: [number + 100; 32],
        pk_sig: [number + 200; 32],
    }
}

fn values(number: u8) -> Vec<i64> {
    (0..LENGTH as i64).map(|i| (i * 37 + i64::from(number) * 11) % 2001 - 1000).collect()
}

fn contribution(number: u8, seed: u64) -> ([u8; ENVELOPE_BYTES], Vec<u8>) {
    let keys = committee().keys.public();
    let prepared = Prepared::new(codec(), &post(number), keys, None, &mut rng(seed)).unwrap();
    let envelope = *prepared.envelope();
    (envelope, prepared.seal(&values(number), &mut rng(seed)).unwrap())
}

fn checked(envelope: &[u8], payload: &[u8]) -> Result<Checked, Error> {
    let post = post(0);
    let submitted = Submitted { post: &post, envelope, bit: &[], payload };
    Checked::all(&codec(), committee().keys.public(), &[submitted], &mut rng(7)).pop().unwrap()
}

fn add(contributions: &[([u8; ENVELOPE_BYTES], Vec<u8>)]) -> EncryptedSum {
    let mut sum = Accumulator::new(codec(), POSTS);
    for (envelope, payload) in contributions {
        sum.add(&checked(envelope, payload).unwrap()).unwrap();
    }
    sum.finish()
}

fn share(total: &EncryptedSum, member: usize) -> Vec<u8> {
    let dealt = committee();
    partial_decrypt(&dealt.keys, &dealt.shares[member - 1], total, b"set", &mut rng(5)).unwrap()
}

fn open(total: &EncryptedSum, members: &[usize]) -> Result<Vec<i64>, Error> {
    let shares = members
        .iter()
        .map(|&m| verify_share(&committee().keys, total, b"set", m as u16, &share(total, m)))
        .collect::<Result<Vec<_>, _>>()?;
    combine(total, &post(0).public_seed(), 3, &shares.iter().collect::<Vec<_>>())
}

fn expected(numbers: &[u8]) -> Vec<i64> {
    (0..LENGTH).map(|i| numbers.iter().map(|n| values(*n)[i]).sum()).collect()
}

#[test]
fn any_three_of_five_open_the_exact_sum() {
    let total = add(&[contribution(1, 1), contribution(2, 2), contribution(3, 3)]);
    for members in [[1, 2, 3], [1, 2, 5], [1, 4, 5], [2, 3, 4], [3, 4, 5], [5, 3, 1]] {
        assert_eq!(open(&total, &members).unwrap(), expected(&[1, 2, 3]), "{members:?}");
    }
    assert_eq!(open(&total, &[1, 2, 3, 4, 5]).unwrap(), expected(&[1, 2, 3]));
}

#[test]
fn too_few_or_repeated_shares_do_not_combine() {
    let total = add(&[contribution(1, 1), contribution(2, 2)]);
    assert!(matches!(open(&total, &[1, 2]), Err(Error::Members { .. })));
    assert!(matches!(open(&total, &[1, 2, 2]), Err(Error::Members { .. })));
}

#[test]
fn a_sum_is_written_and_read_back() {
    let total = add(&[contribution(1, 1), contribution(2, 2)]);
    let bytes = total.to_bytes();
    let read = EncryptedSum::from_bytes(codec(), POSTS, &bytes).unwrap();
    assert_eq!(read.to_bytes(), bytes);
    assert_eq!(open(&read, &[1, 2, 3]).unwrap(), expected(&[1, 2]));
    assert!(EncryptedSum::from_bytes(codec(), POSTS, &bytes[1..]).is_err());
    assert!(EncryptedSum::from_bytes(codec(), 1, &bytes).is_err(), "more posts than allowed");
}

#[test]
fn more_posts_than_the_widths_allow_are_refused() {
    let (envelope, payload) = contribution(1, 1);
    let checked = checked(&envelope, &payload).unwrap();
    let mut sum = Accumulator::new(codec(), 2);
    sum.add(&checked).unwrap();
    sum.add(&checked).unwrap();
    assert!(matches!(sum.add(&checked), Err(Error::Range { .. })));
}

#[test]
fn sums_of_parts_join_to_the_sum_of_all() {
    let all = [contribution(1, 1), contribution(2, 2), contribution(3, 3)];
    let (first, rest) = all.split_at(1);
    let mut joined = Accumulator::new(codec(), 3);
    joined.add_sum(&add(first)).unwrap();
    joined.add_sum(&add(rest)).unwrap();
    assert!(matches!(joined.add_sum(&add(first)), Err(Error::Range { .. })));
    assert_eq!(joined.finish().to_bytes(), add(&all).to_bytes());
}

#[test]
fn every_field_of_the_challenge_counts() {
    let (envelope, _) = contribution(1, 1);
    verify_envelope(&post(1), &envelope).unwrap();
    let changes: [(&str, Change); 7] = [
        ("genesis", |p| p.genesis[0] ^= 1),
        ("committee key", |p| p.key_id[0] ^= 1),
        ("position", |p| p.position += 1),
        ("scope", |p| p.scope[0] ^= 1),
        ("nullifier", |p| p.nullifier[0] ^= 1),
        ("tag", |p| p.tag[0] ^= 1),
        ("pk_sig", |p| p.pk_sig[0] ^= 1),
    ];
    let wrong = Err(Error::Proof { what: "the proof of plaintext knowledge" });
    for (name, change) in changes {
        let mut changed = post(1);
        change(&mut changed);
        assert_eq!(verify_envelope(&changed, &envelope), wrong, "{name}");
    }
    let other = contribution(1, 2).0;
    for (name, part) in [("R", 0), ("the first message", 1), ("the response", 2)] {
        let mut changed = envelope;
        changed[part * 32..(part + 1) * 32].copy_from_slice(&other[part * 32..(part + 1) * 32]);
        assert_eq!(verify_envelope(&post(1), &changed), wrong, "{name}");
    }
}

#[test]
fn an_envelope_with_a_bad_encoding_is_refused() {
    let (envelope, _) = contribution(1, 1);
    for part in 0..3 {
        let mut changed = envelope;
        changed[part * 32..(part + 1) * 32].fill(0xff);
        assert!(matches!(verify_envelope(&post(1), &changed), Err(Error::NotCanonical { .. })));
    }
    let mut neutral = envelope;
    neutral[..32].fill(0);
    assert_eq!(verify_envelope(&post(1), &neutral), Err(Error::Neutral { what: "R" }));
    assert!(matches!(verify_envelope(&post(1), &envelope[1..]), Err(Error::Length { .. })));
}

#[test]
fn a_batch_of_envelopes_names_the_bad_ones() {
    let posts: Vec<Post> = (0..10).map(post).collect();
    let honest: Vec<_> = (0..10).map(|number| contribution(number, number.into()).0).collect();
    let refused = |envelopes: &[[u8; ENVELOPE_BYTES]]| {
        let items: Vec<(&Post, &[u8])> = posts
            .iter()
            .zip(envelopes)
            .map(|(post, envelope)| (post, envelope.as_slice()))
            .collect();
        refused_envelopes(&items, &mut rng(8))
    };
    assert_eq!(refused(&honest), []);
    assert_eq!(refused(&[]), []);
    let wrong = Error::Proof { what: "the proof of plaintext knowledge" };
    let mut changed = honest.clone();
    changed[3] = honest[4];
    changed[7][..32].fill(0);
    changed[9][64] ^= 1;
    let expected = [(3, wrong.clone()), (7, Error::Neutral { what: "R" }), (9, wrong.clone())];
    assert_eq!(refused(&changed), expected);
    // The responses of two posts move by opposite amounts: the plain sum of the equations holds.
    let mut cancelling = honest.clone();
    for (at, shift) in [(5, Scalar::ONE), (6, -Scalar::ONE)] {
        let response = Scalar::from_bytes_mod_order(cancelling[at][64..].try_into().unwrap());
        cancelling[at][64..].copy_from_slice((response + shift).as_bytes());
    }
    assert_eq!(refused(&cancelling), [(5, wrong.clone()), (6, wrong)]);
}

#[test]
fn two_answers_to_one_first_message_give_r() {
    // The same randomness for two posts: same R and T, two challenges.
    let (one, two) = (contribution(1, 7).0, contribution(2, 7).0);
    assert_eq!(one[..64], two[..64]);
    let challenge = |post: &Post| {
        let mut transcript = Transcript::new("anofel/1/committee/lattice/plaintext-knowledge");
        transcript
            .field("genesis", &post.genesis)
            .field("committee key", &post.key_id)
            .number("position", post.position.into())
            .field("scope", &post.scope)
            .field("nullifier", &post.nullifier)
            .field("tag", &post.tag)
            .field("pk_sig", &post.pk_sig)
            .field("R", &one[..32])
            .field("first message", &one[32..64]);
        transcript.scalar()
    };
    let z = |envelope: &[u8]| Scalar::from_bytes_mod_order(envelope[64..].try_into().unwrap());
    let r = (z(&one) - z(&two)) * (challenge(&post(1)) - challenge(&post(2))).invert();
    assert_eq!(base(&r).compress().as_bytes(), &one[..32]);
}

#[test]
fn a_malformed_payload_is_refused() {
    let (envelope, payload) = contribution(1, 1);
    let read = |payload: &[u8]| checked(&envelope, payload).map(drop);
    assert_eq!(read(&payload), Ok(()));
    assert!(matches!(read(&payload[1..]), Err(Error::Length { .. })));
    let mut changed = payload.clone();
    let last = changed.len() - 32;
    changed[last..].fill(0xff);
    assert_eq!(
        read(&changed),
        Err(Error::NotCanonical { what: "the wrapped secret", index: 2047 })
    );
}

#[test]
fn a_wrong_share_names_its_member_and_what_is_wrong() {
    let dealt = committee();
    let total = add(&[contribution(1, 1), contribution(2, 2)]);
    let other_total = add(&[contribution(1, 1), contribution(3, 3)]);
    let honest = share(&total, 2);
    let check = |total: &EncryptedSum, context: &[u8], member: u16, share: &[u8]| {
        verify_share(&dealt.keys, total, context, member, share).map(drop)
    };
    let equality = Error::Proof { what: "the equality of logarithms" };
    assert_eq!(check(&total, b"set", 2, &honest), Ok(()));
    assert_eq!(check(&total, b"other", 2, &honest), Err(equality.clone().by(2)), "context");
    assert_eq!(check(&total, b"set", 3, &honest), Err(equality.clone().by(3)), "member");
    assert_eq!(check(&other_total, b"set", 2, &honest), Err(equality.clone().by(2)), "sum");
    for j in [0, 1, 2047] {
        // One D_j is replaced by another valid point; everything else is honest.
        let mut changed = honest.clone();
        let point = CompressedRistretto::from_slice(&changed[j * 32..(j + 1) * 32]).unwrap();
        let shifted = point.decompress().unwrap() + RISTRETTO_BASEPOINT_POINT;
        changed[j * 32..(j + 1) * 32].copy_from_slice(shifted.compress().as_bytes());
        assert_eq!(check(&total, b"set", 2, &changed), Err(equality.clone().by(2)), "D_{j}");
    }
    for (name, at) in [("challenge", SHARE_BYTES - 64), ("response", SHARE_BYTES - 32)] {
        let mut changed = honest.clone();
        changed[at] ^= 1;
        assert_eq!(check(&total, b"set", 2, &changed), Err(equality.clone().by(2)), "{name}");
    }
    let mut changed = honest.clone();
    changed[..32].fill(0xff);
    let encoding = Error::NotCanonical { what: "the share of the sum", index: 0 };
    assert_eq!(check(&total, b"set", 2, &changed), Err(encoding.by(2)));
    assert!(
        matches!(check(&total, b"set", 2, &honest[1..]), Err(error) if error.culprit() == Some(2))
    );
    assert!(
        check(&total, b"set", 6, &honest).is_err() && check(&total, b"set", 0, &honest).is_err()
    );
}

#[test]
fn errors_that_cancel_between_two_points_are_refused() {
    let dealt = committee();
    let total = add(&[contribution(1, 1), contribution(2, 2)]);
    let mut changed = share(&total, 2);
    for (j, shift) in [(0, RISTRETTO_BASEPOINT_POINT), (1, -RISTRETTO_BASEPOINT_POINT)] {
        let point = CompressedRistretto::from_slice(&changed[j * 32..(j + 1) * 32]).unwrap();
        let shifted = point.decompress().unwrap() + shift;
        changed[j * 32..(j + 1) * 32].copy_from_slice(shifted.compress().as_bytes());
    }
    assert!(verify_share(&dealt.keys, &total, b"set", 2, &changed).is_err());
}

/// R, T and z of an envelope.
#[derive(Clone, Copy)]
struct Claim {
    r: RistrettoPoint,
    t: RistrettoPoint,
    z: Scalar,
}

impl Claim {
    fn read(envelope: &[u8; ENVELOPE_BYTES]) -> Self {
        let z = Scalar::from_canonical_bytes(envelope[64..].try_into().unwrap()).unwrap();
        Self { r: decode(&envelope[..32]), t: decode(&envelope[32..64]), z }
    }

    fn write(&self) -> [u8; ENVELOPE_BYTES] {
        let parts = [self.r.compress().to_bytes(), self.t.compress().to_bytes(), self.z.to_bytes()];
        parts.as_flattened().try_into().unwrap()
    }

    /// z·G = T + e·R.
    fn holds(&self, e: &Scalar) -> bool {
        base(&self.z) == self.t + self.r * e
    }
}

fn decode(bytes: &[u8]) -> RistrettoPoint {
    CompressedRistretto::from_slice(bytes).unwrap().decompress().unwrap()
}

/// The challenge e that a client answered, whatever it covers: z = nonce + e·r. A client draws s,
/// then r and the nonce.
fn answered_challenge(claim: &Claim, seed: u64) -> Scalar {
    let mut rng = rng(seed);
    (0..DEGREE).for_each(|_| {
        centred_binomial(&mut rng);
    });
    let (r, nonce) = (random_scalar(&mut rng), random_scalar(&mut rng));
    assert_eq!((base(&r), base(&nonce)), (claim.r, claim.t), "the order of drawing");
    (claim.z - nonce) * r.invert()
}

/// A victim's payload, with every C changed in the group as homomorphic attacks do.
fn transform(payload: &[u8], name: &str) -> Vec<u8> {
    let delta = random_scalar(&mut rng(11));
    let change = |point: RistrettoPoint, key: &RistrettoPoint| match name {
        "copied" => point,
        "re-randomised" => point + key * delta,
        "negated" => -point,
        "scaled" => point + point,
        "shifted" => point + base(&Scalar::from(1u64 << 20)),
        _ => unreachable!("{name}"),
    };
    let mut changed = payload.to_vec();
    let packed = codec().packed_bytes();
    for (chunk, key) in changed[packed..].chunks_exact_mut(32).zip(committee().keys.public()) {
        let point = change(decode(chunk), key);
        chunk.copy_from_slice(point.compress().as_bytes());
    }
    changed
}

#[test]
fn copying_and_transforming_a_victims_contribution_is_caught_at_admission() {
    let victim = Claim::read(&contribution(1, 1).0);
    let e = answered_challenge(&victim, 1);
    let Claim { r, t, z } = victim;
    let delta = random_scalar(&mut rng(11));
    let shift = base(&delta);
    // The proof moves along under the victim's challenge. A shift changes C alone, so it posts the
    // copied envelope.
    let moved = [
        ("copied", victim),
        ("re-randomised", Claim { r: r + shift, t, z: z + e * delta }),
        ("negated", Claim { r: -r, t: -t, z: -z }),
        ("scaled", Claim { r: r + r, t: t + t, z: z + z }),
        ("proven anew", Claim { r, t: t + shift, z: z + delta }),
    ];
    let wrong = Error::Proof { what: "the proof of plaintext knowledge" };
    for (name, forged) in moved {
        assert!(forged.holds(&e), "{name}");
        // The attacker posts under its own nullifier, tag and key.
        let envelope = forged.write();
        assert_eq!(verify_envelope(&post(2), &envelope), Err(wrong.clone()), "{name}");
        // What was changed is refused under the victim's as well: e covers R and T.
        let expected = if name == "copied" { Ok(r) } else { Err(wrong.clone()) };
        assert_eq!(verify_envelope(&post(1), &envelope), expected, "{name}");
    }
}

#[test]
fn a_victims_payload_under_an_own_envelope_opens_nothing() {
    let victim = contribution(1, 1);
    for name in ["copied", "re-randomised", "negated", "scaled", "shifted"] {
        let own = contribution(2, 2).0;
        verify_envelope(&post(2), &own).unwrap();
        let total = add(&[victim.clone(), (own, transform(&victim.1, name))]);
        let result = open(&total, &[1, 2, 3]);
        assert!(matches!(result, Err(Error::Undecodable { .. })), "{name}: {result:?}");
    }
}

#[test]
fn a_wrong_iteration_task_or_key_removes_another_mask() {
    let total = add(&[contribution(1, 1), contribution(2, 2)]);
    let shares: Vec<_> = (1..=3)
        .map(|m| {
            verify_share(&committee().keys, &total, b"set", m as u16, &share(&total, m)).unwrap()
        })
        .collect();
    let shares: Vec<_> = shares.iter().collect();
    assert!(combine(&total, &post(0).public_seed(), 3, &shares).is_ok());
    let changes: [fn(&mut Post); 4] =
        [|p| p.genesis[0] ^= 1, |p| p.task[0] ^= 1, |p| p.iteration += 1, |p| p.key_id[0] ^= 1];
    for change in changes {
        let mut wrong = post(0);
        change(&mut wrong);
        let result = combine(&total, &wrong.public_seed(), 3, &shares);
        assert!(matches!(result, Err(Error::Undecodable { .. })));
    }
}

#[test]
fn two_preparations_share_nothing() {
    let (one, two) = (contribution(1, 1), contribution(1, 2));
    assert_ne!(one.0[..32], two.0[..32], "R");
    let packed = codec().packed_bytes();
    assert_ne!(one.1[..packed], two.1[..packed], "mask");
    assert_ne!(one.1[packed..], two.1[packed..], "wrapped secret");
}
