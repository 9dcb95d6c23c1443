//! `anofel._core.primitives`: keys, commitments, tags and nullifiers.

use anofel_primitives::{commitment, eddsa, identity, merkle, message_key, prf};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};
use rand::rngs::OsRng;

use crate::error::{InvalidInput, Result};

/// Wraps a public value with canonical bytes.
macro_rules! public_value {
    ($(#[$meta:meta])* $name:ident, $inner:path) => {
        $(#[$meta])*
        #[pyclass(frozen, eq, hash, module = "anofel._core.primitives")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub(crate) $inner);

        #[pymethods]
        impl $name {
            /// Read the canonical bytes; raise `InvalidInput` for anything else.
            #[staticmethod]
            fn from_bytes(data: &[u8]) -> Result<Self> {
                Ok(Self(<$inner>::from_bytes(data)?))
            }

            /// The canonical bytes.
            #[allow(clippy::wrong_self_convention, reason = "PyO3 lends a frozen class")]
            fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &self.0.to_bytes())
            }

            fn __repr__(&self) -> String {
                let hex: String = self.0.to_bytes().iter().map(|b| format!("{b:02x}")).collect();
                format!(concat!(stringify!($name), "({})"), hex)
            }
        }
    };
}

/// Wraps a secret value: it is generated, stored and restored, never shown.
macro_rules! secret_value {
    ($(#[$meta:meta])* $name:ident, $inner:path) => {
        $(#[$meta])*
        #[pyclass(frozen, module = "anofel._core.primitives")]
        pub struct $name(pub(crate) $inner);

        #[pymethods]
        impl $name {
            /// Draw a fresh one from the operating system.
            #[staticmethod]
            fn generate() -> Self {
                Self(<$inner>::generate(&mut OsRng))
            }

            /// Restore one from its secret bytes; raise `InvalidInput` for anything else.
            #[staticmethod]
            fn from_bytes(data: &[u8]) -> Result<Self> {
                Ok(Self(<$inner>::from_bytes(data)?))
            }

            /// The secret bytes, for the key store.
            fn to_secret_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &*self.0.to_secret_bytes())
            }

            fn __repr__(&self) -> &'static str {
                concat!(stringify!($name), "(<redacted>)")
            }
        }
    };
}

secret_value!(
    /// msk: a client's one long-term secret.
    MasterSecret,
    identity::MasterSecret
);
public_value!(
    /// mpk = H(msk). Only the certifier sees it.
    MasterPublicKey,
    identity::MasterPublicKey
);
public_value!(
    /// d: the digest of a canonical dataset.
    DatasetDigest,
    identity::DatasetDigest
);
secret_value!(
    /// The salt of a commitment.
    Salt,
    commitment::Salt
);
public_value!(
    /// comm = H(d, msk, dt, salt): a client's leaf in the client tree.
    Commitment,
    commitment::Commitment
);
secret_value!(
    /// ρ: the blinding of a dataset type commitment, fresh for every posting.
    TypeBlinding,
    commitment::TypeBlinding
);
public_value!(
    /// dt·G + ρ·H on Baby Jubjub: the dataset type, committed to for one posting.
    TypeCommitment,
    commitment::TypeCommitment
);
secret_value!(
    /// An Ed25519 key that signs one posting and is thrown away.
    MessageSecret,
    message_key::MessageSecret
);
public_value!(
    /// pk_sig: the public half of a message key.
    MessageKey,
    message_key::MessageKey
);
public_value!(
    /// a = H(pk_sig).
    MessageKeyHash,
    prf::MessageKeyHash
);
public_value!(
    /// tag = H(msk, a).
    Tag,
    prf::Tag
);
public_value!(
    /// E = H(genesis, epoch).
    Epoch,
    prf::Epoch
);
public_value!(
    /// scope = H(genesis, bundle, iteration).
    Scope,
    prf::Scope
);
public_value!(
    /// registration nullifier = H(msk, d, E).
    RegistrationNullifier,
    prf::RegistrationNullifier
);
public_value!(
    /// iteration nullifier = H(msk, d, scope).
    IterationNullifier,
    prf::IterationNullifier
);
secret_value!(
    /// A certifier's signing key.
    CertifierSecret,
    eddsa::CertifierSecret
);
public_value!(
    /// A certifier's public key.
    CertifierKey,
    eddsa::CertifierKey
);
public_value!(
    /// A proof that somebody knows the secret of a certifier's key.
    Possession,
    eddsa::Possession
);
public_value!(
    /// The root of a tree.
    Root,
    merkle::Root
);

/// dt: the type of a dataset, a number below 2^32.
#[pyclass(frozen, eq, hash, module = "anofel._core.primitives")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatasetType(pub(crate) identity::DatasetType);

#[pymethods]
impl DatasetType {
    #[new]
    fn new(number: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number: u32 = number.extract().map_err(|_| {
            InvalidInput::new_err("a dataset type is an integer from 0 to 4294967295")
        })?;
        Ok(Self(identity::DatasetType(number)))
    }

    /// The number.
    #[getter]
    fn number(&self) -> u32 {
        self.0 .0
    }

    fn __repr__(&self) -> String {
        format!("DatasetType({})", self.0 .0)
    }
}

/// A certifier's signature over (d, mpk, dt). It names the certifier, so the client keeps it.
#[pyclass(frozen, module = "anofel._core.primitives")]
pub struct Certificate(pub(crate) eddsa::Certificate);

#[pymethods]
impl Certificate {
    /// Read the canonical bytes; raise `InvalidInput` for anything else.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> Result<Self> {
        Ok(Self(eddsa::Certificate::from_bytes(data)?))
    }

    /// The bytes, for the client that it was made for.
    fn to_secret_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &*self.0.to_secret_bytes())
    }

    fn __repr__(&self) -> &'static str {
        "Certificate(<redacted>)"
    }
}

#[pymethods]
impl MasterSecret {
    /// mpk = H(msk).
    fn public_key(&self) -> MasterPublicKey {
        MasterPublicKey(self.0.public_key())
    }

    /// tag = H(msk, a).
    fn tag(&self, a: &MessageKeyHash) -> Tag {
        Tag(self.0.tag(a.0))
    }

    /// registration nullifier = H(msk, d, E).
    fn registration_nullifier(&self, d: &DatasetDigest, epoch: &Epoch) -> RegistrationNullifier {
        RegistrationNullifier(self.0.registration_nullifier(d.0, epoch.0))
    }

    /// iteration nullifier = H(msk, d, scope).
    fn iteration_nullifier(&self, d: &DatasetDigest, scope: &Scope) -> IterationNullifier {
        IterationNullifier(self.0.iteration_nullifier(d.0, scope.0))
    }
}

#[pymethods]
impl DatasetDigest {
    /// The digest of a canonical dataset that arrives in chunks.
    #[staticmethod]
    fn of_chunks(chunks: &Bound<'_, PyAny>) -> PyResult<Self> {
        let chunks = PyIterator::from_object(chunks)?
            .map(|chunk| chunk?.extract::<pyo3::pybacked::PyBackedBytes>().map_err(PyErr::from));
        Ok(Self(identity::DatasetDigest::try_of_chunks(chunks)?))
    }
}

#[pymethods]
impl Commitment {
    /// comm = H(d, msk, dt, salt).
    #[new]
    fn new(d: &DatasetDigest, msk: &MasterSecret, dt: &DatasetType, salt: &Salt) -> Self {
        Self(commitment::Commitment::new(d.0, &msk.0, dt.0, &salt.0))
    }
}

#[pymethods]
impl TypeCommitment {
    /// dt·G + ρ·H.
    #[new]
    fn new(dt: &DatasetType, rho: &TypeBlinding) -> Self {
        Self(commitment::TypeCommitment::new(dt.0, &rho.0))
    }
}

#[pymethods]
impl MessageSecret {
    /// pk_sig.
    fn public_key(&self) -> MessageKey {
        MessageKey(self.0.public_key())
    }

    /// Sign the bytes of a posting.
    fn sign<'py>(&self, py: Python<'py>, message: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.sign(message))
    }
}

#[pymethods]
impl MessageKey {
    /// a = H(pk_sig).
    fn hash(&self) -> MessageKeyHash {
        MessageKeyHash(self.0.hash())
    }

    /// Check a signature by the strict rule; raise `InvalidSignature`.
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<()> {
        Ok(self.0.verify(message, signature)?)
    }
}

#[pymethods]
impl Epoch {
    /// E = H(genesis, epoch).
    #[new]
    fn new(genesis: [u8; 32], epoch: u64) -> Self {
        Self(prf::Epoch::new(&genesis, epoch))
    }
}

#[pymethods]
impl Scope {
    /// scope = H(genesis, bundle, iteration).
    #[new]
    fn new(genesis: [u8; 32], bundle: u64, iteration: u64) -> Self {
        Self(prf::Scope::new(&genesis, bundle, iteration))
    }
}

#[pymethods]
impl CertifierSecret {
    /// The public key.
    fn public_key(&self) -> CertifierKey {
        CertifierKey(self.0.public_key())
    }

    /// Sign (d, mpk, dt).
    fn certify(&self, d: &DatasetDigest, mpk: &MasterPublicKey, dt: &DatasetType) -> Certificate {
        Certificate(self.0.certify(d.0, mpk.0, dt.0))
    }

    /// Show that this secret is known to whoever has an identity on a board.
    fn prove_possession(&self, genesis: [u8; 32], identity: [u8; 32]) -> Possession {
        Possession(self.0.prove_possession(genesis, identity))
    }
}

#[pymethods]
impl CertifierKey {
    /// Check a certificate over (d, mpk, dt); raise `InvalidSignature`.
    fn verify(
        &self,
        d: &DatasetDigest,
        mpk: &MasterPublicKey,
        dt: &DatasetType,
        certificate: &Certificate,
    ) -> Result<()> {
        Ok(self.0.verify(d.0, mpk.0, dt.0, &certificate.0)?)
    }

    /// Check that the holder of an identity on a board knows the secret; raise `InvalidSignature`.
    fn verify_possession(
        &self,
        genesis: [u8; 32],
        identity: [u8; 32],
        possession: &Possession,
    ) -> Result<()> {
        Ok(self.0.verify_possession(genesis, identity, &possession.0)?)
    }
}

/// Keys, commitments, tags and nullifiers.
#[pyo3::pymodule]
pub mod primitives {
    #[pymodule_export]
    use super::{
        Certificate, CertifierKey, CertifierSecret, Commitment, DatasetDigest, DatasetType, Epoch,
        IterationNullifier, MasterPublicKey, MasterSecret, MessageKey, MessageKeyHash,
        MessageSecret, Possession, RegistrationNullifier, Root, Salt, Scope, Tag, TypeBlinding,
        TypeCommitment,
    };
}
