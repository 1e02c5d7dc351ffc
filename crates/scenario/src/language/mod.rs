//! The language as types: their JSON Schema, with the documentation of every key, drives the reader, and
//! what was read fills them.

mod accelerator;
mod cache;
mod flow;
mod generated;
mod host;
pub(crate) mod kinds;
mod network;
mod remote;
mod study;

use num_rational::BigRational;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tcplab_plan::{CaptureAt, Emulator};

use crate::schema;

pub(crate) use accelerator::{Accelerate, Leg};
pub(crate) use cache::Cache;
pub(crate) use flow::{Between, Control, Flow, Payload, SocketSettings};
pub(crate) use generated::{Form, Generated, Joint};
pub(crate) use host::{HostSettings, Nic};
pub use network::node_kinds;
pub(crate) use network::{
    Chance, Direction, Framing, Impairments, Jitter, Link, LinkChange, Loss, Network, Node, Overhead,
    PathNetwork, Policer, RandomModel, Reorder, Role,
};
pub(crate) use study::Study;

/// An amount of data or time, or of multiples of the bandwidth-delay product.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Amount {
    /// Packets.
    Packets(u64),
    /// Bytes.
    Bytes(u64),
    /// Nanoseconds.
    Time(u64),
    /// Multiples of the bandwidth-delay product.
    Bdp(Multiple),
}

/// An exact fraction, as a text such as `3/2`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Multiple(pub(crate) BigRational);

impl<'de> Deserialize<'de> for Multiple {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Multiple, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Multiple).map_err(serde::de::Error::custom)
    }
}

/// The rate of a link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum LinkRate {
    /// In bit/s.
    Limited(u64),
    /// The word `unlimited`.
    Unlimited(String),
}

impl LinkRate {
    /// In bit/s; none: unlimited.
    pub(crate) fn limited(&self) -> Option<u64> {
        match self {
            LinkRate::Limited(rate) => Some(*rate),
            LinkRate::Unlimited(_) => None,
        }
    }
}

/// A queue as it was read: its kind and settings, with amounts that are not resolved yet.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct QueueTree(pub(crate) serde_json::Map<String, Value>);

impl QueueTree {
    /// A queue of the default kind.
    pub(crate) fn limited(limit: Value) -> QueueTree {
        let queue = [("kind".to_owned(), Value::from("droptail")), ("limit".to_owned(), limit)];
        QueueTree(queue.into_iter().collect())
    }

    /// Its kind; none where none was given.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.0.get("kind").and_then(Value::as_str)
    }

    /// Its amounts, by key.
    pub(crate) fn amounts(&self) -> impl Iterator<Item = (&str, Amount)> {
        self.0.iter().filter_map(|(key, value)| Some((key.as_str(), amount(value)?)))
    }

    /// The queue that a shaper holds.
    pub(crate) fn within(&self) -> Option<QueueTree> {
        self.0.get("queue").and_then(Value::as_object).map(|keys| QueueTree(keys.clone()))
    }

    /// The rate at which it shapes what waits in it, in bit/s.
    pub(crate) fn shaper(&self) -> Option<u64> {
        self.0.get(schema::queue_key(self.kind()?, "shaper")?)?.as_u64()
    }

    /// The queues within it.
    pub(crate) fn inner(&self) -> Vec<QueueTree> {
        let bands = self.0.get("bands").and_then(Value::as_array).into_iter().flatten();
        let queues = bands.filter_map(|band| band.get("queue")).chain(self.0.get("queue"));
        queues.filter_map(Value::as_object).map(|keys| QueueTree(keys.clone())).collect()
    }
}

/// The amount in a queue's tree, if this is one.
pub(crate) fn amount(value: &Value) -> Option<Amount> {
    if value.is_object() { serde_json::from_value(value.clone()).ok() } else { None }
}

/// Settings from a time on.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct At<T> {
    /// The time as written.
    pub(crate) key: String,
    /// In nanoseconds.
    pub(crate) time: u64,
    /// The settings.
    pub(crate) change: T,
}

/// How often what is sampled; `off`: never.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    /// Every sending TCP socket (default 10 ms).
    #[serde(default = "ten_ms")]
    #[schemars(with = "Option<kinds::Interval>")]
    pub(crate) sockets: Option<u64>,
    /// Every link direction's queue (default 10 ms).
    #[serde(default = "ten_ms")]
    #[schemars(with = "Option<kinds::Interval>")]
    pub(crate) queues: Option<u64>,
    /// Every stream's counters (default 100 ms).
    #[serde(default = "hundred_ms")]
    #[schemars(with = "Option<kinds::Interval>")]
    pub(crate) flows: Option<u64>,
    /// Every host's CPU and memory, on real hosts (default 100 ms).
    #[serde(default = "hundred_ms")]
    #[schemars(with = "Option<kinds::Interval>")]
    pub(crate) hosts: Option<u64>,
    /// Record every packet event of every link (default off).
    #[serde(default)]
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) packets: bool,
}

fn ten_ms() -> Option<u64> {
    Some(10_000_000)
}

fn hundred_ms() -> Option<u64> {
    Some(100_000_000)
}

impl Default for Sample {
    fn default() -> Sample {
        Sample {
            sockets: ten_ms(),
            queues: ten_ms(),
            flows: hundred_ms(),
            hosts: hundred_ms(),
            packets: false,
        }
    }
}

/// Packets to capture as pcapng. Short form: how much (`capture: headers`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-short" = "what"))]
pub(crate) struct Capture {
    /// `none`, `headers` (Ethernet, IP and transport), or `full` packets.
    #[serde(default = "headers")]
    #[schemars(with = "Option<CaptureWhat>")]
    pub(crate) what: CaptureWhat,
    /// `wire`: MTU-size packets, from the link; `host`: as tcpdump on the host sees them, TSO and GRO
    /// super-packets included.
    #[serde(default = "wire")]
    #[schemars(with = "Option<CaptureAt>")]
    pub(crate) at: CaptureAt,
    /// Nodes whose interfaces are captured; default: every host.
    #[schemars(with = "Option<Vec<kinds::Name>>", length(min = 1))]
    pub(crate) nodes: Option<Vec<String>>,
}

/// How much of each packet is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CaptureWhat {
    /// Nothing.
    None,
    /// Ethernet, IP and transport headers.
    Headers,
    /// Everything.
    Full,
}

fn headers() -> CaptureWhat {
    CaptureWhat::Headers
}

fn wire() -> CaptureAt {
    CaptureAt::Wire
}

/// When traffic starts in a network with routing protocols.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    /// `converged`: when the ends of every flow reach each other.
    #[schemars(with = "Option<WaitFor>")]
    #[allow(dead_code, reason = "there is one thing to wait for")]
    pub(crate) routes: Option<WaitFor>,
    /// How long that may take; then the run fails. Default: 60 s.
    #[serde(default = "one_minute")]
    #[schemars(with = "Option<kinds::PositiveTime>")]
    pub(crate) timeout: u64,
}

/// Routes to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitFor {
    /// Those of every flow.
    Converged,
}

/// A scenario: one test.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "tcplab scenario")]
pub(crate) struct Scenario {
    /// Version of the scenario language: 1.
    #[schemars(with = "kinds::Version")]
    #[allow(dead_code, reason = "there is one version")]
    pub(crate) tcplab: u64,
    /// Name of the scenario.
    #[schemars(with = "kinds::Name")]
    pub(crate) name: String,
    /// Free text, shown in the report.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Text>")]
    pub(crate) description: String,
    /// The network.
    pub(crate) network: Network,
    /// The traffic.
    #[schemars(length(min = 1))]
    pub(crate) flows: Vec<Flow>,
    /// The run ends here; default: when the last flow stops, or after 30 s if no flow says when.
    #[schemars(with = "Option<kinds::PositiveMoment>")]
    pub(crate) duration: Option<u64>,
    /// Without `duration`: how long flows that end by bytes or count may take (default 10 min).
    #[serde(default = "ten_minutes")]
    #[schemars(with = "Option<kinds::PositiveMoment>")]
    pub(crate) timeout: u64,
    /// When traffic starts in a network with routing protocols.
    pub(crate) wait: Option<Wait>,
    /// How often what is sampled.
    #[serde(default)]
    #[schemars(with = "Option<Sample>")]
    pub(crate) sample: Sample,
    /// Warm-up that steady-state figures exclude: a time, or `auto` (default), found by MSER-5.
    #[schemars(with = "Option<kinds::Omit>")]
    pub(crate) omit: Option<u64>,
    /// Emulator of the links of a real kernel's network: tcplab's emulator (default), or netem.
    #[serde(default)]
    #[schemars(with = "Option<Emulator>")]
    pub(crate) emulator: Emulator,
    /// Measure the links before traffic, and refuse those that are off. Default: up to 50 links; before a run, where a
    /// flow lasts beyond 10 s.
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) verify: Option<bool>,
    /// Packets to capture (default none).
    pub(crate) capture: Option<Capture>,
    /// Number of runs, each with its own seed.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Count>")]
    pub(crate) repeat: u64,
    /// From the second run on, each flow starts later by a random phase of up to its base RTT (default on).
    #[serde(default = "on")]
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) vary: bool,
    /// Seed of every random stream of the first run; each repetition takes the next.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Seed>")]
    pub(crate) seed: u64,
}

fn ten_minutes() -> u64 {
    600_000_000_000
}

fn one_minute() -> u64 {
    60_000_000_000
}

fn one() -> u64 {
    1
}

fn on() -> bool {
    true
}
