//! Proportional rate reduction (RFC 6937bis) and the entry to and exit from a reduction.

use tcplab_control::CaEvent;
use tcplab_control::CaState;
use tcplab_control::sock::INFINITE_SSTHRESH;

use crate::Connection;
use crate::ack::SND_UNA_ADVANCED;
use crate::connection::Notice;

/// Progress of a reduction, segments.
#[derive(Debug, Default)]
pub(crate) struct Prr {
    /// Delivered since it began.
    pub delivered: u32,
    /// Sent since it began.
    pub out: u32,
}

impl Connection {
    /// Asks the control for the new threshold and begins to approach it (`tcp_init_cwnd_reduction`).
    pub(crate) fn start_cwnd_reduction(&mut self) {
        self.sk.high_seq = self.sk.snd_nxt;
        self.tail_loss.high_seq = None;
        self.sk.snd_cwnd_cnt = 0;
        self.sk.prior_cwnd = self.sk.snd_cwnd;
        self.prr = Prr::default();
        self.sk.snd_ssthresh = self.control.ssthresh(&mut self.sk);
        self.ecn_queue_cwr();
    }

    /// Sends in proportion while above the threshold; below it, slow start only while ACKs advance and
    /// nothing more is lost (the "safe ACK"), else packet conservation.
    pub(crate) fn reduce_cwnd(&mut self, delivered: u32, newly_lost: u32, flag: u32) {
        if delivered == 0 || self.sk.prior_cwnd == 0 {
            return;
        }
        let prr = &mut self.prr;
        prr.delivered += delivered;
        let in_flight = self.sk.packets_in_flight();
        let room = i64::from(self.sk.snd_ssthresh) - i64::from(in_flight);
        let quota = if room < 0 {
            let share = u64::from(self.sk.snd_ssthresh) * u64::from(prr.delivered);
            share.div_ceil(u64::from(self.sk.prior_cwnd)) as i64 - i64::from(prr.out)
        } else {
            let mut quota = (i64::from(prr.delivered) - i64::from(prr.out)).max(i64::from(delivered));
            if flag & SND_UNA_ADVANCED != 0 && newly_lost == 0 {
                quota += 1;
            }
            quota.min(room)
        };
        // The first ACK of a recovery always lets the fast retransmission out.
        let quota = quota.max(i64::from(prr.out == 0));
        self.sk.snd_cwnd = (i64::from(in_flight) + quota).max(1) as u32;
    }

    /// The reduction is complete (`tcp_end_cwnd_reduction`).
    pub(crate) fn end_cwnd_reduction(&mut self) {
        if self.control.has_cong_control() {
            return;
        }
        if self.sk.snd_ssthresh < INFINITE_SSTHRESH
            && (self.sk.icsk_ca_state == CaState::Cwr as u32 || self.undo.marker.is_some())
        {
            self.sk.snd_cwnd = self.sk.snd_ssthresh;
            self.cwnd_use.stamp_us = self.sk.tcp_mstamp;
        }
        self.control.cwnd_event(&mut self.sk, CaEvent::CompleteCwr);
    }

    /// Reduces without loss, for ECN (`tcp_enter_cwr`).
    pub(crate) fn enter_cwr(&mut self) {
        self.sk.prior_ssthresh = 0;
        if self.sk.icsk_ca_state < CaState::Cwr as u32 {
            self.undo.marker = None;
            self.start_cwnd_reduction();
            self.set_ca_state(CaState::Cwr);
            self.notice(Notice::EcnResponse);
        }
    }
}
