//! OSPF version 2 (RFC 2328) and 3 (RFC 5340) as far as they decide when which way is taken. The parts are
//! neighbours, the exchange of their databases, flooding, and the calculation of routes.
//!
//! Links between two routers are point-to-point: no designated router is elected. Areas have summaries through the
//! backbone. Aging and refreshing of link states, which takes half an hour, is left out.

mod neighbour;
mod spf;

use std::collections::BTreeMap;
use std::sync::Arc;

use tcplab_units::{Span, Time};

use super::core::{Core, Event as Happening};
use super::rib::{Hop, Source};
use super::wiring::{PortId, Prefix, RouterId};
use crate::plan::Ospf as Settings;

use neighbour::{Interface, Message};

/// A link state is originated anew no sooner than this after the last time (`MinLSInterval`, RFC 2328 appendix B).
const MIN_LS_INTERVAL: Span = Span::from_secs(5);
/// An LSA that would be originated sooner waits for ospfd's next look at the link states that need refreshing.
/// There is one look every 10 s from ospfd's start (FRR's `refresh timer`). Observed with FRR 8.4: a router whose
/// two neighbours become adjacent within 5 s announces the second up to 10 s later.
const REFRESH_WALK: Span = Span::from_secs(10);
/// An LSA that was not acknowledged is retransmitted after this (`RxmtInterval`, FRR's default).
const RETRANSMIT: Span = Span::from_secs(5);
/// From the arrival of a packet until the router has flooded its newer link states and given zebra the routes. FRR 8.4 on an idle machine:
/// 0.7 ms to the next flooding, 1.6 ms to zebra.
const PROCESSING: Span = Span::from_ms(1);
/// The bandwidth of cost 1, bit/s (FRR's `auto-cost reference-bandwidth`).
const REFERENCE_BANDWIDTH: u64 = 100_000_000;
const SOURCE: Source = Source { distance: 110, protocol: "ospf" };

/// Whose link state, and which of the two: that of its links, or of what is in the other areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    area: u32,
    router: RouterId,
    is_summary: bool,
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
    /// A link state that was lost.
    Retransmit(PortId, Key),
    /// A link state that had to wait.
    Originate(RouterId, Key),
    /// Routes are calculated.
    Calculate(RouterId),
    Arrive(PortId, Message),
}

/// A router's instance.
#[derive(Debug)]
struct Process {
    settings: Settings,
    is_running: bool,
    started: Time,
    database: BTreeMap<Key, Arc<LinkState>>,
    /// When each of its own was originated last, and whether the next is planned.
    originated: BTreeMap<Key, (Time, bool)>,
    calculated: Option<Time>,
    is_planned: bool,
    /// How many times the hold time is held.
    multiplier: u64,
    /// The routes that the routing table was given.
    routes: BTreeMap<Prefix, Vec<Hop>>,
    /// Of a router of several areas: what is advertised into each of them of the others.
    summaries: BTreeMap<u32, Vec<(Prefix, u32)>>,
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
            started: Time::ZERO,
            database: BTreeMap::new(),
            originated: BTreeMap::new(),
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
        process.started = core.now;
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
            // ospfd originates once before the interface counts as up, so what follows is too soon.
            let area = self.interfaces[port].as_ref().map_or(0, |interface| interface.area);
            if let Some(process) = &mut self.processes[router]
                && let Some((at, _)) = process.originated.get_mut(&Key { area, router, is_summary: false })
            {
                *at = core.now;
            }
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
            Event::Retransmit(port, key) => {
                let router = core.wiring.ports[port].router;
                let known = self.processes[router].as_ref().and_then(|process| process.database.get(&key));
                if let Some(state) = known.cloned()
                    && self.takes_updates(port)
                {
                    self.update(core, port, vec![state]);
                }
            }
            Event::Originate(router, key) => {
                if let Some(process) = &mut self.processes[router] {
                    process.originated.remove(&key);
                }
                self.originate(core, router, key);
            }
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

    /// Link states are compared with what is known; newer ones are kept, flooded and calculated with.
    fn receive(&mut self, core: &mut Core, port: PortId, states: &[Arc<LinkState>]) {
        let router = core.wiring.ports[port].router;
        let Some(process) = &mut self.processes[router] else { return };
        let mut newer = Vec::new();
        for state in states {
            let known = process.database.get(&state.key).map_or(0, |known| known.sequence);
            if state.sequence > known && state.key.router != router {
                process.database.insert(state.key, Arc::clone(state));
                newer.push(Arc::clone(state));
            }
        }
        if !newer.is_empty() {
            self.flood(core, router, Some(port), &newer);
            self.plan_calculation(core, router);
        }
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
            for key in keys {
                self.plan(core, core.now + RETRANSMIT, Event::Retransmit(port, key));
            }
        }
    }

    /// The link states of all areas of `router`, where they have changed.
    fn originate_all(&mut self, core: &mut Core, router: RouterId) {
        for area in self.areas(core, router) {
            for is_summary in [false, true] {
                self.originate(core, router, Key { area, router, is_summary });
            }
        }
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

    fn originate(&mut self, core: &mut Core, router: RouterId, key: Key) {
        let (links, networks) = self.content(core, router, key);
        let Some(process) = &mut self.processes[router] else { return };
        let old = process.database.get(&key);
        let is_same = match old {
            Some(old) => old.links == links && old.networks == networks,
            None => links.is_empty() && networks.is_empty(),
        };
        if is_same {
            return;
        }
        let sequence = old.map_or(0, |old| old.sequence) + 1;
        let last = process.originated.get(&key).copied();
        if let Some((at, is_planned)) = last
            && core.now < at + MIN_LS_INTERVAL
        {
            if !is_planned {
                process.originated.insert(key, (at, true));
                let walks = core.now.since(process.started).as_ns() / REFRESH_WALK.as_ns() + 1;
                let next = process.started + REFRESH_WALK * walks;
                self.plan(core, next, Event::Originate(router, key));
            }
            return;
        }
        process.originated.insert(key, (core.now, false));
        let state = Arc::new(LinkState { key, sequence, links, networks });
        process.database.insert(key, Arc::clone(&state));
        self.flood(core, router, None, &[state]);
        self.plan_calculation(core, router);
    }

    #[allow(clippy::type_complexity, reason = "the two parts of a link state")]
    fn content(
        &self,
        core: &Core,
        router: RouterId,
        key: Key,
    ) -> (Vec<(RouterId, PortId, u32)>, Vec<(Prefix, u32)>) {
        if key.is_summary {
            let process = self.processes[router].as_ref();
            let advertised = process.and_then(|process| process.summaries.get(&key.area));
            return (Vec::new(), advertised.cloned().unwrap_or_default());
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
        for area in areas {
            self.originate(core, router, Key { area, router, is_summary: true });
        }
    }
}
