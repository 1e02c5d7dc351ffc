//! The congestion states and what moves between them (Linux `tcp_fastretrans_alert`).

use tcplab_control::CaState;

use crate::Connection;
use crate::ack::Rexmit;
use crate::ack_flags::AckFlags;
use crate::connection::Notice;
use crate::scoreboard::LOST;
use crate::seq::{after, before};
use crate::timers::Pending;

impl Connection {
    pub(crate) fn in_recovery(&self) -> bool {
        self.sk.icsk_ca_state == CaState::Recovery as u32
    }

    pub(crate) fn in_recovery_or_loss(&self) -> bool {
        self.sk.icsk_ca_state >= CaState::Recovery as u32
    }

    pub(crate) fn in_cwnd_reduction(&self) -> bool {
        self.in_recovery() || self.sk.icsk_ca_state == CaState::Cwr as u32
    }

    pub(crate) fn state_is_open_or_cwr(&self) -> bool {
        self.sk.icsk_ca_state == CaState::Open as u32 || self.sk.icsk_ca_state == CaState::Cwr as u32
    }

    pub(crate) fn ca_state(&self) -> CaState {
        match self.sk.icsk_ca_state {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        }
    }

    pub(crate) fn set_ca_state(&mut self, state: CaState) {
        self.snd.control.set_state(&mut self.sk, state);
        if self.sk.icsk_ca_state != state as u32 {
            self.notice(Notice::CaState(state));
        }
        self.sk.icsk_ca_state = state as u32;
    }

    /// Decides on loss, recovery and undo after an ACK that is not plain progress.
    pub(crate) fn process_recovery(
        &mut self,
        prior_snd_una: u32,
        duplicates: u32,
        flags: &mut AckFlags,
        rexmit: &mut Rexmit,
    ) {
        let echo = flags.ece;
        if self.sk.packets_out == 0 {
            self.sk.sacked_out = 0;
        }
        if echo {
            // A reduction for ECN is not undone.
            self.sk.prior_ssthresh = 0;
        }
        if self.check_reneging(flags) {
            return;
        }
        if self.sk.icsk_ca_state == CaState::Open as u32 {
            self.snd.undo.forget_timestamp();
        } else if !before(self.sk.snd_una, self.sk.high_seq) && self.leave_reduction() {
            return;
        }
        match self.ca_state() {
            CaState::Recovery => {
                if !flags.una_advanced {
                    if !self.sack_ok {
                        self.add_emulated_sacks(duplicates, echo);
                    }
                } else if self.try_undo_partial(prior_snd_una) {
                    return;
                }
                if self.try_undo_dsack() {
                    self.keep_open();
                }
                self.identify_losses(flags);
                if !self.in_recovery() {
                    if self.sk.lost_out == 0 {
                        self.try_to_open(*flags);
                        return;
                    }
                    self.enter_recovery(echo);
                }
            }
            CaState::Loss => {
                self.process_loss(*flags, duplicates, rexmit);
                self.identify_losses(flags);
                if !(self.sk.icsk_ca_state == CaState::Open as u32 || flags.lost_retransmission) {
                    return;
                }
                self.open_or_recover(duplicates, echo, flags, rexmit);
                return;
            }
            _ => {
                self.open_or_recover(duplicates, echo, flags, rexmit);
                return;
            }
        }
        *rexmit = Rexmit::Lost;
    }

    fn open_or_recover(&mut self, duplicates: u32, echo: bool, flags: &mut AckFlags, rexmit: &mut Rexmit) {
        if !self.sack_ok {
            if flags.una_advanced {
                self.sk.sacked_out = 0;
            }
            self.add_emulated_sacks(duplicates, echo);
        }
        if self.sk.icsk_ca_state <= CaState::Disorder as u32 {
            self.try_undo_dsack();
        }
        self.identify_losses(flags);
        if self.sk.lost_out == 0 {
            self.try_to_open(*flags);
            return;
        }
        self.enter_recovery(echo);
        *rexmit = Rexmit::Lost;
    }

    /// Everything up to `high_seq` is acknowledged; true if the state must be held.
    fn leave_reduction(&mut self) -> bool {
        match self.ca_state() {
            // Held until something above is acknowledged, so that the CWR bit reaches the receiver.
            CaState::Cwr if self.sk.snd_una != self.sk.high_seq => {
                self.end_cwnd_reduction();
                self.set_ca_state(CaState::Open);
            }
            CaState::Recovery => {
                if !self.sack_ok {
                    self.sk.sacked_out = 0;
                }
                if self.try_undo_recovery() {
                    return true;
                }
                self.end_cwnd_reduction();
            }
            _ => {}
        }
        false
    }

    fn identify_losses(&mut self, flags: &mut AckFlags) {
        if self.snd.board.is_empty() {
            return;
        }
        if !self.sack_ok {
            self.newreno_mark_lost(flags.una_advanced);
            return;
        }
        let retransmissions = self.sk.retrans_out;
        if self.rack_mark_lost() {
            flags.restart_timer = false;
        }
        if retransmissions > self.sk.retrans_out {
            flags.lost_retransmission = true;
        }
    }

    pub(crate) fn enter_recovery(&mut self, echo: bool) {
        self.clear_retransmission_stamp_if_none();
        self.sk.prior_ssthresh = 0;
        self.start_undo();
        if !self.in_cwnd_reduction() {
            if !echo {
                self.sk.prior_ssthresh = self.current_ssthresh();
            }
            self.start_cwnd_reduction();
        }
        self.set_ca_state(CaState::Recovery);
    }

    /// The threshold to go back to: at least three quarters of the window (`tcp_current_ssthresh`).
    pub(crate) fn current_ssthresh(&self) -> u32 {
        if self.in_cwnd_reduction() {
            self.sk.snd_ssthresh
        } else {
            self.sk.snd_ssthresh.max((self.sk.snd_cwnd >> 1) + (self.sk.snd_cwnd >> 2))
        }
    }

    /// Open, or Disorder while something is SACKed, lost or retransmitted.
    pub(crate) fn keep_open(&mut self) {
        let disorder = self.sk.sacked_out + self.sk.lost_out > 0 || self.any_retransmission_done();
        let state = if disorder { CaState::Disorder } else { CaState::Open };
        if self.sk.icsk_ca_state != state as u32 {
            self.set_ca_state(state);
            self.sk.high_seq = self.sk.snd_nxt;
        }
    }

    fn try_to_open(&mut self, flags: AckFlags) {
        self.clear_retransmission_stamp_if_none();
        if flags.ece {
            self.enter_cwr();
        }
        if self.sk.icsk_ca_state != CaState::Cwr as u32 {
            self.keep_open();
        }
    }

    /// The peer discarded what it had SACKed (RFC 2018, section 8): time out soon and start over.
    fn check_reneging(&mut self, flags: &mut AckFlags) -> bool {
        if !flags.reneging || !flags.una_advanced {
            return false;
        }
        let us = u64::from(self.sk.srtt_us >> 4).max(10_000);
        self.arm_xmit(Pending::Retransmit, us);
        flags.restart_timer = false;
        true
    }

    /// An ACK in the Loss state: undo, F-RTO (RFC 5682, section 3.1), or go on retransmitting.
    fn process_loss(&mut self, flags: AckFlags, duplicates: u32, rexmit: &mut Rexmit) {
        let recovered = !before(self.sk.snd_una, self.sk.high_seq);
        if flags.una_advanced && self.try_undo_loss(false) {
            return;
        }
        if self.snd.frto {
            // Step 3.b: something never retransmitted was delivered, so the timeout was spurious.
            if flags.original_delivered && self.try_undo_loss(true) {
                return;
            }
            if after(self.sk.snd_nxt, self.sk.high_seq) {
                if flags.data_sacked || duplicates > 0 {
                    // Step 3.a: the loss was real.
                    self.snd.frto = false;
                }
            } else if flags.una_advanced && !recovered {
                // Step 2.b: try new data first.
                self.sk.high_seq = self.sk.snd_nxt;
                if self.has_unsent() && after(self.window_end(), self.sk.snd_nxt) {
                    *rexmit = Rexmit::New;
                    return;
                }
                self.snd.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery();
            return;
        }
        if !self.sack_ok {
            if after(self.sk.snd_nxt, self.sk.high_seq) && duplicates > 0 {
                self.add_emulated_sacks(duplicates, flags.ece);
            } else if flags.una_advanced {
                self.sk.sacked_out = 0;
            }
        }
        *rexmit = Rexmit::Lost;
    }

    // Without SACK: NewReno (RFC 6582), with each duplicate ACK counted as a SACKed segment.

    fn newreno_mark_lost(&mut self, advanced: bool) {
        let state = self.ca_state();
        let enough =
            (state as u32) < CaState::Recovery as u32 && self.sk.sacked_out >= self.snd.rack.reordering();
        if enough || (state == CaState::Recovery && advanced) {
            let head = self.snd.board.head();
            if !self.snd.board.get(head).has(LOST) {
                self.mark_lost(head);
            }
        }
    }

    fn add_emulated_sacks(&mut self, duplicates: u32, echo: bool) {
        if duplicates == 0 {
            return;
        }
        let before = self.sk.sacked_out;
        self.sk.sacked_out += duplicates;
        self.limit_emulated_sacks(0);
        let delivered = self.sk.sacked_out.saturating_sub(before);
        self.count_delivered(delivered, echo);
    }

    /// One ACKed segment was the hole; the others use up duplicates counted before.
    pub(crate) fn remove_emulated_sacks(&mut self, acked: u32, echo: bool) {
        if acked > 0 {
            self.count_delivered(acked.saturating_sub(self.sk.sacked_out).max(1), echo);
            self.sk.sacked_out = self.sk.sacked_out.saturating_sub(acked - 1);
        }
        self.limit_emulated_sacks(acked);
    }

    /// More duplicates than segments that could have caused them: the network reorders.
    fn limit_emulated_sacks(&mut self, acked: u32) {
        let holes = self.sk.lost_out.max(1).min(self.sk.packets_out);
        if self.sk.sacked_out + holes > self.sk.packets_out {
            self.sk.sacked_out = self.sk.packets_out - holes;
            self.snd.rack.note_excess_duplicates(self.sk.packets_out + acked);
        }
    }
}
