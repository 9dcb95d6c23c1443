//! Ballots from outside: completeness, every field of the challenge, encodings, the tally.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use anofel_committee::count::{
    combine_count, count_share, verify_count_share, Accepts, Ballot, Bundle, Committee, Opening,
    Tally, CIPHERTEXT_BYTES,
};
use anofel_committee::keys::Shape;
use anofel_committee::Error;
use anofel_primitives::commitment::{TypeBlinding, TypeCommitment};
use anofel_primitives::identity::DatasetType;
use common::{insecure_deal, rng, InsecureDealt};

type Change<'a> = &'a dyn Fn(&mut Bundle);

fn bundle(committees: Vec<Committee>, dataset_type: u32, blinding: &TypeBlinding) -> Bundle {
    Bundle {
        genesis: [1; 32],
        scope: [2; 32],
        nullifier: [3; 32],
        tag: [4; 32],
        pk_sig: [5; 32],
        type_commitment: TypeCommitment::new(DatasetType(dataset_type), blinding),
        committees,
    }
}

fn committee(dealt: &InsecureDealt, accepts: Accepts) -> Committee {
    Committee::new([7; 32], &dealt.keys.encoded_public()[0], accepts).unwrap()
}

fn opening(target: Option<usize>, dataset_type: u32, blinding: &TypeBlinding) -> Opening {
    Opening { target, dataset_type: DatasetType(dataset_type), blinding: blinding.clone() }
}

#[test]
fn ballots_for_one_to_five_committees_verify_and_count() {
    let mut rng = rng(1);
    let blinding = TypeBlinding::generate(&mut rng);
    for size in 1..=5usize {
        let dealt: Vec<InsecureDealt> =
            (0..size).map(|_| insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng)).collect();
        let committees = dealt
            .iter()
            .enumerate()
            .map(|(j, dealt)| {
                committee(dealt, if j % 2 == 0 { Accepts::Types(vec![4, 9]) } else { Accepts::Any })
            })
            .collect();
        let bundle = bundle(committees, 9, &blinding);
        let mut tallies = vec![Tally::default(); size];
        for target in (0..size).map(Some).chain([None, Some(0)]) {
            let (ballot, _) =
                Ballot::new(&bundle, &opening(target, 9, &blinding), &mut rng).unwrap();
            let bytes = ballot.to_bytes();
            assert_eq!(bytes.len(), Ballot::length(&bundle));
            Ballot::from_bytes(&bundle, &bytes).unwrap().verify(&bundle).unwrap();
            for (tally, bit) in tallies.iter_mut().zip(bytes.chunks(CIPHERTEXT_BYTES)) {
                tally.add(bit).unwrap();
            }
        }
        for (position, (dealt, tally)) in dealt.iter().zip(&tallies).enumerate() {
            let shares: Vec<_> = dealt.shares[1..]
                .iter()
                .map(|share| {
                    let member = share.member();
                    let made = count_share(tally, member, &share.scalars()[0], b"here", &mut rng);
                    let (_, keys) = dealt.keys.verification_shares(member);
                    verify_count_share(tally, member, &keys[0], b"here", &made).unwrap()
                })
                .collect();
            let shares: Vec<_> = shares.iter().collect();
            let expected = if position == 0 { 2 } else { 1 };
            assert_eq!(combine_count(tally, &shares, 10).unwrap(), expected);
        }
    }
}

#[test]
fn a_batch_of_ballots_names_the_bad_ones() {
    let mut rng = rng(4);
    let blinding = TypeBlinding::generate(&mut rng);
    let dealt = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng);
    let line = || committee(&dealt, Accepts::Types(vec![9]));
    let bundles: Vec<Bundle> = (0..5u8)
        .map(|number| Bundle {
            nullifier: [number; 32],
            ..bundle(vec![line(), line()], 9, &blinding)
        })
        .collect();
    let mut ballots: Vec<Vec<u8>> = bundles
        .iter()
        .map(|bundle| {
            Ballot::new(bundle, &opening(Some(1), 9, &blinding), &mut rng).unwrap().0.to_bytes()
        })
        .collect();
    let refused = |ballots: &[Vec<u8>]| {
        let items: Vec<(&Bundle, &[u8])> =
            bundles.iter().zip(ballots).map(|(bundle, ballot)| (bundle, &ballot[..])).collect();
        Ballot::refused(&items).into_iter().map(|(index, _)| index).collect::<Vec<_>>()
    };
    assert_eq!(refused(&ballots), []);
    ballots[1] = ballots[2].clone();
    ballots[4].pop();
    assert_eq!(refused(&ballots), [1, 4]);
}

#[test]
fn the_size_of_a_ballot_is_linear_in_the_committees() {
    let mut rng = rng(2);
    let blinding = TypeBlinding::generate(&mut rng);
    let dealt = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng);
    let length = |size| {
        let committees = vec![committee(&dealt, Accepts::Types(vec![1])); size];
        Ballot::length(&bundle(committees, 1, &blinding))
    };
    assert_eq!(length(3) - length(2), length(2) - length(1));
    assert_eq!(length(40) - length(39), length(2) - length(1));
}

#[test]
fn a_false_opening_is_refused_before_anything_is_proven() {
    let mut rng = rng(3);
    let blinding = TypeBlinding::generate(&mut rng);
    let dealt = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng);
    let bundle = bundle(vec![committee(&dealt, Accepts::Types(vec![4]))], 9, &blinding);
    assert!(Ballot::new(&bundle, &opening(Some(0), 9, &blinding), &mut rng).is_err());
    assert!(Ballot::new(&bundle, &opening(None, 4, &blinding), &mut rng).is_err());
    assert!(Ballot::new(&bundle, &opening(Some(1), 9, &blinding), &mut rng).is_err());
    assert!(Ballot::new(&bundle, &opening(None, 9, &blinding), &mut rng).is_ok());
}

#[test]
fn every_field_of_the_challenge_counts() {
    let mut rng = rng(4);
    let blinding = TypeBlinding::generate(&mut rng);
    let dealt = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng);
    let other = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng);
    // The last two differ in their name alone: in either order every equation holds.
    let any = committee(&other, Accepts::Any);
    let twin = Committee { key_id: [8; 32], ..any.clone() };
    let committees = vec![committee(&dealt, Accepts::Types(vec![4, 9])), any, twin];
    let honest = bundle(committees, 9, &blinding);
    let bytes =
        Ballot::new(&honest, &opening(Some(0), 9, &blinding), &mut rng).unwrap().0.to_bytes();
    let verify = |bundle: &Bundle, bytes: &[u8]| Ballot::from_bytes(bundle, bytes)?.verify(bundle);
    verify(&honest, &bytes).unwrap();
    let changes: [(&str, Change<'_>); 11] = [
        ("genesis", &|b| b.genesis[0] ^= 1),
        ("scope", &|b| b.scope[31] ^= 1),
        ("nullifier", &|b| b.nullifier[0] ^= 1),
        ("tag", &|b| b.tag[0] ^= 1),
        ("pk_sig", &|b| b.pk_sig[0] ^= 1),
        ("type commitment", &|b| {
            b.type_commitment = TypeCommitment::new(DatasetType(8), &blinding)
        }),
        ("key id", &|b| b.committees[1].key_id[0] ^= 1),
        ("count key", &|b| b.committees[1].key = -b.committees[1].key),
        ("accepted types", &|b| b.committees[0].accepts = Accepts::Types(vec![4, 10])),
        ("unused accepted type", &|b| b.committees[0].accepts = Accepts::Types(vec![5, 9])),
        ("order", &|b| b.committees.swap(1, 2)),
    ];
    let wrong = Err(Error::Proof { what: "the proof of the encrypted bits" });
    for (name, change) in changes {
        let mut changed = honest.clone();
        change(&mut changed);
        assert_eq!(verify(&changed, &bytes), wrong, "{name}");
    }
    for position in 0..6 {
        // Another valid point in the place of U or V of any committee.
        let mut changed = bytes.clone();
        let point = dealt.keys.verification_shares(1).1[0];
        changed[position * 32..(position + 1) * 32].copy_from_slice(&point);
        assert_eq!(verify(&honest, &changed), wrong, "ciphertext {position}");
    }
}

#[test]
fn a_ballot_of_another_length_or_encoding_is_refused() {
    let mut rng = rng(5);
    let blinding = TypeBlinding::generate(&mut rng);
    let dealt = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng);
    let bundle = bundle(vec![committee(&dealt, Accepts::Types(vec![9]))], 9, &blinding);
    let bytes = Ballot::new(&bundle, &opening(None, 9, &blinding), &mut rng).unwrap().0.to_bytes();
    let read = |bytes: &[u8]| Ballot::from_bytes(&bundle, bytes).map(drop);
    assert!(matches!(read(&bytes[1..]), Err(Error::Length { .. })));
    assert!(matches!(read(&[&bytes[..], &[0]].concat()), Err(Error::Length { .. })));
    // U, V, then zero: challenge, z; one: challenge, z, ζ; none and single: challenge, z.
    for scalar_at in [64 + 16, 64 + 48 + 16, 64 + 48 + 48, 64 + 48 + 80 + 16] {
        let mut changed = bytes.clone();
        changed[scalar_at..scalar_at + 32].fill(0xff);
        assert!(matches!(read(&changed), Err(Error::NotCanonical { .. })), "at {scalar_at}");
    }
    for point_at in [0, 32] {
        let mut changed = bytes.clone();
        changed[point_at..point_at + 32].fill(0xff);
        assert!(matches!(read(&changed), Err(Error::NotCanonical { .. })), "at {point_at}");
    }
}

#[test]
fn a_bundle_must_be_sound() {
    let mut rng = rng(6);
    let dealt = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng);
    let key = dealt.keys.encoded_public()[0];
    assert!(Committee::new([0; 32], &[0; 32], Accepts::Any).is_err(), "neutral key");
    assert!(Committee::new([0; 32], &key, Accepts::Types(vec![])).is_err(), "no type");
    assert!(Committee::new([0; 32], &key, Accepts::Types(vec![2, 2])).is_err(), "type twice");
    assert!(Committee::new([0; 32], &key, Accepts::Types(vec![2, 1])).is_err(), "not ascending");
    let blinding = TypeBlinding::generate(&mut rng);
    assert!(bundle(vec![], 1, &blinding).check().is_err(), "empty");
    assert!(bundle(vec![committee(&dealt, Accepts::Any); 65], 1, &blinding).check().is_err());
}

#[test]
fn a_wrong_share_of_the_count_names_its_member() {
    let mut rng = rng(7);
    let dealt = insecure_deal(Shape::new(1, 3, 2).unwrap(), &mut rng);
    let mut tally = Tally::default();
    let points = dealt.keys.verification_shares(2).1[0];
    tally.add(&[points, points].concat()).unwrap();
    let secret = dealt.shares[0].scalars()[0];
    let share = count_share(&tally, 1, &secret, b"here", &mut rng);
    let (_, keys) = dealt.keys.verification_shares(1);
    let check = |tally: &Tally, member, key: &[u8], context: &[u8], share: &[u8]| {
        verify_count_share(tally, member, key, context, share)
            .map(drop)
            .map_err(|error| error.culprit())
    };
    assert_eq!(check(&tally, 1, &keys[0], b"here", &share), Ok(()));
    assert_eq!(check(&tally, 2, &keys[0], b"here", &share), Err(Some(2)), "member");
    assert_eq!(check(&tally, 1, &points, b"here", &share), Err(Some(1)), "verification share");
    assert_eq!(check(&tally, 1, &keys[0], b"there", &share), Err(Some(1)), "context");
    assert_eq!(check(&Tally::default(), 1, &keys[0], b"here", &share), Err(Some(1)), "tally");
    for at in [0, 32, 64] {
        let mut changed = share;
        changed[at] ^= 1;
        assert_eq!(check(&tally, 1, &keys[0], b"here", &changed), Err(Some(1)), "byte {at}");
    }
    let mut other = share;
    other[..32].copy_from_slice(&points);
    assert_eq!(check(&tally, 1, &keys[0], b"here", &other), Err(Some(1)), "another point");
    assert_eq!(check(&tally, 1, &keys[0], b"here", &share[1..]), Err(Some(1)), "length");
}
