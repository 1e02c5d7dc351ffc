//! A scenario's environment: files in its folder, and the controls that Python knows.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use pyo3::prelude::*;
use tcplab_scenario::{Known, Parameter, Surroundings, Unreadable};

/// The scenario's folder on disk, and what Python knows of congestion controls; none: every control is taken.
pub(crate) struct Disk {
    pub(crate) folder: PathBuf,
    pub(crate) controls: Option<Py<PyAny>>,
}
fn unreadable(error: &io::Error) -> Unreadable {
    let said = error.to_string();
    let reason = said.split(" (os error").next().unwrap_or(&said);
    Unreadable { reason: format!("cannot be read: {reason}"), missing: error.kind() == ErrorKind::NotFound }
}

impl Surroundings for Disk {
    fn file(&self, name: &str, maximum: usize) -> Result<Vec<u8>, Unreadable> {
        let path = self.folder.join(name);
        let about = fs::metadata(&path).map_err(|error| unreadable(&error))?;
        // Opening a pipe or a terminal would wait for someone to write.
        if !about.is_file() {
            return Err(Unreadable { reason: "is not a file".to_owned(), missing: false });
        }
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(maximum as u64).read_to_end(&mut bytes));
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
        Python::attach(|py| known(&controls.bind(py).call_method1("known", (name, &self.folder))?))
            .unwrap_or(Known::Opaque)
    }

    fn controls(&self) -> Vec<String> {
        let Some(controls) = &self.controls else { return Vec::new() };
        Python::attach(|py| controls.bind(py).call_method0("names")?.extract()).unwrap_or_default()
    }
}

/// None: unknown control. True: known, without details. A text: why it cannot be used. Else its name and parameters.
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
        .map(|(name, minimum, maximum, shown)| (name, Parameter { range: (minimum, maximum), shown }))
        .collect();
    Ok(Known::Described { name, parameters })
}
