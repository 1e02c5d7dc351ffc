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
    tables_of(py, tables, 0)
}

/// The tables that have rows, by name.
pub(crate) fn with_rows<'py>(py: Python<'py>, tables: &Tables) -> PyResult<Bound<'py, PyDict>> {
    tables_of(py, tables, 1)
}

/// The tables of at least so many rows.
fn tables_of<'py>(py: Python<'py>, tables: &Tables, minimum: usize) -> PyResult<Bound<'py, PyDict>> {
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
    add_from(&dict, flows, dictionary, minimum)?;
    add_from(&dict, intervals, dictionary, minimum)?;
    add_from(&dict, losses, dictionary, minimum)?;
    add_from(&dict, sockets, dictionary, minimum)?;
    add_from(&dict, gauges, dictionary, minimum)?;
    add_from(&dict, legs, dictionary, minimum)?;
    add_from(&dict, queues, dictionary, minimum)?;
    add_from(&dict, queue_classes, dictionary, minimum)?;
    add_from(&dict, queue_gauges, dictionary, minimum)?;
    add_from(&dict, packets, dictionary, minimum)?;
    add_from(&dict, echoes, dictionary, minimum)?;
    add_from(&dict, echo_batches, dictionary, minimum)?;
    add_from(&dict, fetches, dictionary, minimum)?;
    add_from(&dict, pings, dictionary, minimum)?;
    add_from(&dict, events, dictionary, minimum)?;
    add_from(&dict, routes, dictionary, minimum)?;
    Ok(dict)
}

/// Adds one table under its name, if it has at least `minimum` rows.
fn add_from<T: Table + Sync>(
    dict: &Bound<'_, PyDict>,
    table: &T,
    dictionary: &Dictionary,
    minimum: usize,
) -> PyResult<()> {
    if table.rows() >= minimum { add(dict, table, dictionary) } else { Ok(()) }
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
