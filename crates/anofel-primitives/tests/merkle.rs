//! Trees against a plain recursive definition, and what they refuse.
#![allow(clippy::unwrap_used)]

use anofel_primitives::hash::hash;
use anofel_primitives::merkle::{Frontier, Tree, TreeKind, ARITY};
use anofel_primitives::{Error, Fr};
use proptest::prelude::*;

/// The root by definition: the node above eight subtrees, an absent leaf being 0.
fn root(kind: TreeKind, leaves: &[Fr], level: usize) -> Fr {
    if level == 0 {
        return leaves.first().copied().unwrap_or(Fr::from(0));
    }
    if leaves.is_empty() {
        // All eight are the same.
        return hash(kind.domain(), &[root(kind, &[], level - 1); ARITY]);
    }
    let width = ARITY.pow(level as u32 - 1);
    let children: Vec<Fr> = (0..ARITY)
        .map(|child| {
            let from = (child * width).min(leaves.len());
            let to = ((child + 1) * width).min(leaves.len());
            root(kind, &leaves[from..to], level - 1)
        })
        .collect();
    hash(kind.domain(), &children)
}

fn arb_leaves() -> impl Strategy<Value = Vec<Fr>> {
    proptest::collection::vec((1u64..).prop_map(Fr::from), 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn appending_gives_the_root_of_the_definition(leaves in arb_leaves(), cut in 0usize..150) {
        let cut = cut.min(leaves.len());
        let kind = TreeKind::Certifiers;
        let mut tree = Tree::new(kind);
        tree.append(&leaves[..cut]).unwrap();
        let before = tree.root();
        tree.append(&leaves[cut..]).unwrap();
        prop_assert_eq!(tree.root().element(), root(kind, &leaves, kind.depth()));
        prop_assert_eq!(tree.at_size(cut).unwrap().root(), before);
        let again = Tree::from_leaf_bytes(kind, &tree.leaves_to_bytes(0)).unwrap();
        prop_assert_eq!(again.root(), tree.root());
        let mut stored = Tree::from_node_bytes(kind, &tree.to_node_bytes()).unwrap();
        prop_assert_eq!(stored.to_node_bytes(), tree.to_node_bytes());
        stored.append(&[Fr::from(7)]).unwrap();
        tree.append(&[Fr::from(7)]).unwrap();
        prop_assert_eq!(stored.root(), tree.root());
    }

    #[test]
    fn a_frontier_follows_its_tree(leaves in arb_leaves(), cut in 0usize..150) {
        let cut = cut.min(leaves.len());
        let kind = TreeKind::Certifiers;
        let mut tree = Tree::new(kind);
        let mut frontier = Frontier::new(kind);
        for part in [&leaves[..cut], &leaves[cut..]] {
            tree.append(part).unwrap();
            frontier = Frontier::from_bytes(kind, &frontier.to_bytes()).unwrap();
            frontier.append(part).unwrap();
            prop_assert_eq!(frontier.root(), tree.root());
            prop_assert_eq!(&frontier, &tree.frontier());
        }
    }

    #[test]
    fn every_path_leads_to_the_root(leaves in arb_leaves(), index in any::<prop::sample::Index>()) {
        prop_assume!(!leaves.is_empty());
        let index = index.index(leaves.len());
        let kind = TreeKind::Clients;
        let mut tree = Tree::new(kind);
        tree.append(&leaves).unwrap();
        let path = tree.path(index).unwrap();
        let mut node = leaves[index];
        for children in path.levels() {
            prop_assert!(children.contains(&node));
            node = hash(kind.domain(), children);
        }
        prop_assert_eq!(node, tree.root().element());
    }

    #[test]
    fn zeroing_a_leaf_equals_a_tree_built_without_it(leaves in arb_leaves(), index in any::<prop::sample::Index>()) {
        prop_assume!(!leaves.is_empty());
        let index = index.index(leaves.len());
        let kind = TreeKind::Certifiers;
        let mut tree = Tree::new(kind);
        tree.append(&leaves).unwrap();
        tree.zero(index).unwrap();
        let mut zeroed = leaves.clone();
        zeroed[index] = Fr::from(0);
        prop_assert_eq!(tree.root().element(), root(kind, &zeroed, kind.depth()));
    }
}

#[test]
fn a_full_tree_refuses_and_keeps_its_root() {
    let kind = TreeKind::Certifiers;
    let leaves: Vec<Fr> = (1..=kind.capacity() as u64).map(Fr::from).collect();
    let mut tree = Tree::new(kind);
    let mut frontier = Frontier::new(kind);
    tree.append(&leaves).unwrap();
    frontier.append(&leaves).unwrap();
    let root = tree.root();
    assert_eq!(frontier.root(), root);
    assert_eq!(Frontier::from_bytes(kind, &frontier.to_bytes()).unwrap(), frontier);
    let full = Error::TreeFull { capacity: 4096 };
    assert_eq!(tree.append(&leaves[..1]), Err(full.clone()));
    assert_eq!(frontier.append(&leaves[..1]), Err(full));
    assert_eq!(tree.root(), root);
}

#[test]
fn the_empty_leaf_is_not_a_member() {
    let mut tree = Tree::new(TreeKind::Clients);
    assert_eq!(tree.append(&[Fr::from(0)]), Err(Error::EmptyLeaf));
    assert_eq!(tree.path(0).unwrap_err(), Error::NoSuchLeaf { index: 0, size: 0 });
}

#[test]
fn a_changed_frontier_is_refused() {
    let mut frontier = Frontier::new(TreeKind::Clients);
    frontier.append(&[Fr::from(3), Fr::from(4)]).unwrap();
    let good = frontier.to_bytes();
    let mut changed = good.clone();
    changed[8 + 32] ^= 1;
    Frontier::from_bytes(TreeKind::Clients, &changed).unwrap_err();
    Frontier::from_bytes(TreeKind::Clients, &good[..good.len() - 1]).unwrap_err();
    Frontier::from_bytes(TreeKind::Certifiers, &good).unwrap_err();
    Frontier::from_bytes(TreeKind::Clients, &good[..7]).unwrap_err();
}
