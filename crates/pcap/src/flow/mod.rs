//! The analysis: packets in, one summary a flow out.
//!
//! An [`Analysis`] keeps state for each flow, none for each packet beyond what is in flight, and forgets a
//! flow when it has ended. A flow of few packets is kept as those packets, in a tenth of the memory. An [`Observer`]
//! sees every segment with what the analysis made of it.

mod connection;
mod counts;
mod echoes;
mod flows;
mod fragments;
mod grown;
mod half;
mod key;
mod live;
mod observe;
mod retransmission;
mod sent;
mod share;
mod summary;
mod young;

use hashbrown::HashTable;

use crate::parse::{Protocol, Segment, TooBig, Unparsed, parse_into};
use crate::read::Packet;

pub use counts::Counts;
pub use flows::Flows;
pub use key::{Endpoint, Key};
pub use observe::{Kind, Observer, Seen};
pub(crate) use share::{Division, Share};
pub use summary::{Cause, Direction, Ecn, End, FlowSummary, Half, Retransmissions, TcpHalf, TcpSummary};

use fragments::{Fragments, Parts};
use key::Seed;
use live::Flow;

/// How an analysis goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// At most this many flows are analyzed at a time; beyond, those idle for longest end as [`End::Evicted`]. Eight
    /// flows of few packets count as one.
    pub most_flows: usize,
    /// How long an ended connection is kept for what still comes of it (ns of the capture's time).
    pub linger: i64,
}

impl Default for Options {
    fn default() -> Options {
        // Ten seconds is beyond any RTT, and what a retransmitted FIN takes.
        Options { most_flows: 1 << 18, linger: 10_000_000_000 }
    }
}

/// Flows of few packets that take no more memory than one that is analyzed.
const YOUNG_FOR_ONE: usize = 8;

/// Packets in, flows out.
#[derive(Debug)]
pub struct Analysis<O: Observer = ()> {
    options: Options,
    observer: O,
    counts: Counts,
    index: HashTable<u32>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    seed: Seed,
    /// The slot of the last packet's flow: packets of one flow come in trains.
    recent: Option<u32>,
    begun: u64,
    /// Flows that are analyzed now.
    grown: usize,
    /// The latest time that any packet of the capture had so far: clocks go backwards.
    latest: i64,
    finished: Vec<Flow>,
    /// Ended connections by the time they did, with the flow's number to know a slot used again.
    ended: std::collections::VecDeque<(i64, u32, u64)>,
    fragments: Fragments,
}

impl Analysis {
    /// An analysis that summarises flows.
    pub fn new(options: Options) -> Analysis {
        Analysis::with_observer(options, ())
    }
}

impl<O: Observer> Analysis<O> {
    /// An analysis that shows `observer` every segment.
    pub fn with_observer(options: Options, observer: O) -> Analysis<O> {
        Analysis {
            options,
            observer,
            counts: Counts::default(),
            index: HashTable::new(),
            flows: Vec::new(),
            free: Vec::new(),
            seed: Seed::random(),
            recent: None,
            begun: 0,
            grown: 0,
            latest: i64::MIN,
            finished: Vec::new(),
            ended: std::collections::VecDeque::new(),
            fragments: Fragments::default(),
        }
    }

    /// Says that some packet of the capture had this time.
    #[inline]
    pub(crate) fn has_reached(&mut self, time: i64) {
        self.latest = self.latest.max(time);
    }

    /// Connections that ended before this are over: what comes between the same ports is of another.
    #[inline]
    fn forgotten_until(&self) -> i64 {
        self.latest.saturating_sub(self.options.linger)
    }

    /// Takes a packet in.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>) {
        self.counts.packet(packet);
        self.has_reached(packet.time);
        // Not by `parse`, whose result would be copied.
        let mut segment = Segment { frame_len: packet.original_len, ..Segment::default() };
        match parse_into(packet.link, packet.bytes, &mut segment) {
            Ok(()) => self.segment(packet.number, packet.time, packet.interface, &segment),
            Err(reason) => {
                self.counts.unparsed(&reason);
                self.unparsed(&reason, packet.interface);
            }
        }
    }

    #[cold]
    fn unparsed(&mut self, reason: &Unparsed, interface: u32) {
        if let Unparsed::TooBig(too_big) = reason {
            self.too_big(too_big, interface);
        }
    }

    /// A router's complaint belongs to the flow of the packet it quotes.
    fn too_big(&mut self, too_big: &TooBig, interface: u32) {
        let source = Endpoint { address: too_big.source, port: too_big.source_port };
        let destination = Endpoint { address: too_big.destination, port: too_big.destination_port };
        let (key, swapped) = Key::between(source, destination, too_big.protocol, interface);
        let hash = key.hash(self.seed);
        let Some(&slot) = self.index.find(hash, |&slot| self.flows[slot as usize].key == key) else { return };
        let forgotten = self.forgotten_until();
        let flow = &mut self.flows[slot as usize];
        if flow.closed_before(forgotten) {
            return;
        }
        let grows = flow.is_young();
        flow.grown().too_big(swapped, too_big.mtu);
        self.grown += usize::from(grows);
    }

    #[inline]
    fn segment(&mut self, packet: u64, time: i64, interface: u32, segment: &Segment) {
        if let Some(fragment) = &segment.fragment {
            self.counts.fragments += 1;
            if let Some(whole) = self.fragments.add(segment, fragment, time, interface) {
                self.whole(packet, time, interface, &whole.segment, whole.parts);
            }
            return;
        }
        self.whole(packet, time, interface, segment, Parts::one(segment));
    }

    #[inline]
    fn whole(&mut self, packet: u64, time: i64, interface: u32, segment: &Segment, parts: Parts) {
        match segment.protocol {
            Protocol::Tcp => self.counts.tcp += u64::from(parts.packets),
            Protocol::Udp => self.counts.udp += u64::from(parts.packets),
        }
        self.counts.options_cut += u64::from(segment.options_cut);
        let (key, swapped) = Key::of(segment, interface);
        let mut slot = match self.recent {
            Some(slot) if self.flows[slot as usize].key == key => slot,
            _ => self.find(key, packet),
        };
        if !O::ACTIVE && parts.packets == 1 && self.flows[slot as usize].takes_young(swapped, segment, time) {
            self.recent = Some(slot);
            self.note_end(slot, time);
            return;
        }
        slot = self.analyze(slot, (key, swapped), (packet, time), segment, parts);
        self.recent = Some(slot);
        self.note_end(slot, time);
    }

    /// Analyzes a segment of a flow; the slot of the flow, which is a new one if the ports are used again.
    #[inline]
    fn analyze(
        &mut self,
        mut slot: u32,
        (key, swapped): (Key, bool),
        (packet, time): (u64, i64),
        segment: &Segment,
        parts: Parts,
    ) -> u32 {
        let forgotten = self.forgotten_until();
        let mut flow = &mut self.flows[slot as usize];
        self.grown += usize::from(flow.is_young());
        let reused = flow.grown().is_succeeded_by(swapped, segment);
        // Whether it has been forgotten already depends on other flows' packets, and must not matter.
        if reused || (flow.ended && flow.closed_before(forgotten)) {
            self.finish_flow(slot, reused.then_some(End::Reused));
            slot = self.find(key, packet);
            flow = &mut self.flows[slot as usize];
            if !O::ACTIVE && parts.packets == 1 && flow.takes_young(swapped, segment, time) {
                return slot;
            }
            self.grown += usize::from(flow.is_young());
        }
        let number = flow.number;
        let grown = flow.grown();
        let (direction, verdict) = grown.packet(swapped, segment, time, parts);
        if O::ACTIVE {
            self.observer.seen(&grown.seen(number, packet, time, direction, segment, verdict));
        }
        slot
    }

    /// Notes that a flow has ended, and forgets those that ended long before.
    #[inline]
    fn note_end(&mut self, slot: u32, time: i64) {
        let flow = &mut self.flows[slot as usize];
        if !flow.ended && flow.closed_at().is_some() {
            flow.ended = true;
            self.ended.push_back((time, slot, flow.number));
        }
        if let Some(&(ended, ..)) = self.ended.front()
            && ended < self.forgotten_until()
        {
            self.forget_ended();
        }
    }

    /// The slot of a flow, new if it has none.
    #[inline]
    fn find(&mut self, key: Key, packet: u64) -> u32 {
        let hash = key.hash(self.seed);
        match self.index.find(hash, |&slot| self.flows[slot as usize].key == key) {
            Some(&slot) => slot,
            None => self.begin(key, hash, packet),
        }
    }

    #[cold]
    fn begin(&mut self, key: Key, hash: u64, packet: u64) -> u32 {
        let taken = self.index.len() + self.grown * (YOUNG_FOR_ONE - 1);
        if taken >= self.options.most_flows.max(1).saturating_mul(YOUNG_FOR_ONE) {
            self.evict();
        }
        self.begun += 1;
        let flow = Flow::new(key, self.begun, packet);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.flows[slot as usize] = flow;
                slot
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        let (flows, seed) = (&self.flows, self.seed);
        self.index.insert_unique(hash, slot, |&slot| flows[slot as usize].key.hash(seed));
        slot
    }

    /// Ends the eighth of the flows that were idle for longest, so that this is rarely needed.
    #[cold]
    fn evict(&mut self) {
        let mut idle: Vec<(i64, u32)> =
            self.index.iter().map(|&slot| (self.flows[slot as usize].last(), slot)).collect();
        let count = (idle.len() / 8).max(1);
        idle.select_nth_unstable(count - 1);
        for &(_, slot) in &idle[..count] {
            self.finish_flow(slot, Some(End::Evicted));
        }
    }

    #[cold]
    fn forget_ended(&mut self) {
        let until = self.forgotten_until();
        while let Some(&(ended, slot, number)) = self.ended.front() {
            if ended >= until {
                return;
            }
            self.ended.pop_front();
            if self.is_alive(slot, number) {
                self.finish_flow(slot, None);
            }
        }
    }

    fn is_alive(&self, slot: u32, number: u64) -> bool {
        let flow = &self.flows[slot as usize];
        let hash = flow.key.hash(self.seed);
        flow.number == number && self.index.find(hash, |&found| found == slot).is_some()
    }

    /// Moves a flow to the finished ones. `end`: how, unless it has ended by itself.
    fn finish_flow(&mut self, slot: u32, end: Option<End>) {
        let flow = &mut self.flows[slot as usize];
        if let Ok(entry) = self.index.find_entry(flow.key.hash(self.seed), |&found| found == slot) {
            entry.remove();
        }
        self.recent = None;
        self.free.push(slot);
        self.grown -= usize::from(!flow.is_young());
        let mut flow = std::mem::replace(flow, Flow::gone());
        flow.finish(end);
        self.finished.push(flow);
    }

    /// The flows that have ended since this was last asked, as they did.
    pub fn drain(&mut self) -> impl Iterator<Item = FlowSummary> + '_ {
        self.finished.drain(..).map(Flow::into_summary)
    }

    /// The flows seen so far.
    pub fn counts(&self) -> Counts {
        Counts { fragments_incomplete: self.fragments.given_up, ..self.counts }
    }

    /// The observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends all flows: those not yet drained by number, what was counted, and the observer.
    pub fn finish(self) -> (Vec<FlowSummary>, Counts, O) {
        let (flows, counts, observer) = self.end();
        (flows.into_iter().map(Flow::into_summary).collect(), counts, observer)
    }

    /// As [`Analysis::finish`], and flows of few packets stay small.
    pub fn into_flows(self) -> (Flows, Counts, O) {
        let (flows, counts, observer) = self.end();
        (Flows::of(flows), counts, observer)
    }

    fn end(mut self) -> (Vec<Flow>, Counts, O) {
        self.fragments.finish();
        let counts = self.counts();
        let mut flows = self.flows;
        flows.retain_mut(|flow| {
            flow.finish(None);
            !flow.is_gone()
        });
        // Most flows of a flood are still there: they are not copied.
        flows.append(&mut self.finished);
        flows.sort_unstable_by_key(|flow| flow.number);
        (flows, counts, self.observer)
    }
}
