//! The configuration of a process: one JSON object on the first line of its input. The process ends with its input.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;

use crate::{output, process};

/// Reads the configuration, and sets `stop` when the input ends or a signal asks the process to end. If the configuration
/// cannot be read, writes an error with `hint` and returns the exit code.
pub fn read<T: for<'de> Deserialize<'de>>(stop: &Arc<AtomicBool>, hint: &str) -> Result<T, u8> {
    let refuse = |message: String| {
        output::refuse(None, &message, hint);
        2
    };
    process::raise_file_limit();
    let raise = stop.clone();
    let ended = process::on_end(move || raise.store(true, Ordering::Relaxed));
    ended.map_err(|error| refuse(format!("cannot wait for signals: {error}")))?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| refuse(format!("cannot read the configuration: {error}")))?;
    let config =
        serde_json::from_str(&line).map_err(|error| refuse(format!("invalid configuration: {error}")))?;
    let raise = stop.clone();
    let reader = std::thread::Builder::new().name("input".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        raise.store(true, Ordering::Relaxed);
    });
    reader.map_err(|error| refuse(format!("cannot start a thread: {error}")))?;
    Ok(config)
}
