//! The Python module `tcplab._core`: conversions only, no logic.

mod capture;
mod controls;
mod lab;
mod pcap;
mod scenario;
mod simulation;
mod surroundings;
mod tables;

use pyo3::prelude::*;

/// The version of the simulator.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Be the agent that the arguments say until its input ends; returns its exit code.
#[pyfunction]
fn agent_main(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| tcplab_agent::main(&arguments))
}

/// The simulator behind `tcplab.engine.sim`, and the agent behind `tcplab.testbed`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<simulation::Progress>()?;
    pcap::register(module)?;
    module.add_function(wrap_pyfunction!(agent_main, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(tables::tables, module)?)?;
    scenario::register(module)?;
    module.add_function(wrap_pyfunction!(lab::lay_out, module)?)?;
    module.add_function(wrap_pyfunction!(lab::netem_unlike, module)?)?;
    module.add_function(wrap_pyfunction!(lab::netems, module)?)?;
    module.add_function(wrap_pyfunction!(controls::control, module)?)?;
    module.add_function(wrap_pyfunction!(controls::control_files, module)?)?;
    module.add_function(wrap_pyfunction!(controls::controls, module)?)
}
