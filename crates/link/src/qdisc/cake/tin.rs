//! One tin of CAKE: flows in turn by deficit round robin, new ones first (RFC 8290, section 4.2), with COBALT in
//! each. The quantum of a flow is that of its host divided between the host's flows. Source: Høiland-Jørgensen, Täht,
//! Morton 2018, on host isolation.

use std::collections::VecDeque;

use tcplab_units::Time;

use super::cobalt::{Cobalt, Law, Verdict};
use super::set_associative::{PLACES, Place, SetAssociative};
use super::tins::Settings;
use crate::config::{AckFilter, Isolation};
use crate::inside::Inside;
use crate::packet::Packet;
use crate::qdisc::counting::{Counting, Counts};
use crate::qdisc::fifo::Fifo;
use crate::qdisc::{Backlog, Cause, Class, Queued, Sink};
use crate::serializer::Serializer;

/// A tin.
#[derive(Clone, Debug)]
pub(super) struct Tin<P> {
    name: &'static str,
    pub(super) backlog: Backlog,
    counts: Counts,
    law: Law,
    quantum: u32,
    isolation: Isolation,
    flows: Box<[Flow<P>]>,
    flow_places: SetAssociative,
    /// Bulk flows by source and by destination.
    sources: Hosts,
    destinations: Hosts,
    /// Numbers of the flows that have just begun, and of the others: the new and the old queues of RFC 8290, section 4.2.
    sparse: VecDeque<u16>,
    bulk: VecDeque<u16>,
    pub(super) bulk_flows: u32,
    /// At the threshold's rate, when the tin's next packet would be due.
    pub(super) clock: Time,
    shaper: Option<Serializer>,
    /// Quantum of a turn without a shaper, in frame bytes, and what is left of it.
    pub(super) turn: i64,
    pub(super) left: i64,
    pub(super) redundant: u64,
    pub(super) shared: u64,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    queue: Fifo<P>,
    cobalt: Cobalt,
    state: State,
    /// The rest of its turn, in 1/2^16 of a byte.
    deficit: i64,
    source: usize,
    destination: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// In no list.
    #[default]
    Idle,
    Sparse,
    /// It was sparse, has used up its turn, and nothing waits. It stays among the others until it has paid, lest a flow that
    /// sends little at a time always goes first; one more packet and it is bulk.
    Spent,
    Bulk,
}

/// How many bulk flows each host has.
#[derive(Clone, Debug)]
struct Hosts {
    places: SetAssociative,
    bulk_flows: Box<[u32]>,
}

impl Hosts {
    fn new() -> Hosts {
        Hosts { places: SetAssociative::new(), bulk_flows: vec![0; PLACES].into() }
    }

    fn place(&mut self, hash: u32) -> usize {
        let Hosts { places, bulk_flows } = self;
        match places.find(hash, |place| bulk_flows[place] > 0) {
            Place::Known(place) | Place::New(place) | Place::Shared(place) => place,
        }
    }
}

/// A byte of a deficit.
const BYTE: i64 = 1 << 16;

impl<P: Packet> Tin<P> {
    pub(super) fn new(settings: &Settings, isolation: Isolation) -> Tin<P> {
        let flow = || Flow {
            queue: Fifo::new(),
            cobalt: Cobalt::default(),
            state: State::Idle,
            deficit: 0,
            source: 0,
            destination: 0,
        };
        Tin {
            name: settings.name,
            backlog: Backlog::default(),
            counts: Counts::default(),
            law: settings.law,
            quantum: settings.quantum,
            isolation,
            flows: (0..PLACES).map(|_| flow()).collect(),
            flow_places: SetAssociative::new(),
            sources: Hosts::new(),
            destinations: Hosts::new(),
            sparse: VecDeque::new(),
            bulk: VecDeque::new(),
            bulk_flows: 0,
            clock: Time::ZERO,
            shaper: settings.threshold.map(Serializer::new),
            turn: settings.turn,
            left: settings.turn,
            redundant: 0,
            shared: 0,
        }
    }

    /// Takes `packet` of the flow with this hash in; its hosts have these.
    pub(super) fn enqueue(
        &mut self,
        packet: Queued<P>,
        (flow_hash, hosts): (u32, [u32; 2]),
        filter: AckFilter,
        now: Time,
        sink: &mut impl Sink<P>,
    ) {
        if self.backlog.packets == 0 {
            self.clock = self.clock.max(now);
        }
        let number = self.flow(flow_hash, hosts, now);
        self.backlog = self.backlog.and(packet.packet.frame_len());
        sink.enqueued(&packet.packet);
        let flow = &mut self.flows[number];
        flow.queue.push(packet);
        match flow.state {
            State::Idle => {
                flow.state = State::Sparse;
                flow.cobalt.resume(&self.law, now);
                self.sparse.push_back(number as u16);
                self.flows[number].deficit = self.turn_of(number);
            }
            State::Spent => self.make_bulk(number),
            State::Sparse | State::Bulk => {}
        }
        if filter != AckFilter::Off {
            self.filter(number, filter, sink);
        }
    }

    /// The number of the queue for a flow.
    fn flow(&mut self, hash: u32, hosts: [u32; 2], now: Time) -> usize {
        let Tin { flow_places, flows, law, .. } = self;
        let place = flow_places.find(hash, |place| {
            let flow: &Flow<P> = &flows[place];
            flow.state != State::Idle || !flow.cobalt.is_at_rest(law, now)
        });
        match place {
            Place::Known(number) => number,
            Place::Shared(number) => {
                self.shared += 1;
                number
            }
            Place::New(number) => {
                let (source, destination) = (self.sources.place(hosts[0]), self.destinations.place(hosts[1]));
                let flow = &mut self.flows[number];
                (flow.source, flow.destination) = (source, destination);
                number
            }
        }
    }

    /// The quantum of a flow: its host's share, divided between the host's bulk flows.
    fn turn_of(&self, number: usize) -> i64 {
        let flow = &self.flows[number];
        let (source, destination) =
            (self.sources.bulk_flows[flow.source], self.destinations.bulk_flows[flow.destination]);
        let load = match self.isolation {
            Isolation::DualSrchost => source,
            Isolation::DualDsthost => destination,
            Isolation::TripleIsolate => source.max(destination),
            _ => 1,
        };
        i64::from(self.quantum) * BYTE / i64::from(load.max(1))
    }

    fn make_bulk(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        flow.state = State::Bulk;
        self.sources.bulk_flows[flow.source] += 1;
        self.destinations.bulk_flows[flow.destination] += 1;
        self.bulk_flows += 1;
    }

    /// Nothing waits in the flow, which leaves the lists.
    fn make_idle(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        if flow.state == State::Bulk {
            self.sources.bulk_flows[flow.source] -= 1;
            self.destinations.bulk_flows[flow.destination] -= 1;
            self.bulk_flows -= 1;
        }
        flow.state = State::Idle;
    }

    /// Drops one acknowledgment of the flow that the latest packet makes redundant. Of the first two in succession
    /// with the same ECN flags, it drops the older one, so that senders see each change of the flags. An aggressive
    /// filter also drops a single one right before the latest packet.
    fn filter(&mut self, number: usize, filter: AckFilter, sink: &mut impl Sink<P>) {
        let flow = &mut self.flows[number];
        let last = flow.queue.backlog().packets as usize - 1;
        let Some(latest) = flow.queue.iter().last() else { return };
        let hash = latest.packet.flow_hash();
        let Some(later) = sink.inside(&latest.packet).ack else { return };
        let mut before: Option<(usize, u8)> = None;
        let mut dropped = None;
        for (at, queued) in flow.queue.iter().take(last).enumerate() {
            let ack = sink.inside(&queued.packet).ack.filter(|ack| ack.is_pure);
            let Some(ack) = ack.filter(|_| queued.packet.flow_hash() == hash) else { continue };
            before = before.filter(|&(_, flags)| flags == ack.ecn_flags);
            if !ack.is_redundant_after(&later) {
                continue;
            }
            if let Some((older, _)) = before {
                dropped = Some(older);
                break;
            }
            before = Some((at, ack.ecn_flags));
        }
        if filter == AckFilter::Aggressive && before == last.checked_sub(1).map(|at| (at, later.ecn_flags)) {
            dropped = dropped.or(before.map(|(at, _)| at));
        }
        let Some(dropped) = dropped.and_then(|at| flow.queue.remove(at)) else { return };
        self.redundant += 1;
        self.forget(&dropped);
        self.counts.count_drop(Cause::Redundant);
        sink.dropped(&dropped.packet, Cause::Redundant);
    }

    fn forget(&mut self, packet: &Queued<P>) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.packet.frame_len());
    }

    /// The packet whose turn it is; `draw` is random for a packet's number.
    pub(super) fn dequeue(
        &mut self,
        now: Time,
        draw: impl Fn(u64) -> u32,
        sink: &mut impl Sink<P>,
    ) -> Option<Queued<P>> {
        loop {
            let is_sparse = !self.sparse.is_empty();
            let list = if is_sparse { &mut self.sparse } else { &mut self.bulk };
            let number = usize::from(*list.front()?);
            if self.flows[number].deficit <= 0 {
                list.pop_front();
                self.bulk.push_back(number as u16);
                if self.flows[number].state == State::Sparse {
                    if self.flows[number].queue.is_empty() {
                        self.flows[number].state = State::Spent;
                    } else {
                        self.make_bulk(number);
                    }
                }
                self.flows[number].deficit += self.turn_of(number);
                continue;
            }
            if let Some(packet) = self.take(number, now, &draw, sink) {
                let len = packet.packet.frame_len();
                self.flows[number].deficit -= i64::from(len) * BYTE;
                self.counts.count_out(&packet.packet);
                return Some(packet);
            }
            self.flows[number].cobalt.rest(&self.law, now);
            if is_sparse {
                self.sparse.pop_front();
            } else {
                self.bulk.pop_front();
            }
            self.make_idle(number);
        }
    }

    /// The packet at the head of a flow that is sent. The last one is never dropped.
    fn take(
        &mut self,
        number: usize,
        now: Time,
        draw: &impl Fn(u64) -> u32,
        sink: &mut impl Sink<P>,
    ) -> Option<Queued<P>> {
        loop {
            let flow = &mut self.flows[number];
            let mut packet = flow.queue.pop()?;
            let waited = (now.since(packet.since), packet.packet.is_ect());
            let verdict = flow.cobalt.verdict(waited, &self.law, draw(packet.number), now);
            let is_last = flow.queue.is_empty();
            self.forget(&packet);
            match verdict {
                Verdict::Mark => {
                    packet.packet.mark_ce();
                    self.counts.count_mark();
                    sink.marked(&packet.packet);
                }
                Verdict::Drop if !is_last => {
                    self.counts.count_drop(Cause::Early);
                    sink.dropped(&packet.packet, Cause::Early);
                    continue;
                }
                Verdict::Drop | Verdict::Pass => {}
            }
            return Some(packet);
        }
    }

    /// The number of the longest queue, and its bytes.
    pub(super) fn longest(&self) -> Option<(u64, usize)> {
        let listed = self.sparse.iter().chain(&self.bulk).map(|&number| usize::from(number));
        listed.map(|number| (self.flows[number].queue.bytes(), number)).max()
    }

    /// Drops the head of a queue, for want of room.
    pub(super) fn overflow(&mut self, number: usize, now: Time, sink: &mut impl Sink<P>) {
        let flow = &mut self.flows[number];
        flow.cobalt.overflow(&self.law, now);
        let Some(packet) = flow.queue.pop() else { return };
        self.forget(&packet);
        self.counts.count_drop(Cause::Overlimit);
        sink.dropped(&packet.packet, Cause::Overlimit);
    }

    /// Charges the tin's clock for so many bytes on the wire, sent at `now`. Other tins lend the rate that they do not
    /// use: a tin that sends above its threshold owes at most the time of its latest packet.
    pub(super) fn advance(&mut self, bytes: u32, now: Time) {
        let Some(shaper) = &mut self.shaper else { return };
        let took = shaper.send(now, true, bytes).since(now);
        self.clock = self.clock.max(self.clock.min(now) + took);
    }

    pub(super) fn head_since(&self) -> Option<Time> {
        let listed = self.sparse.iter().chain(&self.bulk).map(|&number| &self.flows[usize::from(number)]);
        listed.filter_map(|flow| flow.queue.head()).map(|head| head.since).min()
    }

    pub(super) fn sparse_flows(&self) -> usize {
        self.sparse.len() + self.bulk.len() - self.bulk_flows as usize
    }

    /// The greatest of its flows' probabilities of BLUE.
    pub(super) fn probability(&self) -> f64 {
        self.flows.iter().map(|flow| flow.cobalt.probability()).fold(0.0, f64::max)
    }

    pub(super) fn class(&self) -> Class {
        self.counts.class(self.name.to_owned(), self.backlog, self.head_since())
    }

    pub(super) fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        for number in std::mem::take(&mut self.sparse).into_iter().chain(std::mem::take(&mut self.bulk)) {
            let sink = &mut Counting { counts: &mut self.counts, sink };
            self.flows[usize::from(number)].queue.purge(cause, sink);
            self.make_idle(usize::from(number));
        }
        self.backlog = Backlog::default();
    }
}

/// The hashes of a packet's flow and hosts that isolation goes by.
pub(super) fn hashes(isolation: Isolation, flow: u32, inside: &Inside) -> (u32, [u32; 2]) {
    let pair = inside.source.rotate_left(16) ^ inside.destination;
    let flow = match isolation {
        Isolation::Flowblind => 0,
        Isolation::Srchost => inside.source,
        Isolation::Dsthost => inside.destination,
        Isolation::Hosts => pair,
        Isolation::Flows | Isolation::DualSrchost | Isolation::DualDsthost | Isolation::TripleIsolate => flow,
    };
    (flow, [inside.source, inside.destination])
}
