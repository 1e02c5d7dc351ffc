//! RACK loss detection (RFC 8985, with Linux's reordering window).

use crate::Connection;
use crate::scoreboard::{Id, LOST, RETRANS, SACKED, Sent};
use crate::seq::{after, before};
use crate::timers::Pending;

/// Recoveries for which a widened reordering window is kept (RFC 8985, section 6.2, step 4).
pub(crate) const PERSIST: u8 = 16;
/// Least delay of a timer (Linux `TCP_TIMEOUT_MIN_US`).
pub(crate) const TIMEOUT_MIN_US: u64 = 2_000;
/// DupAcks or SACKed segments that mean loss while no reordering was seen (`tcp_reordering`).
pub(crate) const DUP_THRESHOLD: u32 = 3;
/// Largest reordering degree (`tcp_max_reordering`).
pub(crate) const MAX_REORDERING: u32 = 300;

/// What is known of delivery in order of sending.
#[derive(Debug)]
pub(crate) struct Rack {
    /// The latest segment known to be delivered: its place in the order of sending (see `Sent::order`).
    order: u32,
    /// Its round-trip time.
    rtt_us: u32,
    /// Something was delivered since losses were last looked for.
    pub advanced: bool,
    /// Width of the reordering window in quarters of the minimum RTT.
    steps: u8,
    /// Recoveries left before the window falls back to one step.
    pub persist: u8,
    /// The peer reported a duplicate in this round.
    pub dsack_seen: bool,
    /// `delivered` when the window was last widened.
    widened_at: u32,
    /// Degree of reordering seen, segments.
    pub reordering: u32,
    /// Reordering was ever seen.
    pub reordering_seen: bool,
}

impl Rack {
    pub(crate) fn new() -> Rack {
        Rack {
            order: 0,
            rtt_us: 0,
            advanced: false,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            widened_at: 0,
            reordering: DUP_THRESHOLD,
            reordering_seen: false,
        }
    }
}

impl Connection {
    /// A segment was delivered (RFC 8985, section 6.2, steps 1 and 2).
    pub(crate) fn rack_advance(&mut self, sent: &Sent) {
        let rtt_us = (self.sk.tcp_mstamp - sent.sent_us) as u32;
        if rtt_us < self.sk.rtt_min_us && sent.retransmitted() {
            // Too soon to be the retransmission: the original was delivered.
            return;
        }
        let rack = &mut self.rack;
        rack.advanced = true;
        rack.rtt_us = rtt_us;
        if before(rack.order, sent.order) {
            rack.order = sent.order;
        }
    }

    /// Quarter of the minimum RTT for each step, at most the smoothed RTT; nothing while no reordering was
    /// seen and either recovery is under way or the duplicate threshold is met (`tcp_rack_reo_wnd`).
    fn rack_reordering_window_us(&self) -> u32 {
        let rack = &self.rack;
        if !rack.reordering_seen && (self.in_recovery_or_loss() || self.sk.sacked_out >= rack.reordering) {
            return 0;
        }
        let quarter = self.sk.rtt_min_us >> 2;
        quarter.saturating_mul(u32::from(rack.steps)).min(self.sk.srtt_us >> 3)
    }

    /// Microseconds until `sent` must be taken for lost; not positive: now.
    pub(crate) fn rack_time_left_us(&self, sent: &Sent, window_us: u32) -> i64 {
        i64::from(self.rack.rtt_us) + i64::from(window_us) - (self.sk.tcp_mstamp - sent.sent_us) as i64
    }

    /// Marks what was sent well before something delivered (RFC 8985, section 6.2, step 5). Returns the
    /// time until the last candidate's window runs out, 0 if there is none.
    ///
    /// The later a segment was sent, the more time it has: those to be marked come first in the order of sending, and
    /// the last candidate has the most. So the others are not looked at.
    fn rack_detect_loss(&mut self) -> u64 {
        let window_us = self.rack_reordering_window_us();
        while let Some(id) = self.board.oldest() {
            let sent = *self.board.get(id);
            if !before(sent.order, self.rack.order) {
                return 0;
            }
            if self.rack_time_left_us(&sent, window_us) > 0 {
                break;
            }
            self.mark_lost(id);
            self.board.unlink(id);
        }
        let last = self.board.sent_before(self.rack.order).map(|id| *self.board.get(id));
        last.map_or(0, |last| self.rack_time_left_us(&last, window_us).max(0) as u64)
    }

    /// Looks for losses if anything was delivered; true if the reordering timer was armed.
    pub(crate) fn rack_mark_lost(&mut self) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let timeout = self.rack_detect_loss();
        if timeout > 0 {
            let us = (timeout + TIMEOUT_MIN_US).min(self.rtt.rto_us);
            self.arm_xmit(Pending::Reordering, us);
        }
        timeout > 0
    }

    /// The reordering window of the candidates has run out (`tcp_rack_reo_timeout`).
    pub(crate) fn reordering_timeout(&mut self) {
        let in_flight = self.sk.packets_in_flight();
        let lost = self.sk.lost;
        self.rack_detect_loss();
        if in_flight != self.sk.packets_in_flight() {
            if !self.in_recovery() {
                self.enter_recovery(false);
                if !self.control.has_cong_control() {
                    let newly_lost = self.sk.lost.wrapping_sub(lost);
                    self.reduce_cwnd(1, newly_lost, 0);
                }
            }
            self.retransmit_lost();
        }
        if self.timers.pending != Pending::Retransmit {
            self.rearm_rto();
        }
    }

    /// Widens the reordering window by a step for each round with a DSACK; narrows it after 16 recoveries
    /// without (RFC 8985, section 6.2, step 4; `tcp_rack_update_reo_wnd`).
    pub(crate) fn rack_adapt_window(&mut self, prior_delivered: u32) {
        if prior_delivered == 0 {
            return;
        }
        let rack = &mut self.rack;
        if before(prior_delivered, rack.widened_at) {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.steps = rack.steps.saturating_add(1);
            rack.dsack_seen = false;
            rack.widened_at = self.sk.delivered;
            rack.persist = PERSIST;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }

    /// Takes a segment for lost (`tcp_mark_skb_lost`); a lost retransmission counts again.
    pub(crate) fn mark_lost(&mut self, id: Id) {
        let flags = self.board.get(id).flags;
        if flags & SACKED != 0 {
            return;
        }
        if flags & LOST == 0 {
            self.board.change_flags(id, LOST, 0);
            self.sk.lost_out += 1;
        } else if flags & RETRANS != 0 {
            self.board.change_flags(id, 0, RETRANS);
            self.sk.retrans_out -= 1;
        } else {
            return;
        }
        self.sk.lost = self.sk.lost.wrapping_add(1);
        self.counters.losses_detected += 1;
    }

    /// Something at `low` was delivered after data above it without having been retransmitted: the network
    /// reorders (`tcp_check_sack_reordering`).
    pub(crate) fn note_reordering(&mut self, low: u32) {
        let high = self.highest_sacked();
        if !before(low, high) {
            return;
        }
        let distance = high.wrapping_sub(low);
        let mss = self.sk.mss_cache;
        if distance > self.rack.reordering.saturating_mul(mss) {
            self.rack.reordering = distance.div_ceil(mss).min(MAX_REORDERING);
        }
        self.rack.reordering_seen = true;
    }

    /// End of the highest SACKed segment; `snd_una` if none is SACKed.
    pub(crate) fn highest_sacked(&self) -> u32 {
        if self.sk.sacked_out == 0 || !after(self.snd.highest_sack, self.sk.snd_una) {
            self.sk.snd_una
        } else {
            self.snd.highest_sack
        }
    }
}
