//! OSPF version 2 (RFC 2328) and 3 (RFC 5340) as far as they decide when which way is taken. The parts are
//! neighbours, the exchange of their databases, flooding, and the calculation of routes.
//!
//! Links between two routers are point-to-point: no designated router is elected. Areas have summaries through the
//! backbone. Aging and refreshing of link states, which takes half an hour, is left out.

mod neighbour;
mod spf;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tcplab_units::{Span, Time};

use super::core::{Core, Event as Happening};
use super::rib::{Hop, Source};
use super::wiring::{PortId, Prefix, RouterId};
use crate::plan::Ospf as Settings;

use neighbour::{Interface, Message};

/// A new instance of a link state is discarded, and not acknowledged, sooner than this after the one before was
/// installed (`MinLSArrival`, RFC 2328 section 13, step 5a). FRR originates without a limit of its own: a router whose
/// links change twice within a second is heard the second time by the retransmission.
const MIN_LS_ARRIVAL: Span = Span::from_secs(1);
/// A message that was not answered is repeated after this (`RxmtInterval`, FRR's default). ospfd looks that often for link
/// states to retransmit, from the exchange of databases on. Those this old are due: after 5 s to 10 s.
/// ospf6d retransmits them after 5 s.
const RETRANSMIT: Span = Span::from_secs(5);
/// From the arrival of a packet until the router has flooded its newer link states and given zebra the routes. FRR 8.4 on an idle machine:
/// 0.7 ms to the next flooding, 1.6 ms to zebra.
const PROCESSING: Span = Span::from_ms(1);
/// The bandwidth of cost 1, bit/s (FRR's `auto-cost reference-bandwidth`).
const REFERENCE_BANDWIDTH: u64 = 100_000_000;
const SOURCE: Source = Source { distance: 110, protocol: "ospf" };

/// Whose link state, and which: that of its links, or the summary of a network of other areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    area: u32,
    router: RouterId,
    summary: Option<Prefix>,
}

/// A link state advertisement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LinkState {
    key: Key,
    sequence: u32,
    /// Adjacent routers, by which interface, at which cost.
    links: Vec<(RouterId, PortId, u32)>,
    /// Networks and what it takes to reach them.
    networks: Vec<(Prefix, u32)>,
}

#[derive(Debug)]
pub(super) enum Event {
    /// Time for a Hello.
    Hello(PortId, u32),
    /// Perhaps too long without one.
    Inactivity(PortId),
    /// Perhaps no answer in the exchange of databases.
    Unanswered(PortId, u32),
    /// A link state that was lost, or came too soon.
    Retransmit(PortId, Key),
    /// Routes are calculated.
    Calculate(RouterId),
    Arrive(PortId, Message),
}

/// A router's instance.
#[derive(Debug)]
struct Process {
    settings: Settings,
    is_running: bool,
    database: BTreeMap<Key, Arc<LinkState>>,
    /// When each of them got there.
    installed: BTreeMap<Key, Time>,
    calculated: Option<Time>,
    is_planned: bool,
    /// How many times the hold time is held.
    multiplier: u64,
    /// The routes that the routing table was given.
    routes: BTreeMap<Prefix, Vec<Hop>>,
    /// Of a router of several areas: what is advertised into each of them of the others.
    summaries: BTreeMap<u32, BTreeMap<Prefix, u32>>,
}

/// All routers' instances of one version.
#[derive(Debug)]
pub(super) struct Ospf {
    /// 0: version 2, for IPv4; 1: version 3, for IPv6.
    family: usize,
    processes: Vec<Option<Process>>,
    interfaces: Vec<Option<Interface>>,
}

impl Ospf {
    pub(super) fn new(core: &Core, family: usize) -> Ospf {
        let settings = |router: RouterId| {
            let routing = &core.wiring.routers[router].routing;
            if family == 0 { routing.ospf.as_ref() } else { routing.ospf6.as_ref() }
        };
        let process = |settings: &Settings| Process {
            settings: settings.clone(),
            is_running: false,
            database: BTreeMap::new(),
            installed: BTreeMap::new(),
            calculated: None,
            is_planned: false,
            multiplier: 1,
            routes: BTreeMap::new(),
            summaries: BTreeMap::new(),
        };
        let interface = |port: PortId| {
            let own = &core.wiring.ports[port];
            let settings = settings(own.router)?;
            own.addresses[family]?;
            let special = settings.interfaces.iter().find(|one| one.link == own.link_name);
            let by_rate = own.rate.map_or(1, |rate| REFERENCE_BANDWIDTH / rate.bits_per_sec());
            let cost = special.and_then(|one| one.cost).or(settings.cost);
            let is_passive = own.peer.is_none_or(|peer| {
                self::Ospf::settings_of(core, core.wiring.ports[peer].router, family).is_none()
            });
            Some(Interface::new(
                special.and_then(|one| one.area).unwrap_or(settings.area),
                cost.unwrap_or(by_rate.clamp(1, 65_535) as u32),
                is_passive,
            ))
        };
        Ospf {
            family,
            processes: (0..core.wiring.routers.len()).map(|router| settings(router).map(process)).collect(),
            interfaces: (0..core.wiring.ports.len()).map(interface).collect(),
        }
    }

    fn settings_of(core: &Core, router: RouterId, family: usize) -> Option<&Settings> {
        let routing = &core.wiring.routers[router].routing;
        if family == 0 { routing.ospf.as_ref() } else { routing.ospf6.as_ref() }
    }

    pub(super) fn begin(&mut self, core: &mut Core, router: RouterId) {
        let Some(process) = &mut self.processes[router] else { return };
        process.is_running = true;
        for port in core.wiring.routers[router].ports.clone() {
            if core.carrier[port] {
                self.rise(core, port);
            }
        }
        self.originate_all(core, router);
    }

    /// The carrier of an interface has come or gone.
    pub(super) fn carrier(&mut self, core: &mut Core, port: PortId, is_there: bool) {
        let router = core.wiring.ports[port].router;
        if !self.is_running(router) || self.interfaces[port].is_none() {
            return;
        }
        if is_there {
            self.rise(core, port);
        } else {
            self.forget(core, port, "KillNbr");
        }
        self.originate_all(core, router);
    }

    /// BFD has found the neighbour to be gone.
    pub(super) fn silent(&mut self, core: &mut Core, port: PortId) {
        let router = core.wiring.ports[port].router;
        let uses = self.processes[router].as_ref().is_some_and(|process| process.settings.bfd);
        if uses && self.interfaces[port].is_some() {
            self.forget(core, port, "InactivityTimer");
        }
    }

    pub(super) fn wake(&mut self, core: &mut Core, event: Event) {
        match event {
            Event::Hello(port, turn) => self.hello(core, port, turn),
            Event::Inactivity(port) => self.inactivity(core, port),
            Event::Unanswered(port, question) => self.unanswered(core, port, question),
            Event::Retransmit(port, key) => self.retransmit(core, port, key),
            Event::Calculate(router) => self.calculate(core, router),
            Event::Arrive(port, message) => {
                let is_heard = self.is_running(core.wiring.ports[port].router)
                    && core.carrier[port]
                    && self.interfaces[port].as_ref().is_some_and(|interface| !interface.is_passive);
                if is_heard {
                    self.arrive(core, port, message);
                }
            }
        }
    }

    fn is_running(&self, router: RouterId) -> bool {
        self.processes[router].as_ref().is_some_and(|process| process.is_running)
    }

    fn plan(&self, core: &mut Core, time: Time, event: Event) {
        core.agenda.plan(time, Happening::Ospf(self.family, event));
    }

    /// Link states are compared with what is known; newer ones are kept, flooded and calculated with. Those that come too
    /// soon are returned: the neighbour will retransmit them.
    fn receive(&mut self, core: &mut Core, port: PortId, states: &[Arc<LinkState>]) -> Vec<Key> {
        let own = &core.wiring.ports[port];
        let (router, peer) = (own.router, own.peer);
        let Some(process) = &mut self.processes[router] else { return Vec::new() };
        let (mut newer, mut discarded) = (Vec::new(), Vec::new());
        for state in states {
            let known = process.database.get(&state.key).map_or(0, |known| known.sequence);
            if state.sequence <= known || state.key.router == router {
                continue;
            }
            if process.installed.get(&state.key).is_some_and(|&at| core.now < at + MIN_LS_ARRIVAL) {
                discarded.push(state.key);
                continue;
            }
            process.database.insert(state.key, Arc::clone(state));
            process.installed.insert(state.key, core.now);
            newer.push(Arc::clone(state));
        }
        if !newer.is_empty() {
            self.flood(core, router, Some(port), &newer);
            self.plan_calculation(core, router);
        }
        if let Some(peer) = peer {
            discarded.iter().for_each(|&key| self.plan_retransmission(core, peer, key));
        }
        discarded
    }

    fn flood(&mut self, core: &mut Core, router: RouterId, from: Option<PortId>, states: &[Arc<LinkState>]) {
        for port in core.wiring.routers[router].ports.clone() {
            let area = self.interfaces[port].as_ref().map(|interface| interface.area);
            let of_area: Vec<Arc<LinkState>> =
                states.iter().filter(|state| Some(state.key.area) == area).cloned().collect();
            if Some(port) != from && self.takes_updates(port) && !of_area.is_empty() {
                self.update(core, port, of_area);
            }
        }
    }

    fn update(&mut self, core: &mut Core, port: PortId, states: Vec<Arc<LinkState>>) {
        let keys: Vec<Key> = states.iter().map(|state| state.key).collect();
        if !self.send(core, port, Message::Update(states)) {
            keys.into_iter().for_each(|key| self.plan_retransmission(core, port, key));
        }
    }

    fn plan_retransmission(&self, core: &mut Core, port: PortId, key: Key) {
        let mut at = core.now + RETRANSMIT;
        if self.family == 0 {
            let router = core.wiring.ports[port].router;
            let process = self.processes[router].as_ref();
            let (Some(&installed), Some(interface)) =
                (process.and_then(|process| process.installed.get(&key)), &self.interfaces[port])
            else {
                return;
            };
            at = interface.next_look((installed + RETRANSMIT).max(core.now + Span::from_ns(1)));
        }
        self.plan(core, at, Event::Retransmit(port, key));
    }

    fn retransmit(&mut self, core: &mut Core, port: PortId, key: Key) {
        let Some(process) = &self.processes[core.wiring.ports[port].router] else { return };
        let (Some(state), Some(&installed)) = (process.database.get(&key), process.installed.get(&key))
        else {
            return;
        };
        // A newer instance has a time of its own.
        let is_due = self.family == 1 || installed + RETRANSMIT <= core.now;
        let state = Arc::clone(state);
        if is_due && self.takes_updates(port) {
            self.update(core, port, vec![state]);
        }
    }

    /// The link states of all areas of `router`, where they have changed.
    fn originate_all(&mut self, core: &mut Core, router: RouterId) {
        let keys = self.areas(core, router).into_iter().map(|area| Key { area, router, summary: None });
        self.originate(core, router, keys.collect());
        self.originate_summaries(core, router);
    }

    /// Those of networks that have no longer a route say so.
    fn originate_summaries(&mut self, core: &mut Core, router: RouterId) {
        let Some(process) = &self.processes[router] else { return };
        let old = process.database.keys().filter(|key| key.router == router && key.summary.is_some());
        let mut keys: BTreeSet<Key> = old.copied().collect();
        for (&area, advertised) in &process.summaries {
            keys.extend(advertised.keys().map(|&prefix| Key { area, router, summary: Some(prefix) }));
        }
        self.originate(core, router, keys.into_iter().collect());
    }

    fn areas(&self, core: &Core, router: RouterId) -> Vec<u32> {
        let ports = core.wiring.routers[router].ports.iter();
        let mut areas: Vec<u32> = ports
            .filter_map(|&port| self.interfaces[port].as_ref())
            .map(|interface| interface.area)
            .collect();
        areas.sort_unstable();
        areas.dedup();
        areas
    }

    fn originate(&mut self, core: &mut Core, router: RouterId, keys: Vec<Key>) {
        let mut changed = Vec::new();
        for key in keys {
            let (links, networks) = self.content(core, router, key);
            let Some(process) = &mut self.processes[router] else { return };
            let old = process.database.get(&key);
            let is_same = match old {
                Some(old) => old.links == links && old.networks == networks,
                None => links.is_empty() && networks.is_empty(),
            };
            if is_same {
                continue;
            }
            let sequence = old.map_or(0, |old| old.sequence) + 1;
            let state = Arc::new(LinkState { key, sequence, links, networks });
            process.installed.insert(key, core.now);
            process.database.insert(key, Arc::clone(&state));
            changed.push(state);
        }
        if !changed.is_empty() {
            self.flood(core, router, None, &changed);
            self.plan_calculation(core, router);
        }
    }

    #[allow(clippy::type_complexity, reason = "the two parts of a link state")]
    fn content(
        &self,
        core: &Core,
        router: RouterId,
        key: Key,
    ) -> (Vec<(RouterId, PortId, u32)>, Vec<(Prefix, u32)>) {
        if let Some(prefix) = key.summary {
            let process = self.processes[router].as_ref();
            let advertised = process.and_then(|process| process.summaries.get(&key.area)?.get(&prefix));
            return (Vec::new(), advertised.map(|&cost| (prefix, cost)).into_iter().collect());
        }
        let (mut links, mut networks) = (Vec::new(), Vec::new());
        for &port in &core.wiring.routers[router].ports {
            let Some(interface) = &self.interfaces[port] else { continue };
            if interface.area != key.area || !core.carrier[port] {
                continue;
            }
            let own = &core.wiring.ports[port];
            networks.extend(own.addresses[self.family].map(|address| (address.prefix(), interface.cost)));
            if let Some(peer) = own.peer
                && interface.is_full()
            {
                links.push((core.wiring.ports[peer].router, port, interface.cost));
            }
        }
        (links, networks)
    }

    /// When routes are calculated next, as `timers throttle spf` has it in FRR: after the delay, or, within the hold time
    /// since the last calculation, when that is over. Each such change makes it one hold time longer, up to its maximum.
    fn plan_calculation(&mut self, core: &mut Core, router: RouterId) {
        let Some(process) = &mut self.processes[router] else { return };
        if std::mem::replace(&mut process.is_planned, true) {
            return;
        }
        let Settings { spf_delay, spf_hold, spf_max_hold, .. } = process.settings;
        let hold = (spf_hold * process.multiplier).min(spf_max_hold);
        let mut at = core.now + spf_delay;
        match process.calculated {
            Some(last) if core.now < last + hold => {
                if hold < spf_max_hold {
                    process.multiplier += 1;
                }
                at = at.max(last + hold);
            }
            _ => process.multiplier = 1,
        }
        self.plan(core, at, Event::Calculate(router));
    }

    fn calculate(&mut self, core: &mut Core, router: RouterId) {
        let areas = self.areas(core, router);
        let Some(process) = &mut self.processes[router] else { return };
        process.is_planned = false;
        process.calculated = Some(core.now);
        let found = spf::routes(core, self.family, router, &process.database, &areas);
        process.summaries = found.summaries;
        let mut routes = found.routes;
        let maximum = process.settings.maximum_paths as usize;
        routes.values_mut().for_each(|hops| hops.truncate(maximum));
        let old = std::mem::replace(&mut process.routes, routes);
        let new = process.routes.clone();
        for (prefix, hops) in &new {
            if old.get(prefix) != Some(hops) {
                core.update(router, *prefix, SOURCE, hops.clone());
            }
        }
        for prefix in old.keys().filter(|prefix| !new.contains_key(prefix)) {
            core.update(router, *prefix, SOURCE, Vec::new());
        }
        self.originate_summaries(core, router);
    }
}
