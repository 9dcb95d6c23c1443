//! Adding and opening encrypted bits (steps 7 and 8).

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rand::{CryptoRng, RngCore};

use super::ballot::{Ciphertext, CIPHERTEXT_BYTES};
use crate::equality::{Statement, PROOF_BYTES};
use crate::error::check_length;
use crate::group::{base, decode_point, lagrange, small_scalar, weighted_sum, ELEMENT_BYTES};
use crate::transcript::Transcript;
use crate::Error;

/// y_i·ΣU and its proof.
pub const COUNT_SHARE_BYTES: usize = ELEMENT_BYTES + PROOF_BYTES;

/// A running sum of encrypted bits.
#[derive(Clone, Copy)]
pub struct Tally(Ciphertext);

impl Default for Tally {
    fn default() -> Self {
        Self(Ciphertext { u: RistrettoPoint::identity(), v: RistrettoPoint::identity() })
    }
}

impl Tally {
    /// Adds U ‖ V.
    pub fn add(&mut self, ciphertext: &[u8]) -> Result<(), Error> {
        let ciphertext = Ciphertext::from_bytes(ciphertext)?;
        self.0.u += ciphertext.u;
        self.0.v += ciphertext.v;
        Ok(())
    }

    /// ΣU ‖ ΣV.
    pub fn to_bytes(&self) -> [u8; CIPHERTEXT_BYTES] {
        self.0.to_bytes()
    }

    /// Reads ΣU ‖ ΣV.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Ciphertext::from_bytes(bytes).map(Self)
    }
}

/// A member's share y_i·ΣU with the proof that it is right.
pub fn count_share(
    tally: &Tally,
    member: u16,
    secret: &Scalar,
    context: &[u8],
    rng: &mut (impl RngCore + CryptoRng),
) -> [u8; COUNT_SHARE_BYTES] {
    let share = tally.0.u * secret;
    let proof = statement(tally, member, &base(secret), &share, context, |statement| {
        statement.prove(std::slice::from_ref(secret), rng)
    });
    let mut bytes = [0; COUNT_SHARE_BYTES];
    bytes[..ELEMENT_BYTES].copy_from_slice(share.compress().as_bytes());
    bytes[ELEMENT_BYTES..].copy_from_slice(&proof);
    bytes
}

/// A share that was checked, parsed.
pub struct VerifiedCountShare {
    /// Its author.
    pub member: u16,
    point: RistrettoPoint,
    tally: [u8; CIPHERTEXT_BYTES],
}

/// Checks a member's share against its verification share Y_i.
pub fn verify_count_share(
    tally: &Tally,
    member: u16,
    verification_share: &[u8],
    context: &[u8],
    share: &[u8],
) -> Result<VerifiedCountShare, Error> {
    let check = || {
        check_length("the share of the count", COUNT_SHARE_BYTES, share.len())?;
        let (point, proof) = share.split_at(ELEMENT_BYTES);
        let point = decode_point("the share of the count", point)?;
        let key = decode_point("the verification share", verification_share)?;
        statement(tally, member, &key, &point, context, |statement| statement.verify(proof))?;
        Ok(VerifiedCountShare { member, point, tally: tally.to_bytes() })
    };
    check().map_err(|error: Error| error.by(member))
}

/// The count from t shares of different members: the c in 0 … max with
/// ΣV − Σ λ_i·(share i) = c·G.
pub fn combine_count(
    tally: &Tally,
    shares: &[&VerifiedCountShare],
    max: u32,
) -> Result<u32, Error> {
    if let Some(share) = shares.iter().find(|share| share.tally != tally.to_bytes()) {
        let what = "the share was checked for another count";
        return Err(Error::Members { what }.by(share.member));
    }
    let members: Vec<u16> = shares.iter().map(|share| share.member).collect();
    let points: Vec<RistrettoPoint> = shares.iter().map(|share| share.point).collect();
    let weights: Vec<Scalar> =
        members.iter().map(|&member| -lagrange(&members, member, 0)).collect();
    let opened = tally.0.v + weighted_sum(&weights, &points);
    let one = base(&small_scalar(1));
    let mut candidate = RistrettoPoint::identity();
    for count in 0..=max {
        if candidate == opened {
            return Ok(count);
        }
        candidate += one;
    }
    Err(Error::Undecodable { why: "the count is larger than the number of posts" })
}

fn statement<T>(
    tally: &Tally,
    member: u16,
    key: &RistrettoPoint,
    share: &RistrettoPoint,
    context: &[u8],
    then: impl FnOnce(&Statement<'_>) -> T,
) -> T {
    let mut transcript = Transcript::new("anofel/1/committee/count-share");
    transcript
        .number("member", member.into())
        .field("tally", &tally.to_bytes())
        .field("context", context);
    let context = transcript.bytes();
    then(&Statement {
        context: &context,
        base: &tally.0.u,
        keys: std::slice::from_ref(key),
        encoded_keys: &[key.compress().to_bytes()],
        shares: std::slice::from_ref(share),
        encoded_shares: &[share.compress().to_bytes()],
    })
}
