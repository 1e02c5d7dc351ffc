//! The scenario language for Python: a text becomes a plan as JSON, or a list of mistakes.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcplab_scenario::{Document, Known, Mistakes, Parameter, Surroundings, Unreadable};

/// The scenario's folder on disk, and what Python knows of congestion controls.
struct Disk {
    folder: PathBuf,
    controls: Option<Py<PyAny>>,
}

fn unreadable(error: &io::Error) -> Unreadable {
    let said = error.to_string();
    let reason = said.split(" (os error").next().unwrap_or(&said);
    Unreadable { reason: format!("cannot be read: {reason}"), missing: error.kind() == ErrorKind::NotFound }
}

impl Surroundings for Disk {
    fn file(&self, name: &str, most: usize) -> Result<Vec<u8>, Unreadable> {
        let path = self.folder.join(name);
        let about = fs::metadata(&path).map_err(|error| unreadable(&error))?;
        // Opening a pipe or a terminal would wait for someone to write.
        if !about.is_file() {
            return Err(Unreadable { reason: "is not a file".to_owned(), missing: false });
        }
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(most as u64).read_to_end(&mut bytes));
        read.map(|_| bytes).map_err(|error| unreadable(&error))
    }

    fn beside(&self, name: &str) -> Vec<String> {
        let path = self.folder.join(name);
        let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
        let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    fn resolved(&self, name: &str) -> String {
        std::path::absolute(self.folder.join(name)).unwrap_or_default().to_string_lossy().into_owned()
    }

    fn control(&self, name: &str) -> Known {
        let Some(controls) = &self.controls else { return Known::Opaque };
        // A failure there would hide every mistake of the file; the engine asks again before a run.
        Python::attach(|py| known(&controls.bind(py).call_method1("known", (name,))?))
            .unwrap_or(Known::Opaque)
    }

    fn controls(&self) -> Vec<String> {
        let Some(controls) = &self.controls else { return Vec::new() };
        Python::attach(|py| controls.bind(py).call_method0("names")?.extract()).unwrap_or_default()
    }
}

/// None: there is no such control. True: there is one. A text: why it is not one. Else its name and parameters.
fn known(said: &Bound<'_, PyAny>) -> PyResult<Known> {
    if said.is_none() {
        return Ok(Known::Unknown);
    }
    if said.extract::<bool>().is_ok() {
        return Ok(Known::Opaque);
    }
    if let Ok(why) = said.extract::<String>() {
        return Ok(Known::Broken(why));
    }
    let (name, parameters): (String, Vec<(String, f64, f64, String)>) = said.extract()?;
    let parameters = parameters
        .into_iter()
        .map(|(name, least, most, shown)| (name, Parameter { range: (least, most), shown }))
        .collect();
    Ok(Known::Described { name, parameters })
}

fn told<'py>(py: Python<'py>, mistakes: &Mistakes) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let each = mistakes.iter().map(|mistake| {
        let told = PyDict::new(py);
        told.set_item("file", &mistake.file)?;
        told.set_item("line", mistake.line)?;
        told.set_item("column", mistake.column)?;
        told.set_item("path", &mistake.path)?;
        told.set_item("value", &mistake.value)?;
        told.set_item("message", &mistake.message)?;
        told.set_item("suggestion", &mistake.suggestion)?;
        told.set_item("source", &mistake.source)?;
        told.set_item("width", mistake.width)?;
        told.set_item("text", mistake.to_string())?;
        Ok(told)
    });
    each.collect()
}

/// The plan of a scenario's text as JSON, and its mistakes; one of both is empty.
#[pyfunction]
#[pyo3(signature = (text, name, folder, sets, controls=None))]
pub(crate) fn scenario_plan<'py>(
    py: Python<'py>,
    text: &[u8],
    name: &str,
    folder: PathBuf,
    sets: Vec<String>,
    controls: Option<Py<PyAny>>,
) -> PyResult<(Option<String>, Vec<Bound<'py, PyDict>>)> {
    let around = Disk { folder, controls };
    let made = Document::parse(text, name).and_then(|read| tcplab_scenario::plan(read, &sets, &around));
    match made {
        Ok(plan) => {
            let json = serde_json::to_string(&plan)
                .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
            Ok((Some(json), Vec::new()))
        }
        Err(mistakes) => Ok((None, told(py, &mistakes)?)),
    }
}

/// JSON Schema of a scenario file.
#[pyfunction]
pub(crate) fn scenario_schema() -> String {
    tcplab_scenario::json_schema().to_string()
}
