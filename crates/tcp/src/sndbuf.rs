//! The send buffer: how much of what the application writes it takes (SO_SNDBUF, `tcp_wmem`).

use crate::Config;
use crate::Connection;
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
const SEGMENT_HEADERS: u64 = 320 + 320;
const SKB: u64 = 256;

#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// `sk_sndbuf`.
    limit: u64,
    fixed: bool,
    /// Bytes the application wants to write that are not in the buffer yet; `u64::MAX`: without end.
    unwritten: u64,
    /// The writer found no room (`SOCK_NOSPACE`).
    pub writer_waits: bool,
    /// Bytes of the present write that are still to be taken.
    write_left: u64,
    /// Bursts whose first segment is still out.
    pub bursts_out: u32,
    /// Payload of a full buffer (`tcp_xmit_size_goal`).
    chunk: u32,
    /// Payload that was put into the last buffer.
    last: u32,
}

impl SendBuffer {
    pub(crate) fn new(config: &Config) -> SendBuffer {
        SendBuffer {
            limit: config.send_buffer.map_or(INITIAL, |bytes| bytes.saturating_mul(2).max(MIN_LIMIT)),
            fixed: config.send_buffer.is_some(),
            unwritten: 0,
            writer_waits: false,
            write_left: 0,
            bursts_out: 0,
            chunk: config.mss,
            last: 0,
        }
    }
}

impl Connection {
    pub(crate) fn size_send_chunks(&mut self) {
        let mss = self.sk.mss_cache;
        let most =
            self.bound_to_half_window(self.config.gso_max_size.min(65_536).saturating_sub(GSO_HEADERS));
        // Since Linux 4.17 whatever the device segments: TCP counts on GSO.
        self.buffer.chunk = (most / mss).max(1) * mss;
    }

    /// Segments of a full buffer; a burst never spans two.
    pub(crate) fn chunk_segments(&self) -> u32 {
        self.buffer.chunk / self.sk.mss_cache
    }

    pub(crate) fn write_bytes(&mut self, bytes: u64) {
        self.buffer.unwritten = self.buffer.unwritten.saturating_add(bytes);
        if self.established && !self.buffer.writer_waits {
            self.fill_send_buffer();
        }
    }

    pub(crate) fn cancel_write(&mut self) -> u64 {
        self.buffer.writer_waits = false;
        self.buffer.write_left = 0;
        std::mem::take(&mut self.buffer.unwritten)
    }

    pub(crate) fn nothing_unwritten(&self) -> bool {
        self.buffer.unwritten == 0
    }

    /// Memory in use (`sk_wmem_queued`).
    fn send_memory(&self) -> u64 {
        let end = self.snd.write_seq.wrapping_add(u32::from(self.snd.fin_sent));
        let queued = u64::from(end.wrapping_sub(self.sk.snd_una));
        let last = self.last_buffer();
        let waiting = (self.unsent() - last).div_ceil(self.buffer.chunk) + u32::from(last > 0);
        let buffers = u64::from(self.buffer.bursts_out) + u64::from(waiting);
        queued + buffers * (SEGMENT_HEADERS + SKB)
    }

    /// Payload of the last buffer that was not sent whole; 0: there is none.
    fn last_buffer(&self) -> u32 {
        self.buffer.last.min(self.unsent())
    }

    /// Writes as a blocking writer does until the buffer is full, and sends.
    pub(crate) fn fill_send_buffer(&mut self) {
        if self.buffer.unwritten > 0 {
            self.restart_after_idle();
            self.chrono_start_busy();
            while self.buffer.unwritten > 0 && self.take_one_buffer() {}
            self.buffer.writer_waits = self.buffer.unwritten > 0;
        }
        if self.snd.closing && self.buffer.unwritten == 0 {
            self.snd.fin_queued = true;
        }
        self.push_pending();
    }

    /// Fills a buffer; false if there is no room for a new one (`tcp_sendmsg_locked`). A write begins with the question
    /// whether the application limits the rate; one that was asleep for want of room is not asked again.
    ///
    /// Room is asked for only when a buffer is begun. As a full one is sent at once, and from its front, the last
    /// buffer of a connection that is not paced takes more and more: with its window open it exceeds the limit.
    fn take_one_buffer(&mut self) -> bool {
        if self.buffer.write_left == 0 {
            self.rate_check_app_limited();
            self.buffer.write_left = WRITE.min(self.buffer.unwritten);
        }
        let mut begun = self.last_buffer();
        if begun == 0 || begun >= self.buffer.chunk {
            if self.send_memory() >= self.buffer.limit.min(MAX_LIMIT) {
                return false;
            }
            begun = 0;
        }
        let bytes = self.buffer.write_left.min(u64::from(self.buffer.chunk - begun));
        self.buffer.last = begun + bytes as u32;
        self.buffer.write_left -= bytes;
        if self.buffer.unwritten != u64::MAX {
            self.buffer.unwritten -= bytes;
        }
        self.snd.write_seq = self.snd.write_seq.wrapping_add(bytes as u32);
        if self.buffer.write_left == 0 {
            self.push_pending();
        } else if self.unsent() == self.buffer.last {
            self.push_one();
        }
        true
    }

    /// After an ACK: wakes a waiting writer once a third of the buffer is free (`sk_stream_is_writeable`).
    pub(crate) fn check_send_space(&mut self) {
        if !self.buffer.writer_waits {
            return;
        }
        if !self.buffer.fixed && self.sk.packets_in_flight() < self.sk.snd_cwnd {
            self.expand_send_buffer();
            self.cwnd_use.stamp_us = self.sk.tcp_mstamp;
        }
        let used = self.send_memory();
        if self.buffer.limit.saturating_sub(used) >= used >> 1 {
            self.buffer.writer_waits = false;
            self.chrono_stop_sndbuf_limited();
            self.fill_send_buffer();
        }
    }

    /// Room for twice the window, each segment reckoned with its overhead (`tcp_sndbuf_expand`).
    pub(crate) fn expand_send_buffer(&mut self) {
        if self.buffer.fixed {
            return;
        }
        let payload = u64::from(self.config.mss.max(self.sk.mss_cache));
        let per_segment = (payload + SEGMENT_HEADERS).next_power_of_two() + SKB;
        let segments = self.sk.snd_cwnd.max(10).max(self.rack.reordering() + 1);
        let factor = u64::from(self.control.sndbuf_expand(&mut self.sk));
        let wanted = factor * u64::from(segments) * per_segment;
        if self.buffer.limit < wanted {
            self.buffer.limit = wanted.min(self.config.send_buffer_max).max(self.buffer.limit);
        }
    }
}
