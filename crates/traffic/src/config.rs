//! One end of a flow, as the agent protocol carries it.

use std::net::IpAddr;

use serde::Deserialize;
use tcplab_plan::Web;

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
    /// Seed of on-off patterns. Of an http flow the run's, from which the simulator draws its requests too.
    #[serde(default)]
    pub seed: u64,
    /// `iperf3`: let that program make the traffic.
    #[serde(default)]
    pub generator: Option<Generator>,
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
    pub flow: Flow,
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

/// Another program that makes a flow's traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generator {
    /// iperf3, 3.12 or newer.
    Iperf3,
}

/// One named traffic source and sink. Times are ns since the run's start.
#[derive(Clone, Debug, Deserialize)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The sending node (for request: the client).
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// When it starts.
    #[serde(default)]
    pub start: u64,
    /// When its source stops; none: when its work is done, or the run ends.
    #[serde(default)]
    pub stop: Option<u64>,
    /// Connections or sources.
    #[serde(default = "one")]
    pub streams: u32,
    /// Differentiated services codepoint of its packets.
    #[serde(default)]
    pub dscp: u8,
    /// Its traffic.
    #[serde(flatten)]
    pub traffic: Traffic,
}

fn one() -> u32 {
    1
}

/// Traffic of a flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Traffic {
    /// A bulk transfer.
    Tcp {
        /// Congestion control.
        cc: Cc,
        /// Bytes a stream; none: as many as the time allows.
        bytes: Option<u64>,
        /// Pauses.
        pattern: Option<Pattern>,
        /// Settings of the sending end.
        #[serde(default)]
        sender: Settings,
        /// Settings of the receiving end.
        #[serde(default)]
        receiver: Settings,
        /// The server sends.
        #[serde(default)]
        reverse: bool,
    },
    /// Datagrams at a rate.
    Udp {
        /// Payload bit/s of a stream.
        rate: u64,
        /// Payload bytes of a datagram.
        payload: u32,
        /// Payload bytes a stream; none: as many as the time allows.
        bytes: Option<u64>,
        /// Pauses.
        pattern: Option<Pattern>,
        /// ECT(0) or ECT(1).
        #[serde(default)]
        ect: Option<u8>,
    },
    /// Exchanges of a request and a response on one connection a stream.
    Request {
        /// Congestion control.
        cc: Cc,
        /// Bytes of a request.
        request: u64,
        /// Bytes of a response.
        response: u64,
        /// Pause between a response and the next request, ns.
        #[serde(default)]
        think: u64,
        /// Exchanges a stream; none: as many as the time allows.
        count: Option<u64>,
        /// The client's settings.
        #[serde(default)]
        sender: Settings,
        /// The server's settings.
        #[serde(default)]
        receiver: Settings,
    },
    /// Pages loaded over HTTP/1.1; a stream is a connection.
    Http {
        /// Congestion control.
        cc: Cc,
        /// The pages to load.
        web: Web,
        /// The client's settings.
        #[serde(default)]
        sender: Settings,
        /// The server's settings.
        #[serde(default)]
        receiver: Settings,
    },
    /// Messages echoed by the server, by size; a stream is a client.
    Echo(EchoTraffic),
    /// ICMP echo requests.
    Ping {
        /// Time between two, ns.
        interval: u64,
        /// Payload bytes.
        payload: u32,
        /// How many; none: as many as the time allows.
        count: Option<u64>,
    },
}

impl Traffic {
    /// The kind's name in tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Traffic::Tcp { .. } => "tcp",
            Traffic::Udp { .. } => "udp",
            Traffic::Request { .. } => "request",
            Traffic::Http { .. } => "http",
            Traffic::Echo(_) => "echo",
            Traffic::Ping { .. } => "ping",
        }
    }

    /// The ECN field that the flow itself sets: that of its datagrams.
    pub(crate) fn ecn_field(&self) -> u8 {
        match self {
            Traffic::Udp { ect: Some(0), .. } => 0b10,
            Traffic::Udp { ect: Some(_), .. } => 0b01,
            _ => 0b00,
        }
    }

    /// The congestion control, where there is one.
    pub fn cc(&self) -> Option<&str> {
        match self {
            Traffic::Tcp { cc, .. } | Traffic::Request { cc, .. } | Traffic::Http { cc, .. } => {
                Some(&cc.name)
            }
            Traffic::Echo(echo) => Some(&echo.cc.name),
            Traffic::Udp { .. } | Traffic::Ping { .. } => None,
        }
    }
}

/// The task of an echo flow's clients, each on a connection of its own.
#[derive(Clone, Debug, Deserialize)]
pub struct EchoTraffic {
    /// Congestion control of both ends.
    pub cc: Cc,
    /// Bytes of a message, size after size.
    pub sizes: Vec<u32>,
    /// Messages of each size.
    pub iterations: u64,
    /// The first so many of each size are kept one by one, so that they can be left out.
    #[serde(default)]
    pub warmup: u64,
    /// Minimum time from one message to the next, ns.
    #[serde(default)]
    pub interval: u64,
    /// How long one round trip may take, ns.
    #[serde(default = "ten_seconds")]
    pub timeout: u64,
    /// Both ends poll instead of sleeping.
    #[serde(default)]
    pub busy_poll: bool,
    /// The clients' settings.
    #[serde(default)]
    pub sender: Settings,
    /// The server's settings.
    #[serde(default)]
    pub receiver: Settings,
}

fn ten_seconds() -> u64 {
    10_000_000_000
}

/// A congestion control by name.
#[derive(Clone, Debug, Deserialize)]
pub struct Cc {
    /// As the kernel knows it.
    pub name: String,
}

/// TCP settings that belong to a socket; an absent one is left to the kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct Settings {
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

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mss: None,
            send_buffer: None,
            receive_buffer: None,
            nagle: true,
            pacing: false,
            max_pacing_rate: None,
        }
    }
}

/// Pauses in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Pattern {
    /// Mean time of sending, ns.
    pub on: u64,
    /// Mean time of silence, ns.
    pub off: u64,
    /// How both are distributed.
    pub distribution: Distribution,
}

/// How on and off times are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Always the mean.
    Constant,
    /// Exponentially.
    Exponential,
}
