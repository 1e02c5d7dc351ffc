//! The captures of both ends of a path, matched.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tcplab_pcap::flow::Direction;
use tcplab_pcap::pairing::{Clocks, PairedFlow, PairedHalf, pair};

use super::flows::spread;
use crate::tables;

/// Matches two captures packet by packet: flows, clock, and the table `pairs`, an Arrow IPC file.
#[pyfunction]
#[pyo3(signature = (first, second, same_clock=false))]
pub(super) fn match_ends<'py>(
    py: Python<'py>,
    first: PathBuf,
    second: PathBuf,
    same_clock: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let clocks = if same_clock { Clocks::Same } else { Clocks::Different };
    let (first, second, found) = py.detach(|| {
        let mut first = super::open(Some(&first))?;
        let mut second = super::open(Some(&second))?;
        let found = pair(&mut first, &mut second, clocks);
        PyResult::Ok((first, second, found))
    })?;
    let dict = PyDict::new(py);
    dict.set_item("offset", found.clock.offset)?;
    dict.set_item("skew", found.clock.skew)?;
    dict.set_item("since", found.clock.since)?;
    dict.set_item("unpaired", found.unpaired.to_vec())?;
    let flows = PyList::empty(py);
    for flow in &found.flows {
        flows.append(to_python(py, flow)?)?;
    }
    dict.set_item("flows", flows)?;
    dict.set_item("read", (super::facts(py, &first)?, super::facts(py, &second)?))?;
    tables::add(&dict, &found.pairs, &found.dictionary)?;
    Ok(dict)
}

fn to_python<'py>(py: Python<'py>, flow: &PairedFlow) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("numbers", flow.numbers.to_vec())?;
    dict.set_item("sent_at_first", flow.sent_at_first.index())?;
    let halves = PyList::empty(py);
    for direction in [Direction::Forward, Direction::Backward] {
        let half = half(py, &flow.halves[direction.index()])?;
        half.set_item("endpoint", flow.endpoints[direction.index()].to_string())?;
        halves.append(half)?;
    }
    dict.set_item("halves", halves)?;
    Ok(dict)
}

fn half<'py>(py: Python<'py>, half: &PairedHalf) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("sent", half.sent)?;
    dict.set_item("arrived", half.arrived)?;
    dict.set_item("lost", half.lost)?;
    dict.set_item("lost_acks", half.lost_acks)?;
    dict.set_item("retransmissions", half.retransmissions)?;
    dict.set_item("needless", half.needless)?;
    dict.set_item("unsent", half.unsent)?;
    dict.set_item("delay", spread(py, &half.delay)?)?;
    Ok(dict)
}
