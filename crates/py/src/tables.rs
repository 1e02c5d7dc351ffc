//! Tables as Arrow IPC bytes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tcplab_sim::Tables;
use tcplab_tables::{ColumnSchema, Dictionary, Table, TableSchema, arrow, schema};

/// A table: its name, what it has a row for, the columns that are never null, those that are added up over a flow's
/// ends, and all columns.
///
/// Each column comes with its name, type, unit and what it holds.
type Described = (
    &'static str,
    String,
    &'static [&'static str],
    &'static [&'static str],
    Vec<(&'static str, &'static str, &'static str, String)>,
);

/// Schema of the tables.
#[pyfunction]
pub(crate) fn tables() -> Vec<Described> {
    let column = |column: ColumnSchema| (column.name, column.kind, column.unit, column.doc);
    let described = |table: TableSchema| {
        let columns = table.columns.into_iter().map(column).collect();
        (table.name, table.doc, table.required, table.counted, columns)
    };
    schema().into_iter().map(described).collect()
}

/// All tables by name.
pub(crate) fn to_python<'py>(py: Python<'py>, tables: &Tables) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let Tables {
        dictionary,
        flows,
        intervals,
        losses,
        sockets,
        gauges,
        legs,
        queues,
        queue_classes,
        queue_gauges,
        packets,
        echoes,
        echo_batches,
        fetches,
        pings,
        events,
        routes,
    } = tables;
    add(&dict, flows, dictionary)?;
    add(&dict, intervals, dictionary)?;
    add(&dict, losses, dictionary)?;
    add(&dict, sockets, dictionary)?;
    add(&dict, gauges, dictionary)?;
    add(&dict, legs, dictionary)?;
    add(&dict, queues, dictionary)?;
    add(&dict, queue_classes, dictionary)?;
    add(&dict, queue_gauges, dictionary)?;
    add(&dict, packets, dictionary)?;
    add(&dict, echoes, dictionary)?;
    add(&dict, echo_batches, dictionary)?;
    add(&dict, fetches, dictionary)?;
    add(&dict, pings, dictionary)?;
    add(&dict, events, dictionary)?;
    add(&dict, routes, dictionary)?;
    Ok(dict)
}

/// Adds one table under its name.
pub(crate) fn add<T: Table + Sync>(
    dict: &Bound<'_, PyDict>,
    table: &T,
    dictionary: &Dictionary,
) -> PyResult<()> {
    let encoded = dict.py().detach(|| arrow::encode(table, dictionary));
    let bytes = encoded.map_err(|error| PyValueError::new_err(format!("table {}: {error}", T::NAME)))?;
    dict.set_item(T::NAME, PyBytes::new(dict.py(), &bytes))
}
