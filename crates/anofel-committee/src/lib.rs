//! Committee encryption: threshold encryption of update vectors and of the count.
//!
//! A committee of n members holds keys on ristretto255 that no single member knows; t of them
//! open a sum together. [`keys`] makes and hands on those keys. [`lattice`] adds vectors: each
//! is masked with a ring-LWE sample over [`ring`], and only the sample's secret is encrypted to
//! the committee. [`count`] adds one encrypted bit per post and proves that it is one.
//!
//! Everything here is arithmetic on bytes; which message is sent when is decided above.

pub mod count;
pub mod equality;
pub mod error;
pub mod group;
pub mod keys;
pub mod lattice;
mod random;
pub mod ring;
pub mod transcript;

pub use error::Error;
/// Secrets come and go in it.
pub use zeroize::Zeroizing;
