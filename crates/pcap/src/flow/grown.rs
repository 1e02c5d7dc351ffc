//! A flow that is analyzed packet by packet.

use super::connection::{Connection, Verdict};
use super::fragments::Parts;
use super::key::Key;
use super::observe::Seen;
use super::summary::{Direction, End, FlowSummary, Half};
use crate::parse::{Protocol, Segment};

#[derive(Debug)]
pub(super) struct Grown {
    /// The higher endpoint opened it; unknown before the first packet.
    swapped: Option<bool>,
    first: i64,
    last: i64,
    halves: [Half; 2],
    tcp: Option<Box<Connection>>,
}

impl Grown {
    /// A flow without packets.
    pub fn new(protocol: Protocol) -> Grown {
        Grown {
            swapped: None,
            first: i64::MAX,
            last: i64::MIN,
            halves: Default::default(),
            tcp: (protocol == Protocol::Tcp).then(Box::default),
        }
    }

    /// Takes a segment in.
    #[inline]
    pub fn packet(
        &mut self,
        swapped: bool,
        segment: &Segment,
        time: i64,
        parts: Parts,
    ) -> (Direction, Verdict) {
        self.turn_by_syn(swapped, segment);
        let direction = self.direction(swapped);
        self.count(direction, segment, time, parts);
        let verdict = match &mut self.tcp {
            Some(tcp) => tcp.segment(direction, segment, time),
            None => Verdict::of_datagram(segment),
        };
        if verdict.new_bytes > 0 {
            self.halves[direction.index()].data_last = Some(time);
        }
        (direction, verdict)
    }

    /// Whether a SYN begins another connection between the same endpoints.
    #[inline]
    pub fn is_succeeded_by(&self, swapped: bool, segment: &Segment) -> bool {
        self.swapped.is_some_and(|opener| {
            let direction = direction(opener, swapped);
            self.tcp.as_ref().is_some_and(|tcp| tcp.is_succeeded_by(direction, segment))
        })
    }

    /// A router says that a packet was too big for a link with this MTU.
    pub fn too_big(&mut self, swapped: bool, mtu: u32) {
        let direction = self.direction(swapped);
        if let Some(tcp) = &mut self.tcp {
            let half = &mut tcp.halves[direction.index()].summary;
            half.too_big += 1;
            half.path_mtu = Some(half.path_mtu.map_or(mtu, |minimum| minimum.min(mtu)));
        }
    }

    #[inline]
    pub fn closed_at(&self) -> Option<i64> {
        self.tcp.as_ref().and_then(|tcp| tcp.closed_at)
    }

    /// The time of its latest packet.
    pub fn last(&self) -> i64 {
        self.last
    }

    #[inline]
    fn direction(&mut self, swapped: bool) -> Direction {
        direction(*self.swapped.get_or_insert(swapped), swapped)
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
        if self.swapped.replace(opener).is_some_and(|before| before != opener) {
            self.halves.swap(0, 1);
            if let Some(tcp) = &mut self.tcp {
                tcp.turn();
            }
        }
    }

    #[inline]
    fn count(&mut self, direction: Direction, segment: &Segment, time: i64, parts: Parts) {
        let packets = u64::from(parts.packets);
        self.first = self.first.min(time);
        self.last = self.last.max(time);
        let half = &mut self.halves[direction.index()];
        half.packets += packets;
        half.frame_bytes += u64::from(segment.frame_len);
        half.ip_bytes += u64::from(segment.ip_len);
        half.payload_bytes += u64::from(segment.payload_len);
        half.fragments += if packets > 1 { packets } else { 0 };
        half.may_fragment += if segment.dont_fragment { 0 } else { packets };
        half.largest_ip = half.largest_ip.max(parts.largest_ip);
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
    pub fn seen<'a>(
        &self,
        flow: u64,
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
            flow,
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

    /// Its summary. `end`: how it ended, unless by itself.
    pub fn into_summary(self, key: &Key, number: u64, first_packet: u64, end: Option<End>) -> FlowSummary {
        let [low, high] = key.endpoints();
        let own_end = self.tcp.as_ref().map_or(End::Open, |tcp| tcp.end());
        let end = if own_end == End::Open { end.unwrap_or(End::Open) } else { own_end };
        FlowSummary {
            number,
            first_packet,
            protocol: key.protocol(),
            interface: key.interface(),
            endpoints: if self.swapped == Some(true) { [high, low] } else { [low, high] },
            first: self.first,
            last: self.last,
            end,
            halves: self.halves,
            tcp: self.tcp.map(|tcp| tcp.into_summary(self.last)),
        }
    }
}

#[inline]
fn direction(opener: bool, swapped: bool) -> Direction {
    if swapped == opener { Direction::Forward } else { Direction::Backward }
}
