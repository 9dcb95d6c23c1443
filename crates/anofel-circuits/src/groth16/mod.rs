//! Groth16 on BN254: keys with `ark-groth16`, and a prover and a verifier of our own.
//!
//! The prover is ours because `ark-groth16` lays the constraints down anew for every proof and
//! knows nothing of its bases, while a client proves many times with the same key.

pub mod ark;
#[cfg(target_arch = "x86_64")]
mod cyclotomic;
mod final_exponentiation;
mod inputs;
pub mod key;
mod miller;
pub mod msm;
pub(crate) mod points;
pub mod proof;
pub mod prover;
pub mod proving_key;
pub mod setup;
pub mod verifier;
