//! `tcplab-agent emu`: emulates all links of a lab, with the protocol of a node.

use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_emu::{Emulator, LiveChange, Report, Setup, Start};
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
    /// Make the links.
    Configure(Box<Setup>),
    /// Give the run its zero of time.
    Start(Start),
    /// Change settings of a link now.
    Change(Box<LiveChange>),
    /// End the run now.
    Stop,
    /// The nodes are about to end: leave their devices to them.
    Leave,
}

/// The links, once they are made; whoever ends the process takes them away.
type Links = Arc<Mutex<Option<Emulator>>>;

/// Serves until the input ends.
pub fn main() -> u8 {
    process::raise_file_limit();
    let links = Links::default();
    let ended = process::on_end({
        let links = links.clone();
        move || {
            end(&links);
            std::process::exit(0);
        }
    });
    if let Err(error) = ended {
        output::refuse(None, &format!("cannot wait for signals: {error}"), "end other programs");
        return 3;
    }
    output::emit(&json!({
        "event": "hello",
        "protocol": VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "monotonic": clock::now(),
    }));
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if !line.trim().is_empty() {
            serve(&line, &links);
        }
    }
    end(&links);
    0
}

fn end(links: &Links) {
    *links.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn serve(line: &str, links: &Links) {
    let request: Request = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => {
            let id = serde_json::from_str::<Value>(line).ok().and_then(|v| v["id"].as_u64());
            let hint = "docs/emulator.md lists the commands";
            return output::refuse(id, &format!("cannot understand the command: {error}"), hint);
        }
    };
    let mut links = links.lock().unwrap_or_else(PoisonError::into_inner);
    let refuse = |message: &str, hint: &str| output::refuse(request.id, message, hint);
    match (request.command, &*links) {
        (Command::Configure(_), Some(_)) => {
            refuse("the links are made already", "start another emulator for other links");
        }
        (Command::Configure(setup), None) => match Emulator::new(*setup, notify) {
            Ok(emulator) => {
                *links = Some(emulator);
                output::ok(request.id, json!({}));
            }
            Err(error) => refuse(&error.to_string(), error.hint()),
        },
        (_, None) => refuse("there are no links yet", "send `configure` first"),
        (Command::Start(start), Some(emulator)) => {
            emulator.start(start);
            output::ok(request.id, json!({}));
        }
        (Command::Change(change), Some(emulator)) => {
            let link = change.link.clone();
            if emulator.change(*change) {
                output::ok(request.id, json!({}));
            } else {
                refuse(&format!("no link is called {link:?}"), "name a link that was configured");
            }
        }
        (Command::Stop, Some(emulator)) => {
            emulator.stop();
            output::ok(request.id, json!({}));
        }
        (Command::Leave, Some(emulator)) => {
            emulator.leave();
            output::ok(request.id, json!({}));
        }
    }
}

fn notify(report: Report) {
    match report {
        Report::Progress(progress) => output::emit(&with("progress", &progress)),
        Report::Done(facts) => output::emit(&json!({"event": "done", "facts": facts})),
        Report::Failed { message, hint } => output::refuse(None, &message, &hint),
    }
}

fn with(event: &str, fields: &impl serde::Serialize) -> Value {
    let mut value = serde_json::to_value(fields).unwrap_or_default();
    value["event"] = event.into();
    value
}
