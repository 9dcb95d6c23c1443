//! The kinds of postings and their bodies.

use super::Author::{Chain, Key};
use super::{Kind, BLOB, CONTRIBUTION, EXCLUSION, GROUP_SUM, NEW_VALIDATOR, RUN};
use crate::layout::Layout;
use crate::layout::Type::{self, *};

/// A certifier offers its signing key (step 1.a).
pub const CERTIFIER_KEY: &Layout = &Layout {
    name: "CertifierKeyOffer",
    fields: &[("key", Type::CertifierKey), ("possession", Possession)],
};

/// A certifier's key is taken back; a new epoch makes every client register again.
pub const REVOKE_CERTIFIER: &Layout = &Layout {
    name: "RevokeCertifier",
    fields: &[("key", Type::CertifierKey), ("new_epoch", Flag)],
};

/// A client registers (step 1.b).
pub const REGISTRATION: &Layout = &Layout {
    name: "Registration",
    fields: &[
        ("certifier_root", Field),
        ("commitment", Field),
        ("nullifier", Field),
        ("epoch", U32),
        ("tag", Field),
        ("proof", Proof),
    ],
};

/// One message of key generation (step 1.c).
pub const DKG_ROUND: &Layout = &Layout {
    name: "DkgRound",
    fields: &[
        ("run_id", Digest),
        ("round", U16),
        ("sender", U8),
        ("run", Option(&Record(RUN))),
        ("body", Record(BLOB)),
    ],
};

/// A member says which key a run made (step 1.c).
pub const COMMITTEE_KEY: &Layout = &Layout {
    name: "CommitteeKeyVote",
    fields: &[
        ("run_id", Digest),
        ("member", U8),
        ("key_id", Digest),
        ("shares_id", Digest),
        ("transcript", Digest),
        ("key", Record(BLOB)),
    ],
};

/// An owner announces a task (step 1.d).
pub const TASK: &Layout = &Layout {
    name: "TaskAnnouncement",
    fields: &[("document", Bytes { max: 65_536 }), ("key_id", Digest), ("early_end", Flag)],
};

/// An owner posts the model that opens an iteration (step 1.d).
pub const MODEL: &Layout = &Layout {
    name: "Model",
    fields: &[("task", Digest), ("iteration", U64), ("model", Record(BLOB))],
};

/// A client submits to its bundle (step 5).
pub const SUBMISSION: &Layout = &Layout {
    name: "Submission",
    fields: &[
        ("bundle", U64),
        ("iteration", U64),
        ("nullifier", Field),
        ("tag", Field),
        ("type_commitment", TypeCommitment),
        ("proof", Proof),
        ("ballot", Bytes { max: 65_536 }),
        ("contributions", List(&Record(CONTRIBUTION), 16)),
    ],
};

/// A member says which submissions it added and what the encrypted sums are (steps 6 and 7).
pub const AGGREGATE: &Layout = &Layout {
    name: "Aggregate",
    fields: &[
        ("task", Digest),
        ("iteration", U64),
        ("member", U8),
        ("close_hash", Digest),
        ("excluded", List(&Record(EXCLUSION), 16_384)),
        ("groups", List(&Record(GROUP_SUM), 32)),
    ],
};

/// A member's share of the count of every group (step 8).
pub const COUNT_SHARE: &Layout = &Layout {
    name: "CountShare",
    fields: &[
        ("task", Digest),
        ("iteration", U64),
        ("member", U8),
        ("agreed", Digest),
        ("shares", List(&Bytes { max: 1024 }, 32)),
    ],
};

/// A member's share of the sum of every group that is opened (step 8).
pub const SUM_SHARE: &Layout = &Layout {
    name: "SumShare",
    fields: &[
        ("task", Digest),
        ("iteration", U64),
        ("member", U8),
        ("agreed", Digest),
        ("shares", List(&Record(BLOB), 32)),
    ],
};

/// An owner ends an iteration early.
pub const END_ITERATION: &Layout =
    &Layout { name: "EndIteration", fields: &[("task", Digest), ("iteration", U64)] };

/// An owner ends its task.
pub const END_TASK: &Layout = &Layout { name: "EndTask", fields: &[("task", Digest)] };

/// How much privacy a task has spent, in millionths of ε, for both relations.
pub const PRIVACY_LEDGER: &Layout = &Layout {
    name: "PrivacyLedger",
    fields: &[("task", Digest), ("releases", U32), ("zero_out", U64), ("replace", U64)],
};

/// An owner rejects the model that an iteration's sum makes: the former model opens the next one.
pub const REJECT_MODEL: &Layout =
    &Layout { name: "RejectModel", fields: &[("task", Digest), ("iteration", U64)] };

/// A change of validators is proposed; who proposes it signs it.
pub const CHANGE_VALIDATORS: &Layout = &Layout {
    name: "ChangeValidators",
    fields: &[
        ("base", Digest),
        ("place", U8),
        ("entry", Option(&Record(NEW_VALIDATOR))),
        ("since", U64),
    ],
};

/// A validator signs a change that another one proposed.
pub const SIGN_CHANGE: &Layout = &Layout { name: "SignChange", fields: &[("change", Digest)] };

/// Every kind of posting, by number.
pub const KINDS: &[Kind] = &[
    Kind { number: 1, author: Chain, body: CERTIFIER_KEY },
    Kind { number: 2, author: Chain, body: REVOKE_CERTIFIER },
    Kind { number: 3, author: Key, body: REGISTRATION },
    Kind { number: 4, author: Chain, body: DKG_ROUND },
    Kind { number: 5, author: Chain, body: COMMITTEE_KEY },
    Kind { number: 6, author: Chain, body: TASK },
    Kind { number: 7, author: Chain, body: MODEL },
    Kind { number: 8, author: Key, body: SUBMISSION },
    Kind { number: 9, author: Chain, body: AGGREGATE },
    Kind { number: 10, author: Chain, body: COUNT_SHARE },
    Kind { number: 11, author: Chain, body: SUM_SHARE },
    Kind { number: 12, author: Chain, body: END_ITERATION },
    Kind { number: 13, author: Chain, body: END_TASK },
    Kind { number: 14, author: Chain, body: PRIVACY_LEDGER },
    Kind { number: 15, author: Chain, body: REJECT_MODEL },
    Kind { number: 16, author: Chain, body: CHANGE_VALIDATORS },
    Kind { number: 17, author: Chain, body: SIGN_CHANGE },
];
