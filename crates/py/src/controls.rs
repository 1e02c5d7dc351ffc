//! Congestion controls for Python: those that were built in, and shared objects of a user's own.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ffi::c_void;
use std::path::{Path, PathBuf};

use libloading::Library;
use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tcplab_control::{Registry, Table, files, registry};

/// What `tcplab_cc_native.h` calls the table of a control that is compiled as a shared object.
const EXPORTED: &[u8] = b"tl_exported\0";

/// Names of the congestion controls the simulator has.
#[pyfunction]
pub(crate) fn controls() -> Vec<&'static str> {
    registry::names().collect()
}

/// What a control says of itself: `name`, `phases`, `parameters` and `gauges`. It is a built-in one, or that of a shared
/// object (`library`).
#[pyfunction]
#[pyo3(signature = (name, library=None))]
pub(crate) fn control<'py>(
    py: Python<'py>,
    name: &str,
    library: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let table = match library {
        Some(library) => open(&library)?,
        None => Table::find(name).map_err(|error| PyValueError::new_err(error.to_string()))?,
    };
    let described = PyDict::new(py);
    described.set_item("name", table.name())?;
    described.set_item("phases", table.phases().to_vec())?;
    let parameters = PyList::empty(py);
    for one in table.parameters() {
        let row = PyDict::new(py);
        row.set_item("name", one.name)?;
        row.set_item("doc", one.doc)?;
        row.set_item("default", one.default)?;
        row.set_item("least", one.min)?;
        row.set_item("most", one.max)?;
        row.set_item("step", one.step)?;
        parameters.append(row)?;
    }
    described.set_item("parameters", parameters)?;
    let gauges = PyList::empty(py);
    for one in table.gauges() {
        let row = PyDict::new(py);
        row.set_item("name", one.name)?;
        row.set_item("unit", one.unit)?;
        row.set_item("doc", one.doc)?;
        gauges.append(row)?;
    }
    described.set_item("gauges", gauges)?;
    Ok(described)
}

/// The C header files by name, and the C file of the built-in control called `name`, if there is one.
#[pyfunction]
pub(crate) fn control_files(name: &str) -> (BTreeMap<&'static str, &'static str>, Option<&'static str>) {
    (files::headers().iter().copied().collect(), files::source(name))
}

/// The controls of a simulation whose plan names C files: `libraries` has the shared object of each.
pub(crate) fn registered(libraries: BTreeMap<String, PathBuf>) -> PyResult<Registry> {
    let mut registry = Registry::default();
    for (key, library) in libraries {
        registry.add(key, open(&library)?);
    }
    Ok(registry)
}

/// The control of a shared object, which stays open as long as the process lives.
fn open(library: &Path) -> PyResult<Table> {
    let refused =
        |why: &dyn std::fmt::Display| PyValueError::new_err(format!("{}: {why}", library.display()));
    // SAFETY: the object was compiled from a control by `tcplab.cc.compiler`: it has no constructors, and what it
    // exports is what `tcplab_cc_native.h` makes. Whatever else the user's code does, it does in their name.
    unsafe {
        let opened = UnixLibrary::open(Some(library), RTLD_NOW | RTLD_LOCAL).map_err(|error| match error
            .source()
        {
            Some(reason) => refused(&reason),
            None => refused(&error),
        })?;
        let opened: &'static Library = Box::leak(Box::new(opened.into()));
        let exported = opened
            .get::<*const *const c_void>(EXPORTED)
            .map_err(|_| refused(&"it has no CONGESTION_CONTROL"))?;
        Table::from_pointer(**exported).map_err(|why| refused(&why))
    }
}
