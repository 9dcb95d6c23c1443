//! `anofel._core.ceremony`: powers of tau, first keys, contributions and their verification.

use std::sync::Arc;

use anofel_circuits::ceremony::contribution::Parameters;
use anofel_circuits::ceremony::first::Circuit;
use anofel_circuits::ceremony::phase1::Accumulator;
use anofel_circuits::ceremony::verify::{
    check_chain, check_end, check_together, statement_beacon, BEACON_EXPONENT,
};
use anofel_circuits::ceremony::zkey::Zkey;
use anofel_circuits::ceremony::{convert, powers, transcript, Error};
use anofel_circuits::statements::StatementKind;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{InvalidCeremony, InvalidInput};
use crate::keys::kind;

fn refused(error: Error) -> PyErr {
    InvalidCeremony::new_err(error.to_string())
}

/// The bytes of a file, made without the interpreter.
fn file<'py>(
    py: Python<'py>,
    make: impl FnOnce() -> Result<Vec<u8>, Error> + Send,
) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &py.detach(make).map_err(refused)?))
}

/// What somebody contributed: the next file of a ceremony.
#[pyclass(frozen, get_all, module = "anofel._core.ceremony")]
pub struct Contributed {
    /// The new file.
    data: Py<PyBytes>,
    /// Whether the secret was kept out of the swap file.
    was_locked: bool,
}

impl Contributed {
    /// Contribute without the interpreter; `make` gives the new file, and whether memory was locked.
    fn make(
        py: Python<'_>,
        make: impl FnOnce() -> Result<(Vec<u8>, bool), Error> + Send,
    ) -> PyResult<Self> {
        let (data, was_locked) = py.detach(make).map_err(refused)?;
        Ok(Self { data: PyBytes::new(py, &data).unbind(), was_locked })
    }
}

fn sized<const N: usize>(name: &str, bytes: &[u8]) -> PyResult<[u8; N]> {
    bytes.try_into().map_err(|_| InvalidInput::new_err(format!("{name} has {N} bytes")))
}

/// Powers of tau whose points and structure were checked.
#[pyclass(frozen, module = "anofel._core.ceremony")]
pub struct Powers {
    powers: powers::Powers,
    digest: [u8; 64],
}

#[pymethods]
impl Powers {
    /// Read a `.ptau` file; raise `InvalidCeremony` if it is not one or its points are no powers.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let read =
            || Ok(Self { powers: powers::Powers::read(data)?, digest: powers::digest(data) });
        py.detach(read).map_err(refused)
    }

    /// The BLAKE2b-512 of the file.
    #[getter]
    fn digest(&self) -> [u8; 64] {
        self.digest
    }

    /// For circuits of at most 2^power rows.
    #[getter]
    fn power(&self) -> u32 {
        self.powers.power
    }
}

/// Make the first key of a statement, a `.zkey` file, from the powers and their file.
#[pyfunction]
fn first_key<'py>(
    py: Python<'py>,
    statement: &str,
    powers: &Powers,
    data: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let kind = kind(statement)?;
    file(py, || {
        let circuit = Circuit::new(kind);
        let lagrange = powers.powers.lagrange(data, circuit.power())?;
        Ok(circuit.first_key(&powers.powers, &lagrange)?.to_bytes())
    })
}

/// The first key of a statement, which follows from powers of tau.
#[pyclass(frozen, module = "anofel._core.ceremony")]
pub struct FirstKey {
    circuit: Arc<Circuit>,
    key: Zkey,
}

#[pymethods]
impl FirstKey {
    /// Read a `.zkey` file and check that it follows from the powers and the statement.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, statement: &str, powers: &Powers, data: &[u8]) -> PyResult<Self> {
        let kind = kind(statement)?;
        let read = || {
            let (circuit, key) = (Circuit::new(kind), Zkey::read(data)?);
            circuit.check_first(&key, &powers.powers)?;
            Ok(Self { circuit: Arc::new(circuit), key })
        };
        py.detach(read).map_err(refused)
    }

    /// Read a later state of the key and check that contributions lead to it.
    fn verify(&self, py: Python<'_>, data: &[u8]) -> PyResult<CeremonyKey> {
        let read = || {
            let key = Zkey::read(data)?;
            self.circuit.expect(&key)?;
            check_chain(&self.key, &key)?;
            Ok(CeremonyKey { circuit: Arc::clone(&self.circuit), key })
        };
        py.detach(read).map_err(refused)
    }
}

/// What is public about a contribution.
#[pyclass(frozen, get_all, module = "anofel._core.ceremony")]
pub struct CeremonyContribution {
    /// The hash by which people know it.
    hash: [u8; 64],
    /// Whether it is the beacon.
    is_beacon: bool,
    /// What its author calls itself; nothing vouches for it.
    name: String,
}

impl CeremonyContribution {
    fn new(hash: [u8; 64], is_beacon: bool, parameters: Option<Parameters>) -> Self {
        let name = parameters.and_then(|found| found.name).unwrap_or_default();
        Self { hash, is_beacon, name }
    }
}

/// A key on its way through a ceremony, whose chain of contributions was checked.
#[pyclass(frozen, module = "anofel._core.ceremony")]
pub struct CeremonyKey {
    circuit: Arc<Circuit>,
    key: Zkey,
}

impl CeremonyKey {
    fn kind(&self) -> StatementKind {
        self.circuit.kind()
    }
}

#[pymethods]
impl CeremonyKey {
    /// The name of the statement.
    #[getter]
    fn statement(&self) -> &'static str {
        self.kind().name()
    }

    /// The contributions in their order.
    #[getter]
    fn contributions(&self) -> Vec<CeremonyContribution> {
        let one = |c: &anofel_circuits::ceremony::contribution::Contribution| {
            let parameters = Parameters::read(&c.parameters);
            CeremonyContribution::new(c.hash(), c.is_beacon() == Some(true), parameters)
        };
        self.key.contributions.iter().map(one).collect()
    }

    /// Contribute with a fresh secret.
    fn contribute(&self, py: Python<'_>, name: &str) -> PyResult<Contributed> {
        Contributed::make(py, || {
            let mut key = self.key.clone();
            let locked = key.contribute(name)?;
            Ok((key.to_bytes(), locked))
        })
    }

    /// End the ceremony with the announced beacon, derived for this statement: the new file.
    fn add_beacon<'py>(&self, py: Python<'py>, announced: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        file(py, || {
            let mut key = self.key.clone();
            let beacon = statement_beacon(self.kind(), announced);
            key.add_beacon(&beacon, BEACON_EXPONENT, "beacon")?;
            Ok(key.to_bytes())
        })
    }

    /// Check that the ceremony has ended: two people and the announced beacon.
    fn check_end(&self, announced: &[u8]) -> PyResult<()> {
        check_end(self.kind(), &self.key, announced).map_err(refused)
    }

    /// The verification key file for a transcript.
    fn verification_key<'py>(
        &self,
        py: Python<'py>,
        transcript: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let transcript = sized("a transcript digest", transcript)?;
        file(py, || Ok(convert::verifying_key(&self.circuit, &self.key, transcript).to_bytes()))
    }

    /// The proving key file for a transcript.
    fn proving_key<'py>(
        &self,
        py: Python<'py>,
        transcript: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let transcript = sized("a transcript digest", transcript)?;
        file(py, || Ok(convert::proving_key(&self.circuit, &self.key, transcript).to_bytes()))
    }
}

/// Check that the keys of one ceremony are not tied to each other.
#[pyfunction]
fn verify_together(py: Python<'_>, keys: Vec<PyRef<'_, CeremonyKey>>) -> PyResult<()> {
    let keys: Vec<_> = keys.iter().map(|key| (key.kind(), &key.key)).collect();
    py.detach(|| check_together(&keys)).map_err(refused)
}

/// The digest of a whole ceremony: the digest of its powers, and its keys in order.
#[pyfunction]
fn transcript_digest(powers: &[u8], keys: Vec<PyRef<'_, CeremonyKey>>) -> PyResult<[u8; 32]> {
    let powers = sized("a digest of powers of tau", powers)?;
    let keys: Vec<_> = keys.iter().map(|key| (key.kind(), &key.key)).collect();
    Ok(transcript::digest(&powers, &keys))
}

/// Powers of tau of our own, on their way through a ceremony.
#[pyclass(frozen, module = "anofel._core.ceremony")]
pub struct OwnPowers {
    state: Accumulator,
}

#[pymethods]
impl OwnPowers {
    /// The file of the state before anybody contributed.
    #[staticmethod]
    fn start(py: Python<'_>, power: u32) -> PyResult<Bound<'_, PyBytes>> {
        file(py, || Ok(Accumulator::new(power)?.to_bytes()))
    }

    /// Read a state and check all of it.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        py.detach(|| Ok(Self { state: Accumulator::read(data)? })).map_err(refused)
    }

    /// For circuits of at most 2^power rows.
    #[getter]
    fn power(&self) -> u32 {
        self.state.power()
    }

    /// The contributions in their order.
    #[getter]
    fn contributions(&self) -> Vec<CeremonyContribution> {
        let one = |found: anofel_circuits::ceremony::phase1::Summary| {
            CeremonyContribution::new(found.hash, found.is_beacon, Some(found.parameters))
        };
        self.state.summaries().into_iter().map(one).collect()
    }

    /// Contribute with fresh secrets.
    fn contribute(&self, py: Python<'_>, name: &str) -> PyResult<Contributed> {
        Contributed::make(py, || {
            let mut state = self.state.clone();
            let locked = state.contribute(name)?;
            Ok((state.to_bytes(), locked))
        })
    }

    /// End the ceremony with the announced beacon: the new file.
    fn add_beacon<'py>(&self, py: Python<'py>, announced: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        file(py, || {
            let mut state = self.state.clone();
            state.add_beacon(announced, "beacon")?;
            Ok(state.to_bytes())
        })
    }

    /// Check that the ceremony has ended: two people and the announced beacon.
    fn check_end(&self, announced: &[u8]) -> PyResult<()> {
        self.state.check_end(announced).map_err(refused)
    }
}

/// Powers of tau, first keys, contributions and their verification.
#[pyo3::pymodule]
pub mod ceremony {
    #[pymodule_export]
    use super::{
        first_key, transcript_digest, verify_together, CeremonyContribution, CeremonyKey,
        Contributed, FirstKey, OwnPowers, Powers,
    };
}
