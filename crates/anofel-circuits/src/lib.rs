//! The three statements of AnoFel as circuits, with their keys, prover and verifier.

pub mod gadgets;
pub mod statements;
pub mod system;
