//! Properties that hold of an endpoint at any time.

use crate::Connection;
use crate::scoreboard::{BURST_START, LOST, RETRANS, SACKED};
use crate::seq::after;

impl Connection {
    /// Recomputes every counter from the scoreboard and compares.
    pub(crate) fn verify(&mut self) {
        let sk = &self.sk;
        let count = |flag| self.snd.board.iter().filter(|(_, sent)| sent.has(flag)).count() as u32;
        let out = self.snd.board.iter().count() as u32;
        assert_eq!(sk.packets_out, out, "packets_out");
        assert_eq!(sk.lost_out, count(LOST), "lost_out");
        assert_eq!(sk.retrans_out, count(RETRANS), "retrans_out");
        assert_eq!(self.snd.buffer.bursts_out(), count(BURST_START), "bursts_out");
        assert!(
            self.snd.board.first().is_none_or(|first| first.has(BURST_START)),
            "the first segment is that of a buffer"
        );
        if self.sack_ok {
            assert_eq!(sk.sacked_out, count(SACKED), "sacked_out");
        }
        assert!(sk.sacked_out + sk.lost_out <= sk.packets_out, "left_out is more than packets_out");
        assert!(
            self.snd.board.iter().all(|(_, sent)| !(sent.has(SACKED) && sent.has(LOST))),
            "SACKed and lost"
        );
        let mut seq = sk.snd_una;
        for (i, (_, sent)) in self.snd.board.iter().enumerate() {
            if i == 0 {
                assert!(!after(sent.seq, seq) && after(sent.end_seq, seq), "the first segment holds snd_una");
            } else {
                assert_eq!(sent.seq, seq, "segments are contiguous");
            }
            seq = sent.end_seq;
        }
        if out > 0 {
            assert_eq!(seq, sk.snd_nxt, "segments reach snd_nxt");
        }
        assert!(sk.snd_cwnd >= 1, "the window is never empty");
        self.verify_order_of_sending();
        let waiting = self.snd.board.iter().find(|(_, s)| s.flags & (LOST | SACKED | RETRANS) == LOST);
        let waiting = waiting.map(|(id, _)| id);
        assert_eq!(self.snd.board.next_waiting(), waiting, "next to retransmit");
        let timer = self.timers.xmit != tcplab_units::Time::NEVER;
        if self.established && sk.packets_out > 0 {
            assert!(timer, "something is out, so a timer runs");
        }
    }

    fn verify_order_of_sending(&self) {
        let mut at = self.snd.board.oldest();
        let mut last = 0;
        let mut watched = 0;
        while let Some(id) = at {
            let sent = self.snd.board.get(id);
            assert!(sent.sent_us >= last, "the list is in order of sending");
            assert!(!sent.has(SACKED), "RACK does not watch what is delivered");
            last = sent.sent_us;
            watched += 1;
            at = self.snd.board.sent_next(id);
        }
        assert!(watched <= self.sk.packets_out);
    }
}
