//! Keys, proofs and verdicts. One binary, so that the keys are made once.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod keys;
mod proving_keys;
mod verifier;
