//! A client's keys and what a certifier certifies about its data.

use ark_bn254::Fr;

use crate::field::{field_newtype, secret_field_newtype, FieldHash, FieldHasher};
use crate::hash::{hash, Domain};

secret_field_newtype!(
    /// msk: the client's one long-term secret.
    MasterSecret,
    "the master secret"
);

field_newtype!(
    /// mpk = H(msk) (D-04). Only the certifier sees it.
    MasterPublicKey,
    "the master public key"
);

field_newtype!(
    /// d: the digest of the canonical dataset, as certified.
    DatasetDigest,
    "the dataset digest"
);

impl MasterSecret {
    /// mpk = H(msk).
    pub fn public_key(&self) -> MasterPublicKey {
        MasterPublicKey(hash(Domain::MasterPublicKey, &[self.0]))
    }
}

impl DatasetDigest {
    /// The digest of a canonical dataset that arrives in chunks.
    pub fn of_chunks<B: AsRef<[u8]>>(chunks: impl IntoIterator<Item = B>) -> Self {
        let chunks = chunks.into_iter().map(Ok::<B, std::convert::Infallible>);
        match Self::try_of_chunks(chunks) {
            Ok(digest) => digest,
            Err(never) => match never {},
        }
    }

    /// The same for chunks that may fail to arrive; one chunk is held at a time.
    pub fn try_of_chunks<B: AsRef<[u8]>, E>(
        chunks: impl IntoIterator<Item = Result<B, E>>,
    ) -> Result<Self, E> {
        let mut hasher = FieldHasher::new(FieldHash::Dataset);
        for chunk in chunks {
            hasher.update(chunk?.as_ref());
        }
        Ok(Self(hasher.finish()))
    }
}

/// dt: the type of a dataset, a number below 2^32 that tasks accept or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatasetType(pub u32);

impl DatasetType {
    /// The field element, for circuits.
    pub fn element(&self) -> Fr {
        Fr::from(self.0)
    }
}
