//! A connection as its congestion control sees it: the simulator's twin of Linux's `tcp_sock`.
//!
//! The layout is that of `struct tcp_sock` in `cc/include/tcplab_cc.h` when compiled natively; names and
//! units are Linux's, so one C file serves both. The endpoint in `crates/tcp` keeps its own counters
//! here, so a control always sees the live values and nothing is copied per call.

/// Linux's congestion avoidance states (`enum tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CaState {
    /// Nothing bad has been observed recently.
    Open = 0,
    /// Duplicate ACKs or SACKs, not yet taken for loss.
    Disorder = 1,
    /// The window is being reduced after an ECN echo.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

/// Linux's `enum tcp_ca_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum CaEvent {
    /// First transmission when nothing is in flight.
    TxStart = 0,
    /// The window restarts after idleness.
    CwndRestart = 1,
    /// A congestion recovery ends.
    CompleteCwr = 2,
    /// Loss after a timeout.
    Loss = 3,
    /// A packet without the CE mark arrived (ECN).
    EcnNoCe = 4,
    /// A packet with the CE mark arrived (ECN).
    EcnIsCe = 5,
}

/// `snd_ssthresh` before any loss.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// No pacing (`SK_PACING_NONE`).
pub const PACING_NONE: u32 = 0;
/// TCP itself paces because the control asked for it (`SK_PACING_NEEDED`).
pub const PACING_NEEDED: u32 = 1;
/// A pacing queue discipline does (`SK_PACING_FQ`).
pub const PACING_FQ: u32 = 2;

/// `TcpSock::ecn_flags`: ECN was negotiated, with the feedback of RFC 3168 (`TCP_ECN_OK`).
pub const ECN_OK: u32 = 1;
/// `TcpSock::ecn_flags`: accurate ECN was negotiated (`TCP_ECN_MODE_ACCECN`), and then not `ECN_OK`.
pub const ECN_ACCURATE: u32 = 16;
/// `TcpSock::ecn_flags`: acknowledgments echo congestion (`TCP_ECN_DEMAND_CWR`).
pub const ECN_DEMAND_CWR: u32 = 4;
/// `TcpSock::icsk_ack_pending`: the timer of a delayed ACK runs (`ICSK_ACK_TIMER`).
pub const ACK_TIMER: u32 = 2;
/// `TcpSock::icsk_ack_pending`: an ACK is due at once (`ICSK_ACK_NOW`).
pub const ACK_NOW: u32 = 16;

/// The connection as a control sees it. Windows are in segments, RTTs in microseconds.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct TcpSock {
    // struct sock
    /// Pacing rate, bytes per second; `u64::MAX` is unlimited.
    pub sk_pacing_rate: u64,
    /// Upper bound of the pacing rate, bytes per second.
    pub sk_max_pacing_rate: u64,
    /// One of `PACING_*`.
    pub sk_pacing_status: u32,
    /// TSO bursts are sized to `sk_pacing_rate >> sk_pacing_shift` bytes (about 1 ms at 10).
    pub sk_pacing_shift: u32,
    // struct inet_connection_sock
    /// `CaState`.
    pub icsk_ca_state: u32,
    /// Consecutive retransmission timeouts.
    pub icsk_retransmits: u32,
    /// The pending acknowledgment, `ACK_*`; valid while the control handles the marks of arriving data.
    pub icsk_ack_pending: u32,
    /// Acknowledgments the control has asked for, ever.
    pub tl_acks_asked: u32,
    // struct tcp_sock: what arriving data need, too; times in microseconds
    /// Now.
    pub tcp_mstamp: u64,
    /// Now, nanoseconds, as of the last transmission or ACK.
    pub tcp_clock_cache: u64,
    /// Sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Selectively acknowledged.
    pub sacked_out: u32,
    /// First unacknowledged sequence number.
    pub snd_una: u32,
    /// Next sequence number to send.
    pub snd_nxt: u32,
    /// Segments sent, retransmissions included.
    pub segs_out: u32,
    /// `ECN_*`.
    pub ecn_flags: u32,
    /// Next sequence number expected from the peer.
    pub rcv_nxt: u32,
    /// Up to where the acknowledgment asked for shall go.
    pub tl_ack_nxt: u32,
    /// Smoothed RTT, microseconds times 8.
    pub srtt_us: u32,
    /// Windowed minimum RTT (5 minutes), microseconds; `u32::MAX` before the first sample.
    pub rtt_min_us: u32,
    // what ACKs need: the rate sample (Linux's tcp_rate.c)
    /// Send time of the packet that opened the present sampling window.
    pub first_tx_mstamp: u64,
    /// When `delivered` was last raised.
    pub delivered_mstamp: u64,
    /// Earliest time pacing allows the next packet to leave, nanoseconds; not after `tcp_clock_cache` when unpaced.
    pub tcp_wstamp_ns: u64,
    // windows and packets, segments
    /// Congestion window.
    pub snd_cwnd: u32,
    /// Slow-start threshold.
    pub snd_ssthresh: u32,
    /// Linear increase counter.
    pub snd_cwnd_cnt: u32,
    /// The window's upper bound.
    pub snd_cwnd_clamp: u32,
    /// Taken for lost.
    pub lost_out: u32,
    /// Retransmitted and still out.
    pub retrans_out: u32,
    /// Maximum of packets out in the last round (for `is_cwnd_limited`).
    pub max_packets_out: u32,
    /// The window, not the application, limited the last round (0 or 1).
    pub is_cwnd_limited: u32,
    // sequence and delivery
    /// Sequence number at the time of the last reduction.
    pub high_seq: u32,
    /// Payload bytes of a full segment.
    pub mss_cache: u32,
    /// Packets delivered, duplicates excluded.
    pub delivered: u32,
    /// Packets delivered with an ECN mark.
    pub delivered_ce: u32,
    /// Packets taken for lost, ever.
    pub lost: u32,
    /// `delivered` value up to which samples are application-limited; 0: not limited.
    pub app_limited: u32,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    // the control itself
    /// The control's private state.
    pub tl_state: *mut core::ffi::c_void,
    /// The control's parameters.
    pub tl_params: *const core::ffi::c_void,
    // rarely needed
    /// Window before the present reduction.
    pub prior_cwnd: u32,
    /// Threshold before the present reduction, for undo.
    pub prior_ssthresh: u32,
    /// State of a per-connection pseudo-random generator for the control.
    pub tl_random: u64,
    /// `ecn_flags` when it was asked for.
    pub tl_ack_ecn_flags: u32,
    /// The peer sends selective acknowledgments (0 or 1).
    pub sack_ok: u32,
}

/// Linux's `struct rate_sample`: what one ACK says about the delivery rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RateSample {
    /// When the sampling interval began, microseconds.
    pub prior_mstamp: u64,
    /// `delivered` when the sampled packet was sent.
    pub prior_delivered: u32,
    /// `delivered_ce` when the sampled packet was sent.
    pub prior_delivered_ce: u32,
    /// Packets delivered over the interval; negative: no valid sample.
    pub delivered: i32,
    /// Of these, with an ECN mark.
    pub delivered_ce: i32,
    /// Length of the interval, microseconds; negative: no valid sample.
    pub interval_us: i64,
    /// Send phase of the interval.
    pub snd_interval_us: u32,
    /// ACK phase of the interval.
    pub rcv_interval_us: u32,
    /// RTT of the last packet this ACK delivered, microseconds; negative: none.
    pub rtt_us: i64,
    /// Packets newly marked lost on this ACK.
    pub losses: i32,
    /// Packets newly acknowledged or SACKed on this ACK.
    pub acked_sacked: u32,
    /// Inflight before this ACK.
    pub prior_in_flight: u32,
    /// Sequence end of the last packet delivered.
    pub last_end_seq: u32,
    /// `lost` when the sampled packet was sent.
    pub tl_prior_lost: u32,
    /// The sample is application-limited (0 or 1).
    pub is_app_limited: u8,
    /// The sample comes from a retransmitted packet (0 or 1).
    pub is_retrans: u8,
    /// This ACK is likely delayed (0 or 1).
    pub is_ack_delayed: u8,
}

/// Linux's `struct ack_sample`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AckSample {
    /// Packets newly acknowledged.
    pub pkts_acked: u32,
    /// RTT, microseconds; negative: none.
    pub rtt_us: i32,
    /// Inflight before the ACK.
    pub in_flight: u32,
}

// SAFETY: the two pointers are only followed by the C side of a `Control`, which sets them anew, to blocks it
// owns, before each call; elsewhere they are mere numbers.
unsafe impl Send for TcpSock {}
// SAFETY: as above.
unsafe impl Sync for TcpSock {}

impl TcpSock {
    /// Packets in the network by this sender's reckoning (`tcp_packets_in_flight`).
    pub fn packets_in_flight(&self) -> u32 {
        self.packets_out.wrapping_sub(self.sacked_out + self.lost_out).wrapping_add(self.retrans_out)
    }
}

impl Default for TcpSock {
    fn default() -> TcpSock {
        TcpSock {
            sk_pacing_rate: 0,
            sk_max_pacing_rate: u64::MAX,
            sk_pacing_status: PACING_NONE,
            sk_pacing_shift: 10,
            icsk_ca_state: CaState::Open as u32,
            icsk_retransmits: 0,
            icsk_ack_pending: 0,
            tl_acks_asked: 0,
            tcp_mstamp: 0,
            first_tx_mstamp: 0,
            delivered_mstamp: 0,
            tcp_clock_cache: 0,
            tcp_wstamp_ns: 0,
            snd_cwnd: 10,
            snd_ssthresh: INFINITE_SSTHRESH,
            snd_cwnd_cnt: 0,
            snd_cwnd_clamp: u32::MAX,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            max_packets_out: 0,
            is_cwnd_limited: 0,
            snd_una: 0,
            snd_nxt: 0,
            high_seq: 0,
            mss_cache: 536,
            srtt_us: 0,
            rtt_min_us: u32::MAX,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            app_limited: u32::MAX,
            segs_out: 0,
            ecn_flags: 0,
            rcv_nxt: 0,
            tl_ack_nxt: 0,
            tl_ack_ecn_flags: 0,
            sack_ok: 0,
            bytes_acked: 0,
            tl_random: 0,
            tl_state: core::ptr::null_mut(),
            tl_params: core::ptr::null(),
        }
    }
}
