//! What a layout is made of.

use std::fmt;

use anofel_primitives::babyjubjub::POINT_BYTES;
use anofel_primitives::eddsa::{CertifierKey, Possession, SIGNATURE_BYTES};
use anofel_primitives::field::{self, FIELD_BYTES};
use anofel_primitives::message_key::MessageKey;
use anofel_primitives::{commitment::TypeCommitment, Fr};

use crate::error::Reason;

/// The bytes of a length.
pub(crate) const LENGTH_BYTES: usize = 4;
/// The bytes of a count.
pub(crate) const COUNT_BYTES: usize = 2;

/// The type of a field. Numbers are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A number of one byte.
    U8,
    /// A number of two bytes.
    U16,
    /// A number of four bytes.
    U32,
    /// A number of eight bytes.
    U64,
    /// One byte, 0 or 1.
    Flag,
    /// 32 bytes of any value.
    Digest,
    /// An element of the field, below its modulus.
    Field,
    /// A certifier's public key.
    CertifierKey,
    /// A commitment to a dataset type.
    TypeCommitment,
    /// The Ed25519 key of one posting.
    MessageKey,
    /// A proof that somebody knows a certifier's secret.
    Possession,
    /// 64 bytes of any value; they are checked when the signature is verified.
    Signature,
    /// 128 bytes of any value; they are checked when the proof is verified.
    Proof,
    /// A length of four bytes, then so many bytes.
    Bytes {
        /// The largest length.
        max: u32,
    },
    /// Like bytes, and they are UTF-8.
    Text {
        /// The largest length in bytes.
        max: u32,
    },
    /// A count of two bytes, then so many values; the largest count.
    List(&'static Type, u16),
    /// A flag, then the value if the flag is 1.
    Option(&'static Type),
    /// A record inside a record.
    Record(&'static Layout),
}

/// The name and the fields of a record, in order and without padding.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// The record's name.
    pub name: &'static str,
    /// Name and type of each field.
    pub fields: &'static [(&'static str, Type)],
}

impl Type {
    /// The bytes of a number and the largest number; nothing for other types.
    pub fn number(&self) -> Option<(usize, u64)> {
        match self {
            Self::U8 => Some((1, u8::MAX.into())),
            Self::U16 => Some((2, u16::MAX.into())),
            Self::U32 => Some((4, u32::MAX.into())),
            Self::U64 => Some((8, u64::MAX)),
            _ => None,
        }
    }

    /// The length of bytes that have a fixed one; nothing for other types.
    pub fn fixed_bytes(&self) -> Option<usize> {
        match self {
            Self::Digest | Self::MessageKey => Some(32),
            Self::Field => Some(FIELD_BYTES),
            Self::CertifierKey | Self::TypeCommitment => Some(POINT_BYTES),
            Self::Possession => Some(SIGNATURE_BYTES),
            Self::Signature => Some(64),
            Self::Proof => Some(128),
            _ => None,
        }
    }

    /// What a value of this type is, for error messages.
    pub fn sort(&self) -> &'static str {
        match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => "a number",
            Self::Flag => "a flag",
            Self::Text { .. } => "a text",
            Self::List(..) => "a list",
            Self::Option(_) => "a value or none",
            Self::Record(_) => "a record",
            _ => "bytes",
        }
    }

    /// Refuses bytes that are not the one form of a value of this type.
    pub(crate) fn check_bytes(&self, bytes: &[u8]) -> Result<(), Reason> {
        match self {
            Self::Field => drop(field::from_bytes::<Fr>("the field element", bytes)?),
            Self::CertifierKey => drop(CertifierKey::from_bytes(bytes)?),
            Self::TypeCommitment => drop(TypeCommitment::from_bytes(bytes)?),
            Self::MessageKey => drop(MessageKey::from_bytes(bytes)?),
            Self::Possession => drop(Possession::from_bytes(bytes)?),
            _ => {}
        }
        Ok(())
    }

    /// The bytes that a value takes at least. It is never 0, so a count cannot promise items
    /// that take no bytes.
    pub fn min_bytes(&self) -> usize {
        match self {
            Self::Flag | Self::Option(_) => 1,
            Self::Bytes { .. } | Self::Text { .. } => LENGTH_BYTES,
            Self::List(..) => COUNT_BYTES,
            Self::Record(layout) => layout.fields.iter().map(|(_, kind)| kind.min_bytes()).sum(),
            fixed => fixed.number().map(|(size, _)| size).or(fixed.fixed_bytes()).unwrap_or(0),
        }
    }
}

/// As the tables of the documentation write it: `list(Receipt, 16)`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U8 => f.write_str("u8"),
            Self::U16 => f.write_str("u16"),
            Self::U32 => f.write_str("u32"),
            Self::U64 => f.write_str("u64"),
            Self::Flag => f.write_str("flag"),
            Self::Digest => f.write_str("digest"),
            Self::Field => f.write_str("field"),
            Self::CertifierKey => f.write_str("certifier_key"),
            Self::TypeCommitment => f.write_str("type_commitment"),
            Self::MessageKey => f.write_str("message_key"),
            Self::Possession => f.write_str("possession"),
            Self::Signature => f.write_str("signature"),
            Self::Proof => f.write_str("proof"),
            Self::Bytes { max } => write!(f, "bytes({max})"),
            Self::Text { max } => write!(f, "text({max})"),
            Self::List(item, max) => write!(f, "list({item}, {max})"),
            Self::Option(inner) => write!(f, "option({inner})"),
            Self::Record(layout) => f.write_str(layout.name),
        }
    }
}
