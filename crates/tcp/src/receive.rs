//! Arriving data: in order, out of order, twice (Linux `tcp_data_queue`).

use crate::connection::Notice;
use crate::delack::{DelayedAck, MAX_QUICK};
use crate::reassembly::Reassembly;
use crate::segment::{FIN, Segment};
use crate::seq::{after, before, earlier};
use crate::window::ReceiveWindow;
use crate::{Config, Connection};

/// The receiving half: window, delayed ACKs, reassembly, and how far it is.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub window: ReceiveWindow,
    pub delack: DelayedAck,
    /// Next sequence number expected.
    pub nxt: u32,
    /// Next one the application will read.
    pub copied: u32,
    /// In order and not yet read, bytes.
    pub unread: u64,
    /// Payload bytes that arrived in order, ever.
    pub bytes: u64,
    pub held: Reassembly,
    /// Memory of what is unread or held.
    pub memory: u64,
    /// Sequence number of the peer's FIN.
    fin: Option<u32>,
    /// The FIN arrived in order.
    pub closed: bool,
    /// The application reads at once.
    pub reads_at_once: bool,
    /// Timestamp to echo (RFC 7323, section 4.3: TS.Recent).
    pub ts_recent: u32,
    /// When it was taken, microseconds.
    pub ts_recent_us: u64,
    /// Latest echo received.
    pub ts_ecr: u32,
    /// The segment being processed has timestamps.
    pub saw_timestamp: bool,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Receiver {
        let window = ReceiveWindow::new(config, config.mss);
        Receiver {
            delack: DelayedAck::new(config.delayed_ack, config.mss, window.advertised()),
            window,
            nxt: 0,
            copied: 0,
            unread: 0,
            bytes: 0,
            held: Reassembly::default(),
            memory: 0,
            fin: None,
            closed: false,
            reads_at_once: true,
            ts_recent: 0,
            ts_recent_us: 0,
            ts_ecr: 0,
            saw_timestamp: false,
        }
    }

    /// Whether all that arrived was in order and has been read.
    #[inline]
    pub(crate) fn is_in_step(&self) -> bool {
        self.unread == 0
            && self.reads_at_once
            && self.held.is_empty()
            && !self.held.anything_to_report()
            && self.fin.is_none()
    }
}

impl Connection {
    /// Takes in payload and FIN. `size`: payload of the wire segments `segment` is made of.
    pub(crate) fn receive_data(&mut self, segment: &Segment, size: u32) {
        let fin = segment.flags & FIN != 0;
        let seq = segment.seq;
        let end = seq.wrapping_add(segment.len).wrapping_add(u32::from(fin));
        if seq == end {
            return;
        }
        self.rcv.held.forget_duplicate();
        if fin {
            self.rcv.fin = Some(end.wrapping_sub(1));
        }
        if seq == self.rcv.nxt {
            let window = self.rcv.window.left(self.rcv.nxt);
            if window == 0 {
                self.receive_out_of_window();
                return;
            }
            self.queue_in_order(segment, end, size);
            return;
        }
        self.receive_beside(segment, end, size);
    }

    /// Receives a segment that does not begin at RCV.NXT.
    #[cold]
    fn receive_beside(&mut self, segment: &Segment, end: u32, size: u32) {
        let seq = segment.seq;
        if !after(end, self.rcv.nxt) {
            // A retransmission of what we have.
            self.report_duplicate(seq, end);
            self.receive_out_of_window();
            return;
        }
        let window_end = self.rcv.nxt.wrapping_add(self.rcv.window.left(self.rcv.nxt));
        if !before(seq, window_end) {
            self.receive_out_of_window();
            return;
        }
        if before(seq, self.rcv.nxt) {
            self.report_duplicate(seq, self.rcv.nxt);
            if self.rcv.window.left(self.rcv.nxt) == 0 {
                self.receive_out_of_window();
                return;
            }
            self.queue_in_order(segment, end, size);
            return;
        }
        self.queue_out_of_order(segment, end, size);
    }

    /// Tells the sender again where we are.
    #[cold]
    fn receive_out_of_window(&mut self) {
        self.enter_quick_ack(MAX_QUICK);
        self.rcv.delack.schedule();
    }

    pub(crate) fn report_duplicate(&mut self, start: u32, end: u32) {
        if self.sack_ok {
            self.rcv.held.report_duplicate(start, end);
        }
    }

    #[inline(always)]
    fn queue_in_order(&mut self, segment: &Segment, end: u32, size: u32) {
        if segment.len > 0 {
            self.charge_memory(segment.len, size, self.rcv.unread > 0);
        }
        self.advance_receive(end);
        if segment.len > 0 {
            self.note_data_received(size, segment.flags);
            self.ecn_on_data(segment.ecn);
            if segment.len >= 128 {
                self.grow_window(size);
            }
        }
        if !self.rcv.held.is_empty() || self.rcv.held.has_blocks() {
            self.advance_over_held();
        }
        if self.rcv.fin.is_some_and(|fin| after(self.rcv.nxt, fin)) && !self.rcv.closed {
            self.receive_fin();
        }
    }

    /// Queues a full segment of `len` bytes that was expected, with no gap, mark or FIN, while nothing else waits.
    #[inline(always)]
    pub(crate) fn queue_expected(&mut self, len: u32, flags: u8) {
        self.charge_memory(len, len, false);
        self.rcv.nxt = self.rcv.nxt.wrapping_add(len);
        self.sk.rcv_nxt = self.rcv.nxt;
        self.rcv.bytes += u64::from(len);
        self.rcv.unread = u64::from(len);
        self.rcv.delack.note_usual_size(flags);
        self.note_arrival();
        if len >= 128 {
            self.grow_window(len);
        }
    }

    /// Data that arrived may join data that was held.
    #[cold]
    fn advance_over_held(&mut self) {
        let had_holes = !self.rcv.held.is_empty();
        let next = self.rcv.held.advance(self.rcv.nxt);
        self.advance_receive(next);
        if had_holes && self.rcv.held.is_empty() {
            // A gap is filled (RFC 5681, section 4.2).
            self.rcv.delack.ack_now();
        }
    }

    /// The peer's FIN is in order (`tcp_fin`). Our own is likely to follow and to carry the ACK, unless it is out already.
    #[cold]
    fn receive_fin(&mut self) {
        self.rcv.closed = true;
        self.rcv.delack.schedule();
        if self.snd.fin_sent {
            self.rcv.delack.ack_now();
        } else {
            self.rcv.delack.expect_reply();
        }
        self.notice(Notice::PeerClosed);
    }

    fn advance_receive(&mut self, to: u32) {
        let mut bytes = to.wrapping_sub(self.rcv.nxt);
        if let Some(fin) = self.rcv.fin
            && !before(fin, self.rcv.nxt)
            && before(fin, to)
        {
            bytes -= 1;
        }
        self.rcv.nxt = to;
        self.sk.rcv_nxt = to;
        self.rcv.bytes += u64::from(bytes);
        self.rcv.unread += u64::from(bytes);
    }

    fn queue_out_of_order(&mut self, segment: &Segment, end: u32, size: u32) {
        self.ecn_on_data(segment.ecn);
        let start = segment.seq;
        self.measure_segment_size(size, segment.flags);
        self.rcv.delack.schedule();
        if self.rcv.held.displaces_blocks(start, end) {
            // It pays the ACK of this segment too, without reporting it (Linux `tcp_sack_compress_send_ack`).
            self.send_compressed_ack();
        }
        let is_behind = self.rcv.held.ends_at(start);
        let new = self.rcv.held.insert(start, end);
        // A segment with a descriptor of its own is charged last (Linux `tcp_data_queue_ofo`).
        if new > 0 && is_behind {
            self.charge_memory(segment.len, size, is_behind);
        }
        if new > 0 && self.sack_ok {
            self.grow_window(earlier(end, start.wrapping_add(segment.len)).wrapping_sub(start));
        }
        if new > 0 && !is_behind {
            self.charge_memory(segment.len, size, is_behind);
        }
        self.make_room_behind_gap();
    }

    /// The application reads up to `maximum` bytes (`tcp_recvmsg`).
    #[inline(always)]
    pub(crate) fn read_bytes(&mut self, maximum: u64) -> u64 {
        let bytes = self.rcv.unread.min(maximum);
        if bytes > 0 {
            self.release_memory(bytes, self.rcv.unread + self.rcv.held.bytes());
            self.rcv.unread -= bytes;
            self.rcv.copied = self.rcv.copied.wrapping_add(bytes as u32);
            self.adjust_receive_space(bytes);
            self.ack_after_read(bytes);
        }
        bytes
    }

    /// The application reads a segment of `len` bytes, which is all that waits.
    #[inline(always)]
    pub(crate) fn read_expected(&mut self, len: u32) {
        self.rcv.memory = 0;
        self.rcv.unread = 0;
        self.rcv.copied = self.rcv.copied.wrapping_add(len);
        self.adjust_receive_space(u64::from(len));
        self.ack_after_read(u64::from(len));
    }
}
