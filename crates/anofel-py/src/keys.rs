//! `anofel._core.keys`: making and inspecting key files.

use anofel_circuits::export::{iden3, snarkjs};
use anofel_circuits::groth16::key::{id_of, Description};
use anofel_circuits::groth16::setup;
use anofel_circuits::shape::Shape;
use anofel_circuits::statements::StatementKind;
use anofel_primitives::field::{self, FIELD_BYTES};
use anofel_primitives::Fr;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::rngs::OsRng;

use crate::error::{InvalidInput, Result};

/// What a key file says about itself.
#[pyclass(frozen, get_all, module = "anofel._core.keys")]
pub struct KeyDescription {
    /// "proving", "verification" or "tables".
    role: &'static str,
    /// The name of the statement.
    statement: &'static str,
    /// How the key was made, as the file says.
    origin: &'static str,
    /// The digest of the ceremony's transcript; zeros for a development set-up.
    transcript: [u8; 32],
    /// The SHA-256 of the constraint matrices it was made for.
    shape: [u8; 32],
    /// The SHA-256 of the file.
    key_id: [u8; 32],
}

/// Read the header of a key file; raise `InvalidKeyFile` if it is none.
#[pyfunction]
fn describe(data: &[u8]) -> Result<KeyDescription> {
    let found = Description::read(data)?;
    Ok(KeyDescription {
        role: found.role,
        statement: found.kind.name(),
        origin: found.origin.describe(),
        transcript: found.origin.transcript(),
        shape: found.shape,
        key_id: id_of(data),
    })
}

/// The files of one key.
#[pyclass(frozen, get_all, module = "anofel._core.keys")]
pub struct KeyFiles {
    /// The proving key file.
    proving: Py<PyBytes>,
    /// The verification key file.
    verification: Py<PyBytes>,
    /// The tables of the proving key.
    tables: Py<PyBytes>,
}

/// Make an insecure development key.
#[pyfunction]
fn insecure_development_key(py: Python<'_>, statement: &str) -> PyResult<KeyFiles> {
    let kind = kind(statement)?;
    let files = py.detach(|| {
        let key = setup::insecure_development_key(kind, &mut OsRng);
        [key.to_bytes(), key.verifying_key().to_bytes(), key.to_tables()]
    });
    let [proving, verification, tables] = files.map(|bytes| PyBytes::new(py, &bytes).unbind());
    Ok(KeyFiles { proving, verification, tables })
}

/// The counts of a statement's constraint system.
#[pyclass(frozen, get_all, module = "anofel._core.keys")]
pub struct StatementShape {
    /// Constraints.
    constraints: usize,
    /// Variables, the constant one and the public inputs included.
    variables: usize,
    /// The names of the public inputs in their order.
    public_inputs: Vec<&'static str>,
    /// The SHA-256 of the constraint matrices.
    digest: [u8; 32],
}

/// Lay down a statement's constraints and count them.
#[pyfunction]
fn shape(py: Python<'_>, statement: &str) -> PyResult<StatementShape> {
    let kind = kind(statement)?;
    let found = py.detach(|| Shape::of_system(&kind.record()));
    Ok(StatementShape {
        constraints: found.constraints,
        variables: found.variables,
        public_inputs: kind.public_inputs().to_vec(),
        digest: found.digest,
    })
}

/// A statement's constraint system as an iden3 `.r1cs` file.
#[pyfunction]
fn r1cs<'py>(py: Python<'py>, statement: &str) -> PyResult<Bound<'py, PyBytes>> {
    let kind = kind(statement)?;
    Ok(PyBytes::new(py, &py.detach(|| iden3::r1cs(&kind.record()))))
}

/// Public inputs, 32 canonical bytes each, as snarkjs reads them.
#[pyfunction]
fn public_inputs_to_snarkjs(data: &[u8]) -> Result<String> {
    let inputs: std::result::Result<Vec<Fr>, _> =
        data.chunks(FIELD_BYTES).map(|bytes| field::from_bytes("a public input", bytes)).collect();
    Ok(snarkjs::public_inputs(&inputs?))
}

pub(crate) fn kind(statement: &str) -> PyResult<StatementKind> {
    StatementKind::ALL
        .into_iter()
        .find(|kind| kind.name() == statement)
        .ok_or_else(|| InvalidInput::new_err(format!("there is no statement named {statement:?}")))
}

/// Making and inspecting key files.
#[pyo3::pymodule]
pub mod keys {
    #[pymodule_export]
    use super::{
        describe, insecure_development_key, public_inputs_to_snarkjs, r1cs, shape, KeyDescription,
        KeyFiles, StatementShape,
    };
}
