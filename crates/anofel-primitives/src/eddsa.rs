//! A certifier's signature: EdDSA on Baby Jubjub with Poseidon, as iden3's circomlib verifies it.
//!
//! `S·B8 = R8 + 8·h·A` with `h = Poseidon(R8.x, R8.y, A.x, A.y, M)`. A and R8 must be in the
//! prime-order subgroup and A must not be the neutral element, so the factor 8 changes nothing
//! for accepted keys; it is there because iden3's equation has it. S is below the group order.
//!
//! Written here because the kept library for this curve (`taceo-eddsa-babyjubjub`) hashes with
//! Poseidon2, which circomlib's verifiers do not accept.

use ark_bn254::Fr;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::PrimeField;
use sha2::{Digest, Sha512};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::babyjubjub::{base8, point_from_bytes, point_to_bytes, Point, Scalar, POINT_BYTES};
use crate::field::{self, hash_to_field, FieldHash, FIELD_BYTES};
use crate::hash::{hash, Domain};
use crate::identity::{DatasetDigest, DatasetType, MasterPublicKey};
use crate::Error;

/// A signature on the wire: R8.x ‖ R8.y ‖ S.
pub const SIGNATURE_BYTES: usize = POINT_BYTES + FIELD_BYTES;

/// A certifier's signing key: 32 secret bytes.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct CertifierSecret([u8; 32]);

/// A: a certifier's public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CertifierKey(Point);

/// (R8, S): a certifier's signature over (d, mpk, dt). Only the client keeps it.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Certificate {
    r8: Point,
    s: Scalar,
}

/// (R8, S): a certifier's signature over a board, its identity there and its key. It shows that
/// the certifier knows the secret of the key. Without it somebody could offer a multiple of the
/// circuit's start point F as a key, and then anyone could sign in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Possession {
    r8: Point,
    s: Scalar,
}

impl CertifierSecret {
    /// Draws a fresh key.
    pub fn generate(rng: &mut (impl rand::RngCore + rand::CryptoRng)) -> Self {
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        Self(seed)
    }

    /// Restores a key from its 32 secret bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let seed = bytes.try_into().map_err(|_| Error::Length {
            what: "the certifier secret",
            expected: 32,
            found: bytes.len(),
        })?;
        Ok(Self(seed))
    }

    /// The 32 secret bytes.
    pub fn to_secret_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0)
    }

    /// The secret scalar: SHA-512 over a prefix and the seed, modulo the group order.
    fn scalar(&self) -> Zeroizing<Scalar> {
        Zeroizing::new(expand(b"anofel/1/certifier-scalar", &[&self.0]))
    }

    /// A = scalar·B8.
    pub fn public_key(&self) -> CertifierKey {
        CertifierKey((base8() * *self.scalar()).into_affine())
    }

    /// Signs (d, mpk, dt).
    pub fn certify(&self, d: DatasetDigest, mpk: MasterPublicKey, dt: DatasetType) -> Certificate {
        let (r8, s) = self.sign(message(d, mpk, dt));
        Certificate { r8, s }
    }

    /// Shows that this secret is known to whoever has an identity on a board.
    pub fn prove_possession(&self, genesis: [u8; 32], identity: [u8; 32]) -> Possession {
        let key = self.public_key();
        let (r8, s) = self.sign(key.possession_message(genesis, identity));
        Possession { r8, s }
    }

    /// Signs one field element. The nonce is a function of key and message, as in Ed25519.
    fn sign(&self, message: Fr) -> (Point, Scalar) {
        let r: Zeroizing<Scalar> = Zeroizing::new(expand(
            b"anofel/1/certifier-nonce",
            &[&self.0, &field::to_bytes(&message)],
        ));
        let r8 = (base8() * *r).into_affine();
        let h = challenge(&r8, &self.public_key().0, message);
        (r8, *r + Scalar::from(8u8) * h * *self.scalar())
    }
}

impl std::fmt::Debug for CertifierSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CertifierSecret(<redacted>)")
    }
}

impl CertifierKey {
    const NAME: &'static str = "the certifier key";

    /// Reads x ‖ y; the key is in the prime-order subgroup and not the neutral element.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let point = point_from_bytes(Self::NAME, bytes)?;
        if point.is_zero() {
            return Err(Error::Identity { what: Self::NAME });
        }
        Ok(Self(point))
    }

    /// x ‖ y.
    pub fn to_bytes(&self) -> [u8; POINT_BYTES] {
        point_to_bytes(&self.0)
    }

    /// The point, for circuits.
    pub fn point(&self) -> Point {
        self.0
    }

    /// The leaf of this key in the certifier tree: H(A.x, A.y).
    pub fn leaf(&self) -> Fr {
        hash(Domain::CertifierLeaf, &[self.0.x, self.0.y])
    }

    /// Checks a certificate over (d, mpk, dt).
    pub fn verify(
        &self,
        d: DatasetDigest,
        mpk: MasterPublicKey,
        dt: DatasetType,
        certificate: &Certificate,
    ) -> Result<(), Error> {
        self.verify_message(message(d, mpk, dt), certificate)
    }

    /// Checks a signature over one field element.
    pub fn verify_message(&self, message: Fr, certificate: &Certificate) -> Result<(), Error> {
        self.check(Certificate::NAME, message, certificate.r8, certificate.s)
    }

    /// Checks that the holder of an identity on a board knows the secret of this key.
    pub fn verify_possession(
        &self,
        genesis: [u8; 32],
        identity: [u8; 32],
        possession: &Possession,
    ) -> Result<(), Error> {
        let message = self.possession_message(genesis, identity);
        self.check(Possession::NAME, message, possession.r8, possession.s)
    }

    /// What a proof of possession signs.
    fn possession_message(&self, genesis: [u8; 32], identity: [u8; 32]) -> Fr {
        hash_to_field(FieldHash::CertifierPossession, &[&genesis, &identity, &self.to_bytes()])
    }

    fn check(&self, what: &'static str, message: Fr, r8: Point, s: Scalar) -> Result<(), Error> {
        let h = challenge(&r8, &self.0, message);
        let left = base8() * s;
        let right = self.0 * (Scalar::from(8u8) * h) + r8;
        if left == right {
            Ok(())
        } else {
            Err(Error::Signature { what })
        }
    }
}

impl Certificate {
    const NAME: &'static str = "the certificate";

    /// Reads R8.x ‖ R8.y ‖ S; R8 is in the prime-order subgroup, S is below the group order.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (r8, s) = read_signature(Self::NAME, bytes)?;
        Ok(Self { r8, s })
    }

    /// R8.x ‖ R8.y ‖ S. The client keeps these bytes secret: they name the certifier.
    pub fn to_secret_bytes(&self) -> Zeroizing<[u8; SIGNATURE_BYTES]> {
        Zeroizing::new(write_signature(&self.r8, &self.s))
    }

    /// R8, for circuits.
    pub fn r8(&self) -> Point {
        self.r8
    }

    /// S, for circuits.
    pub fn s(&self) -> Scalar {
        self.s
    }
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Certificate(<redacted>)")
    }
}

impl Possession {
    const NAME: &'static str = "the proof of possession";

    /// Reads R8.x ‖ R8.y ‖ S; R8 is in the prime-order subgroup, S is below the group order.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (r8, s) = read_signature(Self::NAME, bytes)?;
        Ok(Self { r8, s })
    }

    /// R8.x ‖ R8.y ‖ S.
    pub fn to_bytes(&self) -> [u8; SIGNATURE_BYTES] {
        write_signature(&self.r8, &self.s)
    }
}

fn read_signature(what: &'static str, bytes: &[u8]) -> Result<(Point, Scalar), Error> {
    if bytes.len() != SIGNATURE_BYTES {
        return Err(Error::Length { what, expected: SIGNATURE_BYTES, found: bytes.len() });
    }
    let (r8, s) = bytes.split_at(POINT_BYTES);
    Ok((point_from_bytes(what, r8)?, field::from_bytes(what, s)?))
}

fn write_signature(r8: &Point, s: &Scalar) -> [u8; SIGNATURE_BYTES] {
    let mut bytes = [0; SIGNATURE_BYTES];
    bytes[..POINT_BYTES].copy_from_slice(&point_to_bytes(r8));
    bytes[POINT_BYTES..].copy_from_slice(&field::to_bytes(s));
    bytes
}

/// What a certifier signs: M = H(d, mpk, dt).
fn message(d: DatasetDigest, mpk: MasterPublicKey, dt: DatasetType) -> Fr {
    hash(Domain::Certificate, &[d.element(), mpk.element(), dt.element()])
}

/// h = Poseidon(R8.x, R8.y, A.x, A.y, M), then modulo the group order.
fn challenge(r8: &Point, a: &Point, message: Fr) -> Scalar {
    let h = hash(Domain::Circomlib, &[r8.x, r8.y, a.x, a.y, message]);
    Scalar::from_le_bytes_mod_order(&field::to_bytes(&h))
}

/// SHA-512 over one length byte, the prefix and parts of fixed lengths, modulo the group order.
fn expand(prefix: &[u8], parts: &[&[u8]]) -> Scalar {
    let mut sha = Sha512::new();
    sha.update([prefix.len() as u8]);
    sha.update(prefix);
    for part in parts {
        sha.update(part);
    }
    let mut digest = sha.finalize();
    let scalar = Scalar::from_le_bytes_mod_order(&digest);
    digest.zeroize();
    scalar
}
