//! What the client knows (kept; wiped when dropped).

use curve25519_dalek::scalar::Scalar;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::count::CIPHERTEXT_BYTES;

/// A bit of a ballot with what opens it: U = k·G, V = k·Y + b·G.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct EncryptedBit {
    /// U ‖ V.
    #[zeroize(skip)]
    pub ciphertext: [u8; CIPHERTEXT_BYTES],
    /// k.
    pub k: Scalar,
    /// b, 0 or 1.
    pub one: u8,
}

/// Everything that opens a contribution.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Witness {
    /// s.
    pub secret: Vec<i64>,
    /// r.
    pub r: Scalar,
    /// k.
    pub k: Scalar,
    /// b, 0 or 1.
    pub one: u8,
    /// y = [c̃ − A·s]_q, centred; as long as the padded vector.
    pub y: Vec<i64>,
}
