//! Opening a connection: SYN, SYN-ACK, their options and retransmission (RFC 9293, section 3.5).

use tcplab_control::sock::PACING_NEEDED;

use crate::Connection;
use crate::connection::{Notice, State};
use crate::delack::DelayedAck;
use crate::rtt::RTO_INITIAL_US;
use crate::segment::{ACK, AccEcnOption, SYN, Segment};
use crate::timers::{Pending, RTO_MAX_US};

/// Retransmissions of the SYN whose timeout does not double (`tcp_syn_linear_timeouts`).
const SYN_LINEAR_TIMEOUTS: u32 = 4;
/// Retransmissions of the SYN (those and `tcp_syn_retries`), and of the SYN-ACK (`tcp_synack_retries`).
const SYN_RETRIES: u32 = SYN_LINEAR_TIMEOUTS + 6;
const SYN_ACK_RETRIES: u32 = 5;
/// Minimum segment size a peer may ask for (Linux `TCP_MIN_MSS`, `TCP_MIN_SND_MSS`).
const MSS_MIN: u32 = 48;
/// MSS of a peer that names none (RFC 9293, section 3.7.1).
const MSS_DEFAULT: u32 = 536;
/// Bytes of the timestamp option with its padding.
pub(crate) const TIMESTAMP_BYTES: u32 = 12;

impl Connection {
    pub(crate) fn send_syn(&mut self) {
        let mut syn = self.syn_header();
        syn.flags = SYN;
        self.ecn_ask(&mut syn);
        self.ecn.accurate.syn_codepoint = syn.ecn;
        self.emit_syn(syn);
    }

    pub(crate) fn send_syn_ack(&mut self) {
        let mut syn = self.syn_header();
        syn.flags = SYN | ACK;
        self.ecn_agree(&mut syn);
        syn.ack = self.rcv.nxt;
        self.emit_syn(syn);
    }

    fn emit_syn(&mut self, syn: Segment) {
        self.handshake.last_sent_us = self.sk.tcp_mstamp;
        self.sk.segs_out = self.sk.segs_out.wrapping_add(1);
        self.outbox().push(syn);
        let linear = if self.state == State::SynSent { SYN_LINEAR_TIMEOUTS } else { 0 };
        let doublings = self.handshake.retries.saturating_sub(linear);
        let us = (RTO_INITIAL_US << doublings).min(RTO_MAX_US);
        self.arm_xmit(Pending::Retransmit, us);
    }

    /// Options of both SYNs; a SYN-ACK offers only those that the SYN offered.
    fn syn_header(&mut self) -> Segment {
        let active = self.state == State::SynSent;
        Segment {
            seq: self.sk.snd_una,
            ack: 0,
            len: 0,
            ts_val: if self.timestamps_ok { self.timestamp() } else { 0 },
            ts_ecr: self.rcv.ts_recent,
            sack: [(0, 0); 4],
            window: self.rcv.window.of_syn(),
            flags: 0,
            ae: false,
            accecn: AccEcnOption::default(),
            sack_count: 0,
            mss: self.config.mss.min(65_535) as u16,
            window_scale: if active || self.handshake.peer_scales { self.rcv.window.scale() } else { 255 },
            ecn: 0,
            sack_permitted: self.sack_ok,
            has_timestamp: self.timestamps_ok,
            more: false,
            retransmission: self.handshake.is_resent,
        }
    }

    /// Takes over the options of the peer's SYN or SYN-ACK.
    pub(crate) fn note_syn_options(&mut self, syn: &Segment) {
        self.sack_ok &= syn.sack_permitted;
        self.sk.sack_ok = u32::from(self.sack_ok);
        self.timestamps_ok &= syn.has_timestamp;
        self.handshake.peer_scales = syn.window_scale != 255;
        if self.handshake.peer_scales {
            self.snd.wscale = syn.window_scale.min(14);
        } else {
            self.rcv.window.no_scaling();
        }
        if self.timestamps_ok {
            self.rcv.ts_recent = syn.ts_val;
            self.rcv.ts_recent_us = self.sk.tcp_mstamp;
            self.rcv.ts_ecr = syn.ts_ecr;
            self.rcv.saw_timestamp = true;
        }
        let peer = if syn.mss == 0 { MSS_DEFAULT } else { u32::from(syn.mss) };
        self.snd.mss = peer.min(self.config.mss).saturating_sub(self.option_bytes()).max(MSS_MIN);
        self.rcv.nxt = syn.seq.wrapping_add(1);
        self.sk.rcv_nxt = self.rcv.nxt;
        self.rcv.copied = self.rcv.nxt;
        self.rcv.window.start_at(self.rcv.nxt);
        self.snd.wl1 = syn.seq;
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        self.snd.wnd = u32::from(syn.window);
        self.snd.max_window = self.snd.wnd;
        self.sync_mss();
    }

    /// A segment arrived while our SYN is unanswered.
    pub(crate) fn handle_in_syn_sent(&mut self, segment: &Segment) {
        let acceptable = segment.flags & ACK != 0 && segment.ack == self.sk.snd_nxt;
        if segment.flags & crate::segment::RST != 0 {
            if acceptable {
                self.abort();
            }
            return;
        }
        if !acceptable || segment.flags & SYN == 0 {
            return;
        }
        let ecn = self.ecn_agreed(segment);
        self.note_syn_options(segment);
        self.ecn_set(ecn, segment);
        if self.handshake.retries > 0 {
            // The SYN's timeout is one as any other (`tcp_enter_loss`).
            self.ecn_queue_cwr();
        }
        self.sk.snd_una = segment.ack;
        // The ACK of a SYN ends the bubble before it (`tcp_rate_gen`); that of a SYN-ACK is not a sample.
        self.sk.app_limited = 0;
        self.become_established();
        self.send_handshake_ack();
        self.fill_send_buffer();
    }

    /// Acknowledges the peer's SYN-ACK.
    pub(crate) fn send_handshake_ack(&mut self) {
        let mut ack = self.header();
        self.accecn_answer(&mut ack);
        self.outbox().push(ack);
    }

    /// A segment arrived while our SYN-ACK is unanswered; true if the connection is now established.
    pub(crate) fn handle_in_syn_received(&mut self, segment: &Segment) -> bool {
        if segment.flags & SYN != 0 {
            // The peer did not see our SYN-ACK.
            if segment.flags & ACK == 0 && segment.seq.wrapping_add(1) == self.rcv.nxt {
                self.accecn_note_syn_again(segment);
                self.handshake.is_resent = true;
                self.snd.counters.retransmits += 1;
                self.send_syn_ack();
            }
            return false;
        }
        if segment.flags & ACK == 0 || segment.ack != self.sk.snd_nxt {
            return false;
        }
        self.accecn_established(segment);
        self.note_echo(segment);
        self.sk.snd_una = segment.ack;
        self.snd.wnd = u32::from(segment.window) << self.snd.wscale;
        self.snd.max_window = self.snd.wnd;
        self.sync_mss();
        self.become_established();
        true
    }

    pub(crate) fn handshake_timeout(&mut self) {
        let maximum = if self.state == State::SynSent { SYN_RETRIES } else { SYN_ACK_RETRIES };
        if self.handshake.retries >= maximum {
            self.abort();
            return;
        }
        self.note_timeout();
        self.handshake.retries += 1;
        self.handshake.is_resent = true;
        self.snd.counters.retransmits += 1;
        if self.state == State::SynSent {
            self.send_syn();
        } else {
            self.send_syn_ack();
        }
    }

    fn become_established(&mut self) {
        self.state = State::Established;
        self.established = true;
        self.timers.stop_xmit();
        // The SYN counts as delivered (`tcp_count_delivered`), so no later sample starts from zero.
        self.sk.delivered = 1;
        self.sk.delivered_mstamp = self.sk.tcp_mstamp;
        // An ACK of a retransmitted SYN-ACK may be of the original (RFC 6298, section 3). Linux counts an
        // answer to a repeated SYN as such (`inet_rtx_syn_ack`, `tcp_synack_rtt_meas`).
        let sample = if self.handshake.is_resent {
            self.rtt_by_timestamp(1)
        } else {
            Some((self.sk.tcp_mstamp - self.handshake.last_sent_us) as u32)
        };
        self.snd.small_end = self.sk.snd_una;
        self.snd.last_sent_us = self.sk.tcp_mstamp;
        self.snd.cwnd_use.renew(self.sk.tcp_mstamp);
        // A SYN lost more than once asks for care (RFC 5681, section 3.1; Linux `tcp_init_transfer`).
        self.sk.snd_cwnd = if self.handshake.retries > 1 { 1 } else { self.config.initial_window };
        self.rcv.delack =
            DelayedAck::new(self.config.delayed_ack, self.advertised_mss(), self.rcv.window.advertised());
        self.start_receive_window();
        if self.config.pacing {
            self.sk.sk_pacing_status = PACING_NEEDED;
        }
        self.notice(Notice::Established);
        if let Some(us) = sample {
            self.take_rtt_sample(us, us, false);
        }
        self.snd.control.init(&mut self.sk);
        self.expand_send_buffer();
        if !self.snd.control.has_cong_control() {
            self.update_pacing_rate();
        }
    }
}
