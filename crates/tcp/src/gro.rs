//! Generic receive offload: neighbouring segments that arrive together are handled, and acknowledged, as one.

use tcplab_units::{Span, Time};

use crate::Connection;
use crate::segment::{ACK, CWR, ECE, PSH, Segment};

/// A super-packet waits this long for its next segment, about a NIC's interrupt moderation.
const WAIT: Span = Span::from_us(20);
/// Largest super-packet, bytes (`GRO_LEGACY_MAX_SIZE`).
const SIZE_MAX: u32 = 65_536;

/// The super-packet being gathered.
#[derive(Debug, Default)]
pub(crate) struct Gro {
    held: Option<Segment>,
    /// Payload of its segments.
    size: u32,
}

impl Connection {
    /// Gathers `segment`, or passes it on.
    pub(crate) fn gro_receive(&mut self, segment: &Segment) {
        let plain = self.is_plain(segment);
        if let Some(held) = self.gro.held.as_mut() {
            let follows = segment.seq == held.seq.wrapping_add(held.len)
                && plain
                && (segment.flags ^ held.flags) & !PSH == 0
                && segment.ae == held.ae
                && segment.accecn == held.accecn
                && segment.ack == held.ack
                && segment.ecn == held.ecn
                && segment.window == held.window
                && segment.has_timestamp == held.has_timestamp
                && segment.ts_val == held.ts_val
                && segment.ts_ecr == held.ts_ecr
                && segment.len <= self.gro.size
                && held.len + segment.len <= SIZE_MAX;
            if follows {
                held.len += segment.len;
                held.flags |= segment.flags & PSH;
                held.more = segment.more;
                let short = segment.len < self.gro.size;
                self.wait_or_flush(short);
                return;
            }
            self.gro_flush();
        }
        if plain && segment.flags & PSH == 0 {
            self.gro.size = segment.len;
            self.gro.held = Some(*segment);
            self.wait_or_flush(false);
        } else {
            self.dispatch(segment, segment.len);
        }
    }

    /// Passes on at once what cannot grow; the end of a burst may only be followed at the same instant.
    fn wait_or_flush(&mut self, short: bool) {
        let Some(held) = self.gro.held else { return };
        if short || held.flags & PSH != 0 {
            self.gro_flush();
        } else {
            self.timers.gro = if held.more { self.now + WAIT } else { self.now };
        }
    }

    pub(crate) fn gro_flush(&mut self) {
        self.timers.gro = Time::NEVER;
        if let Some(held) = self.gro.held.take() {
            let size = self.gro.size;
            self.dispatch(&held, size);
        }
    }

    /// Whether it may be gathered: of the accurate ECN field it matters only whether it is the same as its neighbour's.
    fn is_plain(&self, segment: &Segment) -> bool {
        let ecn = if self.accurate() { CWR | ECE } else { 0 };
        segment.len > 0 && segment.flags & !(PSH | ecn) == ACK && segment.sack_count == 0
    }
}
