//! `anofel._core.committee`: threshold keys and the `lattice` scheme.
//!
//! Bytes in, bytes out; a vector is one buffer of int64. Calls that take longer than a few
//! tens of microseconds release the interpreter.

use anofel_committee::Error;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    anofel._core.committee,
    Refusal,
    PyValueError,
    "What the core refuses: arguments (kind, sentence, culprit or None)."
);

pub(crate) fn refuse(error: Error) -> PyErr {
    let kind = match innermost(&error) {
        Error::Undecodable { .. } => "undecodable",
        Error::Range { .. } => "range",
        Error::Members { .. } => "members",
        _ => "refused",
    };
    Refusal::new_err((kind, error.to_string(), error.culprit()))
}

/// What is wrong with which element of a batch.
pub(crate) fn sentences(refused: Vec<(usize, Error)>) -> Vec<(usize, String)> {
    refused.into_iter().map(|(index, error)| (index, error.to_string())).collect()
}

fn innermost(error: &Error) -> &Error {
    match error {
        Error::Member { cause, .. } => innermost(cause),
        other => other,
    }
}

pub(crate) fn digest(what: &'static str, bytes: &[u8]) -> PyResult<[u8; 32]> {
    bytes.try_into().map_err(|_| refuse(Error::Length { what, expected: 32, found: bytes.len() }))
}

/// Threshold keys and the `lattice` scheme.
#[pymodule]
pub mod committee {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use anofel_committee::keys::dealing::Dealing;
    use anofel_committee::keys::{self, dkg, handover, SecretShares, ThresholdKeys};
    use anofel_committee::{lattice as scheme, Zeroizing};
    use pyo3::buffer::PyBuffer;
    use pyo3::prelude::*;
    use pyo3::pybacked::PyBackedBytes;
    use pyo3::types::PyBytes;
    use rand::rngs::OsRng;

    use super::{digest, refuse, sentences, Error};
    use crate::count::count::CastBit;
    use crate::error::PreparationUsed;

    #[pymodule_export]
    use super::Refusal;

    /// How many keys, members, and shares to open.
    #[pyclass(frozen)]
    struct Shape(keys::Shape);

    #[pymethods]
    impl Shape {
        #[new]
        fn new(num_keys: usize, num_members: u16, threshold: u16) -> PyResult<Self> {
            keys::Shape::new(num_keys, num_members, threshold).map(Self).map_err(refuse)
        }
    }

    /// Shares by member.
    type Shares<'py> = BTreeMap<u16, Bound<'py, PyBytes>>;

    /// Public keys and every member's verification shares.
    #[pyclass(frozen)]
    struct Keys(ThresholdKeys);

    #[pymethods]
    impl Keys {
        /// Reads and validates keys.
        #[staticmethod]
        fn read(py: Python<'_>, shape: &Shape, data: &[u8]) -> PyResult<Self> {
            let shape = shape.0;
            py.detach(|| ThresholdKeys::from_bytes(shape, data)).map(Self).map_err(refuse)
        }

        fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, &self.0.to_bytes())
        }

        /// All public keys.
        fn public<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, self.0.encoded_public().as_flattened())
        }

        /// One member's verification share of one key.
        fn verification_share<'py>(
            &self,
            py: Python<'py>,
            member: u16,
            key: usize,
        ) -> PyResult<Bound<'py, PyBytes>> {
            self.0.shape().check_member(member).map_err(refuse)?;
            let (_, encoded) = self.0.verification_shares(member);
            let share = encoded
                .get(key)
                .ok_or(Error::Members { what: "there is no such key" })
                .map_err(refuse)?;
            Ok(PyBytes::new(py, share))
        }
    }

    /// One member's secret shares (kept).
    #[pyclass(frozen)]
    struct Secrets(SecretShares);

    #[pymethods]
    impl Secrets {
        /// Reads stored shares and checks them against the keys.
        #[staticmethod]
        fn read(py: Python<'_>, keys: &Keys, member: u16, data: &[u8]) -> PyResult<Self> {
            py.detach(|| SecretShares::from_bytes(&keys.0, member, data)).map(Self).map_err(refuse)
        }

        /// Refuses if these are not shares of the keys.
        fn check(&self, py: Python<'_>, keys: &Keys) -> PyResult<()> {
            py.detach(|| self.0.check(&keys.0)).map_err(refuse)
        }

        /// The secret bytes, for the key store only.
        fn to_secret_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, &self.0.to_secret_bytes())
        }

        #[getter]
        fn member(&self) -> u16 {
            self.0.member()
        }

        fn __repr__(&self) -> String {
            format!("{:?}", self.0)
        }
    }

    /// What a member keeps and what it sends after part one.
    #[pyclass(frozen)]
    struct Committed {
        /// The state, for part two only (kept).
        #[pyo3(get)]
        kept: Py<PyBytes>,
        /// The package, for everybody.
        #[pyo3(get)]
        package: Py<PyBytes>,
    }

    #[pymethods]
    impl Committed {
        fn __repr__(&self) -> &'static str {
            "Committed(<redacted>)"
        }
    }

    /// What a member keeps and what it sends after part two.
    #[pyclass(frozen)]
    struct Dealt {
        /// The state, for part three only (kept).
        #[pyo3(get)]
        kept: Py<PyBytes>,
        shares: BTreeMap<u16, Py<PyBytes>>,
    }

    #[pymethods]
    impl Dealt {
        /// The share for each other member, for its eyes only.
        #[getter]
        fn shares<'py>(&self, py: Python<'py>) -> Shares<'py> {
            self.shares.iter().map(|(&to, share)| (to, share.bind(py).clone())).collect()
        }

        fn __repr__(&self) -> &'static str {
            "Dealt(<redacted>)"
        }
    }

    /// What a dealer sends in a handover.
    #[pyclass(frozen)]
    struct HandoverDealing {
        /// The commitments, for everybody.
        #[pyo3(get)]
        commitments: Py<PyBytes>,
        shares: Vec<Py<PyBytes>>,
    }

    #[pymethods]
    impl HandoverDealing {
        /// The share for each new member, in their order, for its eyes only.
        #[getter]
        fn shares<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
            self.shares.iter().map(|share| share.bind(py).clone()).collect()
        }

        fn __repr__(&self) -> &'static str {
            "HandoverDealing(<redacted>)"
        }
    }

    /// Key generation, part one.
    #[pyfunction]
    fn dkg_part1(py: Python<'_>, shape: &Shape, member: u16, run: &[u8]) -> PyResult<Committed> {
        let shape = shape.0;
        let (state, package) =
            py.detach(|| dkg::part1(shape, member, run, &mut OsRng)).map_err(refuse)?;
        Ok(Committed {
            kept: PyBytes::new(py, &state).unbind(),
            package: PyBytes::new(py, &package).unbind(),
        })
    }

    /// Key generation, part two.
    #[pyfunction]
    fn dkg_part2(
        py: Python<'_>,
        shape: &Shape,
        member: u16,
        state: &[u8],
        packages: BTreeMap<u16, Vec<u8>>,
    ) -> PyResult<Dealt> {
        let shape = shape.0;
        let (state, shares) =
            py.detach(|| dkg::part2(shape, member, state, &packages)).map_err(refuse)?;
        let shares =
            shares.into_iter().map(|(to, share)| (to, PyBytes::new(py, &share).unbind())).collect();
        Ok(Dealt { kept: PyBytes::new(py, &state).unbind(), shares })
    }

    /// The end of key generation: everybody's keys (sent) and the own shares (kept).
    #[pyclass(frozen)]
    struct Generated {
        #[pyo3(get)]
        keys: Py<Keys>,
        #[pyo3(get)]
        secrets: Py<Secrets>,
    }

    /// Key generation, part three: the keys and the own shares.
    #[pyfunction]
    fn dkg_part3(
        py: Python<'_>,
        shape: &Shape,
        member: u16,
        run: &[u8],
        state: &[u8],
        packages: BTreeMap<u16, Vec<u8>>,
        shares: BTreeMap<u16, PyBackedBytes>,
    ) -> PyResult<Generated> {
        let shape = shape.0;
        let shares = shares.iter().map(|(&from, share)| (from, share.to_vec().into())).collect();
        let (keys, secrets) = py
            .detach(|| dkg::part3(shape, member, run, state, &packages, &shares))
            .map_err(refuse)?;
        Ok(Generated { keys: Py::new(py, Keys(keys))?, secrets: Py::new(py, Secrets(secrets))? })
    }

    /// A package whose proofs hold; only `dkg_check_package` makes one.
    #[pyclass(frozen)]
    struct CheckedPackage(dkg::CheckedPackage);

    /// Checks one package for a run: encodings and proofs.
    #[pyfunction]
    fn dkg_check_package(
        py: Python<'_>,
        shape: &Shape,
        member: u16,
        run: &[u8],
        package: &[u8],
    ) -> PyResult<CheckedPackage> {
        let shape = shape.0;
        py.detach(|| dkg::check_package(shape, member, run, package))
            .map(CheckedPackage)
            .map_err(refuse)
    }

    /// The keys that the packages of all members, in their order, make.
    #[pyfunction]
    fn dkg_keys(
        py: Python<'_>,
        shape: &Shape,
        packages: Vec<PyRef<'_, CheckedPackage>>,
    ) -> PyResult<Keys> {
        let shape = shape.0;
        let packages: Vec<&dkg::CheckedPackage> =
            packages.iter().map(|package| &package.0).collect();
        py.detach(|| dkg::public_keys(shape, &packages)).map(Keys).map_err(refuse)
    }

    /// Checks shares against the commitments at the start of a package or dealing.
    #[pyfunction]
    fn check_dealt_shares(
        py: Python<'_>,
        shape: &Shape,
        package: &[u8],
        member: u16,
        shares: &[u8],
    ) -> PyResult<()> {
        let shape = shape.0;
        py.detach(|| {
            let commitments = &package[..package.len().min(Dealing::length(shape))];
            let dealing = Dealing::from_bytes(shape, commitments)?;
            dealing.check_shares(member, shares).map(drop)
        })
        .map_err(refuse)
    }

    /// Deals a member's shares to a new committee.
    #[pyfunction]
    fn handover_deal(
        py: Python<'_>,
        old: &Keys,
        secrets: &Secrets,
        dealers: Vec<u16>,
        num_members: u16,
        threshold: u16,
    ) -> PyResult<HandoverDealing> {
        let shape =
            keys::Shape::new(old.0.shape().num_keys, num_members, threshold).map_err(refuse)?;
        let (commitments, shares) = py
            .detach(|| handover::deal(&old.0, &secrets.0, &dealers, shape, &mut OsRng))
            .map_err(refuse)?;
        let shares = shares.iter().map(|share| PyBytes::new(py, share).unbind()).collect();
        Ok(HandoverDealing { commitments: PyBytes::new(py, &commitments).unbind(), shares })
    }

    /// The keys after a handover; every dealing is checked.
    #[pyfunction]
    fn handover_keys(
        py: Python<'_>,
        old: &Keys,
        num_members: u16,
        threshold: u16,
        dealings: BTreeMap<u16, Vec<u8>>,
    ) -> PyResult<Keys> {
        let shape =
            keys::Shape::new(old.0.shape().num_keys, num_members, threshold).map_err(refuse)?;
        py.detach(|| {
            let dealings = check_dealings(&old.0, shape, &dealings)?;
            handover::new_keys(&old.0, shape, &dealings.iter().collect::<Vec<_>>())
        })
        .map(Keys)
        .map_err(refuse)
    }

    /// A receiver's new shares from what the dealers sent; a wrong share names its dealer.
    #[pyfunction]
    fn handover_receive(
        py: Python<'_>,
        keys: &Keys,
        member: u16,
        dealings: BTreeMap<u16, Vec<u8>>,
        shares: BTreeMap<u16, PyBackedBytes>,
    ) -> PyResult<Secrets> {
        py.detach(|| {
            let received = dealings
                .iter()
                .map(|(dealer, commitments)| {
                    let share =
                        shares.get(dealer).ok_or(Error::Members { what: "a share is missing" });
                    Dealing::from_bytes(keys.0.shape(), commitments)
                        .and_then(|dealing| dealing.check_shares(member, share?))
                        .map_err(|error| error.by(*dealer))
                })
                .collect::<Result<Vec<_>, _>>()?;
            handover::receive(&keys.0, member, &received)
        })
        .map(Secrets)
        .map_err(refuse)
    }

    fn check_dealings(
        old: &ThresholdKeys,
        shape: keys::Shape,
        dealings: &BTreeMap<u16, Vec<u8>>,
    ) -> Result<Vec<Dealing>, Error> {
        let dealers: Vec<u16> = dealings.keys().copied().collect();
        dealings
            .iter()
            .map(|(&dealer, commitments)| {
                handover::check_dealing(old, &dealers, dealer, shape, commitments)
            })
            .collect()
    }

    /// The widths of one task's vectors.
    #[pyclass(frozen)]
    struct Codec {
        codec: scheme::Codec,
        max_posts: u32,
    }

    #[pymethods]
    impl Codec {
        /// `proven` is the norm of a proven contribution and the number of liars, if there is a proof.
        #[new]
        fn new(
            length: usize,
            bound: u64,
            max_posts: u32,
            proven: Option<(u64, u32)>,
        ) -> PyResult<Self> {
            let proven = proven.map(|(norm, max_liars)| scheme::Proven { norm, max_liars });
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
    struct Iteration {
        public_seed: [u8; 32],
    }

    #[pymethods]
    impl Iteration {
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
    struct Prepared {
        envelope: [u8; scheme::ENVELOPE_BYTES],
        codec: scheme::Codec,
        prepared: Mutex<Option<scheme::Prepared>>,
    }

    #[pymethods]
    impl Prepared {
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
                    scheme::Prepared::new(codec.codec, &post.0, keys, bit, &mut OsRng)
                })
                .map_err(refuse)?;
            Ok(Self {
                envelope: *prepared.envelope(),
                codec: codec.codec,
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
            "Prepared(<redacted>)"
        }
    }

    /// Checks an envelope.
    #[pyfunction]
    fn verify_envelope(py: Python<'_>, post: &Post, envelope: &[u8]) -> PyResult<()> {
        py.detach(|| scheme::verify_envelope(&post.0, envelope)).map(drop).map_err(refuse)
    }

    /// Checks many envelopes at once: the place and the fault of every bad one.
    #[pyfunction]
    fn refused_envelopes(
        py: Python<'_>,
        envelopes: Vec<(PyRef<'_, Post>, PyBackedBytes)>,
    ) -> Vec<(usize, String)> {
        let borrowed: Vec<(&scheme::Post, &[u8])> =
            envelopes.iter().map(|(post, envelope)| (&post.0, envelope.as_ref())).collect();
        py.detach(|| sentences(scheme::refused_envelopes(&borrowed, &mut OsRng)))
    }

    /// A parsed payload whose proof holds; only `check_payloads` makes one.
    #[pyclass(frozen)]
    struct Checked(scheme::Checked);

    /// Post, envelope, encrypted bit and payload.
    type SubmittedLine<'py> = (PyRef<'py, Post>, PyBackedBytes, PyBackedBytes, PyBackedBytes);

    /// Parses payloads of one committee and iteration and checks their proofs: each checked, or its fault.
    #[pyfunction]
    fn check_payloads(
        py: Python<'_>,
        codec: &Codec,
        keys: &Keys,
        submitted: Vec<SubmittedLine<'_>>,
    ) -> Vec<(Option<Checked>, Option<String>)> {
        let borrowed: Vec<scheme::Submitted<'_>> = submitted
            .iter()
            .map(|(post, envelope, bit, payload)| scheme::Submitted {
                post: &post.0,
                envelope,
                bit,
                payload,
            })
            .collect();
        let checked =
            py.detach(|| scheme::Checked::all(codec.codec, keys.0.public(), &borrowed, &mut OsRng));
        checked
            .into_iter()
            .map(|checked| match checked {
                Ok(checked) => (Some(Checked(checked)), None),
                Err(error) => (None, Some(error.to_string())),
            })
            .collect()
    }

    /// A running sum.
    #[pyclass(frozen)]
    struct Accumulator(Mutex<Option<scheme::Accumulator>>);

    #[pymethods]
    impl Accumulator {
        #[new]
        fn new(codec: &Codec) -> Self {
            Self(Mutex::new(Some(scheme::Accumulator::new(codec.codec, codec.max_posts))))
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
            py.detach(|| scheme::EncryptedSum::from_bytes(codec.codec, codec.max_posts, &data))
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
    struct VerifiedShare(scheme::VerifiedShare);

    /// Checks a member's share of a sum.
    #[pyfunction]
    fn verify_share(
        py: Python<'_>,
        keys: &Keys,
        total: &Sum,
        context: &[u8],
        member: u16,
        share: &[u8],
    ) -> PyResult<VerifiedShare> {
        py.detach(|| scheme::verify_share(&keys.0, &total.0, context, member, share))
            .map(VerifiedShare)
            .map_err(refuse)
    }

    /// Opens the sum with t shares of different members: little-endian int64 values.
    #[pyfunction]
    fn combine<'py>(
        py: Python<'py>,
        keys: &Keys,
        total: &Sum,
        iteration: &Iteration,
        shares: Vec<PyRef<'_, VerifiedShare>>,
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
