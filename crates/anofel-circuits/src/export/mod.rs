//! Our keys, proofs and constraints in the formats of other programs, so that they can be checked
//! without ours.

pub mod iden3;
pub mod snarkjs;
