//! Undoing a reduction that proves spurious: by DSACK, by timestamps (Eifel, RFC 3522), or by F-RTO.

use tcplab_control::CaState;

use crate::Connection;
use crate::connection::Notice;
use crate::scoreboard::{EVER_RETRANS, LOST};
use crate::seq::before;

/// State needed to tell whether a recovery was spurious.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    /// `snd_una` when the recovery began; none: nothing to undo.
    pub marker: Option<u32>,
    /// Retransmissions not yet reported as duplicates; none: nothing was retransmitted yet.
    pub retransmissions: Option<u32>,
    /// Timestamp of the first retransmission (`retrans_stamp`).
    pub first_retransmission_ts: Option<u32>,
    /// First timeout since something was last acknowledged, microseconds.
    pub first_timeout_us: u64,
}

impl Connection {
    pub(crate) fn start_undo(&mut self) {
        self.undo.marker = Some(self.sk.snd_una);
        let out = self.sk.retrans_out + u32::from(self.tail_loss.retransmission_is_out());
        self.undo.retransmissions = (out > 0).then_some(out);
    }

    /// The peer reported `segments` retransmissions, ending at or before `end_seq`, as duplicates.
    pub(crate) fn count_duplicates(&mut self, segments: u32) {
        if let Some(n) = self.undo.retransmissions.as_mut() {
            *n = n.saturating_sub(segments);
        }
    }

    /// Every retransmission arrived twice, or the originals were acknowledged.
    fn may_undo(&self) -> bool {
        self.undo.marker.is_some() && (self.undo.retransmissions == Some(0) || self.original_was_delayed())
    }

    /// The ACK echoes a timestamp from before the first retransmission, or nothing was retransmitted
    /// (`tcp_packet_delayed`). Without SACK the stamp says nothing once `high_seq` is acknowledged, because
    /// `newreno_holds_state` clears it there.
    fn original_was_delayed(&self) -> bool {
        match self.undo.first_retransmission_ts {
            Some(stamp) => self.rcv.saw_timestamp && self.rcv.ts_ecr != 0 && before(self.rcv.ts_ecr, stamp),
            None => self.sack_ok || before(self.sk.snd_una, self.sk.high_seq),
        }
    }

    pub(crate) fn any_retransmission_done(&self) -> bool {
        self.sk.retrans_out > 0 || self.board.first().is_some_and(|sent| sent.has(EVER_RETRANS))
    }

    pub(crate) fn clear_retransmission_stamp_if_none(&mut self) {
        if !self.any_retransmission_done() {
            self.undo.first_retransmission_ts = None;
        }
    }

    /// Gives window and threshold back (`tcp_undo_cwnd_reduction`).
    fn undo_cwnd_reduction(&mut self, unmark_loss: bool) {
        if unmark_loss {
            for id in self.board.head()..self.board.tail() {
                self.board.change_flags(id, 0, LOST);
            }
            self.board.unpark_all();
            self.sk.lost_out = 0;
        }
        if self.sk.prior_ssthresh != 0 {
            self.sk.snd_cwnd = self.control.undo_cwnd(&mut self.sk);
            if self.sk.prior_ssthresh > self.sk.snd_ssthresh {
                self.sk.snd_ssthresh = self.sk.prior_ssthresh;
                self.ecn.withdraw_cwr();
            }
        }
        self.cwnd_use.stamp_us = self.sk.tcp_mstamp;
        self.undo.marker = None;
        self.rack.look_again();
        self.notice(Notice::Undo);
    }

    /// Without SACK the state is held until something above `high_seq` is acknowledged, to prevent false
    /// fast retransmissions (RFC 6582, section 4).
    fn newreno_holds_state(&mut self) -> bool {
        if self.sk.snd_una == self.sk.high_seq && !self.sack_ok {
            self.clear_retransmission_stamp_if_none();
            return true;
        }
        false
    }

    /// The recovery's last segment is acknowledged; true if the state must be held.
    pub(crate) fn try_undo_recovery(&mut self) -> bool {
        if self.may_undo() {
            self.undo_cwnd_reduction(false);
        } else {
            self.rack.note_recovery();
        }
        if self.newreno_holds_state() {
            return true;
        }
        self.set_ca_state(CaState::Open);
        self.snd.reneged = false;
        false
    }

    /// A duplicate of every retransmission was reported.
    pub(crate) fn try_undo_dsack(&mut self) -> bool {
        if self.undo.marker.is_some() && self.undo.retransmissions == Some(0) {
            self.rack.note_spurious_recovery();
            self.undo_cwnd_reduction(false);
            return true;
        }
        false
    }

    /// Undoes a timeout: because of `frto`, or of duplicates or timestamps.
    pub(crate) fn try_undo_loss(&mut self, frto: bool) -> bool {
        if !frto && !self.may_undo() {
            return false;
        }
        self.undo_cwnd_reduction(true);
        self.sk.icsk_retransmits = 0;
        if self.newreno_holds_state() {
            return true;
        }
        if frto || self.sack_ok {
            self.set_ca_state(CaState::Open);
            self.snd.reneged = false;
        }
        true
    }

    /// A partial ACK that acknowledges an original: reordering, not loss. True if nothing more should be
    /// marked or retransmitted on this ACK.
    pub(crate) fn try_undo_partial(&mut self, prior_snd_una: u32) -> bool {
        if self.undo.marker.is_none() || !self.original_was_delayed() {
            return false;
        }
        self.note_reordering(prior_snd_una);
        if self.sk.retrans_out > 0 {
            return true;
        }
        self.clear_retransmission_stamp_if_none();
        self.undo_cwnd_reduction(true);
        self.keep_open();
        false
    }
}
