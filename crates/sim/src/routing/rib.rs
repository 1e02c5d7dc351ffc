//! A router's routing table: which of several protocols' routes counts, and what the kernel forwards by.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tcplab_units::{Span, Time};

use super::core::{Core, Event};
use super::wiring::{PortId, Prefix, RouterId, Wiring};
use crate::network::{DirectionId, NodeId};

/// From a protocol's route to the kernel's: zebra collects changes for so long (`ZEBRA_RIB_PROCESS_HOLD_TIME` of FRR).
const HOLD: Span = Span::from_ms(10);

/// Who offers a route: in the order of their distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    /// Administrative distance: the lowest counts.
    pub(super) distance: u32,
    /// As ip-route(8) calls it.
    pub(super) protocol: &'static str,
}

/// The next on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hop {
    /// A neighbour, by an interface.
    Via(PortId, IpAddr),
    /// A router that is not a neighbour: by the way to its address.
    Through(IpAddr),
}

/// A way that packets can take: interface and gateway.
type Way = (PortId, IpAddr);

/// A change of the kernel's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) time: Time,
    pub(super) router: RouterId,
    pub(super) prefix: Prefix,
    /// None: the route is gone.
    pub(super) next_hops: Option<String>,
    pub(super) protocol: &'static str,
}

/// The directions by which packets for a node leave a router; none: it has no route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) router: RouterId,
    pub(super) destination: NodeId,
    pub(super) family: usize,
    pub(super) directions: Vec<DirectionId>,
}

/// The routes of one router.
#[derive(Debug, Default)]
pub(super) struct Rib {
    candidates: BTreeMap<Prefix, BTreeMap<Source, Vec<Hop>>>,
    installed: BTreeMap<Prefix, (&'static str, Vec<Way>)>,
    changed: BTreeSet<Prefix>,
    /// An interface has changed: every route may.
    all_changed: bool,
    is_planned: bool,
}

impl Rib {
    /// The way to `address`, but not by a route of BGP.
    pub(super) fn resolve(
        &self,
        wiring: &Wiring,
        carrier: &[bool],
        router: RouterId,
        address: IpAddr,
    ) -> Vec<Way> {
        if let Some(port) = wiring.port_towards(router, address)
            && carrier[port]
        {
            return vec![(port, address)];
        }
        let fits = |(prefix, (protocol, _)): &(&Prefix, &(&str, Vec<Way>))| {
            prefix.contains(address) && *protocol != "bgp"
        };
        let best = self.installed.iter().filter(fits).max_by_key(|(prefix, _)| prefix.length());
        best.map_or(Vec::new(), |(_, (_, ways))| ways.clone())
    }

    fn select(&self, core: &Core, router: RouterId, prefix: Prefix) -> Option<(&'static str, Vec<Way>)> {
        let (wiring, carrier) = (&core.wiring, &core.carrier);
        if is_connected(wiring, router, prefix).is_some_and(|port| carrier[port]) {
            return None;
        }
        self.candidates.get(&prefix)?.iter().find_map(|(source, hops)| {
            let mut ways: Vec<Way> = Vec::new();
            for hop in hops {
                match *hop {
                    Hop::Via(port, gateway) if carrier[port] => ways.push((port, gateway)),
                    Hop::Via(..) => {}
                    Hop::Through(address) => ways.extend(self.resolve(wiring, carrier, router, address)),
                }
            }
            ways.sort_by_key(|&(port, gateway)| (gateway, port));
            ways.dedup();
            (!ways.is_empty()).then_some((source.protocol, ways))
        })
    }

    /// The interfaces by which packets to `address` leave. The network of an interface without a carrier still counts, as
    /// in Linux (`ignore_routes_with_linkdown=0`).
    /// `lengths` are those of the installed prefixes, the longest first.
    fn lookup(&self, wiring: &Wiring, router: RouterId, address: IpAddr, lengths: &[u8]) -> Vec<PortId> {
        let best =
            lengths.iter().find_map(|&length| self.installed.get_key_value(&Prefix::of(address, length)));
        if let Some(port) = wiring.port_towards(router, address) {
            let own = wiring.ports[port].addresses[usize::from(address.is_ipv6())];
            let length = own.map_or(0, |own| own.prefix().length());
            if best.is_none_or(|(prefix, _)| prefix.length() <= length) {
                return vec![port];
            }
        }
        best.map_or(Vec::new(), |(_, (_, ways))| ways.iter().map(|&(port, _)| port).collect())
    }

    fn directions(
        &self,
        wiring: &Wiring,
        router: RouterId,
        address: IpAddr,
        lengths: &[u8],
    ) -> Vec<DirectionId> {
        let ports = self.lookup(wiring, router, address, lengths);
        ports.into_iter().map(|port| wiring.ports[port].out).collect()
    }

    /// The first interface by which packets to `address` leave, whatever protocol its route is of.
    pub(super) fn way_out(&self, wiring: &Wiring, router: RouterId, address: IpAddr) -> Option<PortId> {
        self.lookup(wiring, router, address, &lengths(self.installed.keys())).first().copied()
    }
}

/// The lengths of prefixes, the longest first. Networks have few lengths: to look for those of an address takes far less time
/// than to compare it with every network.
fn lengths<'a>(prefixes: impl Iterator<Item = &'a Prefix>) -> Vec<u8> {
    let lengths: BTreeSet<u8> = prefixes.map(|prefix| prefix.length()).collect();
    lengths.into_iter().rev().collect()
}

fn is_connected(wiring: &Wiring, router: RouterId, prefix: Prefix) -> Option<PortId> {
    let own =
        |port: &PortId| wiring.ports[*port].addresses.iter().flatten().any(|own| own.prefix() == prefix);
    wiring.routers[router].ports.iter().copied().find(own)
}

fn shown(wiring: &Wiring, ways: &[Way]) -> String {
    let shown: Vec<String> =
        ways.iter().map(|(port, gateway)| format!("{gateway} {}", wiring.ports[*port].name)).collect();
    shown.join(", ")
}

impl Core {
    /// A protocol of `router` has another route to `prefix`; no hops: it has none any more.
    pub(super) fn update(&mut self, router: RouterId, prefix: Prefix, source: Source, hops: Vec<Hop>) {
        let rib = &mut self.ribs[router];
        let candidates = rib.candidates.entry(prefix).or_default();
        let is_same = match candidates.get(&source) {
            Some(old) => *old == hops,
            None => hops.is_empty(),
        };
        if is_same {
            return;
        }
        if hops.is_empty() {
            candidates.remove(&source);
        } else {
            candidates.insert(source, hops);
        }
        rib.changed.insert(prefix);
        self.plan_install(router);
    }

    /// The carrier of one of `router`'s interfaces has come or gone.
    pub(super) fn reconsider(&mut self, router: RouterId) {
        self.ribs[router].all_changed = true;
        self.plan_install(router);
    }

    fn plan_install(&mut self, router: RouterId) {
        let rib = &mut self.ribs[router];
        if !std::mem::replace(&mut rib.is_planned, true) {
            self.agenda.plan(self.now + HOLD, Event::Install(router));
        }
    }

    /// The changes since the last time go into the kernel's table.
    pub(super) fn install(&mut self, router: RouterId) {
        let rib = &mut self.ribs[router];
        rib.is_planned = false;
        let mut prefixes = std::mem::take(&mut rib.changed);
        let recursive = rib.candidates.values().flat_map(BTreeMap::values).flatten();
        if std::mem::take(&mut rib.all_changed)
            || recursive.into_iter().any(|hop| matches!(hop, Hop::Through(_)))
        {
            prefixes.extend(rib.candidates.keys());
        }
        // Those of other protocols first: BGP's next hops are found by them.
        let mut moved = BTreeSet::new();
        for is_bgp in [false, true] {
            for &prefix in &prefixes {
                let selected = self.ribs[router].select(self, router, prefix);
                if selected.as_ref().is_some_and(|(protocol, _)| *protocol == "bgp") == is_bgp
                    && self.replace(router, prefix, selected)
                {
                    moved.insert(prefix);
                }
            }
        }
        self.forward(router, &moved);
    }

    /// An interface has lost its carrier: the kernel removes it from all routes at once, before zebra does anything. A route
    /// without another way is gone (Linux: `nexthop_flush_dev`, for the nexthop objects that zebra makes).
    pub(super) fn flush(&mut self, router: RouterId, port: PortId) {
        let installed = &self.ribs[router].installed;
        let uses = |ways: &[Way]| ways.iter().any(|&(way, _)| way == port);
        let fewer: Vec<_> = installed
            .iter()
            .filter(|(_, (_, ways))| uses(ways))
            .map(|(&prefix, (protocol, ways))| {
                let left: Vec<Way> = ways.iter().copied().filter(|&(way, _)| way != port).collect();
                (prefix, (!left.is_empty()).then_some((*protocol, left)))
            })
            .collect();
        let moved = fewer.into_iter().map(|(prefix, left)| {
            self.replace(router, prefix, left);
            prefix
        });
        let moved: BTreeSet<Prefix> = moved.collect();
        self.forward(router, &moved);
    }

    /// The directions of all destinations whose prefixes have `moved`.
    fn forward(&mut self, router: RouterId, moved: &BTreeSet<Prefix>) {
        if moved.is_empty() {
            return;
        }
        let rib = &self.ribs[router];
        let (of_moved, of_all) = (lengths(moved.iter()), lengths(rib.installed.keys()));
        for &(destination, address) in &self.wiring.destinations {
            if destination != self.wiring.routers[router].node
                && of_moved.iter().any(|&length| moved.contains(&Prefix::of(address, length)))
            {
                let directions = rib.directions(&self.wiring, router, address, &of_all);
                let family = usize::from(address.is_ipv6());
                self.turns.push(Turn { router, destination, family, directions });
            }
        }
        self.moved.push(router);
        self.last_move = self.now;
    }

    fn replace(&mut self, router: RouterId, prefix: Prefix, new: Option<(&'static str, Vec<Way>)>) -> bool {
        let installed = &mut self.ribs[router].installed;
        if installed.get(&prefix) == new.as_ref() {
            return false;
        }
        let old = match &new {
            Some(new) => installed.insert(prefix, new.clone()),
            None => installed.remove(&prefix),
        };
        let protocol = new.as_ref().or(old.as_ref()).map_or("", |(protocol, _)| protocol);
        let next_hops = new.map(|(_, ways)| shown(&self.wiring, &ways));
        self.rows.push(Row { time: self.now, router, prefix, next_hops, protocol });
        true
    }

    /// The directions of all destinations, by the networks of the router's own interfaces.
    pub(super) fn connected(&self) -> Vec<Turn> {
        let mut turns = Vec::new();
        for (router, rib) in self.ribs.iter().enumerate() {
            let lengths = lengths(rib.installed.keys());
            for &(destination, address) in &self.wiring.destinations {
                let directions = rib.directions(&self.wiring, router, address, &lengths);
                let family = usize::from(address.is_ipv6());
                if destination != self.wiring.routers[router].node {
                    turns.push(Turn { router, destination, family, directions });
                }
            }
        }
        turns
    }

    /// Every router's table as it stands.
    pub(super) fn tables(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let time = self.now;
        for (router, rib) in self.ribs.iter().enumerate() {
            for &port in &self.wiring.routers[router].ports {
                let port = &self.wiring.ports[port];
                rows.extend(port.addresses.iter().flatten().map(|address| Row {
                    time,
                    router,
                    prefix: address.prefix(),
                    next_hops: Some(port.name.clone()),
                    protocol: "kernel",
                }));
            }
            rows.extend(rib.installed.iter().map(|(&prefix, (protocol, ways))| Row {
                time,
                router,
                prefix,
                next_hops: Some(shown(&self.wiring, ways)),
                protocol,
            }));
        }
        rows
    }
}
