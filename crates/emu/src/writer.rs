//! The thread that writes records to files, and reports when they are written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use tcplab_pcap::PartFile;
use tcplab_tables::arrow::record_batch;
use tcplab_tables::{Dictionary, Table};

use crate::recording::Rows;
use crate::report::{Progress, Report, RunStats};

/// Prefix of the emulator's table files. No node's name begins with it.
const NAME: &str = "_emu";

/// Data to write, or an event to report when all before it is written.
#[derive(Debug)]
pub(crate) enum WriterCommand {
    /// A run begins with these captures.
    Begin(Vec<PathBuf>),
    Rows(Box<Rows>),
    Captured(usize, Vec<u8>),
    Progress(Progress),
    Done(Box<RunStats>),
}

/// Why something cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
struct WriteError {
    path: PathBuf,
    source: ArrowError,
}

impl WriteError {
    fn new(path: &Path, source: impl Into<ArrowError>) -> WriteError {
        WriteError { path: path.to_owned(), source: source.into() }
    }

    fn hint(&self) -> &'static str {
        match &self.source {
            ArrowError::IoError(_, error) if error.kind() == io::ErrorKind::StorageFull => {
                "free space on this disk, or write elsewhere with --output"
            }
            _ => "give a run directory that exists and can be written",
        }
    }
}

/// The files of a run.
struct Files {
    /// None: nothing is kept.
    dir: Option<PathBuf>,
    tables: BTreeMap<&'static str, StreamWriter<BufWriter<File>>>,
    rows: BTreeMap<String, u64>,
    captures: Vec<PartFile>,
}

/// Writes into `dir` until the event loop has ended.
pub(crate) fn serve(dir: Option<PathBuf>, work: &Receiver<WriterCommand>, mut notify: impl FnMut(Report)) {
    let mut files = Files { dir, tables: BTreeMap::new(), rows: BTreeMap::new(), captures: Vec::new() };
    let mut writable = true;
    for work in work {
        let result = match work {
            WriterCommand::Progress(progress) => {
                notify(Report::Progress(progress));
                Ok(())
            }
            WriterCommand::Done(mut facts) => {
                let result = if writable { files.finish() } else { files.abandon() };
                facts.rows = std::mem::take(&mut files.rows);
                if let Err(error) = result {
                    notify(failed(&error));
                }
                notify(Report::Done(facts));
                writable = true;
                Ok(())
            }
            _ if !writable => Ok(()),
            WriterCommand::Begin(captures) => files.begin(captures),
            WriterCommand::Rows(rows) => files.append(&rows),
            WriterCommand::Captured(file, bytes) => files.capture(file, &bytes),
        };
        if let Err(error) = result {
            notify(failed(&error));
            writable = false;
        }
    }
}

fn failed(error: &WriteError) -> Report {
    Report::Failed { message: error.to_string(), hint: error.hint().to_owned() }
}

impl Files {
    fn begin(&mut self, captures: Vec<PathBuf>) -> Result<(), WriteError> {
        for path in captures {
            let file = PartFile::create(&path).map_err(|e| WriteError::new(&path, e))?;
            self.captures.push(file);
        }
        Ok(())
    }

    fn append(&mut self, rows: &Rows) -> Result<(), WriteError> {
        self.append_table(&rows.queues, &rows.dictionary)?;
        self.append_table(&rows.queue_classes, &rows.dictionary)?;
        self.append_table(&rows.queue_gauges, &rows.dictionary)?;
        self.append_table(&rows.packets, &rows.dictionary)?;
        self.append_table(&rows.events, &rows.dictionary)?;
        self.append_table(&rows.losses, &rows.dictionary)
    }

    fn append_table<T: Table>(&mut self, table: &T, dictionary: &Dictionary) -> Result<(), WriteError> {
        let Some(path) = self.path(T::NAME).filter(|_| table.rows() > 0) else { return Ok(()) };
        let failed = |error| WriteError::new(&path, error);
        let batch = record_batch(table, dictionary).map_err(failed)?;
        let writer = match self.tables.entry(T::NAME) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(none) => {
                let file = File::create(&path).map_err(|e| WriteError::new(&path, e))?;
                none.insert(StreamWriter::try_new(BufWriter::new(file), &batch.schema()).map_err(failed)?)
            }
        };
        writer.write(&batch).map_err(failed)?;
        writer.get_mut().flush().map_err(|e| WriteError::new(&path, e))?;
        *self.rows.entry(T::NAME.to_owned()).or_default() += table.rows() as u64;
        Ok(())
    }

    fn capture(&mut self, file: usize, bytes: &[u8]) -> Result<(), WriteError> {
        match self.captures.get_mut(file) {
            Some(file) => file.write_all(bytes).map_err(|e| WriteError::new(file.path(), e)),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        for file in std::mem::take(&mut self.captures) {
            let path = file.path().to_owned();
            file.finish().map_err(|e| WriteError::new(&path, e))?;
        }
        for (name, mut writer) in std::mem::take(&mut self.tables) {
            writer.finish().map_err(|e| WriteError::new(&self.path(name).unwrap_or_default(), e))?;
        }
        Ok(())
    }

    /// Leaves what could not be written whole as it is.
    fn abandon(&mut self) -> Result<(), WriteError> {
        self.captures.clear();
        self.tables.clear();
        Ok(())
    }

    /// A table's file; none where nothing is kept.
    fn path(&self, table: &str) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(format!("{table}.{NAME}.arrows")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_its_name_when_all_of_it_is_written() {
        let dir = std::env::temp_dir().join(format!("tcplab-emu-writer-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let mut files = Files {
            dir: Some(dir.clone()),
            tables: BTreeMap::new(),
            rows: BTreeMap::new(),
            captures: Vec::new(),
        };
        for (name, whole) in [("whole", true), ("cut", false)] {
            let path = dir.join(format!("{name}.pcapng"));
            files.begin(vec![path.clone()]).expect("a file");
            files.capture(0, b"packets").expect("room for seven bytes");
            assert!(!path.exists());
            let ended = if whole { files.finish() } else { files.abandon() };
            ended.expect("a name");
            assert_eq!(path.exists(), whole, "{name}");
            assert_eq!(dir.join(format!("{name}.pcapng.part")).exists(), !whole, "{name}");
        }
        std::fs::remove_dir_all(&dir).expect("it is ours");
    }
}
