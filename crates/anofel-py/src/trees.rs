//! `anofel._core.trees`: the certifier tree and the client tree, and a set for what they have admitted.

use std::sync::Arc;

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

            /// A tree that goes on by itself; both share their nodes until one of them changes some.
            fn fork(&self) -> Self {
                Self(self.0.clone())
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
///
/// Names are kept in buckets by their first bits. Forks share buckets until one of them changes one, so
/// a fork costs a pointer for each bucket, whatever the number of names.
#[pyclass(eq, module = "anofel._core.trees")]
#[derive(PartialEq)]
pub struct NameSet(Vec<Arc<Vec<Name>>>);

type Name = [u8; NAME_BYTES];
const NAME_BYTES: usize = 32;
const BUCKETS: usize = 4096;

fn read_name(name: &[u8]) -> Result<Name> {
    let found = name.len();
    let wrong = Error::Length { what: "a name", expected: NAME_BYTES, found };
    Ok(name.try_into().map_err(|_| wrong)?)
}

/// The bucket of a name; names of a lower bucket are lower.
fn bucket_of(name: &Name) -> usize {
    usize::from(name[0]) << 4 | usize::from(name[1] >> 4)
}

#[pymethods]
impl NameSet {
    #[new]
    fn new() -> Self {
        Self(vec![Arc::default(); BUCKETS])
    }

    /// Read what `to_bytes` wrote; raise `InvalidInput` if the names are not ascending.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Self> {
        py.detach(|| {
            let names = data.chunks(NAME_BYTES).map(read_name).collect::<Result<Vec<_>>>()?;
            if names.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(Error::NotCanonical { what: "the set of names" }.into());
            }
            let mut made = Self::new();
            for bucket in names.chunk_by(|one, other| bucket_of(one) == bucket_of(other)) {
                made.0[bucket_of(&bucket[0])] = Arc::new(bucket.to_vec());
            }
            Ok(made)
        })
    }

    /// The names in ascending order.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let names = || self.0.iter().flat_map(|bucket| bucket.iter());
        let bytes: Vec<u8> = py.detach(|| names().flatten().copied().collect());
        PyBytes::new(py, &bytes)
    }

    /// A set that goes on by itself.
    fn fork(&self) -> Self {
        Self(self.0.clone())
    }

    fn __len__(&self) -> usize {
        self.0.iter().map(|bucket| bucket.len()).sum()
    }

    fn __contains__(&self, name: &[u8]) -> Result<bool> {
        let name = read_name(name)?;
        Ok(self.0[bucket_of(&name)].binary_search(&name).is_ok())
    }

    /// Add a name.
    fn add(&mut self, name: &[u8]) -> Result<()> {
        let name = read_name(name)?;
        let bucket = &mut self.0[bucket_of(&name)];
        if let Err(place) = bucket.binary_search(&name) {
            Arc::make_mut(bucket).insert(place, name);
        }
        Ok(())
    }

    /// Remove all names.
    fn clear(&mut self) {
        *self = Self::new();
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
