//! A TCP connection: two halves, and what a segment of one says about the other.

use super::echoes::Echoes;
use super::half::{BareAck, Half};
use super::observe::Kind;
use super::retransmission::{Distance, is_copied_ack};
use super::summary::{Direction, End, TcpSummary};
use crate::parse::{Segment, flag};

#[derive(Debug, Default)]
pub(super) struct Connection {
    pub halves: [Half; 2],
    handshake: Handshake,
    /// To each side, while the handshake does not tell.
    echoes: [Echoes; 2],
    offered: Offered,
    ecn: Option<Feedback>,
    pub closed_at: Option<i64>,
}

/// The explicit congestion notification that a SYN asks for.
#[derive(Debug, Default)]
struct Offered {
    ecn: bool,
    accurate: bool,
}

/// How the receiver reports CE marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    /// By the flag ECE, until CWR (RFC 3168).
    Classic,
    /// By a counter in AE, CWR and ECE (RFC 9768).
    Accurate,
}

/// Times of the three segments, each only if it was sent once (ns).
#[derive(Debug, Default)]
struct Handshake {
    syn: Option<i64>,
    syn_ack: Option<i64>,
    ack: Option<i64>,
    /// One of them was sent twice: which one was answered is not known.
    ambiguous: bool,
    done: bool,
}

impl Handshake {
    fn server(&self) -> Option<i64> {
        Some(self.syn_ack?.saturating_sub(self.syn?)).filter(|rtt| *rtt >= 0 && !self.ambiguous)
    }

    fn client(&self) -> Option<i64> {
        Some(self.ack?.saturating_sub(self.syn_ack?)).filter(|rtt| *rtt >= 0 && !self.ambiguous)
    }
}

/// The kind of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    pub kind: Kind,
    pub seq: i64,
    pub ack: Option<i64>,
    pub window: u64,
    pub duplicate_ack: bool,
    pub new_bytes: u32,
    pub rtt: Option<i64>,
    pub rtt_timestamps: Option<i64>,
}

impl Verdict {
    pub fn of_datagram(segment: &Segment) -> Verdict {
        Verdict {
            kind: Kind::New,
            seq: 0,
            ack: None,
            window: 0,
            duplicate_ack: false,
            new_bytes: segment.payload_len,
            rtt: None,
            rtt_timestamps: None,
        }
    }
}

impl Connection {
    /// Whether a SYN begins another connection between the same endpoints.
    ///
    /// Such a SYN has another initial sequence number. It comes after this connection has ended, or where it can't be
    /// a late copy of this one's (RFC 9293 section 3.6.1).
    #[inline]
    pub fn is_succeeded_by(&self, direction: Direction, segment: &Segment) -> bool {
        if !segment.has(flag::SYN) || segment.has(flag::RST) {
            return false;
        }
        let half = &self.halves[direction.index()];
        let Some(_) = half.base else { return false };
        if half.summary.initial_seq == segment.seq && half.summary.syn {
            return false;
        }
        if half.is_only_acknowledged() {
            // This is its SYN, overtaken.
            return false;
        }
        let window = u64::from(self.halves[direction.reverse().index()].window).max(0xffff);
        let seq = half.extend(segment.seq);
        self.closed_at.is_some() || !(half.una..=half.una.max(half.sent.top()) + window).contains(&seq)
    }

    /// Exchanges its sides: the other one opened it.
    pub fn turn(&mut self) {
        self.halves.swap(0, 1);
        self.echoes.swap(0, 1);
    }

    /// Takes a segment in and says what it is.
    #[inline]
    pub fn segment(&mut self, direction: Direction, segment: &Segment, time: i64) -> Verdict {
        let index = direction.index();
        if segment.has(flag::SYN) {
            self.open(direction, segment);
        }
        if self.halves[index].base.is_none() {
            let first = if segment.has(flag::SYN) { segment.seq } else { segment.seq.wrapping_sub(1) };
            self.halves[index].begin(first);
            if !segment.has(flag::SYN) {
                self.halves[index].skip_syn();
            }
        }
        let half = &mut self.halves[index];
        if segment.ecn != 0 || segment.flags & (flag::ECE | flag::CWR) != 0 {
            half.summary.ecn.count(segment, self.ecn == Some(Feedback::Accurate));
        }
        let start = half.extend(segment.seq);
        let mut verdict = Verdict {
            kind: Kind::Control,
            seq: half.relative(start),
            ack: None,
            window: scaled(segment, half),
            duplicate_ack: false,
            new_bytes: 0,
            rtt: None,
            rtt_timestamps: None,
        };
        if !half.is_plausible(start) {
            half.summary.out_of_window += 1;
            verdict.kind = Kind::OutOfWindow;
            return verdict;
        }
        if segment.flags & (flag::FIN | flag::RST) != 0 {
            self.close(direction, segment, time);
        }
        if segment.options.has_timestamps && self.handshake.client().is_none() {
            self.echoes[index].echoed(segment, time);
            self.echoes[1 - index].sent(segment, time);
        }
        let len = segment.sequence_len();
        let is_held = self.halves[index].held.is_some();
        if is_held {
            let [half, peer] = self.between(direction);
            half.judge_held([start, start + u64::from(len)], time, &mut peer.summary.out_of_window);
        }
        verdict.kind = self.sequence(direction, segment, time, start, len, &mut verdict.new_bytes);
        if is_held {
            self.halves[index].reach_held();
        }
        if segment.has(flag::ACK) {
            self.acknowledgment(direction, segment, time, &mut verdict);
        }
        let half = &mut self.halves[index];
        half.last_seen = half.last_seen.max(time);
        if len > 0 {
            half.last_sent = half.last_sent.max(time);
        }
        if !self.handshake.done {
            self.handshake(direction, segment, time, verdict.kind);
        }
        verdict
    }

    /// A SYN and its options.
    #[cold]
    fn open(&mut self, direction: Direction, segment: &Segment) {
        let half = &mut self.halves[direction.index()];
        if half.is_only_acknowledged() {
            half.base = None;
        }
        let summary = &mut half.summary;
        summary.syn = true;
        summary.mss = (segment.options.mss > 0).then_some(segment.options.mss);
        summary.window_scale = segment.options.window_scale;
        summary.sack_permitted = segment.options.sack_permitted;
        summary.timestamps = segment.options.has_timestamps;
        let (announced, scale) = (summary.mss, summary.window_scale);
        self.negotiate_ecn(segment);
        let peer = &mut self.halves[direction.reverse().index()];
        // The MSS that one side announces is what the other cuts into.
        peer.segment_len = announced.or(peer.segment_len);
        // A SYN-ACK has the option only if the SYN had it, be it that this was not captured (RFC 7323 section 2.2).
        let offered = peer.summary.window_scale.is_some() || segment.has(flag::ACK) && !peer.summary.syn;
        let agreed = |scale: Option<u8>| scale.filter(|_| offered).unwrap_or(0);
        peer.window_shift = agreed(scale.and(peer.summary.window_scale));
        self.halves[direction.index()].window_shift = agreed(scale);
    }

    /// Flags that end a connection. A receiver discards them outside its window (RFC 9293 section 3.10.7.4).
    #[cold]
    fn close(&mut self, direction: Direction, segment: &Segment, time: i64) {
        let summary = &mut self.halves[direction.index()].summary;
        summary.fin |= segment.has(flag::FIN);
        if segment.has(flag::RST) {
            summary.rst = true;
            self.closed_at.get_or_insert(time);
        }
    }

    /// RFC 3168 section 6.1.1: ECE and CWR ask, ECE alone agrees. RFC 9768 section 3.1: with AE they ask for accurate
    /// ECN, and the answer to that says besides with which codepoint the SYN came.
    fn negotiate_ecn(&mut self, segment: &Segment) {
        let flags = (segment.ae, segment.has(flag::CWR), segment.has(flag::ECE));
        if !segment.has(flag::ACK) {
            if let (accurate, true, true) = flags {
                self.offered = Offered { ecn: true, accurate };
            }
            return;
        }
        match flags {
            (_, false, true) if self.offered.ecn => self.ecn = Some(Feedback::Classic),
            (false, true, _) | (true, _, false) if self.offered.accurate => {
                self.ecn = Some(Feedback::Accurate)
            }
            _ => {}
        }
    }

    /// Classification by sequence numbers.
    #[inline]
    fn sequence(
        &mut self,
        direction: Direction,
        segment: &Segment,
        time: i64,
        start: u64,
        len: u32,
        new_bytes: &mut u32,
    ) -> Kind {
        let peer = &self.halves[direction.reverse().index()];
        let (peer_base, peer_last_seen) = (peer.base, peer.last_seen);
        let closed = peer.has_acknowledged && peer.window == 0;
        let half = &mut self.halves[direction.index()];
        let top = half.sent.top();
        let end = start + u64::from(len);
        // RFC 9293 section 3.8.4: a keep-alive repeats the number before the next.
        if len <= 1
            && start + 1 == top
            && half.una == top
            && segment.flags & (flag::SYN | flag::FIN | flag::RST) == 0
        {
            half.summary.keep_alives += 1;
            return Kind::KeepAlive;
        }
        if len == 0 {
            return Kind::Control;
        }
        let payload = segment.payload_len;
        // RFC 9293 section 3.8.6.1: a window probe may carry the next byte, which a closed window rarely takes. It
        // counts when it is acknowledged, or comes with more.
        if closed && (payload, len) == (1, 1) && start == top && half.una == top {
            half.summary.keep_alives += 1;
            half.probed = end;
            return Kind::KeepAlive;
        }
        if payload > 0 {
            half.summary.data_packets += 1;
            half.summary.largest_payload = half.summary.largest_payload.max(payload);
        }
        if segment.has(flag::FIN) {
            half.fin_end = Some(end);
        }
        if start >= top {
            let kind = if start > top { Kind::AfterGap } else { Kind::New };
            half.sent.push(start, end, time, segment, peer_base.is_some());
            half.summary.unique_bytes += u64::from(payload);
            half.summary.outstanding_max = half.summary.outstanding_max.max(half.outstanding());
            *new_bytes = payload;
            return kind;
        }
        // RFC 9293 section 3.5: of two SYNs that cross, each is answered with the own one again, now with an ACK.
        if segment.has(flag::SYN | flag::ACK) && !half.has_acknowledged {
            self.handshake.ambiguous = true;
            return Kind::Control;
        }
        let distance = self.distance(direction);
        let half = &mut self.halves[direction.index()];
        half.before_top(segment, time, [start, end], peer_last_seen, &distance, new_bytes)
    }

    /// How far both ends are, as data sent in `direction` sees it.
    fn distance(&self, direction: Direction) -> Distance {
        let half = &self.halves[direction.index()];
        let [client, server] = &self.echoes;
        let to_client = self.handshake.client().or(client.minimum);
        let to_server = self.handshake.server().or(server.minimum);
        let (sender, receiver) = match direction {
            Direction::Forward => (to_client, to_server),
            Direction::Backward => (to_server, to_client),
        };
        Distance {
            sender,
            receiver: half.round_trip.smoothed.or(receiver),
            receiver_minimum: half.round_trip.minimum.into_iter().chain(receiver).min(),
        }
    }

    /// The side that sends in `direction`, and the other.
    #[inline]
    fn between(&mut self, direction: Direction) -> [&mut Half; 2] {
        let [forward, backward] = &mut self.halves;
        match direction {
            Direction::Forward => [forward, backward],
            Direction::Backward => [backward, forward],
        }
    }

    /// Whether a bare acknowledgment is the copy that the network made of the latest.
    #[inline]
    fn is_copied(&self, direction: Direction, segment: &Segment, time: i64) -> bool {
        let before = &self.halves[direction.index()].latest_ack;
        segment.identification != 0
            && segment.identification == before.identification
            && is_copied_ack(segment, before, time, &self.distance(direction.reverse()))
    }

    /// Effect of the acknowledgment number, SACK blocks and window on the other side's data.
    #[inline]
    fn acknowledgment(&mut self, direction: Direction, segment: &Segment, time: i64, verdict: &mut Verdict) {
        let bare = segment.payload_len == 0 && segment.flags & (flag::SYN | flag::FIN | flag::RST) == 0;
        let copied = bare && self.is_copied(direction, segment, time);
        let [half, peer] = self.between(direction);
        if peer.base.is_none() {
            // Nothing of the peer was seen; what it sent up to here has arrived.
            peer.begin(segment.ack.wrapping_sub(1));
            peer.skip_syn();
        }
        let ack = peer.extend(segment.ack);
        verdict.ack = Some(peer.relative(ack));
        if !peer.is_plausible(ack) {
            half.summary.out_of_window += 1;
            return;
        }
        if bare && ack >= peer.una {
            half.latest_ack = BareAck::of(segment, time);
        }
        let echo = segment.options.has_timestamps.then_some(segment.options.timestamp_echo);
        if ack > peer.sent.top() && ack != peer.probed {
            peer.hold(ack, echo, time, &mut half.summary.out_of_window);
        } else if peer.held.is_some() {
            peer.refuse_held(&mut half.summary.out_of_window);
        }
        if ack > peer.una && (ack <= peer.sent.top() || ack == peer.probed) {
            let reported_gap = peer.duplicate_acks > 0 || ack <= peer.highest_sacked;
            [verdict.rtt, verdict.rtt_timestamps] = peer.acknowledged(ack, echo, time, reported_gap);
        } else if bare && ack == peer.una {
            // RFC 5681 section 2: nothing else in it has changed, and something is missing.
            let same_window = u32::from(segment.window) == half.window;
            if peer.sent.top() > ack && same_window && verdict.kind == Kind::Control {
                if copied {
                    verdict.kind = Kind::Duplicate;
                    half.summary.duplicates += 1;
                } else {
                    verdict.duplicate_ack = true;
                    half.summary.duplicate_acks += 1;
                    peer.duplicate_acks += 1;
                }
            }
        }
        if !segment.options.sack().is_empty() && verdict.kind != Kind::Duplicate {
            half.summary.sacks += 1;
            peer.sack(segment, ack, &mut half.summary.dsacks);
        }
        half.has_acknowledged = true;
        half.window = u32::from(segment.window);
        half.advertise(segment, verdict.window, time);
        if self.closed_at.is_none() {
            self.note_close(time);
        }
    }

    #[inline]
    fn note_close(&mut self, time: i64) {
        let all = |half: &Half| half.fin_end.is_some_and(|end| half.una >= end);
        if self.halves.iter().all(all) {
            self.closed_at = Some(time);
        }
    }

    /// Times of the handshake's segments.
    #[cold]
    fn handshake(&mut self, direction: Direction, segment: &Segment, time: i64, kind: Kind) {
        let again = matches!(kind, Kind::Retransmission(_));
        let handshake = &mut self.handshake;
        match (segment.has(flag::SYN), segment.has(flag::ACK), direction) {
            (true, false, Direction::Forward) => {
                handshake.ambiguous |= again;
                handshake.syn.get_or_insert(time);
            }
            (true, true, Direction::Backward) => {
                handshake.ambiguous |= again;
                handshake.syn_ack.get_or_insert(time);
            }
            (false, true, Direction::Forward) => {
                if handshake.syn_ack.is_some() {
                    handshake.ack = Some(time);
                }
                handshake.done = true;
            }
            _ => {}
        }
    }

    /// How it ended, if the capture ended now.
    pub fn end(&self) -> End {
        let [forward, backward] = &self.halves;
        let all_acked =
            [forward, backward].iter().all(|half| half.fin_end.is_some_and(|end| half.una >= end));
        if all_acked {
            End::Closed
        } else if forward.summary.rst || backward.summary.rst {
            End::Reset
        } else if forward.summary.fin || backward.summary.fin {
            End::HalfClosed
        } else {
            End::Open
        }
    }

    pub fn into_summary(mut self, last: i64) -> TcpSummary {
        for direction in [Direction::Forward, Direction::Backward] {
            let [half, peer] = self.between(direction);
            half.refuse_held(&mut peer.summary.out_of_window);
            half.believe_held();
        }
        for index in 0..2 {
            let has_acknowledged = self.halves[1 - index].has_acknowledged;
            let half = &mut self.halves[index];
            if let Some(since) = half.zero_window_since.take() {
                half.summary.add_zero_window(since, last);
            }
            half.summary.acked_bytes = has_acknowledged.then(|| half.acked_payload());
        }
        let handshake = &self.handshake;
        let (server, client) = (handshake.server(), handshake.client());
        TcpSummary {
            handshake_rtt: server.zip(client).map(|(server, client)| server.saturating_add(client)),
            handshake_server: server,
            handshake_client: client,
            ecn_negotiated: self.ecn.is_some(),
            accecn_negotiated: self.ecn == Some(Feedback::Accurate),
            halves: self.halves.map(|half| half.summary),
        }
    }
}

/// The window in bytes, not scaled in a SYN (RFC 7323 section 2.2).
#[inline]
fn scaled(segment: &Segment, half: &Half) -> u64 {
    let window = u64::from(segment.window);
    if segment.has(flag::SYN) { window } else { window << half.window_shift }
}
