//! Errors of traffic, and how to fix them.

use std::io;
use std::net::SocketAddr;

use crate::echo::EchoError;

/// The hint where TCP gave up.
pub(crate) const PATIENCE: &str = "the sysctl net.ipv4.tcp_retries2 of the host sets for how long TCP tries";

/// Why a flow cannot run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum TrafficError {
    #[error("cannot open a {what} socket: {source}")]
    Socket { what: &'static str, source: io::Error },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("cannot connect to {address}: {source}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("nobody connected to {address} before the run ended")]
    NobodyConnected { address: SocketAddr },
    #[error("congestion control {name:?} cannot be used: {source}; available are {available}")]
    Control { name: String, available: String, allowed: String, source: io::Error },
    #[error("cannot set {option} to {value}: {source}")]
    Option { option: &'static str, value: u64, source: io::Error },
    #[error("stream {stream} to {address} broke: {source}")]
    Broken { stream: u64, address: SocketAddr, source: io::Error },
    #[error("TCP gave up stream {stream} to {address}: {source}")]
    TimedOut { stream: u64, address: SocketAddr, source: io::Error },
    #[error("{given} ports for {streams} streams")]
    Ports { given: usize, streams: u32 },
    #[error("a payload of {payload} bytes: must be {min} to {max}")]
    Payload { payload: u32, min: u32, max: u32 },
    #[error("{what} is zero")]
    Zero { what: &'static str },
    #[error("cannot start a thread for a stream: {0}")]
    Thread(io::Error),
    #[error("{0}")]
    Echo(EchoError),
    #[error("echoing for {peer}: {source}")]
    EchoServer { peer: SocketAddr, source: EchoError },
    #[error("iperf3 cannot be run: {0}")]
    Iperf3Missing(io::Error),
    #[error("iperf3 is {found}; 3.12 or newer is needed")]
    Iperf3Old { found: String },
    #[error("iperf3 cannot make this flow: {what}")]
    Iperf3Unable { what: &'static str },
    #[error("iperf3 failed: {message}")]
    Iperf3Failed { message: String },
}

impl TrafficError {
    /// Whether the other end, or a proxy between, reset an open connection.
    pub fn is_reset(&self) -> bool {
        let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
        matches!(self, TrafficError::Broken { source, .. } if kinds.contains(&source.kind()))
    }

    /// Why a TCP connection that was open ended: `TimedOut` where TCP gave it up because nothing was acknowledged for too
    /// long (tcp(7), `tcp_retries2`). Its error is then that of an ICMP message, if one came meanwhile.
    pub(crate) fn of_connection(stream: u64, address: SocketAddr, source: io::Error) -> TrafficError {
        if is_timeout(&source) {
            TrafficError::TimedOut { stream, address, source }
        } else {
            TrafficError::Broken { stream, address, source }
        }
    }

    /// Whether a connection that was open ended because nothing came for too long.
    pub fn is_timeout(&self) -> bool {
        match self {
            TrafficError::TimedOut { .. } => true,
            TrafficError::Echo(error) | TrafficError::EchoServer { source: error, .. } => error.is_timeout(),
            _ => false,
        }
    }

    /// How to fix it.
    pub fn hint(&self) -> String {
        match self {
            TrafficError::Socket { what: "ping", .. } => {
                "run as root, or: sysctl -w net.ipv4.ping_group_range='0 2147483647'".into()
            }
            TrafficError::Socket { source, .. } | TrafficError::Thread(source)
                if source.raw_os_error() == Some(libc::EMFILE) =>
            {
                "raise the limit of open files: ulimit -n 65536".into()
            }
            TrafficError::Socket { .. } | TrafficError::Thread(_) => "use fewer streams".into(),
            TrafficError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "choose another port, or end the program that holds it: ss -tulpn".into()
            }
            TrafficError::Listen { .. } => "give the address of one of the node's interfaces".into(),
            TrafficError::Connect { .. } | TrafficError::NobodyConnected { .. } => {
                "check the route between the two nodes, and that the other end is running".into()
            }
            TrafficError::Control { name, allowed, source, .. } => match source.raw_os_error() {
                Some(libc::EPERM) => format!(
                    "run with CAP_NET_ADMIN over its network, or there: sudo sysctl -w \
                     net.ipv4.tcp_allowed_congestion_control='{allowed} {name}'"
                ),
                _ => format!("load it: modprobe tcp_{name}, or choose another"),
            },
            TrafficError::Option { option: "TCP_MAXSEG", .. } => "an MSS lies between 88 and 32767".into(),
            TrafficError::Option { .. } => "choose another value".into(),
            TrafficError::TimedOut { .. } => PATIENCE.into(),
            TrafficError::Broken { .. } => "see what the other end reported".into(),
            TrafficError::Ports { .. } => "give one port a stream".into(),
            TrafficError::Payload { .. } => "choose a payload within these bounds".into(),
            TrafficError::Zero { .. } => "give a positive value".into(),
            TrafficError::Echo(error) | TrafficError::EchoServer { source: error, .. } => error.hint(),
            TrafficError::Iperf3Missing(_) | TrafficError::Iperf3Old { .. } => {
                "apt install iperf3, or leave out `generator: iperf3`".into()
            }
            TrafficError::Iperf3Unable { .. } => "leave out `generator: iperf3`".into(),
            TrafficError::Iperf3Failed { .. } => "run the flow without `generator: iperf3` to compare".into(),
        }
    }
}

/// Whether a call on a connected socket failed because TCP has given up.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkUnreachable, TimedOut};
    [TimedOut, HostUnreachable, NetworkUnreachable].contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_that_is_not_allowed_is_added_to_those_that_are() {
        let error = TrafficError::Control {
            name: "cubic".into(),
            available: "reno, bbr, cubic".into(),
            allowed: "reno bbr".into(),
            source: io::Error::from_raw_os_error(libc::EPERM),
        };
        assert!(
            error.hint().ends_with("net.ipv4.tcp_allowed_congestion_control='reno bbr cubic'"),
            "{}",
            error.hint()
        );
    }
}
