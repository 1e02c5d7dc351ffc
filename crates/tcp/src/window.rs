//! The receive window: how much is advertised, and how buffer and window grow (Linux `tcp_select_window`,
//! `tcp_grow_window`, `tcp_rcv_space_adjust`).

use crate::seq::{after, before};
use crate::sndbuf::SMALL_HEAD;
use crate::{Config, Connection};

/// `tcp_wmem`-independent floor of a receive buffer (Linux `SOCK_MIN_RCVBUF`).
const MIN_BUFFER: u64 = 2_304;
/// Largest unscaled window.
const MAX_UNSCALED: u64 = 65_535;
/// Largest shift (RFC 7323, section 2.3).
const MAX_SCALE: u8 = 14;
/// Share of the buffer that is payload before anything is known, in 1/256 (`tcp_adv_win_scale` = 1).
const INITIAL_RATIO: u64 = 128;
/// `net.core.rmem_max` as the kernel sets it; it only enters the choice of the window scale.
const RMEM_MAX: u64 = 212_992;

/// Ethernet, IPv4 and TCP headers with timestamps.
const FRAME_HEADERS: u64 = 66;
/// `NET_SKB_PAD`.
const HEAD_ROOM: u64 = 64;
const CACHE_LINE: u64 = 64;
const PAGE: u64 = 4_096;
/// `struct skb_shared_info` and `struct sk_buff` in whole cache lines.
const SHARED_INFO: u64 = 320;
const SKB: u64 = 256;
/// Segments that share a descriptor while they wait for the reader (`MAX_SKB_FRAGS` and the first).
const SEGMENTS_OF_SKB: u64 = 18;
/// Memory and payload of a buffer into which what waits is copied together (`tcp_collapse`).
const COLLAPSED: u64 = PAGE + SKB;
const COLLAPSED_PAYLOAD: u64 = PAGE - SHARED_INFO;

#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    /// `sk_rcvbuf`.
    buffer: u64,
    fixed: bool,
    buffer_max: u64,
    /// Payload share of the buffer in 1/256 (`scaling_ratio`).
    ratio: u64,
    /// Maximum that may be advertised (`window_clamp`).
    clamp: u64,
    /// Present limit, which grows as data arrives (`rcv_ssthresh`).
    threshold: u64,
    scale: u8,
    /// The window last advertised, from `advertised_at`.
    advertised: u32,
    /// `rcv_nxt` when it was (`rcv_wup`).
    advertised_at: u32,
    /// Largest payload announced to the peer.
    advmss: u64,
    /// Dynamic right-sizing: bytes the application read in the last measured RTT, and where and when the
    /// present measurement began.
    space: u64,
    space_seq: u32,
    space_us: u64,
    /// Receiver's estimate of the RTT, microseconds times 8.
    rtt_us: u32,
    rtt_seq: u32,
    rtt_since_us: u64,
    rtt_last_echo: u32,
}

impl ReceiveWindow {
    /// The window of the SYN and its scale, for segments of `mss` (`tcp_select_initial_window`).
    pub(crate) fn new(config: &Config, mss: u32) -> ReceiveWindow {
        let fixed = config.receive_buffer.is_some();
        let buffer = config
            .receive_buffer
            .map_or(config.receive_buffer_initial, |bytes| bytes.saturating_mul(2))
            .clamp(MIN_BUFFER, 1 << 31);
        let payload = buffer * INITIAL_RATIO / 256;
        let clamp = if fixed { payload } else { MAX_UNSCALED << MAX_SCALE };
        let mss = u64::from(mss);
        let mut space = payload.min(clamp);
        let whole = space.max(config.receive_buffer_max).max(RMEM_MAX).min(clamp);
        let scale = (whole.max(1).ilog2().saturating_sub(15) as u8).min(MAX_SCALE);
        if space > mss {
            space -= space % mss;
        }
        ReceiveWindow {
            buffer,
            fixed,
            buffer_max: config.receive_buffer_max,
            ratio: INITIAL_RATIO,
            clamp: clamp.min(MAX_UNSCALED << scale),
            threshold: space,
            scale,
            advertised: space as u32,
            advertised_at: 0,
            advmss: mss,
            space: 0,
            space_seq: 0,
            space_us: 0,
            rtt_us: 0,
            rtt_seq: 0,
            rtt_since_us: 0,
            rtt_last_echo: 0,
        }
    }

    fn payload_of(&self, memory: u64) -> u64 {
        memory * self.ratio / 256
    }

    /// The buffer holds another share of payload: more of it lets the limit rise to what was advertised
    /// (`tcp_set_window_clamp`).
    fn move_clamp(&mut self) {
        let clamp = self.payload_of(self.buffer).max(MIN_BUFFER / 2);
        self.threshold = if clamp < self.clamp {
            self.threshold.min(clamp)
        } else {
            self.threshold.max(clamp.min(u64::from(self.advertised)))
        };
        self.clamp = clamp;
        self.space = self.space.min(clamp);
    }

    /// Room for twice the `space` that the application reads in an RTT, for more of it while that grows, and for what reaches
    /// `behind_gap` (`tcp_rcvbuf_grow` of Linux 6.18).
    fn grow_buffer(&mut self, space: u64, behind_gap: u64) {
        let before = core::mem::replace(&mut self.space, space);
        if self.fixed {
            return;
        }
        let growth = 2 * space * (space - before) / before.max(1);
        let wanted = 2 * space + 2 * growth + behind_gap;
        let buffer = (wanted * 256 / self.ratio).min(self.buffer_max);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.clamp = self.payload_of(buffer);
        }
    }

    /// The peer does not scale windows.
    pub(crate) fn no_scaling(&mut self) {
        self.scale = 0;
        self.clamp = self.clamp.min(MAX_UNSCALED);
    }

    pub(crate) fn scale(&self) -> u8 {
        self.scale
    }

    /// The window last advertised; at first what the buffer has room for (Linux 6.10).
    pub(crate) fn advertised(&self) -> u32 {
        self.advertised
    }

    /// The window field of a SYN, which is never scaled (RFC 7323, section 2.2).
    pub(crate) fn of_syn(&self) -> u16 {
        self.advertised.min(MAX_UNSCALED as u32) as u16
    }

    /// `rcv_nxt` when it was (`rcv_wup`).
    pub(crate) fn advertised_at(&self) -> u32 {
        self.advertised_at
    }

    /// The window of the SYN counts from here.
    pub(crate) fn start_at(&mut self, rcv_nxt: u32) {
        self.advertised_at = rcv_nxt;
    }

    /// Bytes that arrived since the window was advertised, and so since the last ACK.
    pub(crate) fn unacknowledged(&self, rcv_nxt: u32) -> u32 {
        rcv_nxt.wrapping_sub(self.advertised_at)
    }

    /// The receiver's estimate of the RTT, microseconds times 8; 0: none yet.
    pub(crate) fn rtt_us(&self) -> u32 {
        self.rtt_us
    }

    /// The rest of the advertised window.
    pub(crate) fn left(&self, rcv_nxt: u32) -> u32 {
        let end = self.advertised_at.wrapping_add(self.advertised);
        if before(end, rcv_nxt) { 0 } else { end.wrapping_sub(rcv_nxt) }
    }
}

/// Rounded up to what a window of this scale can express.
const fn round_up(window: u32, scale: u8) -> u32 {
    let step = 1 << scale;
    window.saturating_add(step - 1) & !(step - 1)
}

/// Memory a received segment takes where a TAP device delivers it, as on the kernel engine (Linux `tun_build_skb`).
///
/// Its frame and head room in whole cache lines, shared info and descriptor. A frame that does not fit into a page so
/// has its headers in a head as small as those that are sent, the payload in pages.
fn memory_of(payload: u64) -> u64 {
    let one = (FRAME_HEADERS + payload + HEAD_ROOM).next_multiple_of(CACHE_LINE) + SHARED_INFO;
    SKB + if one <= PAGE { one } else { SMALL_HEAD + payload.next_multiple_of(PAGE) }
}

/// The mean of what a segment takes right behind others that wait, for the reader or for a gap to be filled. Those within a
/// page share descriptors (Linux `tcp_try_coalesce`, `tcp_ooo_try_coalesce`).
fn memory_behind_others(payload: u64) -> u64 {
    let memory = memory_of(payload);
    if memory > PAGE { memory } else { memory - (SKB - SKB / SEGMENTS_OF_SKB) }
}

impl Connection {
    /// The connection is established (`tcp_init_buffer_space`).
    pub(crate) fn start_receive_window(&mut self) {
        let advmss = u64::from(self.advertised_mss());
        let window = &mut self.rcv.window;
        window.advmss = advmss;
        window.space_us = self.sk.tcp_mstamp;
        window.space_seq = self.rcv.copied;
        let whole = window.payload_of(window.buffer);
        window.clamp = window.clamp.min(whole);
        // One segment is held in reserve.
        if window.clamp > 2 * window.advmss && window.clamp + window.advmss > whole {
            window.clamp = (2 * window.advmss).max(whole - window.advmss);
        }
        window.threshold = window.threshold.min(window.clamp);
        window.space = window.threshold.min(u64::from(window.advertised)).min(10 * window.advmss);
    }

    /// Free room, as payload (`tcp_space`).
    fn receive_space(&self) -> u64 {
        self.rcv.window.payload_of(self.rcv.window.buffer.saturating_sub(self.rcv.memory))
    }

    /// Charges the buffer with `len` bytes that arrived in segments of `size` (`skb_set_owner_r`), `behind` others or not.
    #[inline]
    pub(crate) fn charge_memory(&mut self, len: u32, size: u32, behind: bool) {
        let (len, size) = (u64::from(len), u64::from(size));
        let memory = |payload| if behind { memory_behind_others(payload) } else { memory_of(payload) };
        self.rcv.memory += if len <= size { memory(len) } else { memory(size) * len.div_ceil(size) };
        if self.rcv.memory > self.rcv.window.buffer {
            self.collapse(len);
        }
    }

    /// The buffer is full of small segments: they are copied together (`tcp_prune_queue`). `len` bytes have just arrived.
    #[cold]
    fn collapse(&mut self, len: u64) {
        let payload = self.rcv.unread + self.rcv.held.bytes() + len;
        self.rcv.memory = self.rcv.memory.min(payload * COLLAPSED / COLLAPSED_PAYLOAD);
    }

    /// The application has read `bytes` of the `held` that were charged.
    pub(crate) fn release_memory(&mut self, bytes: u64, held: u64) {
        let memory = self.rcv.memory;
        self.rcv.memory = if bytes == held { 0 } else { memory - memory * bytes / held };
    }

    /// The window that could be advertised now (`__tcp_select_window`).
    pub(crate) fn possible_window(&mut self) -> u32 {
        let window = &self.rcv.window;
        let allowed = window.payload_of(window.buffer);
        let whole = window.clamp.min(allowed);
        let mss = u64::from(self.rcv.delack.segment_size()).min(whole);
        if mss == 0 {
            return 0;
        }
        let mut free = self.receive_space();
        let step = 1u64 << window.scale;
        if free < whole / 2 {
            self.rcv.delack.stop_quick();
            free &= !(step - 1);
            if free < allowed / 16 || free < mss {
                return 0;
            }
        }
        free = free.min(self.rcv.window.threshold);
        if self.rcv.window.scale > 0 {
            return round_up(free as u32, self.rcv.window.scale);
        }
        self.unscaled_window(free, mss, whole)
    }

    /// Without scaling, whole segments (silly window avoidance).
    #[cold]
    fn unscaled_window(&self, free: u64, mss: u64, whole: u64) -> u32 {
        let present = u64::from(self.rcv.window.advertised);
        if present + mss <= free || present > free {
            (free - free % mss) as u32
        } else if mss == whole && free > present + whole / 2 {
            free as u32
        } else {
            present as u32
        }
    }

    /// The window field of what leaves now; never takes back what was advertised.
    pub(crate) fn select_window(&mut self) -> u16 {
        let window = self.possible_window();
        self.advertise(window)
    }

    /// The same where `new` is the possible window.
    #[inline]
    pub(crate) fn advertise(&mut self, mut new: u32) -> u16 {
        let left = self.rcv.window.left(self.rcv.nxt);
        if new < left {
            new = round_up(left, self.rcv.window.scale);
        }
        new = new.min((MAX_UNSCALED as u32) << self.rcv.window.scale);
        self.rcv.window.advertised = new;
        self.rcv.window.advertised_at = self.rcv.nxt;
        (new >> self.rcv.window.scale) as u16
    }

    /// A new segment size shows how much of the buffer is payload (`tcp_measure_rcv_mss`).
    #[cold]
    pub(crate) fn adapt_ratio(&mut self, payload: u32) {
        let payload = u64::from(payload);
        let ratio = (payload * 256 / memory_of(payload)).clamp(1, 255);
        if ratio != self.rcv.window.ratio {
            self.rcv.window.ratio = ratio;
            self.rcv.window.move_clamp();
        }
    }

    /// Each arriving segment raises the limit while the buffer has room for it with its overhead
    /// (`tcp_grow_window`).
    #[inline]
    pub(crate) fn grow_window(&mut self, payload: u32) {
        let window = &self.rcv.window;
        let room = window.clamp.min(self.receive_space()).saturating_sub(window.threshold);
        if room > 0 {
            self.raise_threshold(payload, room);
        }
    }

    /// Raises the threshold for a segment of `payload` bytes, at most by `room`.
    #[inline(never)]
    fn raise_threshold(&mut self, payload: u32, room: u64) {
        let window = &self.rcv.window;
        let len = u64::from(payload);
        let memory = memory_of(len);
        let step = if window.payload_of(memory) <= len {
            2 * window.advmss
        } else {
            self.growth_of_small_segments(len, memory)
        };
        if step > 0 {
            self.rcv.window.threshold += step.max(2 * len).min(room);
            self.rcv.delack.keep_quick();
        }
    }

    /// Segments that waste much of their buffer raise the limit only while it is small.
    fn growth_of_small_segments(&self, len: u64, memory: u64) -> u64 {
        let mut memory = self.rcv.window.payload_of(memory) / 2;
        let mut room = self.rcv.window.payload_of(self.rcv.window.buffer_max) / 2;
        while self.rcv.window.threshold <= room && room > 0 {
            if memory <= len {
                return 2 * u64::from(self.rcv.delack.segment_size());
            }
            memory /= 2;
            room /= 2;
        }
        0
    }

    /// The application has read `bytes`: twice what it reads in an RTT must fit, more while that grows
    /// (`tcp_rcv_space_adjust`).
    #[inline]
    pub(crate) fn adjust_receive_space(&mut self, bytes: u64) {
        let window = &self.rcv.window;
        let elapsed = self.sk.tcp_mstamp - window.space_us;
        if window.rtt_us != 0 && elapsed >= u64::from(window.rtt_us >> 3) {
            self.end_space_measurement(bytes);
        }
    }

    /// Ends the measurement of what the application read in one RTT. Linux looks after each buffer of a read, so the first
    /// ends it, and what is read after that belongs to the next. Bytes still to be read do not count.
    #[inline(never)]
    fn end_space_measurement(&mut self, bytes: u64) {
        let first = bytes.min(u64::from(self.rcv.delack.segment_size()));
        let behind = bytes - first;
        let read = self.rcv.copied.wrapping_sub(behind as u32);
        let copied = u64::from(read.wrapping_sub(self.rcv.window.space_seq));
        let copied = copied.saturating_sub(behind + self.rcv.unread);
        if copied > self.rcv.window.space {
            self.grow_buffer(copied);
        }
        self.rcv.window.space_seq = read;
        self.rcv.window.space_us = self.sk.tcp_mstamp;
    }

    /// The application reads `space` in an RTT.
    fn grow_buffer(&mut self, space: u64) {
        let behind_gap = self.rcv.held.end().map_or(0, |end| u64::from(end.wrapping_sub(self.rcv.nxt)));
        self.rcv.window.grow_buffer(space, behind_gap);
    }

    /// Data arrived behind a gap: the buffer makes room for them (`tcp_data_queue_ofo`).
    pub(crate) fn make_room_behind_gap(&mut self) {
        self.grow_buffer(self.rcv.window.space);
    }

    /// Without timestamps: the time in which a window's worth of data arrives.
    #[inline]
    pub(crate) fn measure_receiver_rtt(&mut self) {
        let now = self.sk.tcp_mstamp;
        let window = &mut self.rcv.window;
        if window.rtt_since_us != 0 {
            if before(self.rcv.nxt, window.rtt_seq) {
                return;
            }
            let sample = ((now - window.rtt_since_us).max(1) as u32).saturating_mul(8);
            if window.rtt_us == 0 || sample < window.rtt_us {
                window.rtt_us = sample;
            }
        }
        window.rtt_seq = self.rcv.nxt.wrapping_add(window.advertised);
        window.rtt_since_us = now;
    }

    /// With timestamps: a full segment that echoes a new timestamp.
    #[inline]
    pub(crate) fn measure_receiver_rtt_by_timestamp(&mut self, len: u32) {
        if !self.rcv.saw_timestamp || self.rcv.ts_ecr == self.rcv.window.rtt_last_echo {
            return;
        }
        self.rcv.window.rtt_last_echo = self.rcv.ts_ecr;
        if len < self.rcv.delack.segment_size() {
            return;
        }
        if let Some(sample) = self.rtt_by_timestamp(0)
            && sample > 0
        {
            let rtt = &mut self.rcv.window.rtt_us;
            if *rtt == 0 || sample << 3 < *rtt {
                *rtt = sample << 3;
            } else if self.rcv.unread == 0 {
                *rtt = rtt.wrapping_add(sample).wrapping_sub(*rtt >> 3);
            }
        }
    }

    /// Whether a segment lies at least partly in the window (`tcp_sequence`).
    pub(crate) fn in_receive_window(&self, seq: u32, end_seq: u32) -> bool {
        !before(end_seq, self.rcv.window.advertised_at)
            && !after(seq, self.rcv.nxt.wrapping_add(self.rcv.window.left(self.rcv.nxt)))
    }
}

impl Connection {
    pub(crate) fn window_clamp(&self) -> u64 {
        self.rcv.window.clamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::script::{Script, data};

    #[test]
    fn a_received_segment_takes_what_a_tap_device_gives_it() {
        // Measured on Linux 6.18: 6 MiB of buffer announce 4,176,512 bytes, 170/256 of it, for segments of 1448 bytes.
        for (payload, memory, ratio) in [(1448, 2_176, 170), (536, 1_280, 107)] {
            assert_eq!((memory_of(payload), payload * 256 / memory_of(payload)), (memory, ratio));
        }
        // By windows of 66,816 and 80,256 bytes after the first segment, with heads of 576 bytes.
        for (payload, memory) in [(4_948, 9_024), (8_948, 13_120)] {
            assert_eq!(memory_of(payload), memory + SMALL_HEAD - 576);
        }
    }

    #[test]
    fn segments_that_wait_share_descriptors() {
        // Measured on Linux 6.18 as `rmem_alloc` of 99 and 54 segments that wait.
        for (payload, segments, memory) in [(1448, 99, 191_616), (300, 45, 35_328)] {
            let ours = memory_of(payload) + (segments - 1) * memory_behind_others(payload);
            assert!(ours.abs_diff(memory) <= memory / 100, "{ours}, not {memory}");
        }
        // Those that do not fit into a page do not.
        assert_eq!(memory_behind_others(8_948), memory_of(8_948));
    }

    #[test]
    fn the_syn_offers_half_of_the_buffer_in_whole_segments() {
        let window = ReceiveWindow::new(&Config::default(), 1460);
        assert_eq!((window.advertised(), window.advertised() % 1460), (64_240, 0));
    }

    #[test]
    fn a_syn_offers_what_fits_its_field_and_the_first_ack_the_rest_of_the_buffer() {
        // Measured on Linux 6.18 with SO_RCVBUF of 274,000 bytes.
        let config = Config { receive_buffer: Some(274_000), ..Config::default() };
        assert_eq!(ReceiveWindow::new(&config, 1460).of_syn(), 65_535);
        let mut t = Script::client(&config, "reno", 20.0);
        assert_eq!(t.end.rcv.window.advertised(), 273_024);
        t.at(40.0, data(1, 1449).stamped(41, 1_020));
        assert_eq!(t.end.rcv.window.advertised(), 275_920);
    }

    #[test]
    fn the_scale_fits_the_largest_buffer() {
        // RFC 7323, section 2.2.
        let scale = |largest| {
            let config = Config { receive_buffer_max: largest, ..Config::default() };
            ReceiveWindow::new(&config, 1460).scale()
        };
        assert_eq!([1 << 18, 6 << 20, 1 << 30, 1 << 40].map(scale), [3, 7, 14, 14]);
    }

    /// A window for segments of 1448 bytes whose application has read `space` in an RTT.
    fn tuned(buffer: u64, space: u64) -> ReceiveWindow {
        ReceiveWindow { ratio: 170, buffer, space, ..ReceiveWindow::new(&Config::default(), 1448) }
    }

    #[test]
    fn the_buffer_grows_as_linux_s() {
        // Measured on Linux 6.18 by its tracepoint tcp_rcvbuf_grow: bytes read in an RTT and in the one before, and the buffer.
        for (before, read, buffer) in [
            (14_480, 15_928, 131_072),
            (15_928, 28_960, 229_945),
            (28_960, 57_920, 523_324),
            (57_920, 115_840, 1_046_648),
            (115_840, 234_576, 2_154_785),
        ] {
            let mut window = tuned(131_072, before);
            window.grow_buffer(read, 0);
            assert_eq!(window.buffer, buffer, "{read} after {before}");
        }
    }

    #[test]
    fn what_is_held_behind_a_gap_has_room_of_its_own() {
        let mut window = tuned(131_072, 57_920);
        window.grow_buffer(57_920, 0);
        assert_eq!(window.buffer, 57_920 * 2 * 256 / 170);
        window.grow_buffer(57_920, 100_000);
        assert_eq!((window.buffer, window.space), ((57_920 * 2 + 100_000) * 256 / 170, 57_920));
    }

    #[test]
    fn the_first_full_segment_raises_the_limit_to_what_was_announced() {
        // Measured on Linux 6.18: a server announces 65,160 bytes, and 532 units of 128 with its first ACK of data.
        let mut window = ReceiveWindow {
            threshold: 64_088,
            clamp: 64_088,
            advertised: 65_160,
            ratio: 170,
            ..ReceiveWindow::new(&Config::default(), 1448)
        };
        window.move_clamp();
        assert_eq!((window.threshold, window.clamp), (65_160, 87_040));
        window.ratio = 107;
        window.move_clamp();
        assert_eq!((window.threshold, window.clamp), (54_784, 54_784));
    }

    /// Full segments of 1448 bytes each millisecond from `from` to `to`, at most 1 s.
    fn fill(t: &mut Script, mut seq: u32, from: u32, to: u32) -> u32 {
        for ms in from..to {
            t.at(f64::from(ms), data(seq, seq + 1448).stamped(ms, ms - 20 + 1_000));
            seq += 1448;
        }
        t.sent();
        seq
    }

    #[test]
    fn what_a_gap_has_held_back_counts_in_the_next_round_trip() {
        let mut t = Script::client(&Config::default(), "reno", 20.0);
        let gap = fill(&mut t, 1, 30, 130);
        let before = t.end.rcv.window.space;
        fill(&mut t, gap + 1448, 131, 180);
        t.at(180.0, data(gap, gap + 1448).stamped(180, 1_160));
        assert_eq!(t.end.rcv.window.space, before, "one buffer of many was read");
        fill(&mut t, gap + 50 * 1448, 181, 210);
        let space = t.end.rcv.window.space;
        assert!((69 * 1448..=72 * 1448).contains(&space), "{space} bytes, those of the gap and of 20 ms");
    }

    #[test]
    fn what_arrives_uses_the_window_up() {
        let mut window = ReceiveWindow::new(&Config::default(), 1460);
        window.start_at(u32::MAX - 999);
        let all = window.advertised();
        assert_eq!((window.left(u32::MAX - 999), window.unacknowledged(u32::MAX - 999)), (all, 0));
        assert_eq!((window.left(1_000), window.unacknowledged(1_000)), (all - 2_000, 2_000));
        // A peer may send beyond it.
        assert_eq!(window.left(all + 5), 0);
    }
}
