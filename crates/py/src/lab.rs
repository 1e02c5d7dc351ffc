//! What a network on this machine will hold, for Python; as JSON.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tcplab_lab::Layout;

use crate::scenario::{json, read};

/// What each namespace of a plan holds.
#[pyfunction]
pub(crate) fn lay_out(plan: &str, emulate_all: bool) -> PyResult<String> {
    let layout = Layout::new(&read(plan)?, emulate_all);
    json(&layout.map_err(|error| PyValueError::new_err(error.to_string()))?)
}

/// What of a link direction netem cannot do, or does in another way.
#[pyfunction]
pub(crate) fn netem_unlike(mtu: u32, direction: &str) -> PyResult<String> {
    json(&tcplab_lab::unlike(mtu, &read(direction)?))
}
