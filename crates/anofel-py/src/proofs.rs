//! `anofel._core.proofs`: the three statements, their provers and verifiers.

use std::sync::Arc;

use anofel_circuits::export::{iden3, snarkjs};
use anofel_circuits::groth16::key::{ProvingKey, VerifyingKey};
use anofel_circuits::groth16::proof::Proof;
use anofel_circuits::groth16::prover::prove;
use anofel_circuits::groth16::verifier::Verifier;
use anofel_circuits::statements::{
    ownership, registration, run, submission, Statement, StatementKind,
};
use anofel_circuits::system::Mode;
use anofel_primitives::field;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::rngs::OsRng;
use rayon::ThreadPool;

use crate::error::{Error, InvalidInput, Result};
use crate::primitives::{
    Certificate, CertifierKey, Commitment, DatasetDigest, DatasetType, Epoch, IterationNullifier,
    MasterPublicKey, MasterSecret, MessageKeyHash, RegistrationNullifier, Root, Salt, Scope, Tag,
    TypeBlinding, TypeCommitment,
};
use crate::trees::{CertifierPath, ClientPath};

/// A pool of so many threads; without a number, one for each core.
fn pool(threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    if threads == Some(0) {
        return Err(InvalidInput::new_err("at least one thread is needed"));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map(Arc::new)
        .map_err(|error| InvalidInput::new_err(format!("no threads could be started: {error}")))
}

/// Proof, prover and verifier of one statement.
macro_rules! proof_classes {
    ($kind:expr, $inner:ty, $statement:ident, $witness:ident, $proof:ident, $prover:ident, $verifier:ident) => {
        /// A proof. Anyone can re-randomise it, so its bytes are no identity.
        #[pyclass(frozen, eq, module = "anofel._core.proofs")]
        #[derive(Clone, PartialEq)]
        pub struct $proof(pub(crate) Proof);

        #[pymethods]
        impl $proof {
            /// Read 128 canonical bytes; raise `InvalidProof` for anything else.
            #[staticmethod]
            fn from_bytes(data: &[u8]) -> Result<Self> {
                Ok(Self(Proof::from_bytes($kind, data)?))
            }

            /// The 128 bytes.
            fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &self.0.to_bytes())
            }

            /// The proof as snarkjs reads it.
            fn to_snarkjs(&self) -> String {
                snarkjs::proof(&self.0)
            }

            fn __repr__(&self) -> &'static str {
                concat!(stringify!($proof), "(128 bytes)")
            }
        }

        #[pymethods]
        impl $statement {
            /// The public inputs in their order, 32 bytes each.
            fn public_inputs<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
                let inputs = self.0.public_inputs();
                inputs.iter().map(|value| PyBytes::new(py, &field::to_bytes(value))).collect()
            }

            /// The public inputs as snarkjs reads them.
            fn to_snarkjs(&self) -> String {
                snarkjs::public_inputs(&self.0.public_inputs())
            }

            /// All values of the constraint system as an iden3 `.wtns` file. It holds every
            /// secret of the witness. Raise `UnsatisfiedStatement` if the statement does not hold.
            fn to_secret_wtns<'py>(
                &self,
                py: Python<'py>,
                witness: &$witness,
            ) -> Result<Bound<'py, PyBytes>> {
                let system = run::<<$inner as Statement>::Circuit>(
                    Mode::Solving,
                    &self.0.public_inputs(),
                    &witness.0,
                );
                if let Some(clause) = system.failed().first() {
                    return Err(anofel_circuits::Error::Unsatisfied { clause }.into());
                }
                Ok(PyBytes::new(py, &iden3::wtns(&system)))
            }

            fn __repr__(&self) -> String {
                format!("{:?}", self.0)
            }
        }

        #[pymethods]
        impl $witness {
            fn __repr__(&self) -> &'static str {
                concat!(stringify!($witness), "(<redacted>)")
            }
        }

        /// A proving key, loaded once, that proves many times.
        #[pyclass(frozen, module = "anofel._core.proofs")]
        pub struct $prover {
            key: ProvingKey,
            pool: Arc<ThreadPool>,
        }

        #[pymethods]
        impl $prover {
            /// Read a key file whose id (SHA-256) is pinned. Without the tables that were made of
            /// it before, every point is checked and the tables are made, which takes seconds.
            #[staticmethod]
            #[pyo3(signature = (data, key_id, *, tables = None, threads = None))]
            fn from_bytes(
                py: Python<'_>,
                data: &[u8],
                key_id: [u8; 32],
                tables: Option<&[u8]>,
                threads: Option<usize>,
            ) -> PyResult<Self> {
                let pool = pool(threads)?;
                let key = py.detach(|| {
                    pool.install(|| match tables {
                        Some(tables) => ProvingKey::from_tables($kind, tables, data, &key_id),
                        None => ProvingKey::from_bytes($kind, data, &key_id),
                    })
                });
                Ok(Self { key: key.map_err(Error::from)?, pool })
            }

            /// The tables, for the next start.
            fn to_tables<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &py.detach(|| self.key.to_tables()))
            }

            /// The id of the verification key inside: the SHA-256 of its file.
            #[getter]
            fn verification_key_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &self.key.verifying_key().id())
            }

            /// How the key was made.
            #[getter]
            fn origin(&self) -> &'static str {
                self.key.verifying_key().origin().describe()
            }

            /// Prove. Raise `UnsatisfiedStatement`, with the clause, if it does not hold.
            fn prove(
                &self,
                py: Python<'_>,
                statement: &$statement,
                witness: &$witness,
            ) -> Result<$proof> {
                let proof = py.detach(|| {
                    self.pool.install(|| prove(&self.key, &statement.0, &witness.0, &mut OsRng))
                });
                Ok($proof(proof?))
            }

            fn __repr__(&self) -> String {
                format!("{}({})", stringify!($prover), self.origin())
            }
        }

        /// A verification key, ready to check proofs.
        #[pyclass(frozen, module = "anofel._core.proofs")]
        pub struct $verifier {
            verifier: Verifier,
            pool: Arc<ThreadPool>,
        }

        #[pymethods]
        impl $verifier {
            /// Read a key file and check everything about it.
            #[staticmethod]
            #[pyo3(signature = (data, *, threads = None))]
            fn from_bytes(py: Python<'_>, data: &[u8], threads: Option<usize>) -> PyResult<Self> {
                let pool = pool(threads)?;
                let key =
                    py.detach(|| VerifyingKey::from_bytes($kind, data)).map_err(Error::from)?;
                Ok(Self { verifier: Verifier::new(key), pool })
            }

            /// How the key was made.
            #[getter]
            fn origin(&self) -> &'static str {
                self.verifier.key().origin().describe()
            }

            /// The id of the key: the SHA-256 of its file.
            #[getter]
            fn key_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &self.verifier.key().id())
            }

            /// The verification key as snarkjs reads it.
            fn to_snarkjs(&self) -> String {
                snarkjs::verification_key(self.verifier.key())
            }

            /// Check one proof; raise `InvalidProof`.
            fn verify(&self, py: Python<'_>, statement: &$statement, proof: &$proof) -> Result<()> {
                let inputs = statement.0.public_inputs();
                let verdict =
                    py.detach(|| self.pool.install(|| self.verifier.verify(&inputs, &proof.0)));
                Ok(verdict?)
            }

            /// Check many proofs at once; raise `InvalidProof` with the indices of the bad ones.
            fn verify_batch(
                &self,
                py: Python<'_>,
                batch: Vec<(PyRef<'_, $statement>, PyRef<'_, $proof>)>,
            ) -> Result<()> {
                let batch: Vec<_> = batch
                    .iter()
                    .map(|(statement, proof)| (statement.0.public_inputs(), proof.0.clone()))
                    .collect();
                let verdict = py.detach(|| {
                    self.pool.install(|| self.verifier.verify_batch(&batch, &mut OsRng))
                });
                Ok(verdict?)
            }

            fn __repr__(&self) -> String {
                format!("{}({})", stringify!($verifier), self.origin())
            }
        }
    };
}

/// To a certifier: this master public key is mine.
#[pyclass(frozen, eq, module = "anofel._core.proofs")]
#[derive(PartialEq)]
pub struct OwnershipStatement(ownership::OwnershipStatement);

/// What the client keeps.
#[pyclass(frozen, module = "anofel._core.proofs")]
pub struct OwnershipWitness(ownership::OwnershipWitness);

#[pymethods]
impl OwnershipStatement {
    /// For a certifier's key, its 32-byte nonce and the digest that it will certify.
    #[new]
    #[pyo3(signature = (*, mpk, certifier, nonce, d))]
    fn new(
        mpk: &MasterPublicKey,
        certifier: &CertifierKey,
        nonce: [u8; 32],
        d: &DatasetDigest,
    ) -> Self {
        Self(ownership::OwnershipStatement::new(mpk.0, &certifier.0, &nonce, d.0))
    }
}

#[pymethods]
impl OwnershipWitness {
    /// The witness of a client.
    #[new]
    #[pyo3(signature = (*, msk))]
    fn new(msk: &MasterSecret) -> Self {
        Self(ownership::OwnershipWitness::new(&msk.0))
    }
}

/// To the board: my dataset is certified, and I register it once.
#[pyclass(frozen, eq, module = "anofel._core.proofs")]
#[derive(PartialEq)]
pub struct RegistrationStatement(registration::RegistrationStatement);

/// What the client keeps.
#[pyclass(frozen, module = "anofel._core.proofs")]
pub struct RegistrationWitness(registration::RegistrationWitness);

#[pymethods]
impl RegistrationStatement {
    /// The public inputs of a registration.
    #[new]
    #[pyo3(signature = (*, certifier_root, commitment, nullifier, epoch, tag, a))]
    fn new(
        certifier_root: &Root,
        commitment: &Commitment,
        nullifier: &RegistrationNullifier,
        epoch: &Epoch,
        tag: &Tag,
        a: &MessageKeyHash,
    ) -> Self {
        Self(registration::RegistrationStatement {
            certifier_root: certifier_root.0,
            commitment: commitment.0,
            nullifier: nullifier.0,
            epoch: epoch.0,
            tag: tag.0,
            a: a.0,
        })
    }
}

#[pymethods]
impl RegistrationWitness {
    /// The witness of a client with a certificate.
    #[new]
    #[pyo3(signature = (*, d, dt, salt, msk, certifier, certificate, path))]
    fn new(
        d: &DatasetDigest,
        dt: &DatasetType,
        salt: &Salt,
        msk: &MasterSecret,
        certifier: &CertifierKey,
        certificate: &Certificate,
        path: &CertifierPath,
    ) -> Self {
        Self(registration::RegistrationWitness::new(
            d.0,
            dt.0,
            &salt.0,
            &msk.0,
            &certifier.0,
            &certificate.0,
            path.0.clone(),
        ))
    }
}

/// To the board: I am registered and have not posted in this iteration.
#[pyclass(frozen, eq, module = "anofel._core.proofs")]
#[derive(PartialEq)]
pub struct SubmissionStatement(submission::SubmissionStatement);

/// What the client keeps.
#[pyclass(frozen, module = "anofel._core.proofs")]
pub struct SubmissionWitness(submission::SubmissionWitness);

#[pymethods]
impl SubmissionStatement {
    /// The public inputs of a submission.
    #[new]
    #[pyo3(signature = (*, client_root, nullifier, tag, a, scope, type_commitment))]
    fn new(
        client_root: &Root,
        nullifier: &IterationNullifier,
        tag: &Tag,
        a: &MessageKeyHash,
        scope: &Scope,
        type_commitment: &TypeCommitment,
    ) -> Self {
        Self(submission::SubmissionStatement {
            client_root: client_root.0,
            nullifier: nullifier.0,
            tag: tag.0,
            a: a.0,
            scope: scope.0,
            type_commitment: type_commitment.0,
        })
    }
}

#[pymethods]
impl SubmissionWitness {
    /// The witness of a registered client.
    #[new]
    #[pyo3(signature = (*, d, dt, salt, msk, path, rho))]
    fn new(
        d: &DatasetDigest,
        dt: &DatasetType,
        salt: &Salt,
        msk: &MasterSecret,
        path: &ClientPath,
        rho: &TypeBlinding,
    ) -> Self {
        Self(submission::SubmissionWitness::new(d.0, dt.0, &salt.0, &msk.0, path.0.clone(), &rho.0))
    }
}

proof_classes!(
    StatementKind::Ownership,
    ownership::OwnershipStatement,
    OwnershipStatement,
    OwnershipWitness,
    OwnershipProof,
    OwnershipProver,
    OwnershipVerifier
);
proof_classes!(
    StatementKind::Registration,
    registration::RegistrationStatement,
    RegistrationStatement,
    RegistrationWitness,
    RegistrationProof,
    RegistrationProver,
    RegistrationVerifier
);
proof_classes!(
    StatementKind::Submission,
    submission::SubmissionStatement,
    SubmissionStatement,
    SubmissionWitness,
    SubmissionProof,
    SubmissionProver,
    SubmissionVerifier
);

/// The three statements, their provers and verifiers.
#[pyo3::pymodule]
pub mod proofs {
    #[pymodule_export]
    use super::{
        OwnershipProof, OwnershipProver, OwnershipStatement, OwnershipVerifier, OwnershipWitness,
        RegistrationProof, RegistrationProver, RegistrationStatement, RegistrationVerifier,
        RegistrationWitness, SubmissionProof, SubmissionProver, SubmissionStatement,
        SubmissionVerifier, SubmissionWitness,
    };
}
