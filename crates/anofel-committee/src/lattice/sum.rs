//! Adding contributions (step 7): words modulo 2^w, points in the group.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::traits::Identity;

use super::codec::Codec;
use super::contribution::{Checked, WRAPPED_KEY_BYTES};
use crate::error::{check_length, check_range};
use crate::group::{decode_point, decode_points, encode_points, ELEMENT_BYTES};
use crate::ring::DEGREE;
use crate::Error;

/// Bytes of the number of posts.
const COUNT_BYTES: usize = 4;

/// A running sum; its size depends on the vector only.
pub struct Accumulator {
    codec: Codec,
    max_posts: u32,
    num_posts: u32,
    words: Vec<u64>,
    r: RistrettoPoint,
    wrapped: Vec<RistrettoPoint>,
}

impl Accumulator {
    /// The empty sum.
    pub fn new(codec: Codec, max_posts: u32) -> Self {
        Self {
            words: vec![0; codec.num_blocks() * DEGREE],
            codec,
            max_posts,
            num_posts: 0,
            r: RistrettoPoint::identity(),
            wrapped: vec![RistrettoPoint::identity(); DEGREE],
        }
    }

    /// Adds one contribution; refused beyond `max_posts`, which the widths were computed for.
    pub fn add(&mut self, contribution: &Checked) -> Result<(), Error> {
        let posts = i128::from(self.num_posts) + 1;
        check_range("the number of posts", posts, 1, self.max_posts.into())?;
        let (expected, found) = (self.codec.packed_bytes(), contribution.packed.len());
        check_length("the packed vector", expected, found)?;
        if self.codec != contribution.codec {
            return Err(Error::Proof { what: "the equality of the widths" });
        }
        if !contribution.proven {
            return Err(Error::Proof { what: "the contribution proof" });
        }
        self.codec.add_packed(&mut self.words, &contribution.packed);
        self.r += contribution.r;
        for (sum, point) in self.wrapped.iter_mut().zip(&contribution.wrapped) {
            *sum += point;
        }
        self.num_posts += 1;
        Ok(())
    }

    /// Adds a sum that somebody else made of other contributions of the same widths.
    pub fn add_sum(&mut self, sum: &EncryptedSum) -> Result<(), Error> {
        let posts = i128::from(self.num_posts) + i128::from(sum.num_posts);
        check_range("the number of posts", posts, 0, self.max_posts.into())?;
        if self.codec != sum.codec {
            return Err(Error::Proof { what: "the equality of the widths" });
        }
        for (word, other) in self.words.iter_mut().zip(&sum.words) {
            *word = word.wrapping_add(*other);
        }
        self.r += sum.r;
        for (point, other) in self.wrapped.iter_mut().zip(&sum.wrapped) {
            *point += other;
        }
        self.num_posts += sum.num_posts;
        Ok(())
    }

    /// The sum of what was added.
    pub fn finish(mut self) -> EncryptedSum {
        let mask = self.codec.word_mask();
        self.words.iter_mut().for_each(|word| *word &= mask);
        EncryptedSum {
            codec: self.codec,
            num_posts: self.num_posts,
            words: self.words,
            r: self.r,
            wrapped: self.wrapped,
        }
    }
}

/// A sum of contributions, still encrypted.
pub struct EncryptedSum {
    pub(super) codec: Codec,
    pub(super) num_posts: u32,
    pub(super) words: Vec<u64>,
    pub(super) r: RistrettoPoint,
    pub(super) wrapped: Vec<RistrettoPoint>,
}

impl EncryptedSum {
    /// How many contributions it holds.
    pub fn num_posts(&self) -> u32 {
        self.num_posts
    }

    /// Number of posts (4 bytes, little-endian) ‖ packed words ‖ ΣR ‖ ΣC_0 … ΣC_{N−1}.
    pub fn to_bytes(&self) -> Vec<u8> {
        let packed_bytes = self.codec.packed_bytes();
        let mut bytes = vec![0; COUNT_BYTES + packed_bytes];
        bytes[..COUNT_BYTES].copy_from_slice(&self.num_posts.to_le_bytes());
        self.codec.pack(self.words.iter().copied(), &mut bytes[COUNT_BYTES..]);
        bytes.extend_from_slice(self.r.compress().as_bytes());
        bytes.extend_from_slice(encode_points(&self.wrapped).as_flattened());
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub fn from_bytes(codec: Codec, max_posts: u32, bytes: &[u8]) -> Result<Self, Error> {
        let packed_bytes = codec.packed_bytes();
        let expected = COUNT_BYTES + packed_bytes + ELEMENT_BYTES + WRAPPED_KEY_BYTES;
        check_length("the sum", expected, bytes.len())?;
        let (count, rest) = bytes.split_at(COUNT_BYTES);
        let (packed, rest) = rest.split_at(packed_bytes);
        let (r, wrapped) = rest.split_at(ELEMENT_BYTES);
        let num_posts = count.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        check_range("the number of posts", num_posts.into(), 0, max_posts.into())?;
        Ok(Self {
            words: codec.unpack(packed),
            codec,
            num_posts,
            r: decode_point("the sum of R", r)?,
            wrapped: decode_points("the sum of the wrapped secrets", DEGREE, wrapped)?,
        })
    }
}
