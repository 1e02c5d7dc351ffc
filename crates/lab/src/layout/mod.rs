//! Contents of each namespace of a lab, from the plan alone: interfaces, addresses, routes, neighbours, settings.
//!
//! Interfaces are called eth0, eth1, ... in the order of the plan's links. MACs follow from IPv4 addresses.

mod address;
mod forwarding;
mod netem;
mod nic;
mod routes;
mod sysctls;

mod wires;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use serde::Serialize;
use tcplab_plan::{Emulator, Node, NodeKind, Offloads, Plan};

pub(crate) use address::{Mac, Subnet};
pub use netem::{Unlike, netems, unlike};

use crate::LabError;

/// The whole network.
#[derive(Clone, Debug, Serialize)]
pub struct Layout {
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) wires: Vec<Wire>,
}

/// Contents of one node's namespace.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Namespace {
    pub(crate) node: String,
    pub(crate) kind: NodeKind,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) routes: Vec<Route>,
    /// Address, MAC and interface.
    pub(crate) neighbours: Vec<(IpAddr, Mac, String)>,
    /// Of a switch: MAC and port.
    pub(crate) forwarding: Vec<(Mac, String)>,
    pub(crate) sysctls: BTreeMap<String, String>,
    /// Initial congestion window of its routes, segments.
    pub(crate) initcwnd: Option<u32>,
    /// Minimum retransmission timeout of its routes, ms.
    pub(crate) rto_min: Option<u32>,
    /// Acknowledge every segment at once.
    pub(crate) quickack: bool,
}

/// A link with its two interfaces; forward is from the first to the second.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Wire {
    pub(crate) name: String,
    pub(crate) ends: [Interface; 2],
}

impl Wire {
    /// The emulator carries its packets.
    pub(crate) fn is_emulated(&self) -> bool {
        self.ends[0].emulated
    }

    /// Its interface at a node, and the other one.
    fn seen_from(&self, node: &str) -> (&Interface, &Interface) {
        let [first, second] = &self.ends;
        if first.node == node { (first, second) } else { (second, first) }
    }
}

/// One end of a link.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Interface {
    pub(crate) node: String,
    pub(crate) name: String,
    pub(crate) link: String,
    pub(crate) mac: Mac,
    pub(crate) mtu: u32,
    /// IPv4, with prefix length; none: a switch's port.
    pub(crate) address: Option<Subnet>,
    /// IPv6 likewise.
    pub(crate) address6: Option<Subnet>,
    /// A TAP device of the emulator; otherwise one end of a veth pair.
    pub(crate) emulated: bool,
    /// It resolves no addresses and takes no part in multicast: its neighbours are named.
    pub(crate) silent: bool,
    /// Commands of tc(8) that make the direction it sends into, where netem does, or that limit its own rate.
    pub(crate) qdiscs: Vec<Vec<String>>,
    /// It has a rate and a queue of its own, before those of the link.
    pub(crate) limited: bool,
    /// TCP hands packets to it one by one.
    pub(crate) singly: bool,
    pub(crate) offloads: Offloads,
}

impl Interface {
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Subnet> {
        [self.address, self.address6].into_iter().flatten()
    }

    /// Its address of IPv6 or IPv4.
    fn ip(&self, six: bool) -> Option<IpAddr> {
        if six { self.address6 } else { self.address }.map(|subnet| subnet.address)
    }
}

/// The way to a network, or to one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Route {
    pub(crate) to: Subnet,
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) interface: String,
    pub(crate) source: Option<IpAddr>,
    /// More gateways of equal cost with their interfaces, between which flows are shared.
    pub(crate) others: Vec<(IpAddr, String)>,
}

/// The nodes of a plan by name.
type Nodes<'p> = HashMap<&'p str, &'p Node>;

impl Layout {
    /// The network of a plan. With `emulate_all` links without settings can change, too.
    pub fn new(plan: &Plan, emulate_all: bool) -> Result<Layout, LabError> {
        let nodes: Nodes<'_> = plan.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let wires = wires::wires(plan, &nodes, emulate_all)?;
        let map = routes::Map::new(&nodes, &wires);
        let namespaces = plan.nodes.iter().map(|node| namespace(node, &map)).collect::<Result<_, _>>()?;
        Ok(Layout { namespaces, wires })
    }

    /// The nodes' addresses by name, as hosts(5) has them. IPv6 has names of its own: a network whose routers route only
    /// IPv4 has addresses of both, and programs would prefer it.
    pub(crate) fn names(&self) -> String {
        let interfaces = self.namespaces.iter().flat_map(|node| &node.interfaces);
        let addresses =
            interfaces.flat_map(|one| one.addresses().map(move |subnet| (subnet.address, &one.node)));
        let suffix = |address: IpAddr| if address.is_ipv6() { ".v6" } else { "" };
        addresses.map(|(address, node)| format!("{address}\t{node}{}\n", suffix(address))).collect()
    }

    /// The links that are veth pairs.
    pub(crate) fn cables(&self) -> impl Iterator<Item = &[Interface; 2]> {
        self.wires.iter().filter(|wire| !wire.is_emulated()).map(|wire| &wire.ends)
    }
}

fn namespace(node: &Node, map: &routes::Map<'_>) -> Result<Namespace, LabError> {
    let interfaces: Vec<Interface> = map.interfaces(&node.name).cloned().collect();
    // Those of routing protocols are found by them, neighbours included: zebra replaces those that are named.
    let (routes, neighbours) = if node.kind == NodeKind::Switch || node.routing.is_some() {
        (Vec::new(), Vec::new())
    } else {
        map.routes(node)?
    };
    let is_switch = node.kind == NodeKind::Switch;
    let forwarding = if is_switch { forwarding::forwarding(&node.name, map) } else { Vec::new() };
    let (window, timeout) = (node.tcp.initial_window, node.tcp.rto_min);
    Ok(Namespace {
        node: node.name.clone(),
        kind: node.kind,
        sysctls: sysctls::sysctls(node, &interfaces),
        interfaces,
        routes,
        neighbours,
        forwarding,
        // Linux's own defaults are not set: a route without metrics is as an ordinary host has it.
        initcwnd: (window != LINUX_INITIAL_WINDOW).then_some(window),
        rto_min: (timeout.as_ns() != LINUX_RTO_MIN_MS * 1_000_000)
            .then(|| u32::try_from(timeout.as_ns() / 1_000_000).unwrap_or(u32::MAX).max(1)),
        quickack: !node.tcp.delayed_ack,
    })
}

/// Defaults of a route without metrics: segments (RFC 6928), and `TCP_RTO_MIN`.
const LINUX_INITIAL_WINDOW: u32 = 10;
const LINUX_RTO_MIN_MS: u64 = 200;

/// netem makes the links.
fn is_netem(plan: &Plan) -> bool {
    plan.emulator == Emulator::Netem
}
