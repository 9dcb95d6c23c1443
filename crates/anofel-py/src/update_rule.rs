//! `anofel._core.update_rule`: the exact rule that turns a sum into the next model.

/// The exact rule that turns a sum of updates into the next model.
#[pyo3::pymodule]
pub mod update_rule {
    use crate::error::{InvalidInput, OutOfRange};
    use anofel_dp::update_rule::{fine_mean, is_too_long, Adaptive, IntegerAdaptive, IntegerMean};
    use anofel_dp::UpdateError;
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    fn to_error(error: UpdateError) -> PyErr {
        match error {
            UpdateError::Overflow { .. } | UpdateError::NormOverflow => {
                OutOfRange::new_err(error.to_string())
            }
            other => InvalidInput::new_err(other.to_string()),
        }
    }

    fn decode(bytes: &[u8]) -> PyResult<Vec<i64>> {
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(InvalidInput::new_err(
                "a vector must be a whole number of 64-bit integers",
            ));
        }
        Ok(words.iter().map(|word| i64::from_le_bytes(*word)).collect())
    }

    fn encode<'py>(py: Python<'py>, values: &[i64]) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, values.len() * 8, |buffer| {
            for (slot, value) in buffer.chunks_exact_mut(8).zip(values) {
                slot.copy_from_slice(&value.to_le_bytes());
            }
            Ok(())
        })
    }

    /// The next model and the next velocity, as little-endian 64-bit vectors.
    #[pyclass(frozen, get_all)]
    struct NextModel {
        values: Py<PyBytes>,
        velocity: Py<PyBytes>,
    }

    /// Apply `integer-mean` to little-endian 64-bit vectors.
    #[pyfunction]
    #[pyo3(signature = (model, velocity, total, *, momentum, lr_num, lr_den, count, max_mean=None))]
    #[allow(clippy::too_many_arguments, reason = "they are the letters of one formula, by name")]
    fn integer_mean(
        py: Python<'_>,
        model: &[u8],
        velocity: &[u8],
        total: &[u8],
        momentum: u32,
        lr_num: u64,
        lr_den: u64,
        count: u64,
        max_mean: Option<u64>,
    ) -> PyResult<NextModel> {
        let rule = IntegerMean::new(momentum, lr_num, lr_den, count, max_mean).map_err(to_error)?;
        let (mut model, mut velocity, total) = (decode(model)?, decode(velocity)?, decode(total)?);
        py.detach(|| rule.apply(&mut model, &mut velocity, &total)).map_err(to_error)?;
        Ok(NextModel {
            values: encode(py, &model)?.unbind(),
            velocity: encode(py, &velocity)?.unbind(),
        })
    }

    /// The next model and its next two moments, as little-endian 64-bit vectors.
    #[pyclass(frozen, get_all)]
    struct NextAdaptive {
        values: Py<PyBytes>,
        first: Py<PyBytes>,
        second: Py<PyBytes>,
    }

    /// Apply `integer-adam` or `integer-yogi` to little-endian 64-bit vectors.
    #[pyfunction]
    #[pyo3(signature = (model, first, second, total, *, yogi, momentum, second_momentum, floor, scale_bits,
        lr_num, lr_den, count, max_mean=None))]
    #[allow(clippy::too_many_arguments, reason = "they are the letters of one formula, by name")]
    fn integer_adaptive(
        py: Python<'_>,
        model: &[u8],
        first: &[u8],
        second: &[u8],
        total: &[u8],
        yogi: bool,
        momentum: u32,
        second_momentum: u32,
        floor: u64,
        scale_bits: u32,
        lr_num: u64,
        lr_den: u64,
        count: u64,
        max_mean: Option<u64>,
    ) -> PyResult<NextAdaptive> {
        let kind = if yogi { Adaptive::Yogi } else { Adaptive::Adam };
        let rule = IntegerMean::new(momentum, lr_num, lr_den, count, max_mean)
            .and_then(|mean| {
                IntegerAdaptive::new(kind, mean, count, second_momentum, floor, scale_bits)
            })
            .map_err(to_error)?;
        let (mut model, mut first) = (decode(model)?, decode(first)?);
        let (mut second, total) = (decode(second)?, decode(total)?);
        py.detach(|| rule.apply(&mut model, &mut first, &mut second, &total)).map_err(to_error)?;
        Ok(NextAdaptive {
            values: encode(py, &model)?.unbind(),
            first: encode(py, &first)?.unbind(),
            second: encode(py, &second)?.unbind(),
        })
    }

    /// round(2^16·numerator·S / divisor) for each entry, within ±2^57.
    #[pyfunction]
    #[pyo3(name = "fine_mean", signature = (total, *, numerator, divisor))]
    fn fine_mean_of<'py>(
        py: Python<'py>,
        total: &[u8],
        numerator: u64,
        divisor: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let total = decode(total)?;
        let made = py.detach(|| fine_mean(&total, numerator, divisor)).map_err(to_error)?;
        encode(py, &made)
    }

    /// Whether the mean of `count` updates is longer than `max_mean`, so that the rule shortens it.
    #[pyfunction]
    #[pyo3(signature = (total, *, count, max_mean))]
    fn mean_is_too_long(total: &[u8], count: u64, max_mean: u64) -> PyResult<bool> {
        is_too_long(&decode(total)?, count, max_mean).map_err(to_error)
    }
}
