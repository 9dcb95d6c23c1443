//! The proof as it travels: salt, ten points, p, responses.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::MultiscalarMul;
use sha2::{Digest, Sha512};
use std::sync::OnceLock;

use super::ranges::MAX_RANGES;
use super::{FIRST, MARGIN, MASK_BITS, RANGE_ROWS, SECOND};
use crate::error::{check_length, check_range};
use crate::group::{decode_points, decode_scalar, ELEMENT_BYTES};
use crate::ring::MODULUS_BITS;
use crate::transcript::Transcript;
use crate::Error;

const SALT_BYTES: usize = 32;
const POINTS: usize = 10;
const SHOWN_BYTES: usize = 15;
const SCALARS: usize = FIRST + SECOND + 6;

/// Bytes of a proof without ranges.
pub const PROOF_BYTES: usize =
    SALT_BYTES + POINTS * ELEMENT_BYTES + RANGE_ROWS * SHOWN_BYTES + SCALARS * ELEMENT_BYTES;

/// Bytes of a proof whose ranges add so many entries.
pub(in crate::lattice) fn proof_bytes(entries: usize) -> usize {
    PROOF_BYTES + entries * ELEMENT_BYTES
}

/// The first messages of the last step, in the order of the equations they belong to.
pub(super) struct FirstMessages {
    /// Of X₁'s opening.
    pub(super) first: RistrettoPoint,
    /// Of X₂'s opening.
    pub(super) second: RistrettoPoint,
    /// Of the linear equation.
    pub(super) linear: RistrettoPoint,
    /// Of R = r·G.
    pub(super) r: RistrettoPoint,
    /// Of U = k·G.
    pub(super) u: RistrettoPoint,
    /// Of V = k·Y + b·G.
    pub(super) v: RistrettoPoint,
    /// E₁ and E₀: the cross terms of the quadratic equation.
    pub(super) cross: [RistrettoPoint; 2],
}

impl FirstMessages {
    fn points(&self) -> [&RistrettoPoint; 8] {
        let [one, zero] = &self.cross;
        [&self.first, &self.second, &self.linear, &self.r, &self.u, &self.v, one, zero]
    }
}

/// Responses c·x + m.
pub(super) struct Responses {
    pub(super) first: Vec<Scalar>,
    pub(super) second: Vec<Scalar>,
    /// Of the blindings of X₁ and X₂.
    pub(super) blindings: [Scalar; 2],
    pub(super) r: Scalar,
    pub(super) k: Scalar,
    pub(super) bit: Scalar,
    /// Of the blindings of E₁ and E₀.
    pub(super) cross: Scalar,
}

pub(super) struct Proof {
    pub(super) salt: [u8; SALT_BYTES],
    /// X₁ and X₂.
    pub(super) commitments: [RistrettoPoint; 2],
    /// p.
    pub(super) shown: Vec<u128>,
    pub(super) messages: FirstMessages,
    pub(super) responses: Responses,
}

impl Proof {
    /// Salt ‖ X₁ ‖ X₂ ‖ first messages ‖ p ‖ responses.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(proof_bytes(self.responses.first.len() - FIRST));
        bytes.extend_from_slice(&self.salt);
        for point in self.commitments.iter().chain(self.messages.points()) {
            bytes.extend_from_slice(point.compress().as_bytes());
        }
        for value in &self.shown {
            bytes.extend_from_slice(&value.to_le_bytes()[..SHOWN_BYTES]);
        }
        let answers = &self.responses;
        let last = [answers.r, answers.k, answers.bit, answers.cross];
        for scalar in answers.first.iter().chain(&answers.second).chain(&answers.blindings) {
            bytes.extend_from_slice(scalar.as_bytes());
        }
        last.iter().for_each(|scalar| bytes.extend_from_slice(scalar.as_bytes()));
        bytes
    }

    /// Reads a proof whose ranges add so many entries.
    ///
    /// 1. It has its exact length.
    /// 2. Points and scalars are canonical.
    /// 3. Every p is within [2^60, 2^116 − 2^60).
    pub(super) fn from_bytes(entries: usize, bytes: &[u8]) -> Result<Self, Error> {
        let what = "the contribution proof";
        check_length(what, proof_bytes(entries), bytes.len())?;
        let (salt, rest) = bytes.split_at(SALT_BYTES);
        let (points, rest) = rest.split_at(POINTS * ELEMENT_BYTES);
        let (shown, rest) = rest.split_at(RANGE_ROWS * SHOWN_BYTES);
        let points = decode_points(what, POINTS, points)?;
        let shown = shown.chunks_exact(SHOWN_BYTES).map(read_shown).collect::<Result<_, _>>()?;
        let mut scalars = rest
            .chunks_exact(ELEMENT_BYTES)
            .map(|scalar| decode_scalar(what, scalar))
            .collect::<Result<Vec<_>, _>>()?;
        let tail = scalars.split_off(FIRST + entries + SECOND);
        let second = scalars.split_off(FIRST + entries);
        let mut fixed_salt = [0; SALT_BYTES];
        fixed_salt.copy_from_slice(salt);
        Ok(Self {
            salt: fixed_salt,
            commitments: [points[0], points[1]],
            shown,
            messages: FirstMessages {
                first: points[2],
                second: points[3],
                linear: points[4],
                r: points[5],
                u: points[6],
                v: points[7],
                cross: [points[8], points[9]],
            },
            responses: Responses {
                first: scalars,
                second,
                blindings: [tail[0], tail[1]],
                r: tail[2],
                k: tail[3],
                bit: tail[4],
                cross: tail[5],
            },
        })
    }
}

fn read_shown(bytes: &[u8]) -> Result<u128, Error> {
    let mut word = [0; 16];
    word[..SHOWN_BYTES].copy_from_slice(bytes);
    let value = u128::from_le_bytes(word);
    check_shown(value)?;
    Ok(value)
}

/// Refuses a p outside [2^60, 2^116 − 2^60).
pub(super) fn check_shown(value: u128) -> Result<(), Error> {
    let most = (1i128 << MASK_BITS) - MARGIN as i128 - 1;
    check_range("a masked sum of the contribution proof", value as i128, MARGIN as i128, most)
}

/// Covers p.
pub(super) fn cover_shown(transcript: &mut Transcript, shown: &[u128]) {
    let bytes: Vec<u8> =
        shown.iter().flat_map(|p| p.to_le_bytes().into_iter().take(SHOWN_BYTES)).collect();
    transcript.field("masked sums", &bytes);
}

/// Covers one commitment.
pub(super) fn cover_commitment(transcript: &mut Transcript, point: &RistrettoPoint) {
    transcript.field("commitment", point.compress().as_bytes());
}

/// The last challenge.
pub(super) fn last_challenge(transcript: &Transcript, messages: &FirstMessages) -> Scalar {
    let mut transcript = transcript.clone();
    let points = messages.points().map(|point| point.compress().to_bytes());
    transcript.points("first messages", &points);
    transcript.scalar()
}

/// Generators whose relations nobody knows.
pub(super) struct Generators {
    /// Those of x₁ without ranges, then those of x₂.
    pub(super) points: Vec<RistrettoPoint>,
    /// H.
    pub(super) blinding: RistrettoPoint,
}

/// The map of SHA-512(tag ‖ number).
fn generator(number: usize) -> RistrettoPoint {
    let mut hash = Sha512::new();
    hash.update(b"anofel/1/committee/lattice/contribution/generator");
    hash.update((number as u64).to_le_bytes());
    RistrettoPoint::from_uniform_bytes(&hash.finalize().into())
}

/// H is number 0; x₁ and x₂ follow.
pub(super) fn generators() -> &'static Generators {
    static GENERATORS: OnceLock<Generators> = OnceLock::new();
    GENERATORS.get_or_init(|| Generators {
        points: (1..=FIRST + SECOND).map(generator).collect(),
        blinding: generator(0),
    })
}

/// Those of the entries that ranges add to x₁: the numbers after x₂'s, made when a task first needs them.
pub(super) fn range_generators(entries: usize) -> &'static [RistrettoPoint] {
    static GENERATORS: OnceLock<Vec<RistrettoPoint>> = OnceLock::new();
    if entries == 0 {
        return &[];
    }
    let most = MAX_RANGES * (1 + 2 * MODULUS_BITS as usize);
    let all =
        GENERATORS.get_or_init(|| (1..=most).map(|i| generator(FIRST + SECOND + i)).collect());
    &all[..entries]
}

impl Generators {
    /// Σ x₁_i·G_i + blinding·H in constant time.
    pub(super) fn commit_first(&self, values: &[Scalar], blinding: &Scalar) -> RistrettoPoint {
        let ranges = range_generators(values.len() - FIRST);
        let points = self.points[..FIRST].iter().chain(ranges).chain([&self.blinding]);
        RistrettoPoint::multiscalar_mul(values.iter().chain([blinding]), points)
    }

    /// Σ x₂_i·G'_i + blinding·H in constant time.
    pub(super) fn commit_second(&self, values: &[Scalar], blinding: &Scalar) -> RistrettoPoint {
        let points = self.points[FIRST..].iter().chain([&self.blinding]);
        RistrettoPoint::multiscalar_mul(values.iter().chain([blinding]), points)
    }
}

/// G.
pub(super) const BASE: RistrettoPoint = RISTRETTO_BASEPOINT_POINT;
