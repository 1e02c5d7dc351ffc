//! The event loop.

use std::collections::BTreeSet;

use tcplab_control::Registry;
use tcplab_units::{Span, Time};

use crate::bodies::Bodies;
use crate::capture::{Capture, CaptureSink, Interface};
use crate::echo::Gate;
use crate::error::PlanError;
use crate::look_ahead::{self, LookAhead};
use crate::network::{DirectionId, Network, NodeId};
use crate::packet::Packet;
use crate::plan::{Plan, Sample};
use crate::recorder::{Mode, Record, Recorder, Tables};
use crate::routing::ControlPlane;
use crate::samplers::{self, Sampler};
use crate::schedule::{Schedule, Slot};
use crate::sim_context::{CLOCKS, CONTROL_PLANE, Discarded, SimContext, Timer};
use crate::splitter::SplitCounts;
use crate::stream::StreamKind;
use crate::streams::Streams;

/// A simulation of one plan.
pub struct Simulation {
    sim: SimContext,
    streams: Streams,
    /// None: it costs more than it gains.
    look_ahead: Option<LookAhead>,
    /// Names of flows, for progress.
    flows: Vec<String>,
    /// Payload each flow had delivered when progress was asked for last, and when that was.
    last_progress: (Time, Vec<u64>),
    sample: Sample,
    /// When the queues were sampled last.
    queues_sampled: Time,
    /// The same of the sockets.
    sockets_sampled: Time,
    changes: Vec<(Time, String, String)>,
    changes_done: usize,
    interfaces: Vec<Interface>,
    /// The routing protocols, where routers have any.
    control_plane: Option<ControlPlane>,
    end: Time,
    events: u64,
    /// Events that may be processed until the caller is asked again.
    events_left: u64,
    /// The latest time at which a node was served ahead of the present.
    furthest: Time,
    /// Hosts take time, so that packets are handled together.
    hosts_wake_up: bool,
    /// Segments that their ends expect are served in trains.
    serves_trains: bool,
    done: bool,
    plan: Plan,
}

/// Packets that arrive by one link direction, one after another and no other event between.
struct Batch {
    /// When the first of all events was.
    present: Time,
    /// How far ahead of the present they can be served; zero: not at all, or not known yet.
    lookahead: Span,
}

/// How far a simulation has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The present in the simulation.
    pub time: Time,
    /// When it ends at the latest.
    pub duration: Span,
    /// Whether it has ended.
    pub done: bool,
    /// Per flow: name, and goodput since the last call in bit/s.
    pub goodput: Vec<(String, f64)>,
}

/// Counts of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStats {
    /// Wake-ups of components.
    pub events: u64,
    /// Packets that arrived at a node.
    pub packets: u64,
    /// Time that passed in the simulation.
    pub simulated: Span,
    /// Counts of routing protocols; none: no router has any.
    pub routing: Option<Routing>,
}

/// The effect of routing protocols on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// From the start of the first router until the ends of all flows reached each other.
    pub converged: Span,
    /// Packets discarded because a router had no route.
    pub no_route: u64,
    /// Packets discarded because their time to live was over.
    pub ttl_exceeded: u64,
}

impl Simulation {
    /// A simulation of `plan`, at time zero.
    pub fn new(plan: &Plan) -> Result<Simulation, PlanError> {
        Simulation::with_controls(plan, &Registry::default())
    }

    /// A simulation of `plan`, at time zero, with more controls than tcplab's own.
    pub fn with_controls(plan: &Plan, controls: &Registry) -> Result<Simulation, PlanError> {
        let (mut network, names) = Network::new(plan)?;
        let control_plane = ControlPlane::converge(plan, &mut network, &names)?;
        let streams = Streams::new(crate::build::sources(plan, controls, &network, &names)?, plan);
        let count = plan.flows.iter().map(|flow| flow.streams as usize).sum();
        let places = Streams::places(plan);
        let directions = network.directions();
        let clocks = (places * Timer::COUNT + CLOCKS) as usize;
        let gates = plan.flows.iter().map(|flow| Gate::new(flow.streams)).collect();
        let mut sim = SimContext {
            schedule: Schedule::new(network.components(), clocks).ok_or(PlanError::TooMany {
                what: "streams",
                count: count as u64,
                maximum: u64::from(Schedule::SLOTS_MAX / (Timer::COUNT + 2)),
            })?,
            places,
            network,
            bodies: Bodies::new(),
            recorder: Recorder::new(plan),
            packets: 0,
            gates,
            browsers: crate::build::browsers(plan),
            discarded: Discarded::default(),
            caches: crate::build::caches(plan),
            splitters: crate::build::splitters(plan),
            outbox: None,
        };
        sim.schedule.end_timers().grow(places);
        streams.schedule_start(plan, &mut sim);
        let hosts_wake_up = plan.nodes.iter().any(|node| !node.timing.is_ideal());
        let mut simulation = Simulation {
            sim,
            flows: plan.flows.iter().map(|flow| flow.name.clone()).collect(),
            last_progress: (Time::ZERO, vec![0; plan.flows.len()]),
            sample: plan.sample,
            queues_sampled: Time::ZERO,
            sockets_sampled: Time::ZERO,
            changes: samplers::changes(plan),
            changes_done: 0,
            interfaces: Capture::interfaces(plan).0,
            control_plane,
            end: Time::ZERO + plan.duration,
            events: 0,
            events_left: 0,
            furthest: Time::ZERO,
            hosts_wake_up,
            serves_trains: !hosts_wake_up,
            done: false,
            look_ahead: look_ahead::pays(count).then(|| LookAhead::new(directions)),
            streams,
            plan: plan.clone(),
        };
        for sampler in Sampler::ALL {
            simulation.schedule_sampler(sampler);
        }
        simulation.advance_control_plane();
        Ok(simulation)
    }

    /// The interfaces that the plan captures, in the order of their numbers.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Shows captured packets to `sink` from now on.
    pub fn capture(&mut self, sink: Box<dyn CaptureSink>) -> Result<(), PlanError> {
        self.sim.network.observe_all();
        self.sim.recorder.capture = Some(Capture::new(&self.plan, &self.sim.network, sink)?);
        Ok(())
    }

    /// Processes up to `maximum` events; whether the simulation has ended.
    pub fn advance(&mut self, maximum: u64) -> bool {
        match (self.sample.packets, self.sim.recorder.capture.is_some()) {
            (false, false) => self.run::<Record<false, false>>(maximum),
            (true, false) => self.run::<Record<true, false>>(maximum),
            (false, true) => self.run::<Record<false, true>>(maximum),
            (true, true) => self.run::<Record<true, true>>(maximum),
        }
        self.done
    }

    /// How far it has come, with the goodput since this was asked last.
    pub fn progress(&mut self) -> Progress {
        let now = self.sim.now();
        let (since, before) = std::mem::replace(&mut self.last_progress, (now, self.streams.delivered()));
        let seconds = now.since(since).as_secs_f64();
        let rate = |(flow, bytes): (usize, &u64)| {
            let bits = (bytes - before[flow]) as f64 * 8.0;
            (self.flows[flow].clone(), if seconds > 0.0 { bits / seconds } else { 0.0 })
        };
        let goodput = self.last_progress.1.iter().enumerate().map(rate).collect();
        Progress { time: now, duration: self.end.since(Time::ZERO), done: self.done, goodput }
    }

    /// Its counts so far.
    pub fn stats(&self) -> RunStats {
        let simulated = self.sim.now().since(Time::ZERO);
        let Discarded { no_route, ttl_exceeded } = self.sim.discarded;
        let routing = self.control_plane.as_ref().map(|control_plane| {
            let converged = control_plane.converged();
            Routing { converged, no_route, ttl_exceeded }
        });
        RunStats { events: self.events, packets: self.sim.packets, simulated, routing }
    }

    /// By its number in the plan, each node that has an accelerator.
    pub fn accelerators(&self) -> impl Iterator<Item = (usize, SplitCounts)> {
        let splitters = self.sim.splitters.iter().enumerate();
        splitters.filter_map(|(node, splitter)| Some((node, splitter.as_ref()?.counts())))
    }

    /// Whether a table has so many rows that they should be taken.
    pub fn is_full(&self) -> bool {
        self.sim.recorder.tables.any_full()
    }

    /// The rows of full tables, which the simulation forgets; the other tables are empty. Rows of flows are in the order in which
    /// their streams ended, all others as in the whole table.
    pub fn take_full(&mut self) -> Tables {
        let full = self.sim.recorder.tables.take_full();
        if !full.flows.stream.is_empty() {
            self.streams.forget_rows();
        }
        full
    }

    /// The tables as they stand, less what was taken; the simulation need not have ended.
    pub fn finish(mut self) -> Tables {
        let end = self.sim.now();
        match (self.sample.packets, self.sim.recorder.capture.is_some()) {
            (false, false) => self.finish_links::<Record<false, false>>(end),
            (true, false) => self.finish_links::<Record<true, false>>(end),
            (false, true) => self.finish_links::<Record<false, true>>(end),
            (true, true) => self.finish_links::<Record<true, true>>(end),
        }
        // The end of the run is that of the sockets that are open.
        if self.sample.sockets.is_some() && self.sockets_sampled < end {
            samplers::sockets(&self.plan, &self.streams, &mut self.sim, end);
        }
        let on_their_way: BTreeSet<u32> = self.sim.bodies.streams().collect();
        let is_drained = |stream: u32| !on_their_way.contains(&stream);
        if self.sample.flows.is_some() {
            samplers::intervals(&mut self.streams, &mut self.sim, end, is_drained);
        }
        self.sim.recorder.finish_losses(end);
        self.streams.finish(&self.plan, &mut self.sim, (end, self.done), is_drained);
        self.sim.recorder.tables
    }

    /// Records all that links have done by the end. Their queues are sampled then, too: their last counts are those of the run.
    fn finish_links<M: Mode>(&mut self, end: Time) {
        self.sim.advance_links::<M>();
        if self.sample.queues.is_some() && self.queues_sampled < end {
            self.sim.sample_queues::<M>(end);
        }
    }

    #[inline(never)]
    fn run<M: Mode>(&mut self, maximum: u64) {
        self.events_left = maximum;
        // The caller finds no node ahead of the others.
        while !self.done && (self.events_left > 0 || self.sim.now() < self.furthest) {
            let Some(slot) = self.sim.schedule.pop(self.end) else {
                self.sim.schedule.finish_at(self.end);
                self.done = true;
                return;
            };
            self.count_event();
            self.wake::<M>(slot);
        }
    }

    #[inline]
    fn count_event(&mut self) {
        self.events += 1;
        self.events_left = self.events_left.saturating_sub(1);
    }

    /// The component `slot` wakes up.
    #[inline]
    fn wake<M: Mode>(&mut self, slot: Slot) {
        let directions = self.sim.network.directions() as Slot;
        if slot < directions {
            self.arrive::<M>(slot);
        } else {
            self.wake_beside_links::<M>(slot);
        }
    }

    /// The same for a slot that is not a link direction.
    #[inline(never)]
    fn wake_beside_links<M: Mode>(&mut self, slot: Slot) {
        let components = self.sim.network.components() as Slot;
        if slot < components {
            if self.sim.network.is_medium(slot) {
                self.sim.contend::<M>(slot, None);
                // Its last packet may have been given up.
                return self.end_if_idle(true);
            }
            return self.depart::<M>(slot);
        }
        if self.sim.schedule.is_end_timer(slot) {
            return self.time_out::<M>();
        }
        let timer = slot - components;
        let place = timer / Timer::COUNT;
        if place < self.sim.places {
            return self.wake_stream::<M>(place, Timer::ALL[(timer % Timer::COUNT) as usize]);
        }
        let clock = slot - self.sim.clock(0);
        match Sampler::ALL.get(clock as usize) {
            Some(sampler) => self.sample::<M>(*sampler),
            None if clock == CONTROL_PLANE => self.advance_control_plane(),
            None => self.start::<M>(),
        }
    }

    /// The first timer of an endpoint fires, unless it was put off.
    fn time_out<M: Mode>(&mut self) {
        let Some((place, end)) = self.sim.schedule.fire_end_timer() else { return };
        if let Some(stream) = self.streams.get_mut(place) {
            stream.time_out::<M>(end, &mut self.sim);
        }
        let finished = self.streams.note_finished(place);
        self.end_if_idle(finished);
    }

    /// A timer of the stream at `place` fires.
    #[inline]
    fn wake_stream<M: Mode>(&mut self, place: u32, timer: Timer) {
        // As at a flow's own stop, applications do nothing any more at the run's end.
        if timer == Timer::Application && self.sim.now() >= self.end {
            return;
        }
        if let Some(stream) = self.streams.get_mut(place) {
            stream.wake::<M>(timer, &mut self.sim);
        }
        let finished = self.streams.note_finished(place);
        self.end_if_idle(finished);
    }

    /// The next stream starts.
    fn start<M: Mode>(&mut self) {
        if let Some(place) = self.streams.start(&self.plan, &mut self.sim) {
            self.wake_stream::<M>(place, Timer::Application);
        }
        self.streams.schedule_start(&self.plan, &mut self.sim);
    }

    /// Packets arrive at the far end of a link direction.
    #[inline]
    fn arrive<M: Mode>(&mut self, direction: DirectionId) {
        let node = self.sim.network.far_end(direction);
        let mut batch = Batch { present: self.sim.now(), lookahead: Span::ZERO };
        // A wake-up without a packet is one whose packet was lost: it may have been the last.
        let mut finished = true;
        if M::CAPTURE {
            // Packets that left the other way before now are shown before those that arrive now.
            self.sim.advance_link::<M>(direction ^ 1);
        }
        let serves_trains = self.serves_trains && !M::PACKETS && !M::CAPTURE;
        let next = loop {
            self.look_ahead(direction);
            if serves_trains {
                let train = self.serve_train::<M>(direction, node, &mut batch);
                if !train.goes_on {
                    finished = train.finished;
                    let next = self.sim.network.link(direction).next_event();
                    if next > batch.present && !self.goes_on::<M>(direction, next, finished, &mut batch) {
                        break next;
                    }
                    continue;
                }
            }
            if let Some(packet) = self.sim.poll::<M>(direction) {
                self.note_arrived(1, packet.conversation(), direction);
                let more = self.hosts_wake_up && self.brings_more(direction, &packet);
                finished = self.hand_over::<M>(packet, node, more);
                let next = self.sim.network.link(direction).next_event();
                if next > batch.present && !self.goes_on::<M>(direction, next, finished, &mut batch) {
                    break next;
                }
            } else {
                break self.sim.network.link(direction).next_event();
            }
        };
        self.sim.schedule.move_to(batch.present);
        self.sim.schedule.set(direction, next);
        self.end_if_idle(finished);
    }

    /// Packets will arrive by `direction`: asks for what they will need.
    #[inline]
    fn look_ahead(&mut self, direction: DirectionId) {
        if let Some(look_ahead) = &mut self.look_ahead {
            look_ahead.begin(self.streams.by_place(), &self.sim, direction);
        } else if look_ahead::pays_for_bodies(&self.sim.bodies) {
            look_ahead::look_ahead_at_bodies(self.sim.network.peek(direction), &self.sim.bodies);
        }
    }

    /// `packets` of one `conversation` have arrived by `direction`.
    #[inline]
    fn note_arrived(&mut self, packets: u32, conversation: u32, direction: DirectionId) {
        if let Some(look_ahead) = &mut self.look_ahead {
            look_ahead.arrived(packets, conversation, &self.sim, direction);
        }
    }

    /// Whether the packet that arrives by `direction` at `next` can be served at once, and no other component before it. It is
    /// the first of all events, or else one whose place among these makes no difference.
    #[inline]
    fn goes_on<M: Mode>(
        &mut self,
        direction: DirectionId,
        next: Time,
        finished: bool,
        batch: &mut Batch,
    ) -> bool {
        if M::PACKETS || M::CAPTURE || finished || self.events_left == 0 || next > self.end {
            return false;
        }
        let (busy, others) = self.sim.schedule.rivals(direction);
        if next >= others {
            return false;
        }
        if next < busy {
            batch.present = next;
        } else {
            if batch.lookahead == Span::ZERO {
                // From then on it stays, for nothing that was sent back arrives meanwhile.
                batch.lookahead = self.sim.network.lookahead(direction);
            }
            if next >= busy + batch.lookahead || !self.only_acknowledges(direction) {
                return false;
            }
            self.furthest = self.furthest.max(next);
        }
        self.sim.schedule.move_to(next);
        self.count_event();
        true
    }

    /// Whether the host handles the next packet of `direction` with `packet`, which has arrived, and it is of the same stream.
    #[cold]
    fn brings_more(&self, direction: DirectionId, packet: &Packet) -> bool {
        let next = self.sim.network.peek(direction).arrived_meanwhile(self.sim.now());
        next.is_some_and(|next| {
            next.stream() == packet.stream()
                && next.destination() == packet.destination()
                && !next.is_corrupted()
        })
    }

    /// Whether the next packet of `direction` makes the endpoint that it is for acknowledge data, at most.
    #[inline]
    fn only_acknowledges(&self, direction: DirectionId) -> bool {
        let Some(packet) = self.sim.network.peek(direction).upcoming(0) else { return false };
        let stream = self.streams.by_place().get(self.sim.recorder.place(packet.stream()) as usize);
        packet.destination() == self.sim.network.far_end(direction)
            && self.sim.bodies.is_data(packet)
            && matches!(stream.map(|stream| &stream.kind),
                Some(StreamKind::Tcp(tcp)) if tcp.only_acknowledges(packet.forward()))
    }

    /// A host's interface has sent packets: their connections may send more.
    fn depart<M: Mode>(&mut self, interface: DirectionId) {
        while let Some((packet, body)) = self.sim.sent_by::<M>(interface) {
            let place = self.sim.recorder.place(packet.stream());
            if let Some(stream) = self.streams.get_mut(place) {
                stream.departed::<M>(&body, packet.forward(), &mut self.sim);
            }
            let finished = self.streams.note_finished(place);
            self.end_if_idle(finished);
        }
    }

    /// `packet` arrives at `node`, and with it perhaps `more` of its stream; whether this is finished.
    #[inline]
    fn hand_over<M: Mode>(&mut self, packet: Packet, node: NodeId, more: bool) -> bool {
        self.sim.packets += 1;
        let place = self.sim.recorder.place(packet.stream());
        // Packets are of streams at work: others have none on their way.
        let Some(receiver) = self.streams.get_mut(place) else { return true };
        if packet.destination() != node {
            self.sim.forward::<M>(node, packet);
        } else if packet.is_corrupted() {
            self.sim.discard(&packet);
        } else {
            match receiver.endpoints.relays.at(node) {
                Some(number) => receiver.arrive_at_relay::<M>(number, &packet, &mut self.sim),
                None => receiver.receive::<M>(&packet, more, &mut self.sim),
            }
        }
        let finished = receiver.done || receiver.finished();
        if finished {
            self.streams.note_finished(place);
        }
        finished
    }

    /// The run ends when all streams are finished and nothing is on its way. `perhaps`: it is worth a look.
    #[inline]
    fn end_if_idle(&mut self, perhaps: bool) {
        if perhaps && self.streams.all_finished() && self.sim.network.is_empty() {
            self.done = true;
            self.sim.schedule.move_to(self.furthest.max(self.sim.now()));
        }
    }

    fn sample<M: Mode>(&mut self, sampler: Sampler) {
        let now = self.sim.now();
        match sampler {
            Sampler::Sockets => {
                samplers::sockets(&self.plan, &self.streams, &mut self.sim, now);
                self.sockets_sampled = now;
            }
            Sampler::Queues => {
                self.sim.sample_queues::<M>(now);
                self.queues_sampled = now;
            }
            // The last interval has all that happens at that very instant: `finish` writes it.
            Sampler::Flows if now == self.end => {}
            Sampler::Flows => samplers::intervals(&mut self.streams, &mut self.sim, now, |_| false),
            Sampler::Changes => {
                while let Some((at, link, detail)) = self.changes.get(self.changes_done)
                    && *at <= now
                {
                    self.sim.recorder.link_event(now, link, detail);
                    self.changes_done += 1;
                }
            }
        }
        self.schedule_sampler(sampler);
    }

    fn advance_control_plane(&mut self) {
        let Some(control_plane) = &mut self.control_plane else { return };
        let now = self.sim.now();
        control_plane.advance(now, &mut self.sim.network, &mut self.sim.recorder);
        let slot = self.sim.clock(CONTROL_PLANE);
        self.sim.schedule.set(slot, control_plane.next());
    }

    fn schedule_sampler(&mut self, sampler: Sampler) {
        let now = self.sim.now();
        let every = |interval: Option<Span>| {
            interval.filter(|interval| *interval > Span::ZERO).map_or(Time::NEVER, |interval| now + interval)
        };
        let next = match sampler {
            Sampler::Sockets => every(self.sample.sockets),
            Sampler::Queues => every(self.sample.queues),
            Sampler::Flows => every(self.sample.flows),
            Sampler::Changes => self.changes.get(self.changes_done).map_or(Time::NEVER, |change| change.0),
        };
        let slot = self.sim.clock(sampler as Slot);
        self.sim.schedule.set(slot, next);
    }
}

mod train;

#[cfg(test)]
mod tests;
