//! `anofel._core.noise`: integer noise from a CSPRNG.

/// Integer noise from a CSPRNG; every vector is little-endian 64-bit integers as bytes.
#[pyo3::pymodule]
pub mod noise {
    use crate::error::InvalidInput;
    use anofel_dp::{vector, NoiseError};
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    fn to_bytes<'py>(
        py: Python<'py>,
        values: Result<Vec<i64>, NoiseError>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let values = values.map_err(|error| InvalidInput::new_err(error.to_string()))?;
        PyBytes::new_with(py, values.len() * 8, |buffer| {
            for (slot, value) in buffer.chunks_exact_mut(8).zip(values) {
                slot.copy_from_slice(&value.to_le_bytes());
            }
            Ok(())
        })
    }

    /// `count` exact samples of the discrete Gaussian of standard deviation parameter `sigma`.
    #[pyfunction]
    fn discrete_gaussian(py: Python<'_>, sigma: u64, count: usize) -> PyResult<Bound<'_, PyBytes>> {
        let values = py.detach(|| vector::discrete_gaussian(sigma, count));
        to_bytes(py, values)
    }

    /// `count` Skellam samples of variance at least `sigma` squared.
    #[pyfunction]
    fn skellam(py: Python<'_>, sigma: u64, count: usize) -> PyResult<Bound<'_, PyBytes>> {
        let values = py.detach(|| vector::skellam(sigma, count));
        to_bytes(py, values)
    }
}
