//! Ownership: a client shows a certifier that a master public key is its own (step 1.b).
//!
//! It replaces the signature that a curve-point key could have given (D-04).

use anofel_primitives::eddsa::CertifierKey;
use anofel_primitives::field::{hash_to_field, FieldHash};
use anofel_primitives::hash::Domain;
use anofel_primitives::identity::{DatasetDigest, MasterPublicKey, MasterSecret};
use anofel_primitives::Fr;

use super::{Circuit, Statement, StatementKind};
use crate::gadgets::poseidon;
use crate::system::{Clause, Lc, System};

/// 1.
pub const MASTER_PUBLIC_KEY: Clause = "ownership 1: mpk = H(msk)";
/// 2.
pub const CHALLENGE: Clause = "ownership 2: the challenge is bound";

/// What the certifier sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnershipStatement {
    /// The key that is claimed.
    pub mpk: MasterPublicKey,
    /// H(certifier key, nonce, d).
    pub challenge: Fr,
}

impl OwnershipStatement {
    /// For a certifier's key, its 32-byte nonce and the dataset digest that it will certify.
    pub fn new(
        mpk: MasterPublicKey,
        certifier: &CertifierKey,
        nonce: &[u8; 32],
        d: DatasetDigest,
    ) -> Self {
        let parts: [&[u8]; 3] = [&certifier.to_bytes(), nonce, &d.to_bytes()];
        Self { mpk, challenge: hash_to_field(FieldHash::OwnershipChallenge, &parts) }
    }
}

/// What the client keeps.
#[derive(zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub struct OwnershipWitness {
    msk: Fr,
}

impl OwnershipWitness {
    /// The witness of a client.
    pub fn new(msk: &MasterSecret) -> Self {
        Self { msk: msk.element() }
    }
}

/// The constraints.
pub struct OwnershipCircuit;

impl Statement for OwnershipStatement {
    type Circuit = OwnershipCircuit;

    fn public_inputs(&self) -> Vec<Fr> {
        vec![self.mpk.element(), self.challenge]
    }
}

impl Circuit for OwnershipCircuit {
    type Witness = OwnershipWitness;
    const KIND: StatementKind = StatementKind::Ownership;
    const PUBLIC_INPUTS: &'static [&'static str] = &["mpk", "challenge"];

    fn constrain(system: &mut System, public: &[Lc], witness: &OwnershipWitness) {
        let [mpk, challenge] = public else { unreachable!("run checks the number of inputs") };
        let msk = system.variable(witness.msk);

        system.clause(MASTER_PUBLIC_KEY);
        let hash = poseidon::hash(system, Domain::MasterPublicKey, &[msk]);
        system.enforce_equal(&hash, mpk);

        // Squared, so that it stands in a constraint and no proof fits another challenge.
        system.clause(CHALLENGE);
        system.product(challenge, challenge);
    }

    fn blank() -> OwnershipWitness {
        OwnershipWitness { msk: Fr::from(0) }
    }
}
