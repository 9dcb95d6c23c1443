//! What can be wrong with a value that comes from outside.

/// A value that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Wrong number of bytes.
    #[error("{what} has {found} bytes instead of {expected}")]
    Length {
        /// The value's type.
        what: &'static str,
        /// How many bytes it must have.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// An integer that is not below its modulus.
    #[error("{what} is not canonical: the integer is not below the modulus")]
    NotCanonical {
        /// The value's type.
        what: &'static str,
    },
    /// A point that is not on the curve.
    #[error("{what} is not a point of the curve")]
    NotOnCurve {
        /// The value's type.
        what: &'static str,
    },
    /// A point outside the prime-order subgroup.
    #[error("{what} is not in the prime-order subgroup")]
    NotInSubgroup {
        /// The value's type.
        what: &'static str,
    },
    /// The neutral element where a real point is needed.
    #[error("{what} is the neutral element")]
    Identity {
        /// The value's type.
        what: &'static str,
    },
    /// A signature that does not verify.
    #[error("the signature of {what} is not valid")]
    Signature {
        /// What was signed.
        what: &'static str,
    },
    /// A tree without room.
    #[error("the tree is full: it holds {capacity} leaves")]
    TreeFull {
        /// The number of leaves of the full tree.
        capacity: usize,
    },
    /// A leaf that is not there.
    #[error("there is no leaf {index}: the tree has {size}")]
    NoSuchLeaf {
        /// The leaf asked for.
        index: usize,
        /// How many leaves there are.
        size: usize,
    },
    /// A stored node that is not the hash of its children.
    #[error("a node of level {level} of the tree is not the hash of its children")]
    WrongNode {
        /// The level, the leaves being level 0.
        level: usize,
    },
    /// A leaf that is not in the tree.
    #[error("this leaf is not in the tree")]
    NotAMember,
    /// The empty leaf's value used as a member.
    #[error("the value 0 marks an empty leaf and cannot be a member")]
    EmptyLeaf,
}
