//! Poseidon in constraints: three for each S-box, none for the linear layer.

use anofel_primitives::hash::{Domain, Parameters};

use crate::system::{Lc, System};

/// `H_domain(inputs)`.
pub fn hash(system: &mut System, domain: Domain, inputs: &[Lc]) -> Lc {
    assert_eq!(inputs.len(), domain.arity(), "{domain:?} has another number of inputs");
    let parameters = Parameters::for_inputs(inputs.len());
    let width = parameters.width;
    let mut state = vec![system.constant(domain.constant())];
    state.extend_from_slice(inputs);
    let rounds = parameters.full_rounds + parameters.partial_rounds;
    for round in 0..rounds {
        let constants = &parameters.constants[round * width..][..width];
        for (element, constant) in state.iter_mut().zip(constants) {
            *element = element.plus(&system.constant(*constant));
        }
        let boxes = if parameters.is_full_round(round) { width } else { 1 };
        for (position, element) in state[..boxes].iter_mut().enumerate() {
            *element = if (round, position) == (0, 0) {
                // The domain is a constant, so its S-box costs nothing.
                let fourth = element.value() * element.value() * element.value() * element.value();
                system.constant(fourth * element.value())
            } else {
                sbox(system, element)
            };
        }
        // The caller sees only the first element of the last state.
        let rows = if round + 1 == rounds { 1 } else { width };
        state = parameters.mds[..rows]
            .iter()
            .map(|row| Lc::sum(row.iter().copied().zip(&state)))
            .collect();
    }
    state.swap_remove(0)
}

/// x^5. The variable of x^4 never stands on the right, which keeps it out of the key's costly
/// second half.
fn sbox(system: &mut System, x: &Lc) -> Lc {
    let square = system.product(x, x);
    let fourth = system.product(&square, &square);
    system.product(&fourth, x)
}
