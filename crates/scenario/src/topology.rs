//! The network of a scenario in one form: nodes and links with every setting in its place.
//!
//! The `path` shorthand becomes two hosts and a link, common settings of a link go to both of its directions, and
//! settings of all hosts go to each host. Nothing is checked here, and amounts stay as they were given.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::json;
use tcplab_plan::{NodeKind, Routing};

use crate::document::Step;
use crate::generate::{self, Graph};
use crate::language::{
    Accelerate, At, Cache, Chance, Direction, HostSettings, Impairments, Jitter, Joint, Link, LinkChange,
    Loss, Network, Node, Overhead, PathNetwork, Policer, QueueTree, Reorder, Role, Scenario,
};
use crate::reader::Path;

/// Linux's default for a network interface (txqueuelen).
pub(crate) const LINK_LIMIT: u64 = 1000;
/// Never the bottleneck of ACKs, yet no memory leak when something is sent the other way.
const REVERSE_LIMIT: u64 = 10_000;
/// The delay of the link between a host and the gateway beside it, ns.
const ACCESS_DELAY: u64 = 50_000;
/// The MTU of Ethernet.
pub(crate) const MTU: u32 = 1500;

/// A path of the steps given: keys as texts, items as numbers.
macro_rules! at {
    ($($step:expr),* $(,)?) => { vec![$($crate::document::Step::from($step)),*] };
}
pub(crate) use at;

/// The path one step further.
pub(crate) fn below(path: &[Step], step: impl Into<Step>) -> Path {
    let mut longer = path.to_vec();
    longer.push(step.into());
    longer
}

/// A value and where it was given.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) place: Path,
}

macro_rules! settings {
    ($($(#[$about:meta])* $key:ident: $type:ty,)*) => {
        /// Settings given for a direction, or for a change of it.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Settings {
            $($(#[$about])* pub(crate) $key: Option<Setting<$type>>,)*
        }

        impl Settings {
            /// These, with what `other` says otherwise.
            fn overlaid(self, other: Settings) -> Settings {
                Settings { $($key: other.$key.or(self.$key),)* }
            }
        }
    };
}

settings! {
    /// In bit/s; none: unlimited.
    rate: Option<u64>,
    loss: Loss,
    corrupt: Chance,
    duplicate: Chance,
    reorder: Reorder,
    jitter: Jitter,
    up: bool,
    queue: QueueTree,
    delay: u64,
    trace: String,
    overhead: Overhead,
    policer: Policer,
}

fn setting<T: Clone>(value: Option<&T>, place: &[Step], key: &str) -> Option<Setting<T>> {
    value.map(|value| Setting { value: value.clone(), place: below(place, key) })
}

impl Settings {
    fn of(impairments: &Impairments, queue: Option<&QueueTree>, place: &[Step]) -> Settings {
        Settings {
            rate: setting(impairments.rate.as_ref().map(|rate| rate.limited()).as_ref(), place, "rate"),
            loss: setting(impairments.loss.as_ref(), place, "loss"),
            corrupt: setting(impairments.corrupt.as_ref(), place, "corrupt"),
            duplicate: setting(impairments.duplicate.as_ref(), place, "duplicate"),
            reorder: setting(impairments.reorder.as_ref(), place, "reorder"),
            jitter: setting(impairments.jitter.as_ref(), place, "jitter"),
            up: setting(impairments.up.as_ref(), place, "up"),
            queue: setting(queue, place, "queue"),
            delay: None,
            trace: None,
            overhead: None,
            policer: None,
        }
    }

    fn of_direction(given: &Direction, place: &[Step]) -> Settings {
        let mut settings = Settings::of(&given.impairments, given.queue.as_ref(), place);
        settings.delay = given.delay.map(|value| Setting { value, place: below(place, "delay") });
        settings.add_fixed(given.trace.as_ref(), given.overhead.as_ref(), given.policer.as_ref(), place);
        settings
    }

    /// Settings that do not change during the run.
    fn add_fixed(
        &mut self,
        trace: Option<&String>,
        overhead: Option<&Overhead>,
        policer: Option<&Policer>,
        place: &[Step],
    ) {
        self.trace = setting(trace, place, "trace");
        self.overhead = setting(overhead, place, "overhead");
        self.policer = setting(policer, place, "policer");
    }

    /// These, with what `other` says otherwise; its rate replaces a trace, and the other way round.
    fn replaced_by(mut self, other: Settings) -> Settings {
        if other.rate.is_some() && other.trace.is_none() {
            self.trace = None;
        }
        if other.trace.is_some() && other.rate.is_none() {
            self.rate = None;
        }
        self.overlaid(other)
    }

    fn of_change(given: &LinkChange, place: &[Step]) -> Settings {
        let mut settings = Settings::of(&given.impairments, given.queue.as_ref(), place);
        settings.delay = given.delay.map(|value| Setting { value, place: below(place, "delay") });
        settings
    }

    fn is_empty(&self) -> bool {
        self.rate.is_none()
            && self.loss.is_none()
            && self.corrupt.is_none()
            && self.duplicate.is_none()
            && self.reorder.is_none()
            && self.jitter.is_none()
            && self.up.is_none()
            && self.queue.is_none()
            && self.delay.is_none()
    }
}

/// One direction of a link: its settings, and its changes by time (ns).
#[derive(Clone, Debug)]
pub(crate) struct DirectionSpec {
    pub(crate) place: Path,
    pub(crate) settings: Settings,
    pub(crate) changes: BTreeMap<u64, Settings>,
}

impl DirectionSpec {
    /// The rate at a time, changes included, in bit/s; none: unlimited.
    pub(crate) fn rate_at(&self, time: u64) -> Option<u64> {
        let changed = self.changes.range(..=time).rev().find_map(|(_, change)| change.rate.as_ref());
        changed.or(self.settings.rate.as_ref()).and_then(|rate| rate.value)
    }

    /// The delay at a time, changes included, in ns.
    pub(crate) fn delay_at(&self, time: u64) -> u64 {
        let changed = self.changes.range(..=time).rev().find_map(|(_, change)| change.delay.as_ref());
        changed.or(self.settings.delay.as_ref()).map_or(0, |delay| delay.value)
    }

    fn add_changes(&mut self, at: &[At<LinkChange>], place: &[Step]) {
        let place = below(place, "at");
        for change in at {
            let given = Settings::of_change(&change.change, &below(&place, change.key.as_str()));
            let before = self.changes.remove(&change.time).unwrap_or_default();
            self.changes.insert(change.time, before.overlaid(given));
        }
    }
}

/// A link with its two directions.
#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    pub(crate) name: String,
    pub(crate) ends: [String; 2],
    pub(crate) mtu: u32,
    pub(crate) medium: Option<String>,
    pub(crate) forward: DirectionSpec,
    pub(crate) backward: DirectionSpec,
    pub(crate) place: Path,
}

impl LinkSpec {
    /// The direction that ends at a node.
    pub(crate) fn towards(&self, node: &str) -> &DirectionSpec {
        if node == self.ends[1] { &self.forward } else { &self.backward }
    }

    /// The end that is not `node`.
    pub(crate) fn other(&self, node: &str) -> &str {
        if node == self.ends[0] { &self.ends[1] } else { &self.ends[0] }
    }
}

/// A node, the settings of its TCP, and where each was given.
#[derive(Clone, Debug)]
pub(crate) struct NodeSpec {
    pub(crate) name: String,
    pub(crate) kind: NodeKind,
    pub(crate) settings: HostSettings,
    pub(crate) routing: Option<Routing>,
    /// The file in FRR's own language.
    pub(crate) frr: Option<String>,
    pub(crate) ecmp: Option<bool>,
    pub(crate) accelerate: Option<Accelerate>,
    pub(crate) cache: Option<Cache>,
    pub(crate) places: Vec<(&'static str, Path)>,
    pub(crate) place: Path,
}

impl NodeSpec {
    /// Where a setting was given, or the node.
    pub(crate) fn place_of(&self, key: &str) -> &Path {
        self.places.iter().find(|(given, _)| *given == key).map_or(&self.place, |(_, place)| place)
    }
}

/// The network, and the nodes at the ends of each flow.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) links: Vec<LinkSpec>,
    /// Per flow: from and to; none where it is not said.
    pub(crate) ends: Vec<[Option<String>; 2]>,
    /// Of several shortest paths, which one is taken differs by destination.
    pub(crate) spread: bool,
}

/// The scenario's network in its general form.
pub(crate) fn build(scenario: &Scenario) -> Topology {
    if let Some(path) = &scenario.network.path {
        return dumbbell(scenario, path);
    }
    let network = &scenario.network;
    let generated = network.topology.as_ref();
    let graph = generated.map(|given| generate::graph(&given.form)).unwrap_or_default();
    let ends = scenario.flows.iter().map(|flow| [flow.common.from.clone(), flow.common.to.clone()]).collect();
    Topology {
        nodes: nodes(network, &graph),
        links: links(network, &graph),
        ends,
        spread: generated.is_some(),
    }
}

/// Generated nodes, with what the list of nodes adds to them, then the others of the list.
fn nodes(network: &Network, graph: &Graph) -> Vec<NodeSpec> {
    let common = network.hosts.clone().unwrap_or_default();
    let joint = match network.topology.as_ref().map(|given| given.joints) {
        Some(Joint::Switch) => NodeKind::Switch,
        Some(Joint::Router) | None => NodeKind::Router,
    };
    let routing = network.topology.as_ref().and_then(|given| given.routing.as_ref());
    let spec = |name: &str, own: Option<&Node>, generated: NodeKind, routing: Option<&Routing>| {
        let role = own.and_then(|own| own.kind);
        let kind = role.map_or(generated, Role::kind);
        let place = own.map_or(at!["network", "topology"], |own| at!["network", "nodes", own.number]);
        let common = if kind == NodeKind::Host { common.clone() } else { HostSettings::default() };
        let settings = own.map(|own| own.settings.clone()).unwrap_or_default();
        NodeSpec {
            routing: own.and_then(|own| own.routing.clone()).or(routing.cloned()),
            frr: own.and_then(|own| own.frr.clone()),
            ecmp: own.and_then(|own| own.ecmp),
            accelerate: own
                .and_then(|own| own.accelerate.clone())
                .or_else(|| (role == Some(Role::Accelerator)).then(Accelerate::default)),
            cache: own
                .and_then(|own| own.cache.clone())
                .or_else(|| (role == Some(Role::Cache)).then(Cache::default)),
            ..node_spec(name, kind, common, &settings, place)
        }
    };
    let named: HashMap<&str, &Node> = network.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let own = |name: &String| named.get(name.as_str()).copied();
    let joints = graph.joints.iter().map(|name| spec(name, own(name), joint, routing));
    let hosts = graph.hosts.iter().map(|name| spec(name, own(name), NodeKind::Host, None));
    let generated: HashSet<&String> = graph.joints.iter().chain(&graph.hosts).collect();
    let others = network.nodes.iter().filter(|node| !generated.contains(&node.name));
    let others = others.map(|node| spec(&node.name, Some(node), NodeKind::Host, None));
    joints.chain(hosts).chain(others).collect()
}

/// Generated links, with what the list of links adds to them, then the others of the list.
fn links(network: &Network, graph: &Graph) -> Vec<LinkSpec> {
    let between = |ends: [&str; 2]| {
        let [one, other] = ends.map(str::to_owned);
        if one < other { [one, other] } else { [other, one] }
    };
    let mut named: HashMap<[String; 2], &Link> = HashMap::new();
    for link in &network.links {
        if let [one, other] = link.ends.as_slice()
            && link.name.is_none()
        {
            named.insert(between([one, other]), link);
        }
    }
    let of_topology = at!["network", "topology"];
    let mut made = Vec::new();
    let mut taken = HashSet::new();
    let given = network.topology.as_ref();
    for (key, given, links) in [
        ("core", given.and_then(|given| given.core.as_ref()), &graph.core),
        ("edge", given.and_then(|given| given.edge.as_ref()), &graph.edge),
    ] {
        let place = below(&of_topology, key);
        let base = given.map(|given| (given, place.as_slice()));
        for [one, other] in links {
            made.push(match named.get(&between([one, other])) {
                Some(own) => {
                    taken.insert(own.number);
                    link_spec(own, at!["network", "links", own.number], base)
                }
                None => link_spec(&Link::plain([one, other]), place.clone(), base),
            });
        }
    }
    let others = network.links.iter().filter(|link| !taken.contains(&link.number));
    made.extend(others.map(|link| link_spec(link, at!["network", "links", link.number], None)));
    made
}

fn dumbbell(scenario: &Scenario, given: &PathNetwork) -> Topology {
    let place = at!["network", "path"];
    let common = scenario.network.hosts.clone().unwrap_or_default();
    let suffix = |name: &str| if given.per_flow { format!("-{name}") } else { String::new() };
    let mut suffixes: Vec<String> = Vec::new();
    for flow in &scenario.flows {
        let own = suffix(&flow.common.name);
        if !suffixes.contains(&own) {
            suffixes.push(own);
        }
    }
    let mut nodes = Vec::new();
    let mut links = Vec::new();
    for suffix in &suffixes {
        for (key, settings) in [("left", &given.left), ("right", &given.right)] {
            let own = settings.clone().unwrap_or_default();
            let name = format!("{key}{suffix}");
            nodes.push(node_spec(&name, NodeKind::Host, common.clone(), &own, below(&place, key)));
        }
        let [forward, backward] = path_directions(given, &place);
        let mut near_end = format!("left{suffix}");
        if given.accelerate.is_some() || given.cache.is_some() {
            let gateway = format!("gateway{suffix}");
            links.push(access_link(format!("access{suffix}"), [near_end, gateway.clone()], given, &place));
            let bare = HostSettings::default();
            nodes.push(NodeSpec {
                accelerate: given.accelerate.clone(),
                cache: given.cache.clone(),
                ..node_spec(&gateway, NodeKind::Router, bare.clone(), &bare, place.clone())
            });
            near_end = gateway;
        }
        links.push(LinkSpec {
            name: format!("path{suffix}"),
            ends: [near_end, format!("right{suffix}")],
            mtu: given.mtu.unwrap_or(MTU),
            medium: None,
            forward,
            backward,
            place: place.clone(),
        });
    }
    let ends = scenario.flows.iter().map(|flow| {
        let (from, to) = (flow.common.from.as_deref(), flow.common.to.as_deref());
        let sender = from.unwrap_or(if to == Some("left") { "right" } else { "left" });
        let receiver = to.unwrap_or(if from == Some("right") { "left" } else { "right" });
        [sender, receiver].map(|end| {
            let own = if matches!(end, "left" | "right") { suffix(&flow.common.name) } else { String::new() };
            Some(format!("{end}{own}"))
        })
    });
    Topology { ends: ends.collect(), nodes, links, spread: false }
}

/// The link between a host and the gateway beside it.
fn access_link(name: String, ends: [String; 2], given: &PathNetwork, place: &[Step]) -> LinkSpec {
    let place = below(place, "accelerate");
    let delay = Some(Setting { value: ACCESS_DELAY, place: place.clone() });
    let direction = || DirectionSpec {
        place: place.clone(),
        settings: Settings { delay: delay.clone(), ..Settings::default() },
        changes: BTreeMap::new(),
    };
    LinkSpec {
        name,
        ends,
        mtu: given.mtu.unwrap_or(MTU),
        medium: None,
        forward: direction(),
        backward: direction(),
        place,
    }
}

/// The path's settings go forward; rate, overhead, delay and being up also hold for the way back.
fn path_directions(given: &PathNetwork, place: &[Step]) -> [DirectionSpec; 2] {
    let back_place = below(place, "reverse");
    let mut forward = Settings::of(&given.impairments, given.queue.as_ref(), place);
    forward.add_fixed(given.trace.as_ref(), given.overhead.as_ref(), given.policer.as_ref(), place);
    let default = |limit| Setting { value: QueueTree::limited(limit), place: place.to_vec() };
    let mut backward = Settings {
        rate: forward.rate.clone(),
        up: forward.up.clone(),
        overhead: forward.overhead.clone(),
        queue: Some(default(json!({"packets": REVERSE_LIMIT}))),
        ..Settings::default()
    };
    if forward.queue.is_none() {
        forward.queue = Some(default(json!({"bdp": "1"})));
    }
    let halves = |rtt: u64, place: Path| {
        [rtt / 2, rtt - rtt / 2].map(|value| Some(Setting { value, place: place.clone() }))
    };
    [forward.delay, backward.delay] = halves(given.rtt, below(place, "rtt"));
    let own = given.reverse.as_ref().map(|own| Settings::of_direction(own, &back_place)).unwrap_or_default();
    let mut forward = DirectionSpec { place: place.to_vec(), settings: forward, changes: BTreeMap::new() };
    let mut backward = DirectionSpec {
        place: back_place.clone(),
        settings: backward.overlaid(own.clone()),
        changes: BTreeMap::new(),
    };
    for change in &given.at {
        let place = below(&below(place, "at"), change.key.as_str());
        let mut forward_change =
            Settings::of(&change.change.impairments, change.change.queue.as_ref(), &place);
        let mut reverse_change = Settings {
            rate: forward_change.rate.clone().filter(|_| own.rate.is_none()),
            up: forward_change.up.clone().filter(|_| own.up.is_none()),
            ..Settings::default()
        };
        if let Some(rtt) = change.change.rtt {
            let [forth, return_delay] = halves(rtt, below(&place, "rtt"));
            forward_change.delay = forth;
            reverse_change.delay = return_delay.filter(|_| own.delay.is_none());
        }
        forward.changes.insert(change.time, forward_change);
        if !reverse_change.is_empty() {
            backward.changes.insert(change.time, reverse_change);
        }
    }
    if let Some(reverse) = &given.reverse {
        backward.add_changes(&reverse.at, &back_place);
    }
    [forward, backward]
}

/// A link of its own settings, over those of `base` and where these were given.
fn link_spec(link: &Link, place: Path, base: Option<(&Direction, &[Step])>) -> LinkSpec {
    let base_settings = base.map(|(given, place)| Settings::of_direction(given, place)).unwrap_or_default();
    let direction = |key: &str, own: &Option<Direction>| {
        let own_place = below(&place, key);
        let common = base_settings.clone().replaced_by(Settings::of_direction(&link.common, &place));
        let own_settings =
            own.as_ref().map(|own| Settings::of_direction(own, &own_place)).unwrap_or_default();
        let mut spec = DirectionSpec {
            place: place.clone(),
            settings: common.replaced_by(own_settings),
            changes: BTreeMap::new(),
        };
        if let Some((given, place)) = base {
            spec.add_changes(&given.at, place);
        }
        spec.add_changes(&link.common.at, &place);
        if let Some(own) = own {
            spec.add_changes(&own.at, &own_place);
        }
        spec
    };
    let ends = [0, 1].map(|side| link.ends.get(side).cloned().unwrap_or_default());
    LinkSpec {
        name: link.name.clone().unwrap_or_else(|| ends.join("-")),
        mtu: link.mtu.unwrap_or(MTU),
        medium: link.medium.clone(),
        forward: direction("forward", &link.forward),
        backward: direction("reverse", &link.reverse),
        ends,
        place,
    }
}

/// A node with the settings of all hosts and its own.
fn node_spec(name: &str, kind: NodeKind, common: HostSettings, own: &HostSettings, place: Path) -> NodeSpec {
    let all = common.keys().into_iter().map(|key| (key, at!["network", "hosts", key]));
    let mine: Vec<_> = own.keys().into_iter().map(|key| (key, below(&place, key))).collect();
    let places = mine.iter().cloned().chain(all.filter(|(key, _)| !own.keys().contains(key))).collect();
    let (routing, frr, ecmp, accelerate, cache) = (None, None, None, None, None);
    let (name, settings) = (name.to_owned(), own.or(common));
    NodeSpec { name, kind, settings, routing, frr, ecmp, accelerate, cache, places, place }
}
