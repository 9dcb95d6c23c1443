//! Poseidon on BN254 with the constants of circomlib (D-03).
//!
//! `H_domain(x_1 … x_n)` is one permutation of width n + 1 on the state `[domain, x_1, …, x_n]`;
//! the output is the first element. circomlib's `Poseidon` is the case `domain = 0`
//! (its `PoseidonEx` takes the domain as `initialState`). The width separates the arities, the
//! domain separates the uses.
//!
//! The constants are those of `light-poseidon`. Its own permutation gives the same results, as a
//! test checks, and is no faster (35 to 59 µs beside 28 to 57 µs for two inputs), but needs a
//! mutable instance with a copy of the constants for every domain and thread, and leaves each of its
//! states, the first of which holds msk, in freed memory.

use std::sync::OnceLock;

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field, PrimeField};
#[cfg(not(target_family = "wasm"))]
use light_poseidon::parameters::bn254_x5::get_poseidon_parameters;

/// The largest number of inputs that we use.
pub const MAX_INPUTS: usize = 8;

/// What a hash is used for. Each use has one arity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Domain {
    /// circomlib's own hash with initial state 0; only EdDSA's challenge uses it.
    Circomlib,
    /// mpk = H(msk).
    MasterPublicKey,
    /// comm = H(d, msk, dt, salt).
    Commitment,
    /// What a certifier signs: H(d, mpk, dt).
    Certificate,
    /// The leaf of a certifier key: H(A.x, A.y).
    CertifierLeaf,
    /// An inner node of the certifier tree.
    CertifierNode,
    /// An inner node of the client tree.
    ClientNode,
    /// tag = H(msk, a).
    Tag,
    /// registration nullifier = H(msk, d, E).
    RegistrationNullifier,
    /// iteration nullifier = H(msk, d, scope).
    IterationNullifier,
}

impl Domain {
    /// All domains.
    pub const ALL: [Self; 10] = [
        Self::Circomlib,
        Self::MasterPublicKey,
        Self::Commitment,
        Self::Certificate,
        Self::CertifierLeaf,
        Self::CertifierNode,
        Self::ClientNode,
        Self::Tag,
        Self::RegistrationNullifier,
        Self::IterationNullifier,
    ];

    /// The text whose ASCII bytes, read as a big-endian integer, are the constant.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Circomlib => "",
            Self::MasterPublicKey => "anofel/1/master-public-key",
            Self::Commitment => "anofel/1/commitment",
            Self::Certificate => "anofel/1/certificate",
            Self::CertifierLeaf => "anofel/1/certifier-leaf",
            Self::CertifierNode => "anofel/1/certifier-node",
            Self::ClientNode => "anofel/1/client-node",
            Self::Tag => "anofel/1/tag",
            Self::RegistrationNullifier => "anofel/1/registration-nullifier",
            Self::IterationNullifier => "anofel/1/iteration-nullifier",
        }
    }

    /// The number of inputs of this use.
    pub const fn arity(self) -> usize {
        match self {
            Self::MasterPublicKey => 1,
            Self::CertifierLeaf | Self::Tag => 2,
            Self::Certificate | Self::RegistrationNullifier | Self::IterationNullifier => 3,
            Self::Commitment => 4,
            Self::Circomlib => 5,
            Self::CertifierNode | Self::ClientNode => 8,
        }
    }

    /// The constant: the first element of the state. At most 31 bytes, so it is canonical.
    pub fn constant(self) -> Fr {
        Fr::from_be_bytes_mod_order(self.text().as_bytes())
    }
}

/// Round numbers and constants for one width.
pub struct Parameters {
    /// Width of the state.
    pub width: usize,
    /// Rounds in which every element goes through the S-box, half before and half after.
    pub full_rounds: usize,
    /// Rounds in which only the first element does.
    pub partial_rounds: usize,
    /// One constant per element and round.
    pub constants: Vec<Fr>,
    /// The linear layer, row by row.
    pub mds: Vec<Vec<Fr>>,
}

impl Parameters {
    /// The parameters for a number of inputs between 1 and [`MAX_INPUTS`].
    pub fn for_inputs(inputs: usize) -> &'static Self {
        static CACHE: [OnceLock<Parameters>; MAX_INPUTS] = [const { OnceLock::new() }; MAX_INPUTS];
        CACHE[inputs - 1].get_or_init(|| made(inputs + 1))
    }

    /// Whether every element goes through the S-box in this round.
    pub fn is_full_round(&self, round: usize) -> bool {
        let half = self.full_rounds / 2;
        round < half || round >= half + self.partial_rounds
    }
}

#[cfg(not(target_family = "wasm"))]
fn made(width: usize) -> Parameters {
    let found = get_poseidon_parameters::<Fr>(width as u8)
        .expect("light-poseidon has every width from 2 to 16");
    Parameters {
        width: found.width,
        full_rounds: found.full_rounds,
        partial_rounds: found.partial_rounds,
        constants: found.ark,
        mds: found.mds,
    }
}

#[cfg(target_family = "wasm")]
use crate::grain::parameters as made;

/// One permutation on a state whose first element is `first`; the first element of the result.
pub fn permute(first: Fr, inputs: &[Fr]) -> Fr {
    let parameters = Parameters::for_inputs(inputs.len());
    let width = parameters.width;
    let mut state = [Fr::ZERO; MAX_INPUTS + 1];
    state[0] = first;
    state[1..width].copy_from_slice(inputs);
    for round in 0..parameters.full_rounds + parameters.partial_rounds {
        let constants = &parameters.constants[round * width..][..width];
        for (element, constant) in state[..width].iter_mut().zip(constants) {
            *element += constant;
        }
        let boxes = if parameters.is_full_round(round) { width } else { 1 };
        for element in &mut state[..boxes] {
            *element *= element.square().square();
        }
        let mut mixed = [Fr::ZERO; MAX_INPUTS + 1];
        for (sum, row) in mixed.iter_mut().zip(&parameters.mds) {
            *sum = row.iter().zip(&state).map(|(factor, element)| *factor * element).sum();
        }
        state = mixed;
    }
    state[0]
}

/// `H_domain(inputs)`. The number of inputs is part of the domain.
pub fn hash(domain: Domain, inputs: &[Fr]) -> Fr {
    assert_eq!(inputs.len(), domain.arity(), "{domain:?} has another number of inputs");
    permute(domain.constant(), inputs)
}
