//! Membership in a tree.

use anofel_primitives::merkle::{Path, TreeKind};

use crate::gadgets::poseidon;
use crate::system::{Lc, System};

/// The root above a leaf: at every level the node is one of eight children, and the next node
/// is their hash. Positions do not enter, so there are no selector bits that could be wrong.
pub fn root(system: &mut System, kind: TreeKind, leaf: &Lc, path: &Path) -> Lc {
    assert_eq!(path.levels().len(), kind.depth(), "a path of another tree");
    let mut node = leaf.clone();
    for level in path.levels() {
        let children: Vec<Lc> = level.iter().map(|child| system.variable(*child)).collect();
        enforce_one_of(system, &node, &children);
        node = poseidon::hash(system, kind.domain(), &children);
    }
    node
}

/// Π (child − node) = 0.
fn enforce_one_of(system: &mut System, node: &Lc, children: &[Lc]) {
    let differences: Vec<Lc> = children.iter().map(|child| child.minus(node)).collect();
    let (last, others) = differences.split_last().expect("a node has eight children");
    let mut product = others[0].clone();
    for difference in &others[1..] {
        product = system.product(&product, difference);
    }
    let zero = system.constant(0.into());
    system.enforce(&product, last, &zero);
}
