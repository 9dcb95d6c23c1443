//! The layouts of all records and the kinds of postings. This table is the specification;
//! `docs/messages.md` shows it and says what each field is for.

mod board;
mod parts;
mod postings;

pub use board::*;
pub use parts::*;
pub use postings::*;

use crate::layout::{Layout, Type};

/// How the author of a posting shows who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// X.509 certificates in DER, the author's own first.
    Chain,
    /// The key of this one posting, for clients.
    Key,
}

impl Author {
    /// The type of the author's field.
    pub const fn layout_type(self) -> Type {
        match self {
            Self::Chain => CHAIN,
            Self::Key => Type::MessageKey,
        }
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Key => "key",
        }
    }
}

/// A kind of posting.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The number on the wire.
    pub number: u8,
    /// How its author is named.
    pub author: Author,
    /// The layout of the body; its name is the name of the kind.
    pub body: &'static Layout,
}

/// The kind with a number.
pub fn kind(number: u8) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.number == number)
}

/// The layout with a name: a record's or the body of a kind.
pub fn find(name: &str) -> Option<&'static Layout> {
    LAYOUTS.iter().copied().find(|layout| layout.name == name)
}

/// Every layout, in the order of the documentation.
pub const LAYOUTS: &[&Layout] = &[
    RECEIPT,
    BLOB,
    HANDOVER,
    RUN,
    CONTRIBUTION,
    EXCLUSION,
    GROUP_SUM,
    NEW_VALIDATOR,
    CERTIFIER_KEY,
    REVOKE_CERTIFIER,
    REGISTRATION,
    DKG_ROUND,
    COMMITTEE_KEY,
    TASK,
    MODEL,
    SUBMISSION,
    AGGREGATE,
    COUNT_SHARE,
    SUM_SHARE,
    END_ITERATION,
    END_TASK,
    PRIVACY_LEDGER,
    REJECT_MODEL,
    CHANGE_VALIDATORS,
    SIGN_CHANGE,
    HEADER,
    VOTE,
    ENGINE_BLOCK,
    ENGINE_VOTE,
    SEAL,
    BLOCK,
    VALIDATOR,
    CLASS,
    LIMITS,
    GENESIS,
];
