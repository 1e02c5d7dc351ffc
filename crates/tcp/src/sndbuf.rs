//! The send buffer: how much of what the application writes it takes (SO_SNDBUF, `tcp_wmem`).

use std::collections::VecDeque;

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

/// Rarely needed members come first, and last those for arriving data (see `Connection`).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendBuffer {
    /// Ends of the buffers of one segment that the application pushed and that are not sent yet (`tcp_mark_push`).
    pushes: VecDeque<u32>,
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
    /// Payload that was put into the last buffer.
    last: u32,
    /// Where the first buffer ends of which some is not sent yet, if that is not the last one; behind `snd_nxt`: not known yet.
    first_end: u32,
    /// The latest of them (`pushed_seq`).
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
            last: 0,
            first_end: seq,
            pushes: VecDeque::new(),
            pushed: seq,
        }
    }

    /// More is written to the segment that ends at `end`, so the end of the former write is not that of a segment.
    fn unmark_push(&mut self, end: u32) {
        if self.pushes.back() == Some(&end) {
            self.pushes.pop_back();
        }
    }

    /// Whether the segment that ends at `end` carries PSH: the application pushed its data.
    #[cold]
    pub(crate) fn take_push(&mut self, end: u32) -> bool {
        let mut found = false;
        while let Some(&push) = self.pushes.front()
            && !after(push, end)
        {
            self.pushes.pop_front();
            found = true;
        }
        found
    }

    /// The application waits for room.
    pub(crate) fn writer_waits(&self) -> bool {
        self.writer_waits
    }

    /// A burst left for the first time.
    pub(crate) fn note_burst_sent(&mut self) {
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

    /// Payload of the last buffer, of `unsent` bytes; 0: all buffers were sent whole.
    fn last_of(&self, unsent: u32) -> u32 {
        self.last.min(unsent)
    }

    /// Payload from `next`, which is sent next, to the end of its buffer, of `unsent` bytes. With less than `wanted` it takes
    /// the rest from the buffer behind it (`tcp_grow_skb`, since Linux 6.10).
    fn first_of(&mut self, next: u32, unsent: u32, wanted: u32) -> u32 {
        let last = self.last_of(unsent);
        if last == unsent {
            return unsent;
        }
        if !after(self.first_end, next) {
            self.first_end = next.wrapping_add(self.chunk.min(unsent - last));
        }
        let own = self.first_end.wrapping_sub(next).min(unsent - last);
        let behind = unsent - last - own;
        let next_len = if behind == 0 { last } else { behind.min(self.chunk) };
        let first = own + wanted.saturating_sub(own).min(next_len);
        if first == unsent {
            self.last = unsent;
        }
        self.first_end = next.wrapping_add(first);
        first
    }

    /// Another buffer is begun at `end`, before which `unsent` bytes wait.
    fn note_begun(&mut self, end: u32, unsent: u32) {
        if self.last_of(unsent) == unsent {
            self.first_end = end;
        }
    }

    /// Memory in use (`sk_wmem_queued`) with `queued` bytes of sequence, of which `unsent` of payload were never sent.
    fn memory(&self, queued: u32, unsent: u32) -> u64 {
        let last = self.last_of(unsent);
        let waiting = (unsent - last).div_ceil(self.chunk) + u32::from(last > 0);
        let buffers = u64::from(self.bursts_out) + u64::from(waiting);
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

    /// Segments of a full buffer.
    pub(crate) fn chunk_segments(&self) -> u32 {
        self.snd.buffer.chunk / self.sk.mss_cache
    }

    /// Payload not sent of the first buffer, of `unsent` bytes in all, where a burst may have `wanted`. It never spans two
    /// buffers.
    pub(crate) fn first_buffer(&mut self, unsent: u32, wanted: u32) -> u32 {
        self.snd.buffer.first_of(self.sk.snd_nxt, unsent, wanted)
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
        self.snd.buffer.memory(end.wrapping_sub(self.sk.snd_una), self.unsent())
    }

    /// Payload of the last buffer that was not sent whole; 0: there is none.
    fn last_buffer(&self) -> u32 {
        self.snd.buffer.last_of(self.unsent())
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
        let mut begun = self.last_buffer();
        if self.snd.buffer.write_left == 0 {
            self.rate_check_app_limited();
            self.snd.buffer.write_left = WRITE.min(self.snd.buffer.unwritten);
            if begun > 0 && begun < self.snd.buffer.chunk {
                self.snd.buffer.unmark_push(self.snd.write_seq);
            }
        }
        if begun == 0 || begun >= self.snd.buffer.chunk {
            if !self.snd.buffer.has_room(self.send_memory()) {
                self.mark_push();
                return false;
            }
            let unsent = self.unsent();
            self.snd.buffer.note_begun(self.snd.write_seq, unsent);
            begun = 0;
        }
        let bytes = self.snd.buffer.write_left.min(u64::from(self.snd.buffer.chunk - begun));
        self.snd.buffer.last = begun + bytes as u32;
        self.snd.buffer.write_left -= bytes;
        if self.snd.buffer.unwritten != u64::MAX {
            self.snd.buffer.unwritten -= bytes;
        }
        self.snd.write_seq = self.snd.write_seq.wrapping_add(bytes as u32);
        if self.snd.buffer.write_left == 0 || self.has_to_push() {
            self.mark_push();
            self.push_pending();
        } else if self.unsent() == self.snd.buffer.last {
            self.push_one();
        }
        true
    }

    /// Whether more than half of the largest window was written since the last push (`forced_push`).
    fn has_to_push(&self) -> bool {
        after(self.snd.write_seq, self.snd.buffer.pushed.wrapping_add(self.snd.max_window / 2))
    }

    /// The writer ends, has to wait or has to push (`tcp_push`). The segment written last will carry PSH; a burst of several
    /// carries it anyway.
    fn mark_push(&mut self) {
        let end = self.snd.write_seq;
        if self.unsent() > 0 && self.snd.buffer.pushed != end {
            self.snd.buffer.pushed = end;
            if self.chunk_segments() == 1 {
                self.snd.buffer.pushes.push_back(end);
            }
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
        assert_eq!(buffer.memory(0, 0), 0);
        buffer.note_burst_sent();
        assert_eq!(buffer.memory(SEGMENT, 0), u64::from(SEGMENT) + OVERHEAD);
        // Five segments that wait fill two buffers and begin a third.
        buffer.last = SEGMENT;
        assert_eq!(buffer.memory(6 * SEGMENT, 5 * SEGMENT), u64::from(6 * SEGMENT) + 4 * OVERHEAD);
        buffer.note_burst_acked();
        assert_eq!(buffer.memory(5 * SEGMENT, 5 * SEGMENT), u64::from(5 * SEGMENT) + 3 * OVERHEAD);
    }

    #[test]
    fn a_burst_ends_with_its_buffer() {
        let mut buffer = buffer(100_000);
        // One segment waits, then a second buffer is begun behind it, and a third.
        buffer.last = SEGMENT;
        assert_eq!(buffer.first_of(0, SEGMENT, 0), SEGMENT);
        buffer.note_begun(SEGMENT, SEGMENT);
        buffer.last = 2 * SEGMENT;
        assert_eq!(buffer.first_of(0, 3 * SEGMENT, 0), SEGMENT);
        buffer.note_begun(3 * SEGMENT, 3 * SEGMENT);
        buffer.last = SEGMENT;
        assert_eq!(buffer.first_of(0, 4 * SEGMENT, 0), SEGMENT);
        assert_eq!(buffer.first_of(SEGMENT, 3 * SEGMENT, 0), 2 * SEGMENT);
        assert_eq!(buffer.first_of(2 * SEGMENT, 2 * SEGMENT, 0), SEGMENT);
        assert_eq!(buffer.first_of(3 * SEGMENT, SEGMENT, 0), SEGMENT);
    }

    #[test]
    fn what_is_left_of_a_buffer_takes_from_the_next() {
        let mut buffer = buffer(100_000);
        buffer.chunk = 5 * SEGMENT;
        buffer.last = 2 * SEGMENT;
        let waiting = 12 * SEGMENT;
        assert_eq!(buffer.first_of(0, waiting, 3 * SEGMENT), 5 * SEGMENT);
        let left = buffer.first_of(3 * SEGMENT, waiting - 3 * SEGMENT, 3 * SEGMENT);
        assert_eq!(left, 3 * SEGMENT, "two and one of the next");
        assert_eq!(buffer.first_of(6 * SEGMENT, waiting - 6 * SEGMENT, 0), 4 * SEGMENT);
        assert_eq!(
            buffer.first_of(9 * SEGMENT, 3 * SEGMENT, 3 * SEGMENT),
            3 * SEGMENT,
            "with all of the last"
        );
        assert_eq!(buffer.last_of(3 * SEGMENT), 3 * SEGMENT, "which is now the last");
        buffer.last = SEGMENT;
        buffer.first_end = SEGMENT;
        assert_eq!(buffer.first_of(0, waiting, 9 * SEGMENT), 6 * SEGMENT, "one and the whole next, no more");
    }

    #[test]
    fn the_limit_is_twice_what_the_application_sets() {
        let buffer = buffer(50_000);
        assert!(buffer.has_room(99_999) && !buffer.has_room(100_000));
    }

    #[test]
    fn a_push_is_taken_with_the_segment_that_has_its_end() {
        let mut buffer = buffer(100_000);
        buffer.pushes.extend([2 * SEGMENT, 3 * SEGMENT]);
        assert!(
            !buffer.take_push(SEGMENT) && buffer.take_push(2 * SEGMENT) && !buffer.take_push(2 * SEGMENT)
        );
        assert!(buffer.take_push(4 * SEGMENT) && !buffer.take_push(5 * SEGMENT));
    }

    #[test]
    fn a_writer_is_woken_once_a_third_is_free() {
        let buffer = buffer(45_000);
        assert!(buffer.wakes_writer(60_000) && !buffer.wakes_writer(60_002));
    }
}
