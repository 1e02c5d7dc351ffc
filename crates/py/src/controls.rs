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
use tcplab_control::{Gauge, Registry, Table, files, registry};
use tcplab_kernelcc::ElfMetadata;

use crate::simulation::os_error;

/// Symbol of the table of a control that is compiled as a shared object (`tcplab_cc_native.h`).
const EXPORTED: &[u8] = b"tl_exported\0";

/// Names of the congestion controls the simulator has.
#[pyfunction]
pub(crate) fn controls() -> Vec<&'static str> {
    registry::names().collect()
}

/// Metadata of a control: `name`, `phases`, `parameters` and `gauges`. It is a built-in one, or that of a shared
/// object (`library`), which is read, not opened: nothing of it runs.
#[pyfunction]
#[pyo3(signature = (name, library=None))]
pub(crate) fn control<'py>(
    py: Python<'py>,
    name: &str,
    library: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    let parameters = PyList::empty(py);
    let gauges = PyList::empty(py);
    match library {
        None => {
            let table = Table::find(name).map_err(|error| PyValueError::new_err(error.to_string()))?;
            described.set_item("name", table.name())?;
            described.set_item("phases", table.phases().to_vec())?;
            for one in table.parameters() {
                let edges = [one.default, one.min, one.max, one.step];
                parameters.append(parameter(py, one.name, one.doc, edges)?)?;
            }
            table.gauges().try_for_each(|one| gauges.append(gauge(py, &one)?))?;
        }
        Some(library) => {
            let metadata = metadata(&library, name)?;
            described.set_item("name", metadata.name)?;
            described.set_item("phases", metadata.phases)?;
            for one in metadata.parameters {
                let scale = f64::from(one.scale);
                let edges = [one.initial, one.min, one.max, 1].map(|number| f64::from(number) / scale);
                parameters.append(parameter(py, &one.name, &one.doc, edges)?)?;
            }
            metadata.gauges.iter().try_for_each(|one| gauges.append(gauge(py, one)?))?;
        }
    }
    described.set_item("parameters", parameters)?;
    described.set_item("gauges", gauges)?;
    Ok(described)
}

/// Metadata of the control in a shared object; ValueError if it has none.
fn metadata(library: &Path, name: &str) -> PyResult<ElfMetadata> {
    let object = std::fs::read(library).map_err(|error| os_error(library, &error))?;
    let metadata = ElfMetadata::read(&object, name)
        .map_err(|_| PyValueError::new_err("it has no CONGESTION_CONTROL"))?;
    metadata.fault().map_or(Ok(metadata), |why| Err(PyValueError::new_err(why)))
}

/// A parameter with its default, minimum, maximum and step.
fn parameter<'py>(py: Python<'py>, name: &str, doc: &str, edges: [f64; 4]) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("name", name)?;
    row.set_item("doc", doc)?;
    for (key, value) in ["default", "minimum", "maximum", "step"].into_iter().zip(edges) {
        row.set_item(key, value)?;
    }
    Ok(row)
}

fn gauge<'py>(py: Python<'py>, one: &Gauge) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("name", &one.name)?;
    row.set_item("unit", &one.unit)?;
    row.set_item("doc", &one.doc)?;
    Ok(row)
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

/// The control of a shared object, which stays open as long as the process lives. Opening it runs what it likes, so only
/// a process that was started for it does (`tcplab.engine.apart`).
fn open(library: &Path) -> PyResult<Table> {
    let refused =
        |why: &dyn std::fmt::Display| PyValueError::new_err(format!("{}: {why}", library.display()));
    // SAFETY: the object was compiled from a control by `tcplab.cc.compiler`, and what it exports is what
    // `tcplab_cc_native.h` makes. Whatever else the user's code does, it does in their name.
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
