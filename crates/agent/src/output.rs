//! Events on standard output, one JSON object a line.

use std::io::Write;

use serde_json::{Value, json};

/// Writes an event. When nobody reads any more, nobody can be notified, and the end of the input ends the
/// process.
pub fn emit(event: &Value) {
    let mut line = event.to_string();
    line.push('\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

/// Answers a command with `ok` and what it found.
pub fn ok(id: Option<u64>, mut answer: Value) {
    answer["event"] = "ok".into();
    answer["id"] = id.into();
    emit(&answer);
}

/// Refuses a command.
pub fn refuse(id: Option<u64>, message: &str, hint: &str) {
    emit(&json!({"event": "error", "id": id, "message": message, "hint": hint}));
}

/// The run goes on, but not quite as asked.
pub fn warn(message: &str, hint: &str) {
    emit(&json!({"event": "warning", "message": message, "hint": hint}));
}
