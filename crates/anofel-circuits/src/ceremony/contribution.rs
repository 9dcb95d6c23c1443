//! A contribution to a key, with the proof that its author knew x (Bowe, Gabizon and Miers, 2017).
//!
//! The author draws x: δ in both groups is multiplied by x, L and H are divided by it. The proof: s
//! is random, sx = x·s, the challenge is BLAKE2b-512 over the circuit hash, all contributions before
//! it, s and sx; sp is the challenge hashed to G2, spx = x·sp.

use anofel_primitives::Fr;
use ark_bn254::{g1, g2, G1Affine, G2Affine};
use ark_ec::CurveGroup;
use ark_ff::{Field, UniformRand};
use blake2::{Blake2b512, Digest};
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use super::container::Reader;
use super::error::Error;
use super::points::{self, Curve};
use super::secret::Secret;
use super::stream::{hash_to_g2, Stream};
use super::zkey::Zkey;

pub(super) const PERSON: u32 = 0;
pub(super) const BEACON: u32 = 1;
const NAME: u8 = 1;
const EXPONENT: u8 = 2;
const VALUE: u8 = 3;
/// Names are at most this long.
pub const MAX_NAME: usize = 64;
/// A beacon is hashed 2^exponent times. Larger ones are not even tried: anybody could make a
/// verifier hash for years.
pub const MAX_EXPONENT: u8 = 20;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    /// δ in G1 after it.
    pub delta_after: G1Affine,
    /// s.
    pub s: G1Affine,
    /// x·s.
    pub sx: G1Affine,
    /// x·sp.
    pub spx: G2Affine,
    /// What sp is the hash of.
    pub challenge: [u8; 64],
    /// 0 for a person, 1 for a beacon.
    pub kind: u32,
    /// Its name and, for a beacon, its value and how often it is hashed; no hash covers them but
    /// the transcript's.
    pub parameters: Vec<u8>,
}

/// What parameters say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// What the author calls itself; nothing vouches for it.
    pub name: Option<String>,
    /// How often a beacon is hashed, as a power of two.
    pub exponent: Option<u8>,
    /// The value of a beacon.
    pub beacon: Option<Vec<u8>>,
}

impl Parameters {
    /// Reads parameters: a byte for the kind, then a byte, or a length and bytes.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut found = Self::default();
        let mut reader = Reader(bytes);
        while !reader.0.is_empty() {
            let [kind, number] = reader.array().ok()?;
            match kind {
                NAME if found.name.is_none() => {
                    let name = reader.take(number.into()).ok()?;
                    found.name = Some(String::from_utf8(name.to_vec()).ok()?);
                }
                EXPONENT if found.exponent.is_none() => found.exponent = Some(number),
                VALUE if found.beacon.is_none() => {
                    found.beacon = Some(reader.take(number.into()).ok()?.to_vec());
                }
                _ => return None,
            }
        }
        Some(found)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let sized = |kind, value: &[u8]| {
            let mut part = vec![kind, value.len() as u8];
            part.extend(value);
            part
        };
        bytes.extend(self.name.iter().flat_map(|name| sized(NAME, name.as_bytes())));
        bytes.extend(self.exponent.iter().flat_map(|exponent| [EXPONENT, *exponent]));
        bytes.extend(self.beacon.iter().flat_map(|value| sized(VALUE, value)));
        bytes
    }
}

impl Contribution {
    /// Whether it is a beacon; anything but a person or a beacon is nothing.
    pub fn is_beacon(&self) -> Option<bool> {
        match self.kind {
            PERSON => Some(false),
            BEACON => Some(true),
            _ => None,
        }
    }

    /// The hash by which people know a contribution.
    pub fn hash(&self) -> [u8; 64] {
        let mut hash = Blake2b512::new();
        self.hash_into(&mut hash);
        hash.finalize().into()
    }

    pub(super) fn hash_into(&self, hash: &mut Blake2b512) {
        for point in [&self.delta_after, &self.s, &self.sx] {
            hash.update(points::hashed(point));
        }
        hash.update(points::hashed(&self.spx));
        hash.update(self.challenge);
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        points::write(&[self.delta_after, self.s, self.sx], bytes);
        points::write(&[self.spx], bytes);
        bytes.extend(self.challenge);
        bytes.extend(self.kind.to_le_bytes());
        bytes.extend((self.parameters.len() as u32).to_le_bytes());
        bytes.extend(&self.parameters);
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, Error> {
        let wrong = |_| Error::SectionLength(10);
        let mut g1 = |name| {
            let bytes = reader.take(g1::Config::BYTES).map_err(wrong)?;
            points::read_one(bytes, name)
        };
        let (delta_after, s, sx) = (
            g1("δ after a contribution")?,
            g1("s of a contribution")?,
            g1("sx of a contribution")?,
        );
        let spx = reader.take(g2::Config::BYTES).map_err(wrong)?;
        let spx = points::read_one(spx, "spx of a contribution")?;
        let challenge = reader.array().map_err(wrong)?;
        let kind = reader.u32().map_err(wrong)?;
        let length = reader.u32().map_err(wrong)?;
        let parameters = reader.take(length as usize).map_err(wrong)?.to_vec();
        Ok(Self { delta_after, s, sx, spx, challenge, kind, parameters })
    }
}

/// The state of the hash that challenges are made from, after some contributions.
pub(super) fn log_hash(circuit_hash: &[u8; 64], contributions: &[Contribution]) -> Blake2b512 {
    let mut hash = Blake2b512::new();
    hash.update(circuit_hash);
    for contribution in contributions {
        contribution.hash_into(&mut hash);
    }
    hash
}

pub(super) fn challenge(log: &Blake2b512, s: &G1Affine, sx: &G1Affine) -> [u8; 64] {
    let mut hash = log.clone();
    hash.update(points::hashed(s));
    hash.update(points::hashed(sx));
    hash.finalize().into()
}

impl Zkey {
    /// Adds a person's contribution with an x of its own. Returns whether x was kept out of the
    /// swap file; x itself is gone.
    pub fn contribute(&mut self, name: &str) -> Result<bool, Error> {
        self.refuse_ended()?;
        let parameters = Parameters { name: Some(checked(name)?), ..Parameters::default() };
        let x = Secret::draw();
        let s = G1Affine::rand(&mut OsRng);
        self.apply(x.expose(), s, PERSON, parameters.to_bytes());
        Ok(x.is_locked())
    }

    /// Adds the contribution of a beacon, which anybody can repeat.
    pub fn add_beacon(&mut self, beacon: &[u8], exponent: u8, name: &str) -> Result<(), Error> {
        self.refuse_ended()?;
        if !(16..=255).contains(&beacon.len()) || exponent > MAX_EXPONENT {
            return Err(Error::BeaconLength);
        }
        let parameters = Parameters {
            name: Some(checked(name)?),
            exponent: Some(exponent),
            beacon: Some(beacon.to_vec()),
        };
        let (x, s) = beacon_points(beacon, exponent);
        self.apply(&x, s, BEACON, parameters.to_bytes());
        Ok(())
    }

    fn refuse_ended(&self) -> Result<(), Error> {
        if self.contributions.iter().any(|c| c.kind == BEACON) {
            return Err(Error::Ended);
        }
        Ok(())
    }

    fn apply(&mut self, x: &Fr, s: G1Affine, kind: u32, parameters: Vec<u8>) {
        let sx = (s * x).into_affine();
        let challenge = challenge(&log_hash(&self.circuit_hash, &self.contributions), &s, &sx);
        let spx = (hash_to_g2(&challenge) * x).into_affine();
        self.delta_g1 = (self.delta_g1 * x).into_affine();
        self.delta_g2 = (self.delta_g2 * x).into_affine();
        let inverse = x.inverse().expect("x is not 0");
        let most = self.l.len().max(self.h.len());
        let inverse = Zeroizing::new(vec![inverse; most]);
        self.l = points::scale(&self.l, &inverse);
        self.h = points::scale(&self.h, &inverse);
        let delta_after = self.delta_g1;
        let made = Contribution { delta_after, s, sx, spx, challenge, kind, parameters };
        self.contributions.push(made);
    }
}

/// x and s of a beacon.
pub(super) fn beacon_points(beacon: &[u8], exponent: u8) -> (Fr, G1Affine) {
    let mut stream = Stream::of_beacon(beacon, exponent);
    (stream.scalar(), stream.g1())
}

pub(super) fn checked(name: &str) -> Result<String, Error> {
    if !(1..=MAX_NAME).contains(&name.len()) || name.chars().any(char::is_control) {
        return Err(Error::Name);
    }
    Ok(name.to_owned())
}
