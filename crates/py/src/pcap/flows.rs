//! The flows of a capture: one as a dictionary, many as the columns of a table.

use std::net::IpAddr;
use std::path::PathBuf;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tcplab_pcap::filter::{Filter, Subject};
use tcplab_pcap::flow::{Counts, Direction, FlowSummary, Options};
use tcplab_pcap::parse::Protocol;
use tcplab_pcap::{Quantiles, Summary};
use tcplab_tables::Table;

use super::fields::{self, Fields};
use super::flow_table::{FlowTable, Place, Value};
use crate::tables;

/// The flows of a capture, small until they are asked for.
#[pyclass(frozen)]
pub(crate) struct Flows(tcplab_pcap::Flows);

#[pymethods]
impl Flows {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The flow at a place, from 0, as a dictionary.
    fn get<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyDict>> {
        let flow = self.0.get(place).ok_or_else(|| PyIndexError::new_err("no such flow"))?;
        to_python(py, &flow)
    }

    /// The place of the flow with this number; None if there is none.
    fn place_of(&self, number: u64) -> Option<usize> {
        self.0.place_of(number)
    }

    /// The flows from one place to before another as a table.
    ///
    /// `flows` is an Arrow IPC file of the columns that vary, each once; it is absent where none does. `columns`
    /// holds for each column its name, a kind and a value. For a column in the file, the kind is `column` and the
    /// value is its place in the file. For any other, the kind is a type's name, and the value is the one value in
    /// all rows.
    fn columns<'py>(&self, py: Python<'py>, begin: usize, end: usize) -> PyResult<Bound<'py, PyDict>> {
        let table = py.detach(|| {
            let flows = (begin..end.min(self.0.len())).filter_map(|place| self.0.get(place));
            FlowTable::of(flows)
        });
        let dict = PyDict::new(py);
        if !table.columns().is_empty() {
            tables::add(&dict, &table, table.dictionary())?;
        }
        let columns = PyList::empty(py);
        for (name, place) in table.names() {
            match *place {
                Place::Column(place) => columns.append((name, "column", place))?,
                Place::Constant(Value::Int(value)) => columns.append((name, "integer", value))?,
                Place::Constant(Value::Float(value)) => columns.append((name, "real", value))?,
                Place::Constant(Value::Bool(value)) => columns.append((name, "truth", value))?,
                Place::Constant(Value::Text(text)) => {
                    columns.append((name, "text", table.dictionary().string(text)))?;
                }
            }
        }
        dict.set_item("columns", columns)?;
        Ok(dict)
    }
}

/// The flows of a capture that the filter means, and what was read of it; on up to `cores` cores.
#[pyfunction]
#[pyo3(signature = (path=None, filter_text=None, cores=1))]
pub(super) fn summarise<'py>(
    py: Python<'py>,
    path: Option<PathBuf>,
    filter_text: Option<&str>,
    cores: usize,
) -> PyResult<(Flows, Bound<'py, PyDict>)> {
    let filter = super::filter(filter_text)?;
    let (reader, counts, flows) = py.detach(|| {
        let mut reader = super::open(path.as_ref())?;
        let Summary { mut flows, counts } = tcplab_pcap::summarise(&mut reader, Options::default(), cores);
        if let Some(filter) = &filter {
            flows.retain(|flow| meant(filter, flow));
        }
        PyResult::Ok((reader, counts, flows))
    })?;
    let facts = super::facts(py, &reader)?;
    add_counts(&facts, &counts)?;
    Ok((Flows(flows), facts))
}

/// Whether the filter means a flow: who began it is its source.
fn meant(filter: &Filter, flow: &FlowSummary) -> bool {
    let [source, destination] = flow.endpoints;
    filter.matches(&Subject {
        source: Some(IpAddr::from(source.address)),
        destination: Some(IpAddr::from(destination.address)),
        source_port: Some(source.port),
        destination_port: Some(destination.port),
        protocol: Some(match flow.protocol {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
        }),
        flow: Some(flow.number),
    })
}

pub(super) fn add_counts(facts: &Bound<'_, PyDict>, counts: &Counts) -> PyResult<()> {
    for (name, value) in [
        ("frame_bytes", counts.frame_bytes),
        ("tcp", counts.tcp),
        ("udp", counts.udp),
        ("not_ip", counts.not_ip),
        ("other_protocol", counts.other_protocol),
        ("link_type", counts.link_type),
        ("header_cut", counts.header_cut),
        ("malformed", counts.malformed),
        ("fragments", counts.fragments),
        ("fragments_incomplete", counts.fragments_incomplete),
        ("options_cut", counts.options_cut),
    ] {
        facts.set_item(name, value)?;
    }
    facts.set_item("first", counts.first)?;
    facts.set_item("last", counts.last)
}

fn to_python<'py>(py: Python<'py>, flow: &FlowSummary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("number", flow.number)?;
    filled(&dict, |into| fields::flow(flow, into))?;
    let halves = PyList::empty(py);
    for direction in [Direction::Forward, Direction::Backward] {
        let index = direction.index();
        let half = PyDict::new(py);
        filled(&half, |into| fields::half(flow, direction, into))?;
        half.set_item("address", flow.endpoints[index].address.to_string())?;
        half.set_item("port", flow.endpoints[index].port)?;
        let tcp = flow.tcp.as_ref().map(|tcp| {
            let dict = PyDict::new(py);
            filled(&dict, |into| fields::tcp(&tcp.halves[index], into)).map(|()| dict)
        });
        half.set_item("tcp", tcp.transpose()?)?;
        halves.append(half)?;
    }
    dict.set_item("halves", halves)?;
    Ok(dict)
}

/// A dictionary that is filled, and what went wrong.
struct Filling<'d, 'py> {
    dict: &'d Bound<'py, PyDict>,
    result: PyResult<()>,
}

fn filled(dict: &Bound<'_, PyDict>, fill: impl FnOnce(&mut Filling<'_, '_>)) -> PyResult<()> {
    let mut filling = Filling { dict, result: Ok(()) };
    fill(&mut filling);
    filling.result
}

impl<'py> Filling<'_, 'py> {
    fn set(&mut self, name: &str, value: impl IntoPyObject<'py>) {
        if self.result.is_ok() {
            self.result = self.dict.set_item(name, value);
        }
    }
}

impl Fields for Filling<'_, '_> {
    fn integer(&mut self, name: &'static str, value: Option<i64>) {
        self.set(name, value);
    }

    fn real(&mut self, name: &'static str, value: Option<f64>) {
        self.set(name, value);
    }

    fn truth(&mut self, name: &'static str, value: bool) {
        self.set(name, value);
    }

    fn text(&mut self, name: &'static str, value: &str) {
        self.set(name, value);
    }

    fn spread(&mut self, name: &'static str, values: &Quantiles) {
        match spread(self.dict.py(), values) {
            Ok(value) => self.set(name, value),
            Err(error) => self.result = Err(error),
        }
    }
}

/// Count, extremes, mean and quantiles; None without values.
pub(super) fn spread<'py>(py: Python<'py>, values: &Quantiles) -> PyResult<Option<Bound<'py, PyDict>>> {
    let (Some(min), Some(max), Some(mean)) = (values.min(), values.max(), values.mean()) else {
        return Ok(None);
    };
    let dict = PyDict::new(py);
    dict.set_item("count", values.count())?;
    dict.set_item("min", min)?;
    dict.set_item("max", max)?;
    dict.set_item("mean", mean)?;
    for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        dict.set_item(name, values.quantile(share))?;
    }
    Ok(Some(dict))
}
