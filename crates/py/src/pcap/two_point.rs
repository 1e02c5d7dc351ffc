//! The captures of both ends of a path, matched.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tcplab_pcap::flow::Direction;
use tcplab_pcap::pairing::{Clock, Clocks, PairedFlow, PairedHalf, pair};

use super::flows::spread;
use crate::tables;

/// Matches two captures packet by packet: flows, clock, and the table `pairs`, an Arrow IPC file. `known_clock` is the
/// second clock's lead: offset, skew, the first clock's time of it, and its bound.
#[pyfunction]
#[pyo3(signature = (first, second, same_clock=false, known_clock=None))]
pub(super) fn match_ends<'py>(
    py: Python<'py>,
    first: PathBuf,
    second: PathBuf,
    same_clock: bool,
    known_clock: Option<(i64, f64, i64, i64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let clocks = match known_clock {
        _ if same_clock => Clocks::Same,
        None => Clocks::Different,
        Some((offset, skew, since, bound)) => {
            Clocks::Known(Clock { offset, skew, since, bound: Some(bound) })
        }
    };
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
    dict.set_item("bound", found.clock.bound)?;
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
    dict.set_item("missed", half.missed)?;
    dict.set_item("lost_acks", half.lost_acks)?;
    dict.set_item("retransmissions", half.retransmissions)?;
    dict.set_item("needless", half.needless)?;
    dict.set_item("unsent", half.unsent)?;
    dict.set_item("delay", spread(py, &half.delay)?)?;
    Ok(dict)
}
