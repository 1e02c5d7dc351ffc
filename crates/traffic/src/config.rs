//! One end of a flow, as the agent protocol carries it.

use std::net::IpAddr;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;
use tcplab_plan::{Flow, Generator, TcpSettings};
use tcplab_units::Time;

/// One node's part in one flow.
#[derive(Clone, Debug, Deserialize)]
pub struct End {
    /// Which end this is.
    pub role: Role,
    /// Where a server listens; whom a client reaches.
    pub address: IpAddr,
    /// One port a stream; a server may leave the choice to the kernel.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// Length of an interval row, ns; none: no such rows.
    #[serde(default)]
    pub sample: Option<u64>,
    /// The run's seed: pauses, intervals and requests are those of the simulator.
    #[serde(default)]
    pub seed: u64,
    /// The program that makes the traffic; none: this one.
    #[serde(default)]
    pub generator: Option<Generator>,
    /// Of a tcp flow: the server sends.
    #[serde(default)]
    pub reverse: bool,
    /// With `reverse`: the server sends until the connection is closed, so this end closes it when the flow stops.
    #[serde(default)]
    pub endless: bool,
    /// Upper bound of the pacing rate of each stream, bit/s (SO_MAX_PACING_RATE).
    #[serde(default)]
    pub max_pacing_rate: Option<u64>,
    /// Spin before deadlines rather than sleep: precise to a microsecond, at the cost of a CPU.
    #[serde(default)]
    pub spin: bool,
    /// A receiver runs before all ordinary threads, where that is allowed: its host has CPUs of its own in what is emulated.
    #[serde(default)]
    pub prompt: bool,
    /// Of an http flow to a server without an agent: what is asked for in place of the flow's objects.
    #[serde(default)]
    pub target: Option<Target>,
    /// The flow, as it stands in the plan.
    #[serde(deserialize_with = "flow")]
    pub flow: Flow,
}

/// A flow without the TCP settings that only a newer caller knows: in a plan they would be errors.
fn flow<'de, D: Deserializer<'de>>(from: D) -> Result<Flow, D::Error> {
    let mut flow = Value::deserialize(from)?;
    let known = serde_json::to_value(TcpSettings::default()).map_err(D::Error::custom)?;
    for end in ["sender", "receiver"] {
        if let Some(settings) = flow.get_mut(end).and_then(Value::as_object_mut) {
            settings.retain(|key, _| known.get(key).is_some());
        }
    }
    Flow::deserialize(flow).map_err(D::Error::custom)
}

/// The object that a URL names at its server.
#[derive(Clone, Debug, Deserialize)]
pub struct Target {
    /// Value of the field `Host`.
    pub host: String,
    /// Path and query.
    pub path: String,
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Waits for connections or datagrams.
    Server,
    /// Connects, or sends datagrams.
    Client,
}

impl Role {
    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Role::Server => "server",
            Role::Client => "client",
        }
    }
}

impl End {
    /// Whether iperf3 makes its traffic.
    pub(crate) fn by_iperf3(&self) -> bool {
        self.generator == Some(Generator::Iperf3)
    }

    /// When the flow starts, ns since the run's start.
    pub(crate) fn start(&self) -> u64 {
        self.flow.start.as_ns()
    }

    /// When its source stops, if a time says so, in a run that ends at `over`.
    pub(crate) fn stop(&self, over: u64) -> u64 {
        self.flow.stop.map_or(u64::MAX, Time::as_ns).min(over)
    }

    /// Whether a run that ends at `over` leaves the flow the time it was given.
    pub(crate) fn has_its_time(&self, over: u64) -> bool {
        self.flow.stop.is_none_or(|stop| stop.as_ns() <= over)
    }

    /// Options of a socket of this end.
    pub(crate) fn options(&self, settings: &TcpSettings) -> SocketOptions {
        let TcpSettings { mss, send_buffer, receive_buffer, nagle, pacing, .. } = *settings;
        let max_pacing_rate = self.max_pacing_rate;
        SocketOptions { mss: Some(mss), send_buffer, receive_buffer, nagle, pacing, max_pacing_rate }
    }
}

/// Options of a TCP socket; an absent one is left to the kernel.
#[derive(Clone, Copy, Debug)]
pub struct SocketOptions {
    /// Largest payload of a segment without options (TCP_MAXSEG).
    pub mss: Option<u32>,
    /// Send buffer in bytes as given to SO_SNDBUF.
    pub send_buffer: Option<u64>,
    /// Receive buffer in bytes as given to SO_RCVBUF.
    pub receive_buffer: Option<u64>,
    /// Nagle's algorithm; off is TCP_NODELAY.
    pub nagle: bool,
    /// Pace whatever the control.
    pub pacing: bool,
    /// Upper bound of the pacing rate, bit/s (SO_MAX_PACING_RATE).
    pub max_pacing_rate: Option<u64>,
}

impl Default for SocketOptions {
    fn default() -> SocketOptions {
        SocketOptions {
            mss: None,
            send_buffer: None,
            receive_buffer: None,
            nagle: true,
            pacing: false,
            max_pacing_rate: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tcplab_plan::Traffic;

    use super::*;

    #[test]
    fn keys_of_a_newer_caller_are_ignored() {
        let end = json!({"role": "client", "address": "192.0.2.1", "newer": 1, "flow": {
            "name": "bulk", "from": "a", "to": "b", "start": 0, "streams": 1, "newer": 1,
            "kind": "tcp", "cc": {"name": "cubic", "newer": 1},
            "sender": {"mss": 1000, "newer": 1}, "receiver": {"newer": 1},
        }});
        let end: End = serde_json::from_value(end).expect("only new keys");
        let Traffic::Tcp(tcp) = end.flow.traffic else { panic!("{:?}", end.flow.traffic) };
        assert_eq!((tcp.sender.mss, *tcp.receiver), (1000, TcpSettings::default()));
    }
}
