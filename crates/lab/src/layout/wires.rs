//! The links with their interfaces: names, addresses, and who makes them.

use std::collections::{HashMap, HashSet};

use tcplab_plan::{CaptureAt, Link, Node, NodeKind, Offloads, Plan};

use super::{Interface, Mac, Nodes, Subnet, Wire, is_netem, netem, nic};
use crate::LabError;

const NO_OFFLOADS: Offloads = Offloads { tso: false, gso: false, gro: false };

pub(super) fn wires(plan: &Plan, nodes: &Nodes<'_>, emulate_all: bool) -> Result<Vec<Wire>, LabError> {
    let on_the_wire = plan.capture.as_ref().is_some_and(|capture| capture.at == CaptureAt::Wire);
    let everything = emulate_all || on_the_wire || plan.sample.packets;
    let with_netem = is_netem(plan);
    let routed = routed(plan, nodes);
    let mut count: HashMap<&str, usize> = HashMap::new();
    let mut wires = Vec::new();
    for (number, link) in plan.links.iter().enumerate() {
        let emulated = !with_netem && (everything || !link.is_cable());
        let silent = !routed.contains(link.name.as_str());
        let mut end = |side: usize| {
            let node = nodes.get(link.ends[side].as_str());
            let node = node.ok_or_else(|| LabError::NoNode(link.ends[side].clone()))?;
            let place = count.entry(&node.name).or_default();
            let name = format!("eth{place}");
            *place += 1;
            interface(node, name, link, (number, side), with_netem).map(|made| Interface {
                emulated,
                silent,
                ..made
            })
        };
        wires.push(Wire { name: link.name.clone(), ends: [end(0)?, end(1)?] });
    }
    Ok(wires)
}

fn interface(
    node: &Node,
    name: String,
    link: &Link,
    (number, side): (usize, usize),
    with_netem: bool,
) -> Result<Interface, LabError> {
    let direction = if side == 0 { &link.forward } else { &link.backward };
    let qdiscs = match node.nic {
        Some(nic) => nic::commands(&name, nic, link.mtu),
        None if with_netem => netem::commands(&name, link.mtu, direction),
        None => Vec::new(),
    };
    let offloads = if with_netem { NO_OFFLOADS } else { node.offloads };
    let subnet = |text: &Option<String>| {
        text.as_ref().map(|text| text.parse::<Subnet>()).transpose().map_err(LabError::NotUnderstood)
    };
    let address = subnet(&link.addresses[side])?;
    let mac = match address.map(|subnet| subnet.address) {
        Some(std::net::IpAddr::V4(address)) => Mac::of(address),
        _ => Mac::of_port(number, side),
    };
    Ok(Interface {
        node: node.name.clone(),
        name,
        link: link.name.clone(),
        mac,
        mtu: link.mtu,
        address,
        address6: subnet(&link.addresses6[side])?,
        emulated: false,
        silent: true,
        qdiscs,
        limited: node.nic.is_some(),
        // netem would take a burst for one packet, and a burst that one link lets pass is met by the next. Where both
        // offloads are off: for TCP that alone changes nothing (`netlink::one_by_one`).
        singly: with_netem || !(offloads.tso || offloads.gso),
        offloads,
    })
}

/// The links in the subnets of routers with protocols, which find their neighbours by multicast and ARP. Links that
/// switches join are one subnet.
fn routed<'p>(plan: &'p Plan, nodes: &Nodes<'_>) -> HashSet<&'p str> {
    let speaks = plan.nodes.iter().filter(|node| node.routing.is_some());
    let mut speaks: HashSet<&str> = speaks.map(|node| node.name.as_str()).collect();
    let mut found: HashSet<&str> = HashSet::new();
    loop {
        let touches = |link: &&Link| {
            !found.contains(link.name.as_str()) && link.ends.iter().any(|end| speaks.contains(end.as_str()))
        };
        let more: Vec<&Link> = plan.links.iter().filter(touches).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more.iter().map(|link| link.name.as_str()));
        let is_switch = |end: &&str| nodes.get(end).is_some_and(|node| node.kind == NodeKind::Switch);
        speaks = more.iter().flat_map(|link| &link.ends).map(String::as_str).filter(is_switch).collect();
    }
}
