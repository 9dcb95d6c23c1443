//! Poseidon Merkle trees with eight children per node.
//!
//! Eight, because a level costs 409 constraints for three bits of position, where two children
//! cost 242 for one. A path holds all eight children of every node on the way, so a member is
//! shown by "one of the eight is mine", and positions never enter a circuit.
//!
//! An empty leaf is 0. Nobody knows an opening of 0, so an empty leaf is nobody's.

use std::sync::Arc;

use ark_bn254::Fr;
use ark_ff::AdditiveGroup;

use crate::field::{self, field_newtype, FIELD_BYTES};
use crate::hash::{hash, Domain};
use crate::Error;

/// Children of a node.
pub const ARITY: usize = 8;

field_newtype!(
    /// The root of a tree.
    Root,
    "the root"
);

/// Which tree, and so how deep it is and how its nodes are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TreeKind {
    /// Certifier keys: 8^4 = 4,096 leaves.
    Certifiers,
    /// Client commitments: 8^7 = 2,097,152 leaves.
    Clients,
}

impl TreeKind {
    /// Levels above the leaves.
    pub const fn depth(self) -> usize {
        match self {
            Self::Certifiers => 4,
            Self::Clients => 7,
        }
    }

    /// How many leaves fit.
    pub const fn capacity(self) -> usize {
        ARITY.pow(self.depth() as u32)
    }

    /// The domain of its inner nodes.
    pub const fn domain(self) -> Domain {
        match self {
            Self::Certifiers => Domain::CertifierNode,
            Self::Clients => Domain::ClientNode,
        }
    }

    /// The value of an empty subtree at each level, leaves first, root last.
    fn empty_nodes(self) -> Vec<Fr> {
        let mut nodes = vec![Fr::ZERO];
        for level in 0..self.depth() {
            nodes.push(hash(self.domain(), &[nodes[level]; ARITY]));
        }
        nodes
    }
}

/// All the children on the way from a leaf to the root, leaves first.
///
/// It tells which leaf is meant, so it is not printed and is wiped when dropped.
#[derive(Clone, PartialEq, Eq, zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub struct Path(Vec<[Fr; ARITY]>);

impl Path {
    /// Makes a path from its levels; whether it leads anywhere is for a circuit to say.
    pub fn from_levels(levels: Vec<[Fr; ARITY]>) -> Self {
        Self(levels)
    }

    /// The children of every node on the way, leaves first.
    pub fn levels(&self) -> &[[Fr; ARITY]] {
        &self.0
    }
}

impl std::fmt::Debug for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Path(<redacted>)")
    }
}

/// Nodes in one piece of a level.
const PIECE: usize = 512;

/// The nodes of one level, in pieces that copies share until one of them changes a piece.
#[derive(Debug, Clone, Default)]
struct Level(Vec<Arc<Vec<Fr>>>);

impl Level {
    fn from_nodes(nodes: &[Fr]) -> Self {
        Self(nodes.chunks(PIECE).map(|piece| Arc::new(piece.to_vec())).collect())
    }

    fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PIECE + last.len())
    }

    fn get(&self, index: usize) -> Option<Fr> {
        self.0.get(index / PIECE)?.get(index % PIECE).copied()
    }

    /// Changes a node that exists.
    fn set(&mut self, index: usize, node: Fr) {
        if let Some(piece) = self.0.get_mut(index / PIECE) {
            Arc::make_mut(piece)[index % PIECE] = node;
        }
    }

    fn push(&mut self, node: Fr) {
        match self.0.last_mut() {
            Some(last) if last.len() < PIECE => Arc::make_mut(last).push(node),
            _ => self.0.push(Arc::new(vec![node])),
        }
    }

    fn truncate(&mut self, length: usize) {
        self.0.truncate(length.div_ceil(PIECE));
        if let Some(last) = self.0.last_mut().filter(|_| !length.is_multiple_of(PIECE)) {
            if last.len() > length % PIECE {
                Arc::make_mut(last).truncate(length % PIECE);
            }
        }
    }

    fn iter_from(&self, start: usize) -> impl Iterator<Item = &Fr> {
        let first = self.0.iter().skip(start / PIECE).flat_map(|piece| piece.iter());
        first.skip(start % PIECE)
    }
}

/// A tree with all its nodes, for whoever needs paths or changes leaves. A clone costs a pointer for
/// every 512 nodes; the nodes are shared until one of the two changes them.
#[derive(Debug, Clone)]
pub struct Tree {
    kind: TreeKind,
    /// Nodes level by level, leaves first; only those above a leaf that exists.
    levels: Vec<Level>,
    empty: Vec<Fr>,
}

impl Tree {
    /// An empty tree.
    pub fn new(kind: TreeKind) -> Self {
        Self { kind, levels: vec![Level::default(); kind.depth() + 1], empty: kind.empty_nodes() }
    }

    /// A tree of these leaves; a leaf of 0 is one that was zeroed.
    pub fn from_leaves(kind: TreeKind, leaves: Vec<Fr>) -> Result<Self, Error> {
        let mut tree = Self::new(kind);
        if leaves.len() > kind.capacity() {
            return Err(Error::TreeFull { capacity: kind.capacity() });
        }
        tree.levels[0] = Level::from_nodes(&leaves);
        tree.rehash_from(0);
        Ok(tree)
    }

    /// Reads leaves as [`Tree::leaves_to_bytes`] writes them.
    pub fn from_leaf_bytes(kind: TreeKind, bytes: &[u8]) -> Result<Self, Error> {
        let chunks = bytes.chunks(FIELD_BYTES);
        let leaves: Result<Vec<Fr>, Error> =
            chunks.map(|chunk| field::from_bytes("a leaf", chunk)).collect();
        Self::from_leaves(kind, leaves?)
    }

    /// The leaves from an index on, 32 bytes each: what a store appends.
    pub fn leaves_to_bytes(&self, from: usize) -> Vec<u8> {
        self.levels[0].iter_from(from).flat_map(field::to_bytes).collect()
    }

    /// The size (8 bytes, little-endian), then every node level by level, leaves first, the root last.
    pub fn to_node_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.size() as u64).to_le_bytes().to_vec();
        bytes.reserve_exact(self.levels.iter().map(Level::len).sum::<usize>() * FIELD_BYTES);
        bytes.extend(
            self.levels.iter().flat_map(|level| level.iter_from(0)).flat_map(field::to_bytes),
        );
        bytes
    }

    /// Reads what [`Tree::to_node_bytes`] wrote, without hashing the tree again: for a file of one's own
    /// whose bytes are known to be those that were written. Only the way from the last leaf to the root
    /// is hashed and compared.
    pub fn from_node_bytes(kind: TreeKind, bytes: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "the tree";
        const HEAD: usize = 8;
        let too_short = Error::Length { what: WHAT, expected: HEAD, found: bytes.len() };
        let head = bytes.get(..HEAD).ok_or(too_short)?;
        let size = read_size(kind, head)?;
        let mut widths = vec![size];
        for level in 0..kind.depth() {
            widths.push(widths[level].div_ceil(ARITY));
        }
        let expected = HEAD + widths.iter().sum::<usize>() * FIELD_BYTES;
        if bytes.len() != expected {
            return Err(Error::Length { what: WHAT, expected, found: bytes.len() });
        }
        let mut rest = bytes[HEAD..].chunks(FIELD_BYTES).map(|c| field::from_bytes("a node", c));
        let mut tree = Self::new(kind);
        for (level, width) in tree.levels.iter_mut().zip(widths) {
            *level =
                Level::from_nodes(&rest.by_ref().take(width).collect::<Result<Vec<Fr>, Error>>()?);
        }
        let mut position = size.saturating_sub(1);
        for level in 1..=kind.depth() {
            position /= ARITY;
            if tree.levels[level]
                .get(position)
                .is_some_and(|node| node != tree.node(level, position))
            {
                return Err(Error::WrongNode { level });
            }
        }
        Ok(tree)
    }

    /// Which tree this is.
    pub fn kind(&self) -> TreeKind {
        self.kind
    }

    /// How many leaves were appended.
    pub fn size(&self) -> usize {
        self.levels[0].len()
    }

    /// A leaf.
    pub fn leaf(&self, index: usize) -> Result<Fr, Error> {
        self.levels[0].get(index).ok_or(Error::NoSuchLeaf { index, size: self.size() })
    }

    /// The position of a member.
    pub fn position(&self, leaf: Fr) -> Result<usize, Error> {
        let found = self.levels[0].iter_from(0).position(|other| *other == leaf);
        found.filter(|_| leaf != Fr::ZERO).ok_or(Error::NotAMember)
    }

    /// Appends leaves; nothing is appended if they do not all fit.
    pub fn append(&mut self, leaves: &[Fr]) -> Result<(), Error> {
        if leaves.iter().any(|leaf| leaf == &Fr::ZERO) {
            return Err(Error::EmptyLeaf);
        }
        let size = self.size();
        if size + leaves.len() > self.kind.capacity() {
            return Err(Error::TreeFull { capacity: self.kind.capacity() });
        }
        leaves.iter().for_each(|leaf| self.levels[0].push(*leaf));
        self.rehash_from(size);
        Ok(())
    }

    /// Sets a leaf to 0; its place is not used again.
    pub fn zero(&mut self, index: usize) -> Result<(), Error> {
        self.leaf(index)?;
        self.levels[0].set(index, Fr::ZERO);
        let mut position = index;
        for level in 1..=self.kind.depth() {
            position /= ARITY;
            let node = self.node(level, position);
            self.levels[level].set(position, node);
        }
        Ok(())
    }

    /// The tree as it was when it had `size` leaves. Zeroed leaves stay zeroed.
    pub fn at_size(&self, size: usize) -> Result<Self, Error> {
        if size > self.size() {
            return Err(Error::NoSuchLeaf { index: size, size: self.size() });
        }
        let mut tree = self.clone();
        let mut width = size;
        for level in &mut tree.levels {
            level.truncate(width);
            width = width.div_ceil(ARITY);
        }
        tree.rehash_from(size.saturating_sub(1));
        Ok(tree)
    }

    /// The root.
    pub fn root(&self) -> Root {
        let depth = self.kind.depth();
        Root(self.levels[depth].get(0).unwrap_or(self.empty[depth]))
    }

    /// The path of a leaf. Whoever asks somebody else for this names itself.
    pub fn path(&self, index: usize) -> Result<Path, Error> {
        self.leaf(index)?;
        let mut position = index;
        let levels = (0..self.kind.depth())
            .map(|level| {
                position /= ARITY;
                self.children(level, position)
            })
            .collect();
        Ok(Path(levels))
    }

    /// The frontier: what is needed to append, without the leaves.
    pub fn frontier(&self) -> Frontier {
        let mut position = self.size();
        let levels = self
            .levels
            .iter()
            .take(self.kind.depth())
            .map(|level| {
                let started = position / ARITY * ARITY;
                let end = position.min(level.len());
                let nodes = (started.min(end)..end).filter_map(|at| level.get(at)).collect();
                position /= ARITY;
                nodes
            })
            .collect();
        Frontier { kind: self.kind, size: self.size(), levels, root: self.root() }
    }

    /// The children at `level` of the node at `position` one level up.
    fn children(&self, level: usize, position: usize) -> [Fr; ARITY] {
        let nodes = &self.levels[level];
        std::array::from_fn(|child| {
            nodes.get(position * ARITY + child).unwrap_or(self.empty[level])
        })
    }

    fn node(&self, level: usize, position: usize) -> Fr {
        hash(self.kind.domain(), &self.children(level - 1, position))
    }

    /// Recomputes every node above the leaves from `first` on.
    fn rehash_from(&mut self, first: usize) {
        let mut first = first;
        for level in 1..=self.kind.depth() {
            first /= ARITY;
            let width = self.levels[level - 1].len().div_ceil(ARITY);
            self.levels[level].truncate(first);
            for position in first..width {
                let node = self.node(level, position);
                self.levels[level].push(node);
            }
        }
    }
}

/// The number of leaves, from the first 8 bytes.
fn read_size(kind: TreeKind, head: &[u8]) -> Result<usize, Error> {
    let size = u64::from_le_bytes(std::array::from_fn(|i| head[i]));
    usize::try_from(size)
        .ok()
        .filter(|size| *size <= kind.capacity())
        .ok_or(Error::TreeFull { capacity: kind.capacity() })
}

/// The right edge of a tree: enough to append leaves and know the root, a few kilobytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontier {
    kind: TreeKind,
    size: usize,
    /// Per level, leaves first, the complete nodes of the block that is not full yet.
    levels: Vec<Vec<Fr>>,
    root: Root,
}

impl Frontier {
    /// The frontier of an empty tree.
    pub fn new(kind: TreeKind) -> Self {
        Tree::new(kind).frontier()
    }

    /// How many leaves were appended.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Which tree this is.
    pub fn kind(&self) -> TreeKind {
        self.kind
    }

    /// The root.
    pub fn root(&self) -> Root {
        self.root
    }

    /// Appends leaves; nothing is appended if they do not all fit.
    pub fn append(&mut self, leaves: &[Fr]) -> Result<(), Error> {
        if leaves.iter().any(|leaf| leaf == &Fr::ZERO) {
            return Err(Error::EmptyLeaf);
        }
        if self.size + leaves.len() > self.kind.capacity() {
            return Err(Error::TreeFull { capacity: self.kind.capacity() });
        }
        self.size += leaves.len();
        let domain = self.kind.domain();
        let mut carried = leaves.to_vec();
        let mut full_root = None;
        for level in 0..self.kind.depth() {
            let mut nodes = std::mem::take(&mut self.levels[level]);
            nodes.append(&mut carried);
            let complete = nodes.len() / ARITY * ARITY;
            carried = nodes[..complete].chunks(ARITY).map(|block| hash(domain, block)).collect();
            nodes.drain(..complete);
            self.levels[level] = nodes;
        }
        if let Some(root) = carried.first() {
            full_root = Some(*root);
        }
        self.root = Root(full_root.unwrap_or_else(|| self.open_root()));
        Ok(())
    }

    /// The root of a tree that is not full: close every open block with empty nodes.
    fn open_root(&self) -> Fr {
        let empty = self.kind.empty_nodes();
        let mut last = None;
        for (level, nodes) in self.levels.iter().enumerate() {
            let mut children = [empty[level]; ARITY];
            children[..nodes.len()].copy_from_slice(nodes);
            if let Some(node) = last {
                children[nodes.len()] = node;
            }
            let is_empty = nodes.is_empty() && last.is_none();
            last = (!is_empty).then(|| hash(self.kind.domain(), &children));
        }
        last.unwrap_or(empty[self.kind.depth()])
    }

    /// The size (8 bytes, little-endian), the root, and the open nodes level by level, leaves first.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.size as u64).to_le_bytes().to_vec();
        bytes.extend(self.root.to_bytes());
        bytes.extend(self.levels.iter().flatten().flat_map(field::to_bytes));
        bytes
    }

    /// Reads what [`Frontier::to_bytes`] wrote; the size says how many nodes there are, and the
    /// stored root must be the one they give.
    pub fn from_bytes(kind: TreeKind, bytes: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "the frontier";
        const HEAD: usize = 8 + FIELD_BYTES;
        let too_short = Error::Length { what: WHAT, expected: HEAD, found: bytes.len() };
        let head = bytes.get(..HEAD).ok_or(too_short)?;
        let size = read_size(kind, head)?;
        let root = Root::from_bytes(&head[8..])?;
        let counts: Vec<usize> =
            (0..kind.depth()).map(|level| size / ARITY.pow(level as u32) % ARITY).collect();
        let expected = HEAD + counts.iter().sum::<usize>() * FIELD_BYTES;
        if bytes.len() != expected {
            return Err(Error::Length { what: WHAT, expected, found: bytes.len() });
        }
        let mut rest = bytes[HEAD..].chunks(FIELD_BYTES).map(|c| field::from_bytes(WHAT, c));
        let mut levels = Vec::with_capacity(counts.len());
        for count in counts {
            levels.push(rest.by_ref().take(count).collect::<Result<Vec<Fr>, Error>>()?);
        }
        let frontier = Self { kind, size, levels, root };
        // A full tree has no open nodes; its root cannot be recomputed from the frontier.
        if size < kind.capacity() && frontier.open_root() != root.0 {
            return Err(Error::NotCanonical { what: WHAT });
        }
        Ok(frontier)
    }
}
