//! The analysis: packets in, one summary a flow out.
//!
//! An [`Analysis`] keeps state for each flow, none for each packet beyond what is in flight, and forgets a
//! flow when it has ended. An [`Observer`] sees every segment with what the analysis made of it.

mod connection;
mod counts;
mod fragments;
mod half;
mod key;
mod observe;
mod retransmission;
mod sent;
mod share;
mod summary;

use hashbrown::HashTable;

use crate::parse::{Protocol, Segment, TooBig, Unparsed, parse_into};
use crate::read::Packet;

pub use counts::Counts;
pub use key::{Endpoint, Key};
pub use observe::{Kind, Observer, Seen};
pub(crate) use share::{Division, Share};
pub use summary::{Cause, Direction, Ecn, End, FlowSummary, Half, Retransmissions, TcpHalf, TcpSummary};

use connection::{Connection, Verdict};
use fragments::Fragments;
use key::Seed;

/// How an analysis goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// At most this many flows are kept in mind at a time; beyond, those idle for longest end as
    /// [`End::Evicted`].
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
    /// The latest time that any packet of the capture had so far: clocks go backwards.
    latest: i64,
    finished: Vec<FlowSummary>,
    /// Ended connections by the time they did, with the flow's number to know a slot used again.
    ended: std::collections::VecDeque<(i64, u32, u64)>,
    fragments: Fragments,
}

#[derive(Debug)]
struct Flow {
    key: Key,
    hash: u64,
    /// The higher endpoint opened it.
    swapped: bool,
    number: u64,
    first_packet: u64,
    first: i64,
    last: i64,
    halves: [Half; 2],
    tcp: Option<Box<Connection>>,
    ended: bool,
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
        let direction = flow.direction(swapped);
        if let Some(tcp) = &mut flow.tcp {
            let half = &mut tcp.halves[direction.index()].summary;
            half.too_big += 1;
            half.path_mtu = Some(half.path_mtu.map_or(too_big.mtu, |mtu| mtu.min(too_big.mtu)));
        }
    }

    #[inline]
    fn segment(&mut self, packet: u64, time: i64, interface: u32, segment: &Segment) {
        if let Some(fragment) = &segment.fragment {
            self.counts.fragments += 1;
            if let Some(whole) = self.fragments.add(segment, fragment, interface) {
                self.whole(packet, time, interface, &whole.segment, whole.packets);
            }
            return;
        }
        self.whole(packet, time, interface, segment, 1);
    }

    #[inline]
    fn whole(&mut self, packet: u64, time: i64, interface: u32, segment: &Segment, packets: u32) {
        match segment.protocol {
            Protocol::Tcp => self.counts.tcp += u64::from(packets),
            Protocol::Udp => self.counts.udp += u64::from(packets),
        }
        self.counts.options_cut += u64::from(segment.options_cut);
        let (key, swapped) = Key::of(segment, interface);
        let mut slot = match self.recent {
            Some(slot) if self.flows[slot as usize].key == key => slot,
            _ => self.find(key, swapped, packet, time),
        };
        let forgotten = self.forgotten_until();
        let mut flow = &mut self.flows[slot as usize];
        if segment.protocol == Protocol::Tcp {
            let direction = flow.direction(swapped);
            let reused = flow.tcp.as_ref().is_some_and(|tcp| tcp.is_succeeded_by(direction, segment));
            // Whether it has been forgotten already depends on other flows' packets, and must not matter.
            if reused || (flow.ended && flow.closed_before(forgotten)) {
                self.finish_flow(slot, reused.then_some(End::Reused));
                slot = self.find(key, swapped, packet, time);
                flow = &mut self.flows[slot as usize];
            }
        }
        self.recent = Some(slot);
        flow.turn_by_syn(swapped, segment);
        let direction = flow.direction(swapped);
        flow.count(direction, segment, time, packets);
        let verdict = match &mut flow.tcp {
            Some(tcp) => tcp.segment(direction, segment, time),
            None => Verdict::of_datagram(segment),
        };
        if verdict.new_bytes > 0 {
            flow.halves[direction.index()].data_last = Some(time);
        }
        if O::ACTIVE {
            let flow = &self.flows[slot as usize];
            let seen = flow.seen(packet, time, direction, segment, verdict);
            self.observer.seen(&seen);
        }
        let flow = &mut self.flows[slot as usize];
        if !flow.ended && flow.tcp.as_ref().is_some_and(|tcp| tcp.closed_at.is_some()) {
            flow.ended = true;
            self.ended.push_back((time, slot, flow.number));
        }
        if let Some(&(ended, ..)) = self.ended.front()
            && ended < forgotten
        {
            self.forget_ended();
        }
    }

    /// The slot of a flow, new if it has none.
    #[inline]
    fn find(&mut self, key: Key, swapped: bool, packet: u64, time: i64) -> u32 {
        let hash = key.hash(self.seed);
        match self.index.find(hash, |&slot| self.flows[slot as usize].key == key) {
            Some(&slot) => slot,
            None => self.begin(key, hash, swapped, packet, time),
        }
    }

    #[cold]
    fn begin(&mut self, key: Key, hash: u64, swapped: bool, packet: u64, time: i64) -> u32 {
        if self.index.len() >= self.options.most_flows.max(1) {
            self.evict();
        }
        self.begun += 1;
        let flow = Flow {
            key,
            hash,
            swapped,
            number: self.begun,
            first_packet: packet,
            first: time,
            last: time,
            halves: Default::default(),
            tcp: (key.protocol() == Protocol::Tcp).then(Box::default),
            ended: false,
        };
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
        let flows = &self.flows;
        self.index.insert_unique(hash, slot, |&slot| flows[slot as usize].hash);
        slot
    }

    /// Ends the eighth of the flows that were idle for longest, so that this is rarely needed.
    #[cold]
    fn evict(&mut self) {
        let mut idle: Vec<(i64, u32)> =
            self.index.iter().map(|&slot| (self.flows[slot as usize].last, slot)).collect();
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
        flow.number == number && self.index.find(flow.hash, |&found| found == slot).is_some()
    }

    /// Moves a flow to the finished ones. `end`: how, unless it has ended by itself.
    fn finish_flow(&mut self, slot: u32, end: Option<End>) {
        let hash = self.flows[slot as usize].hash;
        if let Ok(entry) = self.index.find_entry(hash, |&found| found == slot) {
            entry.remove();
        }
        self.recent = None;
        self.free.push(slot);
        let flow = &mut self.flows[slot as usize];
        let summary = flow.summarise(end);
        self.finished.push(summary);
    }

    /// The flows that have ended since this was last asked, as they did.
    pub fn drain(&mut self) -> impl Iterator<Item = FlowSummary> + '_ {
        self.finished.drain(..)
    }

    /// What was seen so far.
    pub fn counts(&self) -> Counts {
        Counts { fragments_incomplete: self.fragments.given_up, ..self.counts }
    }

    /// The observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends all flows: those not yet drained by number, what was counted, and the observer.
    pub fn finish(mut self) -> (Vec<FlowSummary>, Counts, O) {
        let slots: Vec<u32> = self.index.iter().copied().collect();
        for slot in slots {
            self.finish_flow(slot, None);
        }
        self.fragments.finish();
        let counts = self.counts();
        self.finished.sort_unstable_by_key(|flow| flow.number);
        (self.finished, counts, self.observer)
    }
}

impl Flow {
    #[inline]
    fn direction(&self, swapped: bool) -> Direction {
        if swapped == self.swapped { Direction::Forward } else { Direction::Backward }
    }

    /// Whoever sends the SYN opens the connection, though another packet of it may have been seen before.
    #[inline]
    fn turn_by_syn(&mut self, swapped: bool, segment: &Segment) {
        use crate::parse::flag::{ACK, SYN};
        if segment.flags & SYN == 0
            || self.tcp.as_ref().is_none_or(|tcp| tcp.halves.iter().any(|half| half.summary.syn))
        {
            return;
        }
        let opener = if segment.has(ACK) { !swapped } else { swapped };
        if opener != self.swapped {
            self.swapped = opener;
            self.halves.swap(0, 1);
            if let Some(tcp) = &mut self.tcp {
                tcp.halves.swap(0, 1);
            }
        }
    }

    fn closed_before(&self, time: i64) -> bool {
        self.tcp.as_ref().and_then(|tcp| tcp.closed_at).is_some_and(|closed| closed < time)
    }

    #[inline]
    fn count(&mut self, direction: Direction, segment: &Segment, time: i64, packets: u32) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
        let half = &mut self.halves[direction.index()];
        half.packets += u64::from(packets);
        half.frame_bytes += u64::from(segment.frame_len);
        half.ip_bytes += u64::from(segment.ip_len);
        half.payload_bytes += u64::from(segment.payload_len);
        half.fragments += u64::from(if packets > 1 { packets } else { 0 });
        half.may_fragment += u64::from(!segment.dont_fragment);
        half.largest_ip = half.largest_ip.max(segment.ip_len);
        half.first.get_or_insert(time);
        if segment.payload_len > 0 {
            half.data_first.get_or_insert(time);
        }
        if self.tcp.is_none()
            && let Some(last) = half.last
        {
            half.interarrival.record(time.saturating_sub(last).max(0));
        }
        half.last = Some(time);
    }

    #[inline]
    fn seen<'a>(
        &self,
        packet: u64,
        time: i64,
        direction: Direction,
        segment: &'a Segment,
        verdict: Verdict,
    ) -> Seen<'a> {
        let outstanding = |direction: Direction| {
            self.tcp.as_ref().map_or(0, |tcp| tcp.halves[direction.index()].outstanding())
        };
        Seen {
            packet,
            time,
            flow: self.number,
            direction,
            segment,
            kind: verdict.kind,
            seq: verdict.seq,
            ack: verdict.ack,
            window: verdict.window,
            duplicate_ack: verdict.duplicate_ack,
            new_bytes: verdict.new_bytes,
            outstanding: outstanding(direction),
            outstanding_peer: outstanding(direction.reverse()),
            rtt: verdict.rtt,
            rtt_timestamps: verdict.rtt_timestamps,
        }
    }

    fn summarise(&mut self, end: Option<End>) -> FlowSummary {
        let [low, high] = self.key.endpoints();
        let own_end = self.tcp.as_ref().map_or(End::Open, |tcp| tcp.end());
        let end = if own_end == End::Open { end.unwrap_or(End::Open) } else { own_end };
        FlowSummary {
            number: self.number,
            first_packet: self.first_packet,
            protocol: self.key.protocol(),
            interface: self.key.interface(),
            endpoints: if self.swapped { [high, low] } else { [low, high] },
            first: self.first,
            last: self.last,
            end,
            halves: std::mem::take(&mut self.halves),
            tcp: self.tcp.take().map(|tcp| tcp.into_summary(self.last)),
        }
    }
}
