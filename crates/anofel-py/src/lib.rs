//! `anofel._core`: the typed door between the Python package and the Rust crates.

mod committee;
mod count;

/// The compiled core of anofel.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::committee::committee;
    #[pymodule_export]
    use crate::count::count;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
