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
    high_seq: Option<u32>,
    /// That probe was a retransmission.
    retransmission: bool,
}

impl TailLoss {
    /// A probe is out.
    pub(crate) fn is_out(&self) -> bool {
        self.high_seq.is_some()
    }

    /// A probe left; `high_seq` is `snd_nxt` after it.
    fn note_sent(&mut self, high_seq: u32) {
        self.high_seq = Some(high_seq);
    }

    /// No verdict on the probe is wanted any more.
    pub(crate) fn forget(&mut self) {
        self.high_seq = None;
    }

    /// A duplicate that ends at `seq` may be the probe.
    pub(crate) fn ends_at(&self, seq: u32) -> bool {
        self.high_seq == Some(seq)
    }

    /// The verdict of an ACK on the probe (RFC 8985, section 7.4.2): whether it repaired a loss. It is forgotten where it
    /// did not: the peer had the original, or the probe was new data.
    fn repaired_loss(&mut self, ack: u32, flags: AckFlags) -> bool {
        let Some(high_seq) = self.high_seq.filter(|&high_seq| !before(ack, high_seq)) else { return false };
        let is_duplicate = flags.may_be_duplicate() && !flags.una_advanced && !flags.data_sacked;
        if !self.retransmission || flags.dsack_of_probe {
            self.forget();
        } else if after(ack, high_seq) {
            return true;
        } else if is_duplicate {
            self.forget();
        }
        false
    }

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
            let margin = if self.sk.packets_out == 1 { self.snd.rtt.rto_min_us() } else { TIMEOUT_MIN_US };
            u64::from(self.sk.srtt_us >> 2) + margin
        } else {
            RTO_INITIAL_US
        };
        let rto_left = if advancing { self.snd.rtt.rto_us() as i64 } else { self.rto_left_us() };
        if rto_left > 0 {
            us = us.min(rto_left as u64);
        }
        self.arm_xmit_paced(Pending::LossProbe, us);
        true
    }

    /// Sends new data if there is any that the window allows, else retransmits the last segment (RFC 8985,
    /// section 7.3).
    pub(crate) fn send_loss_probe(&mut self) {
        if !self.snd.tail_loss.is_out() && self.probe_sent() {
            self.snd.tail_loss.note_sent(self.sk.snd_nxt);
            self.notice(Notice::TailLossProbe);
            // The timeout that follows counts from now.
            self.timers.stop_xmit();
        }
        self.rearm_rto();
    }

    fn probe_sent(&mut self) -> bool {
        self.snd.tail_loss.retransmission = false;
        if self.next_fits_window() {
            let before = self.sk.packets_out;
            self.write_xmit(Push::Probe);
            return self.sk.packets_out > before;
        }
        if self.snd.board.is_empty() {
            return false;
        }
        let last = self.snd.board.tail() - 1;
        let sent = self.retransmit_segment(last);
        self.snd.tail_loss.retransmission = sent;
        sent
    }

    /// An ACK while a probe is out: a loss that the probe repaired costs a reduction.
    pub(crate) fn process_probe_ack(&mut self, ack: u32, flags: AckFlags) {
        if self.snd.tail_loss.repaired_loss(ack, flags) {
            self.start_cwnd_reduction();
            self.set_ca_state(CaState::Cwr);
            self.end_cwnd_reduction();
            self.keep_open();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe that is out with `snd_nxt` at 1000.
    fn probe(retransmission: bool) -> TailLoss {
        let mut probe = TailLoss { high_seq: None, retransmission };
        probe.note_sent(1000);
        probe
    }

    fn verdict(probe: &mut TailLoss, ack: u32, flags: AckFlags) -> (bool, bool) {
        (probe.repaired_loss(ack, flags), probe.is_out())
    }

    #[test]
    fn an_ack_below_the_probe_says_nothing() {
        let advances = AckFlags { una_advanced: true, data_acked: true, ..AckFlags::default() };
        assert_eq!(verdict(&mut probe(true), 999, advances), (false, true));
    }

    #[test]
    fn a_probe_of_new_data_repairs_nothing() {
        assert_eq!(verdict(&mut probe(false), 1000, AckFlags::default()), (false, false));
    }

    #[test]
    fn an_ack_beyond_a_retransmitted_probe_means_that_it_repaired_a_loss() {
        let advances = AckFlags { una_advanced: true, data_acked: true, ..AckFlags::default() };
        // At the probe's end a report of the original may follow.
        assert_eq!(verdict(&mut probe(true), 1000, advances), (false, true));
        assert_eq!(verdict(&mut probe(true), 1001, advances), (true, true));
    }

    #[test]
    fn a_report_of_the_probe_as_a_duplicate_means_that_the_original_arrived() {
        let dsack = AckFlags { dsack: true, dsack_of_probe: true, ..AckFlags::default() };
        assert_eq!(verdict(&mut probe(true), 1001, dsack), (false, false));
        // Without SACK a duplicate ACK says the same.
        assert_eq!(verdict(&mut probe(true), 1000, AckFlags::default()), (false, false));
    }
}
