//! When to acknowledge (RFC 5681, section 4.2; Linux `__tcp_ack_snd_check`): at once at the start and when
//! something is wrong, every second full segment in bulk, after a short while otherwise.

use tcplab_units::{Span, Time};

use crate::Connection;
use crate::ecn::EcnFeedback;
use crate::segment::{ACK, AccEcnOption, FIN, PSH, Segment};

/// Smallest and largest delay (`TCP_DELACK_MIN`, `TCP_DELACK_MAX`) and smallest estimate (`TCP_ATO_MIN`).
const DELAY_MIN_US: u64 = 40_000;
const DELAY_MAX_US: u64 = 200_000;
const ATO_MIN_US: u64 = 40_000;
/// Segments acknowledged at once at the start (`TCP_MAX_QUICKACKS`).
pub(crate) const MAX_QUICK: u32 = 16;
/// Replies after which a connection counts as interactive (`tcp_pingpong_thresh`).
const PINGPONG: u32 = 1;
/// Out-of-order arrivals acknowledged at once before ACKs are compressed.
const UNCOMPRESSED: u32 = 3;
/// Maximum ACKs that compression may hold back (`tcp_comp_sack_nr`).
const MAX_COMPRESSED: u32 = 44;
/// Longest time it may (`tcp_comp_sack_delay_ns`).
const COMPRESSED_DELAY_NS: u64 = 1_000_000;
/// A timer with slack fires at its end unless another one is due (`tcp_comp_sack_slack_ns`).
const COMPRESSED_SLACK_NS: u64 = 100_000;
/// Segment size assumed before any arrived (`TCP_MSS_DEFAULT`).
const SIZE_DEFAULT: u32 = 536;
/// Minimum segment size assumed (`TCP_MIN_MSS`).
const MIN_SIZE: u32 = 88;

#[derive(Debug)]
pub(crate) struct DelayedAck {
    enabled: bool,
    /// An ACK is owed.
    scheduled: bool,
    timer: bool,
    /// When the timer that was armed last ends. An ACK does not stop it (Linux without `INET_CSK_CLEAR_TIMERS`).
    timer_end: Time,
    /// One ACK is due at once.
    now: bool,
    /// A short segment arrived, and another after it.
    pushed: bool,
    pushed_twice: bool,
    /// ACKs still to be sent at once.
    quick: u32,
    pingpong: u32,
    /// Estimated time between segments, microseconds; 0: no data yet.
    ato_us: u64,
    last_data_us: u64,
    /// The peer's segment size as it arrives (`rcv_mss`).
    segment_size: u32,
    /// Size of the last segment, where that was smaller and may be all the peer sends; else 0.
    last_size: u32,
    /// Compression of ACKs for out-of-order data.
    held_back: u32,
    held_at: u32,
    duplicates: u32,
    advmss: u32,
}

impl DelayedAck {
    pub(crate) fn new(enabled: bool, mss: u32, window: u32) -> DelayedAck {
        DelayedAck {
            enabled,
            scheduled: false,
            timer: false,
            timer_end: Time::ZERO,
            now: false,
            pushed: false,
            pushed_twice: false,
            quick: 0,
            pingpong: 0,
            ato_us: 0,
            last_data_us: 0,
            segment_size: mss.min(window / 2).clamp(MIN_SIZE, SIZE_DEFAULT),
            last_size: 0,
            held_back: 0,
            held_at: 0,
            duplicates: 0,
            advmss: mss,
        }
    }

    pub(crate) fn timer_armed(&self) -> bool {
        self.timer
    }

    pub(crate) fn schedule(&mut self) {
        self.scheduled = true;
    }

    pub(crate) fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    /// An ACK is due at once.
    pub(crate) fn ack_now(&mut self) {
        self.now = true;
    }

    pub(crate) fn is_due_now(&self) -> bool {
        self.now
    }

    /// The peer's segment size as it arrives (`rcv_mss`).
    pub(crate) fn segment_size(&self) -> u32 {
        self.segment_size
    }

    /// Room is short: ACKs are delayed again.
    pub(crate) fn stop_quick(&mut self) {
        self.quick = 0;
    }

    /// The window has grown, which one ACK at least reports at once.
    pub(crate) fn keep_quick(&mut self) {
        self.quick |= 1;
    }

    /// Acknowledges at once for as many segments as half of `window` holds, at most `maximum`; for two where it holds none
    /// (`tcp_incr_quickack`).
    #[cold]
    fn raise_quick(&mut self, window: u32, maximum: u32) {
        let half = match window / (2 * self.segment_size) {
            0 => 2,
            segments => segments,
        };
        self.quick = self.quick.max(half.min(maximum));
    }

    /// The application is about to answer.
    pub(crate) fn expect_reply(&mut self) {
        self.pingpong = PINGPONG;
    }

    fn interactive(&self) -> bool {
        self.pingpong >= PINGPONG
    }

    /// No ACK may be delayed now.
    fn acks_at_once(&self) -> bool {
        self.now || !self.enabled || (self.quick > 0 && !self.interactive())
    }

    /// The peer's segment size: at least what arrived, and less once two successive segments of a smaller size are not the
    /// short ends of what the peer wrote (`tcp_measure_rcv_mss`). `options`: bytes of those in each segment. Returns whether
    /// `size` is larger than any before.
    fn note_size(&mut self, size: u32, flags: u8, options: u32) -> bool {
        let previous = core::mem::take(&mut self.last_size);
        if size >= self.segment_size {
            let is_larger = size > self.segment_size;
            if is_larger {
                self.segment_size = size.min(self.advmss);
            }
            self.pushed |= flags & PSH != 0;
            return is_larger;
        }
        self.note_smaller(size, previous, flags, options);
        false
    }

    /// The same of a segment as large as the peer's are, which makes an ACK due.
    #[inline]
    pub(crate) fn note_usual_size(&mut self, flags: u8) {
        self.scheduled = true;
        self.last_size = 0;
        self.pushed |= flags & PSH != 0;
    }

    /// Takes the size of a segment that is smaller than the peer's usual ones. The segment before had `previous` bytes.
    #[cold]
    fn note_smaller(&mut self, size: u32, previous: u32, flags: u8, options: u32) {
        let minimum = if flags & (PSH | FIN) == 0 { MIN_SIZE } else { SIZE_DEFAULT };
        if size + options >= minimum {
            self.last_size = size;
            if size == previous {
                self.segment_size = size;
                return;
            }
        }
        self.pushed_twice |= self.pushed;
        self.pushed = true;
    }

    /// In-order data arrived at `now_us`: adapts the estimated time between segments (`tcp_event_data_recv`). Returns whether
    /// it is the first or follows a silence of more than a timeout: the peer then starts slowly.
    #[inline]
    fn note_arrival(&mut self, now_us: u64, rto_us: u64) -> bool {
        let gap = now_us - core::mem::replace(&mut self.last_data_us, now_us);
        if self.ato_us == 0 {
            self.ato_us = ATO_MIN_US;
            return true;
        }
        if gap <= ATO_MIN_US / 2 {
            self.ato_us = self.ato_us / 2 + ATO_MIN_US / 2;
        } else if gap < self.ato_us {
            self.ato_us = (self.ato_us / 2 + gap).min(rto_us);
        } else {
            return gap > rto_us;
        }
        false
    }

    /// Data leaves soon after data arrived: the application answers (`tcp_event_data_sent`).
    pub(crate) fn note_reply(&mut self, now_us: u64) {
        if self.ato_us != 0 && now_us - self.last_data_us < self.ato_us {
            self.pingpong = self.pingpong.saturating_add(1).min(255);
        }
    }
}

impl Connection {
    pub(crate) fn enter_quick_ack(&mut self, maximum: u32) {
        self.rcv.delack.raise_quick(self.rcv.window.advertised(), maximum);
        self.rcv.delack.pingpong = 0;
        self.rcv.delack.ato_us = ATO_MIN_US;
    }

    /// New in-order data arrived in segments of `size` (`tcp_event_data_recv`).
    #[inline(always)]
    pub(crate) fn note_data_received(&mut self, size: u32, flags: u8) {
        self.rcv.delack.scheduled = true;
        self.measure_segment_size(size, flags);
        self.note_arrival();
    }

    /// The same, its size apart.
    #[inline(always)]
    pub(crate) fn note_arrival(&mut self) {
        self.measure_receiver_rtt();
        if self.rcv.delack.note_arrival(self.sk.tcp_mstamp, self.snd.rtt.rto_us()) {
            self.rcv.delack.raise_quick(self.rcv.window.advertised(), MAX_QUICK);
        }
    }

    /// Data arrived in segments of `size`, in order or not (`tcp_measure_rcv_mss`).
    #[inline(always)]
    pub(crate) fn measure_segment_size(&mut self, size: u32, flags: u8) {
        if self.rcv.delack.note_size(size, flags, self.option_bytes()) {
            self.adapt_ratio(size);
        }
    }

    /// Decides on the ACK that arriving data asks for. `out_of_order`: it may have been out of order.
    pub(crate) fn check_ack(&mut self, out_of_order: bool) {
        if !self.rcv.delack.scheduled {
            return;
        }
        if self.acks_at_once() {
            self.send_ack();
            return;
        }
        if !out_of_order || self.rcv.held.is_empty() {
            self.delay_ack();
            return;
        }
        self.compress_ack();
    }

    /// Decides on the ACK of data that were expected, with no gap and no mark to report.
    #[inline]
    pub(crate) fn acknowledge_expected(&mut self) {
        if self.rcv.delack.acks_at_once() {
            return self.send_ack();
        }
        if self.rcv.window.unacknowledged(self.rcv.nxt) > self.rcv.delack.segment_size {
            let window = self.possible_window();
            if window >= self.rcv.window.advertised() {
                let window = self.advertise(window);
                let ack = self.bare_header(self.rcv.nxt, window);
                self.note_ack_sent();
                return self.outbox().push(ack);
            }
        }
        self.delay_ack();
    }

    fn acks_at_once(&mut self) -> bool {
        if self.rcv.delack.acks_at_once() {
            return true;
        }
        self.rcv.window.unacknowledged(self.rcv.nxt) > self.rcv.delack.segment_size
            && (self.rcv.unread == 0 || self.possible_window() >= self.rcv.window.advertised())
    }

    /// After the third duplicate, ACKs for out-of-order data are held back by a twentieth of the RTT, at
    /// most 1 ms.
    #[cold]
    fn compress_ack(&mut self) {
        if !self.sack_ok || self.rcv.delack.held_back >= MAX_COMPRESSED {
            self.send_ack();
            return;
        }
        if self.rcv.delack.held_at != self.rcv.nxt {
            self.rcv.delack.held_at = self.rcv.nxt;
            self.rcv.delack.duplicates = 0;
        }
        if self.rcv.delack.duplicates < UNCOMPRESSED {
            self.rcv.delack.duplicates += 1;
            self.send_ack();
            return;
        }
        self.rcv.delack.held_back += 1;
        if self.timers.compressed_ack != Time::NEVER {
            return;
        }
        let mut rtt = self.rcv.window.rtt_us();
        if self.sk.srtt_us != 0 {
            rtt = rtt.min(self.sk.srtt_us);
        }
        let delay = (u64::from(rtt) * 125 / 20).min(COMPRESSED_DELAY_NS);
        let due = self.now + Span::from_ns(delay + COMPRESSED_SLACK_NS);
        // A delayed-ACK timer from before the gap sends it as well (`tcp_delack_timer_handler`).
        let earlier = self.rcv.delack.timer_end;
        self.timers.compressed_ack = if earlier > self.now { due.min(earlier) } else { due };
    }

    pub(crate) fn compressed_ack_timeout(&mut self) {
        self.timers.compressed_ack = Time::NEVER;
        self.send_compressed_ack();
    }

    /// Sends the ACK that compression holds back, if any.
    pub(crate) fn send_compressed_ack(&mut self) {
        if self.rcv.delack.held_back > 0 {
            self.send_ack();
        }
    }

    fn delay_ack(&mut self) {
        let delack = &self.rcv.delack;
        let mut ato = delack.ato_us;
        if ato > DELAY_MIN_US {
            let mut maximum = if delack.interactive() || delack.pushed { DELAY_MAX_US } else { 500_000 };
            if self.sk.srtt_us != 0 {
                maximum = maximum.min(u64::from(self.sk.srtt_us >> 3).max(DELAY_MIN_US));
            }
            ato = ato.min(maximum);
        }
        ato = ato.min(DELAY_MAX_US);
        let mut due = self.timers.fire(self.now, Span::from_us(ato));
        if delack.timer {
            if self.timers.delayed_ack <= self.now + Span::from_us(ato / 4) {
                self.send_ack();
                return;
            }
            due = due.min(self.timers.delayed_ack);
        }
        self.rcv.delack.timer = true;
        self.rcv.delack.timer_end = due;
        self.timers.delayed_ack = due;
    }

    pub(crate) fn delayed_ack_timeout(&mut self) {
        self.timers.delayed_ack = Time::NEVER;
        self.rcv.delack.timer = false;
        if !self.rcv.delack.scheduled {
            return;
        }
        if self.rcv.delack.interactive() {
            // The reply did not come in time.
            self.rcv.delack.pingpong = 0;
            self.rcv.delack.ato_us = ATO_MIN_US;
        } else {
            self.rcv.delack.ato_us = (self.rcv.delack.ato_us * 2).min(self.snd.rtt.rto_us());
        }
        self.send_ack();
    }

    /// The application has read `copied` bytes (`tcp_cleanup_rbuf`). Acknowledge if an acknowledgment is
    /// overdue, if a short message was read by an application that does not answer, or if the window has
    /// doubled.
    #[inline(always)]
    pub(crate) fn ack_after_read(&mut self, copied: u64) {
        let mut due = false;
        if self.rcv.delack.scheduled {
            let unacknowledged = self.rcv.window.unacknowledged(self.rcv.nxt);
            let delack = &self.rcv.delack;
            let message_read = copied > 0
                && self.rcv.unread == 0
                && (delack.pushed_twice || (delack.pushed && !delack.interactive()));
            due = unacknowledged > delack.segment_size || message_read;
        }
        if !due && copied > 0 && !self.rcv.closed {
            let left = self.rcv.window.left(self.rcv.nxt);
            if 2 * u64::from(left) <= self.window_clamp() {
                let new = self.possible_window();
                due = new > 0 && new >= 2 * left;
            }
        }
        if due {
            self.send_ack();
        }
    }

    /// Sends an ACK without data.
    pub(crate) fn send_ack(&mut self) {
        let mut ack = self.header();
        self.accecn_option(&mut ack);
        self.outbox().push(ack);
    }

    /// Sends an ACK that goes up to `nxt` only, for a control that wants to speak for earlier data
    /// (`__tcp_send_ack`).
    pub(crate) fn send_ack_up_to(&mut self, nxt: u32) {
        if nxt == self.rcv.nxt {
            return self.send_ack();
        }
        let ack = self.header_up_to(nxt);
        self.outbox().push(ack);
    }

    /// The header of anything that leaves: acknowledges, so whatever ACK was owed is paid.
    pub(crate) fn header(&mut self) -> Segment {
        let segment = self.header_up_to(self.rcv.nxt);
        self.note_ack_sent();
        segment
    }

    fn header_up_to(&mut self, nxt: u32) -> Segment {
        if self.has_gaps_to_report() || self.ecn_feedback() != EcnFeedback::None {
            return self.header_with_gaps_and_marks(nxt);
        }
        let window = self.select_window();
        self.bare_header(nxt, window)
    }

    fn has_gaps_to_report(&self) -> bool {
        self.sack_ok && self.rcv.held.anything_to_report()
    }

    /// A header without options for gaps and marks. It is built in one piece: a copy right after a narrower store stalls.
    #[inline(always)]
    fn bare_header(&mut self, nxt: u32, window: u16) -> Segment {
        let has_timestamp = self.timestamps_ok;
        let (ts_val, ts_ecr) = if has_timestamp { (self.timestamp(), self.rcv.ts_recent) } else { (0, 0) };
        Segment {
            seq: self.sk.snd_nxt,
            ack: nxt,
            len: 0,
            ts_val,
            ts_ecr,
            sack: [(0, 0); 4],
            window,
            flags: ACK,
            ae: false,
            accecn: AccEcnOption::default(),
            sack_count: 0,
            mss: 0,
            window_scale: 255,
            ecn: 0,
            sack_permitted: false,
            has_timestamp,
            more: false,
            retransmission: false,
        }
    }

    #[cold]
    fn header_with_gaps_and_marks(&mut self, nxt: u32) -> Segment {
        let window = self.select_window();
        let mut segment = self.bare_header(nxt, window);
        if self.has_gaps_to_report() {
            let room = if self.timestamps_ok { 3 } else { 4 };
            segment.sack_count = self.rcv.held.write_blocks(&mut segment.sack, room);
        }
        self.ecn_header(&mut segment);
        segment
    }

    fn note_ack_sent(&mut self) {
        self.accecn_acknowledged();
        let delack = &mut self.rcv.delack;
        if delack.held_back > 0 {
            delack.held_back = 0;
            self.timers.compressed_ack = Time::NEVER;
        }
        // Only ACKs of new data count (Linux 6.6 and later, `tcp_dec_quickack_mode`).
        if delack.scheduled && delack.quick > 0 {
            delack.quick -= 1;
            if delack.quick == 0 {
                delack.ato_us = ATO_MIN_US;
            }
        }
        delack.scheduled = false;
        delack.now = false;
        delack.pushed = false;
        delack.pushed_twice = false;
        if delack.timer {
            delack.timer = false;
            self.timers.delayed_ack = Time::NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO_US: u64 = 240_000;
    const MSS: u32 = 1448;

    fn delack() -> DelayedAck {
        DelayedAck::new(true, MSS, 65_535)
    }

    #[test]
    fn half_the_window_is_acknowledged_at_once_at_the_start() {
        let mut delack = delack();
        delack.segment_size = MSS;
        assert!(delack.note_arrival(1_000_000, RTO_US));
        delack.raise_quick(10 * MSS, MAX_QUICK);
        assert_eq!(delack.quick, 5);
        delack.raise_quick(100 * MSS, MAX_QUICK);
        assert_eq!(delack.quick, MAX_QUICK);
        assert!(delack.acks_at_once());
        delack.stop_quick();
        assert!(!delack.acks_at_once());
    }

    #[test]
    fn half_of_a_small_window_may_be_one_segment() {
        for (window, quick) in [(MSS, 2), (2 * MSS, 1), (4 * MSS - 1, 1), (4 * MSS, 2)] {
            let mut delack = delack();
            delack.segment_size = MSS;
            delack.raise_quick(window, MAX_QUICK);
            assert_eq!(delack.quick, quick, "{window}");
        }
    }

    #[test]
    fn the_delay_follows_the_time_between_segments() {
        let mut delack = delack();
        let mut now = 1_000_000;
        let mut arrive = |gap| {
            now += gap;
            (delack.note_arrival(now, RTO_US), delack.ato_us)
        };
        assert_eq!(arrive(0), (true, ATO_MIN_US));
        // Half of the old estimate and the gap.
        assert_eq!(arrive(30_000), (false, 50_000));
        assert_eq!(arrive(40_000), (false, 65_000));
        // Short gaps draw it down to the minimum.
        assert_eq!(arrive(1_000), (false, 52_500));
        assert_eq!(arrive(100_000), (false, 52_500));
        // After a timeout's silence the peer starts slowly.
        assert_eq!(arrive(RTO_US + 1), (true, 52_500));
    }

    #[test]
    fn a_larger_segment_sets_the_size_at_once_a_smaller_one_when_it_comes_twice() {
        let mut delack = delack();
        assert!(delack.note_size(MSS, 0, 12));
        assert!(!delack.note_size(MSS, 0, 12));
        delack.note_size(1000, 0, 12);
        assert_eq!(delack.segment_size(), MSS);
        delack.note_size(1000, 0, 12);
        assert_eq!(delack.segment_size(), 1000);
    }

    #[test]
    fn the_short_end_of_a_write_does_not_change_the_size() {
        let mut delack = delack();
        delack.note_size(MSS, 0, 12);
        for _ in 0..2 {
            delack.note_size(100, PSH, 12);
        }
        assert_eq!((delack.segment_size(), delack.pushed, delack.pushed_twice), (MSS, true, true));
    }

    #[test]
    fn an_application_that_answers_gets_its_acks_delayed() {
        let mut delack = delack();
        delack.raise_quick(65_535, MAX_QUICK);
        delack.note_arrival(1_000_000, RTO_US);
        delack.note_reply(1_000_000 + ATO_MIN_US);
        assert!(delack.acks_at_once());
        delack.note_reply(1_000_000 + ATO_MIN_US - 1);
        assert!(!delack.acks_at_once());
        delack.ack_now();
        assert!(delack.acks_at_once());
    }
}
