//! The one canonical encoding of every message on the board.
//!
//! A message is a record of fields in a fixed order. [`table`] lists the layout of every record
//! and the kinds of postings, and is the specification; [`encode`] and [`decode`] follow it. No
//! two byte strings decode to the same value: what decodes encodes to the same bytes again.
//!
//! This crate knows what bytes mean, not whether a message is welcome: signatures, proofs and
//! certificates are checked by whoever admits it.

mod decode;
mod encode;
pub mod error;
pub mod layout;
mod posting;
pub mod table;
pub mod value;

pub use decode::decode;
pub use encode::encode;
pub use error::{Error, Reason};
pub use layout::{Layout, Type};
pub use posting::{decode_posting, encode_posting, Posting, VERSION};
pub use table::{find, kind, Author, Kind, KINDS, LAYOUTS};
pub use value::Value;
