//! The three statements. Each is four types: what is public (`…Statement`), what is private
//! (`…Witness`), the constraints between them (`…Circuit`) and the proof.
//!
//! `docs/statements.md` lists the clauses in the same order and words.

pub mod ownership;
pub mod registration;
pub mod submission;

use anofel_primitives::Fr;

use crate::system::{Lc, Mode, System};

/// Names a statement in files and messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// To a certifier: the master public key is mine.
    Ownership,
    /// To the board: my dataset is certified.
    Registration,
    /// To the board: I am registered and have not posted in this iteration.
    Submission,
}

impl StatementKind {
    /// All statements.
    pub const ALL: [Self; 3] = [Self::Ownership, Self::Registration, Self::Submission];

    /// The name in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ownership => "ownership",
            Self::Registration => "registration",
            Self::Submission => "submission",
        }
    }

    /// The public inputs in their order.
    pub const fn public_inputs(self) -> &'static [&'static str] {
        match self {
            Self::Ownership => ownership::OwnershipCircuit::PUBLIC_INPUTS,
            Self::Registration => registration::RegistrationCircuit::PUBLIC_INPUTS,
            Self::Submission => submission::SubmissionCircuit::PUBLIC_INPUTS,
        }
    }

    /// The constraints, recorded.
    pub fn record(self) -> System {
        match self {
            Self::Ownership => record::<ownership::OwnershipCircuit>(),
            Self::Registration => record::<registration::RegistrationCircuit>(),
            Self::Submission => record::<submission::SubmissionCircuit>(),
        }
    }
}

/// The constraints of one statement.
pub trait Circuit {
    /// What is private.
    type Witness;
    /// Which statement this is.
    const KIND: StatementKind;
    /// The names of the public inputs, in order.
    const PUBLIC_INPUTS: &'static [&'static str];

    /// Lays down the constraints.
    fn constrain(system: &mut System, public: &[Lc], witness: &Self::Witness);

    /// A witness of the right shape, which need not satisfy anything.
    fn blank() -> Self::Witness;
}

/// What everybody sees of a statement.
pub trait Statement {
    /// The constraints.
    type Circuit: Circuit;

    /// The public inputs in the order of [`Circuit::PUBLIC_INPUTS`].
    fn public_inputs(&self) -> Vec<Fr>;
}

/// Runs the code of a statement.
pub fn run<C: Circuit>(mode: Mode, public: &[Fr], witness: &C::Witness) -> System {
    assert_eq!(public.len(), C::PUBLIC_INPUTS.len(), "public inputs of another statement");
    let (mut system, variables) = System::new(mode, public);
    C::constrain(&mut system, &variables, witness);
    system
}

fn record<C: Circuit>() -> System {
    run::<C>(Mode::Recording, &vec![Fr::from(0); C::PUBLIC_INPUTS.len()], &C::blank())
}
