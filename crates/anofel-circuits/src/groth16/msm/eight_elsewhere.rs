//! Eight additions at a time need instructions that only some x86-64 processors have.

use crate::groth16::msm::adder::Adder;
use crate::groth16::msm::coordinates::{Coordinates, Products};

/// There is none here.
pub enum EightAtOnce {}

impl EightAtOnce {
    /// None.
    pub fn new() -> Option<Self> {
        None
    }
}

/// Asks for nothing here.
pub trait Octets: Products {}

impl<F: Products> Octets for F {}

impl<F: Products> Adder<F> for EightAtOnce {
    type Point = Coordinates<F>;

    const TOGETHER: usize = 1;

    fn take(&self, _: &Coordinates<F>, _: bool) -> Coordinates<F> {
        match *self {}
    }

    fn sum_runs(&self, _: Vec<Coordinates<F>>, _: Vec<u32>) -> Option<Vec<Option<Coordinates<F>>>> {
        match *self {}
    }

    fn give(&self, _: Coordinates<F>) -> Coordinates<F> {
        match *self {}
    }
}
