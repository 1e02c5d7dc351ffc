//! Traffic: a source, a sink and what passes between them.

use std::collections::BTreeMap;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Rate, Span, Time};

use crate::describe::Bytes;
use crate::{IpVersion, TcpSettings};

mod http;

pub use http::{Object, Popularity, Requests, Web};

/// One named traffic source and sink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// The propagation there and back.
    #[serde(default)]
    pub base_rtt: Span,
    /// Connections (tcp, request, http) or sources (udp, ping).
    pub streams: u32,
    /// Version of IP.
    #[serde(default)]
    pub ip: IpVersion,
    /// Differentiated services codepoint of its packets, there and back, 0 to 63 (RFC 2474).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dscp: u8,
    /// What it sends.
    #[serde(flatten)]
    pub traffic: Traffic,
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        sender: Box<TcpSettings>,
        /// The receiver's settings.
        receiver: Box<TcpSettings>,
        /// The program that makes the traffic where it is real.
        #[serde(default)]
        generator: Generator,
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
        /// The program that makes the traffic where it is real.
        #[serde(default)]
        generator: Generator,
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
        sender: Box<TcpSettings>,
        /// The server's settings.
        receiver: Box<TcpSettings>,
    },
    /// A client that loads pages over persistent HTTP/1.1 connections; a stream is a connection.
    Http {
        /// Congestion control of both ends.
        cc: Cc,
        /// What is asked for.
        web: Web,
        /// The client's settings.
        sender: Box<TcpSettings>,
        /// The server's settings.
        receiver: Box<TcpSettings>,
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
        /// How long a message may take to come back where it is real.
        #[serde(default)]
        timeout: Span,
        /// Both ends poll instead of sleeping where they are real.
        #[serde(default)]
        busy_poll: bool,
        /// The clients' settings.
        sender: Box<TcpSettings>,
        /// The server's settings.
        receiver: Box<TcpSettings>,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cc {
    /// Its name.
    pub name: String,
    /// Parameters that differ from their defaults, as given (for example beta = 0.8).
    #[serde(default)]
    pub params: BTreeMap<String, f64>,
    /// The C file it is compiled from, by which it is found among the controls of the simulation; none: one of
    /// tcplab's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The text of that file, so that the plan says all there is to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Pauses in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// Mean time of sending.
    pub on: Span,
    /// Mean time of silence.
    pub off: Span,
    /// How both are distributed.
    pub distribution: PatternDistribution,
}

/// How on and off times are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternDistribution {
    /// Always the mean.
    Constant,
    /// Exponentially.
    Exponential,
}

/// The program that makes a flow's traffic where it is real.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Generator {
    /// tcplab's own.
    #[default]
    Native,
    /// iperf3.
    Iperf3,
}

impl fmt::Display for Cc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.params.is_empty() {
            return Ok(());
        }
        let params: Vec<String> = self.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
        write!(f, " ({})", params.join(", "))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distribution = match self.distribution {
            PatternDistribution::Constant => "constant",
            PatternDistribution::Exponential => "exponential",
        };
        write!(f, "{} on and {} off ({distribution})", self.on, self.off)
    }
}

/// What is sent, without the control.
impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Traffic::Tcp { .. } => f.write_str("tcp")?,
            Traffic::Udp { rate, payload, .. } => write!(f, "udp at {rate}, {payload} B datagrams")?,
            Traffic::Request { request, response, think, count, .. } => {
                write!(f, "requests of {}, responses of {}", Bytes(*request), Bytes(*response))?;
                if *think != Span::ZERO {
                    write!(f, ", pauses of {think}")?;
                }
                count.map_or(Ok(()), |count| write!(f, ", {count} times"))?;
            }
            Traffic::Echo { sizes, iterations, interval, busy_poll, .. } => {
                let (least, most) = (sizes.iter().min(), sizes.iter().max());
                let size = |bytes: Option<&u32>| Bytes(bytes.copied().unwrap_or(0).into());
                f.write_str("echoes of ")?;
                if least != most {
                    write!(f, "{} sizes from {} to ", sizes.len(), size(least))?;
                }
                write!(f, "{}, {iterations} of each", size(most))?;
                if *interval != Span::ZERO {
                    write!(f, ", {interval} apart")?;
                }
                f.write_str(if *busy_poll { ", both ends polling" } else { "" })?;
            }
            Traffic::Http { web, .. } => web.fmt(f)?,
            Traffic::Ping { interval, payload, .. } => write!(f, "ping every {interval}, {payload} B")?,
        }
        if let Traffic::Tcp { bytes: Some(bytes), .. } | Traffic::Udp { bytes: Some(bytes), .. } = self {
            write!(f, ", {} a stream", Bytes(*bytes))?;
        }
        if let Traffic::Tcp { pattern: Some(pattern), .. } | Traffic::Udp { pattern: Some(pattern), .. } =
            self
        {
            write!(f, ", {pattern}")?;
        }
        Ok(())
    }
}

impl Traffic {
    /// The congestion control; none: it has no connections.
    pub fn cc(&self) -> Option<&Cc> {
        match self {
            Traffic::Tcp { cc, .. }
            | Traffic::Request { cc, .. }
            | Traffic::Http { cc, .. }
            | Traffic::Echo { cc, .. } => Some(cc),
            Traffic::Udp { .. } | Traffic::Ping { .. } => None,
        }
    }
}
