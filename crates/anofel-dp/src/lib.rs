//! Integer noise for differential privacy, drawn from a CSPRNG, and the exact integer update rule of a model.
//!
//! | module | what |
//! |---|---|
//! | [`bernoulli`] | exact coins of probability exp(−a/b), the building block of the samplers |
//! | [`discrete_gaussian`] | the exact discrete Gaussian (Canonne, Kamath, Steinke 2020) |
//! | [`skellam`] | the Skellam distribution, with a stated error |
//! | [`vector`] | many samples at once, on all cores, from the operating system's randomness |
//! | [`update_rule`] | `integer-mean`: how a sum of updates becomes the next model |
//!
//! Written here: OpenDP, which is as exact, takes two hundred times as long (`bench/privacy.py`), since it
//! draws with integers of any size; the noise of a network would take longer than its training.
//!
//! Nothing here is constant-time: a sampler's running time depends on what it draws.

pub mod bernoulli;
pub mod discrete_gaussian;
pub mod error;
pub mod skellam;
pub mod update_rule;
pub mod vector;

pub use error::{NoiseError, UpdateError};
