//! `tcplab-agent controls`: congestion controls of tcplab in the running kernel, for as long as this process lives.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_kernelcc::{Gauge, KernelccError, Loaded, Place};
use tcplab_probe::clock;

use crate::output;
use crate::process;
use crate::protocol::VERSION;

/// One line of input.
#[derive(Debug, Deserialize)]
struct Request {
    id: Option<u64>,
    #[serde(flatten)]
    command: Command,
}

/// The command.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Command {
    /// Offer a control to the whole machine.
    Load {
        /// Its name, with or without `tl_`; of a control that is in `object`, what messages call it.
        name: String,
        /// The eBPF object of a control that is not among tcplab's own.
        object: Option<PathBuf>,
        /// Parameters that differ from their defaults.
        #[serde(default)]
        params: BTreeMap<String, f64>,
    },
}

/// Serves until the input ends. The kernel takes the controls away with the process, whatever ends it.
pub fn main() -> u8 {
    if let Err(error) = process::on_end(|| std::process::exit(0)) {
        output::refuse(None, &format!("cannot wait for signals: {error}"), "end other programs");
        return 3;
    }
    let said = |why: KernelccError| json!({"message": why.to_string(), "hint": why.hint()});
    let obstacle = tcplab_kernelcc::obstacle().map(said);
    let swept = if obstacle.is_none() { tcplab_kernelcc::sweep() } else { Vec::new() };
    output::emit(&json!({
        "event": "hello",
        "protocol": VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "monotonic": clock::now(),
        "controls": tcplab_kernelcc::names().collect::<Vec<_>>(),
        "obstacle": obstacle,
        "not_built": tcplab_kernelcc::built().err().map(said),
        "swept": swept,
    }));
    let mut held = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if !line.trim().is_empty() {
            held.extend(serve(&line));
        }
    }
    0
}

fn serve(line: &str) -> Option<Loaded> {
    let request: Request = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => {
            let id = serde_json::from_str::<Value>(line).ok().and_then(|v| v["id"].as_u64());
            let hint = "docs/agent-protocol.md lists the commands";
            output::refuse(id, &format!("cannot understand the command: {error}"), hint);
            return None;
        }
    };
    let Command::Load { name, object, params } = request.command;
    let params = params.iter().map(|(name, value)| (name.as_str(), *value));
    let loaded = match object {
        None => Loaded::load(&name, params),
        Some(path) => match std::fs::read(&path) {
            Ok(object) => Loaded::load_object(&object, &name, params),
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                output::refuse(request.id, &message, "compile the control again");
                return None;
            }
        },
    };
    match loaded {
        Ok(loaded) => {
            let answer = json!({
                "registered": loaded.registered(),
                "wanted": loaded.wanted(),
                "state": loaded.state(),
                "phases": loaded.phases(),
                "gauges": loaded.gauges().iter().map(describe).collect::<Vec<_>>(),
            });
            output::ok(request.id, answer);
            Some(loaded)
        }
        Err(error) => {
            refuse(request.id, &error);
            None
        }
    }
}

/// A gauge, as the probe's configuration has it.
fn describe(gauge: &Gauge) -> Value {
    let Place { offset, size, signed, scale } = gauge.place;
    json!({
        "name": gauge.name, "unit": gauge.unit,
        "offset": offset, "size": size, "signed": signed, "scale": scale,
    })
}

/// Of a refusal by the verifier the parts come too, so that a tool can show them in its own way.
fn refuse(id: Option<u64>, error: &KernelccError) {
    let mut answer = json!({"event": "error", "id": id, "message": error.to_string(), "hint": error.hint()});
    if let KernelccError::Refused { refusal, .. } = error {
        answer["refusal"] = json!({
            "meaning": refusal.meaning,
            "verdict": refusal.verdict,
            "file": refusal.place.as_ref().map(|(file, _)| file),
            "line": refusal.place.as_ref().map(|(_, line)| line),
            "source": refusal.source,
            "log": refusal.log,
        });
    }
    output::emit(&answer);
}
