//! The same keys for a new committee, or new shares for the same one.
//!
//! The FROST crate refreshes shares of an unchanged committee only, so this is written here.
//! 1. Dealer i of a quorum S of t old members draws, per key, a polynomial f of degree t' − 1
//!    with f(0) = λ_i·x_i, where λ_i is its Lagrange weight in S, and publishes commitments.
//! 2. Anyone checks A_0 = λ_i·X_i, so that no dealer changes the key.
//! 3. Receiver j checks f(j) against the commitments and adds what all dealers sent.

use curve25519_dalek::scalar::Scalar;
use rand::{CryptoRng, RngCore};
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::dealing::{summed_keys, Dealing};
use super::{SecretShares, Shape, ThresholdKeys};
use crate::group::{
    base, encode_points, encode_scalars, evaluate, lagrange, random_scalar, weighted_sum,
};
use crate::transcript::Transcript;
use crate::Error;

/// What a dealer publishes, and the secret shares for members 1 … n' in order.
pub type Dealt = (Vec<u8>, Vec<Zeroizing<Vec<u8>>>);

/// Deals a member's shares to the new committee.
pub fn deal(
    old: &ThresholdKeys,
    shares: &SecretShares,
    dealers: &[u16],
    new: Shape,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<Dealt, Error> {
    check_dealers(old, dealers, shares.member())?;
    shares.check(old)?;
    let weight = lagrange(dealers, shares.member(), 0);
    let polynomials: Zeroizing<Vec<Vec<Scalar>>> = Zeroizing::new(
        shares
            .scalars()
            .iter()
            .map(|share| {
                let rest = (1..new.threshold).map(|_| random_scalar(rng));
                std::iter::once(weight * share).chain(rest).collect()
            })
            .collect(),
    );
    let commitments: Vec<_> = polynomials.par_iter().flatten().map(base).collect();
    let dealt = new
        .members()
        .map(|member| encode_scalars(polynomials.iter().map(|f| evaluate(f, member))))
        .collect();
    Ok((encode_points(&commitments).into_flattened(), dealt))
}

/// Reads a dealer's commitments and checks A_0 = λ_i·X_i for every key.
pub fn check_dealing(
    old: &ThresholdKeys,
    dealers: &[u16],
    dealer: u16,
    new: Shape,
    commitments: &[u8],
) -> Result<Dealing, Error> {
    let check = || {
        check_dealers(old, dealers, dealer)?;
        let dealing = Dealing::from_bytes(new, commitments)?;
        let (points, encoded) = old.verification_shares(dealer);
        let mut transcript = Transcript::new("anofel/1/committee/handover-dealing");
        transcript.points("verification shares", encoded).field("commitments", commitments);
        let weights = transcript.weights(points.len());
        let expected = weighted_sum(&weights, points) * lagrange(dealers, dealer, 0);
        let constants: Vec<_> = dealing.constants().map(|(point, _)| point).collect();
        if weighted_sum(&weights, &constants) == expected {
            Ok(dealing)
        } else {
            Err(Error::Proof { what: "the match of the dealt secret with the dealer's own share" })
        }
    };
    check().map_err(|error: Error| error.by(dealer))
}

/// The keys after all dealings; the public keys are the old ones.
pub fn new_keys(
    old: &ThresholdKeys,
    new: Shape,
    dealings: &[&Dealing],
) -> Result<ThresholdKeys, Error> {
    let keys = summed_keys(new, dealings);
    if keys.encoded_public() == old.encoded_public() {
        Ok(keys)
    } else {
        Err(Error::Proof { what: "the unchanged public key" })
    }
}

/// A receiver's new shares: the sum of what the dealers sent, checked.
pub fn receive(
    keys: &ThresholdKeys,
    member: u16,
    dealt: &[impl AsRef<[Scalar]>],
) -> Result<SecretShares, Error> {
    let scalars = (0..keys.shape().num_keys)
        .map(|key| dealt.iter().map(|shares| shares.as_ref()[key]).sum())
        .collect();
    let shares = SecretShares::new(member, Zeroizing::new(scalars));
    shares.check(keys)?;
    Ok(shares)
}

fn check_dealers(old: &ThresholdKeys, dealers: &[u16], dealer: u16) -> Result<(), Error> {
    let ascending = dealers.windows(2).all(|pair| pair[0] < pair[1]);
    let exist = dealers.iter().all(|&member| old.shape().check_member(member).is_ok());
    if dealers.len() != usize::from(old.shape().threshold) || !ascending || !exist {
        return Err(Error::Members { what: "the dealers are not t old members in order" });
    }
    if dealers.contains(&dealer) {
        Ok(())
    } else {
        Err(Error::Members { what: "the dealer is not one of those agreed" })
    }
}
