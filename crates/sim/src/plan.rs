//! The plan: a scenario with every default filled in and every shorthand expanded.
//!
//! Python (`tcplab.scenario`) writes it as JSON; this is the same shape. Times are nanoseconds, rates
//! bit/s, sizes bytes, probabilities parts per billion.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tcplab_link::Direction;
use tcplab_units::{Rate, Span, Time};

/// What an engine executes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// The run ends here at the latest.
    pub duration: Span,
    /// Hosts, switches and routers.
    pub nodes: Vec<Node>,
    /// Point-to-point links.
    pub links: Vec<Link>,
    /// Traffic.
    pub flows: Vec<Flow>,
    /// How often what is sampled.
    pub sample: Sample,
    /// What is captured.
    pub capture: Option<Capture>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it does with packets that are not its own.
    pub kind: NodeKind,
    /// The settings of its TCP.
    pub tcp: tcplab_tcp::Config,
    /// Where packets go: destination node to the name of the link they leave by.
    pub routes: BTreeMap<String, String>,
    /// Kernel settings by name, for engines with a kernel.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// CPUs the node's processes are pinned to, for engines with real ones; empty: any.
    #[serde(default)]
    pub cpus: Vec<u32>,
}

/// What a node does with packets that are not its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// Discards them.
    Host,
    /// Forwards frames.
    Switch,
    /// Forwards packets along shortest paths.
    Router,
}

/// A link with its two directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The two nodes; forward is from the first to the second.
    pub ends: [String; 2],
    /// IPv4 addresses with prefix length of the two interfaces; none: a switch's port.
    pub addresses: [Option<String>; 2],
    /// IPv6 addresses likewise.
    #[serde(default)]
    pub addresses6: [Option<String>; 2],
    /// Largest IP packet.
    pub mtu: u32,
    /// First end to second end.
    pub forward: Direction,
    /// Second end to first end.
    pub backward: Direction,
}

/// One named traffic source and sink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The sending node (for request: the client).
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// When it starts.
    pub start: Time,
    /// When its source stops; none: when its work is done.
    pub stop: Option<Time>,
    /// Connections (tcp, request) or sources (udp, ping).
    pub streams: u32,
    /// Version of IP.
    #[serde(default)]
    pub ip: IpVersion,
    /// What it sends.
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// A version of IP, in a plan 4 or 6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum IpVersion {
    /// Version 4.
    #[default]
    V4,
    /// Version 6.
    V6,
}

impl IpVersion {
    /// Bytes of a header without options or extensions (RFC 791, RFC 8200).
    #[inline]
    pub fn header_len(self) -> u32 {
        match self {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        }
    }
}

impl TryFrom<u8> for IpVersion {
    type Error = String;
    fn try_from(number: u8) -> Result<IpVersion, String> {
        match number {
            4 => Ok(IpVersion::V4),
            6 => Ok(IpVersion::V6),
            other => Err(format!("{other} is not a version of IP: 4 or 6")),
        }
    }
}

impl From<IpVersion> for u8 {
    fn from(version: IpVersion) -> u8 {
        match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Traffic {
    /// A bulk transfer.
    Tcp {
        /// Congestion control.
        cc: Cc,
        /// Bytes per stream; none: as many as the time allows.
        bytes: Option<u64>,
        /// Pauses; none: without pause.
        pattern: Option<Pattern>,
        /// The sender's settings: its node's, with what the flow sets otherwise.
        sender: Box<tcplab_tcp::Config>,
        /// The receiver's settings.
        receiver: Box<tcplab_tcp::Config>,
    },
    /// Datagrams at a rate.
    Udp {
        /// Rate of UDP payload per stream.
        rate: Rate,
        /// Payload bytes of a datagram.
        payload: u32,
        /// Payload bytes per stream; none: as many as the time allows.
        bytes: Option<u64>,
        /// Pauses; none: without pause.
        pattern: Option<Pattern>,
    },
    /// A client that asks, waits for the answer, thinks, and asks again on one connection a stream.
    Request {
        /// Congestion control.
        cc: Cc,
        /// Bytes of a request.
        request: u64,
        /// Bytes of a response.
        response: u64,
        /// Pause between a response and the next request.
        think: Span,
        /// Requests per stream; none: as many as the time allows.
        count: Option<u64>,
        /// The client's settings.
        sender: Box<tcplab_tcp::Config>,
        /// The server's settings.
        receiver: Box<tcplab_tcp::Config>,
    },
    /// Clients that send messages, size after size, and wait for each to come back; a stream is a client.
    Echo {
        /// Congestion control of both ends.
        cc: Cc,
        /// Bytes of a message, size after size.
        sizes: Vec<u32>,
        /// Messages of each size.
        iterations: u64,
        /// The first so many of each size have rows of their own, so that they can be left out.
        #[serde(default)]
        warmup: u64,
        /// Least time from one message to the next.
        #[serde(default)]
        interval: Span,
        /// The clients' settings.
        sender: Box<tcplab_tcp::Config>,
        /// The server's settings.
        receiver: Box<tcplab_tcp::Config>,
    },
    /// Echo requests, as ICMP.
    Ping {
        /// Time between two.
        interval: Span,
        /// Payload bytes.
        payload: u32,
        /// How many; none: as many as the time allows.
        count: Option<u64>,
    },
}

/// A congestion control with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cc {
    /// Its name.
    pub name: String,
    /// The C file it is compiled from, by which it is found among the controls of the simulation; none: one of
    /// tcplab's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Parameters that differ from their defaults, as given (for example beta = 0.8).
    #[serde(default)]
    pub params: BTreeMap<String, f64>,
}

/// Pauses in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    /// Mean time of sending.
    pub on: Span,
    /// Mean time of silence.
    pub off: Span,
    /// How both are distributed.
    pub distribution: PatternDistribution,
}

/// How on and off times are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternDistribution {
    /// Always the mean.
    Constant,
    /// Exponentially.
    Exponential,
}

/// How often what is sampled; none: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Every sending TCP socket.
    pub sockets: Option<Span>,
    /// Every link direction's queue.
    pub queues: Option<Span>,
    /// Every stream's counters.
    pub flows: Option<Span>,
    /// Every host's CPU and memory (real hosts only).
    pub hosts: Option<Span>,
    /// Record every packet event of every link.
    pub packets: bool,
}

/// What is captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Headers only, or whole packets.
    pub what: CaptureWhat,
    /// Where.
    pub at: CaptureAt,
    /// Nodes whose interfaces are captured.
    pub nodes: Vec<String>,
}

/// How much of each packet is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureWhat {
    /// Ethernet, IP and transport headers.
    Headers,
    /// Everything.
    Full,
}

/// At which point packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureAt {
    /// The MTU-size packets of the link.
    Wire,
    /// As the host's tcpdump sees them, TSO/GRO super-packets included.
    Host,
}
