//! The verifier page's way into the Rust crates: what `anofel-py` is to Python, for checking alone.
//!
//! Names of 32 and 64 bytes cross as hexadecimal text, everything longer as bytes. What is refused is
//! thrown as an `Error` with the sentence of the core; nothing here keeps or makes a secret. On any other
//! target than WebAssembly the crate is empty.
#![cfg(target_family = "wasm")]

mod committee;
mod count;
mod error;
mod lattice;
mod messages;
mod model;
mod proofs;
mod signatures;
mod trees;
