//! The contents of a network on this machine, for Python; as JSON.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tcplab_lab::Layout;

use crate::scenario::{json, read};

/// The contents of each namespace of a plan.
#[pyfunction]
pub(crate) fn lay_out(plan: &str, emulate_all: bool) -> PyResult<String> {
    let layout = Layout::new(&read(plan)?, emulate_all);
    json(&layout.map_err(|error| PyValueError::new_err(error.to_string()))?)
}

/// Arguments of each netem that does what a link direction does, the outer one first.
#[pyfunction]
pub(crate) fn netems(mtu: u32, direction: &str) -> PyResult<Vec<Vec<String>>> {
    Ok(tcplab_lab::netems(mtu, &read(direction)?))
}

/// Settings of a link direction that netem cannot do, or does in another way.
#[pyfunction]
pub(crate) fn netem_unlike(mtu: u32, direction: &str) -> PyResult<String> {
    json(&tcplab_lab::unlike(mtu, &read(direction)?))
}
