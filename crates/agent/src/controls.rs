//! `tcplab-agent controls`: congestion controls of tcplab in the running kernel, for as long as this process lives.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_kernelcc::Loaded;
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

/// What to do.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Command {
    /// Offer a control to the whole machine.
    Load {
        /// Its name, with or without `tl_`.
        name: String,
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
    let obstacle = tcplab_kernelcc::obstacle();
    output::emit(&json!({
        "event": "hello",
        "protocol": VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "monotonic": clock::now(),
        "controls": tcplab_kernelcc::names().collect::<Vec<_>>(),
        "obstacle": obstacle.map(|why| json!({"message": why.to_string(), "mend": why.mend()})),
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
            let mend = "docs/agent-protocol.md lists the commands";
            output::refuse(id, &format!("cannot understand the command: {error}"), mend);
            return None;
        }
    };
    let Command::Load { name, params } = request.command;
    match Loaded::load(&name, params.iter().map(|(name, value)| (name.as_str(), *value))) {
        Ok(loaded) => {
            let answer = json!({
                "registered": loaded.registered(),
                "state": loaded.state(),
                "phases": loaded.phases(),
            });
            output::ok(request.id, answer);
            Some(loaded)
        }
        Err(error) => {
            output::refuse(request.id, &error.to_string(), &error.mend());
            None
        }
    }
}
