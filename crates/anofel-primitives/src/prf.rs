//! What a client can compute with its master secret and nobody can link: tags and nullifiers.

use crate::field::{field_newtype, hash_to_field, FieldHash};
use crate::hash::{hash, Domain};
use crate::identity::{DatasetDigest, MasterSecret};

field_newtype!(
    /// a = H(pk_sig): the message key as a field element. Everyone computes it from pk_sig.
    MessageKeyHash,
    "the message key hash"
);
field_newtype!(
    /// tag = H(msk, a): ties a posting to its author's master secret and message key.
    Tag,
    "the tag"
);
field_newtype!(
    /// E = H(genesis, epoch): what a registration nullifier is bound to.
    Epoch,
    "the epoch"
);
field_newtype!(
    /// registration nullifier = H(msk, d, E) (D-02): unique on the board.
    RegistrationNullifier,
    "the registration nullifier"
);
field_newtype!(
    /// scope = H(genesis, bundle, iteration): what an iteration nullifier is bound to.
    Scope,
    "the scope"
);
field_newtype!(
    /// iteration nullifier = H(msk, d, scope) (D-01): unique on the board.
    IterationNullifier,
    "the iteration nullifier"
);

/// The hash of a board's genesis: 32 bytes that name the board.
pub type GenesisHash = [u8; 32];

impl Epoch {
    /// E = H(genesis, epoch); the epoch number is 8 bytes, little-endian.
    pub fn new(genesis: &GenesisHash, epoch: u64) -> Self {
        Self(hash_to_field(FieldHash::Epoch, &[genesis, &epoch.to_le_bytes()]))
    }
}

impl Scope {
    /// scope = H(genesis, bundle, iteration); both numbers are 8 bytes, little-endian.
    pub fn new(genesis: &GenesisHash, bundle: u64, iteration: u64) -> Self {
        let numbers = (bundle.to_le_bytes(), iteration.to_le_bytes());
        Self(hash_to_field(FieldHash::Scope, &[genesis, &numbers.0, &numbers.1]))
    }
}

impl MasterSecret {
    /// tag = H(msk, a).
    pub fn tag(&self, a: MessageKeyHash) -> Tag {
        Tag(hash(Domain::Tag, &[self.0, a.0]))
    }

    /// registration nullifier = H(msk, d, E).
    pub fn registration_nullifier(&self, d: DatasetDigest, epoch: Epoch) -> RegistrationNullifier {
        RegistrationNullifier(hash(Domain::RegistrationNullifier, &[self.0, d.element(), epoch.0]))
    }

    /// iteration nullifier = H(msk, d, scope).
    pub fn iteration_nullifier(&self, d: DatasetDigest, scope: Scope) -> IterationNullifier {
        IterationNullifier(hash(Domain::IterationNullifier, &[self.0, d.element(), scope.0]))
    }
}
