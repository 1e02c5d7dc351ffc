//! netem on this host's interfaces, for what it sends to named hosts alone, until the agent ends.
//!
//! Each interface gets a prio whose first band takes what goes elsewhere, and a band with netem for each of those hosts. In
//! front of a netem a tbf, much faster than any interface, cuts super-packets into packets (`tbf_segment`): netem would take
//! a burst for one. Another process removes all of it when the agent has ended, whatever has ended it.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde::Deserialize;
use tcplab_probe::interface::interfaces;

use crate::capture;

/// Bands of a prio (TCQ_PRIO_BANDS), less the one for other hosts.
const MAX_HOSTS: usize = 15;
/// Ends with its input. Its arguments are the interfaces whose root queue disciplines it then removes; before it says
/// anything it ignores what signals it can.
const WATCHDOG: &str =
    r#"trap '' HUP INT TERM; echo; read -r _; for each; do tc qdisc del dev "$each" root; done 2>/dev/null"#;
/// Of Ethernet, with a VLAN tag.
const HEADER: u32 = 18;

/// Effects on packets to a host.
#[derive(Clone, Debug, Deserialize)]
pub struct Towards {
    /// Its address.
    address: IpAddr,
    /// Arguments of netem for each of those that a packet passes, the outer one first.
    netem: Vec<Vec<String>>,
}

/// Why traffic is not impaired.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum ImpairError {
    #[error("no route to {address}: {source}")]
    Route { address: IpAddr, source: io::Error },
    #[error("no interface leads to {0}")]
    Interface(IpAddr),
    #[error("{interface} leads to {count} hosts, and prio has bands for {MAX_HOSTS}")]
    Hosts { interface: String, count: usize },
    #[error("the process that removes netem does not start: {0}")]
    Watchdog(io::Error),
    #[error("tc cannot be run: {0}")]
    Program(io::Error),
    #[error("tc {command}: {said}")]
    Refused { command: String, said: String },
}

impl ImpairError {
    /// The way to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            ImpairError::Route { .. } | ImpairError::Interface(_) => "check the route: ip route get",
            ImpairError::Hosts { .. } => "impair fewer hosts",
            ImpairError::Watchdog(_) => "end other programs",
            ImpairError::Program(_) => "install iproute2 there",
            ImpairError::Refused { said, .. } if said.contains("xclusiv") || said.contains("File exists") => {
                "an administrator has set a queue discipline there: leave out `impair`, or remove it: tc qdisc del"
            }
            ImpairError::Refused { said, .. } if said.contains("not permitted") => {
                "log in as root for `impair`"
            }
            ImpairError::Refused { .. } => {
                "check that its kernel has sch_prio, sch_tbf, sch_netem and cls_u32"
            }
        }
    }
}

/// netem on interfaces, for as long as this is there.
#[derive(Debug)]
pub struct Impairment {
    watchdog: Child,
    /// Its input, closed with this process, whatever ends it.
    input: Option<ChildStdin>,
    /// The commands that were given to tc.
    commands: Vec<String>,
}

impl Impairment {
    /// Puts netem in front of hosts.
    pub fn start(towards: &[Towards]) -> Result<Impairment, ImpairError> {
        let mut interfaces: BTreeMap<String, Vec<&Towards>> = BTreeMap::new();
        for host in towards {
            let found = capture::interfaces_towards(&[host.address])
                .map_err(|source| ImpairError::Route { address: host.address, source })?;
            let interface = found.into_iter().next().ok_or(ImpairError::Interface(host.address))?;
            interfaces.entry(interface).or_default().push(host);
        }
        for (interface, hosts) in &interfaces {
            if hosts.len() > MAX_HOSTS {
                return Err(ImpairError::Hosts { interface: interface.clone(), count: hosts.len() });
            }
            free(interface)?;
        }
        let mut made = Impairment::watched(interfaces.keys())?;
        for (interface, hosts) in &interfaces {
            for command in commands(interface, mtu(interface), hosts) {
                tc(&command)?;
                made.commands.push(command.join(" "));
            }
        }
        Ok(made)
    }

    /// The commands that were given to tc.
    pub fn commands(&self) -> &[String] {
        &self.commands
    }

    /// With a watchdog over interfaces that have nothing of ours yet.
    fn watched<'a>(interfaces: impl Iterator<Item = &'a String>) -> Result<Impairment, ImpairError> {
        let mut watchdog = Command::new("/bin/sh")
            .args(["-c", WATCHDOG, "tcplab-watchdog"])
            .args(interfaces)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Signals to this process and its like are not for it.
            .process_group(0)
            .spawn()
            .map_err(ImpairError::Watchdog)?;
        let input = watchdog.stdin.take();
        let ready = watchdog.stdout.take().map(|mut output| output.read_exact(&mut [0]));
        let made = Impairment { watchdog, input, commands: Vec::new() };
        ready.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into())).map_err(ImpairError::Watchdog)?;
        Ok(made)
    }
}

impl Drop for Impairment {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.watchdog.wait();
    }
}

/// Refuses an interface with a queue discipline that somebody has set: the kernel's own have no handle.
fn free(interface: &str) -> Result<(), ImpairError> {
    let words = ["qdisc", "show", "dev", interface, "root"].map(str::to_owned);
    let set = tc(&words)?.lines().find(|line| !line.contains(" 0: ")).map(str::to_owned);
    set.map_or(Ok(()), |line| {
        let said = format!("Exclusivity: {interface} has {}", line.trim());
        Err(ImpairError::Refused { command: words.join(" "), said })
    })
}

/// The commands for an interface, each as arguments of tc.
fn commands(interface: &str, mtu: u32, hosts: &[&Towards]) -> Vec<Vec<String>> {
    let bands = hosts.len() + 1;
    let first = ["0"; 16].join(" ");
    let mut lines =
        vec![format!("qdisc add dev {interface} root handle 1: prio bands {} priomap {first}", bands.max(2))];
    for (number, host) in hosts.iter().enumerate() {
        let band = number + 2;
        lines.push(format!(
            "qdisc add dev {interface} parent 1:{band:x} handle {band:x}0: tbf rate 100gbit burst {} limit 1gb",
            mtu + HEADER
        ));
        for (depth, words) in host.netem.iter().enumerate() {
            let (parent, handle) = (format!("{band:x}{depth}:1"), format!("{band:x}{}:", depth + 1));
            lines.push(format!(
                "qdisc add dev {interface} parent {parent} handle {handle} netem {}",
                words.join(" ")
            ));
        }
        let (protocol, word, bits) =
            if host.address.is_ipv6() { ("ipv6", "ip6", 128) } else { ("ip", "ip", 32) };
        // Filters of one preference are of one protocol.
        let preference = if host.address.is_ipv6() { 2 } else { 1 };
        lines.push(format!(
            "filter add dev {interface} parent 1: protocol {protocol} prio {preference} u32 match {word} dst {}/{bits} flowid 1:{band:x}",
            host.address
        ));
    }
    lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

fn mtu(interface: &str) -> u32 {
    interfaces().ok().and_then(|found| found.get(interface).map(|found| found.mtu)).unwrap_or(1500)
}

/// Runs tc; its output.
fn tc(arguments: &[String]) -> Result<String, ImpairError> {
    let output =
        Command::new("tc").args(arguments).stdin(Stdio::null()).output().map_err(ImpairError::Program)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // "RTNETLINK answers: Operation not permitted", or "Error: Specified qdisc kind is unknown."
    let said = said.lines().next().unwrap_or_default().to_owned();
    Err(ImpairError::Refused { command: arguments.join(" "), said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_to_a_named_host_passes_its_netems() {
        let host = |address: &str, netem: &[&str]| Towards {
            address: address.parse().expect("an address"),
            netem: netem.iter().map(|words| words.split(' ').map(str::to_owned).collect()).collect(),
        };
        let (first, second) =
            (host("192.0.2.7", &["delay 10ms", "rate 1000bit limit 5"]), host("2001:db8::7", &["loss 1%"]));
        let lines: Vec<String> =
            commands("eth0", 1500, &[&first, &second]).iter().map(|words| words.join(" ")).collect();
        assert_eq!(
            lines,
            [
                "qdisc add dev eth0 root handle 1: prio bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                "qdisc add dev eth0 parent 1:2 handle 20: tbf rate 100gbit burst 1518 limit 1gb",
                "qdisc add dev eth0 parent 20:1 handle 21: netem delay 10ms",
                "qdisc add dev eth0 parent 21:1 handle 22: netem rate 1000bit limit 5",
                "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 192.0.2.7/32 flowid 1:2",
                "qdisc add dev eth0 parent 1:3 handle 30: tbf rate 100gbit burst 1518 limit 1gb",
                "qdisc add dev eth0 parent 30:1 handle 31: netem loss 1%",
                "filter add dev eth0 parent 1: protocol ipv6 prio 2 u32 match ip6 dst 2001:db8::7/128 flowid 1:3",
            ]
        );
    }
}
