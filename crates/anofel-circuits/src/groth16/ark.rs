//! A recorded system as `ark-relations` sees it: for key generation, and as the stock peer of
//! the benchmark.

use anofel_primitives::Fr;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, Result, Variable,
};

use crate::system::System;

/// Replays recorded constraints and their assignment, variable by variable.
#[derive(Clone, Copy)]
pub struct Replay<'a>(pub &'a System);

impl ConstraintSynthesizer<Fr> for Replay<'_> {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<()> {
        let system = self.0;
        let mut variables = vec![Variable::One];
        for (index, value) in system.assignment().iter().enumerate().skip(1) {
            variables.push(if index <= system.num_public() {
                cs.new_input_variable(|| Ok(*value))?
            } else {
                cs.new_witness_variable(|| Ok(*value))?
            });
        }
        let combination = |row: &[(u32, Fr)]| {
            LinearCombination(row.iter().map(|(i, c)| (*c, variables[*i as usize])).collect())
        };
        for constraint in system.constraints() {
            cs.enforce_r1cs_constraint(
                || combination(&constraint.a),
                || combination(&constraint.b),
                || combination(&constraint.c),
            )?;
        }
        Ok(())
    }
}
