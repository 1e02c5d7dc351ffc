//! The settings of one end of a TCP connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

/// Settings of one end of a connection; defaults are Linux's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TcpSettings {
    /// Largest payload without options, as announced in the SYN (MTU − 40 for IPv4).
    pub mss: u32,
    /// Initial congestion window, segments (RFC 6928).
    pub initial_window: u32,
    /// Send buffer in bytes as given to SO_SNDBUF (which Linux doubles for its overhead); none: auto-tuned up to `send_buffer_max`.
    pub send_buffer: Option<u64>,
    /// `tcp_wmem[2]`.
    pub send_buffer_max: u64,
    /// Receive buffer in bytes as given to SO_RCVBUF (which Linux doubles for its overhead); none: auto-tuned.
    pub receive_buffer: Option<u64>,
    /// `tcp_rmem[1]`, where auto-tuning starts.
    pub receive_buffer_initial: u64,
    /// `tcp_rmem[2]`.
    pub receive_buffer_max: u64,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Selective acknowledgments.
    pub sack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Delayed acknowledgments; off: every segment is acknowledged at once.
    pub delayed_ack: bool,
    /// Nagle's algorithm (off is TCP_NODELAY).
    pub nagle: bool,
    /// Segmentation offload: bursts of up to `gso_max_size` leave as one. Without it segments leave one by one, as
    /// on Linux through an interface whose `gso_max_segs` is 1.
    pub tso: bool,
    /// Largest burst in bytes, with some room for headers.
    pub gso_max_size: u32,
    /// The receiver merges neighbouring segments that arrive together, so it sends fewer ACKs.
    pub gro: bool,
    /// Pace every control, as with the fq queue discipline; off: only controls that ask for it.
    pub pacing: bool,
    /// Minimum retransmission timeout.
    pub rto_min: Span,
    /// Slow start after idleness (`tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
}

impl Default for TcpSettings {
    fn default() -> TcpSettings {
        TcpSettings {
            mss: 1460,
            initial_window: 10,
            send_buffer: None,
            send_buffer_max: 4 << 20,
            receive_buffer: None,
            receive_buffer_initial: 131_072,
            receive_buffer_max: 6 << 20,
            ecn: Ecn::Passive,
            sack: true,
            timestamps: true,
            delayed_ack: true,
            nagle: true,
            tso: true,
            gso_max_size: 65_536,
            gro: false,
            pacing: false,
            rto_min: Span::from_ms(200),
            slow_start_after_idle: true,
        }
    }
}

impl TcpSettings {
    /// Those that Linux has for a whole namespace, with its names (ip-sysctl): what a real host must have set.
    pub fn sysctls(&self) -> Vec<(String, String)> {
        let on = |is_on: bool| if is_on { "1" } else { "0" };
        let ecn = match self.ecn {
            Ecn::Off => "0",
            Ecn::On => "1",
            Ecn::Passive => "2",
            Ecn::Accecn => "3",
        };
        let settings = [
            ("ecn", ecn),
            ("sack", on(self.sack)),
            ("timestamps", on(self.timestamps)),
            ("slow_start_after_idle", on(self.slow_start_after_idle)),
        ];
        settings.map(|(name, value)| (format!("net.ipv4.tcp_{name}"), value.to_owned())).into()
    }
}

/// Explicit congestion notification (`tcp_ecn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ecn {
    /// Never.
    Off,
    /// Offered and accepted.
    On,
    /// Accurate ECN (RFC 9768) offered and accepted; with an end that does not know it, as `on`.
    Accecn,
    /// Accepted when the other end offers it (Linux's default).
    Passive,
}
