//! Ballots, and the count that a committee opens.

use std::collections::BTreeMap;

use anofel_committee::count::{self as counting, Accepts};
use anofel_primitives::commitment::TypeCommitment;
use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::error::{fail, name, refusals, refuse, unhex, Result};

/// Ballots that are checked together.
#[wasm_bindgen]
#[derive(Default)]
pub struct Ballots {
    committees: Vec<counting::Committee>,
    waiting: Vec<(counting::Bundle, Vec<u8>)>,
}

#[wasm_bindgen]
impl Ballots {
    /// None yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the next committee of the bundle of the next ballot; without types it takes any.
    #[wasm_bindgen(js_name = addCommittee)]
    pub fn add_committee(
        &mut self,
        key_id: &str,
        count_key: &[u8],
        types: Option<Vec<u32>>,
    ) -> Result<()> {
        let accepts = types.map_or(Accepts::Any, Accepts::Types);
        let committee =
            counting::Committee::new(name(key_id)?, count_key, accepts).map_err(refuse)?;
        self.committees.push(committee);
        Ok(())
    }

    /// Adds a ballot to the committees that were named.
    #[allow(clippy::too_many_arguments, reason = "the fields of the statement")]
    pub fn add(
        &mut self,
        genesis: &str,
        scope: &str,
        nullifier: &str,
        tag: &str,
        message_key: &str,
        type_commitment: &str,
        ballot: &[u8],
    ) -> Result<()> {
        let bundle = counting::Bundle {
            genesis: name(genesis)?,
            scope: name(scope)?,
            nullifier: name(nullifier)?,
            tag: name(tag)?,
            pk_sig: name(message_key)?,
            type_commitment: TypeCommitment::from_bytes(&unhex(type_commitment)?).map_err(fail)?,
            committees: std::mem::take(&mut self.committees),
        };
        bundle.check().map_err(refuse)?;
        self.waiting.push((bundle, ballot.to_vec()));
        Ok(())
    }

    /// Checks what waits, and returns `[place, sentence]` of every ballot that is refused.
    pub fn refused(&mut self) -> Array {
        let waiting = std::mem::take(&mut self.waiting);
        let borrowed: Vec<_> =
            waiting.iter().map(|(bundle, ballot)| (bundle, ballot.as_slice())).collect();
        refusals(counting::Ballot::refused(&borrowed))
    }
}

/// The encrypted count of a set, and the shares of it that were checked.
#[wasm_bindgen]
pub struct Count {
    tally: counting::Tally,
    shares: BTreeMap<u16, counting::VerifiedCountShare>,
}

#[wasm_bindgen]
impl Count {
    /// Adds encrypted bits, given one after the other.
    #[wasm_bindgen(constructor)]
    pub fn new(bits: &[u8]) -> Result<Self> {
        let mut tally = counting::Tally::default();
        for bit in bits.chunks(counting::CIPHERTEXT_BYTES) {
            tally.add(bit).map_err(refuse)?;
        }
        Ok(Self { tally, shares: BTreeMap::new() })
    }

    /// Checks a member's share and keeps it.
    #[wasm_bindgen(js_name = addShare)]
    pub fn add_share(
        &mut self,
        member: u16,
        verification_share: &str,
        agreed: &str,
        share: &[u8],
    ) -> Result<()> {
        let key = unhex(verification_share)?;
        let agreed = unhex(agreed)?;
        let checked = counting::verify_count_share(&self.tally, member, &key, &agreed, share);
        self.shares.insert(member, checked.map_err(refuse)?);
        Ok(())
    }

    /// The count from the shares of some members.
    pub fn open(&self, members: Vec<u16>, largest: u32) -> Result<u32> {
        let shares: Option<Vec<_>> = members.iter().map(|member| self.shares.get(member)).collect();
        let shares = shares.ok_or_else(|| fail("a share was not checked"))?;
        counting::combine_count(&self.tally, &shares, largest).map_err(refuse)
    }
}
