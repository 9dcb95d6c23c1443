//! The three statements of AnoFel as circuits, with their keys, prover and verifier.
//!
//! [`statements`] says what is proven; [`gadgets`] are the pieces; [`system`] is the constraint
//! system; [`groth16`] makes keys, proofs and verdicts; [`export`] writes them for other programs;
//! [`ceremony`] makes keys that several people answer for.

#[cfg(not(target_family = "wasm"))]
pub mod ceremony;
pub mod error;
pub mod export;
pub mod gadgets;
pub mod groth16;
pub mod shape;
pub mod statements;
pub mod system;

pub use error::Error;
