//! The hashes, keys, signatures, commitments and trees of AnoFel.
//!
//! A certifier holds an [`eddsa::CertifierSecret`]. A client holds a [`identity::MasterSecret`];
//! its public half is hashed, never a curve point (D-04). The client's registered
//! [`commitment::Commitment`] is a leaf of the client tree, and everything it posts carries a
//! [`prf::Tag`] and a nullifier that only the holder of the master secret can compute.
//!
//! Every value has a type that says its role. A type converts to bytes and back at one place,
//! [`field`], which refuses anything that is not canonical.

pub mod babyjubjub;
pub mod commitment;
pub mod eddsa;
pub mod error;
pub mod field;
#[cfg(any(test, target_family = "wasm"))]
mod grain;
pub mod hash;
pub mod identity;
pub mod merkle;
pub mod message_key;
pub mod prf;

pub use ark_bn254::Fr;
pub use error::Error;
