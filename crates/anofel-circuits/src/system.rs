//! A rank-1 constraint system that is built and solved by the same code.
//!
//! One function per statement lays down the constraints. Run while [`Mode::Recording`], it
//! yields the matrices from which keys are made; run while [`Mode::Solving`], it yields only
//! the assignment and the two sides of every constraint, which is all that a proof needs. There
//! is no second description of a statement that could differ.
//!
//! Written here, not with `ark-r1cs-std`: with that, `ark-groth16` lays the matrices down anew for
//! every proof, though they never change, and no constraint says which clause of the statement it
//! belongs to.

use anofel_primitives::Fr;
use ark_ff::{AdditiveGroup, Field};

/// A clause of a statement, as `docs/statements.md` words it.
pub type Clause = &'static str;

/// What a run of a statement's code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Keep the matrices.
    Recording,
    /// Keep only values.
    Solving,
}

/// A linear combination of variables with its value. While solving, there are no terms.
#[derive(Debug, Clone)]
pub struct Lc {
    value: Fr,
    /// Variable and coefficient, ordered by variable, no coefficient zero.
    terms: Vec<(u32, Fr)>,
}

/// One row of a matrix: variable and coefficient, ordered by variable.
pub type Row = Vec<(u32, Fr)>;

/// A constraint: (row of A)·z × (row of B)·z = (row of C)·z.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    /// The left factor.
    pub a: Row,
    /// The right factor.
    pub b: Row,
    /// The product.
    pub c: Row,
    /// The clause that it belongs to.
    pub clause: Clause,
}

/// Variables, constraints and their values, in the order in which they were made.
///
/// Variable 0 is the constant one; the public inputs follow, then the witness.
#[derive(Debug)]
pub struct System {
    mode: Mode,
    clause: Clause,
    num_public: usize,
    assignment: Vec<Fr>,
    constraints: Vec<Constraint>,
    left: Vec<Fr>,
    right: Vec<Fr>,
    failed: Vec<Clause>,
}

impl System {
    /// Room for every statement, so that a growing vector never leaves a copy of the witness
    /// behind in freed memory.
    const CAPACITY: usize = 1 << 13;

    /// A system with these public inputs; their variables come back in the same order.
    pub fn new(mode: Mode, public: &[Fr]) -> (Self, Vec<Lc>) {
        let mut system = Self {
            mode,
            clause: "",
            num_public: public.len(),
            assignment: Vec::with_capacity(Self::CAPACITY),
            constraints: Vec::new(),
            left: Vec::with_capacity(Self::CAPACITY),
            right: Vec::with_capacity(Self::CAPACITY),
            failed: Vec::new(),
        };
        system.assignment.push(Fr::ONE);
        let variables = public.iter().map(|value| system.variable(*value)).collect();
        (system, variables)
    }

    /// From here on, constraints belong to this clause.
    pub fn clause(&mut self, clause: Clause) {
        self.clause = clause;
    }

    /// A new variable with this value, bound by no constraint yet.
    pub fn variable(&mut self, value: Fr) -> Lc {
        let index = self.assignment.len() as u32;
        self.assignment.push(value);
        let terms = match self.mode {
            Mode::Recording => vec![(index, Fr::ONE)],
            Mode::Solving => Vec::new(),
        };
        Lc { value, terms }
    }

    /// A constant.
    pub fn constant(&self, value: Fr) -> Lc {
        let keep = self.mode == Mode::Recording && value != Fr::ZERO;
        Lc { value, terms: if keep { vec![(0, value)] } else { Vec::new() } }
    }

    /// a × b = c.
    pub fn enforce(&mut self, a: &Lc, b: &Lc, c: &Lc) {
        if a.value * b.value != c.value && self.failed.last() != Some(&self.clause) {
            self.failed.push(self.clause);
        }
        self.left.push(a.value);
        self.right.push(b.value);
        if self.mode == Mode::Recording {
            let (a, b, c) = (a.terms.clone(), b.terms.clone(), c.terms.clone());
            self.constraints.push(Constraint { a, b, c, clause: self.clause });
        }
    }

    /// a = b.
    pub fn enforce_equal(&mut self, a: &Lc, b: &Lc) {
        let one = self.constant(Fr::ONE);
        self.enforce(a, &one, b);
    }

    /// A new variable for a × b.
    pub fn product(&mut self, a: &Lc, b: &Lc) -> Lc {
        let product = self.variable(a.value * b.value);
        self.enforce(a, b, &product);
        product
    }

    /// A new variable for a / b. If b is 0, the constraint fails unless a is 0 too; a caller for
    /// whom 0 / 0 would matter excludes it.
    pub fn quotient(&mut self, a: &Lc, b: &Lc) -> Lc {
        let quotient = self.variable(a.value * b.value.inverse().unwrap_or(Fr::ZERO));
        self.enforce(&quotient, b, a);
        quotient
    }

    /// The number of public inputs, the constant one not counted.
    pub fn num_public(&self) -> usize {
        self.num_public
    }

    /// The values of all variables: one, public inputs, witness.
    pub fn assignment(&self) -> &[Fr] {
        &self.assignment
    }

    /// The value of the left factor of every constraint.
    pub fn left(&self) -> &[Fr] {
        &self.left
    }

    /// The value of the right factor of every constraint.
    pub fn right(&self) -> &[Fr] {
        &self.right
    }

    /// The recorded constraints; empty while solving.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// The clauses with a constraint that does not hold, in order.
    pub fn failed(&self) -> &[Clause] {
        &self.failed
    }
}

impl Drop for System {
    /// The assignment holds the witness.
    fn drop(&mut self) {
        use zeroize::Zeroize;
        self.assignment.zeroize();
        self.left.zeroize();
        self.right.zeroize();
    }
}

impl Lc {
    /// The value.
    pub fn value(&self) -> Fr {
        self.value
    }

    /// Σ factor·lc.
    pub fn sum<'a>(parts: impl IntoIterator<Item = (Fr, &'a Lc)>) -> Self {
        let mut value = Fr::ZERO;
        let mut terms: Vec<(u32, Fr)> = Vec::new();
        for (factor, lc) in parts {
            value += factor * lc.value;
            if !lc.terms.is_empty() {
                terms = merge(&terms, factor, &lc.terms);
            }
        }
        Self { value, terms }
    }

    /// factor·self.
    pub fn scale(&self, factor: Fr) -> Self {
        Self::sum([(factor, self)])
    }

    /// self + other.
    pub fn plus(&self, other: &Self) -> Self {
        let terms = merge(&self.terms, Fr::ONE, &other.terms);
        Self { value: self.value + other.value, terms }
    }

    /// self − other.
    pub fn minus(&self, other: &Self) -> Self {
        let terms = merge(&self.terms, -Fr::ONE, &other.terms);
        Self { value: self.value - other.value, terms }
    }
}

/// left + factor·right, both ordered by variable.
fn merge(left: &[(u32, Fr)], factor: Fr, right: &[(u32, Fr)]) -> Vec<(u32, Fr)> {
    if left.is_empty() && right.is_empty() {
        return Vec::new();
    }
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        let from_left = left.get(i).map_or(u32::MAX, |term| term.0);
        let from_right = right.get(j).map_or(u32::MAX, |term| term.0);
        let variable = from_left.min(from_right);
        let mut coefficient = Fr::ZERO;
        if from_left == variable {
            coefficient += left[i].1;
            i += 1;
        }
        if from_right == variable {
            coefficient += factor * right[j].1;
            j += 1;
        }
        if coefficient != Fr::ZERO {
            merged.push((variable, coefficient));
        }
    }
    merged
}
