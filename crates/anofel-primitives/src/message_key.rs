//! The Ed25519 key that signs one posting and is thrown away (D-05).

use ed25519_dalek::{Signature, SigningKey, VerifyingKey};

use crate::field::{hash_to_field, FieldHash};
use crate::prf::MessageKeyHash;
use crate::Error;

/// The secret half of a message key. The type wipes itself when dropped.
pub struct MessageSecret(SigningKey);

/// pk_sig: the public half of a message key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageKey(VerifyingKey);

impl MessageSecret {
    /// Draws a fresh key. One key signs one posting.
    pub fn generate(rng: &mut (impl rand::RngCore + rand::CryptoRng)) -> Self {
        let mut seed = zeroize::Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *seed);
        Self(SigningKey::from_bytes(&seed))
    }

    /// Restores a key from its 32 secret bytes, so that a stored posting can be signed again.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let seed = bytes.try_into().map_err(|_| Error::Length {
            what: "the message secret",
            expected: 32,
            found: bytes.len(),
        })?;
        Ok(Self(SigningKey::from_bytes(seed)))
    }

    /// The 32 secret bytes.
    pub fn to_secret_bytes(&self) -> zeroize::Zeroizing<[u8; 32]> {
        zeroize::Zeroizing::new(self.0.to_bytes())
    }

    /// pk_sig.
    pub fn public_key(&self) -> MessageKey {
        MessageKey(self.0.verifying_key())
    }

    /// Signs the bytes of a posting.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        use ed25519_dalek::Signer;
        self.0.sign(message).to_bytes()
    }
}

impl std::fmt::Debug for MessageSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MessageSecret(<redacted>)")
    }
}

impl MessageKey {
    const NAME: &'static str = "the message key";

    /// Reads 32 bytes; refuses what is not the canonical form of a point, and points of low order.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let array: &[u8; 32] = bytes.try_into().map_err(|_| Error::Length {
            what: Self::NAME,
            expected: 32,
            found: bytes.len(),
        })?;
        let key =
            VerifyingKey::from_bytes(array).map_err(|_| Error::NotOnCurve { what: Self::NAME })?;
        // Decompression accepts y ≥ p and a sign bit on x = 0; compressing again does not
        // return those bytes.
        if key.to_edwards().compress().to_bytes() != *array {
            return Err(Error::NotCanonical { what: Self::NAME });
        }
        if key.is_weak() {
            return Err(Error::NotInSubgroup { what: Self::NAME });
        }
        Ok(Self(key))
    }

    /// The canonical 32 bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// a = H(pk_sig).
    pub fn hash(&self) -> MessageKeyHash {
        MessageKeyHash(hash_to_field(FieldHash::MessageKey, &[&self.to_bytes()]))
    }

    /// Checks a signature by the strict rule: S below the group order, no point of low order,
    /// and the equation without cofactor.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        let signature = Signature::from_slice(signature).map_err(|_| Error::Length {
            what: "the signature",
            expected: 64,
            found: signature.len(),
        })?;
        self.0
            .verify_strict(message, &signature)
            .map_err(|_| Error::Signature { what: "the posting" })
    }
}
