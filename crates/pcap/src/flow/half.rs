//! One direction of a connection: what its sender has sent, and what its receiver has said about it.

use super::observe::Kind;
use super::retransmission::{self, Distance};
use super::sent::Sent;
use super::summary::{Cause, TcpHalf};
use crate::parse::{Segment, flag};

/// Retransmitted ranges remembered until a DSACK block names them.
const REMEMBERED: usize = 32;

/// No TCP window is larger (RFC 7323 section 2.3), so no segment can be farther off.
const LARGEST_WINDOW: u64 = 1 << 30;

/// Extended sequence numbers begin here, so that what was sent before the first seen is not negative.
const BASE: u64 = 1 << 32;

#[derive(Debug, Default)]
pub(super) struct Half {
    pub summary: TcpHalf,
    pub sent: Sent,
    /// The extended initial sequence number; `None` until a number of this side is known.
    pub base: Option<u64>,
    /// The highest sequence number the other side acknowledged, extended.
    pub una: u64,
    pub fin_end: Option<u64>,
    /// It has sent an acknowledgment.
    pub has_acknowledged: bool,
    /// The latest time that this side sent anything, anything that takes sequence numbers (ns).
    pub last_seen: i64,
    pub last_sent: i64,
    /// The window it advertises, as on the wire.
    pub window: u32,
    /// By how many bits its windows are scaled: what it announced, if both sides agreed.
    pub window_shift: u8,
    pub zero_window_since: Option<i64>,
    /// The number behind the byte of its latest window probe.
    pub probed: u64,
    /// The acknowledgment of what was not seen.
    pub held: Option<Held>,
    /// The latest acknowledgment that it sent without data.
    pub latest_ack: BareAck,
    /// Duplicate ACKs for `una` in a row.
    pub duplicate_acks: u32,
    /// The highest right edge of a SACK block.
    pub highest_sacked: u64,
    /// The acknowledgment that ended three or more duplicate ACKs, the latest of them.
    pub signalled_until: u64,
    /// When the latest sent of what was acknowledged was sent (RFC 8985's RACK.xmit_ts; ns).
    pub delivered_sent: i64,
    /// The highest number sent when a fast recovery began.
    pub recovery_until: u64,
    /// The highest number sent when a timeout came.
    pub timeout_until: u64,
    pub round_trip: RoundTrip,
    /// The MSS that the peer announced.
    pub segment_len: Option<u16>,
    /// Retransmitted ranges, a ring.
    remembered: Vec<(u64, u64)>,
    next_remembered: usize,
}

/// An acknowledgment above all that was seen. Either the capture missed what it covers, or the file has that behind it.
/// Or it was never sent: its sender ignores the acknowledgment (RFC 9293 section 3.10.7.4), and goes on below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    ack: u64,
    time: i64,
    /// The timestamp it echoes.
    echo: Option<u32>,
    /// The sender has sent from below it since.
    unsent: bool,
}

/// An acknowledgment without data, to recognize a copy of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BareAck {
    pub time: i64,
    pub ack: u32,
    pub timestamp: u32,
    pub identification: u16,
}

impl BareAck {
    #[inline]
    pub fn of(segment: &Segment, time: i64) -> BareAck {
        let Segment { ack, identification, .. } = *segment;
        BareAck { time, ack, timestamp: segment.options.timestamp, identification }
    }
}

/// The smoothed RTT of RFC 6298, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    pub smoothed: Option<i64>,
    variation: i64,
    pub minimum: Option<i64>,
}

impl RoundTrip {
    pub fn sample(&mut self, rtt: i64) {
        self.minimum = Some(self.minimum.map_or(rtt, |minimum| minimum.min(rtt)));
        match &mut self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation += ((*smoothed - rtt).abs() - self.variation) / 4;
                *smoothed += (rtt - *smoothed) / 8;
            }
        }
    }

    /// Four times the variation, as it goes into the timeout.
    pub fn four_variations(&self) -> i64 {
        self.variation.saturating_mul(4)
    }
}

impl Half {
    /// The extended number nearest to the highest known, for `seq`.
    #[inline]
    pub fn extend(&self, seq: u32) -> u64 {
        let near = self.sent.top();
        near.wrapping_add_signed(i64::from(seq.wrapping_sub(near as u32) as i32))
    }

    /// Takes `seq` as the number before the first that counts.
    pub fn begin(&mut self, initial_seq: u32) {
        let base = BASE + u64::from(initial_seq);
        self.base = Some(base);
        self.summary.initial_seq = initial_seq;
        self.sent.restart(base);
        self.una = base;
        self.highest_sacked = base;
    }

    /// The number before the first that was seen is that of a SYN, which must have arrived.
    pub fn skip_syn(&mut self) {
        self.una += 1;
        self.sent.restart(self.una);
        self.highest_sacked = self.una;
    }

    /// All that is known of this side is what the other acknowledged.
    pub fn is_only_acknowledged(&self) -> bool {
        !self.summary.syn && self.base.is_some_and(|base| base + 1 == self.sent.top())
    }

    /// Whether a range from `start` can be meant.
    #[inline]
    pub fn is_plausible(&self, start: u64) -> bool {
        let top = self.sent.top();
        start <= top + LARGEST_WINDOW && start + LARGEST_WINDOW >= self.una.min(top)
    }

    /// `number` counted from the initial one.
    #[inline]
    pub fn relative(&self, number: u64) -> i64 {
        number.wrapping_sub(self.base.unwrap_or(number)) as i64
    }

    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.sent.top().saturating_sub(self.una)
    }

    pub fn remember(&mut self, start: u64, end: u64) {
        if self.remembered.len() < REMEMBERED {
            self.remembered.push((start, end));
        } else {
            self.remembered[self.next_remembered] = (start, end);
        }
        self.next_remembered = (self.next_remembered + 1) % REMEMBERED;
    }

    /// How many retransmissions the DSACK block shows to have been needless: of a range retransmitted more than
    /// once, one for each block.
    pub fn forget(&mut self, left: u64, right: u64) -> u64 {
        let mut named: [(u64, u64); REMEMBERED] = [(0, 0); REMEMBERED];
        let mut count = 0;
        self.remembered.retain(|&(start, end)| {
            let is_named = start < right && left < end;
            if !is_named || named[..count].iter().any(|&(from, to)| start < to && from < end) {
                return true;
            }
            named[count] = (start, end);
            count += 1;
            false
        });
        self.next_remembered = self.remembered.len() % REMEMBERED;
        count as u64
    }

    /// Payload bytes among the acknowledged: without SYN and FIN.
    pub fn acked_payload(&self) -> u64 {
        let Some(base) = self.base else { return 0 };
        let fin = u64::from(self.fin_end.is_some_and(|end| self.una >= end));
        self.una.saturating_sub(base + 1).saturating_sub(fin)
    }

    /// Something up to the highest sequence number was sent before: which, and why is it here again?
    #[cold]
    pub fn before_top(
        &mut self,
        segment: &Segment,
        time: i64,
        [start, end]: [u64; 2],
        peer_last_seen: i64,
        distance: &Distance,
        new_bytes: &mut u32,
    ) -> Kind {
        let top = self.sent.top();
        let again = self.sent.again(start, end.min(top), time, segment);
        let beyond = end.saturating_sub(top);
        if beyond > 0 {
            self.sent.push(top, end, time, segment, true);
        }
        let new = (again.skipped + beyond).min(u64::from(segment.payload_len));
        *new_bytes = new as u32;
        self.summary.unique_bytes += new;
        if again.seen == 0
            && let Some(gap) = again.gap
            && retransmission::is_reordered(segment, &gap, time, distance)
        {
            self.summary.out_of_order += 1;
            return Kind::OutOfOrder;
        }
        if let Some(before) = again.before
            && again.gap.is_none()
            && beyond == 0
            && retransmission::is_copy(segment, &before, time, distance)
        {
            self.summary.duplicates += 1;
            return Kind::Duplicate;
        }
        let range = [start, end.min(top)];
        let before = again.before.as_ref();
        let cause = retransmission::cause(self, peer_last_seen, range, segment, before, time, distance);
        self.sent.mark_retransmitted(start, end.min(top), time, segment);
        self.count_retransmission(segment, [start, end], beyond, cause);
        Kind::Retransmission(cause)
    }

    /// `beyond` of the range's sequence numbers are new.
    fn count_retransmission(&mut self, segment: &Segment, [start, end]: [u64; 2], beyond: u64, cause: Cause) {
        self.remember(start, end);
        let summary = &mut self.summary;
        summary.retransmissions.count(cause);
        summary.retransmitted_bytes += u64::from(segment.payload_len).saturating_sub(beyond);
        // The MSS counts no options (RFC 9293 section 3.7.1); timestamps take 12 bytes of it.
        let options = if segment.options.has_timestamps { 12 } else { 0 };
        let each = self.segment_len.map_or(u32::MAX, |mss| u32::from(mss).saturating_sub(options)).max(1);
        summary.retransmitted_segments += u64::from(segment.payload_len.div_ceil(each).max(1));
    }

    /// New data is acknowledged; the RTT, and that by the timestamp echoed.
    #[inline]
    pub fn acknowledged(
        &mut self,
        ack: u64,
        echo: Option<u32>,
        time: i64,
        reported_gap: bool,
    ) -> [Option<i64>; 2] {
        let mut rtts = [None, None];
        let top = self.sent.top();
        if ack > top && ack == self.probed {
            self.summary.unique_bytes += 1;
        } else if ack > top {
            self.summary.missed_bytes += ack - top;
        }
        if let Some(covered) = self.sent.acknowledge(ack, echo) {
            self.summary.missed_bytes += covered.unseen;
            self.delivered_sent = self.delivered_sent.max(covered.latest);
            if let Some(sent) = covered.echoed {
                let rtt = time.saturating_sub(sent).max(0);
                self.summary.rtt_timestamps.record(rtt);
                rtts[1] = Some(rtt);
            }
            // Karn's rule (RFC 6298 section 3); and what was only held up behind a gap gives no RTT either.
            if !covered.ambiguous && !reported_gap {
                let rtt = time.saturating_sub(covered.newest.first).max(0);
                self.summary.rtt.record(rtt);
                self.round_trip.sample(rtt);
                rtts[0] = Some(rtt);
            }
        }
        self.una = ack;
        if self.duplicate_acks >= retransmission::DUPLICATE_THRESHOLD {
            self.signalled_until = ack;
        }
        self.duplicate_acks = 0;
        self.summary.last_acked = Some(time);
        rtts
    }

    /// Holds an acknowledgment of what was not seen; one that it replaces is believed, or counted in `refused`.
    #[cold]
    pub fn hold(&mut self, ack: u64, echo: Option<u32>, time: i64, refused: &mut u64) {
        match self.held {
            Some(held) if held.unsent && held.ack != ack => self.refuse_held(refused),
            // A receiver that goes on means it.
            Some(held) if held.ack < ack => self.believe_held(),
            Some(_) => return,
            None => {}
        }
        self.held = Some(Held { ack, time, echo, unsent: false });
    }

    /// Compares what this side sends with the acknowledgment held.
    #[cold]
    pub fn judge_held(&mut self, [start, end]: [u64; 2], time: i64, refused: &mut u64) {
        let Some(held) = &mut self.held else { return };
        let repeats =
            end > start && end <= held.ack && time.saturating_sub(held.time) >= retransmission::RTO_MIN;
        if start >= held.ack && held.unsent {
            self.refuse_held(refused);
        } else if start >= held.ack || start >= self.sent.top() && !held.unsent && repeats {
            self.believe_held();
        } else if start >= self.sent.top() && time > held.time {
            held.unsent = true;
        }
    }

    /// Takes the acknowledgment held for one of what was sent.
    #[cold]
    pub fn believe_held(&mut self) {
        if let Some(held) = self.held.take() {
            self.acknowledged(held.ack, held.echo.filter(|_| !held.unsent), held.time, true);
        }
    }

    /// Believes the acknowledgment held as soon as all of it was sent.
    #[inline]
    pub fn reach_held(&mut self) {
        if self.held.is_some_and(|held| held.ack <= self.sent.top()) {
            self.believe_held();
        }
    }

    /// Forgets the acknowledgment held if it was of what had not been sent, for the receiver now acknowledges less.
    #[cold]
    pub fn refuse_held(&mut self, refused: &mut u64) {
        if self.held.is_some_and(|held| held.unsent) {
            self.held = None;
            *refused += 1;
        }
    }

    /// SACK blocks about this side's data. The first may repeat what arrived twice (RFC 2883 section 4).
    #[cold]
    pub fn sack(&mut self, segment: &Segment, ack: u64, dsacks: &mut u64) {
        let blocks = segment.options.sack();
        let mut edges = [[0; 2]; 4];
        for (edge, block) in edges.iter_mut().zip(blocks) {
            *edge = [self.extend(block.left), self.extend(block.right)];
        }
        let edges = &edges[..blocks.len()];
        let mut first = 0;
        if let [[left, right], rest @ ..] = edges {
            let within = rest.first().is_some_and(|next| next[0] <= *left && *right <= next[1]);
            if *right <= ack || within {
                *dsacks += 1;
                self.summary.spurious += self.forget(*left, *right);
                first = 1;
            }
        }
        for &[left, right] in &edges[first..] {
            if left < right && right <= self.sent.top() {
                self.highest_sacked = self.highest_sacked.max(right);
            }
        }
    }

    /// Notes the window this side advertises.
    #[inline]
    pub fn advertise(&mut self, segment: &Segment, window: u64, time: i64) {
        if segment.flags & (flag::SYN | flag::RST) != 0 {
            return;
        }
        let summary = &mut self.summary;
        summary.window_min = Some(summary.window_min.map_or(window, |minimum| minimum.min(window)));
        summary.window_max = Some(summary.window_max.map_or(window, |maximum| maximum.max(window)));
        if window == 0 {
            summary.zero_windows += 1;
            self.zero_window_since.get_or_insert(time);
        } else if let Some(since) = self.zero_window_since.take() {
            summary.add_zero_window(since, time);
        }
    }
}
