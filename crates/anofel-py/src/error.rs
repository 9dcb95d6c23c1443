//! Rust errors as the exceptions of `anofel.errors`.

use anofel_circuits::Error as CircuitError;
use anofel_messages::Error as MessageError;
use anofel_primitives::Error as PrimitiveError;
use pyo3::prelude::*;

pyo3::import_exception!(anofel.errors, InvalidCeremony);
pyo3::import_exception!(anofel.errors, InvalidInput);
pyo3::import_exception!(anofel.errors, InvalidKeyFile);
pyo3::import_exception!(anofel.errors, InvalidProof);
pyo3::import_exception!(anofel.errors, InvalidSignature);
pyo3::import_exception!(anofel.errors, MalformedMessage);
pyo3::import_exception!(anofel.committee.errors, PreparationUsed);
pyo3::import_exception!(anofel.errors, OutOfRange);
pyo3::import_exception!(anofel.errors, UnsatisfiedStatement);

/// An error of any crate below the bridge.
pub enum Error {
    /// A value that cannot be used.
    Primitive(PrimitiveError),
    /// A key, witness or proof that cannot be used.
    Circuit(CircuitError),
    /// Bytes or values that are not a message.
    Message(MessageError),
}

/// What bridge functions return.
pub type Result<T> = std::result::Result<T, Error>;

impl From<PrimitiveError> for Error {
    fn from(error: PrimitiveError) -> Self {
        Self::Primitive(error)
    }
}

impl From<CircuitError> for Error {
    fn from(error: CircuitError) -> Self {
        Self::Circuit(error)
    }
}

impl From<MessageError> for Error {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Primitive(error @ PrimitiveError::Signature { .. }) => {
                InvalidSignature::new_err(error.to_string())
            }
            Error::Primitive(error) => InvalidInput::new_err(error.to_string()),
            Error::Message(error) => MalformedMessage::new_err(error.to_string()),
            Error::Circuit(error) => from_circuit(error),
        }
    }
}

fn from_circuit(error: CircuitError) -> PyErr {
    let message = error.to_string();
    match error {
        CircuitError::Unsatisfied { clause } => UnsatisfiedStatement::new_err((message, clause)),
        CircuitError::InvalidBatch { indices, .. } => InvalidProof::new_err((message, indices)),
        CircuitError::InvalidProof { .. } | CircuitError::MalformedProof { .. } => {
            InvalidProof::new_err(message)
        }
        _ => InvalidKeyFile::new_err(message),
    }
}
