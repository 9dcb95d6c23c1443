//! Membership in a tree.

use anofel_primitives::merkle::{Path, TreeKind, ARITY};
use anofel_primitives::Fr;

use crate::gadgets::poseidon;
use crate::system::{Lc, System};

/// The root above a leaf: at every level the node is one of eight children, and the next node
/// is their hash. Positions do not enter, so there are no selector bits that could be wrong.
///
/// The depth is that of the tree, whatever the path says: a path of another tree leads to
/// another root, and the caller's comparison names the clause that fails.
pub fn root(system: &mut System, kind: TreeKind, leaf: &Lc, path: &Path) -> Lc {
    let mut node = leaf.clone();
    for level in 0..kind.depth() {
        let children = path.levels().get(level).copied().unwrap_or([Fr::from(0); ARITY]);
        node = parent(system, kind, &node, &children);
    }
    node
}

/// The hash of eight children, of which the node is one.
pub fn parent(system: &mut System, kind: TreeKind, node: &Lc, children: &[Fr; ARITY]) -> Lc {
    let children = children.map(|child| system.variable(child));
    enforce_one_of(system, node, &children);
    poseidon::hash(system, kind.domain(), &children)
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
