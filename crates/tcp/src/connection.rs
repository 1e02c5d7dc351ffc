//! One end of a connection.

use core::mem::offset_of;

use tcplab_control::{CaState, Control, TcpSock};
use tcplab_units::{Span, Time, prefetch, prefetch_part};

use crate::ecn::EcnState;
use crate::gro::Gro;
use crate::handshake::TIMESTAMP_BYTES;
use crate::outbox::Outbox;
use crate::receive::Receiver;
use crate::segment::{ACK, RST};
use crate::sender::Sender;
use crate::seq::before;
use crate::timers::Timers;
use crate::window::ReceiveWindow;
use crate::{Config, Segment, Ticks};

/// The endpoint's clocks are this far ahead of the run's, so that no instant of a run is 0, which
/// `TcpSock` and the controls take for "never".
const EPOCH_US: u64 = EPOCH_NS / 1_000;
/// The same in nanoseconds.
pub(crate) const EPOCH_NS: u64 = 1_000_000_000;

/// One end of a connection. Drive it so: after any call, send what `poll_transmit` yields until it yields
/// none, then call `handle_timeout` at `poll_timeout`.
///
/// With thousands of connections most of a segment's time is spent waiting for memory. So what arriving data need lies
/// together: all up to the clocks and counters of `sk`, which have a line of the processor's cache, and a line of `snd`. What
/// ACKs need follows each of the two. `prefetch` asks for no more. Rarely needed members fill the gaps and come last.
#[repr(C, align(64))]
pub struct Connection {
    pub(crate) last_invalid_us: u64,
    pub(crate) rcv: Receiver,
    pub(crate) now: Time,
    pub(crate) state: State,
    pub(crate) established: bool,
    pub(crate) sack_ok: bool,
    pub(crate) timestamps_ok: bool,
    /// Arriving segments are merged (`Config::gro`).
    pub(crate) merges: bool,
    pub(crate) timers: Timers,
    /// None: it is empty. It comes with what is lent, or with the first segment or notice.
    outbox: Option<Box<Outbox>>,
    pub(crate) sk: TcpSock,
    pub(crate) config: Config,
    pub(crate) snd: Sender,
    pub(crate) ecn: EcnState,
    pub(crate) gro: Gro,
    pub(crate) handshake: Handshake,
}

/// How far a connection is. `Sender` and `Receiver` say which half is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    SynSent,
    SynReceived,
    Established,
    Closed,
    Aborted,
}

/// State needed until the connection is established.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    /// Retransmissions by timeout.
    pub retries: u32,
    /// The SYN or SYN-ACK was sent more than once: by timeout, or to answer the peer's SYN again.
    pub is_resent: bool,
    pub last_sent_us: u64,
    pub peer_scales: bool,
}

/// Totals of an endpoint: those figures of `Info` that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Payload bytes sent for the first time.
    pub bytes_sent: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Segments ever taken for lost.
    pub losses_detected: u64,
}

/// A snapshot of an endpoint, in the manner of Linux's `tcp_info`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// Congestion state.
    pub ca_state: CaState,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments; none before the first loss.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// RTT variance.
    pub rttvar: Span,
    /// Minimum RTT; none before the first sample.
    pub min_rtt: Option<Span>,
    /// Segments in flight (`tcp_packets_in_flight`).
    pub inflight: u32,
    /// Segments taken for lost and not yet acknowledged, retransmitted or not (`tcpi_lost`).
    pub lost: u32,
    /// Segments retransmitted and still out.
    pub retrans: u32,
    /// Pacing rate, bit/s; none: unpaced.
    pub pacing_rate: Option<u64>,
    /// Latest delivery rate sample, bit/s; none before the first.
    pub delivery_rate: Option<u64>,
    /// Whether that sample was application-limited.
    pub app_limited: bool,
    /// The peer's receive window, bytes.
    pub rwnd: u64,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Retransmission timeout.
    pub rto: Span,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes sent for the first time.
    pub bytes_sent: u64,
    /// Payload bytes received in order and handed to the application.
    pub bytes_received: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Segments ever taken for lost.
    pub losses_detected: u64,
    /// Segments that the peer said were delivered with a mark.
    pub delivered_ce: u64,
    /// Time with data outstanding or waiting.
    pub busy_time: Span,
    /// Time limited by the peer's window.
    pub rwnd_limited: Span,
    /// Time limited by the send buffer.
    pub sndbuf_limited: Span,
}

/// Something worth recording that happened inside an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    /// The handshake is complete.
    Established,
    /// A valid RTT sample.
    RttSample(Span),
    /// The congestion state changed.
    CaState(CaState),
    /// A retransmission timeout fired.
    Rto,
    /// A tail loss probe was sent.
    TailLossProbe,
    /// A reduction was undone as spurious.
    Undo,
    /// The window was reduced in response to ECN.
    EcnResponse,
    /// The peer's FIN was received in order.
    PeerClosed,
    /// Everything sent, FIN included, is acknowledged and the peer has closed too.
    Closed,
    /// Reset, or given up after too many timeouts.
    Aborted,
}

impl Connection {
    /// An active opener; its first `poll_transmit` is the SYN.
    pub fn connect(config: &Config, control: Control, isn: u32, now: Time) -> Connection {
        let mut connection = Connection::new(config, control, isn, State::SynSent, now);
        connection.send_syn();
        connection
    }

    /// A passive opener that has received `syn`; its first `poll_transmit` is the SYN-ACK.
    pub fn accept(config: &Config, control: Control, isn: u32, syn: &Segment, now: Time) -> Connection {
        let mut connection = Connection::new(config, control, isn, State::SynReceived, now);
        let ecn = connection.ecn_accepts(syn);
        if config.timestamps && syn.has_timestamp {
            connection.rcv.window = ReceiveWindow::new(config, config.mss - TIMESTAMP_BYTES.min(config.mss));
        }
        connection.note_syn_options(syn);
        connection.ecn_set(ecn, syn);
        connection.send_syn_ack();
        connection
    }

    fn new(config: &Config, control: Control, isn: u32, state: State, now: Time) -> Connection {
        let after_syn = isn.wrapping_add(1);
        let sk = TcpSock {
            sk_pacing_rate: u64::MAX,
            snd_cwnd: config.initial_window,
            snd_una: isn,
            snd_nxt: after_syn,
            high_seq: isn,
            mss_cache: config.mss,
            tl_random: (u64::from(isn) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ..TcpSock::default()
        };
        let mut connection = Connection {
            sk,
            config: config.clone(),
            now,
            state,
            established: false,
            sack_ok: config.sack,
            timestamps_ok: config.timestamps,
            merges: config.gro,
            timers: Timers::new(),
            outbox: None,
            ecn: EcnState::default(),
            rcv: Receiver::new(config),
            snd: Sender::new(config, control, isn),
            gro: Gro::default(),
            handshake: Handshake::default(),
            last_invalid_us: 0,
        };
        connection.set_now(now);
        connection
    }

    /// The application writes `bytes` more. They are taken into the send buffer as it has room, as
    /// a blocking writer's would be; use `u64::MAX` for a source that never ends.
    pub fn write(&mut self, bytes: u64, now: Time) {
        self.set_now(now);
        if !self.snd.closing && self.state != State::Aborted {
            self.write_bytes(bytes);
        }
    }

    /// The application stops: what was offered but not yet taken into the send buffer is cancelled. Returns
    /// how many bytes that were (`u64::MAX` for a source without end).
    pub fn cancel(&mut self, now: Time) -> u64 {
        self.set_now(now);
        let cancelled = self.cancel_write();
        self.chrono_stop_sndbuf_limited();
        if self.snd.closing && self.established {
            self.fill_send_buffer();
        }
        cancelled
    }

    /// No more will be written: a FIN follows the last byte.
    pub fn close(&mut self, now: Time) {
        self.set_now(now);
        self.snd.closing = true;
        if self.established && self.nothing_unwritten() {
            self.fill_send_buffer();
        }
    }

    /// The application gives the connection up: the peer is sent a reset (RFC 9293, section 3.10.5).
    pub fn reset(&mut self, now: Time) {
        self.set_now(now);
        if matches!(self.state, State::Aborted | State::Closed) {
            return;
        }
        // It acknowledges as well, as Linux's does (`tcp_send_active_reset`).
        self.send_reset(self.sk.snd_nxt, RST | ACK);
        self.abort();
    }

    /// Whether the send buffer has taken all that was written.
    pub fn has_taken_all(&self) -> bool {
        self.nothing_unwritten()
    }

    /// Whether it was closed, and all of it has been sent up to the FIN.
    pub fn has_sent_fin(&self) -> bool {
        self.snd.fin_sent
    }

    /// Sets whether the application reads at once whatever arrives (true unless changed).
    pub fn read_at_once(&mut self, yes: bool) {
        self.rcv.reads_at_once = yes;
    }

    /// Whether it does.
    #[inline]
    pub fn reads_at_once(&self) -> bool {
        self.rcv.reads_at_once
    }

    /// The application reads up to `max` bytes; returns how many there were.
    pub fn read(&mut self, max: u64, now: Time) -> u64 {
        self.set_now(now);
        self.read_bytes(max)
    }

    /// Its timers fire with the ticks of a host, not on time: those for pacing, compressed ACKs and GRO alone have a finer clock.
    pub fn tick(&mut self, ticks: Ticks) {
        self.timers.ticks = Some(ticks);
        if self.timers.xmit != Time::NEVER {
            self.timers.xmit = ticks.fire(self.now, self.timers.xmit.since(self.now));
        }
    }

    /// A segment arrived.
    pub fn handle_segment(&mut self, segment: &Segment, now: Time) {
        self.set_now(now);
        if self.state == State::Established && !self.merges {
            return self.handle_established(segment, segment.len);
        }
        self.handle_otherwise(segment);
    }

    #[inline(never)]
    fn handle_otherwise(&mut self, segment: &Segment) {
        if self.merges && self.established {
            self.gro_receive(segment);
        } else {
            self.dispatch(segment, segment.len);
        }
    }

    /// The time of `poll_timeout` has come. Harmless when early.
    pub fn handle_timeout(&mut self, now: Time) {
        self.set_now(now);
        self.serve_timers();
    }

    /// When `handle_timeout` wants to be called; `Time::NEVER` if no timer is armed.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.timers.next()
    }

    /// The next segment to send now, if any.
    #[inline]
    pub fn poll_transmit(&mut self, _now: Time) -> Option<Segment> {
        self.outbox.as_mut()?.pop()
    }

    /// Whether there is a segment to send now.
    #[inline]
    pub fn has_to_transmit(&self) -> bool {
        self.outbox.as_ref().is_some_and(|outbox| outbox.has_segments())
    }

    /// Hands each segment to send now to `send`, which says whether the host takes it.
    #[inline]
    pub fn transmit(&mut self, now: Time, mut send: impl FnMut(&Segment) -> bool) {
        while let Some(segment) = self.poll_transmit(now) {
            if !send(&segment) {
                self.departed(segment.len, now);
            }
        }
    }

    /// Hands the segments to send now to `send`, which takes them all, in runs: the first segment and how many there are. The
    /// others differ from it in their sequence numbers only.
    #[inline]
    pub fn transmit_runs(&mut self, send: impl FnMut(&Segment, u32)) {
        if let Some(outbox) = &mut self.outbox {
            outbox.take_runs(send);
        }
    }

    /// The next thing worth recording, oldest first.
    #[inline]
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.outbox.as_mut()?.poll_notice()
    }

    /// Payload bytes that arrived in order, ever (a cheap counter).
    pub fn bytes_received(&self) -> u64 {
        self.rcv.bytes
    }

    /// Payload bytes cumulatively acknowledged by the peer, ever (a cheap counter).
    pub fn bytes_acked(&self) -> u64 {
        self.sk.bytes_acked
    }

    /// Totals of what was sent and lost (cheaper than `info`).
    pub fn counters(&self) -> Counters {
        self.snd.counters
    }

    /// Whether it was reset or given up, by either end.
    pub fn is_aborted(&self) -> bool {
        self.state == State::Aborted
    }

    /// Whether its handshake was completed.
    #[inline]
    pub fn was_established(&self) -> bool {
        self.established
    }

    /// Whether it is established, and has nothing to send but ACKs.
    #[inline]
    pub fn only_receives(&self) -> bool {
        self.state == State::Established && self.sk.packets_out == 0 && !self.has_unsent()
    }

    /// Whether there is nothing left to poll for.
    pub(crate) fn is_drained(&self) -> bool {
        self.outbox.as_ref().is_none_or(|outbox| outbox.is_empty())
    }

    /// The congestion window, segments (a cheap look, for those who want it after every segment).
    pub fn cwnd(&self) -> u32 {
        self.sk.snd_cwnd
    }

    /// A snapshot.
    #[inline]
    pub fn info(&self, now: Time) -> Info {
        let sk = &self.sk;
        let (busy_time, rwnd_limited, sndbuf_limited) = self.snd.chrono.spans(now.as_us() + EPOCH_US);
        let us = |us: u32| Span::from_us(u64::from(us));
        Info {
            ca_state: self.ca_state(),
            cwnd: sk.snd_cwnd,
            ssthresh: (sk.snd_ssthresh < tcplab_control::sock::INFINITE_SSTHRESH).then_some(sk.snd_ssthresh),
            srtt: us(sk.srtt_us >> 3),
            rttvar: us(self.snd.rtt.deviation_us()),
            min_rtt: (sk.rtt_min_us != u32::MAX).then(|| us(sk.rtt_min_us)),
            inflight: sk.packets_in_flight(),
            lost: sk.lost_out,
            retrans: sk.retrans_out,
            pacing_rate: (sk.sk_pacing_status != tcplab_control::sock::PACING_NONE
                && sk.sk_pacing_rate != u64::MAX)
                .then(|| sk.sk_pacing_rate.saturating_mul(8)),
            delivery_rate: self.snd.latest_rate.bits_per_sec(sk.mss_cache),
            app_limited: self.snd.latest_rate.is_app_limited(),
            rwnd: u64::from(self.snd.wnd),
            mss: sk.mss_cache,
            rto: Span::from_us(self.snd.rtt.rto_us()),
            bytes_acked: sk.bytes_acked,
            bytes_sent: self.snd.counters.bytes_sent,
            bytes_received: self.rcv.bytes,
            segments_sent: self.snd.counters.segments_sent,
            retransmits: self.snd.counters.retransmits,
            rtos: self.snd.counters.rtos,
            losses_detected: self.snd.counters.losses_detected,
            delivered_ce: u64::from(sk.delivered_ce),
            busy_time,
            rwnd_limited,
            sndbuf_limited,
        }
    }

    /// The control at work.
    pub fn control(&self) -> &Control {
        &self.snd.control
    }

    /// Lends it this outbox, if it has none.
    #[inline]
    pub fn lend_outbox(&mut self, outbox: &mut Option<Box<Outbox>>) {
        if self.outbox.is_none() {
            self.outbox = outbox.take();
        }
    }

    /// Gives back the outbox, which is empty. One that the endpoint made itself replaces the caller's.
    #[inline]
    pub fn return_outbox(&mut self, outbox: &mut Option<Box<Outbox>>) {
        debug_assert!(self.is_drained(), "something is left to poll for");
        *outbox = self.outbox.take();
    }

    #[inline]
    pub(crate) fn outbox(&mut self) -> &mut Outbox {
        self.outbox.get_or_insert_with(new_outbox)
    }

    /// A segment will arrive soon, which brings data or else an ACK: asks for the memory that it will need.
    #[inline]
    pub fn prefetch(&self, brings_data: bool) {
        const RCV: usize = offset_of!(Connection, rcv.delack);
        const SK_DATA: usize = offset_of!(Connection, sk.first_tx_mstamp);
        const SK_ACKS: usize = offset_of!(Connection, sk.prior_cwnd);
        const SND: usize = offset_of!(Connection, snd);
        const SND_DATA: usize = offset_of!(Connection, snd.write_seq);
        const SND_END: usize = offset_of!(Connection, snd.mss);
        if brings_data {
            prefetch_part::<0, SK_DATA>(self);
            prefetch_part::<SND_DATA, { SND_DATA + 1 }>(self);
        } else {
            prefetch_part::<RCV, SK_ACKS>(self);
            prefetch_part::<SND, SND_END>(self);
        }
    }

    /// The counters will be read soon.
    #[inline]
    pub fn prefetch_counters(&self) {
        prefetch(&self.snd.counters);
    }

    /// The same for the memory behind the endpoint.
    #[inline]
    pub fn prefetch_behind(&self) {
        self.snd.board.prefetch();
        self.snd.buffer.prefetch();
        self.snd.control.prefetch();
    }

    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
        self.sk.tcp_clock_cache = now.as_ns() + EPOCH_NS;
        self.sk.tcp_mstamp = now.as_us() + EPOCH_US;
    }

    /// Records a rare event for the caller.
    #[cold]
    pub(crate) fn notice(&mut self, notice: Notice) {
        self.note(notice);
    }

    /// Tells the caller.
    #[inline]
    pub(crate) fn note(&mut self, notice: Notice) {
        self.outbox().note(notice);
    }

    /// The timestamp clock: milliseconds (RFC 7323, section 5.4).
    pub(crate) fn timestamp(&self) -> u32 {
        timestamp_of(self.sk.tcp_mstamp)
    }

    /// Whether the latest echo is of a timestamp before `sent_us`.
    pub(crate) fn echo_predates(&self, sent_us: u64) -> bool {
        self.rcv.saw_timestamp && self.rcv.ts_ecr != 0 && before(self.rcv.ts_ecr, timestamp_of(sent_us))
    }

    /// Round-trip time by the latest echo, microseconds; `minimum` milliseconds if it is the same tick.
    pub(crate) fn rtt_by_timestamp(&self, minimum: u32) -> Option<u32> {
        if !self.rcv.saw_timestamp || self.rcv.ts_ecr == 0 {
            return None;
        }
        let ticks = self.timestamp().wrapping_sub(self.rcv.ts_ecr);
        (ticks < i32::MAX as u32 / 1_000).then(|| ticks.max(minimum) * 1_000)
    }
}

/// The outbox of an endpoint to which none was lent.
#[cold]
fn new_outbox() -> Box<Outbox> {
    Box::default()
}

fn timestamp_of(us: u64) -> u32 {
    (us / 1_000) as u32
}

/// The timestamp clock at `now`.
pub(crate) fn timestamp_at(now: Time) -> u32 {
    timestamp_of(now.as_us() + EPOCH_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of the processor's cache that has a member.
    macro_rules! line {
        ($($member:tt)+) => { offset_of!(Connection, $($member)+) / 64 };
    }

    #[test]
    fn arriving_data_need_nine_lines() {
        assert_eq!([line!(sk.tcp_mstamp), line!(sk.rtt_min_us)], [7; 2]);
        let one_more =
            [line!(snd.write_seq), line!(snd.wl1), line!(snd.small_end), line!(snd.frto), line!(snd.rtt)];
        assert_eq!(one_more, [one_more[0]; 5]);
    }
}
