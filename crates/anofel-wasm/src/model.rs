//! The exact rules that turn a sum into the next model. Vectors are little-endian 64-bit integers.

use anofel_dp::update_rule::{fine_mean, Adaptive, IntegerAdaptive, IntegerMean};
use anofel_dp::UpdateError;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::error::{marked, Result};

fn refuse(error: UpdateError) -> JsValue {
    let overflow = matches!(error, UpdateError::Overflow { .. } | UpdateError::NormOverflow);
    marked(if overflow { "overflow" } else { "refused" }, error)
}

fn decode(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|word| i64::from_le_bytes(*word)).collect()
}

fn encode(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn vectors<const N: usize>(values: [Vec<i64>; N]) -> Array {
    values.iter().map(|values| JsValue::from(Uint8Array::from(encode(values).as_slice()))).collect()
}

/// The mean of one group, or a weighted one, in units of 2^−16 of a step.
#[wasm_bindgen(js_name = fineMean)]
pub fn fine_mean_of(total: &[u8], numerator: u64, divisor: u64) -> Result<Uint8Array> {
    let mean = fine_mean(&decode(total), numerator, divisor).map_err(refuse)?;
    Ok(Uint8Array::from(encode(&mean).as_slice()))
}

/// `integer-mean`: the next model and the next velocity.
#[wasm_bindgen(js_name = integerMean)]
#[allow(clippy::too_many_arguments, reason = "they are the letters of one formula")]
pub fn integer_mean(
    model: &[u8],
    velocity: &[u8],
    total: &[u8],
    momentum: u32,
    lr_num: u64,
    lr_den: u64,
    count: u64,
    max_mean: Option<u64>,
) -> Result<Array> {
    let rule = IntegerMean::new(momentum, lr_num, lr_den, count, max_mean).map_err(refuse)?;
    let (mut model, mut velocity) = (decode(model), decode(velocity));
    rule.apply(&mut model, &mut velocity, &decode(total)).map_err(refuse)?;
    Ok(vectors([model, velocity]))
}

/// `integer-adam` and `integer-yogi`: the next model and its next two moments.
#[wasm_bindgen(js_name = integerAdaptive)]
#[allow(clippy::too_many_arguments, reason = "they are the letters of one formula")]
pub fn integer_adaptive(
    model: &[u8],
    first: &[u8],
    second: &[u8],
    total: &[u8],
    yogi: bool,
    momentum: u32,
    second_momentum: u32,
    floor: u64,
    scale_bits: u32,
    lr_num: u64,
    lr_den: u64,
    count: u64,
    max_mean: Option<u64>,
) -> Result<Array> {
    let kind = if yogi { Adaptive::Yogi } else { Adaptive::Adam };
    let rule = IntegerMean::new(momentum, lr_num, lr_den, count, max_mean)
        .and_then(|mean| {
            IntegerAdaptive::new(kind, mean, count, second_momentum, floor, scale_bits)
        })
        .map_err(refuse)?;
    let (mut model, mut first, mut second) = (decode(model), decode(first), decode(second));
    rule.apply(&mut model, &mut first, &mut second, &decode(total)).map_err(refuse)?;
    Ok(vectors([model, first, second]))
}
