//! An arriving segment's way through the endpoint (Linux `tcp_rcv_established`).

use crate::Connection;
use crate::connection::{Notice, State};
use crate::delack::MAX_QUICK;
use crate::segment::{ACK, FIN, RST, SYN, Segment};
use crate::seq::{after, before};

/// A stored timestamp older than this is not held against a segment (RFC 7323, section 5.5), microseconds.
const TIMESTAMP_EXPIRES_US: u64 = 24 * 86_400 * 1_000_000;
/// A segment whose timestamp is older by so many ticks is still taken (Linux `TCP_PAWS_WINDOW`).
const TICKS_APART: u32 = 1;
/// Minimum time between two answers to unacceptable empty segments (`tcp_invalid_ratelimit`), microseconds.
const INVALID_RATE_US: u64 = 500_000;

impl Connection {
    pub(crate) fn dispatch(&mut self, segment: &Segment, size: u32) {
        match self.state {
            State::SynSent => self.handle_in_syn_sent(segment),
            State::SynReceived => {
                if segment.flags & RST != 0 {
                    if segment.seq == self.rcv.nxt {
                        self.abort();
                    }
                } else if self.handle_in_syn_received(segment) {
                    self.handle_established(segment, size);
                    if self.established {
                        self.fill_send_buffer();
                    }
                }
            }
            State::Established => self.handle_established(segment, size),
            State::Closed => self.handle_closed(segment),
            State::Aborted => {
                if segment.flags & RST == 0 {
                    self.send_reset(segment.ack, RST);
                }
            }
        }
    }

    pub(crate) fn handle_established(&mut self, segment: &Segment, size: u32) {
        if !self.is_acceptable(segment) || segment.flags & ACK == 0 {
            return;
        }
        if segment.flags & SYN != 0 {
            // Our ACK of the SYN-ACK was lost, or someone guesses (RFC 5961, section 4).
            self.send_handshake_ack();
            return;
        }
        self.take_timestamp(segment);
        self.ecn_accept_cwr(segment);
        self.accecn_on_arrival(segment, size);
        if !self.process_ack(segment) {
            // It acknowledges what was never sent (RFC 9293, section 3.10.7.4).
            self.send_ack();
            return;
        }
        if segment.len > 0 || segment.flags & FIN != 0 {
            if segment.len > 0 {
                self.measure_receiver_rtt_by_timestamp(size);
            }
            self.receive_data(segment, size);
        }
        self.push_pending();
        self.check_send_space();
        if self.rcv.delack.is_scheduled() || self.rcv.delack.is_due_now() {
            self.rcv.delack.schedule();
            self.check_ack(true);
        }
        if self.rcv.reads_at_once && self.rcv.unread > 0 {
            self.read_bytes(u64::MAX);
        }
        self.finish_if_closed();
    }

    #[inline]
    pub(crate) fn finish_if_closed(&mut self) {
        if self.snd.fin_acked && self.rcv.closed && self.state == State::Established {
            self.finish();
        }
    }

    /// Both ends have closed.
    #[cold]
    fn finish(&mut self) {
        if self.rcv.delack.is_scheduled() {
            self.send_ack();
        }
        self.state = State::Closed;
        self.timers.stop_xmit();
        self.timers.pacing = tcplab_units::Time::NEVER;
        self.notice(Notice::Closed);
    }

    /// PAWS, sequence and RST checks (Linux `tcp_validate_incoming`).
    fn is_acceptable(&mut self, segment: &Segment) -> bool {
        let end = segment
            .seq
            .wrapping_add(segment.len)
            .wrapping_add(u32::from(segment.flags & FIN != 0) + u32::from(segment.flags & SYN != 0));
        let reset = segment.flags & RST != 0;
        self.note_echo(segment);
        if self.rcv.saw_timestamp && self.is_old(segment) && !reset && self.refuses_old(segment, end) {
            return false;
        }
        if !self.in_receive_window(segment.seq, end) {
            if !reset {
                self.answer_unacceptable(segment, end);
            } else if self.resets_before_fin(segment) {
                self.abort();
            }
            return false;
        }
        if reset {
            self.handle_reset(segment);
        }
        !reset
    }

    /// Takes over the timestamp that a segment echoes.
    #[inline]
    pub(crate) fn note_echo(&mut self, segment: &Segment) {
        self.rcv.saw_timestamp = self.timestamps_ok && segment.has_timestamp;
        if self.rcv.saw_timestamp {
            self.rcv.ts_ecr = segment.ts_ecr;
        }
    }

    /// Its timestamp is the one to echo, if it begins at what was acknowledged last or before (RFC 7323, section 4.3).
    #[inline]
    pub(crate) fn take_timestamp(&mut self, segment: &Segment) {
        if self.rcv.saw_timestamp
            && !after(segment.seq, self.rcv.window.advertised_at())
            && !before(segment.ts_val, self.rcv.ts_recent)
        {
            self.rcv.ts_recent = segment.ts_val;
            self.rcv.ts_recent_us = self.sk.tcp_mstamp;
        }
    }

    /// RFC 5961, section 3.2: only the exact sequence number resets. That is RCV.NXT, or the end of the rightmost SACK block:
    /// what was sent before it may be lost (Linux `tcp_validate_incoming`).
    #[cold]
    fn handle_reset(&mut self, segment: &Segment) {
        let is_exact = segment.seq == self.rcv.nxt
            || self.resets_before_fin(segment)
            || (self.sack_ok && self.rcv.held.last_block_end() == Some(segment.seq));
        if is_exact {
            self.abort();
        } else {
            self.send_ack();
        }
    }

    /// The peer has closed, and its reset does not count the FIN (Linux `tcp_reset_check`).
    fn resets_before_fin(&self, segment: &Segment) -> bool {
        self.rcv.closed && segment.seq == self.rcv.nxt.wrapping_sub(1)
    }

    /// Whether an old segment is not acceptable; it is answered then. A pure ACK from before our last one is ordinary
    /// reordering: it draws no answer.
    #[cold]
    fn refuses_old(&mut self, segment: &Segment, end: u32) -> bool {
        let refused = !self.is_reordered_ack(segment);
        if refused && !(segment.len == 0 && end == segment.seq && before(end, self.rcv.nxt)) {
            self.answer_unacceptable(segment, end);
        }
        refused
    }

    /// PAWS: older than what arrived by more than a tick, which neighbours may differ by when they are reordered
    /// (`TCP_PAWS_WINDOW`).
    fn is_old(&self, segment: &Segment) -> bool {
        before(segment.ts_val.wrapping_add(TICKS_APART), self.rcv.ts_recent)
            && self.sk.tcp_mstamp - self.rcv.ts_recent_us < TIMESTAMP_EXPIRES_US
    }

    /// A pure ACK that was overtaken, acknowledges nothing and does not open the window is harmless while it is not
    /// much older than a timeout (Linux `tcp_disordered_ack_check`).
    fn is_reordered_ack(&self, segment: &Segment) -> bool {
        let window = u32::from(segment.window) << self.snd.wscale;
        let updates = after(segment.seq, self.snd.wl1)
            || (segment.seq == self.snd.wl1 && (window > self.snd.wnd || window == 0));
        let age = u64::from(self.rcv.ts_recent.wrapping_sub(segment.ts_val));
        segment.flags & ACK != 0
            && segment.len == 0
            && segment.flags & (FIN | SYN) == 0
            && segment.seq == self.rcv.nxt
            && segment.ack == self.sk.snd_una
            && !updates
            && age * 1_000 <= self.snd.rtt.rto_us() * 6 / 5
    }

    #[cold]
    fn answer_unacceptable(&mut self, segment: &Segment, end: u32) {
        if segment.len == 0 && segment.flags & (FIN | SYN) == 0 {
            let now = self.sk.tcp_mstamp;
            if now - self.last_invalid_us < INVALID_RATE_US {
                return;
            }
            self.last_invalid_us = now;
        }
        if end != segment.seq && before(segment.seq, self.rcv.nxt) {
            self.enter_quick_ack(MAX_QUICK);
            let end = if after(end, self.rcv.nxt) { self.rcv.nxt } else { end };
            self.report_duplicate(segment.seq, end);
        }
        self.send_ack();
    }

    /// In place of TIME-WAIT: the peer may not have seen our last ACK.
    fn handle_closed(&mut self, segment: &Segment) {
        if segment.flags & RST == 0 && (segment.len > 0 || segment.flags & FIN != 0) {
            self.send_ack();
        }
    }

    pub(crate) fn send_reset(&mut self, seq: u32, flags: u8) {
        let mut reset = self.header();
        reset.flags = flags;
        reset.ae = false;
        reset.seq = seq;
        reset.sack_count = 0;
        self.outbox().push(reset);
    }

    /// Reset by the peer, or given up: whatever the peer still sends is answered with a reset.
    pub(crate) fn abort(&mut self) {
        self.state = State::Aborted;
        self.established = false;
        self.timers = crate::timers::Timers::new();
        self.cancel_write();
        self.notice(Notice::Aborted);
    }
}
