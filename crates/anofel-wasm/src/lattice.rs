//! Contributions under the `lattice` scheme: envelopes, payloads, sums, shares, and the opening of a sum.

use std::collections::BTreeMap;

use anofel_committee::lattice as scheme;
use js_sys::{Array, Uint8Array};
use rand::rngs::OsRng;
use wasm_bindgen::prelude::*;

use crate::committee::Keys;
use crate::error::{fail, name, refusals, refuse, sentence, Result};

/// The widths of a task's vectors.
#[wasm_bindgen]
pub struct Codec {
    codec: scheme::Codec,
    max_posts: u32,
}

#[wasm_bindgen]
impl Codec {
    /// `norm` is there if contributions are proven; `ranges` are coordinate, low and high of each.
    #[wasm_bindgen(constructor)]
    pub fn new(
        length: usize,
        bound: u64,
        max_posts: u32,
        norm: Option<u64>,
        max_liars: u32,
        ranges: Vec<i64>,
    ) -> Result<Self> {
        let (ranges, _) = ranges.as_chunks::<3>();
        let proven = norm.map(|norm| scheme::Proven {
            norm,
            max_liars,
            ranges: ranges
                .iter()
                .map(|&[at, low, high]| scheme::Range { coordinate: at as usize, low, high })
                .collect(),
        });
        let codec = scheme::Codec::new(length, bound, max_posts, proven).map_err(refuse)?;
        Ok(Self { codec, max_posts })
    }

    /// The exact length of every payload.
    #[wasm_bindgen(getter, js_name = payloadBytes)]
    pub fn payload_bytes(&self) -> usize {
        self.codec.payload_bytes()
    }
}

/// Everything that a post is bound to.
#[wasm_bindgen]
pub struct Post(scheme::Post);

#[wasm_bindgen]
impl Post {
    /// The fields of the statement.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::too_many_arguments, reason = "the fields of the statement")]
    pub fn new(
        genesis: &str,
        task: &str,
        iteration: u64,
        key_id: &str,
        position: u16,
        scope: &str,
        nullifier: &str,
        tag: &str,
        message_key: &str,
    ) -> Result<Self> {
        Ok(Self(scheme::Post {
            genesis: name(genesis)?,
            task: name(task)?,
            iteration,
            key_id: name(key_id)?,
            position,
            scope: name(scope)?,
            nullifier: name(nullifier)?,
            tag: name(tag)?,
            pk_sig: name(message_key)?,
        }))
    }
}

/// Envelopes that are checked together.
#[wasm_bindgen]
#[derive(Default)]
pub struct Envelopes(Vec<(scheme::Post, Vec<u8>)>);

#[wasm_bindgen]
impl Envelopes {
    /// None yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an envelope.
    pub fn add(&mut self, post: Post, envelope: &[u8]) {
        self.0.push((post.0, envelope.to_vec()));
    }

    /// Checks what waits, and returns `[place, sentence]` of every envelope that is refused.
    pub fn refused(&mut self) -> Array {
        let waiting = std::mem::take(&mut self.0);
        let borrowed: Vec<_> =
            waiting.iter().map(|(post, bytes)| (post, bytes.as_slice())).collect();
        refusals(scheme::refused_envelopes(&borrowed, &mut OsRng))
    }
}

struct Line {
    post: scheme::Post,
    envelope: Vec<u8>,
    bit: Vec<u8>,
    payload: Vec<u8>,
}

/// Payloads of one committee and iteration: checked in batches, then added.
#[wasm_bindgen]
#[derive(Default)]
pub struct Payloads {
    waiting: Vec<Line>,
    checked: Vec<Option<scheme::Checked>>,
}

#[wasm_bindgen]
impl Payloads {
    /// None yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a payload with what its proof is bound to.
    pub fn add(&mut self, post: Post, envelope: &[u8], bit: &[u8], payload: &[u8]) {
        let [envelope, bit, payload] = [envelope, bit, payload].map(<[u8]>::to_vec);
        self.waiting.push(Line { post: post.0, envelope, bit, payload });
    }

    /// Checks what waits; returns for each the sentence of its refusal, or null. What is good is kept.
    pub fn check(&mut self, codec: &Codec, keys: &Keys) -> Array {
        let waiting = std::mem::take(&mut self.waiting);
        let lines: Vec<_> = waiting
            .iter()
            .map(|line| scheme::Submitted {
                post: &line.post,
                envelope: &line.envelope,
                bit: &line.bit,
                payload: &line.payload,
            })
            .collect();
        let checked = scheme::Checked::all(&codec.codec, keys.0.public(), &lines, &mut OsRng);
        checked
            .into_iter()
            .map(|verdict| match verdict {
                Ok(checked) => {
                    self.checked.push(Some(checked));
                    JsValue::NULL
                }
                Err(error) => {
                    self.checked.push(None);
                    sentence(&error).into()
                }
            })
            .collect()
    }

    /// Adds checked payloads, by their places, and returns the bytes of the sum.
    pub fn sum(&self, codec: &Codec, places: Vec<u32>) -> Result<Vec<u8>> {
        let mut sum = scheme::Accumulator::new(codec.codec.clone(), codec.max_posts);
        for place in places {
            let checked = self.checked.get(place as usize).and_then(Option::as_ref);
            let checked = checked.ok_or_else(|| fail("a payload was not checked"))?;
            sum.add(checked).map_err(refuse)?;
        }
        Ok(sum.finish().to_bytes())
    }
}

/// The bytes of the sum of sums, each by its bytes.
#[wasm_bindgen(js_name = joinSums)]
pub fn join_sums(codec: &Codec, sums: Vec<Uint8Array>) -> Result<Vec<u8>> {
    let mut whole = scheme::Accumulator::new(codec.codec.clone(), codec.max_posts);
    for bytes in sums {
        let part =
            scheme::EncryptedSum::from_bytes(codec.codec.clone(), codec.max_posts, &bytes.to_vec());
        whole.add_sum(&part.map_err(refuse)?).map_err(refuse)?;
    }
    Ok(whole.finish().to_bytes())
}

/// An encrypted sum, and the shares of it that were checked.
#[wasm_bindgen]
pub struct Sum {
    sum: scheme::EncryptedSum,
    shares: BTreeMap<u16, scheme::VerifiedShare>,
}

#[wasm_bindgen]
impl Sum {
    /// Reads a published sum.
    pub fn read(codec: &Codec, data: &[u8]) -> Result<Sum> {
        let sum = scheme::EncryptedSum::from_bytes(codec.codec.clone(), codec.max_posts, data);
        Ok(Self { sum: sum.map_err(refuse)?, shares: BTreeMap::new() })
    }

    /// How many posts were added.
    #[wasm_bindgen(getter, js_name = numPosts)]
    pub fn num_posts(&self) -> u32 {
        self.sum.num_posts()
    }

    /// The canonical bytes.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.sum.to_bytes()
    }

    /// Checks a member's share and keeps it.
    #[wasm_bindgen(js_name = addShare)]
    pub fn add_share(
        &mut self,
        keys: &Keys,
        agreed: &str,
        member: u16,
        share: &[u8],
    ) -> Result<()> {
        let agreed = name(agreed)?;
        let checked = scheme::verify_share(&keys.0, &self.sum, &agreed, member, share);
        self.shares.insert(member, checked.map_err(refuse)?);
        Ok(())
    }

    /// Opens the sum with the shares of some members: little-endian 64-bit integers.
    #[allow(clippy::too_many_arguments, reason = "the iteration, by its fields")]
    pub fn open(
        &self,
        keys: &Keys,
        genesis: &str,
        task: &str,
        iteration: u64,
        key_id: &str,
        members: Vec<u16>,
    ) -> Result<Vec<u8>> {
        let seed = scheme::public_seed(&name(genesis)?, &name(task)?, iteration, &name(key_id)?);
        let shares: Option<Vec<_>> = members.iter().map(|member| self.shares.get(member)).collect();
        let shares = shares.ok_or_else(|| fail("a share was not checked"))?;
        let threshold = keys.0.shape().threshold;
        let values = scheme::combine(&self.sum, &seed, threshold, &shares).map_err(refuse)?;
        Ok(values.iter().flat_map(|value| value.to_le_bytes()).collect())
    }
}
