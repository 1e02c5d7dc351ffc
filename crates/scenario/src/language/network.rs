//! The network part of the language: the `path` shorthand, nodes, links and what links do to packets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_plan::{Distribution, Medium, NodeKind, NodeTraits, Queue, Routing};

use super::accelerator::Accelerate;
use super::cache::Cache;
use super::generated::Generated;
use super::host::HostSettings;
use super::kinds;
use super::remote::{ExpectPath, Place};
use super::{At, LinkRate, QueueTree};

/// A random event that hits packets. Short form: the rate (`corrupt: 0.1 %`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-short" = "rate"))]
pub(crate) struct Chance {
    /// Mean share of packets affected.
    #[schemars(with = "kinds::Probability")]
    pub(crate) rate: u32,
    /// How much a packet's fate resembles its predecessor's; the mean rate is kept.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Correlation>")]
    pub(crate) correlation: u32,
}

/// Bursts: a good and a bad state, each with its own loss probability.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GilbertElliott {
    /// Probability of going from good to bad, per packet.
    #[schemars(with = "kinds::Probability")]
    pub(crate) p: u32,
    /// Probability of going from bad to good, per packet; 1/r is the mean burst length in packets.
    #[schemars(with = "kinds::Probability")]
    pub(crate) r: u32,
    /// Loss probability in the bad state (default 100 %).
    #[serde(default = "always")]
    #[schemars(with = "Option<kinds::Probability>")]
    pub(crate) bad: u32,
    /// Loss probability in the good state (default 0 %).
    #[serde(default)]
    #[schemars(with = "Option<kinds::Probability>")]
    pub(crate) good: u32,
}

fn always() -> u32 {
    1_000_000_000
}

/// Which packets vanish; short form: the rate (`loss: 0.5 %`).
///
/// One of `rate`, `gilbert_elliott`, `packets` and `every` must be given. Losses happen after serialisation
/// unless `before_queue` is set.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-short" = "rate", "x-rule" = "loss"))]
pub(crate) struct Loss {
    /// Mean share of packets lost at random.
    #[schemars(with = "Option<kinds::Probability>")]
    pub(crate) rate: Option<u32>,
    /// How much a loss resembles its predecessor's fate; needs `rate`.
    #[schemars(with = "Option<kinds::Correlation>")]
    pub(crate) correlation: Option<u32>,
    /// `random` (default) keeps the mean rate under correlation; `netem` repeats netem's recursion, which does
    /// not.
    pub(crate) model: Option<RandomModel>,
    /// Bursts after Gilbert and Elliott.
    pub(crate) gilbert_elliott: Option<GilbertElliott>,
    /// Exactly these packets of the direction, counted from 1.
    #[schemars(with = "Option<Vec<kinds::Count>>", length(min = 1))]
    pub(crate) packets: Option<Vec<u64>>,
    /// One packet in every so many (`every: 1000 packets`).
    #[schemars(with = "Option<kinds::Packets>")]
    pub(crate) every: Option<u64>,
    /// With `every`: the number of the first packet lost, counted from 1; default: the period.
    #[schemars(with = "Option<kinds::Count>")]
    pub(crate) first: Option<u64>,
    /// Lose packets before they enter the queue, so that a lost packet uses no capacity.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) before_queue: bool,
}

/// Models of random loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RandomModel {
    /// A chain that keeps the mean rate.
    Random,
    /// netem's recursion.
    Netem,
}

/// Packets that overtake others; without it order is kept. Short form: the rate (`reorder: 1 %`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-short" = "rate"))]
pub(crate) struct Reorder {
    /// Share of packets that skip `by` of the delay.
    #[schemars(with = "kinds::Probability")]
    pub(crate) rate: u32,
    /// How much a packet's fate resembles its predecessor's.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Correlation>")]
    pub(crate) correlation: u32,
    /// How much of the delay they skip; default: all of it.
    #[schemars(with = "Option<kinds::PositiveTime>")]
    pub(crate) by: Option<u64>,
}

/// Random variation of the delay, with the same mean and spread at any packet rate.
///
/// Short form: the amount (`jitter: 2 ms`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-short" = "amount", "x-rule" = "jitter"))]
pub(crate) struct Jitter {
    /// Half width (uniform), standard deviation (normal) or mean excess (pareto).
    #[schemars(with = "kinds::TimeSpan")]
    pub(crate) amount: u64,
    /// Shape of the variation.
    #[serde(default = "uniform")]
    #[schemars(with = "Option<Distribution>")]
    pub(crate) distribution: Distribution,
    /// Time in which the delay's autocorrelation falls to 1/e; default: 100 ms, or 10 times the amount where
    /// that is longer. It has no meaning with `reorder`, which makes each packet's delay its own.
    #[schemars(with = "Option<kinds::PositiveTime>")]
    pub(crate) correlation_time: Option<u64>,
}

fn uniform() -> Distribution {
    Distribution::Uniform
}

/// Overhead of a frame on the wire in addition to its Ethernet frame (IP length + 14 bytes). Only serialisation counts it.
///
/// Short form: the framing (`overhead: ethernet`).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-short" = "framing"))]
pub(crate) struct Overhead {
    /// A framing in common use, of which the other keys change single values.
    pub(crate) framing: Option<Framing>,
    /// Added to each frame.
    #[schemars(with = "Option<kinds::Size>")]
    pub(crate) bytes: Option<u64>,
    /// A shorter frame is padded to this, `bytes` included.
    #[schemars(with = "Option<kinds::Size>")]
    pub(crate) minimum: Option<u64>,
    /// Frames are sent in ATM cells: 53 bytes for each 48 or part of them.
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) atm: Option<bool>,
}

/// Framings, with the values of `man tc-cake` less the 14 bytes that every frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Framing {
    /// Preamble (8 bytes), FCS (4) and gap (12); at least 84 bytes.
    Ethernet,
    /// Ethernet with a VLAN tag (4 bytes).
    Vlan,
    /// PPPoE (8 bytes) over Ethernet.
    Pppoe,
    /// PPPoE over ATM with LLC/SNAP, as ADSL has it: 26 bytes, in cells.
    PppoeAtm,
    /// A DOCSIS cable modem's shaper: FCS (4 bytes); at least 64 bytes.
    Docsis,
    /// A frame of a Wi-Fi's A-MPDU (28 bytes): delimiter (4), QoS header (26), LLC and SNAP (8), FCS (4), less Ethernet's 14.
    Wifi,
}

/// A token bucket that drops packets that come faster than allowed, before the queue.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policer {
    /// Rate at which the bucket fills.
    #[schemars(with = "kinds::Rate")]
    pub(crate) rate: u64,
    /// Size of the bucket in frame bytes: what passes at once after a pause.
    #[schemars(with = "kinds::PositiveSize")]
    pub(crate) burst: u64,
}

/// Settings of a link direction that may also change during the run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Impairments {
    /// Serialisation rate of Ethernet frames (IP length + 14 bytes), or `unlimited`.
    #[schemars(with = "Option<kinds::LinkRate>")]
    pub(crate) rate: Option<LinkRate>,
    /// Packets lost after serialisation (or before the queue, with `before_queue`).
    pub(crate) loss: Option<Loss>,
    /// Packets damaged after serialisation; the receiver discards them.
    pub(crate) corrupt: Option<Chance>,
    /// Packets delivered twice.
    pub(crate) duplicate: Option<Chance>,
    /// Packets that overtake others.
    pub(crate) reorder: Option<Reorder>,
    /// Random variation of the delay in time; order is kept unless `reorder` is set.
    pub(crate) jitter: Option<Jitter>,
    /// A link that is down drops what is offered to it and what waits in its queue.
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) up: Option<bool>,
}

/// New settings of a queue: those of [`Queue`], none of which has to be there.
struct QueueChange;

impl JsonSchema for QueueChange {
    fn schema_name() -> Cow<'static, str> {
        "QueueChange".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Queue::json_schema(generator);
        let kinds = schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten();
        for kind in kinds.filter_map(Value::as_object_mut) {
            kind.insert("required".to_owned(), json!(["kind"]));
        }
        schema.insert("x-change".to_owned(), json!(true));
        schema
    }
}

/// New settings of a link from a time on; what is not named stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct LinkChange {
    /// Impairments.
    #[serde(flatten)]
    pub(crate) impairments: Impairments,
    /// New queue limit (`memlimit` of cake), and where named, new marking threshold; of `tbf`, those of its `queue`.
    #[schemars(with = "Option<QueueChange>")]
    pub(crate) queue: Option<QueueTree>,
    /// New one-way propagation delay.
    #[schemars(with = "Option<kinds::TimeSpan>")]
    pub(crate) delay: Option<u64>,
}

/// New settings of the path from a time on; what is not named stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct PathChange {
    /// Impairments.
    #[serde(flatten)]
    pub(crate) impairments: Impairments,
    /// New limit of the forward queue (`memlimit` of cake), and where named, new marking threshold; of `tbf`, those of
    /// its `queue`.
    #[schemars(with = "Option<QueueChange>")]
    pub(crate) queue: Option<QueueTree>,
    /// New base round-trip time, half in each direction.
    #[schemars(with = "Option<kinds::TimeSpan>")]
    pub(crate) rtt: Option<u64>,
}

/// One direction of a link.
///
/// In this order: queue, serialisation at `rate`, loss, corruption and duplication, propagation `delay`
/// with `jitter`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Direction {
    /// Impairments.
    #[serde(flatten)]
    pub(crate) impairments: Impairments,
    /// The queue in front of the serialiser; default: 1000 packets, droptail.
    #[schemars(with = "Option<Queue>")]
    pub(crate) queue: Option<QueueTree>,
    /// One-way propagation delay.
    #[schemars(with = "Option<kinds::TimeSpan>")]
    pub(crate) delay: Option<u64>,
    /// File of delivery opportunities in mahimahi's format, instead of `rate`; relative to the scenario.
    #[schemars(with = "Option<kinds::Text>")]
    pub(crate) trace: Option<String>,
    /// Overhead of frames on the wire in addition to IP length + 14 bytes; default: none.
    pub(crate) overhead: Option<Overhead>,
    /// Policer before the queue, which drops packets above its rate.
    pub(crate) policer: Option<Policer>,
    /// Settings that change during the run, by time.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, LinkChange>", extend("x-tcplab" = "at"))]
    pub(crate) at: Vec<At<LinkChange>>,
}

/// The kind of a node, or of a router with a purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// It discards packets for other nodes.
    Host,
    /// It forwards frames.
    Switch,
    /// It forwards packets along shortest paths.
    Router,
    /// A router that splits the TCP connections that pass.
    Accelerator,
    /// A router that answers requests of http flows that pass.
    Cache,
}

impl Role {
    const ALL: [Role; 5] = [Role::Host, Role::Switch, Role::Router, Role::Accelerator, Role::Cache];

    /// Its name, and the kind of node it is.
    const fn of(self) -> (&'static str, NodeKind) {
        match self {
            Role::Host => ("host", NodeKind::Host),
            Role::Switch => ("switch", NodeKind::Switch),
            Role::Router => ("router", NodeKind::Router),
            Role::Accelerator => ("accelerator", NodeKind::Router),
            Role::Cache => ("cache", NodeKind::Router),
        }
    }

    /// The kind of node it is.
    pub(crate) fn kind(self) -> NodeKind {
        self.of().1
    }
}

/// Traits of the nodes of each kind that a scenario may name.
pub fn node_kinds() -> [NodeTraits; 5] {
    Role::ALL.map(|role| {
        let (name, kind) = role.of();
        NodeTraits { name, ..kind.traits() }
    })
}

/// A host, switch or router; TCP settings are for hosts. Short form: the name of a host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("x-short" = "name"))]
pub(crate) struct Node {
    /// Its place in the list.
    #[serde(rename = "#", default)]
    #[schemars(skip)]
    pub(crate) number: usize,
    /// Name of the node.
    #[schemars(with = "kinds::Name")]
    pub(crate) name: String,
    /// `host` (default) sends and receives, `switch` forwards within a subnet, `router` between subnets. `accelerator` is a router
    /// with `accelerate: {}`, and `cache` one with `cache: {}`.
    pub(crate) kind: Option<Role>,
    /// Routing protocols of a router, in place of static routes along shortest paths.
    pub(crate) routing: Option<Routing>,
    /// File in FRR's own language that extends what `routing` says, or is all of it; relative to the scenario.
    #[schemars(with = "Option<kinds::Text>")]
    pub(crate) frr: Option<String>,
    /// Of a router: share flows between all shortest paths by a hash of addresses and ports (default off).
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) ecmp: Option<bool>,
    /// Of a router: split the TCP connections that pass (`accelerate: {}`).
    pub(crate) accelerate: Option<Accelerate>,
    /// Of a router: answer requests of http flows that pass (`cache: {}`).
    pub(crate) cache: Option<Cache>,
    /// Its TCP.
    #[serde(flatten)]
    pub(crate) settings: HostSettings,
}

/// A point-to-point link.
///
/// Its settings hold for both directions; `forward` (from the first end to the second) and `reverse` say
/// what differs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Link {
    /// Its place in the list.
    #[serde(rename = "#", default)]
    #[schemars(skip)]
    pub(crate) number: usize,
    /// Name of the link; default: its ends, joined by `-`.
    #[schemars(with = "Option<kinds::Name>")]
    pub(crate) name: Option<String>,
    /// The two nodes it joins.
    #[schemars(with = "Vec<kinds::Name>", length(min = 2, max = 2))]
    pub(crate) ends: Vec<String>,
    /// Largest IP packet.
    #[schemars(with = "Option<kinds::Mtu>")]
    pub(crate) mtu: Option<u32>,
    /// Medium that both directions share with other links; each then has a `rate`. Default: none, the link is a wire.
    #[schemars(with = "Option<kinds::Name>")]
    pub(crate) medium: Option<String>,
    /// Settings from the first end to the second, where they differ.
    pub(crate) forward: Option<Direction>,
    /// Settings from the second end to the first, where they differ.
    pub(crate) reverse: Option<Direction>,
    /// Settings of both directions.
    #[serde(flatten)]
    pub(crate) common: Direction,
}

impl Link {
    /// A link without settings.
    pub(crate) fn plain(ends: [&str; 2]) -> Link {
        Link {
            number: 0,
            name: None,
            ends: ends.map(str::to_owned).to_vec(),
            mtu: None,
            medium: None,
            forward: None,
            reverse: None,
            common: Direction::default(),
        }
    }
}

/// The classic dumbbell, reduced to its bottleneck: hosts `left` and `right` joined by the link `path`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct PathNetwork {
    /// Impairments.
    #[serde(flatten)]
    pub(crate) impairments: Impairments,
    /// Base round-trip time, half in each direction.
    #[schemars(with = "kinds::TimeSpan")]
    pub(crate) rtt: u64,
    /// The forward bottleneck queue; default: 1 BDP, droptail.
    #[schemars(with = "Option<Queue>")]
    pub(crate) queue: Option<QueueTree>,
    /// File of forward delivery opportunities in mahimahi's format, instead of `rate`; relative to the
    /// scenario.
    #[schemars(with = "Option<kinds::Text>")]
    pub(crate) trace: Option<String>,
    /// Overhead of frames on the wire in addition to IP length + 14 bytes, in both directions; default: none.
    pub(crate) overhead: Option<Overhead>,
    /// Policer before the forward queue, which drops packets above its rate.
    pub(crate) policer: Option<Policer>,
    /// Settings that change during the run, by time (`20 s: {rate: 20 Mbit/s}`).
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, PathChange>", extend("x-tcplab" = "at"))]
    pub(crate) at: Vec<At<PathChange>>,
    /// Largest IP packet.
    #[schemars(with = "Option<kinds::Mtu>")]
    pub(crate) mtu: Option<u32>,
    /// The way back; default: same rate and delay, no impairments, a queue of 10000 packets.
    pub(crate) reverse: Option<Direction>,
    /// Settings of the host `left`, which sends unless a flow says otherwise.
    pub(crate) left: Option<HostSettings>,
    /// Settings of the host `right`.
    pub(crate) right: Option<HostSettings>,
    /// Give each flow a path of its own with the same settings: hosts `left-FLOW` and `right-FLOW`, link
    /// `path-FLOW`. So flows can be compared that do not meet.
    #[serde(default)]
    #[schemars(with = "Option<kinds::Switch>")]
    pub(crate) per_flow: bool,
    /// A split-TCP accelerator in a router, `gateway`, beside the host `left`: a link `access` of 0.1 ms RTT joins them.
    pub(crate) accelerate: Option<Accelerate>,
    /// An HTTP cache at the same place.
    pub(crate) cache: Option<Cache>,
}

/// The network: either `path`, or `nodes` and `links`, a generated `topology`, or both of these.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-rule" = "network"))]
pub(crate) struct Network {
    /// Shorthand for two hosts and one bottleneck link.
    pub(crate) path: Option<PathNetwork>,
    /// A network that a few numbers describe (`{kind: fat-tree, k: 4}`).
    pub(crate) topology: Option<Generated>,
    /// Settings of all hosts, unless a host says otherwise.
    pub(crate) hosts: Option<HostSettings>,
    /// Hosts, switches and routers. One with the name of a generated node adds to what that has.
    #[serde(default)]
    pub(crate) nodes: Vec<Node>,
    /// Point-to-point links between them. One with the name or the ends of a generated link adds to its settings.
    #[serde(default)]
    pub(crate) links: Vec<Link>,
    /// IPv4 prefix that the subnets come from (default `10.0.0.0/8`).
    #[schemars(with = "Option<kinds::Text>")]
    pub(crate) subnets: Option<String>,
    /// Media that links share, such as a Wi-Fi.
    #[serde(default)]
    pub(crate) media: Vec<Medium>,
    /// Where hosts are, by their names, for the engine `remote`.
    #[serde(default)]
    pub(crate) hosts_at: BTreeMap<String, Place>,
    /// Requirements on the path between real hosts.
    pub(crate) expect_path: Option<ExpectPath>,
}
