//! The messages of `vectors/messages`, which a program made from the documentation alone.
#![allow(clippy::unwrap_used)]

mod common;

use anofel_messages::{
    decode, decode_posting, encode, encode_posting, find, Type, Value, KINDS, LAYOUTS,
};
use common::{hex, malformed, record_from, value_from, vectors};

#[test]
fn there_is_one_vector_for_each_layout() {
    let mut found: Vec<_> = vectors().into_iter().map(|vector| text(&vector, "layout")).collect();
    let mut expected: Vec<_> = LAYOUTS.iter().map(|layout| layout.name.to_owned()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn records_decode_and_encode_as_in_the_vectors() {
    for vector in vectors().iter().filter(|vector| vector.get("kind").is_none()) {
        let layout = find(&text(vector, "layout")).unwrap();
        let (bytes, values) = (hex(&vector["bytes"]), record_from(layout, &vector["body"]));
        assert_eq!(decode(layout, &bytes).as_ref(), Ok(&values), "{}", layout.name);
        assert_eq!(encode(layout, &values), Ok(bytes), "{}", layout.name);
    }
}

#[test]
fn postings_decode_and_encode_as_in_the_vectors() {
    let vectors = vectors();
    let postings: Vec<_> = vectors.iter().filter(|vector| vector.get("kind").is_some()).collect();
    assert_eq!(postings.len(), KINDS.len());
    for vector in postings {
        let bytes = hex(&vector["bytes"]);
        let posting = decode_posting(&bytes).unwrap();
        assert_eq!(u64::from(posting.kind.number), vector["kind"].as_u64().unwrap());
        assert_eq!(posting.kind.body.name, text(vector, "layout"));
        let author: Type = posting.kind.author.layout_type();
        assert_eq!(posting.author, value_from(&author, &vector["author"]));
        assert_eq!(posting.body, record_from(posting.kind.body, &vector["body"]));
        assert_eq!(posting.signature, hex(&vector["signature"]));
        let again = encode_posting(posting.kind, &posting.author, &posting.body).unwrap();
        assert_eq!(again, bytes[..posting.signed_length]);
        assert_eq!([again, posting.signature].concat(), bytes);
    }
}

#[test]
fn malformed_messages_are_refused_for_the_reason_in_the_vectors() {
    let malformed = malformed();
    assert!(malformed.len() > 30);
    for vector in malformed {
        let bytes = hex(&vector["bytes"]);
        let error = match vector["layout"].as_str() {
            Some(name) => decode(find(name).unwrap(), &bytes).unwrap_err(),
            None => decode_posting(&bytes).unwrap_err(),
        };
        let expected = text(&vector, "error");
        assert!(error.to_string().starts_with(&expected), "{vector}: {error}");
    }
}

#[test]
fn every_shorter_and_every_longer_message_is_refused() {
    for vector in vectors() {
        let mut bytes = hex(&vector["bytes"]);
        let layout = find(&text(&vector, "layout")).unwrap();
        let read = |bytes: &[u8]| match vector.get("kind") {
            Some(_) => decode_posting(bytes).map(|_| ()),
            None => decode(layout, bytes).map(|_| ()),
        };
        for length in 0..bytes.len() {
            read(&bytes[..length]).unwrap_err();
        }
        bytes.push(0);
        read(&bytes).unwrap_err();
    }
}

#[test]
fn what_would_not_decode_is_not_encoded() {
    let vote = find("Vote").unwrap();
    let good = [Value::Number(7), Value::Bytes(vec![1; 64])];
    encode(vote, &good).unwrap();
    for (values, expected) in [
        (vec![Value::Number(256), good[1].clone()], "Vote.validator: the number is out of range"),
        (vec![Value::Flag(true), good[1].clone()], "Vote.validator: the value must be a number"),
        (
            vec![good[0].clone(), Value::Bytes(vec![1; 63])],
            "Vote.signature: 63 bytes instead of 64",
        ),
        (vec![good[0].clone(), Value::Number(1)], "Vote.signature: the value must be bytes"),
        (vec![good[0].clone()], "Vote: the record has 1 values instead of 2"),
    ] {
        let error = encode(vote, &values).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let exclusion = find("Exclusion").unwrap();
    let error = encode(exclusion, &[Value::Bytes(vec![255; 32]), Value::Number(0)]).unwrap_err();
    assert_eq!((error.layout(), error.path()), ("Exclusion", "nullifier"));
    let dealers = Value::List(vec![Value::Number(1); 17]);
    let error = encode(find("HandoverTerms").unwrap(), &[Value::Bytes(vec![0; 32]), dealers]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "HandoverTerms.dealers: too long: 17 where at most 16 are admitted"
    );
}

fn text(vector: &serde_json::Value, name: &str) -> String {
    vector[name].as_str().unwrap().to_owned()
}
