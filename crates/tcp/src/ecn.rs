//! Explicit congestion notification (RFC 3168).
//!
//! A control that needs ECN (`TCP_CONG_NEEDS_ECN`) asks for it in the handshake whatever the setting, makes all
//! its packets ECN-capable, and is told of the marks on arriving data, so that it can echo them in its own way
//! (for dctcp RFC 8257, section 3.2).

use tcplab_control::CaEvent;
use tcplab_control::sock::{ACK_NOW, ACK_TIMER, ECN_DEMAND_CWR, ECN_OK};

use crate::Ecn;
use crate::segment::{ACK, CWR, ECE, SYN};
use crate::{Connection, Segment};

/// Codepoints of the IP header.
const NOT_ECT: u8 = 0;
const ECT_0: u8 = 2;
const CE: u8 = 3;

/// What is not in `TcpSock::ecn_flags`.
#[derive(Debug, Default)]
pub(crate) struct EcnState {
    /// The next new data segment says that the window was reduced (`TCP_ECN_QUEUE_CWR`).
    announce: bool,
    /// An ECN-capable segment has arrived (`TCP_ECN_SEEN`).
    seen: bool,
}

impl EcnState {
    pub(crate) fn withdraw_cwr(&mut self) {
        self.announce = false;
    }
}

impl Connection {
    /// Both ends agreed.
    pub(crate) fn ecn_ok(&self) -> bool {
        self.sk.ecn_flags & ECN_OK != 0
    }

    /// Flags of our SYN that ask for ECN.
    pub(crate) fn ecn_syn_flags(&self) -> u8 {
        if self.config.ecn == Ecn::On || self.control.needs_ecn() { ECE | CWR } else { 0 }
    }

    /// Even the SYN is ECN-capable where the control needs all to be (`tcp_ecn_send_syn`).
    pub(crate) fn ecn_syn_codepoint(&self) -> u8 {
        if self.control.needs_ecn() { ECT_0 } else { NOT_ECT }
    }

    /// Whether we accept what the peer's SYN asks for. An ECN-capable SYN comes from a control that needs ECN,
    /// and is accepted only by one (`tcp_ecn_create_request`).
    pub(crate) fn ecn_accepts(&self, syn: &Segment) -> bool {
        let asked = syn.flags & (ECE | CWR) == ECE | CWR;
        asked && (self.control.needs_ecn() || (self.config.ecn != Ecn::Off && syn.ecn == NOT_ECT))
    }

    /// Whether the peer's SYN-ACK agrees.
    pub(crate) fn ecn_agreed(&self, syn_ack: &Segment) -> bool {
        self.ecn_syn_flags() != 0 && syn_ack.flags & (ECE | CWR) == ECE
    }

    pub(crate) fn ecn_set(&mut self, ok: bool) {
        self.sk.ecn_flags = if ok { ECN_OK } else { 0 };
    }

    /// The next new data segment is to say that the window was reduced (`tcp_ecn_queue_cwr`).
    pub(crate) fn ecn_queue_cwr(&mut self) {
        self.ecn.announce = self.ecn_ok();
    }

    /// Whether an ACK echoes congestion.
    pub(crate) fn ecn_echoed(&self, segment: &Segment) -> bool {
        self.ecn_ok() && segment.flags & (ECE | SYN) == ECE
    }

    /// Marks what leaves; only new data is ECN-capable, unless the control needs all to be.
    pub(crate) fn ecn_mark_data(&mut self, segment: &mut Segment, new: bool) {
        if !self.ecn_ok() {
            return;
        }
        if (new && segment.flags & ACK != 0) || self.control.needs_ecn() {
            segment.ecn = ECT_0;
        }
        if new && self.ecn.announce {
            self.ecn.announce = false;
            segment.flags |= CWR;
        }
    }

    /// The header of whatever leaves.
    pub(crate) fn ecn_header(&self, segment: &mut Segment) {
        if self.ecn_ok() {
            if self.sk.ecn_flags & ECN_DEMAND_CWR != 0 {
                segment.flags |= ECE;
            }
            if self.control.needs_ecn() {
                segment.ecn = ECT_0;
            }
        }
    }

    /// The sender says it has reduced its window: stop the echo, and acknowledge at once since the window
    /// may be very small (`tcp_ecn_accept_cwr`).
    pub(crate) fn ecn_accept_cwr(&mut self, segment: &Segment) {
        if segment.flags & CWR != 0 && self.ecn_ok() {
            self.sk.ecn_flags &= !ECN_DEMAND_CWR;
            if segment.len > 0 {
                self.delack.now = true;
            }
        }
    }

    /// Looks at the codepoint of arriving data (`tcp_data_ecn_check`).
    pub(crate) fn ecn_on_data(&mut self, codepoint: u8) {
        if !self.ecn_ok() {
            return;
        }
        match codepoint {
            // Probably a retransmission.
            NOT_ECT => {
                if self.ecn.seen {
                    self.enter_quick_ack(2);
                }
            }
            CE => {
                self.ecn_tell(CaEvent::EcnIsCe);
                if self.sk.ecn_flags & ECN_DEMAND_CWR == 0 {
                    self.enter_quick_ack(2);
                    self.sk.ecn_flags |= ECN_DEMAND_CWR;
                }
                self.ecn.seen = true;
            }
            _ => {
                self.ecn_tell(CaEvent::EcnNoCe);
                self.ecn.seen = true;
            }
        }
    }

    /// Tells a control that needs ECN whether arriving data was marked, and does what it asks for.
    fn ecn_tell(&mut self, event: CaEvent) {
        if !self.control.needs_ecn() {
            return;
        }
        self.sk.icsk_ack_pending = if self.delack.timer_armed() { ACK_TIMER } else { 0 };
        let asked = self.sk.tl_acks_asked;
        self.control.cwnd_event(&mut self.sk, event);
        if self.sk.tl_acks_asked != asked {
            let flags = core::mem::replace(&mut self.sk.ecn_flags, self.sk.tl_ack_ecn_flags);
            self.send_ack_up_to(self.sk.tl_ack_nxt);
            self.sk.ecn_flags = flags;
        }
        self.delack.now |= self.sk.icsk_ack_pending & ACK_NOW != 0;
    }
}
