//! Retransmitted, overtaken, or copied by the network? And if retransmitted, why?
//!
//! The rules are those of Jaiswal et al., brought up to date by what SACK, timestamps and tail loss probes show.
//! Source: Jaiswal et al., "Measurement and Classification of Out-of-Sequence Packets in a Tier-1 IP Backbone" (IMC
//! 2002).

use super::half::{BareAck, Half};
use super::sent::Piece;
use super::summary::Cause;
use crate::parse::Segment;

/// Linux's `TCP_RTO_MIN`; RFC 6298 would have a second.
pub(super) const RTO_MIN: i64 = 200_000_000;
/// RFC 6298 section 2.1.
const RTO_INITIAL: i64 = 1_000_000_000;
/// Without an RTT, what is overtaken by less than this was reordered: the value Wireshark documents.
const REORDERING_DEFAULT: i64 = 3_000_000;
/// RFC 5681 section 3.2.
pub(super) const DUPLICATE_THRESHOLD: u32 = 3;

/// How far the sender and the receiver are from where packets were captured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Distance {
    /// To the sender and back (ns); from the handshake or from echoed timestamps.
    pub sender: Option<i64>,
    /// To the receiver and back (ns), smoothed.
    pub receiver: Option<i64>,
    /// To the receiver and back (ns), the minimum.
    pub receiver_minimum: Option<i64>,
}

impl Distance {
    fn round_trip(&self) -> Option<i64> {
        self.receiver.map(|receiver| receiver.saturating_add(self.sender_part()))
    }

    fn sender_part(&self) -> i64 {
        self.sender.unwrap_or(0)
    }

    fn minimum_round_trip(&self) -> Option<i64> {
        self.receiver_minimum.map(|receiver| receiver.saturating_add(self.sender_part()))
    }
}

/// Whether a packet that fills a gap was only overtaken: it was sent once, before what showed the gap.
///
/// Timestamps and IPv4 identifications count up as packets are sent, so they decide where they differ. Else
/// time does: the sender cannot learn of the gap and repair it in less than a round trip.
pub(super) fn is_reordered(segment: &Segment, gap: &Piece, time: i64, distance: &Distance) -> bool {
    if segment.options.has_timestamps {
        let later = segment.options.timestamp.wrapping_sub(gap.last_timestamp) as i32;
        if later != 0 {
            return later < 0;
        }
    }
    let later = segment.identification.wrapping_sub(gap.identification) as i16;
    if segment.identification != 0 && gap.identification != 0 && later != 0 {
        return later < 0;
    }
    let minimum = distance.minimum_round_trip().map_or(REORDERING_DEFAULT, |rtt| rtt - rtt / 8);
    // Of the same tick of the sender's clock. Until its distance is known, a round trip is taken to be longer than one.
    let unknown = segment.options.has_timestamps && distance.sender.is_none();
    unknown || time.saturating_sub(gap.last) < minimum.max(1)
}

/// Whether a packet is a copy that the network made of one seen. A copy is the same in every field that a sender
/// would have changed, and comes sooner than any sender can know of a loss.
pub(super) fn is_copy(segment: &Segment, before: &Piece, time: i64, distance: &Distance) -> bool {
    let same =
        segment.options.timestamp == before.last_timestamp && segment.identification == before.identification;
    same && is_sooner_than_answer(segment, before.last, time, distance)
}

/// Whether an acknowledgment is the network's copy of the one before: two of one receiver differ in identification.
#[cold]
pub(super) fn is_copied_ack(segment: &Segment, before: &BareAck, time: i64, distance: &Distance) -> bool {
    let same = segment.ack == before.ack
        && segment.options.timestamp == before.timestamp
        && segment.identification == before.identification;
    same && is_sooner_than_answer(segment, before.time, time, distance)
}

/// Whether less than half a round trip has passed, as far as that is known.
fn is_sooner_than_answer(segment: &Segment, since: i64, time: i64, distance: &Distance) -> bool {
    let known = distance.minimum_round_trip();
    let known = known.filter(|_| !segment.options.has_timestamps || distance.sender.is_some());
    let soonest = known.map_or(REORDERING_DEFAULT, |rtt| rtt / 2);
    time.saturating_sub(since) < soonest
}

/// Why `start` to `end` was retransmitted at `time`.
///
/// A sender retransmits after an acknowledgment that shows loss, or when a timer expires: a timer shows as quiet in
/// both directions, longer than a round trip. The probe timer (about two round trips, RFC 8985 section 7.2)
/// sends the last segment, the retransmission timer (RFC 6298) the first.
pub(super) fn cause(
    half: &mut Half,
    peer_last_seen: i64,
    [start, end]: [u64; 2],
    segment: &Segment,
    before: Option<&Piece>,
    time: i64,
    distance: &Distance,
) -> Cause {
    let top = half.sent.top();
    let timeout = distance
        .round_trip()
        .map_or(RTO_INITIAL, |rtt| rtt.saturating_add(half.round_trip.four_variations().max(RTO_MIN)));
    let quiet =
        time.saturating_sub(half.last_sent.max(peer_last_seen)).saturating_sub(distance.sender_part());
    // The timer runs from the last acknowledgment of new data or the last sending of the first segment (RFC 6298
    // section 5). Of a segment that was lost before it could be seen, only the silence shows it.
    let timer_began = before.map(|before| before.last.max(half.summary.last_acked.unwrap_or(before.last)));
    let waited =
        timer_began.map_or(quiet, |began| time.saturating_sub(began).saturating_sub(distance.sender_part()));
    let first = start <= half.una;
    let sacked_above = half.highest_sacked > end.min(top.saturating_sub(1));
    // RFC 8985 section 6.2: what was sent later has arrived.
    let outrun = before.is_some_and(|before| before.last < half.delivered_sent);
    // The acknowledgment that filled the gap may have come here before the retransmission did.
    let reported = half.duplicate_acks >= DUPLICATE_THRESHOLD || start < half.signalled_until;
    let signalled = sacked_above || outrun || reported;
    let fired = segment.has(crate::parse::flag::SYN) || first && waited >= timeout - timeout / 8;
    let cause = if fired {
        half.summary.timeouts += 1;
        Cause::Timeout
    } else if start < half.timeout_until {
        Cause::Timeout
    } else if signalled || start < half.recovery_until {
        Cause::Fast
    } else if end == top && quiet > distance.round_trip().unwrap_or(0) {
        Cause::Probe
    } else if first && quiet > distance.round_trip().unwrap_or(RTO_MIN) {
        Cause::Timeout
    } else {
        Cause::Unknown
    };
    match cause {
        Cause::Timeout => half.timeout_until = half.timeout_until.max(top),
        Cause::Fast if start >= half.recovery_until => half.recovery_until = top,
        _ => {}
    }
    cause
}
