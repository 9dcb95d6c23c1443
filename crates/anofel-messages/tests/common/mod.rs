//! The vectors, and random values of any type.
#![allow(clippy::unwrap_used)]
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::PathBuf;

use anofel_messages::{Layout, Type, Value};
use anofel_primitives::commitment::{TypeBlinding, TypeCommitment};
use anofel_primitives::eddsa::CertifierSecret;
use anofel_primitives::field::{self, hash_to_field, FieldHash};
use anofel_primitives::identity::DatasetType;
use anofel_primitives::message_key::MessageSecret;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde_json::Value as Json;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/messages")
}

fn read(path: PathBuf) -> Json {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The well-formed messages.
pub fn vectors() -> Vec<Json> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().filter(|path| !path.ends_with("malformed.json")).map(read).collect()
}

/// The malformed ones.
pub fn malformed() -> Vec<Json> {
    read(folder().join("malformed.json")).as_array().unwrap().clone()
}

/// Bytes from hexadecimal digits.
pub fn hex(value: &Json) -> Vec<u8> {
    let digits = value.as_str().unwrap().as_bytes().chunks_exact(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// The values of a record in a vector.
pub fn record_from(layout: &Layout, json: &Json) -> Vec<Value> {
    let values = json.as_array().unwrap();
    assert_eq!(values.len(), layout.fields.len());
    layout.fields.iter().zip(values).map(|((_, kind), value)| value_from(kind, value)).collect()
}

/// One value in a vector.
pub fn value_from(kind: &Type, json: &Json) -> Value {
    match kind {
        Type::Flag => Value::Flag(json.as_bool().unwrap()),
        Type::Text { .. } => Value::Text(json.as_str().unwrap().to_owned()),
        Type::List(item, _) => Value::List(
            json.as_array().unwrap().iter().map(|json| value_from(item, json)).collect(),
        ),
        Type::Option(_) if json.is_null() => Value::Option(None),
        Type::Option(inner) => Value::Option(Some(Box::new(value_from(inner, json)))),
        Type::Record(layout) => Value::Record(record_from(layout, json)),
        kind if kind.number().is_some() => Value::Number(json.as_u64().unwrap()),
        _ => Value::Bytes(hex(json)),
    }
}

/// A random value of a type. Lists are short, bytes too.
pub fn arb_value(kind: &'static Type) -> BoxedStrategy<Value> {
    match kind {
        Type::Flag => any::<bool>().prop_map(Value::Flag).boxed(),
        Type::Text { max } => text(*max as usize).prop_map(Value::Text).boxed(),
        Type::Bytes { max } => prop::collection::vec(any::<u8>(), 0..=(*max as usize).min(40))
            .prop_map(Value::Bytes)
            .boxed(),
        Type::List(item, max) => {
            prop::collection::vec(arb_value(item), 0..=usize::from(*max).min(3))
                .prop_map(Value::List)
                .boxed()
        }
        Type::Option(inner) => prop::option::of(arb_value(inner))
            .prop_map(|value| Value::Option(value.map(Box::new)))
            .boxed(),
        Type::Record(layout) => arb_record(layout).prop_map(Value::Record).boxed(),
        kind => match kind.number() {
            Some((_, max)) => (0..=max).prop_map(Value::Number).boxed(),
            None => any::<[u8; 32]>().prop_map(|seed| Value::Bytes(fixed(kind, seed))).boxed(),
        },
    }
}

/// Random values of a record.
pub fn arb_record(layout: &'static Layout) -> BoxedStrategy<Vec<Value>> {
    layout.fields.iter().map(|(_, kind)| arb_value(kind)).collect::<Vec<_>>().boxed()
}

fn text(max: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..=max / 4)
        .prop_map(|letters| letters.into_iter().collect())
}

/// Bytes of a fixed length in their one form.
fn fixed(kind: &Type, seed: [u8; 32]) -> Vec<u8> {
    let certifier = CertifierSecret::from_bytes(&seed).unwrap();
    match kind {
        Type::Field => field::to_bytes(&hash_to_field(FieldHash::Dataset, &[&seed])).to_vec(),
        Type::CertifierKey => certifier.public_key().to_bytes().to_vec(),
        Type::Possession => certifier.prove_possession([1; 32], seed).to_bytes().to_vec(),
        Type::MessageKey => {
            MessageSecret::from_bytes(&seed).unwrap().public_key().to_bytes().to_vec()
        }
        Type::TypeCommitment => {
            let rho = TypeBlinding::generate(&mut ChaCha20Rng::from_seed(seed));
            TypeCommitment::new(DatasetType(seed[0].into()), &rho).to_bytes().to_vec()
        }
        kind => seed.repeat(kind.fixed_bytes().unwrap() / 32),
    }
}
