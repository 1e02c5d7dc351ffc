//! Tail loss probes (RFC 8985, section 7).

use crate::Connection;
use crate::ack_flags::AckFlags;
use crate::connection::Notice;
use crate::rack::TIMEOUT_MIN_US;
use crate::rtt::RTO_INITIAL_US;
use crate::seq::{after, before};
use crate::timers::Pending;
use crate::transmit::Push;
use tcplab_control::CaState;

/// State of the probe that is out.
#[derive(Debug, Default)]
pub(crate) struct TailLoss {
    /// `snd_nxt` when a probe was sent; none: no probe is out.
    pub high_seq: Option<u32>,
    /// That probe was a retransmission.
    retransmission: bool,
}

impl TailLoss {
    /// A probe is out that retransmitted data; the peer may report it as a duplicate.
    pub(crate) fn retransmission_is_out(&self) -> bool {
        self.high_seq.is_some() && self.retransmission
    }
}

impl Connection {
    /// Arms a probe after two smoothed RTTs; a lone segment also waits for the peer's delayed ACK
    /// (`tcp_schedule_loss_probe`). `advancing`: the retransmission timeout starts now.
    pub(crate) fn schedule_loss_probe(&mut self, advancing: bool) -> bool {
        if self.sk.packets_out == 0 || !self.sack_ok || !self.state_is_open_or_cwr() {
            return false;
        }
        let mut us = if self.sk.srtt_us != 0 {
            let margin = if self.sk.packets_out == 1 { self.rtt.rto_min_us() } else { TIMEOUT_MIN_US };
            u64::from(self.sk.srtt_us >> 2) + margin
        } else {
            RTO_INITIAL_US
        };
        let rto_left = if advancing { self.rtt.rto_us() as i64 } else { self.rto_left_us() };
        if rto_left > 0 {
            us = us.min(rto_left as u64);
        }
        self.arm_xmit_paced(Pending::LossProbe, us);
        true
    }

    /// Sends new data if there is any that the window allows, else retransmits the last segment (RFC 8985,
    /// section 7.3).
    pub(crate) fn send_loss_probe(&mut self) {
        if self.tail_loss.high_seq.is_none() && self.probe_sent() {
            self.tail_loss.high_seq = Some(self.sk.snd_nxt);
            self.notice(Notice::TailLossProbe);
            // The timeout that follows counts from now.
            self.timers.stop_xmit();
        }
        self.rearm_rto();
    }

    fn probe_sent(&mut self) -> bool {
        self.tail_loss.retransmission = false;
        if self.next_fits_window() {
            let before = self.sk.packets_out;
            self.write_xmit(Push::Probe);
            return self.sk.packets_out > before;
        }
        if self.board.is_empty() {
            return false;
        }
        let last = self.board.tail() - 1;
        let sent = self.retransmit_segment(last);
        self.tail_loss.retransmission = sent;
        sent
    }

    /// The verdict of an ACK on the probe (RFC 8985, section 7.4): a loss the probe repaired costs a reduction.
    pub(crate) fn process_probe_ack(&mut self, ack: u32, flags: AckFlags) {
        let Some(high_seq) = self.tail_loss.high_seq else { return };
        if before(ack, high_seq) {
            return;
        }
        if !self.tail_loss.retransmission || flags.dsack_of_probe {
            self.tail_loss.high_seq = None;
        } else if after(ack, high_seq) {
            self.start_cwnd_reduction();
            self.set_ca_state(CaState::Cwr);
            self.end_cwnd_reduction();
            self.keep_open();
        } else if flags.may_be_duplicate() && !flags.una_advanced && !flags.data_sacked {
            self.tail_loss.high_seq = None;
        }
    }
}
