//! From a scenario to a plan: base units, every default filled in.

use serde_json::{Map, Value as Json, json};
use tcplab_plan::{
    Accelerator, Cache, Capture, CaptureWhat, Cc, Chance, Change, Direction, ExpectPath, Flow, FrrFile,
    IpVersion, Jitter, Leg, Limit, Link, Loss, LossModel, Nic, Node, Offloads, Omit, Overhead, Plan, Policer,
    Queue, Reorder, Routing, Sample, TcpSettings, Trace,
};
use tcplab_units::{Probability, Rate, Span, Time};

use crate::addresses::{self, Pool};
use crate::check::{TCP_HEADER, ip_header, source};
use crate::document::Step;
use crate::language::{self, Accelerate, Amount, QueueTree, RandomModel, SocketSettings};
use crate::layout::{Layout, bytes_in, multiple};
use crate::rules::JITTER_MEMORY;
use crate::schedule::schedule;
use crate::schema;
use crate::topology::{DirectionSpec, LINK_LIMIT, LinkSpec, NodeSpec, Settings};

const ETHERNET_HEADER: u64 = 14;
/// A default queue holds at least an initial window (RFC 6928), however short the path.
const MIN_DEFAULT_PACKETS: u64 = 10;
/// Internet delays vary chiefly on time scales of 0.1 s to 1 s (V. Paxson, "End-to-end Internet packet dynamics",
/// IEEE/ACM Transactions on Networking 7(3), 1999): the shorter, of which a short run sees more.
const CORRELATION_TIME: u64 = 100_000_000;

/// The plan of a scenario that has been checked.
pub(crate) fn expand(layout: &Layout<'_>) -> Plan {
    let scenario = layout.scenario;
    let times = schedule(scenario);
    let bdps = layout.node_bdps();
    let sample = &scenario.sample;
    let span = |interval: Option<u64>| interval.map(Span::from_ns);
    Plan {
        name: scenario.name.clone(),
        description: scenario.description.clone(),
        seed: scenario.seed,
        repeat: scenario.repeat,
        vary: scenario.vary,
        omit: scenario.omit.map_or(Omit::Auto, |time| Omit::For(Span::from_ns(time))),
        duration: Span::from_ns(times.limit),
        nodes: layout
            .topology
            .nodes
            .iter()
            .map(|node| self::node(layout, node, bdps.get(&node.name)))
            .collect(),
        links: links(layout),
        media: scenario.network.media.clone(),
        flows: times.stops.iter().enumerate().map(|(index, stop)| flow(layout, index, *stop)).collect(),
        sample: Sample {
            sockets: span(sample.sockets),
            queues: span(sample.queues),
            flows: span(sample.flows),
            hosts: span(sample.hosts),
            packets: sample.packets,
        },
        capture: capture(layout),
        emulator: scenario.emulator,
        phases: Default::default(),
        verify: scenario.verify,
        convergence: scenario.wait.as_ref().map(|wait| Span::from_ns(wait.timeout)),
        hosts_at: scenario.network.hosts_at.iter().map(|(name, place)| (name.clone(), place.url())).collect(),
        expect_path: scenario
            .network
            .expect_path
            .as_ref()
            .map(|given| ExpectPath { rtt: given.rtt, mtu: given.mtu }),
    }
}

fn node(layout: &Layout<'_>, node: &NodeSpec, bdp: Option<&u128>) -> Node {
    let settings = &node.settings;
    let mss = layout.node_mtu(&node.name) - ip_header(4) - TCP_HEADER;
    let mut tcp = TcpSettings { mss, ..TcpSettings::default() };
    settings.fill(&mut tcp, bdp.copied());
    let name_of = |link: usize| layout.topology.links[link].name.clone();
    let routes = layout.routes.table(&layout.topology, &node.name);
    let multipath = layout.routes.shared(&layout.topology, &node.name);
    Node {
        name: node.name.clone(),
        kind: node.kind,
        tcp,
        routes: routes.map(|(to, link)| (to.to_owned(), name_of(link))).collect(),
        multipath: multipath.map(|(to, links)| (to.to_owned(), links.map(name_of).collect())).collect(),
        sysctls: settings.sysctls.clone().unwrap_or_default(),
        cpus: settings.cpus.clone().unwrap_or_default(),
        offloads: Offloads {
            tso: settings.tso.unwrap_or(true),
            gso: settings.gso.unwrap_or(true),
            gro: settings.gro.unwrap_or(false),
        },
        timing: settings.timing.unwrap_or_default(),
        nic: settings.nic.as_ref().and_then(nic),
        routing: routing(layout, node),
        accelerate: node.accelerate.as_ref().map(|given| accelerator(layout, given)),
        cache: node.cache.as_ref().map(cache),
    }
}

fn nic(given: &language::Nic) -> Option<Nic> {
    let queue = u32::try_from(given.queue.unwrap_or(LINK_LIMIT)).unwrap_or(u32::MAX);
    Some(Nic { rate: Rate::from_bits_per_sec(given.rate)?, queue })
}

fn accelerator(layout: &Layout<'_>, given: &Accelerate) -> Accelerator {
    let leg = |given: &language::Leg| {
        let leg = Leg {
            send_buffer: given.send_buffer,
            receive_buffer: given.receive_buffer,
            pacing: given.pacing.unwrap_or(false),
            ..Leg::default()
        };
        match &given.cc {
            Some(cc) => Leg { cc: control(layout, cc), ..leg },
            None => leg,
        }
    };
    let default = Accelerator::default();
    Accelerator {
        towards_client: leg(&given.towards_client),
        towards_server: leg(&given.towards_server),
        ports: given.ports.clone().unwrap_or_default(),
        hosts: given.hosts.clone().unwrap_or_default(),
        connections: given.connections.unwrap_or(default.connections),
        memory: given.memory.unwrap_or(default.memory),
        when_full: given.when_full.unwrap_or(default.when_full),
        user_timeout: given.user_timeout.map_or(default.user_timeout, Span::from_ns),
        transparent: given.transparent.unwrap_or(default.transparent),
        forward: default.forward,
        kill_at: given.kill_at.map(Time::from_ns),
    }
}

fn cache(given: &language::Cache) -> Cache {
    let default = Cache::default();
    Cache {
        size: given.size.unwrap_or(default.size),
        user_timeout: given.user_timeout.map_or(default.user_timeout, Span::from_ns),
    }
}

fn routing(layout: &Layout<'_>, node: &NodeSpec) -> Option<Routing> {
    let file = node.frr.as_ref().map(|file| {
        let text = layout.text(file).unwrap_or_default();
        FrrFile { file: file.clone(), text }
    });
    match (&node.routing, file) {
        (None, None) => None,
        (given, frr) => Some(Routing { frr, ..given.clone().unwrap_or_default() }),
    }
}

/// A whole number of bytes that fits what Linux counts segments in.
pub(crate) fn segment(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Buffers, of a host or of a flow.
pub(crate) fn set_buffers(
    tcp: &mut TcpSettings,
    window: Option<&Amount>,
    send: Option<&Amount>,
    receive: Option<&Amount>,
    bdp: Option<u128>,
) {
    if let Some(send) = send.or(window) {
        tcp.send_buffer = buffer(send, bdp);
    }
    if let Some(receive) = receive.or(window) {
        tcp.receive_buffer = buffer(receive, bdp);
    }
}

/// A buffer in bytes; in BDP only where the BDP is known.
fn buffer(amount: &Amount, bdp: Option<u128>) -> Option<u64> {
    match amount {
        Amount::Bdp(of) => bdp.map(|bdp| multiple(&of.0, bdp).max(1)),
        Amount::Bytes(bytes) | Amount::Packets(bytes) | Amount::Time(bytes) => Some(*bytes),
    }
}

fn links(layout: &Layout<'_>) -> Vec<Link> {
    let addresses = Pool::read(layout.scenario.network.subnets.as_deref())
        .ok()
        .and_then(|pool| addresses::assign(&layout.topology, pool))
        .unwrap_or_default();
    let links = layout.topology.links.iter().zip(addresses).enumerate();
    links
        .map(|(number, (link, own))| Link {
            name: link.name.clone(),
            ends: link.ends.clone(),
            addresses: own.v4,
            addresses6: own.v6,
            mtu: link.mtu,
            medium: link.medium.clone(),
            forward: direction(layout, number, link, &link.forward),
            backward: direction(layout, number, link, &link.backward),
        })
        .collect()
}

fn direction(layout: &Layout<'_>, number: usize, link: &LinkSpec, spec: &DirectionSpec) -> Direction {
    let given = &spec.settings;
    let opportunities = layout.opportunities(spec);
    let rate = given.rate.as_ref().and_then(|rate| rate.value).filter(|_| opportunities.is_none());
    Direction {
        rate: rate.and_then(Rate::from_bits_per_sec),
        overhead: overhead(given.overhead.as_ref().map(|it| &it.value), link.medium.is_some()),
        policer: given.policer.as_ref().and_then(|it| policer(&it.value)),
        queue: queue(layout, number, link, spec),
        delay: Span::from_ns(spec.settings.delay.as_ref().map_or(0, |delay| delay.value)),
        jitter: given
            .jitter
            .as_ref()
            .map(|jitter| self::jitter(&jitter.value))
            .filter(|j| j.amount != Span::ZERO),
        reorder: given
            .reorder
            .as_ref()
            .map(|reorder| self::reorder(&reorder.value))
            .filter(|reorder| !reorder.chance.rate.is_zero()),
        loss: given
            .loss
            .as_ref()
            .filter(|loss| loss.value.rate != Some(0))
            .map(|loss| self::loss(&loss.value)),
        corrupt: given.corrupt.as_ref().map(|it| chance(&it.value)).filter(|it| !it.rate.is_zero()),
        duplicate: given.duplicate.as_ref().map(|it| chance(&it.value)).filter(|it| !it.rate.is_zero()),
        up: given.up.as_ref().is_none_or(|up| up.value),
        trace: opportunities.map(|times| Trace { opportunities_ms: times.clone() }),
        changes: spec
            .changes
            .iter()
            .map(|(time, change)| self::change(layout, number, spec, *time, change))
            .collect(),
    }
}

fn queue(layout: &Layout<'_>, number: usize, link: &LinkSpec, spec: &DirectionSpec) -> Queue {
    let Some(given) = &spec.settings.queue else {
        let limit = layout.rate(spec, 0).map(|_| Limit::Packets(LINK_LIMIT));
        return Queue::droptail(limit);
    };
    let by_default = given.place.last() != Some(&Step::from("queue"));
    let given = Json::Object(given.value.0.clone());
    let place = Place { layout, link: number, spec, shaper: None, time: 0 };
    let mut tree = place.resolved(&json!({ "queue": given }))["queue"].take();
    if by_default && let Some(bytes) = tree.pointer("/limit/bytes").and_then(Json::as_u64) {
        let minimum = MIN_DEFAULT_PACKETS * (u64::from(link.mtu) + ETHERNET_HEADER);
        tree["limit"] = json!({"bytes": bytes.max(minimum)});
    }
    // The reader has let through what the schema of the type says, no more.
    serde_json::from_value(tree).unwrap_or(Queue::droptail(None))
}

/// Where and when a queue's amounts hold.
#[derive(Clone, Copy)]
struct Place<'p, 's> {
    layout: &'p Layout<'s>,
    link: usize,
    spec: &'p DirectionSpec,
    /// The rate of the shaper that it is in, in bit/s.
    shaper: Option<u64>,
    time: u64,
}

impl Place<'_, '_> {
    /// A queue and those within it, with its kind, and every amount as an engine takes it.
    fn resolved(self, tree: &Json) -> Json {
        if let Some(amount) = language::amount(tree) {
            return json!(self.amount(&amount));
        }
        match tree {
            Json::Array(items) => items.iter().map(|item| self.resolved(item)).collect(),
            Json::Object(keys) => {
                let inside = self.inside(&QueueTree(keys.clone()));
                // `#` is the place of an item in its list.
                let keys = keys.iter().filter(|(key, _)| *key != "#");
                let filled = |key: &str, value| if key == "queue" { with_defaults(value) } else { value };
                keys.map(|(key, value)| (key.clone(), filled(key, inside.resolved(value)))).collect()
            }
            other => other.clone(),
        }
    }

    /// The same within a queue.
    fn inside(self, queue: &QueueTree) -> Self {
        Place { shaper: queue.shaper().or(self.shaper), ..self }
    }

    /// A queue's limit or marking threshold.
    fn amount(self, given: &Amount) -> Option<Limit> {
        let Place { layout, link, spec, shaper, time } = self;
        match given {
            Amount::Packets(packets) => Some(Limit::Packets(*packets)),
            Amount::Bytes(bytes) => Some(Limit::Bytes(*bytes)),
            Amount::Time(span) => match layout.rate(spec, time) {
                // A trace has no rate at a moment: its mean counts.
                Some(rate) if spec.settings.trace.is_some() && shaper.is_none() => {
                    Some(Limit::Bytes(u64::try_from(bytes_in(rate, *span)).unwrap_or(u64::MAX).max(1)))
                }
                _ => Some(Limit::Time(Span::from_ns(*span))),
            },
            Amount::Bdp(of) => {
                let bdp = layout.bdp(link, spec, shaper, time)?;
                Some(Limit::Bytes(multiple(&of.0, bdp).max(1)))
            }
        }
    }
}

/// A queue with the kind that it has where none is given, and with what a preset of its kind says.
fn with_defaults(mut queue: Json) -> Json {
    if let Json::Object(keys) = &mut queue {
        let kind = keys.entry("kind").or_insert_with(|| json!("droptail"));
        let kind = kind.as_str().unwrap_or_default().to_owned();
        let switches: Vec<String> =
            keys.iter().filter(|(_, value)| **value == true).map(|(key, _)| key.clone()).collect();
        for preset in switches.iter().filter_map(|switch| schema::queue_preset(&kind, switch)) {
            preset.iter().for_each(|(key, value)| _ = keys.entry(key).or_insert_with(|| value.clone()));
        }
    }
    queue
}

/// The queue that a direction begins with.
fn own_queue(spec: &DirectionSpec) -> QueueTree {
    spec.settings.queue.as_ref().map_or_else(|| QueueTree(Map::new()), |own| own.value.clone())
}

/// A change carries the keys that change; a rate of zero loss says that losses end.
fn change(layout: &Layout<'_>, link: usize, spec: &DirectionSpec, time: u64, given: &Settings) -> Change {
    let of_queue = |role: &str| {
        let (mut own, mut new) = (own_queue(spec), given.queue.as_ref()?.value.clone());
        let mut place = Place { layout, link, spec, shaper: None, time };
        loop {
            place = place.inside(&own);
            let key = schema::queue_key(own.kind().unwrap_or("droptail"), role);
            if let Some(amount) = key.and_then(|key| new.0.get(key)) {
                return place.amount(&language::amount(amount)?);
            }
            // A shaper keeps its settings; the queue within it changes.
            (own, new) = (own.within()?, new.within()?);
        }
    };
    Change {
        at: Time::from_ns(time),
        rate: given.rate.as_ref().and_then(|rate| rate.value).and_then(Rate::from_bits_per_sec),
        loss: given.loss.as_ref().map(|loss| self::loss(&loss.value)),
        corrupt: given.corrupt.as_ref().map(|it| chance(&it.value)),
        duplicate: given.duplicate.as_ref().map(|it| chance(&it.value)),
        reorder: given.reorder.as_ref().map(|it| reorder(&it.value)),
        jitter: given.jitter.as_ref().map(|it| jitter(&it.value)),
        up: given.up.as_ref().map(|up| up.value),
        limit: of_queue("limit"),
        mark_above: of_queue("mark_above"),
        delay: given.delay.as_ref().map(|delay| Span::from_ns(delay.value)),
    }
}

/// A link on a medium has the framing of a Wi-Fi, unless another is given.
fn overhead(given: Option<&language::Overhead>, on_medium: bool) -> Overhead {
    use language::Framing::{Docsis, Ethernet, Pppoe, PppoeAtm, Vlan, Wifi};
    let none = language::Overhead::default();
    let framing = given.map_or(on_medium.then_some(Wifi), |given| given.framing);
    let given = given.unwrap_or(&none);
    let (bytes, minimum, atm) = match framing {
        None => (0, 0, false),
        Some(Ethernet) => (24, 84, false),
        Some(Vlan) => (28, 84, false),
        Some(Pppoe) => (32, 84, false),
        Some(PppoeAtm) => (26, 0, true),
        Some(Docsis) => (4, 64, false),
        Some(Wifi) => (28, 0, false),
    };
    let size = |given: Option<u64>, default| given.map_or(default, segment);
    Overhead {
        bytes: size(given.bytes, bytes),
        minimum: size(given.minimum, minimum),
        atm: given.atm.unwrap_or(atm),
    }
}

fn policer(given: &language::Policer) -> Option<Policer> {
    Rate::from_bits_per_sec(given.rate).map(|rate| Policer { rate, burst: given.burst })
}

fn probability(rate: u32, correlation: u32) -> Chance {
    Chance { rate: Probability::from_ppb(rate), correlation: Probability::from_ppb(correlation) }
}

fn chance(given: &language::Chance) -> Chance {
    probability(given.rate, given.correlation)
}

fn jitter(given: &language::Jitter) -> Jitter {
    let default = CORRELATION_TIME.max(given.amount.saturating_mul(JITTER_MEMORY));
    Jitter {
        distribution: given.distribution,
        amount: Span::from_ns(given.amount),
        correlation_time: Span::from_ns(given.correlation_time.unwrap_or(default)),
    }
}

fn reorder(given: &language::Reorder) -> Reorder {
    Reorder { chance: probability(given.rate, given.correlation), by: given.by.map(Span::from_ns) }
}

fn loss(given: &language::Loss) -> Loss {
    let ppb = Probability::from_ppb;
    let model = if let Some(burst) = &given.gilbert_elliott {
        let [p, r, bad, good] = [burst.p, burst.r, burst.bad, burst.good].map(ppb);
        LossModel::GilbertElliott { p, r, bad, good }
    } else if let Some(packets) = &given.packets {
        let mut packets = packets.clone();
        packets.sort_unstable();
        LossModel::List { packets }
    } else if let Some(every) = given.every {
        LossModel::Every { packets: every, first: given.first.unwrap_or(every) }
    } else {
        let chance = probability(given.rate.unwrap_or(0), given.correlation.unwrap_or(0));
        match given.model {
            Some(RandomModel::Netem) => LossModel::Netem { chance },
            Some(RandomModel::Random) | None => LossModel::Random { chance },
        }
    };
    Loss { model, before_queue: given.before_queue }
}

fn flow(layout: &Layout<'_>, index: usize, stop: Option<u64>) -> Flow {
    let flow = &layout.scenario.flows[index];
    let [from, to] = layout.topology.ends[index].clone().map(Option::unwrap_or_default);
    let traffic = flow.traffic();
    Flow {
        name: flow.common.name.clone(),
        start: Time::from_ns(flow.common.start),
        stop: stop.map(Time::from_ns),
        base_rtt: Span::from_ns(layout.base_rtt(index, 0)),
        streams: traffic.streams(),
        ip: if flow.common.ip == 6 { IpVersion::V6 } else { IpVersion::V4 },
        dscp: flow.common.dscp,
        port: flow.common.port,
        traffic: traffic.plan(&FlowEndpoints { layout, index, from: &from, to: &to }),
        from,
        to,
    }
}

/// The two ends of a flow, of which its traffic asks what it needs for its plan.
pub(crate) struct FlowEndpoints<'a> {
    layout: &'a Layout<'a>,
    index: usize,
    from: &'a str,
    to: &'a str,
}

impl FlowEndpoints<'_> {
    /// A congestion control.
    pub(crate) fn control(&self, given: &language::Control) -> Cc {
        control(self.layout, given)
    }

    /// Settings of the end that opens connections.
    pub(crate) fn sender(&self, sockets: &SocketSettings) -> Box<TcpSettings> {
        self.endpoint(sockets, self.from)
    }

    /// Settings of the other end.
    pub(crate) fn receiver(&self, sockets: &SocketSettings) -> Box<TcpSettings> {
        self.endpoint(sockets, self.to)
    }

    fn endpoint(&self, sockets: &SocketSettings, node: &str) -> Box<TcpSettings> {
        Box::new(endpoint(self.layout, self.index, sockets, node, self.room(TCP_HEADER)))
    }

    /// Bytes that fit the path's MTU behind this header.
    pub(crate) fn room(&self, header: u32) -> u32 {
        self.layout.path_mtu(self.index)
            - ip_header(self.layout.scenario.flows[self.index].common.ip)
            - header
    }
}

fn control(layout: &Layout<'_>, given: &language::Control) -> Cc {
    let params = given.params.clone();
    let name = given.name.as_str();
    if name.ends_with(".c") {
        // With its text: the plan says all there is to run, wherever and whenever it is run.
        let file = layout.around.resolved(name);
        let base = file.rsplit('/').next().unwrap_or(&file).to_owned();
        return Cc { name: base, params, source: source(layout, name).ok(), file: Some(file) };
    }
    // BBR without a version is the first one, as in Linux.
    let own = match name {
        "bbr" => "bbr1",
        "ledbat++" => "ledbatpp",
        "westwood+" => "westwood",
        other => other,
    };
    Cc { name: own.to_owned(), params, file: None, source: None }
}

/// The settings of one end: its node's, with what the flow sets otherwise.
///
/// The segment size is at most what path MTU discovery would find.
fn endpoint(
    layout: &Layout<'_>,
    index: usize,
    flow: &SocketSettings,
    node: &str,
    maximum: u32,
) -> TcpSettings {
    let bdp = layout.flow_bdp(index);
    let mut tcp = TcpSettings { mss: maximum, ..TcpSettings::default() };
    if let Some(node) = layout.node(node) {
        node.settings.fill(&mut tcp, bdp);
    }
    set_buffers(&mut tcp, flow.window.as_ref(), flow.send_buffer.as_ref(), flow.receive_buffer.as_ref(), bdp);
    if let Some(mss) = flow.mss {
        tcp.mss = segment(mss);
    }
    if let Some(nagle) = flow.nagle {
        tcp.nagle = nagle;
    }
    // A host's own may have been given for the shorter header of IPv4.
    tcp.mss = tcp.mss.min(maximum);
    tcp
}

fn capture(layout: &Layout<'_>) -> Option<Capture> {
    let capture = layout.scenario.capture.as_ref()?;
    let what = match capture.what {
        language::CaptureWhat::None => return None,
        language::CaptureWhat::Headers => CaptureWhat::Headers,
        language::CaptureWhat::Full => CaptureWhat::Full,
    };
    let hosts = || {
        let hosts = layout.topology.nodes.iter().filter(|node| node.kind == tcplab_plan::NodeKind::Host);
        hosts.map(|node| node.name.clone()).collect()
    };
    Some(Capture { what, at: capture.at, nodes: capture.nodes.clone().unwrap_or_else(hosts) })
}
