//! Captures: flows, their packets, the packet list.

mod fields;
mod flow_table;
mod flows;
mod follow;
mod two_point;

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tcplab_pcap::Reader;
use tcplab_pcap::filter::Filter;
use tcplab_pcap::list::{self, Layout};
use tcplab_pcap::read::OpenError;

use crate::simulation::os_error;

create_exception!(_core, CaptureError, PyValueError, "The file is not a capture that can be read.");
create_exception!(
    _core,
    FilterError,
    PyValueError,
    "A filter that cannot be read: message, place and length of the mistake in characters."
);

/// Opens a capture; without a path standard input.
fn open(path: Option<&PathBuf>) -> PyResult<Reader> {
    let opened = match path {
        Some(path) => Reader::open(path),
        None => Reader::from_stream(io::stdin()),
    };
    opened.map_err(|error| {
        let path = path.cloned().unwrap_or_else(|| PathBuf::from("-"));
        match error {
            OpenError::Io(error) => os_error(&path, &error),
            other => CaptureError::new_err(format!("{}: {other}", path.display())),
        }
    })
}

fn filter(text: Option<&str>) -> PyResult<Option<Filter>> {
    text.map(Filter::parse)
        .transpose()
        .map_err(|mistake| FilterError::new_err((mistake.message, mistake.at, mistake.len)))
}

/// Raises FilterError unless the text is a filter.
#[pyfunction]
fn check_filter(text: &str) -> PyResult<()> {
    filter(Some(text)).map(drop)
}

/// The packets of a capture, one by one.
#[pyclass(frozen)]
pub(crate) struct PacketList(Mutex<State>);

struct State {
    packets: list::PacketList,
    layout: Layout,
}

#[pymethods]
impl PacketList {
    #[new]
    #[pyo3(signature = (path=None, filter_text=None, width=0))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        filter_text: Option<&str>,
        width: usize,
    ) -> PyResult<PacketList> {
        let filter = filter(filter_text)?;
        let reader = py.detach(|| open(path.as_ref()))?;
        let packets = list::PacketList::new(reader, filter);
        Ok(PacketList(Mutex::new(State { packets, layout: Layout::new(width) })))
    }

    /// The columns' names.
    fn heading(&self) -> String {
        self.lock().layout.heading()
    }

    /// The next `count` packets, a line each; fewer at the end.
    fn lines(&self, py: Python<'_>, count: usize) -> String {
        py.detach(|| {
            let mut text = String::new();
            let state = &mut *self.lock();
            state.packets.write_lines(&mut text, count, &mut state.layout);
            text
        })
    }

    /// The next `count` packets as (number, ns since the first, source, destination, protocol, length, info,
    /// flow, note).
    #[expect(clippy::type_complexity, reason = "the tuple is what Python sees")]
    fn rows(
        &self,
        py: Python<'_>,
        count: usize,
    ) -> Vec<(u64, i64, String, String, &'static str, u32, String, Option<u64>, &'static str)> {
        py.detach(|| {
            let mut rows = Vec::new();
            let packets = &mut self.lock().packets;
            while rows.len() < count
                && let Some(row) = packets.next_row()
            {
                let said = row.summary;
                rows.push((
                    row.number,
                    row.time,
                    said.source.to_string(),
                    said.destination.to_string(),
                    said.protocol,
                    row.wire_len,
                    said.info.clone(),
                    row.flow,
                    row.note,
                ));
            }
            rows
        })
    }

    /// A packet that has not been passed yet, field by field; None if there is no such packet.
    fn details<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(found) = py.detach(|| self.lock().packets.details(number)) else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("number", found.number)?;
        dict.set_item("time", found.time)?;
        dict.set_item("since_first", found.since_first)?;
        dict.set_item("wire_len", found.wire_len)?;
        dict.set_item("link_type", found.link_type)?;
        dict.set_item("bytes", PyBytes::new(py, &found.bytes))?;
        dict.set_item("protocol", found.summary.protocol)?;
        dict.set_item("source", found.summary.source.to_string())?;
        dict.set_item("destination", found.summary.destination.to_string())?;
        dict.set_item("info", found.summary.info)?;
        dict.set_item("flow", found.flow)?;
        dict.set_item("note", found.note)?;
        let fields: Vec<_> = found
            .fields
            .into_iter()
            .map(|field| (field.depth, field.offset, field.len, field.name, field.value))
            .collect();
        dict.set_item("fields", fields)?;
        Ok(Some(dict))
    }

    /// Counts of packets read so far, and how the capture ended.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        facts(py, self.lock().packets.reader())
    }
}

impl PacketList {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts of a reader; `ending` is None while there may be more, `complete` at a whole capture's end.
fn facts<'py>(py: Python<'py>, reader: &Reader) -> PyResult<Bound<'py, PyDict>> {
    let counts = reader.counts();
    let dict = PyDict::new(py);
    dict.set_item("packets", counts.packets)?;
    dict.set_item("without_interface", counts.without_interface)?;
    dict.set_item("without_time", counts.without_time)?;
    dict.set_item("back_in_time", counts.back_in_time)?;
    dict.set_item("blocks_skipped", counts.blocks_skipped)?;
    dict.set_item("dropped_at_capture", counts.dropped_at_capture)?;
    dict.set_item("ending", reader.ending().map(ToString::to_string))?;
    Ok(dict)
}

/// Adds what this file has to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("CaptureError", py.get_type::<CaptureError>())?;
    module.add("FilterError", py.get_type::<FilterError>())?;
    module.add_class::<PacketList>()?;
    module.add_class::<flows::Flows>()?;
    module.add_function(wrap_pyfunction!(check_filter, module)?)?;
    module.add_function(wrap_pyfunction!(flows::summarise, module)?)?;
    module.add_function(wrap_pyfunction!(two_point::match_ends, module)?)?;
    module.add_function(wrap_pyfunction!(follow::follow, module)?)
}
