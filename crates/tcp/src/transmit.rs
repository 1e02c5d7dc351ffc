//! Sending new data: how much, in what bursts, and when not (Linux `tcp_write_xmit`).

use tcplab_control::CaEvent;

use crate::Connection;
use crate::rate::note_sending;
use crate::scoreboard::{BURST_START, HAS_FIN, Id, LONE_RUNT, PUSHED, Sent};
use crate::segment::{CWR, FIN, PSH};
use crate::seq::after;
use crate::timers::Pending;

/// Room Linux keeps for headers in a super-packet (`MAX_TCP_HEADER + 1`).
pub(crate) const GSO_HEADERS: u32 = 321;
/// Burst budgets grow for RTTs below this power of two of microseconds times 32 (`tcp_tso_rtt_log`).
const TSO_RTT_LOG: u32 = 9;
/// A burst is not deferred when this share of the window is free (`tcp_tso_win_divisor`).
const TSO_WINDOW_DIVISOR: u64 = 3;
/// A burst is deferred only this long after the last one, nanoseconds.
const TSO_DEFER_NS: u64 = 1_000_000;
/// And only if the next ACK is due within this time, microseconds (since Linux 6.18; half an RTT before).
const TSO_DEFER_ACK_US: u64 = 1_000;

/// Why data is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// Because there is some.
    Pending,
    /// Because F-RTO asks for new data (RFC 5682, section 3.1, step 2.b), which Nagle's algorithm does not hold back.
    Trial,
    /// One burst.
    One,
    /// As a tail loss probe: one burst, whatever the congestion window.
    Probe,
}

impl Push {
    /// As many bursts as may be sent, not one.
    fn is_all(self) -> bool {
        matches!(self, Push::Pending | Push::Trial)
    }

    /// Nagle's algorithm may hold a short segment back (`TCP_NAGLE_OFF` where it may not).
    fn obeys_nagle(self) -> bool {
        matches!(self, Push::Pending | Push::One)
    }
}

impl Connection {
    /// Payload bytes in the send buffer that were never sent.
    pub(crate) fn unsent(&self) -> u32 {
        if self.snd.fin_sent { 0 } else { self.snd.write_seq.wrapping_sub(self.sk.snd_nxt) }
    }

    fn fin_waits(&self) -> bool {
        self.snd.fin_queued && !self.snd.fin_sent
    }

    /// Whether there is data or a FIN to send.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent() > 0 || self.fin_waits()
    }

    /// End of the peer's window.
    pub(crate) fn window_end(&self) -> u32 {
        self.sk.snd_una.wrapping_add(self.snd.wnd)
    }

    /// Whether the next full segment, or all that is left, lies in the peer's window.
    pub(crate) fn next_fits_window(&self) -> bool {
        let unsent = self.unsent();
        if unsent == 0 && !self.fin_waits() {
            return false;
        }
        let mss = self.current_mss();
        let bytes = if unsent <= mss { unsent + u32::from(self.fin_waits()) } else { mss };
        !after(self.sk.snd_nxt.wrapping_add(bytes), self.window_end())
    }

    /// Sends one burst of the first buffer, which is full (`tcp_push_one`).
    pub(crate) fn push_one(&mut self) {
        if self.established && self.has_unsent() {
            self.write_xmit(Push::One);
        }
    }

    /// Sends what may be sent; arms the zero-window probe if nothing may and nothing is out.
    pub(crate) fn push_pending(&mut self) {
        self.push(Push::Pending);
    }

    /// The same, `push` saying why.
    pub(crate) fn push(&mut self, push: Push) {
        if self.established && self.has_unsent() {
            self.write_xmit(push);
            self.arm_window_probe();
        }
    }

    pub(crate) fn write_xmit(&mut self, push: Push) {
        let max_segments = self.burst_segments();
        let (mut cwnd_limited, mut rwnd_limited) = (false, false);
        let mut sent = 0;
        while self.has_unsent() && !self.pacing_holds_back() {
            let mss = self.current_mss();
            let unsent = self.unsent();
            let fin = self.fin_waits();
            let quota = match self.cwnd_quota(fin && unsent <= mss) {
                0 if push == Push::Probe => 1,
                0 => break,
                quota => quota.min(max_segments),
            };
            let first = self.snd.buffer.first(quota.saturating_mul(mss));
            let is_last = first == unsent;
            if !self.next_fits_window() {
                rwnd_limited = true;
                break;
            }
            if first <= mss {
                if is_last && push.obeys_nagle() && !fin && self.nagle_holds_back(first < mss) {
                    break;
                }
            } else if push.is_all()
                && self.defers_burst(first, is_last, max_segments, &mut cwnd_limited, &mut rwnd_limited)
            {
                break;
            }
            let bytes = if first <= mss { first } else { self.burst_bytes(first, quota, push) };
            if self.small_queue_holds_back(bytes, false) {
                break;
            }
            sent += self.send_burst(bytes, fin && bytes == unsent, false);
            if !push.is_all() {
                break;
            }
        }
        self.chrono_rwnd_limited(rwnd_limited);
        cwnd_limited |= self.sk.packets_in_flight() >= self.sk.snd_cwnd;
        if sent > 0 || cwnd_limited {
            self.validate_cwnd(cwnd_limited);
        }
        if sent > 0 {
            if self.in_cwnd_reduction() {
                self.snd.prr.note_sent(sent);
            }
            if push != Push::Probe {
                self.schedule_loss_probe(false);
            }
        }
    }

    /// Segments the congestion window lets out at once: at most half of it (`tcp_cwnd_test`).
    fn cwnd_quota(&self, lone_fin: bool) -> u32 {
        if lone_fin {
            return 1;
        }
        let free = self.sk.snd_cwnd.saturating_sub(self.sk.packets_in_flight());
        free.min((self.sk.snd_cwnd >> 1).max(1))
    }

    /// Largest burst, segments: what the pacing rate sends in about a millisecond, more on paths with a
    /// very short RTT (`tcp_tso_autosize`).
    fn burst_segments(&mut self) -> u32 {
        if !self.config.tso {
            return 1;
        }
        let maximum = u64::from(self.config.gso_max_size.saturating_sub(GSO_HEADERS));
        let mut bytes = self.sk.sk_pacing_rate >> self.sk.sk_pacing_shift.min(63);
        let shift = self.sk.rtt_min_us >> TSO_RTT_LOG;
        if shift < 32 {
            bytes = bytes.saturating_add(maximum >> shift);
        }
        let minimum = self.snd.control.min_tso_segs(&mut self.sk).max(1);
        (bytes.min(maximum) as u32 / self.sk.mss_cache).max(minimum)
    }

    /// Bytes of the next burst, from a buffer of `first` that are more than a segment (`tcp_mss_split_point`).
    fn burst_bytes(&self, first: u32, quota: u32, push: Push) -> u32 {
        let mss = self.current_mss();
        let maximum = mss.saturating_mul(quota);
        let allowed = first.min(self.window_end().wrapping_sub(self.sk.snd_nxt));
        if maximum <= allowed {
            return maximum;
        }
        let partial = allowed % mss;
        if push.obeys_nagle() && self.nagle_holds_back(partial != 0) { allowed - partial } else { allowed }
    }

    /// Nagle's algorithm with Minshall's change: a small segment waits only for another small one.
    fn nagle_holds_back(&self, partial: bool) -> bool {
        partial
            && self.config.nagle
            && self.sk.packets_out > 0
            && after(self.snd.small_end, self.sk.snd_una)
            && !after(self.snd.small_end, self.sk.snd_nxt)
    }

    /// Waits for more of the window to open so that the burst from a buffer of `first` bytes gets longer, if an ACK is
    /// due soon (`tcp_tso_should_defer`). A buffer that is not the last gets no more data.
    fn defers_burst(
        &self,
        first: u32,
        is_last: bool,
        max_segments: u32,
        cwnd_limited: &mut bool,
        rwnd_limited: &mut bool,
    ) -> bool {
        if self.in_recovery_or_loss() || self.sk.tcp_clock_cache > self.sk.tcp_wstamp_ns + TSO_DEFER_NS {
            return false;
        }
        let mss = u64::from(self.sk.mss_cache);
        let send_window = u64::from(self.window_end().wrapping_sub(self.sk.snd_nxt));
        let free = self.sk.snd_cwnd.saturating_sub(self.sk.packets_in_flight());
        let congestion_window = u64::from(free) * mss;
        let limit = send_window.min(congestion_window);
        let whole = u64::from(self.snd.wnd).min(u64::from(self.sk.snd_cwnd) * mss);
        let is_enough = limit >= u64::from(max_segments) * mss || !is_last && limit >= u64::from(first);
        if is_enough || limit >= whole / TSO_WINDOW_DIVISOR {
            return false;
        }
        let Some(oldest) = self.snd.board.first() else { return false };
        let srtt_us = u64::from(self.sk.srtt_us >> 3);
        if oldest.sent_us + srtt_us > self.sk.tcp_mstamp + TSO_DEFER_ACK_US.min(srtt_us / 2) {
            return false;
        }
        if congestion_window < send_window {
            if congestion_window <= u64::from(first) {
                *cwnd_limited = true;
                return true;
            }
        } else if send_window <= u64::from(first) {
            *rwnd_limited = true;
            return true;
        }
        !(is_last && self.fin_waits())
    }

    /// Sends `bytes` of the first buffer (and the FIN) as one burst; returns its segments. The last segment carries PSH if
    /// `push` asks for it or the application pushed the buffer and, as in `__tcp_transmit_skb`, whenever it is not alone.
    /// PSH tells the peer's GRO to pass the burst on, and makes a reader that is quick acknowledge an odd segment
    /// (`tcp_measure_rcv_mss`, `tcp_cleanup_rbuf`). A retransmission is without, unless the application pushed it.
    #[inline(always)]
    pub(crate) fn send_burst(&mut self, bytes: u32, fin: bool, push: bool) -> u32 {
        let mss = self.current_mss();
        let push = self.snd.buffer.send(bytes) | push;
        let nothing_out = self.sk.packets_out == 0;
        self.note_data_sent();
        let mut header = self.header();
        self.ecn_mark_data(&mut header, bytes > 0);
        self.accecn_data_option(&mut header, mss.min(bytes));
        let count = bytes.div_ceil(mss).max(1);
        let first_seq = self.sk.snd_nxt;
        let mut template = Sent::new(0, 0, 0);
        note_sending(&mut self.sk, &mut template, nothing_out);
        for number in 0..count - 1 {
            let seq = first_seq.wrapping_add(number * mss);
            let start = if number == 0 { BURST_START } else { 0 };
            self.record_sent(&template, seq, seq.wrapping_add(mss), start);
        }
        let before_last = (count - 1) * mss;
        let (last_seq, last_len) = (first_seq.wrapping_add(before_last), bytes - before_last);
        let mut end_seq = last_seq.wrapping_add(last_len);
        let mut flags = if count == 1 { BURST_START } else { 0 };
        if last_len > 0 && push {
            flags |= PUSHED;
        }
        if fin {
            flags |= HAS_FIN;
            end_seq = end_seq.wrapping_add(1);
            self.snd.fin_sent = true;
        }
        self.record_sent(&template, last_seq, end_seq, flags);
        if last_len < mss {
            self.snd.small_end = end_seq;
        }
        // Only the first segment of a burst tells that the window was reduced.
        let later_flags = if self.ecn_ok() { header.flags & !CWR } else { header.flags };
        let alone = u32::from(later_flags != header.flags).min(count - 1);
        let outbox = self.outbox();
        if alone > 0 {
            let first = outbox.push_run(&header, alone);
            (first.seq, first.len, first.more) = (first_seq, mss, true);
        }
        if count - 1 > alone {
            let first = outbox.push_run(&header, count - 1 - alone);
            (first.seq, first.len, first.more) = (first_seq.wrapping_add(alone * mss), mss, true);
            first.flags = later_flags;
        }
        let last = outbox.push_run(&header, 1);
        (last.seq, last.len) = (last_seq, last_len);
        if count > 1 {
            last.flags = later_flags;
        }
        if last_len > 0 && (push || count > 1) {
            last.flags |= PSH;
        }
        if fin {
            last.flags |= FIN;
        }
        self.snd.small_queue.add(bytes);
        self.sk.packets_out += count;
        self.sk.segs_out = self.sk.segs_out.wrapping_add(count);
        self.snd.counters.segments_sent += u64::from(count) - u64::from(bytes == 0);
        self.snd.counters.bytes_sent += u64::from(bytes);
        self.pace(bytes);
        if nothing_out || self.timers.pending == Pending::LossProbe {
            self.rearm_rto();
        }
        count
    }

    /// Puts a segment that leaves on the scoreboard.
    #[inline(always)]
    fn record_sent(&mut self, template: &Sent, seq: u32, end_seq: u32, flags: u16) {
        let is_short = end_seq.wrapping_sub(self.sk.snd_una) < self.sk.mss_cache;
        let flags = flags | template.flags | if is_short { LONE_RUNT } else { 0 };
        self.snd.board.push(template.with(seq, end_seq, flags));
        self.sk.snd_nxt = end_seq;
    }

    /// Sends a copy of segment `id`.
    pub(crate) fn emit_retransmission(&mut self, id: Id) {
        self.note_data_sent();
        let sent = *self.snd.board.get(id);
        let mut header = self.header();
        self.ecn_mark_data(&mut header, false);
        header.seq = sent.seq;
        header.len = sent.len();
        header.retransmission = true;
        self.accecn_data_option(&mut header, sent.len());
        if sent.has(HAS_FIN) {
            header.flags |= FIN;
        }
        if sent.has(PUSHED) {
            header.flags |= PSH;
        }
        self.snd.small_queue.add(sent.len());
        self.snd.board.link_newest(id);
        note_sending(&mut self.sk, self.snd.board.get_mut(id), false);
        self.outbox().push(header);
        self.sk.segs_out = self.sk.segs_out.wrapping_add(1);
        self.snd.counters.segments_sent += u64::from(header.len > 0);
        self.pace(header.len);
    }

    /// Data is about to leave (Linux `tcp_event_data_sent`).
    fn note_data_sent(&mut self) {
        if self.sk.packets_in_flight() == 0 {
            self.snd.control.cwnd_event(&mut self.sk, CaEvent::TxStart);
        }
        self.snd.last_sent_us = self.sk.tcp_mstamp;
        self.rcv.delack.note_reply(self.sk.tcp_mstamp);
    }
}
