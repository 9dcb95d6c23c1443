//! The client's registered commitment and the commitment to its dataset type.

use ark_ec::CurveGroup;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::babyjubjub::{
    generator_g, generator_h, point_from_bytes, point_to_bytes, Point, Scalar, POINT_BYTES,
};
use crate::field::{self, field_newtype, secret_field_newtype};
use crate::hash::{hash, Domain};
use crate::identity::{DatasetDigest, DatasetType, MasterSecret};
use crate::Error;

secret_field_newtype!(
    /// The salt of a commitment.
    Salt,
    "the salt"
);

field_newtype!(
    /// comm = H(d, msk, dt, salt) (D-04): the client's leaf in the client tree.
    Commitment,
    "the commitment"
);

impl Commitment {
    /// comm = H(d, msk, dt, salt).
    pub fn new(d: DatasetDigest, msk: &MasterSecret, dt: DatasetType, salt: &Salt) -> Self {
        Self(hash(Domain::Commitment, &[d.element(), msk.element(), dt.element(), salt.element()]))
    }
}

/// ρ: the blinding of a dataset type commitment, fresh for every posting.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct TypeBlinding(Scalar);

impl TypeBlinding {
    /// Draws a fresh one, uniform modulo the group order, so that the commitment hides perfectly.
    pub fn generate(rng: &mut (impl rand::RngCore + rand::CryptoRng)) -> Self {
        Self(ark_ff::UniformRand::rand(rng))
    }

    /// Reads the canonical 32 bytes; anything else is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        field::from_bytes("the type blinding", bytes).map(Self)
    }

    /// The canonical 32 bytes. They are as secret as the value.
    pub fn to_secret_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(field::to_bytes(&self.0))
    }

    /// The scalar, for circuits and for the count proof.
    pub fn scalar(&self) -> Scalar {
        self.0
    }
}

impl std::fmt::Debug for TypeBlinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TypeBlinding(<redacted>)")
    }
}

/// dt·G + ρ·H on Baby Jubjub: the dataset type, committed to for one posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeCommitment(Point);

impl TypeCommitment {
    /// dt·G + ρ·H.
    pub fn new(dt: DatasetType, rho: &TypeBlinding) -> Self {
        Self((generator_g() * Scalar::from(dt.0) + generator_h() * rho.0).into_affine())
    }

    /// Reads x ‖ y; the point is in the prime-order subgroup.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        point_from_bytes("the dataset type commitment", bytes).map(Self)
    }

    /// x ‖ y.
    pub fn to_bytes(&self) -> [u8; POINT_BYTES] {
        point_to_bytes(&self.0)
    }

    /// The point.
    pub fn point(&self) -> Point {
        self.0
    }
}
