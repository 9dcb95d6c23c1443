//! The certifier tree and the client tree.

use anofel_primitives::commitment::Commitment;
use anofel_primitives::eddsa::CertifierKey;
use anofel_primitives::merkle::{Frontier, Tree, TreeKind};
use wasm_bindgen::prelude::*;

use crate::error::{fail, hex, unhex, Result};

/// The clients of an epoch: enough of their tree to append and to know the root.
#[wasm_bindgen]
pub struct ClientTree(Frontier);

#[wasm_bindgen]
impl ClientTree {
    /// An empty tree.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default, reason = "JavaScript has no Default")]
    pub fn new() -> Self {
        Self(Frontier::new(TreeKind::Clients))
    }

    /// How many clients there are.
    #[wasm_bindgen(getter)]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// How many fit.
    #[wasm_bindgen(getter)]
    pub fn capacity(&self) -> usize {
        TreeKind::Clients.capacity()
    }

    /// The root.
    pub fn root(&self) -> String {
        hex(&self.0.root().to_bytes())
    }

    /// Append commitments.
    pub fn append(&mut self, commitments: Vec<String>) -> Result<()> {
        let leaf =
            |text: &String| Ok(Commitment::from_bytes(&unhex(text)?).map_err(fail)?.element());
        let leaves = commitments.iter().map(leaf).collect::<Result<Vec<_>>>()?;
        self.0.append(&leaves).map_err(fail)
    }
}

/// The certifiers' keys.
#[wasm_bindgen]
pub struct CertifierTree(Tree);

#[wasm_bindgen]
impl CertifierTree {
    /// An empty tree.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default, reason = "JavaScript has no Default")]
    pub fn new() -> Self {
        Self(Tree::new(TreeKind::Certifiers))
    }

    /// How many places are taken.
    #[wasm_bindgen(getter)]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// How many fit.
    #[wasm_bindgen(getter)]
    pub fn capacity(&self) -> usize {
        TreeKind::Certifiers.capacity()
    }

    /// The root.
    pub fn root(&self) -> String {
        hex(&self.0.root().to_bytes())
    }

    /// Append a key.
    pub fn append(&mut self, key: &str) -> Result<()> {
        let key = CertifierKey::from_bytes(&unhex(key)?).map_err(fail)?;
        self.0.append(&[key.leaf()]).map_err(fail)
    }

    /// Set a leaf to zero.
    pub fn zero(&mut self, index: usize) -> Result<()> {
        self.0.zero(index).map_err(fail)
    }
}
