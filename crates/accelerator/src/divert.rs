//! Brings the connections that pass a router to the accelerator's listening socket.
//!
//! Linux, Documentation/networking/tproxy.rst: packets of a diverted connection get a mark, and a rule sends marked
//! packets to a table in which every address is local. A SYN is given to the listening socket; what follows finds
//! the connection's own socket, whose address is not the router's. Where nobody listens any more, `tproxy` matches
//! nothing and packets are forwarded as before.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::AcceleratorError;

/// The nftables table that is ours.
const TABLE: &str = "tcplab_accelerator";
/// The mark of diverted packets, and the routing table they use.
const MARK: &str = "0x7c9";
const ROUTES: &str = "1993";

/// Connections are diverted for as long as this lives.
#[derive(Debug)]
pub(crate) struct Diversion {
    /// Where the listening socket is.
    port: u16,
    /// Destination ports; empty: all.
    ports: Vec<u16>,
    open: bool,
}

impl Diversion {
    /// Divert connections to any of `ports` (empty: to all) to the transparent socket that listens at `port`.
    pub(crate) fn new(port: u16, ports: &[u16]) -> Result<Diversion, AcceleratorError> {
        let diversion = Diversion { port, ports: ports.to_vec(), open: true };
        for family in ["-4", "-6"] {
            // Made anew where an accelerator that was killed has left its own.
            let _ = ip(&[family, "rule", "del", "fwmark", MARK, "lookup", ROUTES]);
            ip(&[family, "rule", "add", "fwmark", MARK, "lookup", ROUTES])?;
            ip(&[family, "route", "replace", "local", "default", "dev", "lo", "table", ROUTES])?;
        }
        nft(&diversion.rules())?;
        Ok(diversion)
    }

    /// Divert new connections, or let them pass. Those that are split stay split.
    pub(crate) fn open(&mut self, open: bool) -> Result<(), AcceleratorError> {
        if open == self.open {
            return Ok(());
        }
        let mut change = format!("flush chain inet {TABLE} new\n");
        if open {
            change += &format!("add rule inet {TABLE} new {}\n", self.new_connections());
        }
        nft(&change)?;
        self.open = open;
        Ok(())
    }

    fn rules(&self) -> String {
        format!(
            "table inet {TABLE}
             delete table inet {TABLE}
             table inet {TABLE} {{
                 chain new {{
                     {}
                 }}
                 chain prerouting {{
                     type filter hook prerouting priority mangle; policy accept;
                     meta l4proto != tcp accept
                     socket transparent 1 meta mark set {MARK} accept
                     fib daddr type local accept
                     tcp flags & (syn | ack) == syn jump new
                 }}
             }}\n",
            self.new_connections()
        )
    }

    fn new_connections(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        let ports =
            if ports.is_empty() { String::new() } else { format!("tcp dport {{ {} }} ", ports.join(", ")) };
        format!("{ports}meta l4proto tcp tproxy to :{} meta mark set {MARK} accept", self.port)
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        let _ = nft(&format!("delete table inet {TABLE}\n"));
        for family in ["-4", "-6"] {
            let _ = ip(&[family, "rule", "del", "fwmark", MARK, "lookup", ROUTES]);
            let _ = ip(&[family, "route", "flush", "table", ROUTES]);
        }
    }
}

fn nft(script: &str) -> Result<(), AcceleratorError> {
    run("nft", &["-f", "-"], script)
}

fn ip(arguments: &[&str]) -> Result<(), AcceleratorError> {
    run("ip", arguments, "")
}

fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<(), AcceleratorError> {
    let failed = |source| AcceleratorError::Program { program, source };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(AcceleratorError::Refused {
        program,
        said: said.lines().next().unwrap_or("no reason given").to_owned(),
    })
}
