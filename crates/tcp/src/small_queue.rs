//! TCP small queues: a connection keeps little in its host's own queue (Linux `tcp_small_queue_check`).
//!
//! Packets that wait there are delay without use, and keep other connections of the host waiting. A burst that would be
//! too much stays in TCP until the host has sent some of what it has.

use tcplab_control::sock::PACING_NONE;
use tcplab_units::Time;

use crate::Connection;
use crate::transmit::Push;

/// Maximum that connections without pacing keep there (`tcp_limit_output_bytes`).
const LIMIT: u64 = 4 << 20;

/// The share of a connection in its host's queue. Linux counts the kernel's memory for it; here it is payload.
#[derive(Debug, Default)]
pub(crate) struct SmallQueue {
    /// Payload bytes; none: the host sends at once whatever it is given.
    queued: Option<u64>,
    /// A burst waits for some of it to leave.
    holds_back: bool,
}

impl SmallQueue {
    pub(crate) fn add(&mut self, bytes: u32) {
        if let Some(queued) = &mut self.queued {
            *queued += u64::from(bytes);
        }
    }
}

impl Connection {
    /// Packets that `poll_transmit` yields wait in the host; `departed` reports those that have left.
    pub fn behind_queue(&mut self) {
        self.snd.small_queue.queued = Some(0);
    }

    /// The host has sent, or dropped, `bytes` of payload.
    pub fn departed(&mut self, bytes: u32, now: Time) {
        let Some(queued) = &mut self.snd.small_queue.queued else { return };
        *queued = queued.saturating_sub(u64::from(bytes));
        if !std::mem::take(&mut self.snd.small_queue.holds_back) {
            return;
        }
        self.set_now(now);
        if self.sk.lost_out > self.sk.retrans_out && self.sk.snd_cwnd > self.sk.packets_in_flight() {
            self.retransmit_lost();
        }
        if self.established && self.has_unsent() {
            self.write_xmit(Push::Pending);
        }
    }

    /// Whether a burst of `bytes` waits for others to leave the host. Two such bursts may be there, or what the
    /// pacing rate sends in about a millisecond; for retransmissions twice as much. A lone burst never waits.
    /// Linux's count is of a byte more (`sk_wmem_alloc` begins with 1), so a third waits.
    pub(crate) fn small_queue_holds_back(&mut self, bytes: u32, retransmission: bool) -> bool {
        self.snd
            .small_queue
            .queued
            .is_some_and(|queued| self.exceeds_small_queue(queued, bytes, retransmission))
    }

    #[inline(never)]
    fn exceeds_small_queue(&mut self, queued: u64, bytes: u32, retransmission: bool) -> bool {
        let mut limit = (self.sk.sk_pacing_rate >> self.sk.sk_pacing_shift.min(63)).max(2 * u64::from(bytes));
        if self.sk.sk_pacing_status == PACING_NONE {
            limit = limit.min(LIMIT);
        }
        self.snd.small_queue.holds_back =
            queued >= limit << u32::from(retransmission) && self.snd.buffer.bursts_out() > 1;
        self.snd.small_queue.holds_back
    }
}
