//! RACK loss detection (RFC 8985, with Linux's reordering window).

use crate::Connection;
use crate::ack_flags::AckFlags;
use crate::scoreboard::{Id, LOST, RETRANS, SACKED, Sent};
use crate::seq::{after, before};
use crate::timers::Pending;

/// Recoveries for which a widened reordering window is kept (RFC 8985, section 6.2, step 4).
const PERSIST: u8 = 16;
/// Minimum delay of a timer (Linux `TCP_TIMEOUT_MIN_US`).
pub(crate) const TIMEOUT_MIN_US: u64 = 2_000;
/// DupAcks or SACKed segments that mean loss while no reordering was seen (`tcp_reordering`).
const DUP_THRESHOLD: u32 = 3;
/// Largest reordering degree (`tcp_max_reordering`).
const MAX_REORDERING: u32 = 300;

/// State of RACK: delivery in order of sending.
#[derive(Debug)]
pub(crate) struct Rack {
    /// The latest segment known to be delivered: its place in the order of sending (see `Sent::order`).
    order: u32,
    /// Its round-trip time.
    rtt_us: u32,
    /// Something was delivered since losses were last looked for.
    advanced: bool,
    /// Width of the reordering window in quarters of the minimum RTT.
    steps: u8,
    /// Recoveries left before the window falls back to one step.
    persist: u8,
    /// The peer reported a duplicate in this round.
    dsack_seen: bool,
    /// `delivered` when the window was last widened.
    widened_at: u32,
    /// Degree of reordering seen, segments.
    reordering: u32,
    /// Reordering was ever seen.
    reordering_seen: bool,
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

    /// A segment, the `order`th that was sent, was delivered after `rtt_us`.
    fn note_delivered(&mut self, order: u32, rtt_us: u32) {
        self.advanced = true;
        self.rtt_us = rtt_us;
        if before(self.order, order) {
            self.order = order;
        }
    }

    /// Quarter of the minimum RTT for each step, at most the smoothed RTT (`tcp_rack_reo_wnd`).
    ///
    /// `at_once`: losses need no more confirmation, because recovery is under way or the duplicate threshold is met.
    /// Then there is no window as long as no reordering was seen.
    fn reordering_window_us(&self, rtt_min_us: u32, srtt_us: u32, at_once: bool) -> u32 {
        if at_once && !self.reordering_seen {
            return 0;
        }
        (rtt_min_us >> 2).saturating_mul(u32::from(self.steps)).min(srtt_us)
    }

    /// Widens the window by a step for each round with a DSACK; narrows it after 16 recoveries without
    /// (RFC 8985, section 6.2, step 4; `tcp_rack_update_reo_wnd`).
    fn adapt_window(&mut self, prior_delivered: u32, delivered: u32) {
        if before(prior_delivered, self.widened_at) {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.steps = self.steps.saturating_add(1);
            self.dsack_seen = false;
            self.widened_at = delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Something was delivered `bytes` below what had been delivered before.
    fn note_reordering(&mut self, bytes: u32, mss: u32) {
        if bytes > self.reordering.saturating_mul(mss) {
            self.reordering = bytes.div_ceil(mss).min(MAX_REORDERING);
        }
        self.reordering_seen = true;
    }

    /// The peer reported a duplicate, which is not a probe's.
    pub(crate) fn note_dsack(&mut self) {
        self.dsack_seen |= self.reordering_seen;
    }

    /// A recovery has ended, and was not spurious.
    pub(crate) fn note_recovery(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery proved spurious by DSACK.
    pub(crate) fn note_spurious_recovery(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// Losses are to be looked for with the next ACK, whatever it delivers.
    pub(crate) fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Degree of reordering seen, segments; the duplicates that mean loss where the peer does not SACK.
    pub(crate) fn reordering(&self) -> u32 {
        self.reordering
    }

    /// The degree exceeds the usual duplicate threshold.
    pub(crate) fn reorders(&self) -> bool {
        self.reordering > DUP_THRESHOLD
    }

    /// A timeout after `sacked` duplicates or more shows that the degree was overestimated.
    pub(crate) fn note_timeout(&mut self, sacked: u32) {
        if sacked >= DUP_THRESHOLD {
            self.reordering = self.reordering.min(DUP_THRESHOLD);
        }
    }

    /// Without SACK: there were more duplicates than `segments` out can explain.
    pub(crate) fn note_excess_duplicates(&mut self, segments: u32) {
        self.reordering = segments.min(MAX_REORDERING);
        self.reordering_seen = true;
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
        self.snd.rack.note_delivered(sent.order, rtt_us);
    }

    fn rack_reordering_window_us(&self) -> u32 {
        let at_once = self.in_recovery_or_loss() || self.sk.sacked_out >= self.snd.rack.reordering();
        self.snd.rack.reordering_window_us(self.sk.rtt_min_us, self.sk.srtt_us >> 3, at_once)
    }

    /// Microseconds until `sent` must be taken for lost; not positive: now.
    pub(crate) fn rack_time_left_us(&self, sent: &Sent, window_us: u32) -> i64 {
        i64::from(self.snd.rack.rtt_us) + i64::from(window_us) - (self.sk.tcp_mstamp - sent.sent_us) as i64
    }

    /// Marks what was sent well before something delivered (RFC 8985, section 6.2, step 5). Returns the
    /// time until the last candidate's window runs out, 0 if there is none.
    ///
    /// The later a segment was sent, the more time it has: those to be marked come first in the order of sending, and
    /// the last candidate has the most. So the others are not looked at.
    fn rack_detect_loss(&mut self) -> u64 {
        let window_us = self.rack_reordering_window_us();
        while let Some(id) = self.snd.board.oldest() {
            let sent = *self.snd.board.get(id);
            if !before(sent.order, self.snd.rack.order) {
                return 0;
            }
            if self.rack_time_left_us(&sent, window_us) > 0 {
                break;
            }
            self.mark_lost(id);
            self.snd.board.unlink(id);
        }
        let last = self.snd.board.sent_before(self.snd.rack.order).map(|id| *self.snd.board.get(id));
        last.map_or(0, |last| self.rack_time_left_us(&last, window_us).max(0) as u64)
    }

    /// Looks for losses if anything was delivered; true if the reordering timer was armed.
    pub(crate) fn rack_mark_lost(&mut self) -> bool {
        if !self.snd.rack.advanced {
            return false;
        }
        self.snd.rack.advanced = false;
        let timeout = self.rack_detect_loss();
        if timeout > 0 {
            let us = (timeout + TIMEOUT_MIN_US).min(self.snd.rtt.rto_us());
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
                if !self.snd.control.has_cong_control() {
                    let newly_lost = self.sk.lost.wrapping_sub(lost);
                    self.reduce_cwnd(1, newly_lost, AckFlags::default());
                }
            }
            self.retransmit_lost();
        }
        if self.timers.pending != Pending::Retransmit {
            self.rearm_rto();
        }
    }

    /// Adapts the reordering window to an ACK whose rate sample began at `prior_delivered`; 0: it has none.
    pub(crate) fn rack_adapt_window(&mut self, prior_delivered: u32) {
        if prior_delivered != 0 {
            self.snd.rack.adapt_window(prior_delivered, self.sk.delivered);
        }
    }

    /// Takes a segment for lost (`tcp_mark_skb_lost`); a lost retransmission counts again.
    pub(crate) fn mark_lost(&mut self, id: Id) {
        let flags = self.snd.board.get(id).flags;
        if flags & SACKED != 0 {
            return;
        }
        if flags & LOST == 0 {
            self.snd.board.change_flags(id, LOST, 0);
            self.sk.lost_out += 1;
        } else if flags & RETRANS != 0 {
            self.snd.board.change_flags(id, 0, RETRANS);
            self.sk.retrans_out -= 1;
        } else {
            return;
        }
        self.sk.lost = self.sk.lost.wrapping_add(1);
        self.snd.counters.losses_detected += 1;
    }

    /// Something at `low` was delivered after data above it without having been retransmitted: the network
    /// reorders (`tcp_check_sack_reordering`).
    pub(crate) fn note_reordering(&mut self, low: u32) {
        let high = self.highest_sacked();
        if before(low, high) {
            self.snd.rack.note_reordering(high.wrapping_sub(low), self.sk.mss_cache);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTT_US: u32 = 40_000;
    const SRTT_US: u32 = 25_000;

    /// A round in which the peer reports a duplicate.
    fn round_with_dsack(rack: &mut Rack, delivered: u32) {
        rack.note_dsack();
        rack.adapt_window(delivered, delivered + 100);
    }

    #[test]
    fn losses_need_no_confirmation_where_nothing_was_ever_reordered() {
        let mut rack = Rack::new();
        assert_eq!(rack.reordering_window_us(MIN_RTT_US, SRTT_US, true), 0);
        assert_eq!(rack.reordering_window_us(MIN_RTT_US, SRTT_US, false), MIN_RTT_US / 4);
        rack.note_reordering(3_000, 1_000);
        assert_eq!(rack.reordering_window_us(MIN_RTT_US, SRTT_US, true), MIN_RTT_US / 4);
    }

    #[test]
    fn each_round_with_a_dsack_widens_the_window_up_to_the_smoothed_rtt() {
        let mut rack = Rack::new();
        rack.note_reordering(3_000, 1_000);
        round_with_dsack(&mut rack, 100);
        assert_eq!(rack.reordering_window_us(MIN_RTT_US, SRTT_US, true), MIN_RTT_US / 2);
        // The same round still.
        round_with_dsack(&mut rack, 150);
        assert_eq!(rack.reordering_window_us(MIN_RTT_US, SRTT_US, true), MIN_RTT_US / 2);
        round_with_dsack(&mut rack, 200);
        assert_eq!(rack.reordering_window_us(MIN_RTT_US, SRTT_US, true), SRTT_US);
    }

    #[test]
    fn sixteen_recoveries_without_a_dsack_narrow_it_again() {
        let mut rack = Rack::new();
        rack.note_reordering(3_000, 1_000);
        round_with_dsack(&mut rack, 100);
        for recovery in 0..16 {
            rack.adapt_window(300 + recovery, 301 + recovery);
            assert_eq!(rack.reordering_window_us(MIN_RTT_US, SRTT_US, true), MIN_RTT_US / 2);
            rack.note_recovery();
        }
        rack.adapt_window(400, 401);
        assert_eq!(rack.reordering_window_us(MIN_RTT_US, SRTT_US, true), MIN_RTT_US / 4);
    }

    #[test]
    fn a_timeout_takes_an_overestimated_degree_of_reordering_back() {
        let mut rack = Rack::new();
        rack.note_reordering(50_000, 1_000);
        assert_eq!((rack.reordering(), rack.reorders()), (50, true));
        rack.note_timeout(2);
        assert_eq!(rack.reordering(), 50);
        rack.note_timeout(3);
        assert_eq!((rack.reordering(), rack.reorders()), (3, false));
    }
}
