//! `anofel._core.trees`: the certifier tree and the client tree, and a set for what they have admitted.

use std::collections::BTreeSet;

use anofel_primitives::merkle::{self, TreeKind};
use anofel_primitives::{commitment, eddsa, Error, Fr};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Result;
use crate::primitives::{CertifierKey, Commitment, Root};

/// A tree, its paths and its frontier, for one kind of leaf.
macro_rules! tree_classes {
    (
        $kind:expr, $tree:ident, $path:ident, $frontier:ident, $leaf:ident,
        $element:expr, $tree_doc:literal
    ) => {
        #[doc = $tree_doc]
        #[pyclass(module = "anofel._core.trees")]
        pub struct $tree(merkle::Tree);

        /// The way from a leaf to the root. It shows which leaf is the client's own.
        #[pyclass(frozen, module = "anofel._core.trees")]
        pub struct $path(pub(crate) merkle::Path);

        #[pymethods]
        impl $path {
            fn __repr__(&self) -> &'static str {
                concat!(stringify!($path), "(<redacted>)")
            }
        }

        /// The right edge of a tree: enough to append leaves and to know the root.
        #[pyclass(eq, module = "anofel._core.trees")]
        #[derive(PartialEq)]
        pub struct $frontier(merkle::Frontier);

        #[pymethods]
        impl $tree {
            /// How many leaves fit.
            #[classattr]
            const CAPACITY: usize = $kind.capacity();

            #[new]
            fn new() -> Self {
                Self(merkle::Tree::new($kind))
            }

            /// A tree of stored leaves.
            #[staticmethod]
            fn from_leaf_bytes(py: Python<'_>, data: &[u8]) -> Result<Self> {
                Ok(Self(py.detach(|| merkle::Tree::from_leaf_bytes($kind, data))?))
            }

            /// The leaves from an index on, 32 bytes each, for a store.
            #[pyo3(signature = (start = 0))]
            fn leaf_bytes<'py>(&self, py: Python<'py>, start: usize) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &self.0.leaves_to_bytes(start))
            }

            /// Read what `node_bytes` wrote, without hashing the tree again: for one's own files.
            #[staticmethod]
            fn from_node_bytes(py: Python<'_>, data: &[u8]) -> Result<Self> {
                Ok(Self(py.detach(|| merkle::Tree::from_node_bytes($kind, data))?))
            }

            /// All nodes, leaves first, for a snapshot.
            fn node_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &py.detach(|| self.0.to_node_bytes()))
            }

            /// How many leaves were appended.
            fn __len__(&self) -> usize {
                self.0.size()
            }

            /// Append leaves; nothing is appended if they do not all fit.
            fn append(&mut self, py: Python<'_>, leaves: Vec<PyRef<'_, $leaf>>) -> Result<()> {
                let leaves: Vec<Fr> = leaves.iter().map(|leaf| $element(&leaf.0)).collect();
                Ok(py.detach(|| self.0.append(&leaves))?)
            }

            /// The position of a leaf; raise `InvalidInput` if it is not there.
            fn position(&self, leaf: &$leaf) -> Result<usize> {
                Ok(self.0.position($element(&leaf.0))?)
            }

            /// The root.
            fn root(&self) -> Root {
                Root(self.0.root())
            }

            /// The path of a leaf. Compute it yourself: whoever asks for it names itself.
            fn path(&self, index: usize) -> Result<$path> {
                Ok($path(self.0.path(index)?))
            }

            /// A copy of the tree as it was with so many leaves (zeroed leaves stay zeroed).
            fn at_size(&self, py: Python<'_>, size: usize) -> Result<Self> {
                Ok(Self(py.detach(|| self.0.at_size(size))?))
            }

            /// The frontier.
            fn frontier(&self) -> $frontier {
                $frontier(self.0.frontier())
            }
        }

        #[pymethods]
        impl $frontier {
            #[new]
            fn new() -> Self {
                Self(merkle::Frontier::new($kind))
            }

            /// Read what `to_bytes` wrote.
            #[staticmethod]
            fn from_bytes(data: &[u8]) -> Result<Self> {
                Ok(Self(merkle::Frontier::from_bytes($kind, data)?))
            }

            /// The size, the root and the open nodes.
            fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, &self.0.to_bytes())
            }

            /// How many leaves were appended.
            fn __len__(&self) -> usize {
                self.0.size()
            }

            /// Append leaves; nothing is appended if they do not all fit.
            fn append(&mut self, py: Python<'_>, leaves: Vec<PyRef<'_, $leaf>>) -> Result<()> {
                let leaves: Vec<Fr> = leaves.iter().map(|leaf| $element(&leaf.0)).collect();
                Ok(py.detach(|| self.0.append(&leaves))?)
            }

            /// The root.
            fn root(&self) -> Root {
                Root(self.0.root())
            }
        }
    };
}

tree_classes!(
    TreeKind::Certifiers,
    CertifierTree,
    CertifierPath,
    CertifierFrontier,
    CertifierKey,
    eddsa::CertifierKey::leaf,
    "The tree of certifier keys: 4,096 leaves."
);
tree_classes!(
    TreeKind::Clients,
    ClientTree,
    ClientPath,
    ClientFrontier,
    Commitment,
    commitment::Commitment::element,
    "The tree of client commitments: 2,097,152 leaves."
);

#[pymethods]
impl CertifierTree {
    /// Revoke a certifier: set its leaf to 0. The place is not used again.
    fn zero(&mut self, index: usize) -> Result<()> {
        Ok(self.0.zero(index)?)
    }
}

/// A set of 32-byte names, ordered, in about 50 bytes for each.
#[pyclass(eq, module = "anofel._core.trees")]
#[derive(PartialEq)]
pub struct NameSet(BTreeSet<[u8; NAME_BYTES]>);

const NAME_BYTES: usize = 32;

fn read_name(name: &[u8]) -> Result<[u8; NAME_BYTES]> {
    let found = name.len();
    let wrong = Error::Length { what: "a name", expected: NAME_BYTES, found };
    Ok(name.try_into().map_err(|_| wrong)?)
}

#[pymethods]
impl NameSet {
    #[new]
    fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// Read what `to_bytes` wrote; raise `InvalidInput` if the names are not ascending.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Self> {
        py.detach(|| {
            let names = data.chunks(NAME_BYTES).map(read_name).collect::<Result<Vec<_>>>()?;
            if names.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(Error::NotCanonical { what: "the set of names" }.into());
            }
            Ok(Self(names.into_iter().collect()))
        })
    }

    /// The names in ascending order.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes: Vec<u8> = py.detach(|| self.0.iter().flatten().copied().collect());
        PyBytes::new(py, &bytes)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __contains__(&self, name: &[u8]) -> Result<bool> {
        Ok(self.0.contains(&read_name(name)?))
    }

    /// Add a name.
    fn add(&mut self, name: &[u8]) -> Result<()> {
        self.0.insert(read_name(name)?);
        Ok(())
    }

    /// Remove all names.
    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The certifier tree and the client tree, and a set for what they have admitted.
#[pyo3::pymodule]
pub mod trees {
    #[pymodule_export]
    use super::{
        CertifierFrontier, CertifierPath, CertifierTree, ClientFrontier, ClientPath, ClientTree,
        NameSet,
    };
}
