//! The two branches of an encrypted bit, for a proof that ties *zero* to a statement elsewhere.
//!
//! 0. *zero*: U = k·G and V = k·Y, and whatever the caller adds in a group of its own, or
//! 1. *one*: U = k·G and V − G = k·Y.
//!
//! Cramer–Damgård–Schoenmakers: the caller hashes both branches' first messages, with its own, to
//! one challenge of 128 bits, and the challenges of the branches add up to it modulo 2^128. The
//! proof carries challenges and responses; the verifier recomputes the first messages.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rand::{CryptoRng, RngCore};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::ballot::Ciphertext;
use crate::error::check_length;
use crate::group::{base, decode_scalar, random_scalar, weighted_sum, ELEMENT_BYTES};
use crate::Error;

const CHALLENGE_BYTES: usize = 16;
const BRANCH_BYTES: usize = CHALLENGE_BYTES + ELEMENT_BYTES;

/// Bytes of both branches: e₀ ‖ z₀ ‖ e₁ ‖ z₁.
pub const BRANCHES_BYTES: usize = 2 * BRANCH_BYTES;

/// Bytes of the first messages: two points for each branch.
pub const FIRST_MESSAGES_BYTES: usize = 4 * ELEMENT_BYTES;

/// What both branches speak about.
#[derive(Debug, Clone, Copy)]
pub struct BitStatement {
    /// Y.
    pub key: RistrettoPoint,
    /// (U, V).
    pub ciphertext: Ciphertext,
}

impl BitStatement {
    /// V − b·G for the branch b.
    fn message(&self, branch: usize) -> RistrettoPoint {
        self.ciphertext.v - [RistrettoPoint::default(), RISTRETTO_BASEPOINT_POINT][branch]
    }

    /// z·G − e·U and z·Y − e·(V − b·G).
    fn recompute(&self, branch: usize, challenge: u128, z: &Scalar) -> [RistrettoPoint; 2] {
        let negative = -Scalar::from(challenge);
        let u = &self.ciphertext.u;
        [
            RistrettoPoint::vartime_double_scalar_mul_basepoint(&negative, u, z),
            weighted_sum(&[*z, negative], &[self.key, self.message(branch)]),
        ]
    }
}

/// Challenge and response of both branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branches {
    challenges: [u128; 2],
    responses: [Scalar; 2],
}

impl Branches {
    /// The branches' challenges, *zero* first.
    pub fn challenges(&self) -> [u128; 2] {
        self.challenges
    }

    /// The only first messages for which both branches hold.
    pub fn first_messages(&self, statement: &BitStatement) -> [u8; FIRST_MESSAGES_BYTES] {
        encode([0, 1].map(|branch| {
            statement.recompute(branch, self.challenges[branch], &self.responses[branch])
        }))
    }

    /// e₀ ‖ z₀ ‖ e₁ ‖ z₁.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BRANCHES_BYTES);
        for (challenge, response) in self.challenges.iter().zip(&self.responses) {
            bytes.extend_from_slice(&challenge.to_le_bytes());
            bytes.extend_from_slice(response.as_bytes());
        }
        bytes
    }

    /// Reads both branches; responses must be canonical.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        check_length("the branches of a bit", BRANCHES_BYTES, bytes.len())?;
        let read = |branch: &[u8]| {
            let (challenge, response) = branch.split_at(CHALLENGE_BYTES);
            let mut low = [0; CHALLENGE_BYTES];
            low.copy_from_slice(challenge);
            Ok((u128::from_le_bytes(low), decode_scalar("a response about a bit", response)?))
        };
        let (zero, one) = bytes.split_at(BRANCH_BYTES);
        let ((e_zero, z_zero), (e_one, z_one)) = (read(zero)?, read(one)?);
        Ok(Self { challenges: [e_zero, e_one], responses: [z_zero, z_one] })
    }
}

/// The true branch's nonce and the other branch, made before the challenge is known (kept).
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SecretBranches {
    k: Scalar,
    nonce: Scalar,
    truth: u8,
    simulated_challenge: u128,
    simulated_response: Scalar,
    #[zeroize(skip)]
    first_messages: [u8; FIRST_MESSAGES_BYTES],
}

impl SecretBranches {
    /// Draws the first messages for a bit `one` that k opens; refuses what does not open it.
    pub fn draw(
        statement: &BitStatement,
        k: &Scalar,
        one: u8,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Self, Error> {
        let truth = usize::from(one & 1);
        let opens =
            base(k) == statement.ciphertext.u && statement.key * k == statement.message(truth);
        if !opens {
            return Err(Error::Members { what: "the ballot's bit is not one of this committee" });
        }
        let mut secret = Self {
            k: *k,
            nonce: random_scalar(rng),
            truth: one & 1,
            simulated_challenge: rand::Rng::gen(rng),
            simulated_response: random_scalar(rng),
            first_messages: [0; FIRST_MESSAGES_BYTES],
        };
        let other =
            statement.recompute(1 - truth, secret.simulated_challenge, &secret.simulated_response);
        let mut messages = [other; 2];
        messages[truth] = [base(&secret.nonce), statement.key * secret.nonce];
        secret.first_messages = encode(messages);
        Ok(secret)
    }

    /// The first messages, *zero* first.
    pub fn first_messages(&self) -> &[u8; FIRST_MESSAGES_BYTES] {
        &self.first_messages
    }

    /// The challenge of *zero* where that branch is simulated; None where it is the true one.
    pub fn simulated_zero(&self) -> Option<u128> {
        (self.truth == 1).then_some(self.simulated_challenge)
    }

    /// Answers the challenge.
    pub fn respond(&self, challenge: u128) -> Branches {
        let truth = usize::from(self.truth);
        let rest = challenge.wrapping_sub(self.simulated_challenge);
        let mut branches = Branches {
            challenges: [self.simulated_challenge; 2],
            responses: [self.simulated_response; 2],
        };
        branches.challenges[truth] = rest;
        branches.responses[truth] = self.nonce + Scalar::from(rest) * self.k;
        branches
    }
}

fn encode(messages: [[RistrettoPoint; 2]; 2]) -> [u8; FIRST_MESSAGES_BYTES] {
    let mut bytes = [0; FIRST_MESSAGES_BYTES];
    for (place, point) in bytes.chunks_exact_mut(ELEMENT_BYTES).zip(messages.as_flattened()) {
        place.copy_from_slice(point.compress().as_bytes());
    }
    bytes
}

#[cfg(test)]
#[path = "branches_tests.rs"]
mod tests;
