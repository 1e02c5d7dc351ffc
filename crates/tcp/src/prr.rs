//! Proportional rate reduction (RFC 6937bis) and the entry to and exit from a reduction.

use tcplab_control::CaEvent;
use tcplab_control::CaState;
use tcplab_control::sock::INFINITE_SSTHRESH;

use crate::Connection;
use crate::ack_flags::AckFlags;
use crate::connection::Notice;

/// Progress of a reduction, segments.
#[derive(Debug, Default)]
pub(crate) struct Prr {
    /// Delivered since it began.
    delivered: u32,
    /// Sent since it began.
    out: u32,
}

/// The input of an ACK during a reduction, segments.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// Where the window is to go.
    ssthresh: u32,
    /// The window when the reduction began; not 0.
    prior_cwnd: u32,
    in_flight: u32,
    /// Delivered by this ACK.
    delivered: u32,
    /// It advanced `snd_una`, and nothing more is lost.
    safe: bool,
}

impl Prr {
    /// `segments` were sent.
    pub(crate) fn note_sent(&mut self, segments: u32) {
        self.out += segments;
    }

    /// The window after an ACK (RFC 6937bis, section 6). Above the threshold PRR sends in proportion to what is
    /// delivered. Below the threshold PRR slow starts only while ACKs are safe, else it conserves packets.
    fn window(&mut self, ack: Reduction) -> u32 {
        self.delivered += ack.delivered;
        let out = i64::from(self.out);
        let room = i64::from(ack.ssthresh) - i64::from(ack.in_flight);
        let quota = if room < 0 {
            let share = u64::from(ack.ssthresh) * u64::from(self.delivered);
            share.div_ceil(u64::from(ack.prior_cwnd)) as i64 - out
        } else {
            let owed = (i64::from(self.delivered) - out).max(i64::from(ack.delivered));
            (owed + i64::from(ack.safe)).min(room)
        };
        // The first ACK of a recovery always lets the fast retransmission out.
        let quota = quota.max(i64::from(self.out == 0));
        (i64::from(ack.in_flight) + quota).max(1) as u32
    }
}

impl Connection {
    /// Asks the control for the new threshold and begins to approach it (`tcp_init_cwnd_reduction`).
    pub(crate) fn start_cwnd_reduction(&mut self) {
        self.sk.high_seq = self.sk.snd_nxt;
        self.snd.tail_loss.forget();
        self.sk.snd_cwnd_cnt = 0;
        self.sk.prior_cwnd = self.sk.snd_cwnd;
        self.snd.prr = Prr::default();
        self.sk.snd_ssthresh = self.snd.control.ssthresh(&mut self.sk);
        self.ecn_queue_cwr();
    }

    /// Sets the window during a reduction, after an ACK that delivered something (`tcp_cwnd_reduction`).
    #[cold]
    pub(crate) fn reduce_cwnd(&mut self, delivered: u32, newly_lost: u32, flags: AckFlags) {
        if delivered == 0 || self.sk.prior_cwnd == 0 {
            return;
        }
        self.sk.snd_cwnd = self.snd.prr.window(Reduction {
            ssthresh: self.sk.snd_ssthresh,
            prior_cwnd: self.sk.prior_cwnd,
            in_flight: self.sk.packets_in_flight(),
            delivered,
            safe: flags.una_advanced && newly_lost == 0,
        });
    }

    /// The reduction is complete (`tcp_end_cwnd_reduction`).
    pub(crate) fn end_cwnd_reduction(&mut self) {
        if self.snd.control.has_cong_control() {
            return;
        }
        if self.sk.snd_ssthresh < INFINITE_SSTHRESH
            && (self.sk.icsk_ca_state == CaState::Cwr as u32 || self.snd.undo.marker().is_some())
        {
            self.sk.snd_cwnd = self.sk.snd_ssthresh;
            self.snd.cwnd_use.renew(self.sk.tcp_mstamp);
        }
        self.snd.control.cwnd_event(&mut self.sk, CaEvent::CompleteCwr);
    }

    /// Reduces without loss, for ECN (`tcp_enter_cwr`).
    pub(crate) fn enter_cwr(&mut self) {
        self.sk.prior_ssthresh = 0;
        if self.sk.icsk_ca_state < CaState::Cwr as u32 {
            self.snd.undo.forget();
            self.start_cwnd_reduction();
            self.set_ca_state(CaState::Cwr);
            self.notice(Notice::EcnResponse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a window of 100 to one of 70.
    fn ack(in_flight: u32, delivered: u32) -> Reduction {
        Reduction { ssthresh: 70, prior_cwnd: 100, in_flight, delivered, safe: false }
    }

    #[test]
    fn the_first_ack_lets_one_segment_out() {
        assert_eq!(Prr::default().window(Reduction { delivered: 0, ..ack(99, 0) }), 100);
    }

    #[test]
    fn above_the_threshold_seven_leave_for_every_ten_delivered() {
        let mut prr = Prr::default();
        let mut in_flight = 100;
        let mut sent = 0;
        for _ in 0..80 {
            in_flight -= 1;
            let quota = prr.window(ack(in_flight, 1)) - in_flight;
            prr.note_sent(quota);
            in_flight += quota;
            sent += quota;
        }
        assert_eq!((sent, in_flight), (56, 76));
    }

    #[test]
    fn below_the_threshold_packets_are_conserved_until_acks_are_safe() {
        let mut prr = Prr::default();
        prr.note_sent(1);
        assert_eq!(prr.window(ack(40, 3)), 43);
        prr.note_sent(3);
        assert_eq!(prr.window(Reduction { safe: true, ..ack(40, 2) }), 43);
    }

    #[test]
    fn the_window_never_exceeds_the_threshold_on_the_way_up() {
        let mut prr = Prr::default();
        prr.note_sent(1);
        assert_eq!(prr.window(Reduction { safe: true, ..ack(68, 30) }), 70);
    }
}
