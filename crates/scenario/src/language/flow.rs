//! The traffic part of the language. How each kind of traffic is written, and its plan, has a file of its own.

mod echo;
mod http;
mod ping;
mod request;
mod tcp;
mod udp;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_plan::{PatternDistribution, Traffic};
use tcplab_units::Span;

use super::Amount;
use super::kinds;
use crate::expand::FlowEndpoints;
use echo::Echo;
use http::Http;
use ping::Ping;
use request::Request;
use tcp::Tcp;
use udp::Udp;

/// A congestion control; short form: its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Control {
    /// Name of the control, or the path of a C file relative to the scenario.
    pub(crate) name: String,
    /// Parameters that differ from their defaults.
    pub(crate) params: BTreeMap<String, f64>,
}

impl Control {
    pub(super) fn cubic() -> Control {
        Control { name: "cubic".to_owned(), params: BTreeMap::new() }
    }
}

/// Pauses in a flow: it sends for `on`, is silent for `off`, and so on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pattern {
    /// Mean time of sending.
    #[schemars(with = "kinds::PositiveMoment")]
    pub(crate) on: u64,
    /// Mean time of silence.
    #[schemars(with = "kinds::PositiveMoment")]
    pub(crate) off: u64,
    /// Whether both times are always their mean, or exponentially distributed.
    #[serde(default = "constant")]
    #[schemars(with = "Option<PatternDistribution>")]
    pub(crate) distribution: PatternDistribution,
}

impl Pattern {
    fn plan(&self) -> tcplab_plan::Pattern {
        let Pattern { on, off, distribution } = *self;
        tcplab_plan::Pattern { on: Span::from_ns(on), off: Span::from_ns(off), distribution }
    }
}

fn constant() -> PatternDistribution {
    PatternDistribution::Constant
}

/// Settings of every flow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Common {
    /// Name of the flow, by which results and `--set` call it.
    #[schemars(with = "kinds::Name")]
    pub(crate) name: String,
    /// Sending node (for request and ping: the one that asks); default on a path: `left`.
    #[schemars(with = "Option<kinds::Name>")]
    pub(crate) from: Option<String>,
    /// Receiving node; default on a path: `right`.
    #[schemars(with = "Option<kinds::Name>")]
    pub(crate) to: Option<String>,
    /// In place of `from` and `to`: `all`, a flow from every host to every other, each called NAME-FROM-TO.
    pub(crate) between: Option<Between>,
    /// When the flow starts.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Moment>")]
    pub(crate) start: u64,
    /// How long it goes on; default: until the end of the scenario.
    #[schemars(with = "Option<kinds::PositiveMoment>")]
    pub(crate) duration: Option<u64>,
    /// When it stops, instead of `duration`.
    #[schemars(with = "Option<kinds::Moment>")]
    pub(crate) stop: Option<u64>,
    /// Version of IP that carries it: 4 (default) or 6.
    #[serde(default = "four")]
    #[schemars(with = "Option<kinds::IpVersion>")]
    pub(crate) ip: u8,
    /// Differentiated services codepoint of its packets, both ways (RFC 2474): 0 to 63, or a name such as
    /// `EF`; default 0. The queue `prio` goes by it.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Dscp>")]
    pub(crate) dscp: u8,
    /// Port at which the server listens; its streams have this one and those that follow. Default: ports of the engine's choice.
    #[schemars(with = "Option<kinds::Port>")]
    pub(crate) port: Option<u16>,
}

/// Between which hosts there are flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Between {
    /// Each and each other, in both directions.
    All,
}

fn four() -> u8 {
    4
}

/// Settings of a flow's sockets, instead of its hosts'.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct SocketSettings {
    /// Send buffer of the sender and receive buffer of the receiver.
    #[schemars(with = "Option<kinds::Window>")]
    pub(crate) window: Option<Amount>,
    /// Send buffer alone, at both ends.
    #[schemars(with = "Option<kinds::Window>")]
    pub(crate) send_buffer: Option<Amount>,
    /// Receive buffer alone, at both ends.
    #[schemars(with = "Option<kinds::Window>")]
    pub(crate) receive_buffer: Option<Amount>,
    /// Largest TCP payload of a segment, options not counted (TCP_MAXSEG).
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) mss: Option<u64>,
    /// Nagle's algorithm (off is TCP_NODELAY).
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) nagle: Option<bool>,
}

/// Traffic of a flow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Kind {
    /// A bulk transfer over TCP.
    Tcp(Tcp),
    /// Datagrams at a rate.
    Udp(Udp),
    /// Requests and responses over TCP.
    Request(Request),
    /// Pages loaded over HTTP/1.1.
    Http(Http),
    /// Messages echoed over TCP.
    Echo(Echo),
    /// Echo requests, as ICMP.
    Ping(Ping),
}

/// One named traffic source and sink.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Flow {
    /// Its place in the list.
    #[serde(rename = "#", default)]
    #[schemars(skip)]
    pub(crate) number: usize,
    /// Settings of every flow.
    #[serde(flatten)]
    pub(crate) common: Common,
    /// Traffic.
    #[serde(flatten)]
    kind: Kind,
}

/// A kind of traffic, as it is written.
pub(crate) trait Written {
    /// Its congestion control, if it has one.
    fn control(&self) -> Option<&Control> {
        None
    }

    /// The settings of its sockets, if it has TCP sockets.
    fn sockets(&self) -> Option<&SocketSettings> {
        None
    }

    /// Connections or sources.
    fn streams(&self) -> u32;

    /// Whether it ends when its work is done.
    fn ends_by_itself(&self) -> bool;

    /// The payload that one packet has to hold, if any was given, and the header before it.
    fn payload(&self) -> Option<Payload> {
        None
    }

    /// Why its servers have no ports; none: they have.
    fn without_ports(&self) -> Option<&'static str> {
        None
    }

    /// Its plan.
    fn plan(&self, ends: &FlowEndpoints<'_>) -> Traffic;
}

/// Payload that one packet has to hold.
pub(crate) struct Payload {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Bytes of the header between it and that of IP.
    pub(crate) header: u32,
}

impl Flow {
    /// Its traffic, of whichever kind.
    pub(crate) fn traffic(&self) -> &dyn Written {
        match &self.kind {
            Kind::Tcp(kind) => kind,
            Kind::Udp(kind) => kind,
            Kind::Request(kind) => kind,
            Kind::Http(kind) => kind,
            Kind::Echo(kind) => kind,
            Kind::Ping(kind) => kind,
        }
    }
}

fn one() -> u32 {
    1
}
