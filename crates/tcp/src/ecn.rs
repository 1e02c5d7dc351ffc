//! Explicit congestion notification: what is negotiated, which packets are ECN-capable, and the feedback of RFC 3168.
//! `accecn.rs` has the feedback of RFC 9768.
//!
//! A control that needs ECN (`TCP_CONG_NEEDS_ECN`) asks for it in the handshake whatever the setting, and makes
//! all its packets ECN-capable. Without accurate feedback the control learns of the marks on arriving data, so
//! that it can echo them in its own way (for dctcp RFC 8257, section 3.2).

use tcplab_control::CaEvent;
use tcplab_control::sock::{ACK_NOW, ACK_TIMER, ECN_ACCURATE, ECN_DEMAND_CWR, ECN_OK};

use crate::Ecn;
use crate::accecn::{Accurate, ace};
use crate::segment::{ACK, CWR, ECE, SYN};
use crate::{Connection, Segment};

/// Codepoints of the IP header.
pub(crate) const NOT_ECT: u8 = 0;
pub(crate) const ECT_1: u8 = 1;
pub(crate) const ECT_0: u8 = 2;
pub(crate) const CE: u8 = 3;

/// SYNs that ask for the feedback of RFC 3168. Retransmissions after that are without ECN, in case something on the path drops
/// them for it (section 6.1.1.1 there, Linux's `tcp_ecn_fallback`).
const CLASSIC_SYNS: u32 = 1;
/// SYNs that ask for accurate feedback (RFC 9768, section 3.1.4.1).
const ACCURATE_SYNS: u32 = 2;

/// The feedback both ends agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnFeedback {
    /// None: packets are not ECN-capable.
    None,
    /// Whether there were marks, once a round trip (RFC 3168).
    Classic,
    /// How many (RFC 9768).
    Accurate,
}

/// State of ECN that is not in `TcpSock::ecn_flags`.
#[derive(Debug, Default)]
pub(crate) struct EcnState {
    /// The next new data segment says that the window was reduced (`TCP_ECN_QUEUE_CWR`).
    announce: bool,
    /// An ECN-capable segment has arrived (`TCP_ECN_SEEN`).
    seen: bool,
    pub(crate) accurate: Accurate,
}

impl EcnState {
    pub(crate) fn cancel_cwr(&mut self) {
        self.announce = false;
    }
}

impl Connection {
    /// Both ends agreed on the feedback of RFC 3168.
    pub(crate) fn ecn_ok(&self) -> bool {
        self.sk.ecn_flags & ECN_OK != 0
    }

    /// The agreement of both ends.
    pub fn ecn_feedback(&self) -> EcnFeedback {
        match self.sk.ecn_flags & (ECN_OK | ECN_ACCURATE) {
            0 => EcnFeedback::None,
            ECN_OK => EcnFeedback::Classic,
            _ => EcnFeedback::Accurate,
        }
    }

    /// Whether we speak accurate ECN.
    fn knows_accurate(&self) -> bool {
        self.config.ecn == Ecn::Accecn || self.snd.control.needs_accecn()
    }

    fn asks_for_ecn(&self) -> bool {
        matches!(self.config.ecn, Ecn::On | Ecn::Accecn) || self.snd.control.needs_ecn()
    }

    /// Makes our SYN ask for ECN. Even the SYN is ECN-capable where the control needs all to be (`tcp_ecn_send_syn`).
    pub(crate) fn ecn_ask(&self, syn: &mut Segment) {
        if !self.asks_for_ecn() {
            return;
        }
        let accurate = self.knows_accurate();
        if !accurate && self.snd.control.needs_ecn() {
            syn.ecn = ECT_0;
        }
        if self.handshake.retries >= if accurate { ACCURATE_SYNS } else { CLASSIC_SYNS } {
            return;
        }
        syn.flags |= ECE | CWR;
        syn.ae = accurate;
        if accurate && self.snd.control.needs_ecn() {
            syn.ecn = self.ecn_codepoint(EcnFeedback::Accurate);
        }
    }

    /// The part of the request in the peer's SYN that we accept. One that asks for accurate feedback and does not get it
    /// gets that of RFC 3168 (RFC 9768, section 3.1.2). An ECN-capable SYN comes from a control that needs ECN, and is accepted
    /// only by one, or by those who speak accurate ECN (`tcp_ecn_create_request`).
    pub(crate) fn ecn_accepts(&self, syn: &Segment) -> EcnFeedback {
        let asked = syn.flags & (ECE | CWR) == ECE | CWR;
        // Combinations that nothing sends yet ask for accurate feedback too (RFC 9768, section 3.1.3).
        if self.knows_accurate() && !matches!(ace(syn), 0b000 | 0b011) {
            EcnFeedback::Accurate
        } else if asked
            && (self.snd.control.needs_ecn()
                || (self.config.ecn != Ecn::Off && (syn.ecn == NOT_ECT || syn.ae)))
        {
            EcnFeedback::Classic
        } else {
            EcnFeedback::None
        }
    }

    /// The agreement in the peer's SYN-ACK (RFC 9768, Table 2).
    pub(crate) fn ecn_agreed(&self, syn_ack: &Segment) -> EcnFeedback {
        if !self.asks_for_ecn() {
            EcnFeedback::None
        } else if self.knows_accurate() && Connection::accecn_agreed(syn_ack) {
            EcnFeedback::Accurate
        } else if syn_ack.flags & (ECE | CWR) == ECE {
            EcnFeedback::Classic
        } else {
            EcnFeedback::None
        }
    }

    /// The two ends agree on `feedback` by the peer's `opening` segment.
    pub(crate) fn ecn_set(&mut self, feedback: EcnFeedback, opening: &Segment) {
        self.sk.ecn_flags = match feedback {
            EcnFeedback::None => 0,
            EcnFeedback::Classic => ECN_OK,
            EcnFeedback::Accurate => ECN_ACCURATE,
        };
        if feedback == EcnFeedback::Accurate {
            self.accecn_note_opening(opening);
        }
    }

    /// Makes our SYN-ACK agree. It is ECN-capable where the control needs all to be, even if the peer did not ask for ECN.
    pub(crate) fn ecn_agree(&mut self, syn_ack: &mut Segment) {
        if self.snd.control.needs_ecn() && !self.accurate() {
            syn_ack.ecn = ECT_0;
        }
        match self.ecn_feedback() {
            EcnFeedback::None => {}
            EcnFeedback::Classic => syn_ack.flags |= ECE,
            EcnFeedback::Accurate => self.accecn_agree(syn_ack),
        }
    }

    /// With which codepoint ECN-capable packets leave. ECT(1) says that the sender reacts to each mark as L4S asks for,
    /// which needs accurate feedback (RFC 9331, section 4.2).
    fn ecn_codepoint(&self, feedback: EcnFeedback) -> u8 {
        match feedback {
            EcnFeedback::None => NOT_ECT,
            EcnFeedback::Accurate if self.ecn.accurate.without_ect => NOT_ECT,
            EcnFeedback::Accurate if self.snd.control.sends_ect1() => ECT_1,
            _ => ECT_0,
        }
    }

    /// The next new data segment is to say that the window was reduced (`tcp_ecn_queue_cwr`).
    pub(crate) fn ecn_queue_cwr(&mut self) {
        self.ecn.announce = self.ecn_ok();
    }

    /// Whether an ACK echoes congestion.
    pub(crate) fn ecn_echoed(&self, segment: &Segment) -> bool {
        self.ecn_ok() && segment.flags & (ECE | SYN) == ECE
    }

    /// Marks what leaves; only new data is ECN-capable and says that the window was reduced (`tcp_ecn_send`), unless the control
    /// needs all to be. A FIN without data is none.
    pub(crate) fn ecn_mark_data(&mut self, segment: &mut Segment, new: bool) {
        let feedback = self.ecn_feedback();
        if feedback != EcnFeedback::None {
            self.mark_for(feedback, segment, new);
        }
    }

    #[cold]
    fn mark_for(&mut self, feedback: EcnFeedback, segment: &mut Segment, new: bool) {
        if (new && segment.flags & ACK != 0) || self.snd.control.needs_ecn() {
            segment.ecn = self.ecn_codepoint(feedback);
        }
        if new && self.ecn.announce {
            self.ecn.announce = false;
            segment.flags |= CWR;
        }
    }

    /// The header of whatever leaves.
    pub(crate) fn ecn_header(&self, segment: &mut Segment) {
        let feedback = self.ecn_feedback();
        if feedback != EcnFeedback::None {
            self.echo_for(feedback, segment);
        }
    }

    #[cold]
    fn echo_for(&self, feedback: EcnFeedback, segment: &mut Segment) {
        match feedback {
            EcnFeedback::None => {}
            EcnFeedback::Classic if self.sk.ecn_flags & ECN_DEMAND_CWR != 0 => segment.flags |= ECE,
            EcnFeedback::Classic => {}
            EcnFeedback::Accurate => self.accecn_header(segment),
        }
        if self.snd.control.needs_ecn() {
            segment.ecn = self.ecn_codepoint(feedback);
        }
    }

    /// The sender says it has reduced its window: stop the echo, and acknowledge at once since the window
    /// may be very small (`tcp_ecn_accept_cwr`).
    pub(crate) fn ecn_accept_cwr(&mut self, segment: &Segment) {
        if segment.flags & CWR != 0 && self.ecn_ok() {
            self.sk.ecn_flags &= !ECN_DEMAND_CWR;
            if segment.len > 0 {
                self.rcv.delack.ack_now();
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
                self.ecn_ca_event(CaEvent::EcnIsCe);
                if self.sk.ecn_flags & ECN_DEMAND_CWR == 0 {
                    self.enter_quick_ack(2);
                    self.sk.ecn_flags |= ECN_DEMAND_CWR;
                }
                self.ecn.seen = true;
            }
            _ => {
                self.ecn_ca_event(CaEvent::EcnNoCe);
                self.ecn.seen = true;
            }
        }
    }

    /// Tells a control that needs ECN whether arriving data was marked, and does what it asks for.
    fn ecn_ca_event(&mut self, event: CaEvent) {
        if !self.snd.control.needs_ecn() {
            return;
        }
        self.sk.icsk_ack_pending = if self.rcv.delack.timer_armed() { ACK_TIMER } else { 0 };
        let asked = self.sk.tl_acks_asked;
        self.snd.control.cwnd_event(&mut self.sk, event);
        if self.sk.tl_acks_asked != asked {
            let flags = core::mem::replace(&mut self.sk.ecn_flags, self.sk.tl_ack_ecn_flags);
            self.send_ack_up_to(self.sk.tl_ack_nxt);
            self.sk.ecn_flags = flags;
        }
        if self.sk.icsk_ack_pending & ACK_NOW != 0 {
            self.rcv.delack.ack_now();
        }
    }
}
