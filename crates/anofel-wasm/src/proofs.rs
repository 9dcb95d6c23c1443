//! Registration and submission proofs, checked together.

use anofel_circuits::groth16::key::VerifyingKey;
use anofel_circuits::groth16::proof::Proof;
use anofel_circuits::groth16::verifier::Verifier;
use anofel_circuits::statements::registration::RegistrationStatement;
use anofel_circuits::statements::submission::SubmissionStatement;
use anofel_circuits::statements::{Statement, StatementKind};
use anofel_circuits::Error;
use anofel_primitives::commitment::{Commitment, TypeCommitment};
use anofel_primitives::merkle::Root;
use anofel_primitives::message_key::MessageKey;
use anofel_primitives::prf::{Epoch, IterationNullifier, RegistrationNullifier, Scope, Tag};
use anofel_primitives::Fr;
use rand::rngs::OsRng;
use wasm_bindgen::prelude::*;

use crate::error::{fail, hex, name, unhex, Result};

/// A verification key, and the proofs that wait to be checked with it.
#[wasm_bindgen]
pub struct ProofVerifier {
    kind: StatementKind,
    verifier: Verifier,
    waiting: Vec<(Vec<Fr>, Proof)>,
}

#[wasm_bindgen]
impl ProofVerifier {
    /// Reads a key file; `statement` is `registration` or `submission`.
    #[wasm_bindgen(constructor)]
    pub fn new(statement: &str, key: &[u8]) -> Result<Self> {
        let kind = StatementKind::ALL.into_iter().find(|kind| kind.name() == statement);
        let kind = kind.ok_or_else(|| fail("there is no such statement"))?;
        let key = VerifyingKey::from_bytes(kind, key).map_err(fail)?;
        Ok(Self { kind, verifier: Verifier::new(key), waiting: Vec::new() })
    }

    /// The id of the key.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> String {
        hex(&self.verifier.key().id())
    }

    /// How the key was made.
    #[wasm_bindgen(getter)]
    pub fn origin(&self) -> String {
        self.verifier.key().origin().describe().into()
    }

    fn add(&mut self, inputs: Vec<Fr>, proof: &str) -> Result<()> {
        let proof = Proof::from_bytes(self.kind, &unhex(proof)?).map_err(fail)?;
        self.waiting.push((inputs, proof));
        Ok(())
    }

    /// Adds the proof of a registration.
    #[wasm_bindgen(js_name = addRegistration)]
    #[allow(clippy::too_many_arguments, reason = "the fields of the statement")]
    pub fn add_registration(
        &mut self,
        genesis: &str,
        epoch: u32,
        certifier_root: &str,
        commitment: &str,
        nullifier: &str,
        tag: &str,
        message_key: &str,
        proof: &str,
    ) -> Result<()> {
        let statement = RegistrationStatement {
            certifier_root: Root::from_bytes(&unhex(certifier_root)?).map_err(fail)?,
            commitment: Commitment::from_bytes(&unhex(commitment)?).map_err(fail)?,
            nullifier: RegistrationNullifier::from_bytes(&unhex(nullifier)?).map_err(fail)?,
            epoch: Epoch::new(&name(genesis)?, epoch.into()),
            tag: Tag::from_bytes(&unhex(tag)?).map_err(fail)?,
            a: MessageKey::from_bytes(&unhex(message_key)?).map_err(fail)?.hash(),
        };
        self.add(statement.public_inputs(), proof)
    }

    /// Adds the proof of a submission.
    #[wasm_bindgen(js_name = addSubmission)]
    #[allow(clippy::too_many_arguments, reason = "the fields of the statement")]
    pub fn add_submission(
        &mut self,
        client_root: &str,
        scope: &str,
        nullifier: &str,
        tag: &str,
        type_commitment: &str,
        message_key: &str,
        proof: &str,
    ) -> Result<()> {
        let statement = SubmissionStatement {
            client_root: Root::from_bytes(&unhex(client_root)?).map_err(fail)?,
            nullifier: IterationNullifier::from_bytes(&unhex(nullifier)?).map_err(fail)?,
            tag: Tag::from_bytes(&unhex(tag)?).map_err(fail)?,
            a: MessageKey::from_bytes(&unhex(message_key)?).map_err(fail)?.hash(),
            scope: Scope::from_bytes(&unhex(scope)?).map_err(fail)?,
            type_commitment: TypeCommitment::from_bytes(&unhex(type_commitment)?).map_err(fail)?,
        };
        self.add(statement.public_inputs(), proof)
    }

    /// Checks all proofs that wait, and returns the places of the bad ones.
    pub fn verify(&mut self) -> Result<Vec<u32>> {
        let batch = std::mem::take(&mut self.waiting);
        match self.verifier.verify_batch(&batch, &mut OsRng) {
            Ok(()) => Ok(Vec::new()),
            Err(Error::InvalidBatch { indices, .. }) => {
                Ok(indices.into_iter().map(|index| index as u32).collect())
            }
            Err(error) => Err(fail(error)),
        }
    }
}
