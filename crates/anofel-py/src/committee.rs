//! `anofel._core.committee`: what a committee's crate refuses, threshold keys, and how they are made and handed on.
//!
//! Bytes in, bytes out. Calls that take longer than a few tens of microseconds release the interpreter.

use std::collections::BTreeMap;

use anofel_committee::Error;
use pyo3::create_exception;
use pyo3::exceptions::{PyBaseException, PyValueError};
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

/// A refusal that is not raised, because others of its batch are accepted.
pub(crate) fn refusal(py: Python<'_>, error: Error) -> Py<PyBaseException> {
    refuse(error).into_value(py)
}

/// The refusals of a batch by their places.
pub(crate) fn refusals(
    py: Python<'_>,
    refused: Vec<(usize, Error)>,
) -> BTreeMap<usize, Py<PyBaseException>> {
    refused.into_iter().map(|(place, error)| (place, refusal(py, error))).collect()
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

/// Threshold keys, how they are made and handed on.
#[pymodule]
pub mod committee {
    use std::collections::BTreeMap;

    use anofel_committee::keys::dealing::Dealing;
    use anofel_committee::keys::{self, dkg, handover, SecretShares, ThresholdKeys};
    use pyo3::prelude::*;
    use pyo3::pybacked::PyBackedBytes;
    use pyo3::types::PyBytes;
    use rand::rngs::OsRng;

    use super::{refuse, Error};

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
    pub(crate) struct Keys(pub(crate) ThresholdKeys);

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
    pub(crate) struct Secrets(pub(crate) SecretShares);

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
}
