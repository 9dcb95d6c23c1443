//! Submission: clauses 1 to 4.

use anofel_circuits::statements::submission;
use anofel_primitives::babyjubjub::Scalar;
use anofel_primitives::hash::{hash, Domain};
use anofel_primitives::merkle::{Path, TreeKind};
use anofel_primitives::Fr;
use ark_ff::{AdditiveGroup, Field, PrimeField, UniformRand};
use rand::rngs::OsRng;

use crate::common::draft::{plant, random, submitted, Submission};
use crate::{holds, only};

#[test]
fn s1_a_commitment_that_is_not_registered_is_refused() {
    let draft = Submission::new();
    let (mut statement, witness) = draft.finish();
    statement.0[submitted::ROOT] = plant(TreeKind::Clients, random()).0;
    only(submission::MEMBERSHIP, &(statement, witness));
}

#[test]
fn s1_another_clients_commitment_is_refused() {
    // The other client is registered; ours has everything but its master secret, d, dt or
    // salt.
    let draft = Submission::new();
    let changes: [fn(&mut Submission); 4] = [
        |draft| draft.d += Fr::ONE,
        |draft| draft.dt = Fr::from(draft.dt.into_bigint().0[0] as u32 ^ 1),
        |draft| draft.salt += Fr::ONE,
        |draft| draft.msk += Fr::ONE,
    ];
    for change in changes {
        let mut other = draft.clone();
        change(&mut other);
        let (root, path) = plant(TreeKind::Clients, other.comm());
        let (mut statement, mut witness) = draft.finish();
        statement.0[submitted::ROOT] = root;
        witness.path = path;
        only(submission::MEMBERSHIP, &(statement, witness));
    }
}

#[test]
fn s1_a_commitment_under_the_root_of_the_certifier_tree_is_refused() {
    let draft = Submission::new();
    let (mut statement, mut witness) = draft.finish();
    let (root, path) = plant(TreeKind::Certifiers, draft.comm());
    statement.0[submitted::ROOT] = root;
    witness.path = path;
    only(submission::MEMBERSHIP, &(statement, witness));
}

#[test]
fn s1_a_path_of_another_depth_and_the_empty_leaf_are_refused() {
    let (statement, witness) = Submission::new().finish();
    for from in [1, 2, 7] {
        let mut shifted = witness.clone();
        shifted.path = Path::from_levels(witness.path.levels()[from..].to_vec());
        only(submission::MEMBERSHIP, &(statement.clone(), shifted));
    }
    let (root, path) = plant(TreeKind::Clients, Fr::ZERO);
    let mut empty = (statement, witness);
    empty.0 .0[submitted::ROOT] = root;
    empty.1.path = path;
    only(submission::MEMBERSHIP, &empty);
}

#[test]
fn s2_a_tag_for_anything_else_is_refused() {
    let draft = Submission::new();
    let (statement, witness) = draft.finish();
    let Submission { msk, d, a, .. } = draft;
    let tags = [
        hash(Domain::Tag, &[msk, a + Fr::ONE]),
        hash(Domain::Tag, &[msk + Fr::ONE, a]),
        hash(Domain::CertifierLeaf, &[msk, a]),
        hash(Domain::IterationNullifier, &[msk, d, a]),
    ];
    for tag in tags {
        let mut changed = statement.clone();
        changed.0[submitted::TAG] = tag;
        only(submission::TAG, &(changed, witness.clone()));
    }
    let mut changed = statement;
    changed.0[submitted::A] += Fr::ONE;
    only(submission::TAG, &(changed, witness));
}

#[test]
fn s3_a_nullifier_for_anything_else_is_refused() {
    let draft = Submission::new();
    let (statement, witness) = draft.finish();
    let Submission { msk, d, scope, .. } = draft;
    let nullifiers = [
        hash(Domain::IterationNullifier, &[msk, d, scope + Fr::ONE]),
        hash(Domain::IterationNullifier, &[msk, d + Fr::ONE, scope]),
        hash(Domain::IterationNullifier, &[msk + Fr::ONE, d, scope]),
        hash(Domain::RegistrationNullifier, &[msk, d, scope]),
        hash(Domain::Tag, &[msk, scope]),
    ];
    for nullifier in nullifiers {
        let mut changed = statement.clone();
        changed.0[submitted::NULLIFIER] = nullifier;
        only(submission::NULLIFIER, &(changed, witness.clone()));
    }
    let mut changed = statement;
    changed.0[submitted::SCOPE] += Fr::ONE;
    only(submission::NULLIFIER, &(changed, witness));
}

#[test]
fn s4a_a_dataset_type_of_33_bits_or_more_is_refused() {
    for dt in [Fr::from(1u64 << 32), Fr::from(u64::MAX), -Fr::ONE, random()] {
        let mut draft = Submission::new();
        draft.dt = dt;
        only(submission::DATASET_TYPE, &draft.finish());
    }
}

#[test]
fn s4b_a_commitment_to_another_type_or_with_another_blinding_is_refused() {
    let draft = Submission::new();
    let (statement, witness) = draft.finish();
    let mut blinded = witness.clone();
    blinded.rho += Scalar::ONE;
    only(submission::TYPE_COMMITMENT, &(statement.clone(), blinded));
    let mut typed = draft;
    typed.dt = Fr::from(typed.dt.into_bigint().0[0] as u32 ^ 1);
    let (other, _) = typed.finish();
    let mut changed = statement.clone();
    changed.0[submitted::TYPE_X..].copy_from_slice(&other.0[submitted::TYPE_X..]);
    only(submission::TYPE_COMMITMENT, &(changed, witness.clone()));
    // −(x, y) = (−x, y) and a point that is not even on the curve.
    for change in [|x: Fr| -x, |x: Fr| x + Fr::ONE] {
        let mut changed = statement.clone();
        changed.0[submitted::TYPE_X] = change(changed.0[submitted::TYPE_X]);
        only(submission::TYPE_COMMITMENT, &(changed, witness.clone()));
    }
}

#[test]
fn the_nullifier_does_not_depend_on_salt_message_key_or_blinding() {
    let draft = Submission::new();
    let mut again = draft.clone();
    (again.salt, again.a, again.rho) = (random(), random(), Scalar::rand(&mut OsRng));
    let (first, second) = (draft.finish(), again.finish());
    holds(&first);
    holds(&second);
    assert_eq!(first.0 .0[submitted::NULLIFIER], second.0 .0[submitted::NULLIFIER]);
    assert_ne!(first.0 .0[submitted::TAG], second.0 .0[submitted::TAG]);
}

#[test]
fn a_scope_that_equals_an_old_message_key_gives_no_old_tag() {
    let mut draft = Submission::new();
    draft.scope = draft.a;
    let made = draft.finish();
    holds(&made);
    assert_ne!(made.0 .0[submitted::NULLIFIER], made.0 .0[submitted::TAG]);
}
