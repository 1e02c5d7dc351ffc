//! Undoing a reduction that proves spurious: by DSACK, by timestamps (Eifel, RFC 3522), or by F-RTO.

use tcplab_control::CaState;

use crate::Connection;
use crate::connection::Notice;
use crate::scoreboard::{EVER_RETRANS, LOST};
use crate::seq::before;

/// State needed to decide whether a recovery was spurious.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    /// `snd_una` when the recovery began; none: nothing to undo.
    marker: Option<u32>,
    /// Retransmissions not yet reported as duplicates; none: nothing was retransmitted yet.
    retransmissions: Option<u32>,
    /// Timestamp of the first retransmission (`retrans_stamp`).
    first_retransmission_ts: Option<u32>,
}

impl Undo {
    /// A recovery begins at `snd_una`, with so many retransmissions out.
    fn begin(&mut self, snd_una: u32, retransmissions: u32) {
        self.marker = Some(snd_una);
        self.retransmissions = (retransmissions > 0).then_some(retransmissions);
    }

    /// There is nothing to undo any more.
    pub(crate) fn forget(&mut self) {
        self.marker = None;
    }

    /// `snd_una` when the recovery began that may be undone, if there is one.
    pub(crate) fn marker(&self) -> Option<u32> {
        self.marker
    }

    /// A segment was retransmitted when the timestamp clock showed `timestamp`.
    pub(crate) fn note_retransmission(&mut self, timestamp: u32) {
        self.first_retransmission_ts.get_or_insert(timestamp);
        *self.retransmissions.get_or_insert(0) += 1;
    }

    /// The peer reported `segments` retransmissions as duplicates.
    pub(crate) fn note_duplicates(&mut self, segments: u32) {
        if let Some(left) = &mut self.retransmissions {
            *left = left.saturating_sub(segments);
        }
    }

    /// No retransmission is out any more whose timestamp an echo could be compared with.
    pub(crate) fn forget_timestamp(&mut self) {
        self.first_retransmission_ts = None;
    }

    /// Every retransmission arrived twice: the originals had arrived too.
    fn all_were_duplicates(&self) -> bool {
        self.marker.is_some() && self.retransmissions == Some(0)
    }

    /// An ACK echoes a timestamp from before the first retransmission. None: nothing was retransmitted.
    fn echo_is_of_original(&self, echo: Option<u32>) -> Option<bool> {
        let stamp = self.first_retransmission_ts?;
        Some(echo.is_some_and(|echo| before(echo, stamp)))
    }
}

impl Connection {
    pub(crate) fn start_undo(&mut self) {
        let out = self.sk.retrans_out + u32::from(self.snd.tail_loss.retransmission_is_out());
        self.snd.undo.begin(self.sk.snd_una, out);
    }

    /// Every retransmission arrived twice, or the originals were acknowledged.
    fn may_undo(&self) -> bool {
        self.snd.undo.all_were_duplicates() || (self.snd.undo.marker.is_some() && self.original_was_delayed())
    }

    /// The ACK echoes a timestamp from before the first retransmission, or nothing was retransmitted
    /// (`tcp_packet_delayed`). Without SACK the stamp says nothing once `high_seq` is acknowledged, because
    /// `newreno_holds_state` clears it there.
    fn original_was_delayed(&self) -> bool {
        let echo = (self.rcv.saw_timestamp && self.rcv.ts_ecr != 0).then_some(self.rcv.ts_ecr);
        self.snd
            .undo
            .echo_is_of_original(echo)
            .unwrap_or_else(|| self.sack_ok || before(self.sk.snd_una, self.sk.high_seq))
    }

    pub(crate) fn any_retransmission_done(&self) -> bool {
        self.sk.retrans_out > 0 || self.snd.board.first().is_some_and(|sent| sent.has(EVER_RETRANS))
    }

    pub(crate) fn clear_retransmission_stamp_if_none(&mut self) {
        if !self.any_retransmission_done() {
            self.snd.undo.forget_timestamp();
        }
    }

    /// Gives window and threshold back (`tcp_undo_cwnd_reduction`).
    fn undo_cwnd_reduction(&mut self, unmark_loss: bool) {
        if unmark_loss {
            for id in self.snd.board.head()..self.snd.board.tail() {
                self.snd.board.change_flags(id, 0, LOST);
            }
            self.snd.board.unpark_all();
            self.sk.lost_out = 0;
        }
        if self.sk.prior_ssthresh != 0 {
            self.sk.snd_cwnd = self.snd.control.undo_cwnd(&mut self.sk);
            if self.sk.prior_ssthresh > self.sk.snd_ssthresh {
                self.sk.snd_ssthresh = self.sk.prior_ssthresh;
                self.ecn.cancel_cwr();
            }
        }
        self.snd.cwnd_use.renew(self.sk.tcp_mstamp);
        self.snd.undo.forget();
        self.snd.rack.look_again();
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
            self.snd.rack.note_recovery();
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
        if self.snd.undo.all_were_duplicates() {
            self.snd.rack.note_spurious_recovery();
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
        if self.snd.undo.marker.is_none() || !self.original_was_delayed() {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A recovery from 1000 on that has retransmitted `segments` since the clock showed 50.
    fn recovery(segments: u32) -> Undo {
        let mut undo = Undo::default();
        undo.begin(1000, 0);
        (0..segments).for_each(|segment| undo.note_retransmission(50 + segment));
        undo
    }

    #[test]
    fn a_recovery_is_spurious_once_each_retransmission_was_reported_twice() {
        let mut undo = recovery(3);
        undo.note_duplicates(2);
        assert!(!undo.all_were_duplicates());
        undo.note_duplicates(1);
        assert!(undo.all_were_duplicates());
        undo.note_retransmission(60);
        assert!(!undo.all_were_duplicates());
    }

    #[test]
    fn without_a_retransmission_no_duplicate_tells_anything() {
        let mut undo = recovery(0);
        undo.note_duplicates(1);
        assert!(!undo.all_were_duplicates());
    }

    #[test]
    fn retransmissions_from_before_the_recovery_count() {
        let mut undo = Undo::default();
        undo.begin(1000, 2);
        undo.note_duplicates(2);
        assert!(undo.all_were_duplicates());
        undo.forget();
        assert!(!undo.all_were_duplicates() && undo.marker().is_none());
    }

    #[test]
    fn an_echo_from_before_the_first_retransmission_is_of_an_original() {
        // RFC 3522, section 3.2, step 4.
        let undo = recovery(2);
        let echoes = [Some(49), Some(50), Some(51), None].map(|echo| undo.echo_is_of_original(echo));
        assert_eq!(echoes, [Some(true), Some(false), Some(false), Some(false)]);
        assert_eq!(recovery(0).echo_is_of_original(Some(49)), None);
    }
}
