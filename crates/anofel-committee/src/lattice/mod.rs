//! The `lattice` scheme: ring-LWE masks whose secrets are encrypted to the committee.
//!
//! A client draws s and r, sends c = switch(a·s + e + μ(m)) and, for every coefficient s_j, the
//! vector ElGamal ciphertext R = r·G, C_j = r·pk_j + s_j·G. Anyone adds them. The committee
//! opens only Σ s_j, whose size does not depend on the model; with it anyone removes the mask.

mod codec;
mod combine;
mod contribution;
pub mod contribution_proof;
mod envelope;
mod logarithm;
mod share;
mod sum;

pub use codec::{guard_bits, sum_bits, Codec, Proven, MAX_WIRE_BITS};
pub use combine::combine;
pub use contribution::{public_seed, Checked, Post, Prepared, Submitted, WRAPPED_KEY_BYTES};
pub use contribution_proof::{EncryptedBit, Range, MAX_RANGES, PROOF_BYTES};
pub use envelope::{refused_envelopes, verify_envelope, ENVELOPE_BYTES};
pub use share::{partial_decrypt, verify_share, VerifiedShare, SHARE_BYTES};
pub use sum::{Accumulator, EncryptedSum};

/// Index of the count key among a lattice committee's keys: after the N keys of the coefficients.
pub const COUNT_KEY: usize = crate::ring::DEGREE;

/// Keys of a lattice committee: one per coefficient and one for the count.
pub const NUM_KEYS: usize = crate::ring::DEGREE + 1;
