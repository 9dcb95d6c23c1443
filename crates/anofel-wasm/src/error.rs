//! Rust errors as JavaScript errors, and names in hexadecimal digits.

use anofel_committee::Error as Refusal;
use js_sys::{Error, Reflect};
use wasm_bindgen::JsValue;

/// What exported functions return.
pub type Result<T> = std::result::Result<T, JsValue>;

/// An error with a sentence.
pub fn fail(sentence: impl std::fmt::Display) -> JsValue {
    Error::new(&sentence.to_string()).into()
}

/// An error with a sentence and a mark that the caller looks for.
pub fn marked(mark: &str, sentence: impl std::fmt::Display) -> JsValue {
    let error = fail(sentence);
    // An Error takes any property.
    Reflect::set(&error, &"kind".into(), &mark.into()).ok();
    error
}

/// What the committee crate refuses, as a whole sentence.
pub fn refuse(error: Refusal) -> JsValue {
    let mut innermost = &error;
    while let Refusal::Member { cause, .. } = innermost {
        innermost = cause;
    }
    let undecodable = matches!(innermost, Refusal::Undecodable { .. });
    marked(if undecodable { "undecodable" } else { "refused" }, sentence(&error))
}

/// The sentence of a refusal, as the Python package writes it.
pub fn sentence(error: &Refusal) -> String {
    let text = error.to_string();
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    format!("{}{}.", first.to_uppercase(), rest.trim_end_matches('.'))
}

/// The refusals of a batch, as `[place, sentence]`.
pub fn refusals(refused: Vec<(usize, Refusal)>) -> js_sys::Array {
    refused
        .into_iter()
        .map(|(place, error)| js_sys::Array::of2(&(place as u32).into(), &sentence(&error).into()))
        .collect()
}

/// The bytes of hexadecimal digits.
pub fn unhex(text: &str) -> Result<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect();
    bytes.filter(|_| rest.is_empty()).ok_or_else(|| fail("these are no hexadecimal digits"))
}

/// A name of 32 bytes.
pub fn name(text: &str) -> Result<[u8; 32]> {
    unhex(text)?.try_into().map_err(|_| fail("a name has 32 bytes"))
}

/// Hexadecimal digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits =
        bytes.iter().flat_map(|byte| [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]);
    digits.map(char::from).collect()
}
