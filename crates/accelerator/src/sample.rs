//! Samples of an accelerator's connections.

use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use socket2::Socket;
use tcplab_probe::TcpInfo;

/// `TCP_SYN_SENT` of tcp_states.h.
const TCP_SYN_SENT: u8 = 2;

/// Connections so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Split at this moment.
    pub open: u64,
    /// Split so far.
    pub accepted: u64,
    /// Ended by an error or a reset of either end.
    pub broken: u64,
    /// Reset because a limit was reached.
    pub refused: u64,
    /// Times at which new connections began to pass, because a limit was reached.
    pub passed: u64,
}

/// Since when a leg's far end has not acknowledged what it was sent.
///
/// TCP_USER_TIMEOUT would also end the connection of an end that acknowledges and does not read (tcp(7)): `tcp_probe_timer` counts
/// the time of a closed window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence(Option<Instant>);

impl Silence {
    /// How long it lasts.
    pub(crate) fn lasting(&mut self, info: &TcpInfo, now: Instant) -> Duration {
        // No acknowledgement has a time yet.
        let connecting = info.state == TCP_SYN_SENT;
        let asked = info.unacked > 0 || info.probes > 0;
        let last_ack = now.checked_sub(Duration::from_millis(u64::from(info.last_ack_recv)));
        self.0 = (asked && !connecting).then(|| self.0.unwrap_or(now).max(last_ack.unwrap_or(now)));
        self.0.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

/// One leg at one moment.
#[derive(Clone, Copy, Debug)]
pub struct LegSample {
    /// The far end.
    pub peer: SocketAddr,
    /// The kernel's `tcp_info`.
    pub info: TcpInfo,
}

impl LegSample {
    /// None once it is gone.
    pub(crate) fn of(socket: &Socket, peer: SocketAddr) -> Option<LegSample> {
        Some(LegSample { peer, info: TcpInfo::of(socket.as_raw_fd()).ok()? })
    }
}

/// One split connection at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Number of the connection, from 0 in the order of acceptance.
    pub connection: u64,
    /// Towards the end that opened the connection.
    pub client: LegSample,
    /// Towards the end that was asked for.
    pub server: LegSample,
    /// Whether payload goes from one leg to the other. A cache answers requests; one that it has not answered is asked again.
    pub carries: bool,
}

impl Sample {
    /// Bytes of the client's that were acknowledged to it and not yet by the server: lost if the accelerator dies.
    pub fn exposed_up(&self) -> u64 {
        self.exposed(&self.client.info, &self.server.info)
    }

    /// Likewise of the server's.
    pub fn exposed_down(&self) -> u64 {
        self.exposed(&self.server.info, &self.client.info)
    }

    /// Bytes that wait to be sent to the client: received from the server, and not sent on yet.
    pub fn unsent_down(&self) -> u64 {
        self.unsent(&self.server.info, &self.client.info)
    }

    /// Likewise to the server.
    pub fn unsent_up(&self) -> u64 {
        self.unsent(&self.client.info, &self.server.info)
    }

    fn unsent(&self, from: &TcpInfo, to: &TcpInfo) -> u64 {
        if self.carries { from.bytes_received.saturating_sub(to.first_sent()) } else { 0 }
    }

    fn exposed(&self, from: &TcpInfo, to: &TcpInfo) -> u64 {
        if !self.carries {
            return 0;
        }
        // `bytes_acked` counts the SYN of the end that opened a connection, too (RFC 4898, `tcp_ack_snd_una`): a byte more at most.
        from.bytes_received.saturating_sub(to.bytes_acked)
    }
}
