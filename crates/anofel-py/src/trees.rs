//! `anofel._core.trees`: the certifier tree and the client tree.

use anofel_primitives::merkle::{self, TreeKind};
use anofel_primitives::{commitment, eddsa, Fr};
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

/// The certifier tree and the client tree.
#[pyo3::pymodule]
pub mod trees {
    #[pymodule_export]
    use super::{
        CertifierFrontier, CertifierPath, CertifierTree, ClientFrontier, ClientPath, ClientTree,
    };
}
