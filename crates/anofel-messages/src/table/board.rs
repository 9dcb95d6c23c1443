//! What the board itself consists of: blocks and the genesis. These are no postings.

use super::CHAIN;
use crate::layout::Layout;
use crate::layout::Type::*;

/// The head of a block: the previous one, the postings and the roots of the state after it.
pub const HEADER: &Layout = &Layout {
    name: "Header",
    fields: &[
        ("height", U64),
        ("time", U64),
        ("previous", Digest),
        ("postings", Digest),
        ("certifiers", Digest),
        ("clients", Digest),
        ("nullifiers", Digest),
        ("committees", Digest),
        ("tasks", Digest),
        ("bundles", Digest),
        ("epoch", U32),
        ("rules", U32),
    ],
};

/// A validator's signature of a header.
pub const VOTE: &Layout =
    &Layout { name: "Vote", fields: &[("validator", U8), ("signature", Signature)] };

/// A header, the votes for it and its postings.
pub const BLOCK: &Layout = &Layout {
    name: "Block",
    fields: &[
        ("header", Record(HEADER)),
        ("commit", List(&Record(VOTE), 64)),
        ("postings", List(&Bytes { max: 2_097_152 }, 65_535)),
    ],
};

/// Who may sign headers, and with what weight.
pub const VALIDATOR: &Layout =
    &Layout { name: "Validator", fields: &[("key", MessageKey), ("power", U64)] };

/// A size class of tasks with its limits and deadlines.
pub const CLASS: &Layout = &Layout {
    name: "Class",
    fields: &[
        ("max_length", U32),
        ("max_posts", U32),
        ("post_from", U32),
        ("train", U32),
        ("aggregate", U32),
        ("count", U32),
        ("sum", U32),
        ("model", U32),
    ],
};

/// The limits of a board.
pub const LIMITS: &Layout = &Layout {
    name: "Limits",
    fields: &[
        ("root_window", U16),
        ("max_postings", U32),
        ("max_block_bytes", U32),
        ("grace", U32),
        ("max_runs", U16),
        ("max_tasks", U16),
        ("max_key_bytes", U64),
        ("max_model_bytes", U64),
    ],
};

/// What a board starts from. Its hash is the board's name in everything that is signed.
pub const GENESIS: &Layout = &Layout {
    name: "Genesis",
    fields: &[
        ("version", U8),
        ("name", Text { max: 64 }),
        ("nonce", Digest),
        ("time", U64),
        ("rules", U32),
        ("interval_ms", U32),
        ("roots", List(&Bytes { max: 4096 }, 16)),
        ("ownership_key", Digest),
        ("registration_key", Digest),
        ("submission_key", Digest),
        ("ownership_proving_key", Digest),
        ("registration_proving_key", Digest),
        ("submission_proving_key", Digest),
        ("transcript", Digest),
        ("validators", List(&Record(VALIDATOR), 64)),
        ("holders", List(&CHAIN, 16)),
        ("quorum", U8),
        ("bundle_size", U8),
        ("bundle_wait", U32),
        ("classes", List(&Record(CLASS), 8)),
        ("limits", Record(LIMITS)),
        ("insecure", Text { max: 256 }),
    ],
};
