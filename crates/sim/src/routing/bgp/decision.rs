//! The choice among paths (RFC 4271, section 9.1, with FRR's order and multipath), and what of it is advertised to neighbours.

use std::net::IpAddr;

use super::super::core::Core;
use super::super::rib::{Hop, Source};
use super::super::wiring::{Prefix, RouterId};
use super::session::Side;
use super::{Bgp, Path};
use crate::plan::{NO_ADVERTISE, NO_EXPORT, community};

const EXTERNAL: Source = Source { distance: 20, protocol: "bgp" };
const INTERNAL: Source = Source { distance: 200, protocol: "bgp" };

/// A path as a neighbour advertised it, and the order in which it arrived.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) path: Path,
    pub(super) number: u64,
}

/// The best path to a network, and what the routing table was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// None: the network is the router's own.
    from: Option<Side>,
    path: Path,
    hops: Vec<Hop>,
}

/// A path that may be chosen.
struct Candidate<'a> {
    side: Side,
    is_internal: bool,
    neighbour_system: u32,
    received: &'a Received,
    /// The neighbour's identifier and address, the last resort.
    last: (IpAddr, IpAddr),
}

impl Bgp {
    pub(super) fn decide(&mut self, core: &mut Core, router: RouterId) {
        let own = self.announced(core, router);
        let Some(process) = &mut self.processes[router] else { return };
        process.is_planned = false;
        let changed = std::mem::take(&mut process.changed);
        for prefix in changed {
            let new = if own.contains(&prefix) {
                let next_hop = core.wiring.router_id(router);
                let path = Path { systems: Vec::new(), communities: Vec::new(), next_hop };
                Some(Choice { from: None, path, hops: Vec::new() })
            } else {
                self.best(core, router, prefix)
            };
            let Some(process) = &mut self.processes[router] else { return };
            let old = process.choices.get(&prefix);
            if old == new.as_ref() {
                continue;
            }
            let is_advertised_again =
                old.map(|old| (old.from, &old.path)) != new.as_ref().map(|new| (new.from, &new.path));
            match &new {
                Some(new) => process.choices.insert(prefix, new.clone()),
                None => process.choices.remove(&prefix),
            };
            let from = new.as_ref().and_then(|new| new.from);
            let is_internal = from.is_some_and(|from| self.sessions[from.session].is_internal);
            let hops = new.map_or(Vec::new(), |new| new.hops);
            let (source, none) = if is_internal { (INTERNAL, EXTERNAL) } else { (EXTERNAL, INTERNAL) };
            core.update(router, prefix, none, Vec::new());
            core.update(router, prefix, source, hops);
            if is_advertised_again {
                self.announce(core, router, prefix);
            }
        }
    }

    fn best(&self, core: &Core, router: RouterId, prefix: Prefix) -> Option<Choice> {
        let process = self.processes[router].as_ref()?;
        let mut candidates: Vec<Candidate<'_>> = Vec::new();
        for &side in &process.sides {
            let (own, session) = (self.end(side), &self.sessions[side.session]);
            let Some(received) = own.received.get(&prefix) else { continue };
            let next_hop = received.path.next_hop;
            let resolved = || core.ribs[router].resolve(&core.wiring, &core.carrier, router, next_hop);
            if session.is_internal && resolved().is_empty() {
                continue;
            }
            let far = self.end(side.other());
            candidates.push(Candidate {
                side,
                is_internal: session.is_internal,
                neighbour_system: self.system(far.router),
                received,
                last: (core.wiring.router_id(far.router), far.address),
            });
        }
        // Fewer systems, external before internal.
        let rank = |one: &Candidate<'_>| (one.received.path.systems.len(), one.is_internal);
        let first = candidates.iter().map(rank).min()?;
        candidates.retain(|one| rank(one) == first);
        // Of external paths the oldest, which does not change without need (RFC 5004); then by identifier and address.
        let order = |one: &Candidate<'_>| {
            let age = if one.is_internal { 0 } else { one.received.number };
            (age, one.last)
        };
        candidates.sort_by_key(order);
        let best = candidates.first()?;
        let (from, path, system) = (Some(best.side), best.received.path.clone(), best.neighbour_system);
        // Paths by the same neighbouring system share the traffic (`maximum-paths`; other systems would need
        // `bestpath as-path multipath-relax`). Within a system all paths of equal length do.
        let shares = |one: &&Candidate<'_>| one.is_internal || one.neighbour_system == system;
        let mut hops: Vec<Hop> = candidates
            .iter()
            .filter(shares)
            .take(process.settings.maximum_paths as usize)
            .map(|one| {
                let next_hop = one.received.path.next_hop;
                self.end(one.side)
                    .port
                    .filter(|_| !one.is_internal)
                    .map_or(Hop::Through(next_hop), |port| Hop::Via(port, next_hop))
            })
            .collect();
        hops.sort();
        hops.dedup();
        Some(Choice { from, path, hops })
    }

    /// The advertisement of a network to `side`; none: nothing, or that there is no way any more.
    pub(super) fn exported(&self, side: Side, prefix: Prefix) -> Option<Path> {
        let own = self.end(side);
        let process = self.processes[own.router].as_ref()?;
        let choice = process.choices.get(&prefix)?;
        if choice.from == Some(side) || usize::from(prefix.is_six()) != self.sessions[side.session].family {
            return None;
        }
        let Path { mut systems, mut communities, .. } = choice.path.clone();
        let is_internal = self.sessions[side.session].is_internal;
        if choice.from.is_none() {
            communities.extend(process.settings.communities.iter().filter_map(|text| community(text)));
        } else if communities.contains(&NO_ADVERTISE) || (!is_internal && communities.contains(&NO_EXPORT)) {
            return None;
        }
        if is_internal {
            // A route that one router of the system has advertised is not passed on to a third (section 9.2.1).
            if choice.from.is_some_and(|from| self.sessions[from.session].is_internal) {
                return None;
            }
        } else {
            systems.insert(0, process.settings.autonomous_system);
        }
        Some(Path { systems, communities, next_hop: own.address })
    }

    /// Every network that the router of `side` has chosen a path to.
    pub(super) fn known(&self, side: Side) -> Vec<Prefix> {
        let process = self.processes[self.end(side).router].as_ref();
        process.map_or(Vec::new(), |process| process.choices.keys().copied().collect())
    }
}
