//! Explicit congestion notification (RFC 3168; the receiver of a control that needs it: RFC 8257).

use tcplab_control::CaEvent;

use crate::config::Ecn;
use crate::segment::{ACK, CWR, ECE, SYN};
use crate::{Connection, Segment};

/// Codepoints of the IP header.
const NOT_ECT: u8 = 0;
const ECT_0: u8 = 2;
const CE: u8 = 3;

#[derive(Debug, Default)]
pub(crate) struct EcnState {
    /// Both ends agreed.
    pub ok: bool,
    /// Echo congestion until the sender says it has reduced its window.
    echo: bool,
    /// The next new data segment says that the window was reduced.
    announce: bool,
    /// An ECN-capable segment has arrived.
    seen: bool,
    /// The last segment was marked (RFC 8257, section 3.2: DCTCP.CE).
    last_was_marked: bool,
}

impl EcnState {
    pub(crate) fn queue_cwr(&mut self) {
        self.announce = self.ok;
    }

    pub(crate) fn withdraw_cwr(&mut self) {
        self.announce = false;
    }
}

impl Connection {
    /// Flags of our SYN that ask for ECN.
    pub(crate) fn ecn_syn_flags(&self) -> u8 {
        if self.config.ecn == Ecn::On || self.control.needs_ecn() { ECE | CWR } else { 0 }
    }

    /// Whether we accept what the peer's SYN asks for.
    pub(crate) fn ecn_accepts(&self, syn: &Segment) -> bool {
        let asked = syn.flags & (ECE | CWR) == ECE | CWR;
        asked && (self.config.ecn != Ecn::Off || self.control.needs_ecn())
    }

    /// Whether the peer's SYN-ACK agrees.
    pub(crate) fn ecn_agreed(&self, syn_ack: &Segment) -> bool {
        self.ecn_syn_flags() != 0 && syn_ack.flags & (ECE | CWR) == ECE
    }

    pub(crate) fn ecn_set(&mut self, ok: bool) {
        self.ecn.ok = ok;
        self.sk.ecn_ok = u32::from(ok);
    }

    /// Whether an ACK echoes congestion.
    pub(crate) fn ecn_echoed(&self, segment: &Segment) -> bool {
        self.ecn.ok && segment.flags & (ECE | SYN) == ECE
    }

    /// Marks what leaves; only new data is ECN-capable, unless the control needs all to be.
    pub(crate) fn ecn_mark_data(&mut self, segment: &mut Segment, new: bool) {
        if !self.ecn.ok {
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
        if self.ecn.ok {
            if self.ecn.echo {
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
        if segment.flags & CWR != 0 && self.ecn.ok {
            if !self.control.needs_ecn() {
                self.ecn.echo = false;
            }
            if segment.len > 0 {
                self.delack.now = true;
            }
        }
    }

    /// Looks at the codepoint of arriving data (`tcp_data_ecn_check`).
    pub(crate) fn ecn_on_data(&mut self, codepoint: u8) {
        if !self.ecn.ok {
            return;
        }
        let needs = self.control.needs_ecn();
        match codepoint {
            // Probably a retransmission.
            NOT_ECT => {
                if self.ecn.seen {
                    self.enter_quick_ack(2);
                }
            }
            CE => {
                if needs {
                    self.ecn_mark_changes(true);
                    self.control.cwnd_event(&mut self.sk, CaEvent::EcnIsCe);
                } else if !self.ecn.echo {
                    self.enter_quick_ack(2);
                    self.ecn.echo = true;
                }
                self.ecn.seen = true;
            }
            _ => {
                if needs {
                    self.ecn_mark_changes(false);
                    self.control.cwnd_event(&mut self.sk, CaEvent::EcnNoCe);
                }
                self.ecn.seen = true;
            }
        }
    }

    /// An ACK speaks for segments of one kind only: when the mark changes, what is pending is acknowledged
    /// first (RFC 8257, section 3.2).
    fn ecn_mark_changes(&mut self, marked: bool) {
        if self.ecn.last_was_marked != marked {
            if self.delack.timer_armed() {
                self.send_ack();
            }
            self.delack.now = true;
            self.ecn.last_was_marked = marked;
        }
        self.ecn.echo = marked;
    }
}
