//! What can be wrong with a request for noise or with an update.

use thiserror::Error;

/// A request for noise that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoiseError {
    /// The standard deviation is zero or too large for exact 128-bit arithmetic.
    #[error("the standard deviation of the noise must lie between 1 and 2^{max_bits}, but it is {sigma}")]
    SigmaOutOfRange {
        /// What was asked for.
        sigma: u64,
        /// The largest power of two accepted.
        max_bits: u32,
    },
}

/// An update that cannot be applied to a model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// Model, velocity and sum have different lengths.
    #[error("the model has {model} parameters, its velocity {velocity} and the sum {sum}")]
    LengthsDiffer {
        /// Parameters in the model.
        model: usize,
        /// Entries of the velocity.
        velocity: usize,
        /// Entries of the sum.
        sum: usize,
    },
    /// A number of the rule is outside its range.
    #[error("the update rule needs {0}")]
    BadRule(&'static str),
    /// A parameter or its velocity would leave the range of 64-bit integers.
    #[error("parameter {index} leaves the range of 64-bit integers")]
    Overflow {
        /// Position of the first such parameter.
        index: usize,
    },
    /// The norm of the sum cannot be computed.
    #[error("the norm of the sum leaves the range of 128-bit integers")]
    NormOverflow,
}
