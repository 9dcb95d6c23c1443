//! Threshold keys on ristretto255: many at once, no dealer.
//!
//! [`dkg`] runs one FROST key generation per key. [`handover`] hands the same keys to other
//! members or other shares. [`dealing`] checks what a dealer sent, for both.

pub mod dealing;
pub mod dkg;
pub mod handover;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::check_range;
use crate::group::{
    base, decode_points, decode_scalars, encode_points, encode_scalars, lagrange, weighted_sum,
    ELEMENT_BYTES,
};
use crate::transcript::Transcript;
use crate::Error;

/// The largest committee.
pub const MAX_MEMBERS: u16 = 16;

/// How many keys, members, and shares to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many keys are made together.
    pub num_keys: usize,
    /// n.
    pub num_members: u16,
    /// t.
    pub threshold: u16,
}

impl Shape {
    /// Refuses n outside 2 … 16 and t outside ⌈(n+1)/2⌉ … n (D-09).
    pub fn new(num_keys: usize, num_members: u16, threshold: u16) -> Result<Self, Error> {
        check_range("the number of keys", num_keys as i128, 1, 1 << 16)?;
        check_range("the number of members", num_members.into(), 2, MAX_MEMBERS.into())?;
        let majority = (num_members + 2) / 2;
        check_range("the threshold", threshold.into(), majority.into(), num_members.into())?;
        Ok(Self { num_keys, num_members, threshold })
    }

    /// Refuses a member who does not exist.
    pub fn check_member(&self, member: u16) -> Result<(), Error> {
        check_range("the member", member.into(), 1, self.num_members.into())
    }

    /// 1 … n.
    pub fn members(&self) -> std::ops::RangeInclusive<u16> {
        1..=self.num_members
    }
}

/// Public keys X_j = x_j·G and every member's verification shares X_ij = x_ij·G.
#[derive(Clone)]
pub struct ThresholdKeys {
    shape: Shape,
    /// Row 0: the keys; row i: member i's verification shares.
    points: Vec<Vec<RistrettoPoint>>,
    encoded: Vec<Vec<[u8; ELEMENT_BYTES]>>,
}

impl ThresholdKeys {
    /// From rows of points: the keys, then each member's verification shares.
    pub(crate) fn from_rows(shape: Shape, points: Vec<Vec<RistrettoPoint>>) -> Self {
        let encoded = points.iter().map(|row| encode_points(row)).collect();
        Self { shape, points, encoded }
    }

    /// Reads and validates keys: canonical points, none neutral, and every row of n + 1 points
    /// on a polynomial of degree t − 1.
    pub fn from_bytes(shape: Shape, bytes: &[u8]) -> Result<Self, Error> {
        let rows = usize::from(shape.num_members) + 1;
        let flat = decode_points("the committee keys", rows * shape.num_keys, bytes)?;
        let points: Vec<Vec<RistrettoPoint>> =
            flat.chunks_exact(shape.num_keys).map(<[_]>::to_vec).collect();
        let (encoded, _) = bytes.as_chunks();
        let encoded = encoded.chunks_exact(shape.num_keys).map(<[_]>::to_vec).collect();
        let keys = Self { shape, points, encoded };
        keys.validate()?;
        Ok(keys)
    }

    fn validate(&self) -> Result<(), Error> {
        let neutral = RistrettoPoint::default();
        if self.points.iter().flatten().any(|point| *point == neutral) {
            return Err(Error::Neutral { what: "a committee key" });
        }
        let mut transcript = Transcript::new("anofel/1/committee/key-validation");
        for row in &self.encoded {
            transcript.points("row", row);
        }
        let weights = transcript.weights(self.shape.num_keys);
        let rows: Vec<RistrettoPoint> =
            self.points.par_iter().map(|row| weighted_sum(&weights, row)).collect();
        let chosen: Vec<u16> = (1..=self.shape.threshold).collect();
        let others = std::iter::once(0).chain(self.shape.threshold + 1..=self.shape.num_members);
        for at in others {
            let lambdas: Vec<Scalar> = chosen.iter().map(|&i| lagrange(&chosen, i, at)).collect();
            let expected = weighted_sum(&lambdas, &rows[1..=chosen.len()]);
            if expected != rows[usize::from(at)] {
                return Err(Error::Proof { what: "the degree of the committee's sharing" });
            }
        }
        Ok(())
    }

    /// The keys, then each member's verification shares.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encoded.iter().flatten().flatten().copied().collect()
    }

    /// How many keys, members, and shares to open.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// n.
    pub fn num_members(&self) -> u16 {
        self.shape.num_members
    }

    /// X_j for every j.
    pub fn public(&self) -> &[RistrettoPoint] {
        &self.points[0]
    }

    /// X_j for every j, encoded.
    pub fn encoded_public(&self) -> &[[u8; ELEMENT_BYTES]] {
        &self.encoded[0]
    }

    /// X_ij for every j, with encodings. The member exists.
    pub fn verification_shares(&self, member: u16) -> (&[RistrettoPoint], &[[u8; ELEMENT_BYTES]]) {
        (&self.points[usize::from(member)], &self.encoded[usize::from(member)])
    }
}

/// One member's x_ij for every j (kept).
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SecretShares {
    #[zeroize(skip)]
    member: u16,
    scalars: Zeroizing<Vec<Scalar>>,
}

impl SecretShares {
    pub(crate) fn new(member: u16, scalars: Zeroizing<Vec<Scalar>>) -> Self {
        Self { member, scalars }
    }

    /// Reads stored shares and checks each against its verification share.
    pub fn from_bytes(keys: &ThresholdKeys, member: u16, bytes: &[u8]) -> Result<Self, Error> {
        keys.shape().check_member(member)?;
        let scalars = decode_scalars("the secret shares", keys.shape().num_keys, bytes)?;
        let shares = Self { member, scalars };
        shares.check(keys)?;
        Ok(shares)
    }

    /// Refuses shares that do not belong to these keys: X_ij = x_ij·G for every j.
    pub fn check(&self, keys: &ThresholdKeys) -> Result<(), Error> {
        keys.shape().check_member(self.member)?;
        let (points, encoded) = keys.verification_shares(self.member);
        if points.len() != self.scalars.len() {
            return Err(Error::Proof { what: "the match of secret shares and committee key" });
        }
        let mut transcript = Transcript::new("anofel/1/committee/own-shares");
        transcript.points("verification shares", encoded).field("shares", &self.to_secret_bytes());
        let weights = transcript.weights(points.len());
        let sum: Zeroizing<Scalar> =
            Zeroizing::new(weights.iter().zip(self.scalars()).map(|(w, x)| w * x).sum());
        if base(&sum) == weighted_sum(&weights, points) {
            Ok(())
        } else {
            Err(Error::Proof { what: "the match of secret shares and committee key" })
        }
    }

    /// Whose shares they are.
    pub fn member(&self) -> u16 {
        self.member
    }

    /// x_ij for every j.
    pub fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    /// The secret bytes, for the key store only.
    pub fn to_secret_bytes(&self) -> Zeroizing<Vec<u8>> {
        encode_scalars(self.scalars.iter().copied())
    }
}

impl std::fmt::Debug for SecretShares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretShares(member {}, <redacted>)", self.member)
    }
}
