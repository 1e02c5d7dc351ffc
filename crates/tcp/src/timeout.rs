//! The retransmission timeout and the Loss state (RFC 6298, section 5; Linux `tcp_retransmit_timer`).

use tcplab_control::{CaEvent, CaState};

use crate::Connection;
use crate::connection::{Notice, State};
use crate::scoreboard::SACKED;
use crate::seq::after;
use crate::timers::{Pending, RTO_MAX_US};

/// Timeouts after which a connection is given up (`tcp_retries2`).
const RETRIES: u32 = 15;
/// Shortest timeout the give-up time is reckoned with (Linux `TCP_RTO_MIN`), microseconds.
const GIVE_UP_BASE_US: u64 = 200_000;

/// How long `retries` doublings from the minimum timeout last (Linux `tcp_model_timeout`).
pub(crate) const fn give_up_after_us(retries: u32, base_us: u64) -> u64 {
    let doublings = (RTO_MAX_US / base_us).ilog2();
    if retries <= doublings {
        ((2 << retries) - 1) * base_us
    } else {
        ((2 << doublings) - 1) * base_us + (retries - doublings) as u64 * RTO_MAX_US
    }
}

impl Connection {
    /// Starts the timeout from the first unacknowledged segment's sending if a probe or reordering timer
    /// had taken its place, else from now (`tcp_rearm_rto`).
    #[inline(never)]
    pub(crate) fn rearm_rto(&mut self) {
        if self.sk.packets_out == 0 {
            self.timers.stop_xmit();
            return;
        }
        let us = match self.timers.pending {
            Pending::Reordering | Pending::LossProbe => self.rto_left_us().max(1) as u64,
            _ => self.snd.rtt.rto_us(),
        };
        self.arm_xmit_paced(Pending::Retransmit, us);
    }

    pub(crate) fn retransmission_timeout(&mut self) {
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.handshake_timeout();
            return;
        }
        if self.snd.board.is_empty() {
            return;
        }
        if self.given_up() {
            self.abort();
            return;
        }
        self.note_timeout();
        self.enter_loss();
        if self.sk.icsk_retransmits == 0 {
            self.snd.first_timeout_us = self.sk.tcp_mstamp;
        }
        self.sk.icsk_retransmits += 1;
        let head = self.snd.board.head();
        self.retransmit(head);
        self.snd.rtt.back_off();
        self.arm_xmit(Pending::Retransmit, self.snd.rtt.rto_us());
    }

    pub(crate) fn note_timeout(&mut self) {
        self.notice(Notice::Rto);
        self.snd.counters.rtos += 1;
    }

    fn given_up(&self) -> bool {
        self.sk.icsk_retransmits > 0
            && self.sk.tcp_mstamp - self.snd.first_timeout_us >= give_up_after_us(RETRIES, GIVE_UP_BASE_US)
    }

    /// Everything not recently sent is lost; slow start from one segment (`tcp_enter_loss`).
    fn enter_loss(&mut self) {
        let new_recovery = !self.in_recovery_or_loss();
        self.mark_all_lost();
        let state = self.sk.icsk_ca_state;
        if state <= CaState::Disorder as u32
            || !after(self.sk.high_seq, self.sk.snd_una)
            || (state == CaState::Loss as u32 && self.sk.icsk_retransmits == 0)
        {
            self.sk.prior_ssthresh = self.current_ssthresh();
            self.sk.prior_cwnd = self.sk.snd_cwnd;
            self.sk.snd_ssthresh = self.snd.control.ssthresh(&mut self.sk);
            self.snd.control.cwnd_event(&mut self.sk, CaEvent::Loss);
            self.start_undo();
        }
        self.sk.snd_cwnd = self.sk.packets_in_flight() + 1;
        self.sk.snd_cwnd_cnt = 0;
        self.snd.cwnd_use.renew(self.sk.tcp_mstamp);
        if state <= CaState::Disorder as u32 {
            self.snd.rack.note_timeout(self.sk.sacked_out);
        }
        self.set_ca_state(CaState::Loss);
        self.sk.high_seq = self.sk.snd_nxt;
        self.snd.tail_loss.forget();
        self.ecn_queue_cwr();
        self.snd.frto = new_recovery || self.sk.icsk_retransmits > 0;
    }

    fn mark_all_lost(&mut self) {
        let head = self.snd.board.head();
        let reneging = self.snd.board.get(head).has(SACKED);
        if reneging {
            self.sk.sacked_out = 0;
            self.snd.reneged = true;
            self.snd.sack_cache.forget();
        } else if !self.sack_ok {
            self.sk.sacked_out = 0;
        }
        for id in head..self.snd.board.tail() {
            if reneging {
                self.snd.board.change_flags(id, 0, SACKED);
            } else if id != head && self.rack_time_left_us(self.snd.board.get(id), 0) > 0 {
                continue;
            }
            self.mark_lost(id);
            self.snd.board.park(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_retries_last_about_fifteen_minutes() {
        // ip-sysctl(7) gives 924.6 s for tcp_retries2 = 15.
        assert_eq!(give_up_after_us(RETRIES, GIVE_UP_BASE_US), 924_600_000);
    }
}
