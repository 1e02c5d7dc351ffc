//! What is sampled and what is captured.

use serde::{Deserialize, Serialize};
use tcplab_units::Span;

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
