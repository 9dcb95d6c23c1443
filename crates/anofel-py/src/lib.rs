//! `anofel._core`: the typed door between the Python package and the Rust crates.
//!
//! One file for each submodule. Values cross as frozen classes with canonical bytes; long
//! computations release the interpreter lock; every Rust error becomes an exception that
//! the package defines. What the committee crate refuses crosses as a `Refusal`, raised, or for
//! one of a batch returned; `anofel.committee.refusal` makes it the error of the step that asked.

mod ceremony;
mod committee;
mod count;
mod error;
mod keys;
mod lattice;
mod messages;
mod noise;
mod primitives;
mod proofs;
mod trees;
mod update_rule;

/// The compiled core of anofel.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::ceremony::ceremony;
    #[pymodule_export]
    use super::committee::committee;
    #[pymodule_export]
    use super::count::count;
    #[pymodule_export]
    use super::keys::keys;
    #[pymodule_export]
    use super::lattice::lattice;
    #[pymodule_export]
    use super::messages::messages;
    #[pymodule_export]
    use super::noise::noise;
    #[pymodule_export]
    use super::primitives::primitives;
    #[pymodule_export]
    use super::proofs::proofs;
    #[pymodule_export]
    use super::trees::trees;
    #[pymodule_export]
    use super::update_rule::update_rule;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // So that `from anofel._core.primitives import …` finds the submodule.
        let modules = module.py().import("sys")?.getattr("modules")?;
        for (name, submodule) in module.dict() {
            if submodule.is_instance_of::<PyModule>() {
                modules.set_item(format!("anofel._core.{name}"), submodule)?;
            }
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
