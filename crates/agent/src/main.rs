//! `tcplab-agent`: the one process that acts inside a node.
//!
//! See `docs/agent-protocol.md` for what it is told and what it answers.

mod capture;
mod halves;
mod node;
mod output;
mod process;
mod protocol;
mod recorder;
mod run;
mod sampling;

use std::process::ExitCode;

const USAGE: &str = "\
tcplab-agent: acts inside a node of a tcplab network

usage:
  tcplab-agent node [--new-net]   read commands from standard input, write events to standard output
  tcplab-agent --version

  --new-net   hold a network namespace of its own, at /proc/PID/ns/net
";

/// What the process is started to be.
enum Command {
    /// A node: traffic, probe and capture.
    Node { new_net: bool },
    /// Nothing but an answer.
    Say(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match parse(&arguments) {
        Ok(Command::Node { new_net }) => node::main(new_net),
        Ok(Command::Say(text)) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("tcplab-agent: {problem}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: &[String]) -> Result<Command, String> {
    let mut words = arguments.iter().map(String::as_str);
    match words.next() {
        Some("node") => {
            let mut new_net = false;
            for word in words {
                match word {
                    "--new-net" => new_net = true,
                    other => return Err(format!("node knows no {other:?}")),
                }
            }
            Ok(Command::Node { new_net })
        }
        Some("--version") => Ok(Command::Say(format!("tcplab-agent {}\n", env!("CARGO_PKG_VERSION")))),
        Some("--help" | "-h") => Ok(Command::Say(USAGE.to_owned())),
        Some(other) => Err(format!("no command {other:?}")),
        None => Err("a command is missing".to_owned()),
    }
}
