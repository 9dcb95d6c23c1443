//! Every clause of every statement, with a witness for which only that clause fails.
//!
//! The statements come from a valid draft with one thing wrong; whatever follows from it (a
//! signature, a root, a hash) is made again, so that nothing else can fail.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod registration_clauses;
mod submission_clauses;

use std::sync::OnceLock;

use anofel_circuits::groth16::key::{Origin, ProvingKey};
use anofel_circuits::groth16::prover::prove;
use anofel_circuits::groth16::setup::stock_key;
use anofel_circuits::statements::ownership::{self, OwnershipWitness};
use anofel_circuits::statements::{
    registration, run, submission, Circuit, Statement, StatementKind,
};
use anofel_circuits::system::{Clause, Mode};
use anofel_circuits::Error;
use anofel_primitives::babyjubjub::Scalar;
use anofel_primitives::hash::{hash, Domain};
use anofel_primitives::identity::MasterSecret;
use anofel_primitives::merkle::{Path, TreeKind};
use anofel_primitives::Fr;
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, Field};
use common::draft::{
    bytes, of_order_eight, random, submitted, OwnershipPublic, Public, Registration, Submission,
};
use common::{matrices, value, World};
use proptest::prelude::*;
use rand::rngs::OsRng;

/// The clauses that fail: those that the solver reports are those whose recorded constraints do
/// not hold for the solver's assignment.
fn failed<S: Statement>(statement: &S, witness: &<S::Circuit as Circuit>::Witness) -> Vec<Clause> {
    let solved = run::<S::Circuit>(Mode::Solving, &statement.public_inputs(), witness);
    let z = solved.assignment();
    let recorded = matrices(S::Circuit::KIND).iter();
    let mut broken: Vec<Clause> = recorded
        .filter(|row| value(&row.a, z) * value(&row.b, z) != value(&row.c, z))
        .map(|row| row.clause)
        .collect();
    broken.dedup();
    assert_eq!(solved.failed(), broken);
    broken
}

/// Only this clause fails, and the prover says so instead of making a proof.
fn only<S: Statement>(clause: Clause, made: &(S, <S::Circuit as Circuit>::Witness)) {
    fails(&[clause], made);
}

/// These clauses fail, and the prover names the first.
fn fails<S: Statement>(clauses: &[Clause], made: &(S, <S::Circuit as Circuit>::Witness)) {
    let (statement, witness) = made;
    assert_eq!(failed(statement, witness), clauses);
    let refused = prove(unused_key(S::Circuit::KIND), statement, witness, &mut OsRng);
    assert_eq!(refused.unwrap_err(), Error::Unsatisfied { clause: clauses[0] });
}

fn holds<S: Statement>(made: &(S, <S::Circuit as Circuit>::Witness)) {
    assert_eq!(failed(&made.0, &made.1), Vec::<Clause>::new());
}

/// A key that names a statement. Its points are those of the smallest statement, because the
/// prover must stop before it uses them.
fn unused_key(kind: StatementKind) -> &'static ProvingKey {
    static KEYS: OnceLock<Vec<ProvingKey>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        let system = StatementKind::Ownership.record();
        let stock = stock_key(&system, &mut OsRng);
        let make = |kind| ProvingKey::new(kind, &system, Origin::Development, &stock);
        StatementKind::ALL.map(make).into()
    });
    &keys[kind as usize]
}

/// Each of these has a test of its own in this folder; 3b and the challenge are in mutation.rs
/// too, where they break alone.
#[test]
fn a_statement_has_these_clauses_and_no_others() {
    let expected: [&[Clause]; 3] = [
        &[ownership::MASTER_PUBLIC_KEY, ownership::CHALLENGE],
        &[
            registration::MASTER_PUBLIC_KEY,
            registration::COMMITMENT,
            registration::KEY_ON_CURVE,
            registration::R8_ON_CURVE,
            registration::S_CANONICAL,
            registration::CHALLENGE_CANONICAL,
            registration::SIGNATURE,
            registration::CERTIFIER,
            registration::TAG,
            registration::NULLIFIER,
            registration::DATASET_TYPE,
        ],
        &[
            submission::MEMBERSHIP,
            submission::TAG,
            submission::NULLIFIER,
            submission::DATASET_TYPE,
            submission::TYPE_COMMITMENT,
        ],
    ];
    for (kind, expected) in StatementKind::ALL.into_iter().zip(expected) {
        let mut found: Vec<Clause> = matrices(kind).iter().map(|row| row.clause).collect();
        found.dedup();
        assert_eq!(found, expected);
    }
}

mod valid {
    use super::*;

    #[test]
    fn statements_of_honest_clients_hold() {
        let world = World::new();
        holds(&world.ownership());
        holds(&world.registration());
        holds(&world.submission(1));
    }

    #[test]
    fn recording_lays_down_the_same_constraints_for_every_witness() {
        fn check<S: Statement>(made: &(S, <S::Circuit as Circuit>::Witness)) {
            let public = made.0.public_inputs();
            let recorded = run::<S::Circuit>(Mode::Recording, &public, &made.1);
            let solved = run::<S::Circuit>(Mode::Solving, &public, &made.1);
            assert_eq!(recorded.constraints(), matrices(S::Circuit::KIND));
            assert_eq!(recorded.assignment(), solved.assignment());
            assert_eq!(recorded.left(), solved.left());
            assert_eq!(recorded.right(), solved.right());
            assert_eq!(recorded.failed(), solved.failed());
            assert!(solved.constraints().is_empty());
        }
        check(&World::new().ownership());
        let mut draft = Registration::new();
        check(&draft.finish());
        (draft.dt, draft.mpk, draft.key) = (-Fr::ONE, Fr::ZERO, of_order_eight());
        check(&draft.finish());
        let mut draft = Submission::new();
        check(&draft.finish());
        draft.dt = -Fr::ONE;
        check(&draft.finish());
    }

    #[test]
    fn the_smallest_and_the_largest_values_hold() {
        let (zero, last) = (Fr::ZERO, -Fr::ONE);
        for value in [zero, last] {
            let mut draft = Registration::new();
            (draft.d, draft.salt, draft.msk) = (value, value, value);
            draft.mpk = hash(Domain::MasterPublicKey, &[value]);
            draft.dt = if value == zero { zero } else { Fr::from(u32::MAX) };
            holds(&draft.finish());
            let mut draft = Submission::new();
            (draft.d, draft.salt, draft.msk) = (value, value, value);
            draft.dt = if value == zero { zero } else { Fr::from(u32::MAX) };
            draft.rho = if value == zero { Scalar::ZERO } else { -Scalar::ONE };
            holds(&draft.finish());
        }
    }

    #[test]
    fn every_place_in_a_block_of_the_tree_holds() {
        for place in 0..8 {
            let draft = Submission::new();
            let mut leaves: Vec<Fr> = (1..=8).map(Fr::from).collect();
            leaves[place] = draft.comm();
            let (mut statement, mut witness) = draft.finish();
            let tree = anofel_primitives::merkle::Tree::from_leaves(TreeKind::Clients, leaves);
            let tree = tree.unwrap();
            statement.0[submitted::ROOT] = tree.root().element();
            witness.path = tree.path(place).unwrap();
            holds(&(statement, witness));
        }
    }
}

mod ownership_clauses {
    use super::*;

    fn made(mpk: Fr, msk: Fr) -> (OwnershipPublic, OwnershipWitness) {
        let msk = MasterSecret::from_bytes(&bytes(msk)).unwrap();
        (Public::new(vec![mpk, random()]), OwnershipWitness::new(&msk))
    }

    #[test]
    fn o1_a_master_public_key_of_another_secret_is_refused() {
        let msk = random();
        let mpk = hash(Domain::MasterPublicKey, &[msk]);
        holds(&made(mpk, msk));
        only(ownership::MASTER_PUBLIC_KEY, &made(mpk, msk + Fr::ONE));
        only(ownership::MASTER_PUBLIC_KEY, &made(mpk + Fr::ONE, msk));
    }

    // Clause 2 holds for every challenge: it is what ties a proof to one. That a proof does
    // not fit another challenge is tested in groth16/verifier.rs, and that only clause 2 breaks when
    // the challenge changes under an assignment in mutation.rs.
}

mod properties {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_valid_submission_with_one_random_change_fails(input in 0usize..12, noise in 1u64..) {
            let (mut statement, mut witness) = Submission::new().finish();
            prop_assert!(failed(&statement, &witness).is_empty());
            let change = Fr::from(noise);
            let mut levels = witness.path.levels().to_vec();
            match input {
                0..=6 => statement.0[input] += change,
                7 => witness.d += change,
                8 => witness.salt += change,
                9 => witness.msk += change,
                10 => witness.rho += Scalar::from(noise),
                _ => levels[noise as usize % 7][noise as usize % 8] += change,
            }
            witness.path = Path::from_levels(levels);
            prop_assert!(!failed(&statement, &witness).is_empty());
        }

        #[test]
        fn a_valid_registration_with_one_random_change_fails(input in 0usize..16, noise in 1u64..) {
            let (mut statement, mut witness) = Registration::new().finish();
            prop_assert!(failed(&statement, &witness).is_empty());
            let change = Fr::from(noise);
            let mut levels = witness.path.levels().to_vec();
            match input {
                0..=5 => statement.0[input] += change,
                6 => witness.d += change,
                7 => witness.salt += change,
                8 => witness.msk += change,
                9 => witness.mpk += change,
                10 => witness.dt += change,
                11 => witness.key = (witness.key + witness.key).into_affine(),
                12 => witness.r8.y += change,
                13 => witness.h.0[0] ^= noise,
                14 => witness.s.0[1] ^= noise,
                _ => levels[noise as usize % 4][noise as usize % 8] += change,
            }
            witness.path = Path::from_levels(levels);
            prop_assert!(!failed(&statement, &witness).is_empty());
        }
    }
}
