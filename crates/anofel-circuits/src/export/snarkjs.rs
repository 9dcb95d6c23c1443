//! Verification keys, proofs and public inputs as the JSON texts that snarkjs reads.
//!
//! A coordinate is a decimal string. A point of G1 is `[x, y, "1"]`; a point of G2 has pairs
//! `[c0, c1]` for c0 + c1·u instead. None of the points written here is the neutral element: keys
//! and proofs refuse it.

use anofel_primitives::Fr;
use ark_bn254::{Fq2, G1Affine, G2Affine};
use serde_json::{json, Value};

use crate::groth16::key::VerifyingKey;
use crate::groth16::proof::Proof;

/// The names snarkjs has for BN254 and its proof system.
const CURVE: &str = "bn128";
const PROTOCOL: &str = "groth16";

/// `verification_key.json`.
pub fn verification_key(key: &VerifyingKey) -> String {
    let points = key.points();
    let inputs: Vec<Value> = points.gamma_abc_g1.iter().map(g1).collect();
    text(&json!({
        "protocol": PROTOCOL,
        "curve": CURVE,
        "nPublic": inputs.len() - 1,
        "vk_alpha_1": g1(&points.alpha_g1),
        "vk_beta_2": g2(&points.beta_g2),
        "vk_gamma_2": g2(&points.gamma_g2),
        "vk_delta_2": g2(&points.delta_g2),
        "IC": inputs,
    }))
}

/// `proof.json`.
pub fn proof(proof: &Proof) -> String {
    let points = proof.points();
    text(&json!({
        "protocol": PROTOCOL,
        "curve": CURVE,
        "pi_a": g1(&points.a),
        "pi_b": g2(&points.b),
        "pi_c": g1(&points.c),
    }))
}

/// `public.json`: the public inputs in their order, without the constant one.
pub fn public_inputs(inputs: &[Fr]) -> String {
    text(&inputs.iter().map(|input| json!(input.to_string())).collect())
}

fn g1(point: &G1Affine) -> Value {
    json!([point.x.to_string(), point.y.to_string(), "1"])
}

fn g2(point: &G2Affine) -> Value {
    json!([pair(&point.x), pair(&point.y), ["1", "0"]])
}

fn pair(element: &Fq2) -> Value {
    json!([element.c0.to_string(), element.c1.to_string()])
}

fn text(value: &Value) -> String {
    format!("{value:#}\n")
}
