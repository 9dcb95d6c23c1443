//! `anofel._core.count`: the encrypted bits of a bundle, their proof, and the count.

/// The encrypted bits of a bundle, their proof, and the count.
#[pyo3::pymodule]
pub mod count {
    use std::collections::BTreeMap;

    use anofel_committee::count::{self as counting, Accepts};
    use anofel_committee::lattice::EncryptedBit;
    use anofel_committee::{group, Error, Zeroizing};
    use anofel_primitives::commitment::{TypeBlinding, TypeCommitment};
    use anofel_primitives::identity::DatasetType;
    use pyo3::exceptions::PyBaseException;
    use pyo3::prelude::*;
    use pyo3::pybacked::PyBackedBytes;
    use pyo3::types::PyBytes;
    use rand::rngs::OsRng;

    use crate::committee::{digest, refusals, refuse};

    /// One committee of a bundle, as a ballot names it.
    #[pyclass(frozen)]
    pub struct BallotLine(counting::Committee);

    #[pymethods]
    impl BallotLine {
        /// `accepted_types` is None for any.
        #[new]
        #[pyo3(signature = (*, key_id, count_key, accepted_types))]
        fn new(
            key_id: &[u8],
            count_key: &[u8],
            accepted_types: Option<Vec<u32>>,
        ) -> PyResult<Self> {
            let accepts = accepted_types.map_or(Accepts::Any, Accepts::Types);
            counting::Committee::new(digest("the committee key", key_id)?, count_key, accepts)
                .map(Self)
                .map_err(refuse)
        }
    }

    /// A ballot with what opens its bits, those that are sent and those that are kept.
    #[pyclass(frozen)]
    struct EncryptedBallot {
        ballot: Vec<u8>,
        bits: Vec<EncryptedBit>,
    }

    #[pymethods]
    impl EncryptedBallot {
        /// What is sent.
        #[getter]
        fn ballot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, &self.ballot)
        }

        /// What opens each bit (kept).
        #[getter]
        fn bits(&self) -> Vec<CastBit> {
            self.bits.iter().cloned().map(CastBit).collect()
        }

        fn __repr__(&self) -> &'static str {
            "EncryptedBallot(<redacted>)"
        }
    }

    /// Everything that a ballot is bound to.
    #[pyclass(frozen)]
    struct BallotBinding(counting::Bundle);

    #[pymethods]
    impl BallotBinding {
        /// Committees are in the order of the bundle.
        #[new]
        #[pyo3(signature = (*, genesis, scope, nullifier, tag, pk_sig, type_commitment, committees))]
        #[allow(clippy::too_many_arguments, reason = "the fields of the statement, by name")]
        fn new(
            genesis: &[u8],
            scope: &[u8],
            nullifier: &[u8],
            tag: &[u8],
            pk_sig: &[u8],
            type_commitment: &[u8],
            committees: Vec<PyRef<'_, BallotLine>>,
        ) -> PyResult<Self> {
            let what = "the dataset type commitment";
            let committees = committees.iter().map(|line| line.0.clone()).collect();
            let bundle = counting::Bundle {
                genesis: digest("genesis", genesis)?,
                scope: digest("the scope", scope)?,
                nullifier: digest("the nullifier", nullifier)?,
                tag: digest("the tag", tag)?,
                pk_sig: digest("pk_sig", pk_sig)?,
                type_commitment: TypeCommitment::from_bytes(type_commitment)
                    .map_err(|_| refuse(Error::NotCanonical { what, index: 0 }))?,
                committees,
            };
            bundle.check().map_err(refuse)?;
            Ok(Self(bundle))
        }

        /// Bytes of a ballot.
        #[getter]
        fn ballot_bytes(&self) -> usize {
            counting::Ballot::length(&self.0)
        }

        /// Encrypts and proves: the target's bit is 1, all others are 0.
        fn vote(
            &self,
            py: Python<'_>,
            target: Option<usize>,
            dataset_type: u32,
            blinding: &[u8],
        ) -> PyResult<EncryptedBallot> {
            let what = "the type blinding";
            let blinding = TypeBlinding::from_bytes(blinding)
                .map_err(|_| refuse(Error::NotCanonical { what, index: 0 }))?;
            let opening =
                counting::Opening { target, dataset_type: DatasetType(dataset_type), blinding };
            let (ballot, secrets) = py
                .detach(|| counting::Ballot::new(&self.0, &opening, &mut OsRng))
                .map_err(refuse)?;
            let ballot = ballot.to_bytes();
            let (ciphertexts, _) = ballot.as_chunks::<{ counting::CIPHERTEXT_BYTES }>();
            let bits = ciphertexts
                .iter()
                .enumerate()
                .map_while(|(position, ciphertext)| {
                    let (k, one) = secrets.at(position)?;
                    Some(EncryptedBit { ciphertext: *ciphertext, k, one })
                })
                .collect();
            Ok(EncryptedBallot { ballot, bits })
        }

        /// Checks a ballot.
        fn verify(&self, py: Python<'_>, ballot: &[u8]) -> PyResult<()> {
            py.detach(|| counting::Ballot::from_bytes(&self.0, ballot)?.verify(&self.0))
                .map_err(refuse)
        }
    }

    /// One bit of a ballot with what opens it (kept).
    #[pyclass(frozen)]
    pub struct CastBit(pub(crate) EncryptedBit);

    #[pymethods]
    impl CastBit {
        /// U ‖ V.
        #[getter]
        fn ciphertext<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, &self.0.ciphertext)
        }

        /// First messages for a proof of which branch of the bit is true, under a count key.
        fn begin(&self, py: Python<'_>, count_key: &[u8]) -> PyResult<SecretBranches> {
            py.detach(|| {
                let statement = bit_statement(count_key, &self.0.ciphertext)?;
                counting::SecretBranches::draw(&statement, &self.0.k, self.0.one, &mut OsRng)
            })
            .map(SecretBranches)
            .map_err(refuse)
        }

        fn __repr__(&self) -> &'static str {
            "CastBit(<redacted>)"
        }
    }

    fn bit_statement(count_key: &[u8], ciphertext: &[u8]) -> Result<counting::BitStatement, Error> {
        Ok(counting::BitStatement {
            key: group::decode_real_point("the count key", count_key)?,
            ciphertext: counting::Ciphertext::from_bytes(ciphertext)?,
        })
    }

    /// What answers a challenge about a bit (kept).
    #[pyclass(frozen)]
    pub struct SecretBranches(counting::SecretBranches);

    #[pymethods]
    impl SecretBranches {
        /// Four points, those of *zero* first.
        #[getter]
        fn first_messages<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, self.0.first_messages())
        }

        /// The challenge of *zero* where that branch is simulated; None where it is true.
        #[getter]
        fn simulated_zero(&self) -> Option<u128> {
            self.0.simulated_zero()
        }

        /// Answers a challenge of 128 bits: e₀ ‖ z₀ ‖ e₁ ‖ z₁.
        fn respond<'py>(&self, py: Python<'py>, challenge: u128) -> Bound<'py, PyBytes> {
            PyBytes::new(py, &self.0.respond(challenge).to_bytes())
        }

        fn __repr__(&self) -> &'static str {
            "SecretBranches(<redacted>)"
        }
    }

    /// What the branches of a proof of a bit answer.
    #[pyclass(frozen)]
    struct AnsweredBranches {
        first_messages: Vec<u8>,
        challenges: [u128; 2],
    }

    #[pymethods]
    impl AnsweredBranches {
        /// The first messages for which the branches hold: four points, those of *zero* first.
        #[getter]
        fn first_messages<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, &self.first_messages)
        }

        /// The challenge of *zero*.
        #[getter]
        fn zero(&self) -> u128 {
            self.challenges[0]
        }

        /// The challenge of *one*.
        #[getter]
        fn one(&self) -> u128 {
            self.challenges[1]
        }
    }

    /// Reads the branches of a proof of a bit and says what they answer.
    #[pyfunction]
    fn answered_branches(
        py: Python<'_>,
        count_key: &[u8],
        ciphertext: &[u8],
        branches: &[u8],
    ) -> PyResult<AnsweredBranches> {
        py.detach(|| {
            let statement = bit_statement(count_key, ciphertext)?;
            let branches = counting::Branches::from_bytes(branches)?;
            Ok(AnsweredBranches {
                first_messages: branches.first_messages(&statement).to_vec(),
                challenges: branches.challenges(),
            })
        })
        .map_err(refuse)
    }

    /// Checks many ballots side by side: the refusal of every bad one, by its place.
    #[pyfunction]
    fn refused_ballots(
        py: Python<'_>,
        ballots: Vec<(PyRef<'_, BallotBinding>, PyBackedBytes)>,
    ) -> BTreeMap<usize, Py<PyBaseException>> {
        let borrowed: Vec<(&counting::Bundle, &[u8])> =
            ballots.iter().map(|(bundle, ballot)| (&bundle.0, ballot.as_ref())).collect();
        refusals(py, py.detach(|| counting::Ballot::refused(&borrowed)))
    }

    /// Adds encrypted bits, given one after the other: ΣU ‖ ΣV.
    #[pyfunction]
    fn add_bits<'py>(py: Python<'py>, ciphertexts: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let tally = py
            .detach(|| {
                let mut tally = counting::Tally::default();
                ciphertexts
                    .chunks(counting::CIPHERTEXT_BYTES)
                    .try_for_each(|bit| tally.add(bit))?;
                Ok(tally)
            })
            .map_err(refuse)?;
        Ok(PyBytes::new(py, &tally.to_bytes()))
    }

    /// A member's share of a count.
    #[pyfunction]
    fn count_share<'py>(
        py: Python<'py>,
        tally: &[u8],
        member: u16,
        secret: &[u8],
        context: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let share = py
            .detach(|| {
                let tally = counting::Tally::from_bytes(tally)?;
                let secret = Zeroizing::new(group::decode_scalar("the secret share", secret)?);
                Ok(counting::count_share(&tally, member, &secret, context, &mut OsRng))
            })
            .map_err(refuse)?;
        Ok(PyBytes::new(py, &share))
    }

    /// A member's share of a count that was checked; only `verify_count_share` makes one.
    #[pyclass(frozen)]
    struct CheckedCountShare(counting::VerifiedCountShare);

    /// Checks a member's share of a count.
    #[pyfunction]
    fn verify_count_share(
        py: Python<'_>,
        tally: &[u8],
        member: u16,
        verification_share: &[u8],
        context: &[u8],
        share: &[u8],
    ) -> PyResult<CheckedCountShare> {
        py.detach(|| {
            let tally = counting::Tally::from_bytes(tally)?;
            counting::verify_count_share(&tally, member, verification_share, context, share)
        })
        .map(CheckedCountShare)
        .map_err(refuse)
    }

    /// The count from t shares of different members.
    #[pyfunction]
    fn combine_count(
        py: Python<'_>,
        tally: &[u8],
        shares: Vec<PyRef<'_, CheckedCountShare>>,
        largest: u32,
    ) -> PyResult<u32> {
        let shares: Vec<_> = shares.iter().map(|share| &share.0).collect();
        py.detach(|| {
            counting::combine_count(&counting::Tally::from_bytes(tally)?, &shares, largest)
        })
        .map_err(refuse)
    }
}
