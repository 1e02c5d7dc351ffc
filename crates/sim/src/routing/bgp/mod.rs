//! BGP-4 (RFC 4271) as far as it decides when which way is taken: sessions, the choice of paths, advertisements.
//!
//! Sessions are as the kernel engine gives them to FRR: with every neighbour that has BGP, and among all routers of a
//! system (iBGP). In iBGP the routers set themselves as the next hop.

mod decision;
mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tcplab_units::{Span, Time};

use super::core::{Core, Event as Happening};
use super::wiring::{Address, PortId, Prefix, RouterId};
use crate::plan::Bgp as Settings;

use decision::{Choice, Received};
use session::{End, Session};
pub(super) use session::{Message, Side};

/// From an update to the choice of paths: bgpd collects changes for so long (the hold time of FRR's process queue).
const PROCESSING: Span = Span::from_ms(50);

type SessionId = usize;

/// The route to a network as a neighbour advertises it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The systems that it leads through, the nearest first.
    systems: Vec<u32>,
    /// As its router has announced it (RFC 1997).
    communities: Vec<u32>,
    next_hop: IpAddr,
}

#[derive(Debug)]
pub(super) enum Event {
    /// A connection is tried.
    Connect(Side, u32),
    /// The exchange of OPEN messages is over.
    Established(Side, u32),
    /// Time for a KEEPALIVE.
    Keepalive(Side, u32),
    /// Perhaps too long without a message.
    Silence(Side, u32),
    /// TCP's retransmission.
    Resend(Side, u32),
    /// Changes are advertised.
    Advertise(Side, u32),
    Arrive(Side, u32, Message),
    /// A router chooses among the paths that have changed.
    Decide(RouterId),
}

/// A router's instance.
#[derive(Debug)]
struct Process {
    settings: Settings,
    is_running: bool,
    /// Its ends of sessions.
    sides: Vec<Side>,
    changed: BTreeSet<Prefix>,
    is_planned: bool,
    choices: BTreeMap<Prefix, Choice>,
}

/// All routers' instances and the sessions between them.
#[derive(Debug)]
pub(super) struct Bgp {
    processes: Vec<Option<Process>>,
    sessions: Vec<Session>,
    /// Paths received so far: of two alike the older counts.
    received: u64,
}

impl Bgp {
    pub(super) fn new(core: &Core, seed: u64) -> Bgp {
        let wiring = &core.wiring;
        let settings = |router: RouterId| wiring.routers[router].routing.bgp.as_ref();
        let wants = |one: RouterId, other: RouterId| {
            settings(one).is_some_and(|settings| settings.wants(&wiring.routers[other].name))
        };
        let is_wanted = |one: RouterId, other: RouterId| wants(one, other) && wants(other, one);
        let process = |settings: &Settings| Process {
            settings: settings.clone(),
            is_running: false,
            sides: Vec::new(),
            changed: BTreeSet::new(),
            is_planned: false,
            choices: BTreeMap::new(),
        };
        let processes = (0..wiring.routers.len()).map(|router| settings(router).map(process)).collect();
        let mut made = Bgp { processes, sessions: Vec::new(), received: 0 };
        let mut near = BTreeSet::new();
        for (port, own) in wiring.ports.iter().enumerate() {
            let Some(peer) = own.peer.filter(|peer| *peer > port) else { continue };
            let far = &wiring.ports[peer];
            if settings(own.router).is_none() || settings(far.router).is_none() {
                continue;
            }
            if !is_wanted(own.router, far.router) {
                continue;
            }
            for family in 0..2 {
                if let (Some(here), Some(there)) = (own.addresses[family], far.addresses[family]) {
                    near.insert((own.router.min(far.router), own.router.max(far.router), family));
                    let ends = [(own.router, here.ip, Some(port)), (far.router, there.ip, Some(peer))];
                    made.add(seed, family, ends);
                }
            }
        }
        for one in 0..wiring.routers.len() {
            for other in one + 1..wiring.routers.len() {
                let (Some(own), Some(far)) = (settings(one), settings(other)) else { continue };
                for family in 0..2 {
                    if own.autonomous_system == far.autonomous_system
                        && is_wanted(one, other)
                        && !near.contains(&(one, other, family))
                        && let (Some(here), Some(there)) =
                            (wiring.first_address(one, family), wiring.first_address(other, family))
                    {
                        made.add(seed, family, [(one, here, None), (other, there, None)]);
                    }
                }
            }
        }
        made
    }

    fn add(&mut self, seed: u64, family: usize, ends: [(RouterId, IpAddr, Option<PortId>); 2]) {
        let session = self.sessions.len();
        for (end, (router, ..)) in ends.iter().enumerate() {
            if let Some(process) = &mut self.processes[*router] {
                process.sides.push(Side { session, end });
            }
        }
        let settings =
            ends.map(|(router, ..)| self.processes[router].as_ref().map(|process| &process.settings));
        if let [Some(one), Some(other)] = settings {
            let made = Session::new(seed, session, family, ends, [one, other]);
            self.sessions.push(made);
        }
    }

    pub(super) fn begin(&mut self, core: &mut Core, router: RouterId) {
        let Some(process) = &mut self.processes[router] else { return };
        process.is_running = true;
        for side in process.sides.clone() {
            self.start(core, side);
        }
        let own = self.announced(core, router);
        self.reconsider(core, router, own);
    }

    /// The carrier of an interface has come or gone.
    pub(super) fn carrier(&mut self, core: &mut Core, port: PortId, is_there: bool) {
        let router = core.wiring.ports[port].router;
        let Some(process) = self.processes[router].as_ref().filter(|process| process.is_running) else {
            return;
        };
        for side in process.sides.clone() {
            if self.end(side).port != Some(port) {
                continue;
            }
            if is_there {
                self.connect_now(core, side);
            } else if !self.sessions[side.session].is_internal {
                // `bgp fast-external-failover`, which is on by default.
                self.close(core, side, "Interface down");
            }
        }
        let own = &core.wiring.ports[port];
        let networks = own.addresses.iter().flatten().map(|address| address.prefix()).collect();
        self.reconsider(core, router, networks);
    }

    /// BFD has found the neighbour to be gone.
    pub(super) fn silent(&mut self, core: &mut Core, port: PortId) {
        let router = core.wiring.ports[port].router;
        let Some(process) = self.processes[router].as_ref().filter(|process| process.settings.bfd) else {
            return;
        };
        for side in process.sides.clone() {
            if self.end(side).port == Some(port) {
                self.close(core, side, "BFD down received");
            }
        }
    }

    /// A router's table has changed: next hops that are not neighbours may be reached another way, or not any more.
    pub(super) fn moved(&mut self, core: &mut Core, router: RouterId) {
        let Some(process) = self.processes[router].as_ref().filter(|process| process.is_running) else {
            return;
        };
        let mut prefixes = Vec::new();
        for side in process.sides.clone() {
            if self.sessions[side.session].is_internal {
                prefixes.extend(self.end(side).received.keys().copied());
                if self.end(side).port.is_none() {
                    self.connect_now(core, side);
                }
            }
        }
        self.reconsider(core, router, prefixes);
    }

    pub(super) fn wake(&mut self, core: &mut Core, event: Event) {
        match event {
            Event::Decide(router) => self.decide(core, router),
            Event::Connect(side, epoch) if self.end(side).attempt == epoch => self.connect(core, side),
            Event::Connect(..) => {}
            Event::Established(side, epoch)
            | Event::Keepalive(side, epoch)
            | Event::Silence(side, epoch)
            | Event::Resend(side, epoch)
            | Event::Advertise(side, epoch)
            | Event::Arrive(side, epoch, _)
                if self.sessions[side.session].epoch != epoch => {}
            Event::Established(side, _) => self.established(core, side),
            Event::Keepalive(side, _) => self.keepalive(core, side),
            Event::Silence(side, _) => self.silence(core, side),
            Event::Resend(side, _) => self.resend(core, side),
            Event::Advertise(side, _) => self.advertise(core, side),
            Event::Arrive(side, _, message) => self.arrive(core, side, message),
        }
    }

    fn end(&self, side: Side) -> &End {
        &self.sessions[side.session].ends[side.end]
    }

    fn end_mut(&mut self, side: Side) -> &mut End {
        &mut self.sessions[side.session].ends[side.end]
    }

    fn system(&self, router: RouterId) -> u32 {
        self.processes[router].as_ref().map_or(0, |process| process.settings.autonomous_system)
    }

    fn plan(core: &mut Core, time: Time, event: Event) {
        core.agenda.plan(time, Happening::Bgp(event));
    }

    /// The choice for these networks is made anew.
    fn reconsider(&mut self, core: &mut Core, router: RouterId, prefixes: Vec<Prefix>) {
        let Some(process) = &mut self.processes[router] else { return };
        if prefixes.is_empty() {
            return;
        }
        process.changed.extend(prefixes);
        if !std::mem::replace(&mut process.is_planned, true) {
            Bgp::plan(core, core.now + PROCESSING, Event::Decide(router));
        }
    }

    /// The networks that a router announces as its own: those of its interfaces that have a carrier, and configured ones.
    fn announced(&self, core: &Core, router: RouterId) -> Vec<Prefix> {
        let ports = core.wiring.routers[router].ports.iter().filter(|port| core.carrier[**port]);
        let near = ports.flat_map(|&port| core.wiring.ports[port].addresses).flatten();
        let networks = self.processes[router].iter().flat_map(|process| &process.settings.networks);
        near.map(|address| address.prefix())
            .chain(networks.filter_map(|text| Address::parse(text).map(Address::prefix)))
            .collect()
    }

    fn updated(&mut self, core: &mut Core, side: Side, changes: Vec<(Prefix, Option<Path>)>) {
        let router = self.end(side).router;
        let own = self.system(router);
        let mut prefixes = Vec::new();
        for (prefix, path) in changes {
            self.received += 1;
            let number = self.received;
            // A path that leads through this system is a loop (section 9).
            let path = path.filter(|path| !path.systems.contains(&own));
            let received = &mut self.end_mut(side).received;
            match path {
                Some(path) => received.insert(prefix, Received { path, number }),
                None => received.remove(&prefix),
            };
            prefixes.push(prefix);
        }
        self.reconsider(core, router, prefixes);
    }
}
