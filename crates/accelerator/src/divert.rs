//! Brings the connections that pass a router to the listening socket of an accelerator or a cache.
//!
//! Linux, Documentation/networking/tproxy.rst: packets of a diverted connection get a mark, and a rule sends marked
//! packets to a table in which every address is local. A SYN is given to the listening socket; what follows finds
//! the connection's own socket, whose address is not the router's. Without a listener, `tproxy` matches
//! nothing and packets are forwarded as before.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};

use crate::AcceleratorError;

/// The number that tells the diversions of a namespace apart.
#[derive(Debug)]
pub(crate) struct Names {
    /// The nftables table.
    table: &'static str,
    /// Its hook's priority. The lower one sees a SYN first; to the others it then belongs to a transparent socket.
    priority: &'static str,
    /// The mark of diverted packets, and the routing table they use.
    mark: &'static str,
    routes: &'static str,
}

/// An accelerator's.
pub(crate) const ACCELERATOR: Names =
    Names { table: "tcplab_accelerator", priority: "mangle", mark: "0x7c9", routes: "1993" };
/// A cache's, which comes first where a router has both.
pub(crate) const CACHE: Names =
    Names { table: "tcplab_cache", priority: "mangle - 1", mark: "0x7ca", routes: "1994" };

/// The connections that are diverted.
#[derive(Debug)]
pub(crate) enum Choice {
    /// Those to one of these hosts and one of these ports. Without any all hosts, or all ports.
    Within { hosts: Vec<IpAddr>, ports: Vec<u16> },
    /// Those to one of these ports, or to one of these addresses and ports.
    To { ports: Vec<u16>, servers: Vec<SocketAddr> },
}

impl Choice {
    /// The matches of nftables, each for a rule of its own, and the family that it is bound to.
    fn matches(&self) -> Vec<(String, &'static str)> {
        match self {
            Choice::Within { hosts, ports } if hosts.is_empty() => vec![(to_ports(ports), "")],
            Choice::Within { hosts, ports } => {
                let matched = |host: &IpAddr| (format!("{}{}", to_host(host), to_ports(ports)), family(host));
                hosts.iter().map(matched).collect()
            }
            Choice::To { ports, servers } => {
                let any_host = (!ports.is_empty()).then(|| (to_ports(ports), ""));
                let matched = |server: &SocketAddr| {
                    let host = server.ip();
                    (format!("{}{}", to_host(&host), to_ports(&[server.port()])), family(&host))
                };
                any_host.into_iter().chain(servers.iter().map(matched)).collect()
            }
        }
    }
}

fn family(host: &IpAddr) -> &'static str {
    if host.is_ipv4() { "ip" } else { "ip6" }
}

fn to_host(host: &IpAddr) -> String {
    format!("{} daddr {host} ", family(host))
}

/// To any port if there are none.
fn to_ports(ports: &[u16]) -> String {
    if ports.is_empty() {
        return String::new();
    }
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("tcp dport {{ {} }} ", ports.join(", "))
}

/// Connections are diverted for as long as this lives.
#[derive(Debug)]
pub(crate) struct Diversion {
    names: Names,
    /// Where the listening socket is.
    port: u16,
    choice: Choice,
    open: bool,
    /// How often it was closed.
    closed: u64,
}

impl Diversion {
    /// Divert the connections of a choice to the transparent socket that listens at `port`.
    pub(crate) fn new(names: Names, port: u16, choice: Choice) -> Result<Diversion, AcceleratorError> {
        let diversion = Diversion { names, port, choice, open: true, closed: 0 };
        let Names { mark, routes, .. } = diversion.names;
        for family in ["-4", "-6"] {
            // Made anew where a process that was killed has left its own.
            let _ = ip(&[family, "rule", "del", "fwmark", mark, "lookup", routes]);
            ip(&[family, "rule", "add", "fwmark", mark, "lookup", routes])?;
            ip(&[family, "route", "replace", "local", "default", "dev", "lo", "table", routes])?;
        }
        nft(&diversion.rules())?;
        Ok(diversion)
    }

    /// Where the listening socket is.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How often new connections began to pass.
    pub(crate) fn closed(&self) -> u64 {
        self.closed
    }

    /// Divert new connections, or let them pass. Those that are split stay split.
    pub(crate) fn open(&mut self, open: bool) -> Result<(), AcceleratorError> {
        if open == self.open {
            return Ok(());
        }
        let table = self.names.table;
        let mut change = format!("flush chain inet {table} new\n");
        if open {
            for rule in self.new_connections() {
                change += &format!("add rule inet {table} new {rule}\n");
            }
        }
        nft(&change)?;
        self.open = open;
        self.closed += u64::from(!open);
        Ok(())
    }

    fn rules(&self) -> String {
        let Names { table, priority, mark, .. } = self.names;
        format!(
            "table inet {table}
             delete table inet {table}
             table inet {table} {{
                 chain new {{
                     {}
                 }}
                 chain prerouting {{
                     type filter hook prerouting priority {priority}; policy accept;
                     meta l4proto != tcp accept
                     socket transparent 1 meta mark set {mark} accept
                     fib daddr type local accept
                     tcp flags & (syn | ack) == syn jump new
                 }}
             }}\n",
            self.new_connections().join("\n")
        )
    }

    fn new_connections(&self) -> Vec<String> {
        let (port, mark) = (self.port, self.names.mark);
        let rule = |(matched, family): (String, &str)| {
            format!("{matched}meta l4proto tcp tproxy {family} to :{port} meta mark set {mark} accept")
        };
        self.choice.matches().into_iter().map(rule).collect()
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        let Names { table, mark, routes, .. } = self.names;
        let _ = nft(&format!("delete table inet {table}\n"));
        for family in ["-4", "-6"] {
            let _ = ip(&[family, "rule", "del", "fwmark", mark, "lookup", routes]);
            let _ = ip(&[family, "route", "flush", "table", routes]);
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
