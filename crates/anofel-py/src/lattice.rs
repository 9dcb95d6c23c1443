//! `anofel._core.lattice`: contributions to a sum under the `lattice` scheme, and its opening.
//!
//! Bytes in, bytes out; a vector is one buffer of int64. Calls that take longer than a few
//! tens of microseconds release the interpreter.

/// Contributions to a sum under the `lattice` scheme, and its opening.
#[pyo3::pymodule]
pub mod lattice {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use anofel_committee::{lattice as scheme, Error, Zeroizing};
    use pyo3::buffer::PyBuffer;
    use pyo3::exceptions::PyBaseException;
    use pyo3::prelude::*;
    use pyo3::pybacked::PyBackedBytes;
    use pyo3::types::PyBytes;
    use rand::rngs::OsRng;

    use crate::committee::committee::{Keys, Secrets};
    use crate::committee::{digest, refusal, refusals, refuse};
    use crate::count::count::CastBit;
    use crate::error::PreparationUsed;

    /// The norm of a proven contribution, the number of liars, and the ranges of single coordinates
    /// (coordinate, low, high).
    type Promised = (u64, u32, Vec<(usize, i64, i64)>);

    /// The widths of one task's vectors.
    #[pyclass(frozen)]
    struct Codec {
        codec: scheme::Codec,
        max_posts: u32,
    }

    #[pymethods]
    impl Codec {
        /// `proven` is there if contributions are proven.
        #[new]
        fn new(
            length: usize,
            bound: u64,
            max_posts: u32,
            proven: Option<Promised>,
        ) -> PyResult<Self> {
            let proven = proven.map(|(norm, max_liars, ranges)| scheme::Proven {
                norm,
                max_liars,
                ranges: ranges
                    .into_iter()
                    .map(|(coordinate, low, high)| scheme::Range { coordinate, low, high })
                    .collect(),
            });
            let codec = scheme::Codec::new(length, bound, max_posts, proven).map_err(refuse)?;
            Ok(Self { codec, max_posts })
        }

        #[getter]
        fn wire_bits(&self) -> u32 {
            self.codec.wire_bits()
        }

        #[getter]
        fn payload_bytes(&self) -> usize {
            self.codec.payload_bytes()
        }
    }

    /// Everything that a post is bound to.
    #[pyclass(frozen)]
    struct Post(scheme::Post);

    #[pymethods]
    impl Post {
        #[new]
        #[pyo3(signature = (*, genesis, task, iteration, key_id, position, scope, nullifier, tag, pk_sig))]
        #[allow(clippy::too_many_arguments, reason = "the fields of the statement, by name")]
        fn new(
            genesis: &[u8],
            task: &[u8],
            iteration: u64,
            key_id: &[u8],
            position: u16,
            scope: &[u8],
            nullifier: &[u8],
            tag: &[u8],
            pk_sig: &[u8],
        ) -> PyResult<Self> {
            Ok(Self(scheme::Post {
                genesis: digest("genesis", genesis)?,
                task: digest("the task", task)?,
                iteration,
                key_id: digest("the committee key", key_id)?,
                position,
                scope: digest("the scope", scope)?,
                nullifier: digest("the nullifier", nullifier)?,
                tag: digest("the tag", tag)?,
                pk_sig: digest("pk_sig", pk_sig)?,
            }))
        }
    }

    /// One iteration under a committee's key: what the public polynomials depend on.
    #[pyclass(frozen)]
    struct MaskContext {
        public_seed: [u8; 32],
    }

    #[pymethods]
    impl MaskContext {
        #[new]
        #[pyo3(signature = (*, genesis, task, iteration, key_id))]
        fn new(genesis: &[u8], task: &[u8], iteration: u64, key_id: &[u8]) -> PyResult<Self> {
            let genesis = digest("genesis", genesis)?;
            let task = digest("the task", task)?;
            let key_id = digest("the committee key", key_id)?;
            Ok(Self { public_seed: scheme::public_seed(&genesis, &task, iteration, &key_id) })
        }
    }

    /// All of a contribution that does not depend on the update (kept; used once).
    #[pyclass(frozen)]
    struct PreparedMask {
        envelope: [u8; scheme::ENVELOPE_BYTES],
        codec: scheme::Codec,
        prepared: Mutex<Option<scheme::Prepared>>,
    }

    #[pymethods]
    impl PreparedMask {
        /// `bit` is the ballot's for this committee; contributions that are proven need it.
        #[new]
        fn new(
            py: Python<'_>,
            codec: &Codec,
            post: &Post,
            keys: &Keys,
            bit: Option<&CastBit>,
        ) -> PyResult<Self> {
            let bit = bit.map(|bit| bit.0.clone());
            let prepared = py
                .detach(|| {
                    let keys = keys.0.public();
                    scheme::Prepared::new(codec.codec.clone(), &post.0, keys, bit, &mut OsRng)
                })
                .map_err(refuse)?;
            Ok(Self {
                envelope: *prepared.envelope(),
                codec: codec.codec.clone(),
                prepared: Mutex::new(Some(prepared)),
            })
        }

        #[getter]
        fn envelope<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, &self.envelope)
        }

        /// Seals a vector and consumes the preparation. Raises `PreparationUsed`.
        fn seal<'py>(
            &self,
            py: Python<'py>,
            values: PyBuffer<i64>,
        ) -> PyResult<Bound<'py, PyBytes>> {
            let values = Zeroizing::new(values.to_vec(py)?);
            self.codec.check(&values).map_err(refuse)?;
            let taken =
                self.prepared.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            let prepared = taken.ok_or_else(|| {
                PreparationUsed::new_err(
                    "This preparation has been used; a retry resends the stored bytes.",
                )
            })?;
            let payload = py.detach(|| prepared.seal(&values, &mut OsRng)).map_err(refuse)?;
            Ok(PyBytes::new(py, &payload))
        }

        fn __repr__(&self) -> &'static str {
            "PreparedMask(<redacted>)"
        }
    }

    /// Checks an envelope.
    #[pyfunction]
    fn verify_envelope(py: Python<'_>, post: &Post, envelope: &[u8]) -> PyResult<()> {
        py.detach(|| scheme::verify_envelope(&post.0, envelope)).map(drop).map_err(refuse)
    }

    /// Checks many envelopes at once: the refusal of every bad one, by its place.
    #[pyfunction]
    fn refused_envelopes(
        py: Python<'_>,
        envelopes: Vec<(PyRef<'_, Post>, PyBackedBytes)>,
    ) -> BTreeMap<usize, Py<PyBaseException>> {
        let borrowed: Vec<(&scheme::Post, &[u8])> =
            envelopes.iter().map(|(post, envelope)| (&post.0, envelope.as_ref())).collect();
        refusals(py, py.detach(|| scheme::refused_envelopes(&borrowed, &mut OsRng)))
    }

    /// A parsed payload whose proof holds; only `check_payloads` makes one.
    #[pyclass(frozen)]
    struct Checked(scheme::Checked);

    /// A payload with its post, its envelope and its encrypted bit.
    #[pyclass(frozen)]
    struct SubmittedContribution {
        post: Py<Post>,
        envelope: PyBackedBytes,
        bit: PyBackedBytes,
        payload: PyBackedBytes,
    }

    #[pymethods]
    impl SubmittedContribution {
        #[new]
        #[pyo3(signature = (*, post, envelope, bit, payload))]
        fn new(
            post: Py<Post>,
            envelope: PyBackedBytes,
            bit: PyBackedBytes,
            payload: PyBackedBytes,
        ) -> Self {
            Self { post, envelope, bit, payload }
        }
    }

    /// Parses payloads of one committee and iteration and checks their proofs: each checked, or its refusal.
    #[pyfunction]
    fn check_payloads(
        py: Python<'_>,
        codec: &Codec,
        keys: &Keys,
        submitted: Vec<PyRef<'_, SubmittedContribution>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let borrowed: Vec<scheme::Submitted<'_>> = submitted
            .iter()
            .map(|line| scheme::Submitted {
                post: &line.post.get().0,
                envelope: &line.envelope,
                bit: &line.bit,
                payload: &line.payload,
            })
            .collect();
        let checked = py
            .detach(|| scheme::Checked::all(&codec.codec, keys.0.public(), &borrowed, &mut OsRng));
        checked
            .into_iter()
            .map(|checked| match checked {
                Ok(checked) => Ok(Py::new(py, Checked(checked))?.into_any()),
                Err(error) => Ok(refusal(py, error).into_any()),
            })
            .collect()
    }

    /// A running sum.
    #[pyclass(frozen)]
    struct RunningSum(Mutex<Option<scheme::Accumulator>>);

    #[pymethods]
    impl RunningSum {
        #[new]
        fn new(codec: &Codec) -> Self {
            Self(Mutex::new(Some(scheme::Accumulator::new(codec.codec.clone(), codec.max_posts))))
        }

        /// Adds one contribution.
        fn add(&self, py: Python<'_>, contribution: &Checked) -> PyResult<()> {
            py.detach(|| {
                let mut sum = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                sum.as_mut().ok_or(FINISHED)?.add(&contribution.0)
            })
            .map_err(refuse)
        }

        /// Ends the sum.
        fn finish(&self) -> PyResult<Sum> {
            let sum = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            sum.ok_or(FINISHED).map(|sum| Sum(sum.finish())).map_err(refuse)
        }
    }

    const FINISHED: Error = Error::Members { what: "the sum is finished" };

    /// An encrypted sum.
    #[pyclass(frozen)]
    struct Sum(scheme::EncryptedSum);

    #[pymethods]
    impl Sum {
        /// Reads a published sum.
        #[staticmethod]
        fn read(py: Python<'_>, codec: &Codec, data: PyBuffer<u8>) -> PyResult<Self> {
            let data = data.to_vec(py)?;
            py.detach(|| {
                scheme::EncryptedSum::from_bytes(codec.codec.clone(), codec.max_posts, &data)
            })
            .map(Self)
            .map_err(refuse)
        }

        #[getter]
        fn num_posts(&self) -> u32 {
            self.0.num_posts()
        }

        fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, &py.detach(|| self.0.to_bytes()))
        }
    }

    /// A member's share of a sum.
    #[pyfunction]
    fn partial_decrypt<'py>(
        py: Python<'py>,
        keys: &Keys,
        secrets: &Secrets,
        total: &Sum,
        context: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let share = py
            .detach(|| scheme::partial_decrypt(&keys.0, &secrets.0, &total.0, context, &mut OsRng))
            .map_err(refuse)?;
        Ok(PyBytes::new(py, &share))
    }

    /// A member's share of a sum that was checked; only `verify_share` makes one.
    #[pyclass(frozen)]
    struct CheckedSumShare(scheme::VerifiedShare);

    /// Checks a member's share of a sum.
    #[pyfunction]
    fn verify_share(
        py: Python<'_>,
        keys: &Keys,
        total: &Sum,
        context: &[u8],
        member: u16,
        share: &[u8],
    ) -> PyResult<CheckedSumShare> {
        py.detach(|| scheme::verify_share(&keys.0, &total.0, context, member, share))
            .map(CheckedSumShare)
            .map_err(refuse)
    }

    /// Opens the sum with t shares of different members: little-endian int64 values.
    #[pyfunction]
    fn combine<'py>(
        py: Python<'py>,
        keys: &Keys,
        total: &Sum,
        iteration: &MaskContext,
        shares: Vec<PyRef<'_, CheckedSumShare>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let shares: Vec<_> = shares.iter().map(|share| &share.0).collect();
        let threshold = keys.0.shape().threshold;
        let values = py
            .detach(|| scheme::combine(&total.0, &iteration.public_seed, threshold, &shares))
            .map_err(refuse)?;
        PyBytes::new_with(py, values.len() * 8, |buffer| {
            for (slot, value) in buffer.chunks_exact_mut(8).zip(&values) {
                slot.copy_from_slice(&value.to_le_bytes());
            }
            Ok(())
        })
    }
}
