//! The traffic part of the language.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_plan::{Generator, PatternDistribution};

use super::Amount;
use super::http::Http;
use super::kinds;

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
    /// Differentiated services codepoint of its packets, there and back (RFC 2474): 0 to 63, or a name such as
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

/// A bulk transfer over TCP.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Tcp {
    /// Number of parallel connections.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) streams: u32,
    /// Congestion control (default cubic).
    #[serde(default = "Control::cubic")]
    #[schemars(with = "Option<kinds::Control>")]
    pub(crate) cc: Control,
    /// Bytes per stream; default: as many as the time allows.
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) bytes: Option<u64>,
    /// Pauses.
    pub(crate) pattern: Option<Pattern>,
    /// Program that makes the traffic where it is real.
    #[serde(default)]
    #[schemars(with = "Option<Generator>")]
    pub(crate) generator: Generator,
    /// Its sockets.
    #[serde(flatten)]
    pub(crate) sockets: SocketSettings,
}

fn one() -> u32 {
    1
}

/// Datagrams at a rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Udp {
    /// Number of parallel sources.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) streams: u32,
    /// Rate of UDP payload per stream.
    #[schemars(with = "kinds::Rate", extend("examples" = ["10 Mbit/s"]))]
    pub(crate) rate: u64,
    /// Payload of a datagram; default: what fills the path's MTU (1472 B; 1452 B over IPv6).
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) payload: Option<u64>,
    /// Payload per stream; default: as much as the time allows.
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) bytes: Option<u64>,
    /// Pauses.
    pub(crate) pattern: Option<Pattern>,
    /// Make datagrams ECN-capable: 0 for ECT(0), 1 for ECT(1), by which queues of L4S go; default: they are not.
    /// The sender answers no marks.
    #[schemars(with = "Option<kinds::Ect>")]
    pub(crate) ect: Option<u8>,
    /// Program that makes the traffic where it is real.
    #[serde(default)]
    #[schemars(with = "Option<Generator>")]
    pub(crate) generator: Generator,
}

/// A client that asks, waits for the answer, thinks and asks again, on one TCP connection a stream.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Request {
    /// Number of parallel connections.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) streams: u32,
    /// Congestion control of both ends (default cubic).
    #[serde(default = "Control::cubic")]
    #[schemars(with = "Option<kinds::Control>")]
    pub(crate) cc: Control,
    /// Size of a request.
    #[schemars(with = "kinds::PositiveSize", extend("examples" = ["200 B"]))]
    pub(crate) request: u64,
    /// Size of a response.
    #[schemars(with = "kinds::PositiveSize", extend("examples" = ["100 kB"]))]
    pub(crate) response: u64,
    /// Pause between a response and the next request.
    #[serde(default)]
    #[schemars(with = "Option<kinds::TimeSpan>")]
    pub(crate) think: u64,
    /// Requests per stream; default: as many as the time allows.
    #[schemars(with = "Option<kinds::Count>")]
    pub(crate) count: Option<u64>,
    /// Its sockets.
    #[serde(flatten)]
    pub(crate) sockets: SocketSettings,
}

/// Clients that send messages, size after size, and wait for each to come back, on a connection each.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Echo {
    /// Congestion control of both ends (default cubic).
    #[serde(default = "Control::cubic")]
    #[schemars(with = "Option<kinds::Control>")]
    pub(crate) cc: Control,
    /// Clients at the same time, each with a connection (default 1).
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) clients: u32,
    /// Sizes of messages: `1..65536` (doubling), a list, or one; a number is bytes (default 1..65536).
    #[serde(default = "powers_of_two")]
    #[schemars(with = "Option<kinds::Sizes>")]
    pub(crate) sizes: Vec<u32>,
    /// Messages of each size (default 1000).
    #[serde(default = "thousand")]
    #[schemars(with = "Option<kinds::Count>")]
    pub(crate) iterations: u64,
    /// How many of the first messages of each size are left out of the statistics (default none).
    #[serde(default)]
    #[schemars(with = "Option<kinds::Warmup>")]
    pub(crate) warmup: u64,
    /// Minimum time from one message to the next (default none: at once).
    #[serde(default)]
    #[schemars(with = "Option<kinds::TimeSpan>")]
    pub(crate) interval: u64,
    /// How long a message may take to come back where it is real (default 10 s).
    #[serde(default = "ten_seconds")]
    #[schemars(with = "Option<kinds::PositiveMoment>")]
    pub(crate) timeout: u64,
    /// Both ends poll instead of sleeping where they are real (default off).
    #[serde(default)]
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) busy_poll: bool,
    /// Its sockets.
    #[serde(flatten)]
    pub(crate) sockets: SocketSettings,
}

fn powers_of_two() -> Vec<u32> {
    (0..=16).map(|power| 1 << power).collect()
}

fn thousand() -> u64 {
    1000
}

fn ten_seconds() -> u64 {
    10_000_000_000
}

/// Echo requests, as ICMP.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Ping {
    /// Number of parallel sources.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) streams: u32,
    /// Time between two probes (default 100 ms).
    #[serde(default = "tenth_of_a_second")]
    #[schemars(with = "Option<kinds::PositiveTime>")]
    pub(crate) interval: u64,
    /// Payload of a probe (default 56 B).
    #[serde(default = "fifty_six")]
    #[schemars(with = "Option<kinds::Size>")]
    pub(crate) payload: u64,
    /// How many; default: as many as the time allows.
    #[schemars(with = "Option<kinds::Count>")]
    pub(crate) count: Option<u64>,
}

fn tenth_of_a_second() -> u64 {
    100_000_000
}

fn fifty_six() -> u64 {
    56
}

/// Traffic of a flow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Kind {
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
    pub(crate) kind: Kind,
}

impl Flow {
    /// Its congestion control, if it has one.
    pub(crate) fn control(&self) -> Option<&Control> {
        match &self.kind {
            Kind::Tcp(Tcp { cc, .. })
            | Kind::Request(Request { cc, .. })
            | Kind::Http(Http { cc, .. })
            | Kind::Echo(Echo { cc, .. }) => Some(cc),
            Kind::Udp(_) | Kind::Ping(_) => None,
        }
    }

    /// The settings of its sockets, if it has TCP sockets.
    pub(crate) fn sockets(&self) -> Option<&SocketSettings> {
        match &self.kind {
            Kind::Tcp(Tcp { sockets, .. })
            | Kind::Request(Request { sockets, .. })
            | Kind::Http(Http { sockets, .. })
            | Kind::Echo(Echo { sockets, .. }) => Some(sockets),
            Kind::Udp(_) | Kind::Ping(_) => None,
        }
    }

    /// Connections or sources.
    pub(crate) fn streams(&self) -> u32 {
        match &self.kind {
            Kind::Tcp(Tcp { streams, .. })
            | Kind::Udp(Udp { streams, .. })
            | Kind::Request(Request { streams, .. })
            | Kind::Ping(Ping { streams, .. }) => *streams,
            Kind::Echo(Echo { clients, .. }) => *clients,
            Kind::Http(Http { connections, .. }) => *connections,
        }
    }

    /// Whether it ends when its work is done.
    pub(crate) fn ends_by_itself(&self) -> bool {
        match &self.kind {
            Kind::Tcp(Tcp { bytes, .. }) | Kind::Udp(Udp { bytes, .. }) => bytes.is_some(),
            Kind::Request(Request { count, .. }) | Kind::Ping(Ping { count, .. }) => count.is_some(),
            Kind::Http(http) => http.count.is_some(),
            Kind::Echo(_) => true,
        }
    }
}
