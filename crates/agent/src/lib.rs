//! `tcplab-agent`: the one process that acts inside a node.
//!
//! See `docs/agent-protocol.md` for what it is told and what it answers. This library is the whole program, so that
//! the Python module can be it too: wherever that is installed, an agent of the same version is.

mod capture;
mod controls;
mod echo;
mod emu;
mod halves;
mod node;
mod output;
mod process;
mod protocol;
mod recorder;
mod run;
mod sampling;
mod waiting;

const USAGE: &str = "\
tcplab-agent: acts inside a node of a tcplab network

usage:
  tcplab-agent node [--new-net]   read commands from standard input, write events to standard output
  tcplab-agent emu                emulate links, told and telling in the same way
  tcplab-agent controls           load congestion controls into the kernel, likewise, until the input ends
  tcplab-agent echo-serve         echo messages, told by the first line of input what to allow, until it ends
  tcplab-agent echo-run           time echoes, told likewise
  tcplab-agent --version

  --new-net   hold a network namespace of its own, at /proc/PID/ns/net
";

/// What the process is started to be.
enum Command {
    /// A node: traffic, probe and capture.
    Node { new_net: bool },
    /// The links of a lab.
    Emu,
    /// Congestion controls of ours in the kernel.
    Controls,
    /// The server of `tcplab echo`.
    EchoServe,
    /// The clients of `tcplab echo`.
    EchoRun,
    /// Nothing but an answer.
    Say(String),
}

/// Does what the arguments (those of the command line, without the program's name) say, and returns the exit code.
pub fn main(arguments: &[String]) -> u8 {
    match parse(arguments) {
        Ok(Command::Node { new_net }) => node::main(new_net),
        Ok(Command::Emu) => emu::main(),
        Ok(Command::Controls) => controls::main(),
        Ok(Command::EchoServe) => echo::serve(),
        Ok(Command::EchoRun) => echo::run(),
        Ok(Command::Say(text)) => {
            print!("{text}");
            0
        }
        Err(problem) => {
            eprintln!("tcplab-agent: {problem}\n\n{USAGE}");
            2
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
        Some("emu") => match words.next() {
            None => Ok(Command::Emu),
            Some(other) => Err(format!("emu knows no {other:?}")),
        },
        Some("controls") => match words.next() {
            None => Ok(Command::Controls),
            Some(other) => Err(format!("controls knows no {other:?}")),
        },
        Some("echo-serve") => match words.next() {
            None => Ok(Command::EchoServe),
            Some(other) => Err(format!("echo-serve knows no {other:?}")),
        },
        Some("echo-run") => match words.next() {
            None => Ok(Command::EchoRun),
            Some(other) => Err(format!("echo-run knows no {other:?}")),
        },
        Some("--version") => Ok(Command::Say(format!("tcplab-agent {}\n", env!("CARGO_PKG_VERSION")))),
        Some("--help" | "-h") => Ok(Command::Say(USAGE.to_owned())),
        Some(other) => Err(format!("no command {other:?}")),
        None => Err("a command is missing".to_owned()),
    }
}
