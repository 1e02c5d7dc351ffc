//! One end of a connection.

use tcplab_control::{CaState, Control};
use tcplab_units::{Span, Time};

use crate::{Config, Segment};

/// One end of a connection. Drive it so: after any call, send what `poll_transmit` yields until it yields
/// none, then call `handle_timeout` at `poll_timeout`.
pub struct Connection {
    _private: (),
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
    /// Segments taken for lost and not yet retransmitted or acknowledged.
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
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Segments ever taken for lost.
    pub losses_detected: u64,
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

#[allow(unused_variables)]
impl Connection {
    /// An active opener; its first `poll_transmit` is the SYN.
    pub fn connect(config: &Config, control: Control, isn: u32, now: Time) -> Connection {
        todo!()
    }
    /// A passive opener that has received `syn`; its first `poll_transmit` is the SYN-ACK.
    pub fn accept(config: &Config, control: Control, isn: u32, syn: &Segment, now: Time) -> Connection {
        todo!()
    }
    /// The application offers `bytes` more to send. They are taken into the send buffer as it has room, as
    /// a blocking writer's would be; use `u64::MAX` for a source that never ends.
    pub fn offer(&mut self, bytes: u64, now: Time) {
        todo!()
    }
    /// The application stops: what was offered but not yet taken into the send buffer is withdrawn.
    pub fn withdraw(&mut self, now: Time) {
        todo!()
    }
    /// No more will be offered: a FIN follows the last byte.
    pub fn close(&mut self, now: Time) {
        todo!()
    }
    /// Whether the application reads at once whatever arrives (true unless changed).
    pub fn read_at_once(&mut self, yes: bool) {
        todo!()
    }
    /// The application reads up to `max` bytes; returns how many there were.
    pub fn read(&mut self, max: u64, now: Time) -> u64 {
        todo!()
    }
    /// A segment arrived.
    pub fn handle_segment(&mut self, segment: &Segment, now: Time) {
        todo!()
    }
    /// The time of `poll_timeout` has come. Harmless when early.
    pub fn handle_timeout(&mut self, now: Time) {
        todo!()
    }
    /// When `handle_timeout` wants to be called; `Time::NEVER` if no timer is armed.
    pub fn poll_timeout(&self) -> Time {
        todo!()
    }
    /// The next segment to send now, if any.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        todo!()
    }
    /// The next thing worth recording, oldest first.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        todo!()
    }
    /// Payload bytes that arrived in order, ever (a cheap counter).
    pub fn bytes_received(&self) -> u64 {
        todo!()
    }
    /// Payload bytes cumulatively acknowledged by the peer, ever (a cheap counter).
    pub fn bytes_acked(&self) -> u64 {
        todo!()
    }
    /// A snapshot.
    pub fn info(&self, now: Time) -> Info {
        todo!()
    }
    /// The control at work.
    pub fn control(&self) -> &Control {
        todo!()
    }
}
