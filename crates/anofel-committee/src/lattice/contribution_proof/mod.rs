//! The contribution proof: one short proof that a payload is what its count bit says.
//!
//! c̃ is the sent word lifted back to Z_q, s the secret that C and R fix, y = [c̃ − A·s]_q what the
//! post adds to the sum, b the bit that the ballot encrypts. The proof shows
//! 1. ‖s‖ ≤ 573, so that sums of secrets stay in the table of logarithms, and
//! 2. ‖y‖ ≤ 2.85·B_b: an update's norm where the bit is 1, rounding alone where it is 0.
//!
//! Steps; every challenge covers all that came before it:
//! 1. T, τ ∈ {−1, 0, 1} with probabilities ¼, ½, ¼; z = T·y and w = τ·s, 256 numbers each.
//! 2. X₁ commits to z, w, and the bits of K = β_b² − Σz² and of K_w = β_w² − Σw².
//! 3. ρ¹, ρ², ρ³ ∈ Z_q^256; f = Tᵀρ, U = ⟨f, c̃⟩, V = Aᵀf; h = (⟨ρ, z⟩ + ⟨V, s⟩ − U)/q is exact.
//! 4. X₂ commits to h and to 128 masks g below 2^116.
//! 5. M ∈ {0, 1}^(128×515); p = M·(z, w, h) + g is shown and within [2^60, 2^116 − 2^60).
//! 6. One linear equation for the relations modulo q, w = τ·s and p; one quadratic equation for
//!    the two norms and the bits; random weights of 128 bits.
//! 7. Schnorr responses c·x + m for all of it.
//!
//! A task may add [`ranges`] of single coordinates: more entries of X₁ and more relations of step 6.
//!
//! `docs/contribution-proof.md` has the lemma, the error budget, and what is not achieved.

mod bounds;
mod challenges;
mod equations;
mod fold;
mod proof;
mod prover;
mod ranges;
mod statement;
mod verifier;
mod witness;

#[cfg(test)]
mod range_tests;
#[cfg(test)]
mod tests;

pub(super) use bounds::{norm_with_rounding, slack};
pub use bounds::{Bounds, MAX_SECRET};
pub(super) use proof::proof_bytes;
pub use proof::PROOF_BYTES;
pub use prover::prove;
pub(super) use ranges::{entries, intervals, Interval};
pub use ranges::{Range, MAX_RANGES};
pub use statement::{Matrix, Statement};
pub use verifier::{refused, Claim};
pub use witness::{EncryptedBit, Witness};

/// Rows of T and τ.
const ROWS: usize = 256;

/// Bytes of one column of T: a bit for each row, once for plus and once for minus.
const ROW_BYTES: usize = ROWS / 8;

/// Relations modulo q.
const RELATIONS: usize = 3;

/// Bits of K: β_b² < 2^92.
const NORM_BITS: usize = 92;

/// Bits of K_w: β_w² < 2^24.
const SECRET_BITS: usize = 24;

/// Rows of M.
const RANGE_ROWS: usize = 128;

/// Masks g lie below 2^116.
const MASK_BITS: u32 = 116;

/// p keeps this distance from both ends of the masks' range, so that it hides what it masks.
const MARGIN: u128 = 1 << 60;

/// Entries of X₁ without ranges: z, w, the bits of K, the bits of K_w.
const FIRST: usize = 2 * ROWS + NORM_BITS + SECRET_BITS;

/// Entries of X₂: h, then the masks.
const SECOND: usize = RELATIONS + RANGE_ROWS;

/// Columns of M without ranges: z, w, h.
const COLUMNS: usize = 2 * ROWS + RELATIONS;

/// Columns of M that are drawn: those of the quotients k of ranges come last.
const DRAWN_COLUMNS: usize = COLUMNS.div_ceil(32) * 32;

const _: () = assert!(COLUMNS + MAX_RANGES <= DRAWN_COLUMNS);
