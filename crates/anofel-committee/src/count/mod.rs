//! The count: one encrypted bit per committee of the bundle, and one proof for all of them.
//!
//! Every committee holds one ElGamal key Y on ristretto255. A bit b is encrypted as U = k·G,
//! V = k·Y + b·G. [`Ballot`] holds a bundle's ciphertexts and the proof that the bits are bits,
//! that at most one is 1, and that where it is 1 the task takes the client's dataset type.

mod ballot;
mod branches;
mod proof;
mod tally;

pub use ballot::{
    Accepts, Ballot, Bundle, Ciphertext, Committee, Opening, SecretBits, CIPHERTEXT_BYTES,
    MAX_COMMITTEES,
};
pub use branches::{BitStatement, Branches, SecretBranches, BRANCHES_BYTES, FIRST_MESSAGES_BYTES};
pub use tally::{
    combine_count, count_share, verify_count_share, Tally, VerifiedCountShare, COUNT_SHARE_BYTES,
};
