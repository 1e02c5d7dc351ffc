//! `tcplab-agent controls`: congestion controls of tcplab in the running kernel, for as long as this process lives.

use std::io::BufRead;

use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_kernelcc::Loaded;
use tcplab_probe::clock;

use crate::controls::{self, Load};
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
    Load(Load),
}

/// Serves until the input ends. The kernel takes the controls away with the process, whatever ends it.
pub fn main() -> u8 {
    if let Err(error) = process::on_end(|| std::process::exit(0)) {
        output::refuse(None, &format!("cannot wait for signals: {error}"), "end other programs");
        return 3;
    }
    let obstacle = controls::obstacle();
    let swept = if obstacle.is_null() { tcplab_kernelcc::sweep() } else { Vec::new() };
    output::emit(&json!({
        "event": "hello",
        "protocol": VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "monotonic": clock::now(),
        "controls": tcplab_kernelcc::names().collect::<Vec<_>>(),
        "obstacle": obstacle,
        "not_built": tcplab_kernelcc::built().err().as_ref().map(controls::in_words),
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
    let Command::Load(asked) = request.command;
    controls::load(request.id, &asked)
}
