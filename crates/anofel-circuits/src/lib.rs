//! The three statements of AnoFel as circuits, with their keys, prover and verifier.
