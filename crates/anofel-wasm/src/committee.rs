//! Keys of committees, and the runs that made them.

use std::collections::BTreeMap;

use anofel_committee::keys::dealing::Dealing;
use anofel_committee::keys::{dkg, handover, Shape, ThresholdKeys};
use anofel_committee::Error;
use wasm_bindgen::prelude::*;

use crate::error::{fail, hex, name, refuse, Result};

/// Public keys and every member's verification shares.
#[wasm_bindgen]
pub struct Keys(pub(crate) ThresholdKeys);

#[wasm_bindgen]
impl Keys {
    /// Reads and validates keys.
    pub fn read(num_keys: usize, members: u16, threshold: u16, data: &[u8]) -> Result<Keys> {
        let shape = Shape::new(num_keys, members, threshold).map_err(refuse)?;
        ThresholdKeys::from_bytes(shape, data).map(Self).map_err(refuse)
    }

    /// The bytes of keys and shares.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// All public keys, one after the other.
    pub fn public(&self) -> Vec<u8> {
        self.0.encoded_public().as_flattened().to_vec()
    }

    /// One member's verification share of one key.
    #[wasm_bindgen(js_name = verificationShare)]
    pub fn verification_share(&self, member: u16, key: usize) -> Result<String> {
        self.0.shape().check_member(member).map_err(refuse)?;
        let (_, encoded) = self.0.verification_shares(member);
        encoded.get(key).map(|share| hex(share)).ok_or_else(|| fail("there is no such key"))
    }

    /// The keys after a handover by the dealers, whose commitments stand one after the other.
    #[wasm_bindgen(js_name = handedOver)]
    pub fn handed_over(
        &self,
        members: u16,
        threshold: u16,
        dealers: Vec<u16>,
        commitments: &[u8],
    ) -> Result<Keys> {
        let shape = Shape::new(self.0.shape().num_keys, members, threshold).map_err(refuse)?;
        let dealt: BTreeMap<u16, &[u8]> =
            dealers.iter().copied().zip(commitments.chunks(Dealing::length(shape))).collect();
        if dealt.len() != dealers.len() {
            return Err(fail("The commitments of a dealer are missing."));
        }
        let dealings = dealt
            .iter()
            .map(|(&dealer, bytes)| {
                handover::check_dealing(&self.0, &dealers, dealer, shape, bytes)
            })
            .collect::<std::result::Result<Vec<_>, Error>>()
            .map_err(refuse)?;
        handover::new_keys(&self.0, shape, &dealings.iter().collect::<Vec<_>>())
            .map(Self)
            .map_err(refuse)
    }
}

/// The packages of a run of key generation, each checked as it is added.
#[wasm_bindgen]
pub struct Packages {
    shape: Shape,
    run: [u8; 32],
    checked: Vec<dkg::CheckedPackage>,
}

#[wasm_bindgen]
impl Packages {
    /// The packages of a run, which its digest names.
    #[wasm_bindgen(constructor)]
    pub fn new(num_keys: usize, members: u16, threshold: u16, run: &str) -> Result<Self> {
        let shape = Shape::new(num_keys, members, threshold).map_err(refuse)?;
        Ok(Self { shape, run: name(run)?, checked: Vec::new() })
    }

    /// Checks encodings and proofs of a member's package.
    pub fn add(&mut self, member: u16, package: &[u8]) -> Result<()> {
        let checked = dkg::check_package(self.shape, member, &self.run, package).map_err(refuse)?;
        self.checked.push(checked);
        Ok(())
    }

    /// The keys that the packages of all members, in their order, make.
    pub fn keys(&self) -> Result<Keys> {
        let checked: Vec<_> = self.checked.iter().collect();
        dkg::public_keys(self.shape, &checked).map(Keys).map_err(refuse)
    }
}
