//! Sampling and packet capture.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

/// How often what is sampled; none: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Packets to capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capture {
    /// Headers only, or whole packets.
    pub what: CaptureWhat,
    /// Where.
    pub at: CaptureAt,
    /// Nodes whose interfaces are captured.
    pub nodes: Vec<String>,
}

/// How much of each packet is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureWhat {
    /// Ethernet, IP and transport headers.
    Headers,
    /// Everything.
    Full,
}

/// At which point packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureAt {
    /// The MTU-size packets of the link.
    Wire,
    /// As the host's tcpdump sees them, TSO/GRO super-packets included.
    Host,
}

/// The warm-up that steady-state figures leave out: `auto`, or a time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Omit {
    /// Found by MSER-5.
    #[default]
    #[serde(with = "auto")]
    #[schemars(with = "String")]
    Auto,
    /// This long.
    For(Span),
}

/// The unit variant as its word.
mod auto {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("auto")
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "auto" => Ok(()),
            other => Err(serde::de::Error::custom(format!("{other} is not `auto`"))),
        }
    }
}

/// Emulator of the links of a real kernel's network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Emulator {
    /// tcplab's emulator.
    #[default]
    Tcplab,
    /// The kernel's netem.
    Netem,
}
