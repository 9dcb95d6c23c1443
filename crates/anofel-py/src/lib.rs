//! `anofel._core`: the typed door between the Python package and the Rust crates.

mod noise;
mod update_rule;

/// The compiled core of anofel.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::noise::noise;
    #[pymodule_export]
    use crate::update_rule::update_rule;

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
