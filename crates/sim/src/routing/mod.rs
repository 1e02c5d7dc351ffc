//! The control plane: what routers with routing protocols know of the network, and when.
//!
//! The control plane is simulated beside the traffic, by the same clock. The simulation has links that fail, timers,
//! messages that take as long as the links do, and changes of the tables that packets are forwarded by. One file a
//! protocol, one for what detects a lost neighbour for the others, one for the routing table that they share.
//! Messages wait in no queue (`medium`).
//!
//! The control plane starts before the run does. The run's time zero is when the ends of all flows reach each other
//! and the tables have been at rest, plus a random part of an interval. So a failure finds the protocols' timers at a
//! random phase.

mod agenda;
mod bfd;
mod bgp;
mod core;
mod medium;
mod ospf;
mod rib;
mod static_route;
mod wiring;

use tcplab_link::component_seed;
use tcplab_units::{Span, Time};

use crate::error::PlanError;
use crate::network::{DirectionId, Names, Network, NodeId};
use crate::plan::{Change, IpVersion, Plan};
use crate::recorder::Recorder;

use self::core::{Core, Event, random_below};
use agenda::Agenda;
use bfd::Bfd;
use bgp::Bgp;
use medium::Medium;
use ospf::Ospf;
use rib::{Rib, Row};
use wiring::Wiring;

/// The daemons of all routers start within this.
const START: Span = Span::from_ms(500);
/// How long flows wait for a route, where the plan does not say.
const PATIENCE: Span = Span::from_secs(60);
/// Tables are at rest when nothing has changed for longer than any of the protocols' own delays.
const REST: Span = Span::from_secs(12);
/// From the loss or return of a carrier until the kernel and the daemons of a router act on it. The value is the
/// median of what FRR 8.4 needed on an idle machine (1.7 to 3.5 ms).
const NOTICE: Span = Span::from_ms(2);
/// A run starts within this after the tables are at rest: OSPF's default interval between Hello packets.
const PHASE: Span = Span::from_secs(10);

/// The routing protocols of a plan.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    core: Core,
    bfd: Bfd,
    ospf: [Ospf; 2],
    bgp: Bgp,
    /// Settings of links by time; those before `changes_done` are in force.
    changes: Vec<(DirectionId, Change)>,
    changes_done: usize,
    /// When the run starts, by this clock.
    zero: Time,
    converged: Span,
}

/// Two nodes that must reach each other, and what for.
struct Pair<'a> {
    flow: &'a str,
    ends: [(NodeId, &'a str); 2],
    ip: IpVersion,
}

impl ControlPlane {
    /// That of `plan`, converged, with the tables of `network` as it has left them; none: no router has protocols.
    pub(crate) fn converge(
        plan: &Plan,
        network: &mut Network,
        names: &Names<'_>,
    ) -> Result<Option<ControlPlane>, PlanError> {
        if plan.nodes.iter().all(|node| node.routing.is_none()) {
            return Ok(None);
        }
        let mut pairs = Vec::new();
        for flow in &plan.flows {
            let place = |end: &str| format!("flows.{}.{end}", flow.name);
            let from = (names.node(&flow.from, || place("from"))?, flow.from.as_str());
            let to = (names.node(&flow.to, || place("to"))?, flow.to.as_str());
            for ends in [[from, to], [to, from]] {
                pairs.push(Pair { flow: &flow.name, ends, ip: flow.ip });
            }
        }
        let mut made = ControlPlane::new(plan)?;
        network.forget_routes(plan);
        for turn in made.core.connected() {
            network.turn(
                made.core.wiring.routers[turn.router].node,
                turn.destination,
                turn.family,
                &turn.directions,
            );
        }
        made.wait_for(network, &pairs, plan.convergence.unwrap_or(PATIENCE))?;
        made.rest(network, plan.seed);
        Ok(Some(made))
    }

    fn new(plan: &Plan) -> Result<ControlPlane, PlanError> {
        let wiring = Wiring::new(plan)?;
        let medium = Medium::new(plan);
        let carrier = wiring.ports.iter().map(|port| medium.has_carrier(port.link)).collect();
        let mut core = Core {
            now: Time::ZERO,
            medium,
            agenda: Agenda::new(),
            carrier,
            ribs: wiring.routers.iter().map(|_| Rib::default()).collect(),
            moved: Vec::new(),
            silent: Vec::new(),
            notes: Vec::new(),
            rows: Vec::new(),
            turns: Vec::new(),
            last_move: Time::ZERO,
            wiring,
        };
        for router in 0..core.wiring.routers.len() {
            let seed =
                component_seed(plan.seed, &format!("routing.{}.start", core.wiring.routers[router].name));
            core.agenda.plan(Time::ZERO + random_below(seed, 0, START), Event::Begin(router));
        }
        let mut changes = Vec::new();
        for (direction, settings) in
            (0..).zip(plan.links.iter().flat_map(|link| [&link.forward, &link.backward]))
        {
            changes.extend(settings.changes.iter().map(|change| (direction, change.clone())));
        }
        changes.sort_by_key(|(_, change)| change.at);
        Ok(ControlPlane {
            bfd: Bfd::new(&core, plan.seed),
            ospf: [0, 1].map(|family| Ospf::new(&core, family)),
            bgp: Bgp::new(&core, plan.seed),
            core,
            changes,
            changes_done: 0,
            zero: Time::ZERO,
            converged: Span::ZERO,
        })
    }

    fn wait_for(
        &mut self,
        network: &mut Network,
        pairs: &[Pair<'_>],
        patience: Span,
    ) -> Result<(), PlanError> {
        let mut waiting = pairs.iter().peekable();
        while let Some(Pair { flow, ends: [from, to], ip }) = waiting.peek() {
            let Err(stuck) = network.path(from.0, to.0, *ip) else {
                waiting.next();
                continue;
            };
            if self.core.agenda.next() > Time::ZERO + patience {
                return Err(PlanError::NotConverged {
                    flow: (*flow).to_owned(),
                    from: from.1.to_owned(),
                    to: to.1.to_owned(),
                    stuck: network.name(stuck.node).to_owned(),
                    goes_round: stuck.goes_round,
                    patience,
                });
            }
            while self.core.turns.is_empty() && self.core.agenda.next() <= Time::ZERO + patience {
                self.step();
            }
            self.turn(network);
        }
        self.converged = self.core.now.since(Time::ZERO);
        Ok(())
    }

    /// Until the tables have been at rest, and a random phase longer. Links that lose packets may never let them rest.
    fn rest(&mut self, network: &mut Network, seed: u64) {
        let maximum = self.core.now + PATIENCE;
        while self.core.agenda.next() < maximum.min(self.core.last_move + REST) {
            self.step();
        }
        let rested = self.core.now.max(maximum.min(self.core.last_move + REST));
        self.zero = rested + random_below(component_seed(seed, "routing.phase"), 0, PHASE);
        while self.core.agenda.next() <= self.zero {
            self.step();
        }
        self.core.now = self.zero;
        self.turn(network);
        self.core.notes.clear();
        self.core.rows = self.core.tables();
        for (_, change) in &self.changes {
            self.core.agenda.plan(self.zero + change.at.since(Time::ZERO), Event::Change);
        }
    }

    /// How long it took from the start of the first daemon until the ends of all flows reached each other.
    pub(crate) fn converged(&self) -> Span {
        self.converged
    }

    /// When something happens next, by the run's clock.
    pub(crate) fn next(&self) -> Time {
        let next = self.core.agenda.next();
        if next == Time::NEVER { next } else { Time::ZERO + next.since(self.zero) }
    }

    /// Does what is due at `now`, by the run's clock.
    pub(crate) fn advance(&mut self, now: Time, network: &mut Network, recorder: &mut Recorder) {
        while self.next() <= now {
            self.step();
        }
        self.turn(network);
        self.record(recorder);
    }

    /// The tables that packets are forwarded by become those of the routers.
    fn turn(&mut self, network: &mut Network) {
        for turn in std::mem::take(&mut self.core.turns) {
            let node = self.core.wiring.routers[turn.router].node;
            network.turn(node, turn.destination, turn.family, &turn.directions);
        }
    }

    /// The events since the last call.
    pub(crate) fn record(&mut self, recorder: &mut Recorder) {
        let run = |time: Time| Time::ZERO + time.since(self.zero);
        for note in std::mem::take(&mut self.core.notes) {
            recorder.routing_event(run(note.time), note.link, note.event, &note.detail);
        }
        for Row { time, router, prefix, next_hops, protocol } in std::mem::take(&mut self.core.rows) {
            let node = &self.core.wiring.routers[router].name;
            recorder.route(run(time), node, &prefix.to_string(), next_hops.as_deref(), protocol);
        }
    }

    fn step(&mut self) {
        let Some((time, event)) = self.core.agenda.pop() else { return };
        let core = &mut self.core;
        core.now = time;
        match event {
            Event::Begin(router) => {
                core.reconsider(router);
                static_route::begin(core, router);
                self.bfd.begin(core, router);
                self.ospf.iter_mut().for_each(|ospf| ospf.begin(core, router));
                self.bgp.begin(core, router);
            }
            Event::Change => self.change(),
            Event::Carrier(link) => self.carrier(link),
            Event::Install(router) => core.install(router),
            Event::Bfd(event) => self.bfd.wake(core, event),
            Event::Ospf(family, event) => self.ospf[family].wake(core, event),
            Event::Bgp(event) => self.bgp.wake(core, event),
        }
        let core = &mut self.core;
        for port in std::mem::take(&mut core.silent) {
            self.ospf.iter_mut().for_each(|ospf| ospf.silent(core, port));
            self.bgp.silent(core, port);
        }
        for router in std::mem::take(&mut core.moved) {
            self.bgp.moved(core, router);
        }
    }

    /// The next change of the links' settings.
    fn change(&mut self) {
        let core = &mut self.core;
        let Some((direction, change)) = self.changes.get(self.changes_done) else { return };
        self.changes_done += 1;
        core.medium.change(*direction, change);
        if change.up.is_some() {
            core.agenda.plan(core.now + NOTICE, Event::Carrier(*direction as usize / 2));
        }
    }

    /// Both ends of a link notice that its carrier has come or gone.
    fn carrier(&mut self, link: usize) {
        let core = &mut self.core;
        let is_there = core.medium.has_carrier(link);
        let ports: Vec<_> = core.wiring.of_link(link).collect();
        for port in ports {
            if std::mem::replace(&mut core.carrier[port], is_there) == is_there {
                continue;
            }
            let router = core.wiring.ports[port].router;
            if !is_there {
                core.flush(router, port);
            }
            core.reconsider(router);
            self.bfd.carrier(port, is_there);
            self.ospf.iter_mut().for_each(|ospf| ospf.carrier(core, port, is_there));
            self.bgp.carrier(core, port, is_there);
        }
    }
}
