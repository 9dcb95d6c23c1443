//! How membership grows with the depth of the tree: the first clause of the submission, alone, for
//! trees that are less or more deep than the one in use.

use anofel_circuits::gadgets::{poseidon, tree};
use anofel_circuits::statements::{Circuit, Statement, StatementKind};
use anofel_circuits::system::{Lc, System};
use anofel_primitives::hash::{hash, Domain};
use anofel_primitives::merkle::{TreeKind, ARITY};
use anofel_primitives::Fr;
use ark_ff::UniformRand;
use rand::rngs::OsRng;

/// H(d, msk, dt, salt) is a leaf under a root, `DEPTH` levels up.
pub struct Membership<const DEPTH: usize> {
    root: Fr,
}

/// The opening of the commitment and all children on the way.
pub struct MembershipWitness<const DEPTH: usize> {
    opening: [Fr; 4],
    levels: [[Fr; ARITY]; DEPTH],
}

impl<const DEPTH: usize> Membership<DEPTH> {
    /// A random member of a random tree.
    pub fn random() -> (Self, MembershipWitness<DEPTH>) {
        let opening = [(); 4].map(|()| Fr::rand(&mut OsRng));
        let mut node = hash(Domain::Commitment, &opening);
        let levels = [(); DEPTH].map(|()| {
            let mut children = [(); ARITY].map(|()| Fr::rand(&mut OsRng));
            children[DEPTH % ARITY] = node;
            node = hash(Domain::ClientNode, &children);
            children
        });
        (Self { root: node }, MembershipWitness { opening, levels })
    }
}

impl<const DEPTH: usize> Statement for Membership<DEPTH> {
    type Circuit = Self;

    fn public_inputs(&self) -> Vec<Fr> {
        vec![self.root]
    }
}

impl<const DEPTH: usize> Circuit for Membership<DEPTH> {
    type Witness = MembershipWitness<DEPTH>;
    /// Only a label here: keys must name some statement.
    const KIND: StatementKind = StatementKind::Submission;
    const PUBLIC_INPUTS: &'static [&'static str] = &["client root"];

    fn constrain(system: &mut System, public: &[Lc], witness: &Self::Witness) {
        let opening = witness.opening.map(|value| system.variable(value));
        let mut node = poseidon::hash(system, Domain::Commitment, &opening);
        for children in &witness.levels {
            node = tree::parent(system, TreeKind::Clients, &node, children);
        }
        system.enforce_equal(&node, &public[0]);
    }

    fn blank() -> Self::Witness {
        MembershipWitness { opening: [Fr::from(0); 4], levels: [[Fr::from(0); ARITY]; DEPTH] }
    }
}
