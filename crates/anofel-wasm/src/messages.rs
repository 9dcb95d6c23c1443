//! The bytes of every message on the board. A record is an object with the fields of its layout.

use anofel_messages as core;
use anofel_messages::{Layout, Type, Value};
use js_sys::{Array, BigInt, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::error::{fail, hex, unhex, Result};

/// Above it a number is a `BigInt`.
const MAX_SAFE: u64 = (1 << 53) - 1;

fn layout_of(name: &str) -> Result<&'static Layout> {
    core::find(name).ok_or_else(|| fail(format!("there is no layout {name}")))
}

fn record(layout: &Layout, values: &[Value]) -> JsValue {
    let object = Object::new();
    for ((name, kind), value) in layout.fields.iter().zip(values) {
        // A fresh object takes any property.
        Reflect::set(&object, &(*name).into(), &to_js(kind, value)).ok();
    }
    object.into()
}

fn to_js(kind: &Type, value: &Value) -> JsValue {
    match (kind, value) {
        (_, Value::Number(number)) if *number <= MAX_SAFE => JsValue::from_f64(*number as f64),
        (_, Value::Number(number)) => BigInt::from(*number).into(),
        (_, Value::Flag(flag)) => (*flag).into(),
        (Type::Bytes { .. }, Value::Bytes(bytes)) => Uint8Array::from(bytes.as_slice()).into(),
        (_, Value::Bytes(bytes)) => hex(bytes).into(),
        (_, Value::Text(text)) => text.into(),
        (Type::List(item, _), Value::List(values)) => {
            values.iter().map(|value| to_js(item, value)).collect::<Array>().into()
        }
        (Type::Option(inner), Value::Option(Some(value))) => to_js(inner, value),
        (Type::Record(layout), Value::Record(values)) => record(layout, values),
        _ => JsValue::NULL,
    }
}

fn record_from(layout: &Layout, object: &JsValue) -> Result<Vec<Value>> {
    let fields = layout.fields.iter();
    fields.map(|(name, kind)| from_js(kind, &Reflect::get(object, &(*name).into())?)).collect()
}

fn from_js(kind: &Type, value: &JsValue) -> Result<Value> {
    let wrong = || fail(format!("the value must be {}", kind.sort()));
    Ok(match kind {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => Value::Number(match value.as_f64() {
            Some(number) if number >= 0.0 && number <= MAX_SAFE as f64 => number as u64,
            Some(_) => return Err(wrong()),
            None => u64::try_from(BigInt::from(value.clone())).map_err(|_| wrong())?,
        }),
        Type::Flag => Value::Flag(value.as_bool().ok_or_else(wrong)?),
        Type::Text { .. } => Value::Text(value.as_string().ok_or_else(wrong)?),
        Type::Bytes { .. } => Value::Bytes(Uint8Array::new(value).to_vec()),
        Type::List(item, _) => {
            let values = Array::from(value);
            Value::List(values.iter().map(|value| from_js(item, &value)).collect::<Result<_>>()?)
        }
        Type::Option(_) if value.is_null() => Value::Option(None),
        Type::Option(inner) => Value::Option(Some(Box::new(from_js(inner, value)?))),
        Type::Record(layout) => Value::Record(record_from(layout, value)?),
        _ => Value::Bytes(unhex(&value.as_string().ok_or_else(wrong)?)?),
    })
}

/// Encodes a record.
#[wasm_bindgen]
pub fn encode(layout: &str, object: &JsValue) -> Result<Vec<u8>> {
    let layout = layout_of(layout)?;
    core::encode(layout, &record_from(layout, object)?).map_err(fail)
}

/// Decodes a record strictly.
#[wasm_bindgen]
pub fn decode(layout: &str, data: &[u8]) -> Result<JsValue> {
    let layout = layout_of(layout)?;
    Ok(record(layout, &core::decode(layout, data).map_err(fail)?))
}

/// Decodes a whole posting strictly: kind, name, author, body, signature and how many bytes are signed.
#[wasm_bindgen(js_name = decodePosting)]
pub fn decode_posting(data: &[u8]) -> Result<JsValue> {
    let posting = core::decode_posting(data).map_err(fail)?;
    let object = Object::new();
    let set = |name: &str, value: JsValue| Reflect::set(&object, &name.into(), &value).map(drop);
    set("kind", posting.kind.number.into())?;
    set("name", posting.kind.body.name.into())?;
    set("author", to_js(&posting.kind.author.layout_type(), &posting.author))?;
    set("body", record(posting.kind.body, &posting.body))?;
    set("signature", hex(&posting.signature).into())?;
    set("signedLength", (posting.signed_length as u32).into())?;
    Ok(object.into())
}
