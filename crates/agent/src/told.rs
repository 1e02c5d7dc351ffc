//! What a process is told by one JSON object on its first line of input, and how long it lives.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;

use crate::{output, process};

/// Reads what to do; raises `stop` when the input ends, or the process is to end. An exit code where it cannot be read: the
/// caller has been told why, with `hint`.
pub fn told<T: for<'de> Deserialize<'de>>(stop: &Arc<AtomicBool>, hint: &str) -> Result<T, u8> {
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
    read.map_err(|error| refuse(format!("cannot read what to do: {error}")))?;
    let told = serde_json::from_str(&line).map_err(|error| refuse(format!("cannot understand: {error}")))?;
    let raise = stop.clone();
    let watch = std::thread::Builder::new().name("input".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        raise.store(true, Ordering::Relaxed);
    });
    watch.map_err(|error| refuse(format!("cannot start a thread: {error}")))?;
    Ok(told)
}
