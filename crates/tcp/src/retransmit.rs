//! Retransmission of lost segments (Linux `tcp_xmit_retransmit_queue`).

use crate::Connection;
use crate::scoreboard::{EVER_RETRANS, Id, RETRANS};
use crate::seq::before;
use crate::timers::Pending;

impl Connection {
    /// Retransmits lost segments, lowest first, as window and pacing allow.
    pub(crate) fn retransmit_lost(&mut self) {
        let mut rearm = false;
        while self.sk.retrans_out < self.sk.lost_out && !self.pacing_holds_back() {
            if self.sk.packets_in_flight() >= self.sk.snd_cwnd {
                break;
            }
            let Some(id) = self.snd.board.next_waiting() else { break };
            let len = self.snd.board.get(id).len();
            if self.small_queue_holds_back(len, true) {
                break;
            }
            let is_first = id == self.snd.board.head();
            if !self.retransmit(id) {
                break;
            }
            if self.in_cwnd_reduction() {
                self.snd.prr.note_sent(1);
            }
            rearm |= is_first && self.timers.pending != Pending::Reordering;
        }
        if rearm {
            self.arm_xmit_paced(Pending::Retransmit, self.snd.rtt.rto_us());
        }
    }

    /// Retransmits `id` and accounts for it; false if the peer's window has no room for it.
    pub(crate) fn retransmit(&mut self, id: Id) -> bool {
        if !self.retransmit_segment(id) {
            return false;
        }
        if !self.snd.board.get(id).has(RETRANS) {
            self.snd.board.change_flags(id, RETRANS, 0);
            self.sk.retrans_out += 1;
        }
        self.snd.undo.note_retransmission(self.timestamp());
        true
    }

    /// Retransmits `id` without counting it as a retransmission that is out (`__tcp_retransmit_skb`).
    pub(crate) fn retransmit_segment(&mut self, id: Id) -> bool {
        let sent = *self.snd.board.get(id);
        if !before(sent.seq, self.window_end()) && sent.seq != self.sk.snd_una && sent.len() > 0 {
            return false;
        }
        self.snd.board.change_flags(id, EVER_RETRANS, 0);
        self.snd.counters.retransmits += 1;
        self.emit_retransmission(id);
        true
    }
}
