//! A member's share of a sum (step 8): x_j·ΣR for every coefficient, with one proof for all.

use curve25519_dalek::ristretto::{RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use rand::{CryptoRng, RngCore};
use rayon::prelude::*;
use zeroize::Zeroize;

use super::sum::EncryptedSum;
use crate::equality::{Statement, PROOF_BYTES};
use crate::error::{check_length, check_range};
use crate::group::{decode_points, encode_doubles, half, ELEMENT_BYTES};
use crate::keys::{SecretShares, ThresholdKeys};
use crate::ring::DEGREE;
use crate::transcript::Transcript;
use crate::Error;

/// D_0 … D_{N−1} and the proof.
pub const SHARE_BYTES: usize = DEGREE * ELEMENT_BYTES + PROOF_BYTES;

/// A share that was checked, parsed.
pub struct VerifiedShare {
    /// Its author.
    pub member: u16,
    pub(super) points: Vec<RistrettoPoint>,
}

/// D_j = x_j·ΣR and the proof, bound to the context.
pub fn partial_decrypt(
    keys: &ThresholdKeys,
    secrets: &SecretShares,
    total: &EncryptedSum,
    context: &[u8],
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<Vec<u8>, Error> {
    let scalars = &secrets.scalars()[..DEGREE];
    let table = RistrettoBasepointTable::create(&total.r);
    let mut halves: Vec<Scalar> = scalars.par_iter().map(half).collect();
    let half_points: Vec<RistrettoPoint> =
        halves.par_iter().with_min_len(16).map(|x| &table * x).collect();
    halves.zeroize();
    let encoded = encode_doubles(&half_points);
    let points: Vec<RistrettoPoint> = half_points.iter().map(|point| point + point).collect();
    let proof =
        statement(keys, secrets.member(), total, context, &points, &encoded, |statement| {
            statement.prove(scalars, rng)
        })?;
    let mut share = encoded.as_flattened().to_vec();
    share.extend_from_slice(&proof);
    Ok(share)
}

/// Checks a member's share against its verification shares.
pub fn verify_share(
    keys: &ThresholdKeys,
    total: &EncryptedSum,
    context: &[u8],
    member: u16,
    share: &[u8],
) -> Result<VerifiedShare, Error> {
    let check = || {
        check_length("the share of the sum", SHARE_BYTES, share.len())?;
        let (encoded, proof) = share.split_at(DEGREE * ELEMENT_BYTES);
        let points = decode_points("the share of the sum", DEGREE, encoded)?;
        let (encoded, _) = encoded.as_chunks();
        statement(keys, member, total, context, &points, encoded, |statement| {
            statement.verify(proof)
        })??;
        Ok(VerifiedShare { member, points })
    };
    check().map_err(|error: Error| error.by(member))
}

fn statement<T>(
    keys: &ThresholdKeys,
    member: u16,
    total: &EncryptedSum,
    context: &[u8],
    shares: &[RistrettoPoint],
    encoded_shares: &[[u8; ELEMENT_BYTES]],
    then: impl FnOnce(&Statement<'_>) -> T,
) -> Result<T, Error> {
    check_range("the member", member.into(), 1, keys.num_members().into())?;
    let mut transcript = Transcript::new("anofel/1/committee/lattice/share");
    transcript.number("member", member.into()).field("context", context);
    let context = transcript.bytes();
    let (points, encoded) = keys.verification_shares(member);
    Ok(then(&Statement {
        context: &context,
        base: &total.r,
        keys: &points[..DEGREE],
        encoded_keys: &encoded[..DEGREE],
        shares,
        encoded_shares,
    }))
}
