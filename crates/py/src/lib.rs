//! The Python module `tcplab._core`: conversions only, no logic.

mod capture;
mod simulation;
mod tables;

use pyo3::prelude::*;
use tcplab_control::Control;

/// The version of the simulator.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Names of the congestion controls the simulator has.
#[pyfunction]
fn controls() -> Vec<&'static str> {
    Control::names().collect()
}

/// The simulator behind `tcplab.engine.sim`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<simulation::Progress>()?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(controls, module)?)
}
