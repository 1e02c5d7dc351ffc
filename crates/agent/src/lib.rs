//! `tcplab-agent`: the one process that acts inside a node.
//!
//! Its protocol is described in `docs/agent-protocol.md`. This library is the whole program, so that
//! the Python module can be it too: wherever that is installed, an agent of the same version is.

mod accelerate;
mod cache;
mod capture;
mod command_timeout;
mod config;
#[cfg(feature = "controls")]
mod controls;
mod datagram;
mod destination;
mod echo;
#[cfg(feature = "local")]
mod emu;
mod host;
mod impair;
#[cfg(feature = "local")]
mod loader;
#[cfg(feature = "local")]
mod local;
mod node;
mod output;
mod path;
mod process;
mod protocol;
mod proxy;
mod recorder;
#[cfg(feature = "local")]
mod routes;
mod run;
mod run_delay;
mod sampling;
#[cfg(feature = "local")]
mod serve;
mod trace;
#[cfg(feature = "local")]
mod watch;

use std::time::Duration;

const USAGE: &str = "\
tcplab-agent: acts inside a node of a tcplab network

usage:
  tcplab-agent node [--new-net] [--silence SECONDS]
                                  act in a node: read commands from standard input, write events to standard output
  tcplab-agent emu                emulate links, with the same kind of commands and events
  tcplab-agent controls           load congestion controls into the kernel until the input ends
  tcplab-agent lab [--parent PID] [--name NAME]
                                  build a network of namespaces and keep it until the input ends; a network with a
                                  name can stay up
  tcplab-agent enter LAB PROCESS COMMAND...
                                  run a program in the namespaces of PROCESS, until it or the lab ends
  tcplab-agent probe [SYSCTL...]  report the features that this machine offers to a lab
  tcplab-agent capture INTERFACE  write the packets of an interface to standard output as pcapng, until Ctrl-C
  tcplab-agent watch MILLISECONDS NODE=PID...
                                  write interface counters and TCP sockets of nodes at this interval, until the output is
                                  closed
  tcplab-agent accelerate         split the TCP connections that this host forwards, until the input ends
  tcplab-agent cache              answer HTTP requests that pass this host from what is stored, until the input ends
  tcplab-agent serve              act for clients over TLS, until the input ends
  tcplab-agent echo-serve         echo messages, until the input ends
  tcplab-agent echo-run           measure the round-trip time of echoes
  tcplab-agent --version

The last five read their configuration, one JSON object, from the first line of input (docs/agent-protocol.md).

  --new-net           create a network namespace, at /proc/PID/ns/net
  --silence SECONDS   exit if no command arrives for this time
";

/// Runs the command given by the arguments (without the program's name), and returns the exit code.
pub fn main(arguments: &[String]) -> u8 {
    run(arguments).unwrap_or_else(|problem| {
        eprintln!("tcplab-agent: {problem}\n\n{USAGE}");
        2
    })
}

fn run(arguments: &[String]) -> Result<u8, String> {
    let mut words = arguments.iter().map(String::as_str);
    let command = words.next().ok_or("a command is missing")?;
    Ok(match command {
        "node" => {
            let (new_net, silence) = of_node(words)?;
            node::main(new_net, silence)
        }
        "capture" => {
            let interface = words.next().ok_or("capture needs an interface")?;
            nothing_more(command, words)?;
            capture::live::main(interface)
        }
        "accelerate" => {
            nothing_more(command, words)?;
            accelerate::main()
        }
        "cache" => {
            nothing_more(command, words)?;
            cache::main()
        }
        "echo-serve" => {
            nothing_more(command, words)?;
            echo::serve()
        }
        "echo-run" => {
            nothing_more(command, words)?;
            echo::run()
        }
        "--version" => {
            println!("tcplab-agent {}", env!("CARGO_PKG_VERSION"));
            0
        }
        "--help" | "-h" => {
            print!("{USAGE}");
            0
        }
        other => elsewhere(other, words)?.ok_or_else(|| format!("no command {other:?}"))?,
    })
}

/// The commands that only the build for the user's own machine has.
#[cfg(feature = "local")]
fn elsewhere<'a>(command: &str, words: impl Iterator<Item = &'a str>) -> Result<Option<u8>, String> {
    local::run(command, words)
}

#[cfg(not(feature = "local"))]
fn elsewhere<'a>(_: &str, _: impl Iterator<Item = &'a str>) -> Result<Option<u8>, String> {
    Ok(None)
}

fn of_node<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<(bool, Option<Duration>), String> {
    let (mut new_net, mut silence) = (false, None);
    while let Some(word) = words.next() {
        match word {
            "--new-net" => new_net = true,
            "--silence" => {
                let seconds: Option<u64> = words.next().and_then(|word| word.parse().ok());
                silence = Some(Duration::from_secs(seconds.ok_or("--silence needs a number of seconds")?));
            }
            other => return Err(format!("node knows no {other:?}")),
        }
    }
    Ok((new_net, silence))
}

fn nothing_more<'a>(command: &str, mut words: impl Iterator<Item = &'a str>) -> Result<(), String> {
    words.next().map_or(Ok(()), |word| Err(format!("{command} knows no {word:?}")))
}
