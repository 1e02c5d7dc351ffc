//! The language's interface to its environment: files named by a scenario, and available controls.

use std::collections::BTreeMap;

/// A file that cannot be had; part of a sentence, such as `cannot be read: No such file or directory`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Why.
    pub reason: String,
    /// Whether there is no such file at all.
    pub missing: bool,
}

/// A parameter of a congestion control.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its minimum and maximum.
    pub range: (f64, f64),
    /// Its range as messages print it.
    pub shown: String,
}

/// Information about a congestion control.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// There is none of this name.
    Unknown,
    /// There is one; what parameters it takes is for the engine to say.
    Opaque,
    /// There is one with these parameters.
    Described {
        /// Its name in messages.
        name: String,
        /// Its parameters in the order declared, by name.
        parameters: Vec<(String, Parameter)>,
    },
    /// Its file is not a control: why, as part of a sentence that begins with its name.
    Broken(String),
}

/// The environment of a scenario's text. Names of files are as the scenario gives them.
pub trait Surroundings {
    /// The first `maximum` bytes of a file, which is not opened unless it is an ordinary file.
    fn file(&self, name: &str, maximum: usize) -> Result<Vec<u8>, Unreadable>;

    /// The names of the files beside the named one.
    fn beside(&self, name: &str) -> Vec<String>;

    /// The file's absolute path, which a plan names.
    fn resolved(&self, name: &str) -> String;

    /// Information about a control, by its name or its file's.
    fn control(&self, name: &str) -> Known;

    /// The names of controls to suggest.
    fn controls(&self) -> Vec<String>;
}

/// Files in memory, and every control: for texts that come from a browser, and for tests.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Files by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Surroundings for Memory {
    fn file(&self, name: &str, maximum: usize) -> Result<Vec<u8>, Unreadable> {
        match self.files.get(name) {
            Some(bytes) => Ok(bytes[..bytes.len().min(maximum)].to_vec()),
            None => Err(Unreadable {
                reason: "cannot be read: No such file or directory".to_owned(),
                missing: true,
            }),
        }
    }

    fn beside(&self, _: &str) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    fn resolved(&self, name: &str) -> String {
        name.to_owned()
    }

    fn control(&self, _: &str) -> Known {
        Known::Opaque
    }

    fn controls(&self) -> Vec<String> {
        Vec::new()
    }
}
