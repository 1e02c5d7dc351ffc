//! A scenario's surroundings on disk, without knowledge of controls.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use tcplab_scenario::{Known, Surroundings, Unreadable};

pub struct Folder(pub PathBuf);

fn unreadable(error: &std::io::Error) -> Unreadable {
    let said = error.to_string();
    let reason = said.split(" (os error").next().unwrap_or(&said);
    Unreadable { reason: format!("cannot be read: {reason}"), missing: error.kind() == ErrorKind::NotFound }
}

impl Surroundings for Folder {
    fn file(&self, name: &str, maximum: usize) -> Result<Vec<u8>, Unreadable> {
        let path = self.0.join(name);
        let about = fs::metadata(&path).map_err(|error| unreadable(&error))?;
        if !about.is_file() {
            return Err(Unreadable { reason: "is not a file".to_owned(), missing: false });
        }
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(maximum as u64).read_to_end(&mut bytes));
        read.map(|_| bytes).map_err(|error| unreadable(&error))
    }

    fn beside(&self, name: &str) -> Vec<String> {
        let path = self.0.join(name);
        let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
        let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    fn resolved(&self, name: &str) -> String {
        std::path::absolute(self.0.join(name)).unwrap_or_default().to_string_lossy().into_owned()
    }

    fn control(&self, _: &str) -> Known {
        Known::Opaque
    }

    fn controls(&self) -> Vec<String> {
        Vec::new()
    }
}
