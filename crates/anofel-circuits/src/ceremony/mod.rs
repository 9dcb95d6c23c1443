//! The ceremony: keys that several people make together, so that forging needs all of them.
//!
//! Phase 1 are [`powers`] of tau, a public file that serves every circuit, or one of our own
//! ([`phase1`]). Phase 2 starts from the [`first`] key of a statement; people contribute one after the
//! other to a [`zkey`] ([`contribution`]), a public beacon ends it, and anybody checks all of it
//! ([`verify`]). The result becomes a key of ours ([`convert`]) under the digest of its
//! [`transcript`]. Files are those of snarkjs, so its users can contribute and check too.
//!
//! `docs/ceremony-format.md` has the formulas and formats.

pub mod container;
pub mod contribution;
pub mod convert;
pub mod error;
pub mod first;
pub mod phase1;
pub mod points;
pub mod powers;
pub mod secret;
pub mod stream;
pub mod transcript;
pub mod verify;
pub mod zkey;

pub use error::Error;
