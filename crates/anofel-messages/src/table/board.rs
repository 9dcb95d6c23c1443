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

/// What CometBFT calls a block: the hash of its header, and its parts.
pub const ENGINE_BLOCK: &Layout = &Layout {
    name: "EngineBlock",
    fields: &[("hash", Digest), ("parts", U32), ("parts_hash", Digest)],
};

/// A validator's precommit under CometBFT.
pub const ENGINE_VOTE: &Layout = &Layout {
    name: "EngineVote",
    fields: &[("validator", U8), ("time", U64), ("nanos", U32), ("signature", Signature)],
};

/// What vouches for a block under CometBFT: the rest of the engine's header, and the precommits.
pub const SEAL: &Layout = &Layout {
    name: "Seal",
    fields: &[
        ("block_version", U64),
        ("app_version", U64),
        ("nanos", U32),
        ("last", Option(&Record(ENGINE_BLOCK))),
        ("last_commit", Digest),
        ("data", Digest),
        ("next_validators", Digest),
        ("consensus", Digest),
        ("results", Digest),
        ("evidence", Digest),
        ("proposer", U8),
        ("round", U32),
        ("parts", U32),
        ("parts_hash", Digest),
        ("votes", List(&Record(ENGINE_VOTE), 64)),
    ],
};

/// A header, what vouches for it and its postings.
pub const BLOCK: &Layout = &Layout {
    name: "Block",
    fields: &[
        ("header", Record(HEADER)),
        ("commit", List(&Record(VOTE), 64)),
        ("seal", Option(&Record(SEAL))),
        ("postings", List(&Bytes { max: 2_097_152 }, 65_535)),
    ],
};

/// Who may sign headers, and with what weight.
pub const VALIDATOR: &Layout = &Layout {
    name: "Validator",
    fields: &[
        ("key", MessageKey),
        ("power", U64),
        ("chain", CHAIN),
        ("binding", Option(&Signature)),
    ],
};

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
        ("engine", U8),
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
