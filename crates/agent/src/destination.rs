//! Where the files of a run go: into its directory, or to the caller, when that is on another machine.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::output;

/// Bytes that one event carries at most.
const CHUNK: usize = 48 << 10;

/// Where files go.
#[derive(Clone, Debug)]
pub enum Destination {
    /// Into a directory of this machine.
    Directory(PathBuf),
    /// As `bytes` events: nothing is written to a disk of this machine.
    Caller,
}

impl Destination {
    /// Creates a file. Data must be flushed to arrive.
    pub fn create(&self, name: &str) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Destination::Directory(dir) => Box::new(BufWriter::new(File::create(dir.join(name))?)),
            Destination::Caller => Box::new(Sent { name: name.to_owned(), waiting: Vec::new() }),
        })
    }

    /// The name of a file in messages.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            Destination::Directory(dir) => dir.join(name),
            Destination::Caller => name.into(),
        }
    }
}

/// A file of the caller's, to which each event appends.
struct Sent {
    name: String,
    waiting: Vec<u8>,
}

impl Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        for chunk in self.waiting.chunks(CHUNK) {
            output::emit(&json!({"event": "bytes", "file": self.name, "data": STANDARD.encode(chunk)}));
        }
        self.waiting.clear();
        Ok(())
    }
}
