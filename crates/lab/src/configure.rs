//! Fills the network namespaces of a lab.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tcplab_plan::{NodeKind, Offloads as Wanted};
use tcplab_probe::interface::Offloads;

use crate::LabError;
use crate::layout::{Interface, Namespace};
use crate::netlink::{self, Kernel, Refusal, RouteSettings};
use crate::sysctl;

const BRIDGE: &str = "br0";
/// Packets that may wait for the emulator. The default of 1000 is filled by one burst of datagrams, and what finds no
/// room is lost in the sender's namespace.
const TAP_QUEUE: u32 = 10_000;

/// Fills the namespace this thread is in. The interfaces exist already.
pub(crate) fn fill(node: &Namespace) -> Result<(), LabError> {
    let refused = |Refusal { what, said }| LabError::Refused { node: node.node.clone(), what, said };
    let kernel = Kernel::new()?;
    if node.kind == NodeKind::Switch {
        kernel.carry_out(vec![netlink::bridge(BRIDGE)])?.map_err(refused)?;
    }
    let index = kernel.interfaces()?;
    let at = |name: &str| {
        index.get(name).copied().ok_or_else(|| LabError::Refused {
            node: node.node.clone(),
            what: format!("configure {name}"),
            said: "no such interface".to_owned(),
        })
    };
    // First, and before the interfaces are up: not one packet of IPv6's own leaves.
    let silent = node
        .interfaces
        .iter()
        .filter(|one| one.silent)
        .map(|one| Ok(netlink::silence(&one.name, at(&one.name)?)));
    kernel.carry_out(silent.collect::<Result<_, LabError>>()?)?.map_err(refused)?;
    for (name, value) in &node.sysctls {
        sysctl::write(name, value).map_err(|said| LabError::Setting { node: node.node.clone(), said })?;
    }
    offload(node)?;

    let master = if node.kind == NodeKind::Switch { Some(at(BRIDGE)?) } else { None };
    let mut requests = Vec::new();
    for one in &node.interfaces {
        requests.push(netlink::up(&one.name, at(&one.name)?, master, one.emulated.then_some(TAP_QUEUE)));
    }
    for one in node.interfaces.iter().filter(|one| one.singly) {
        requests.push(netlink::one_by_one(&one.name, at(&one.name)?));
    }
    requests.extend(master.map(|index| netlink::up(BRIDGE, index, None, None)));
    for (mac, port) in &node.forwarding {
        requests.push(netlink::forwarding(*mac, at(port)?));
    }
    // A kernel without IPv6 has networks all the same; `check` refuses flows that need it.
    let six = Path::new("/proc/sys/net/ipv6").exists();
    for one in &node.interfaces {
        for subnet in one.addresses().filter(|subnet| six || subnet.address.is_ipv4()) {
            requests.push(netlink::address(&one.name, at(&one.name)?, subnet));
        }
    }
    for (host, mac, name) in node.neighbours.iter().filter(|(host, ..)| six || host.is_ipv4()) {
        requests.push(netlink::neighbour(*host, *mac, at(name)?));
    }
    let settings = RouteSettings { initcwnd: node.initcwnd, rto_min: node.rto_min, quickack: node.quickack };
    for route in node.routes.iter().filter(|route| six || route.to.address.is_ipv4()) {
        let index = at(&route.interface)?;
        let others = route.others.iter().map(|(gateway, name)| Ok((*gateway, at(name)?)));
        let others = others.collect::<Result<Vec<_>, LabError>>()?;
        requests.push(netlink::route(route.to, route.gateway, index, &others, route.source, settings));
    }
    kernel.carry_out(requests)?.map_err(refused)?;
    shape(&node.interfaces)
}

fn offload(node: &Namespace) -> Result<(), LabError> {
    let offloads = Offloads::new()?;
    for one in &node.interfaces {
        let on = offloads.on(&one.name)?;
        let Wanted { tso, gso, gro } = one.offloads;
        let wanted = [("gro", gro), ("gso", gso), ("tso", tso)];
        for (name, wanted) in wanted.into_iter().filter(|(name, wanted)| on.contains(name) != *wanted) {
            offloads.set(&one.name, name, wanted).map_err(|error| LabError::Refused {
                node: one.node.clone(),
                what: format!("switch {name} {} for {}", if wanted { "on" } else { "off" }, one.name),
                said: netlink::plain(&error),
            })?;
        }
    }
    Ok(())
}

/// Has tc(8) make queue disciplines, all with one process.
fn shape(interfaces: &[Interface]) -> Result<(), LabError> {
    let lines: Vec<String> =
        interfaces.iter().flat_map(|one| &one.qdiscs).map(|words| words.join(" ") + "\n").collect();
    if lines.is_empty() {
        return Ok(());
    }
    let failed = |error| LabError::Shape(format!("tc does not start: {error}"));
    let mut tc = Command::new("tc")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = tc.stdin.take() {
        // It reports lines that it cannot read.
        let _ = input.write_all(lines.concat().as_bytes());
    }
    let done = tc.wait_with_output().map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(LabError::Shape(said.split_whitespace().collect::<Vec<_>>().join(" ")))
}
