//! No variable is free: whatever is changed in a valid assignment, some constraint breaks.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use anofel_circuits::statements::{
    ownership, registration, run, submission, Circuit, Statement, StatementKind,
};
use anofel_circuits::system::{Clause, Constraint, Mode};
use anofel_primitives::Fr;
use ark_ff::{AdditiveGroup, Field};
use common::{matrices, value, World};

/// A valid assignment, its constraints, and for every variable the constraints it stands in.
struct Solved {
    kind: StatementKind,
    assignment: Vec<Fr>,
    uses: Vec<Vec<usize>>,
}

impl Solved {
    fn new<S: Statement>(made: (S, <S::Circuit as Circuit>::Witness)) -> Self {
        let kind = S::Circuit::KIND;
        let system = run::<S::Circuit>(Mode::Solving, &made.0.public_inputs(), &made.1);
        assert!(system.failed().is_empty());
        let assignment = system.assignment().to_vec();
        let mut uses = vec![Vec::new(); assignment.len()];
        for (index, row) in matrices(kind).iter().enumerate() {
            for (variable, _) in row.a.iter().chain(&row.b).chain(&row.c) {
                let list: &mut Vec<usize> = &mut uses[*variable as usize];
                if list.last() != Some(&index) {
                    list.push(index);
                }
            }
        }
        Self { kind, assignment, uses }
    }

    /// The clauses that break if one variable takes another value.
    fn broken_by(&mut self, variable: usize, changed: Fr) -> Vec<Clause> {
        let kept = std::mem::replace(&mut self.assignment[variable], changed);
        let z = &self.assignment;
        let mut clauses: Vec<Clause> = self.uses[variable]
            .iter()
            .map(|index| &matrices(self.kind)[*index])
            .filter(|row| value(&row.a, z) * value(&row.b, z) != value(&row.c, z))
            .map(|row| row.clause)
            .collect();
        clauses.dedup();
        self.assignment[variable] = kept;
        clauses
    }

    fn num_public(&self) -> usize {
        self.kind.public_inputs().len()
    }
}

fn all() -> [Solved; 3] {
    let world = World::new();
    [
        Solved::new(world.ownership()),
        Solved::new(world.registration()),
        Solved::new(world.submission(1)),
    ]
}

#[test]
fn every_witness_variable_is_bound() {
    // There are no free variables, so there is no list of exceptions.
    for mut solved in all() {
        for variable in solved.num_public() + 1..solved.assignment.len() {
            let valid = solved.assignment[variable];
            for changed in [valid + Fr::ONE, Fr::ZERO, Fr::ONE, -valid] {
                let name = solved.kind.name();
                assert!(
                    changed == valid || !solved.broken_by(variable, changed).is_empty(),
                    "{name}: variable {variable} can be {changed} instead of {valid}"
                );
            }
        }
    }
}

#[test]
fn every_public_input_is_bound_by_the_clause_that_names_it() {
    let expected: [&[Clause]; 3] = [
        &[ownership::MASTER_PUBLIC_KEY, ownership::CHALLENGE],
        &[
            registration::CERTIFIER,
            registration::COMMITMENT,
            registration::NULLIFIER,
            registration::NULLIFIER,
            registration::TAG,
            registration::TAG,
        ],
        &[
            submission::MEMBERSHIP,
            submission::NULLIFIER,
            submission::TAG,
            submission::TAG,
            submission::NULLIFIER,
            submission::TYPE_COMMITMENT,
            submission::TYPE_COMMITMENT,
        ],
    ];
    for (mut solved, expected) in all().into_iter().zip(expected) {
        assert_eq!(expected.len(), solved.num_public());
        for (input, clause) in expected.iter().enumerate() {
            let changed = solved.assignment[input + 1] + Fr::ONE;
            assert_eq!(solved.broken_by(input + 1, changed), [*clause]);
        }
    }
}

/// The variable of R8.x² stands only in clause 3b, and so does that of the challenge's square
/// in clause 2 of ownership: these clauses stand by themselves.
#[test]
fn clauses_that_no_witness_breaks_alone_break_when_their_own_variable_changes() {
    let [mut owned, mut registered, _] = all();
    let only = |solved: &mut Solved, clause: Clause| {
        let own = (1..solved.assignment.len()).find(|variable| {
            let mut uses = solved.uses[*variable].iter();
            !solved.uses[*variable].is_empty()
                && uses.all(|index| matrices(solved.kind)[*index].clause == clause)
        });
        let own = own.unwrap();
        let changed = solved.assignment[own] + Fr::ONE;
        assert_eq!(solved.broken_by(own, changed), [clause]);
    };
    only(&mut owned, ownership::CHALLENGE);
    only(&mut registered, registration::R8_ON_CURVE);
}

#[test]
fn an_assignment_of_zeros_satisfies_nothing_but_its_zero_rows() {
    for solved in all() {
        let mut zeros = vec![Fr::ZERO; solved.assignment.len()];
        zeros[0] = Fr::ONE;
        zeros[1..=solved.num_public()].copy_from_slice(&solved.assignment[1..=solved.num_public()]);
        let mut broken: Vec<Clause> = matrices(solved.kind)
            .iter()
            .filter(|row| value(&row.a, &zeros) * value(&row.b, &zeros) != value(&row.c, &zeros))
            .map(|row| row.clause)
            .collect();
        broken.dedup();
        let mut clauses: Vec<Clause> = matrices(solved.kind).iter().map(|row| row.clause).collect();
        clauses.dedup();
        // dt = 0 has 32 bits, and zeros are the bits of it.
        clauses.retain(|clause| *clause != registration::DATASET_TYPE);
        assert_eq!(broken, clauses);
    }
}

#[test]
#[should_panic(expected = "public inputs of another statement")]
fn a_missing_public_input_is_refused() {
    let (statement, witness) = World::new().submission(1);
    let public = statement.public_inputs();
    run::<submission::SubmissionCircuit>(Mode::Solving, &public[1..], &witness);
}

/// Given what a client chooses, the constraints leave no choice for anything else.
///
/// Starting from the constant and the public inputs, a variable becomes known when it is the
/// only unknown one of a constraint that is linear in it with a factor that is not 0. Whatever
/// remains unknown then must be chosen; the first such variable is taken as chosen, and so on.
/// The chosen ones are exactly the inputs of the witness and the digits and bits of integers,
/// which are bound to finite sets of their own.
#[test]
fn all_but_the_inputs_of_the_witness_is_determined() {
    let expected: [&[(Clause, usize)]; 3] = [
        // msk
        &[(ownership::MASTER_PUBLIC_KEY, 1)],
        &[
            // msk
            (registration::MASTER_PUBLIC_KEY, 1),
            // d, dt, salt
            (registration::COMMITMENT, 3),
            // A
            (registration::KEY_ON_CURVE, 2),
            // R8
            (registration::R8_ON_CURVE, 2),
            // 84 digits; of 125 bits the sum gives the last
            (registration::S_CANONICAL, 84 + 124),
            // 254 signs and 127 bits, two sums
            (registration::CHALLENGE_CANONICAL, 253 + 126),
            // 4 levels
            (registration::CERTIFIER, 4 * 8),
            // 32 bits and their sum
            (registration::DATASET_TYPE, 31),
        ],
        &[
            // d, dt, salt, msk and 7 levels
            (submission::MEMBERSHIP, 4 + 7 * 8),
            // 11 digits and their sum
            (submission::DATASET_TYPE, 10),
            // 84 digits
            (submission::TYPE_COMMITMENT, 84),
        ],
    ];
    for (solved, expected) in all().iter().zip(expected) {
        let chosen = chosen(solved);
        let expected: BTreeMap<Clause, usize> = expected.iter().copied().collect();
        assert_eq!(chosen, expected, "{}", solved.kind.name());
    }
}

/// How many variables are chosen, by the clause in which they are first used.
fn chosen(solved: &Solved) -> BTreeMap<Clause, usize> {
    let rows = matrices(solved.kind);
    let mut known = vec![false; solved.assignment.len()];
    let mut chosen = BTreeMap::new();
    learn(solved, &mut known, (0..=solved.num_public()).collect());
    for variable in 0..known.len() {
        if !known[variable] {
            let clause = rows[solved.uses[variable][0]].clause;
            *chosen.entry(clause).or_default() += 1;
            learn(solved, &mut known, vec![variable]);
        }
    }
    chosen
}

/// Marks these variables as known, and everything that follows.
fn learn(solved: &Solved, known: &mut [bool], mut new: Vec<usize>) {
    while let Some(variable) = new.pop() {
        if std::mem::replace(&mut known[variable], true) {
            continue;
        }
        for index in &solved.uses[variable] {
            let row = &matrices(solved.kind)[*index];
            if let Some(follows) = determined(row, known, &solved.assignment) {
                new.push(follows);
            }
        }
    }
}

/// The one unknown variable of a constraint, if the constraint determines it.
fn determined(row: &Constraint, known: &[bool], z: &[Fr]) -> Option<usize> {
    let mut unknown = None;
    for (variable, _) in row.a.iter().chain(&row.b).chain(&row.c) {
        let variable = *variable as usize;
        if !known[variable] && unknown.replace(variable).is_some_and(|other| other != variable) {
            return None;
        }
    }
    let variable = unknown?;
    let factor = |row: &[(u32, Fr)]| {
        row.iter().find(|term| term.0 as usize == variable).map_or(Fr::ZERO, |term| term.1)
    };
    let (a, b, c) = (factor(&row.a), factor(&row.b), factor(&row.c));
    let slope = a * value(&row.b, z) + b * value(&row.a, z) - c;
    (a * b == Fr::ZERO && slope != Fr::ZERO).then_some(variable)
}
