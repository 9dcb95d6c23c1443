//! Field elements at the border: bytes in and out, and hashing bytes to the field.

use ark_bn254::Fr;
use ark_ff::{BigInteger, PrimeField};
use sha2::{Digest, Sha512};

use crate::Error;

/// A field element on the wire: 32 bytes, little-endian, below the modulus.
pub const FIELD_BYTES: usize = 32;

/// Reads 32 little-endian bytes and refuses an integer that is not below the modulus.
pub fn from_bytes<F: PrimeField>(what: &'static str, bytes: &[u8]) -> Result<F, Error> {
    if bytes.len() != FIELD_BYTES {
        return Err(Error::Length { what, expected: FIELD_BYTES, found: bytes.len() });
    }
    let value = F::from_le_bytes_mod_order(bytes);
    // Reduction changed the bytes exactly when they were not canonical.
    if to_bytes(&value) == bytes {
        Ok(value)
    } else {
        Err(Error::NotCanonical { what })
    }
}

/// Writes a field element as 32 little-endian bytes.
pub fn to_bytes<F: PrimeField>(value: &F) -> [u8; FIELD_BYTES] {
    let mut bytes = [0; FIELD_BYTES];
    bytes.copy_from_slice(&value.into_bigint().to_bytes_le()[..FIELD_BYTES]);
    bytes
}

/// What a hash to the field is used for; each use has its own prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldHash {
    /// a = H(pk_sig).
    MessageKey,
    /// E = H(genesis, epoch).
    Epoch,
    /// scope = H(genesis, bundle, iteration).
    Scope,
    /// The challenge a certifier sets for an ownership proof.
    OwnershipChallenge,
    /// d, the digest of a canonical dataset.
    Dataset,
    /// What a certifier signs to show that it knows the secret of its key.
    CertifierPossession,
    /// The nothing-up-my-sleeve points.
    Generator,
}

impl FieldHash {
    const fn prefix(self) -> &'static str {
        match self {
            Self::MessageKey => "anofel/1/message-key",
            Self::Epoch => "anofel/1/epoch",
            Self::Scope => "anofel/1/scope",
            Self::OwnershipChallenge => "anofel/1/ownership-challenge",
            Self::Dataset => "anofel/1/dataset",
            Self::CertifierPossession => "anofel/1/certifier-possession",
            Self::Generator => "anofel/1/generator",
        }
    }
}

/// Hashes bytes to the field as they arrive: SHA-512 over one length byte, the prefix of the
/// use, and the data; the 64 bytes of the digest, read as a little-endian integer, modulo r.
///
/// The distance from uniform is below 2^-257.
pub struct FieldHasher(Sha512);

impl FieldHasher {
    /// Starts a hash for one use.
    pub fn new(using: FieldHash) -> Self {
        let prefix = using.prefix();
        let mut sha = Sha512::new();
        sha.update([prefix.len() as u8]);
        sha.update(prefix);
        Self(sha)
    }

    /// Adds bytes. Several fields must each have a fixed length, so that no two inputs collide.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Ends the hash.
    pub fn finish(self) -> Fr {
        Fr::from_le_bytes_mod_order(&self.0.finalize())
    }
}

/// Hashes parts of fixed lengths to the field; see [`FieldHasher`].
pub fn hash_to_field(using: FieldHash, parts: &[&[u8]]) -> Fr {
    let mut hasher = FieldHasher::new(using);
    for part in parts {
        hasher.update(part);
    }
    hasher.finish()
}

/// Declares a public value that is one field element: canonical bytes in, canonical bytes out.
macro_rules! field_newtype {
    ($(#[$meta:meta])* $name:ident, $what:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub(crate) ark_bn254::Fr);

        impl $name {
            /// What error messages call this value.
            pub const NAME: &'static str = $what;

            /// Reads the canonical 32 bytes; anything else is refused.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, $crate::Error> {
                $crate::field::from_bytes($what, bytes).map(Self)
            }

            /// The canonical 32 bytes.
            pub fn to_bytes(&self) -> [u8; $crate::field::FIELD_BYTES] {
                $crate::field::to_bytes(&self.0)
            }

            /// The field element itself, for circuits.
            pub fn element(&self) -> ark_bn254::Fr {
                self.0
            }
        }
    };
}
pub(crate) use field_newtype;

/// Declares a secret value that is one field element: like [`field_newtype`], but it is drawn
/// from the operating system, never printed, and wiped when dropped.
macro_rules! secret_field_newtype {
    ($(#[$meta:meta])* $name:ident, $what:literal) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
        pub struct $name(pub(crate) ark_bn254::Fr);

        impl $name {
            /// What error messages call this value.
            pub const NAME: &'static str = $what;

            /// Draws a fresh one, uniform in the field.
            pub fn generate(rng: &mut (impl rand::RngCore + rand::CryptoRng)) -> Self {
                Self(ark_ff::UniformRand::rand(rng))
            }

            /// Reads the canonical 32 bytes; anything else is refused.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, $crate::Error> {
                $crate::field::from_bytes($what, bytes).map(Self)
            }

            /// The canonical 32 bytes. They are as secret as the value.
            pub fn to_secret_bytes(&self) -> zeroize::Zeroizing<[u8; $crate::field::FIELD_BYTES]> {
                zeroize::Zeroizing::new($crate::field::to_bytes(&self.0))
            }

            /// The field element itself, for circuits. It is as secret as the value.
            pub fn element(&self) -> ark_bn254::Fr {
                self.0
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(<redacted>)"))
            }
        }
    };
}
pub(crate) use secret_field_newtype;
