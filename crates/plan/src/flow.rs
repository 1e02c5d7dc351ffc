//! Traffic: a source, a sink and what passes between them. Each kind of traffic has a file of its own.

mod echo;
mod exponential;
mod http;
mod kind;
mod pages;
mod pattern;
mod ping;
mod request;
mod requests;
mod tcp;
mod udp;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Span, Time};

use crate::random::component_seed;
use crate::{Cc, IpVersion};

pub use echo::Echo;
pub use exponential::Poisson;
pub use http::{Http, Popularity, REQUEST_BYTES, RESPONSE_HEAD_BYTES, Web};
pub(crate) use kind::Kind;
pub use kind::{Connections, Traits};
pub use pages::{Fetch, Next, Pages};
pub use pattern::{Pattern, PatternDistribution, Pauses};
pub use ping::Ping;
pub use request::Request;
pub use requests::{Object, Requests};
pub use tcp::Tcp;
pub use udp::{Spacing, Udp};

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
    /// The propagation of both directions.
    #[serde(default)]
    pub base_rtt: Span,
    /// Connections (tcp, request, http) or sources (udp, ping).
    pub streams: u32,
    /// Version of IP.
    #[serde(default)]
    pub ip: IpVersion,
    /// Differentiated services codepoint of its packets in both directions, 0 to 63 (RFC 2474).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dscp: u8,
    /// Port of the server's first stream, whose others have the ports that follow; none: those that the engine chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Traffic.
    #[serde(flatten)]
    pub traffic: Traffic,
}

impl Flow {
    /// A seed for `component` of one of its streams in a run with seed `run`: the same in every engine.
    pub fn seed_of(&self, component: &str, stream: u64, run: u64) -> u64 {
        component_seed(run, &format!("flow.{}.{stream}.{component}", self.name))
    }

    /// The times in which a stream sends and is silent, in a run with seed `run`; none: it has no pauses.
    pub fn pauses(&self, stream: u64, run: u64) -> Option<Pauses> {
        let (Traffic::Tcp(Tcp { pattern, .. }) | Traffic::Udp(Udp { pattern, .. })) = self.traffic else {
            return None;
        };
        pattern.map(|pattern| Pauses::new(pattern, self.seed_of("pattern", stream, run)))
    }

    /// The intervals of a stream whose spacing is exponential, in a run with seed `run`; none: it has another.
    pub fn random_intervals(&self, stream: u64, run: u64) -> Option<Poisson> {
        let Traffic::Udp(Udp { rate, payload, spacing: Spacing::Exponential, .. }) = self.traffic else {
            return None;
        };
        Some(Poisson::new(rate, payload, self.seed_of("spacing", stream, run)))
    }
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// Traffic of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Traffic {
    /// A bulk transfer.
    Tcp(Tcp),
    /// Datagrams at a rate.
    Udp(Udp),
    /// A client that asks, waits for the answer, thinks, and asks again on one connection a stream.
    Request(Request),
    /// A client that loads pages over persistent HTTP/1.1 connections; a stream is a connection.
    Http(Http),
    /// Clients that send messages, size after size, and wait for each to come back; a stream is a client.
    Echo(Echo),
    /// Echo requests, as ICMP.
    Ping(Ping),
}

impl Traffic {
    /// Traits of all traffic of each kind.
    pub const KINDS: [Traits; 6] =
        [Tcp::TRAITS, Udp::TRAITS, Request::TRAITS, Http::TRAITS, Echo::TRAITS, Ping::TRAITS];

    pub(crate) fn kind(&self) -> &dyn Kind {
        match self {
            Traffic::Tcp(tcp) => tcp,
            Traffic::Udp(udp) => udp,
            Traffic::Request(request) => request,
            Traffic::Http(http) => http,
            Traffic::Echo(echo) => echo,
            Traffic::Ping(ping) => ping,
        }
    }

    /// Traits of all traffic of its kind.
    pub fn traits(&self) -> Traits {
        self.kind().traits()
    }

    /// Its TCP connections; none: it has none.
    pub fn connections(&self) -> Option<Connections<'_>> {
        self.kind().connections()
    }

    /// The ECN field of its packets where no connection negotiates it.
    pub fn ecn_field(&self) -> u8 {
        self.kind().ecn_field()
    }

    /// The congestion control; none: it has no connections.
    pub fn cc(&self) -> Option<&Cc> {
        self.connections().map(|connections| connections.cc)
    }
}

/// The traffic, without the congestion control.
impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_traits_under_its_own_name() {
        let schema = schemars::schema_for!(Traffic);
        let variants = schema.get("oneOf").and_then(|kinds| kinds.as_array()).expect("an enum of kinds");
        let names: Vec<&str> =
            variants.iter().filter_map(|kind| kind["properties"]["kind"]["const"].as_str()).collect();
        assert_eq!(names, Traffic::KINDS.map(|kind| kind.name));
    }
}
