//! `tcplab-agent` as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ExitCode::from(tcplab_agent::main(&arguments))
}
