//! A proof on the wire.

use ark_bn254::Bn254;
use ark_ec::AffineRepr;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};

use crate::statements::StatementKind;
use crate::Error;

/// A proof: A (32 bytes), B (64), C (32), each compressed as `ark-serialize` does.
pub const PROOF_BYTES: usize = 128;

/// A proof of one statement. It can be re-randomised by anyone, so its bytes are no identity.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    kind: StatementKind,
    points: ark_groth16::Proof<Bn254>,
}

impl Proof {
    /// A proof of these points; the caller vouches for them.
    pub fn from_points(kind: StatementKind, points: ark_groth16::Proof<Bn254>) -> Self {
        Self { kind, points }
    }

    /// Reads 128 bytes: three points of the right subgroups, none neutral, in canonical form.
    pub fn from_bytes(kind: StatementKind, bytes: &[u8]) -> Result<Self, Error> {
        let malformed = |reason| Error::MalformedProof { statement: kind.name(), reason };
        if bytes.len() != PROOF_BYTES {
            return Err(malformed("it does not have 128 bytes"));
        }
        let points = ark_groth16::Proof::<Bn254>::deserialize_compressed(bytes)
            .map_err(|_| malformed("a point is not on its curve or not in its subgroup"))?;
        if points.a.is_zero() || points.b.is_zero() || points.c.is_zero() {
            return Err(malformed("a point is the neutral element"));
        }
        let proof = Self { kind, points };
        if proof.to_bytes() != bytes {
            return Err(malformed("a point is not in canonical form"));
        }
        Ok(proof)
    }

    /// The 128 bytes.
    pub fn to_bytes(&self) -> [u8; PROOF_BYTES] {
        let mut bytes = [0; PROOF_BYTES];
        self.points
            .serialize_compressed(&mut bytes[..])
            .expect("three compressed points have 128 bytes");
        bytes
    }

    /// Which statement it proves.
    pub fn kind(&self) -> StatementKind {
        self.kind
    }

    /// The three points.
    pub fn points(&self) -> &ark_groth16::Proof<Bn254> {
        &self.points
    }
}
