//! The send buffer: how much of what the application writes it takes (SO_SNDBUF, `tcp_wmem`).

use std::collections::VecDeque;

use tcplab_units::prefetch;

use crate::Config;
use crate::Connection;
use crate::seq::after;
use crate::transmit::GSO_HEADERS;

/// `tcp_wmem[1]`, where auto-tuning starts.
const INITIAL: u64 = 16_384;
/// Minimum buffer the system grants (Linux `SOCK_MIN_SNDBUF`).
const MIN_LIMIT: u64 = 4_608;
/// Maximum payload in the buffer, so that sequence numbers stay comparable.
const MAX_LIMIT: u64 = 1 << 30;
/// Bytes of one write by the application (iperf3's default), the unit in which it is asked whether the
/// application limits the rate.
const WRITE: u64 = 131_072;
/// Room for headers (`MAX_TCP_HEADER` where wireless drivers are configured; 256 without) and shared info.
pub(crate) const SMALL_HEAD: u64 = 320 + 320;
const SKB: u64 = 256;

/// The rest of a buffer, which was not sent yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    len: u32,
    /// The application pushed it: its end has PSH (`tcp_mark_push`).
    pushed: bool,
}

/// Rarely needed members come first, and last those for arriving data (see `Connection`).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendBuffer {
    /// Buffers of which something was not sent yet.
    waiting: VecDeque<Waiting>,
    /// Bytes the application wants to write that are not in the buffer yet; `u64::MAX`: without end.
    unwritten: u64,
    /// Bytes of the present write that are still to be taken.
    write_left: u64,
    /// `sk_sndbuf`.
    limit: u64,
    /// Bursts of which something is still out.
    bursts_out: u32,
    /// Payload of a full buffer (`tcp_xmit_size_goal`).
    chunk: u32,
    /// End of the last push (`pushed_seq`).
    pushed: u32,
    fixed: bool,
    /// The writer found no room (`SOCK_NOSPACE`).
    writer_waits: bool,
}

impl SendBuffer {
    /// Of a connection whose data begins at `seq`.
    pub(crate) fn new(config: &Config, seq: u32) -> SendBuffer {
        SendBuffer {
            limit: config.send_buffer.map_or(INITIAL, |bytes| bytes.saturating_mul(2).max(MIN_LIMIT)),
            fixed: config.send_buffer.is_some(),
            unwritten: 0,
            writer_waits: false,
            write_left: 0,
            bursts_out: 0,
            chunk: config.mss,
            waiting: VecDeque::new(),
            pushed: seq,
        }
    }

    /// The application waits for room.
    pub(crate) fn writer_waits(&self) -> bool {
        self.writer_waits
    }

    /// `bytes` of the first buffer leave in a burst. Whether it ends a buffer that the application pushed.
    #[inline]
    pub(crate) fn send(&mut self, bytes: u32) -> bool {
        self.bursts_out += 1;
        // A FIN may leave alone.
        let Some(first) = self.waiting.front_mut() else { return false };
        first.len -= bytes;
        if first.len > 0 {
            return false;
        }
        self.waiting.pop_front().is_some_and(|first| first.pushed)
    }

    /// The rest of a burst of which something before it was SACKed.
    pub(crate) fn split_burst(&mut self) {
        self.bursts_out += 1;
    }

    /// The first segment of a burst was acknowledged; what is left of it is a burst again.
    pub(crate) fn note_burst_acked(&mut self) {
        self.bursts_out -= 1;
    }

    /// Bursts of which something is still out.
    pub(crate) fn bursts_out(&self) -> u32 {
        self.bursts_out
    }

    /// An ACK will arrive soon, and the first buffer may be sent.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(first) = self.waiting.front() {
            prefetch(first);
        }
    }

    /// Payload of the last buffer that was not sent yet; 0: all of it was.
    fn last(&self) -> u32 {
        self.waiting.back().map_or(0, |last| last.len)
    }

    /// Payload of the first buffer that was not sent yet. With less than `wanted` it takes the rest from the buffer behind it
    /// (`tcp_grow_skb`, since Linux 6.10).
    #[inline]
    pub(crate) fn first(&mut self, wanted: u32) -> u32 {
        match self.waiting.front() {
            Some(first) if first.len < wanted && self.waiting.len() > 1 => self.grow_first(wanted),
            first => first.map_or(0, |first| first.len),
        }
    }

    fn grow_first(&mut self, wanted: u32) -> u32 {
        let (first, next) = (self.waiting[0], self.waiting[1]);
        let taken = next.len.min(wanted - first.len);
        let mut grown = Waiting { len: first.len + taken, ..first };
        if taken == next.len {
            grown.pushed |= next.pushed;
            self.waiting.pop_front();
        } else {
            self.waiting[1].len -= taken;
        }
        self.waiting[0] = grown;
        grown.len
    }

    /// The application adds `bytes` to the last buffer, or to a new one.
    fn add(&mut self, bytes: u32, is_new: bool) {
        match self.waiting.back_mut() {
            Some(last) if !is_new => last.len += bytes,
            _ => self.waiting.push_back(Waiting { len: bytes, pushed: false }),
        }
    }

    /// Whether the last buffer ends with PSH from now on. Where nothing waits, there is none.
    fn push_last(&mut self, is_pushed: bool) {
        if let Some(last) = self.waiting.back_mut() {
            last.pushed = is_pushed;
        }
    }

    /// Memory in use (`sk_wmem_queued`) with `queued` bytes of sequence.
    fn memory(&self, queued: u32) -> u64 {
        let buffers = u64::from(self.bursts_out) + self.waiting.len() as u64;
        u64::from(queued) + buffers * (SMALL_HEAD + SKB)
    }

    /// Whether there is room to begin another buffer.
    fn has_room(&self, memory: u64) -> bool {
        memory < self.limit.min(MAX_LIMIT)
    }

    /// Whether a third of it is free, so that a writer that waits is woken (`sk_stream_is_writeable`).
    fn wakes_writer(&self, memory: u64) -> bool {
        self.limit.saturating_sub(memory) >= memory >> 1
    }
}

impl Connection {
    pub(crate) fn size_send_chunks(&mut self) {
        let mss = self.sk.mss_cache;
        let maximum =
            self.bound_to_half_window(self.config.gso_max_size.min(65_536).saturating_sub(GSO_HEADERS));
        // Since Linux 4.17 whatever the device segments, unless its `gso_max_segs` is 1: TCP counts on GSO.
        let segments = if self.config.tso { (maximum / mss).max(1) } else { 1 };
        self.snd.buffer.chunk = segments * mss;
    }

    pub(crate) fn write_bytes(&mut self, bytes: u64) {
        self.snd.buffer.unwritten = self.snd.buffer.unwritten.saturating_add(bytes);
        if self.established && !self.snd.buffer.writer_waits {
            self.fill_send_buffer();
        }
    }

    pub(crate) fn cancel_write(&mut self) -> u64 {
        self.snd.buffer.writer_waits = false;
        self.snd.buffer.write_left = 0;
        std::mem::take(&mut self.snd.buffer.unwritten)
    }

    pub(crate) fn nothing_unwritten(&self) -> bool {
        self.snd.buffer.unwritten == 0
    }

    /// Memory in use (`sk_wmem_queued`).
    pub(crate) fn send_memory(&self) -> u64 {
        let end = self.snd.write_seq.wrapping_add(u32::from(self.snd.fin_sent));
        self.snd.buffer.memory(end.wrapping_sub(self.sk.snd_una))
    }

    /// Writes as a blocking writer does until the buffer is full, and sends.
    pub(crate) fn fill_send_buffer(&mut self) {
        if self.snd.buffer.unwritten > 0 {
            self.restart_after_idle();
            self.chrono_start_busy();
            while self.snd.buffer.unwritten > 0 && self.take_one_buffer() {}
            self.snd.buffer.writer_waits = self.snd.buffer.unwritten > 0;
        }
        if self.snd.closing && self.snd.buffer.unwritten == 0 && !self.snd.fin_queued {
            self.snd.fin_queued = true;
            // A FIN alone is queued as data are (`tcp_send_fin`).
            self.chrono_start_busy();
        }
        self.push_pending();
    }

    /// Fills a buffer; false if there is no room for a new one (`tcp_sendmsg_locked`). A write begins with the question
    /// whether the application limits the rate; one that was asleep for want of room is not asked again.
    ///
    /// Room is asked for only when a buffer is begun. A full buffer is sent burst by burst, and from its front. So the last
    /// buffer of a connection that is not paced takes more, beyond the limit, until half of the largest window was written:
    /// then all of it is sent.
    fn take_one_buffer(&mut self) -> bool {
        let begun = self.snd.buffer.last();
        if self.snd.buffer.write_left == 0 {
            self.rate_check_app_limited();
            self.snd.buffer.write_left = WRITE.min(self.snd.buffer.unwritten);
            if begun < self.snd.buffer.chunk {
                self.snd.buffer.push_last(false);
            }
        }
        let is_new = begun == 0 || begun >= self.snd.buffer.chunk;
        if is_new && !self.snd.buffer.has_room(self.send_memory()) {
            self.mark_push();
            return false;
        }
        let room = self.snd.buffer.chunk - if is_new { 0 } else { begun };
        let bytes = self.snd.buffer.write_left.min(u64::from(room));
        self.snd.buffer.add(bytes as u32, is_new);
        self.snd.buffer.write_left -= bytes;
        if self.snd.buffer.unwritten != u64::MAX {
            self.snd.buffer.unwritten -= bytes;
        }
        self.snd.write_seq = self.snd.write_seq.wrapping_add(bytes as u32);
        if self.snd.buffer.write_left == 0 || self.has_to_push() {
            self.mark_push();
            self.push_pending();
        } else if self.snd.buffer.waiting.len() == 1 {
            self.push_one();
        }
        true
    }

    /// Whether more than half of the largest window was written since the last push (`forced_push`).
    fn has_to_push(&self) -> bool {
        after(self.snd.write_seq, self.snd.buffer.pushed.wrapping_add(self.snd.max_window / 2))
    }

    /// The writer ends, has to wait or has to push (`tcp_push`). The segment written last will carry PSH.
    fn mark_push(&mut self) {
        if self.unsent() > 0 {
            self.snd.buffer.pushed = self.snd.write_seq;
            self.snd.buffer.push_last(true);
        }
    }

    /// After an ACK: wakes a waiting writer once there is room enough.
    pub(crate) fn check_send_space(&mut self) {
        if !self.snd.buffer.writer_waits {
            return;
        }
        if !self.snd.buffer.fixed && self.sk.packets_in_flight() < self.sk.snd_cwnd {
            self.expand_send_buffer();
            self.snd.cwnd_use.renew(self.sk.tcp_mstamp);
        }
        if self.snd.buffer.wakes_writer(self.send_memory()) {
            self.snd.buffer.writer_waits = false;
            self.chrono_stop_sndbuf_limited();
            self.fill_send_buffer();
        }
    }

    /// Room for twice the window, each segment reckoned with its overhead (`tcp_sndbuf_expand`).
    pub(crate) fn expand_send_buffer(&mut self) {
        if self.snd.buffer.fixed {
            return;
        }
        let payload = u64::from(self.config.mss.max(self.sk.mss_cache));
        let per_segment = (payload + SMALL_HEAD).next_power_of_two() + SKB;
        let segments = self.sk.snd_cwnd.max(10).max(self.snd.rack.reordering() + 1);
        let factor = u64::from(self.snd.control.sndbuf_expand(&mut self.sk));
        let wanted = factor * u64::from(segments) * per_segment;
        if self.snd.buffer.limit < wanted {
            self.snd.buffer.limit = wanted.min(self.config.send_buffer_max).max(self.snd.buffer.limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u32 = 1448;
    /// Memory of a buffer beside its payload.
    const OVERHEAD: u64 = SMALL_HEAD + SKB;

    /// A buffer of two segments a chunk that the application limits to `bytes`.
    fn buffer(bytes: u64) -> SendBuffer {
        let config = Config { send_buffer: Some(bytes), ..Config::default() };
        SendBuffer { chunk: 2 * SEGMENT, ..SendBuffer::new(&config, 0) }
    }

    #[test]
    fn memory_is_payload_and_the_overhead_of_each_buffer() {
        let mut buffer = buffer(100_000);
        assert_eq!(buffer.memory(0), 0);
        buffer.add(SEGMENT, true);
        buffer.send(SEGMENT);
        assert_eq!(buffer.memory(SEGMENT), u64::from(SEGMENT) + OVERHEAD);
        // Five segments that wait fill two buffers and begin a third.
        for segments in [2, 2, 1] {
            buffer.add(segments * SEGMENT, true);
        }
        assert_eq!(buffer.memory(6 * SEGMENT), u64::from(6 * SEGMENT) + 4 * OVERHEAD);
        buffer.note_burst_acked();
        assert_eq!(buffer.memory(5 * SEGMENT), u64::from(5 * SEGMENT) + 3 * OVERHEAD);
    }

    #[test]
    fn a_burst_ends_with_its_buffer() {
        let mut buffer = buffer(100_000);
        for segments in [1, 2, 1] {
            buffer.add(segments * SEGMENT, true);
        }
        assert_eq!(buffer.first(0), SEGMENT);
        buffer.send(SEGMENT);
        assert_eq!(buffer.first(0), 2 * SEGMENT);
        buffer.send(SEGMENT);
        assert_eq!(buffer.first(0), SEGMENT);
        buffer.send(SEGMENT);
        assert_eq!((buffer.first(0), buffer.last()), (SEGMENT, SEGMENT));
        buffer.send(SEGMENT);
        assert_eq!((buffer.first(0), buffer.last()), (0, 0));
    }

    #[test]
    fn what_is_left_of_a_buffer_takes_from_the_next() {
        let mut buffer = buffer(100_000);
        for segments in [5, 5, 2] {
            buffer.add(segments * SEGMENT, true);
        }
        assert_eq!(buffer.first(3 * SEGMENT), 5 * SEGMENT);
        buffer.send(3 * SEGMENT);
        assert_eq!(buffer.first(3 * SEGMENT), 3 * SEGMENT, "two and one of the next");
        buffer.send(3 * SEGMENT);
        assert_eq!(buffer.first(0), 4 * SEGMENT);
        buffer.send(3 * SEGMENT);
        assert_eq!(buffer.first(3 * SEGMENT), 3 * SEGMENT, "with all of the last");
        assert_eq!(buffer.last(), 3 * SEGMENT, "which is now the last");
        for segments in [5, 1] {
            buffer.add(segments * SEGMENT, true);
        }
        assert_eq!(buffer.first(9 * SEGMENT), 8 * SEGMENT, "three and the whole next, no more");
    }

    #[test]
    fn a_buffer_that_was_pushed_ends_with_psh() {
        let mut buffer = buffer(100_000);
        let mut sent = |pushed: [bool; 2], wanted, bytes| {
            for is_pushed in pushed {
                buffer.add(2 * SEGMENT, true);
                buffer.push_last(is_pushed);
            }
            buffer.first(wanted * SEGMENT);
            let found = buffer.send(bytes * SEGMENT);
            buffer.waiting.clear();
            found
        };
        assert!(sent([true, false], 1, 2) && !sent([true, false], 1, 1) && !sent([false, true], 1, 2));
        // One that grows keeps its mark, and has that of what it takes whole.
        assert!(sent([true, false], 3, 3) && !sent([false, true], 3, 3) && sent([false, true], 4, 4));
    }

    #[test]
    fn the_limit_is_twice_what_the_application_sets() {
        let buffer = buffer(50_000);
        assert!(buffer.has_room(99_999) && !buffer.has_room(100_000));
    }

    #[test]
    fn a_writer_is_woken_once_a_third_is_free() {
        let buffer = buffer(45_000);
        assert!(buffer.wakes_writer(60_000) && !buffer.wakes_writer(60_002));
    }
}
