//! Tables as Arrow IPC bytes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tcplab_sim::Tables;
use tcplab_tables::{ColumnSchema, Dictionary, Table, TableSchema, arrow, schema};

/// A table: its name, what it has a row for, and its columns, each with its name, type, unit and what it holds.
type Described = (&'static str, String, Vec<(&'static str, &'static str, &'static str, String)>);

/// Schema of the tables.
#[pyfunction]
pub(crate) fn tables() -> Vec<Described> {
    let column = |column: ColumnSchema| (column.name, column.kind, column.unit, column.doc);
    let described =
        |table: TableSchema| (table.name, table.doc, table.columns.into_iter().map(column).collect());
    schema().into_iter().map(described).collect()
}

/// All tables by name.
pub(crate) fn to_python<'py>(py: Python<'py>, tables: &Tables) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let dictionary = &tables.dictionary;
    add(&dict, &tables.flows, dictionary)?;
    add(&dict, &tables.intervals, dictionary)?;
    add(&dict, &tables.sockets, dictionary)?;
    add(&dict, &tables.gauges, dictionary)?;
    add(&dict, &tables.legs, dictionary)?;
    add(&dict, &tables.queues, dictionary)?;
    add(&dict, &tables.queue_classes, dictionary)?;
    add(&dict, &tables.queue_gauges, dictionary)?;
    add(&dict, &tables.packets, dictionary)?;
    add(&dict, &tables.echoes, dictionary)?;
    add(&dict, &tables.echo_batches, dictionary)?;
    add(&dict, &tables.fetches, dictionary)?;
    add(&dict, &tables.pings, dictionary)?;
    add(&dict, &tables.events, dictionary)?;
    add(&dict, &tables.routes, dictionary)?;
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
