//! What can be wrong with a key, a witness or a proof.

use crate::system::Clause;

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The witness does not satisfy the statement.
    #[error("the statement does not hold: {clause}")]
    Unsatisfied {
        /// The first clause that fails.
        clause: Clause,
    },
    /// Bytes that are not a proof.
    #[error("the {statement} proof is malformed: {reason}")]
    MalformedProof {
        /// Which statement.
        statement: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
    /// A proof that does not verify.
    #[error("the {statement} proof is not valid for these public inputs")]
    InvalidProof {
        /// Which statement.
        statement: &'static str,
    },
    /// Proofs of a batch that do not verify.
    #[error("{} of {total} {statement} proofs are not valid: {indices:?}", .indices.len())]
    InvalidBatch {
        /// Which statement.
        statement: &'static str,
        /// How many proofs were in the batch.
        total: usize,
        /// The positions of the bad ones.
        indices: Vec<usize>,
    },
    /// A file that is not a key.
    #[error("this is not an anofel key file")]
    NotAKey,
    /// A key file of another version.
    #[error("the key file has format version {found}; this program reads version {expected}")]
    KeyVersion {
        /// The version this program reads.
        expected: u16,
        /// The version of the file.
        found: u16,
    },
    /// A key file that ends too early or too late.
    #[error("the key file is {}: it has {found} bytes instead of {expected}", if .found < .expected { "truncated" } else { "too long" })]
    KeyLength {
        /// How many bytes it must have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A file of another role.
    #[error("this {}; a {expected} key is needed", if *.found == "tables" { "file is tables".to_string() } else { format!("is a {found} key") })]
    KeyRole {
        /// What is needed.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A key of another statement.
    #[error("this key is for the {found} statement; a key for the {expected} statement is needed")]
    KeyStatement {
        /// What is needed.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A key for another version of the constraints.
    #[error("this key was made for another version of the {statement} constraints")]
    KeyShape {
        /// Which statement.
        statement: &'static str,
    },
    /// A key that is not the pinned one.
    #[error("this key is not the pinned one: its id is {found}, pinned is {expected}")]
    KeyId {
        /// The pinned id.
        expected: String,
        /// The id of the file.
        found: String,
    },
    /// Tables that do not follow from the key.
    #[error("these are not the tables of the {statement} proving key")]
    KeyTables {
        /// Which statement.
        statement: &'static str,
    },
    /// A verification key that would accept false proofs or none.
    #[error("the {statement} key is unsafe: {reason}")]
    UnsafeKey {
        /// Which statement.
        statement: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
}
