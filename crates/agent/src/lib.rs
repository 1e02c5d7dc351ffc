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

use tcplab_lab::Role;

const USAGE: &str = "\
tcplab-agent: acts inside a node of a tcplab network

usage:
  tcplab-agent node [--new-net]   read commands from standard input, write events to standard output
  tcplab-agent emu                emulate links, told and telling in the same way
  tcplab-agent controls           load congestion controls into the kernel, likewise, until the input ends
  tcplab-agent lab [--parent PID] [--name NAME]
                                  build a network of namespaces, told likewise, and hold it until the input ends;
                                  one with a name can stay up
  tcplab-agent enter LAB PROCESS COMMAND...
                                  run a program in the namespaces of a process, until it or the lab's process ends
  tcplab-agent probe [SYSCTL...]  say what this machine allows a lab to do
  tcplab-agent capture INTERFACE  write the packets of an interface to standard output as pcapng, until Ctrl-C
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
    /// Namespaces, and the processes in them.
    Lab(tcplab_lab::Options),
    /// An interface's packets, to standard output.
    Capture(String),
    /// A program in a node.
    Enter(tcplab_lab::Entry),
    /// Nothing but trying out what a lab needs, and these settings.
    Probe(Vec<String>),
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
        Ok(Command::Lab(options)) => tcplab_lab::serve(&options, &|role| match role {
            Role::Node => node::main(false),
            Role::Emulator => emu::main(),
            Role::Controls => controls::main(),
            // The lab itself does that.
            Role::Hold => 0,
        }),
        Ok(Command::Capture(interface)) => capture::live::main(&interface),
        Ok(Command::Enter(entry)) => tcplab_lab::enter(&entry),
        Ok(Command::Probe(sysctls)) => {
            println!("{}", tcplab_lab::probe(&sysctls));
            0
        }
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
        Some("probe") => Ok(Command::Probe(words.map(str::to_owned).collect())),
        Some("lab") => {
            let mut options = tcplab_lab::Options::default();
            while let Some(word) = words.next() {
                match (word, words.next()) {
                    ("--parent", Some(pid)) => options.parent = Some(process_number(pid)?),
                    ("--name", Some(name)) => options.name = Some(name.to_owned()),
                    _ => return Err(format!("lab knows no {word:?}")),
                }
            }
            Ok(Command::Lab(options))
        }
        Some("capture") => match (words.next(), words.next()) {
            (Some(interface), None) => Ok(Command::Capture(interface.to_owned())),
            _ => Err("capture needs an interface".to_owned()),
        },
        Some("enter") => match (words.next(), words.next()) {
            (Some(lab), Some(process)) => Ok(Command::Enter(tcplab_lab::Entry {
                lab: process_number(lab)?,
                process: process_number(process)?,
                command: words.map(str::to_owned).collect(),
            })),
            _ => Err("enter needs the processes of a lab and of a node, and a program".to_owned()),
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

fn process_number(word: &str) -> Result<i32, String> {
    word.parse().map_err(|_| format!("{word:?} is not the number of a process"))
}
