//! Records inside other records.

use super::VALIDATOR;
use crate::layout::Layout;
use crate::layout::Type::{self, *};

/// A chain of X.509 certificates in DER, the holder's own first.
pub const CHAIN: Type = List(&Bytes { max: 4096 }, 4);

/// A storage holder's word that it keeps a blob until a time.
pub const RECEIPT: &Layout = &Layout {
    name: "Receipt",
    fields: &[("holder", U8), ("expires", U64), ("signature", Signature)],
};

/// A payload that is kept outside the posting, with the receipts of those who keep it.
pub const BLOB: &Layout = &Layout {
    name: "Blob",
    fields: &[("sha256", Digest), ("length", U64), ("receipts", List(&Record(RECEIPT), 16))],
};

/// A change of members under the same key: the key and the members who deal.
pub const HANDOVER: &Layout =
    &Layout { name: "HandoverTerms", fields: &[("key_id", Digest), ("dealers", List(&U8, 16))] };

/// One run of key generation: the scheme, the threshold and the members.
pub const RUN: &Layout = &Layout {
    name: "Run",
    fields: &[
        ("nonce", Digest),
        ("scheme", U8),
        ("threshold", U8),
        ("members", List(&Digest, 16)),
        ("handover", Option(&Record(HANDOVER))),
    ],
};

/// What a client sends to one committee of its bundle.
pub const CONTRIBUTION: &Layout = &Layout {
    name: "SubmittedPart",
    fields: &[("envelope", Bytes { max: 256 }), ("payload", Record(BLOB))],
};

/// A submission that a committee leaves out of the sum, and why.
pub const EXCLUSION: &Layout =
    &Layout { name: "Exclusion", fields: &[("nullifier", Field), ("reason", U8)] };

/// What was added for one group of an iteration: which posts, how many, and the encrypted sum.
pub const GROUP_SUM: &Layout = &Layout {
    name: "GroupSum",
    fields: &[("set_digest", Digest), ("num_posts", U32), ("sum", Record(BLOB))],
};

/// A validator that comes, with the storage role that it runs and where it is reached.
pub const NEW_VALIDATOR: &Layout = &Layout {
    name: "NewValidator",
    fields: &[
        ("validator", Record(VALIDATOR)),
        ("holder", CHAIN),
        ("name", Text { max: 64 }),
        ("peer", Text { max: 256 }),
        ("url", Text { max: 256 }),
    ],
};
