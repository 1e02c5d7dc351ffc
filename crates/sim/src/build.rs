//! From a plan to streams: names resolved, impossible values refused.

use std::sync::Arc;

use tcplab_control::{Control, Registry};
use tcplab_link::component_seed;
use tcplab_tcp::{Config, Ticks};
use tcplab_units::{Span, Time};

use crate::application::Application;
use crate::bulk::Bulk;
use crate::cache::Stored;
use crate::capture;
use crate::echo::{Echo, Job};
use crate::error::PlanError;
use crate::http::{Browser, Http};
use crate::network::{DirectionId, Names, Network, NodeId};
use crate::packet::{ICMP_HEADER, TCP_HEADER, UDP_HEADER};
use crate::ping_stream::PingStream;
use crate::plan::{self, Accelerator, Cc, Flow, Pattern, Pauses, Plan, Timing, Traffic};
use crate::recorder::NOWHERE;
use crate::relay::{self, Relay};
use crate::request::Request;
use crate::splitter::Splitter;
use crate::stream::{FlowEndpoints, Interval, Relays, Stream, StreamKind};
use crate::tcp_stream::{Settings, TcpStream};
use crate::udp::Pacer;
use crate::udp_stream::UdpStream;

/// The sources of all streams, by the flow's place in the plan.
pub(crate) fn sources(
    plan: &Plan,
    controls: &Registry,
    network: &Network,
    names: &Names<'_>,
) -> Result<Vec<Source>, PlanError> {
    let count: u64 = plan.flows.iter().map(|flow| u64::from(flow.streams)).sum();
    const MAX_STREAMS: u64 = 1_000_000;
    if count > MAX_STREAMS {
        return Err(PlanError::TooMany { what: "streams", count, maximum: MAX_STREAMS });
    }
    crate::network::numbered("flows", plan.flows.iter().map(|flow| flow.name.as_str()))?;
    let mut sources = Vec::with_capacity(plan.flows.len());
    let mut first = 0;
    for (number, flow) in plan.flows.iter().enumerate() {
        let place = |end: &str| format!("flows.{}.{end}", flow.name);
        let from = names.node(&flow.from, || place("from"))?;
        let to = names.node(&flow.to, || place("to"))?;
        let path = |from, to, names: [&String; 2]| {
            network.path(from, to, flow.ip).map_err(|stuck| PlanError::NoRoute {
                flow: flow.name.clone(),
                from: names[0].clone(),
                to: names[1].clone(),
                stuck: plan.nodes[usize::from(stuck.node)].name.clone(),
            })
        };
        let mut round_trip = path(from, to, [&flow.from, &flow.to])?;
        round_trip.extend(path(to, from, [&flow.to, &flow.from])?);
        let mtu = if plan.nodes.iter().any(|node| node.routing.is_some()) {
            // Its path changes; whatever it becomes, packets are not too long for it.
            plan.links.iter().map(|link| link.mtu).min().unwrap_or(u32::MAX)
        } else {
            min_mtu(plan, &round_trip)
        };
        let way = path(from, to, [&flow.from, &flow.to])?;
        let places = relays(plan, network, flow, &way)?;
        let builder = Builder { plan, controls, flow, mtu };
        builder.check(&round_trip)?;
        sources.push(Source {
            endpoints: FlowEndpoints {
                stream: first,
                place: NOWHERE,
                flow: number as u32,
                from,
                to,
                ip: flow.ip,
                dscp: flow.dscp,
                ecn: flow.traffic.ecn_field(),
                relays: Relays::default(),
            },
            settings: builder.settings()?.map(Arc::new),
            relays: places
                .iter()
                .map(|place| Ok(Arc::new(builder.relay(place)?)))
                .collect::<Result<_, _>>()?,
            places,
        });
        first += flow.streams;
    }
    Ok(sources)
}

/// The clients of http flows, by the flow's place in the plan.
pub(crate) fn browsers(plan: &Plan) -> Vec<Option<Browser>> {
    let browser = |flow: &Flow| match &flow.traffic {
        Traffic::Http(plan::Http { web, .. }) => {
            Some(Browser::new(web, plan.seed, &flow.name, flow.stop.unwrap_or(Time::NEVER)))
        }
        _ => None,
    };
    plan.flows.iter().map(browser).collect()
}

/// The stores of the nodes' caches: nothing yet.
pub(crate) fn caches(plan: &Plan) -> Vec<Stored> {
    plan.nodes.iter().map(|node| Stored::new(node.cache.as_ref().map_or(0, |cache| cache.size))).collect()
}

/// The accelerators of nodes.
pub(crate) fn splitters(plan: &Plan) -> Vec<Option<Splitter>> {
    plan.nodes.iter().map(|node| node.accelerate.clone().map(Splitter::new)).collect()
}

fn min_mtu(plan: &Plan, path: &[DirectionId]) -> u32 {
    path.iter().map(|&direction| plan.links[direction as usize / 2].mtu).min().unwrap_or(u32::MAX)
}

/// An accelerator or a cache on the way of a flow's connections.
struct Place {
    node: NodeId,
    accelerator: Accelerator,
    /// Of a cache: how long what it stores is fresh.
    max_age: Option<Span>,
}

/// The accelerators and caches that a flow's connections pass. Where a node has both, the cache takes http flows, with the
/// accelerator's settings of both legs, and the accelerator all others.
fn relays(plan: &Plan, network: &Network, flow: &Flow, way: &[DirectionId]) -> Result<Vec<Place>, PlanError> {
    if flow.traffic.connections().is_none() {
        return Ok(Vec::new());
    }
    let max_age = if let Traffic::Http(http) = &flow.traffic { Some(http.web.max_age) } else { None };
    let between = way.split_last().map_or(&[][..], |(_, between)| between);
    let places = between.iter().filter_map(|&direction| {
        let node = network.far_end(direction);
        let settings = &plan.nodes[usize::from(node)];
        let max_age = max_age.filter(|_| settings.cache.is_some());
        let accelerator = match &settings.accelerate {
            Some(accelerator) => accelerator.clone(),
            None => max_age.map(|_| Accelerator::default())?,
        };
        Some(Place { node, accelerator, max_age })
    });
    let places: Vec<Place> = places.collect();
    if places.len() > Relays::MAX {
        let (flow, count) = (flow.name.clone(), places.len());
        return Err(PlanError::Relays { flow, count, maximum: Relays::MAX });
    }
    Ok(places)
}

/// All that the streams of a flow are made of.
pub(crate) struct Source {
    /// Those of the flow's first stream, as if nothing were on the way.
    endpoints: FlowEndpoints,
    /// State that its connections share; none: it has no connections.
    settings: Option<Arc<Settings>>,
    /// The accelerators and caches on its way.
    places: Vec<Place>,
    /// Likewise what its ends at each of them have in common.
    relays: Vec<Arc<relay::Settings>>,
}

impl Source {
    /// The number of its first stream, counted over all flows.
    pub(crate) fn first(&self) -> u32 {
        self.endpoints.stream
    }

    /// The flow's place in the plan.
    pub(crate) fn flow(&self) -> usize {
        self.endpoints.flow as usize
    }

    /// Stream number `stream` of the flow.
    pub(crate) fn make(&self, plan: &Plan, stream: u32) -> Stream {
        let maker = Maker { plan, flow: &plan.flows[self.flow()], source: self, stream };
        Stream {
            endpoints: FlowEndpoints {
                stream: self.first() + stream,
                relays: Relays::of(maker.passed().map(|(place, _)| place.node)),
                ..self.endpoints
            },
            flow: self.flow(),
            start: maker.flow.start,
            done: false,
            kind: maker.kind(),
            interval: Interval { since: maker.flow.start, ..Interval::default() },
        }
    }
}

/// Whether packets wait at interfaces of the host of this name.
fn is_queued(plan: &Plan, host: &str) -> bool {
    plan.nodes.iter().any(|node| node.name == *host && node.nic.is_some())
}

/// The ticks of the host of this name, where its timers need any.
fn ticks(plan: &Plan, host: &str) -> Option<Ticks> {
    let node = plan.nodes.iter().find(|node| node.name == *host)?;
    (node.timing == Timing::Linux)
        .then(|| Ticks::new(component_seed(plan.seed, &format!("node.{host}.ticks"))))
}

/// Makes one stream.
struct Maker<'a> {
    plan: &'a Plan,
    flow: &'a Flow,
    source: &'a Source,
    /// Its number within the flow.
    stream: u32,
}

impl Maker<'_> {
    fn kind(&self) -> StreamKind {
        // A source that stops with the run is stopped by it, and has all of the run.
        let end = Time::ZERO + self.plan.duration;
        let stop = self.flow.stop.filter(|&stop| stop != end).unwrap_or(Time::NEVER);
        match &self.flow.traffic {
            Traffic::Tcp(plan::Tcp { bytes, .. }) => {
                self.connection(Box::new(Bulk::new(*bytes, self.pauses(), stop)))
            }
            Traffic::Request(plan::Request { request, response, think, count, .. }) => {
                self.connection(Box::new(Request::new(*request, *response, *think, *count, stop)))
            }
            Traffic::Http(plan::Http { web, .. }) => self.connection(Box::new(Http::new(web, stop))),
            Traffic::Echo(plan::Echo { sizes, iterations, warmup, interval, .. }) => {
                let job = Job::new(sizes, *iterations, *interval, *warmup, self.flow.streams);
                self.connection(Box::new(Echo::new(job, stop)))
            }
            Traffic::Udp(plan::Udp { rate, payload, bytes, .. }) => {
                let mut pacer = Pacer::new(*rate, *payload, self.flow.start);
                if let Some(intervals) = self.flow.random_intervals(u64::from(self.stream), self.plan.seed) {
                    pacer = pacer.at_random(intervals);
                }
                let queued = is_queued(self.plan, &self.flow.from);
                let udp = UdpStream::new(*payload, *bytes, pacer, self.pauses(), stop, queued);
                StreamKind::Udp(Box::new(udp))
            }
            Traffic::Ping(plan::Ping { interval, payload, count }) => {
                StreamKind::Ping(Box::new(PingStream::new(*interval, *payload, *count, stop)))
            }
        }
    }

    fn connection(&self, application: Box<dyn Application>) -> StreamKind {
        let settings = self.source.settings.as_ref().expect("a flow of connections has settings for them");
        let isn = ["client", "server"].map(|end| self.seed(end) as u32);
        StreamKind::Tcp(Box::new(TcpStream::new(application, settings.clone(), isn, self.relays())))
    }

    /// The relays of a connection, from the client on.
    fn relays(&self) -> Vec<Relay> {
        let relay = |(number, (_, settings)): (usize, (&Place, &Arc<relay::Settings>))| {
            // The first one's names have no number.
            let number = if number == 0 { String::new() } else { format!(".{number}") };
            let isn = ["client", "server"].map(|end| self.seed(&format!("relay{number}.{end}")) as u32);
            Relay::new(settings.clone(), isn)
        };
        self.passed().enumerate().map(relay).collect()
    }

    /// The places on its way where a connection ends. A cache takes all those of its flow.
    fn passed(&self) -> impl Iterator<Item = (&Place, &Arc<relay::Settings>)> {
        let port = capture::server_port(self.flow, self.source.flow(), self.stream);
        let is_split =
            move |place: &Place| place.max_age.is_some() || place.accelerator.splits(&self.flow.to, port);
        self.source.places.iter().zip(&self.source.relays).filter(move |(place, _)| is_split(place))
    }

    fn pauses(&self) -> Option<Pauses> {
        self.flow.pauses(u64::from(self.stream), self.plan.seed)
    }

    fn seed(&self, component: &str) -> u64 {
        self.flow.seed_of(component, u64::from(self.stream), self.plan.seed)
    }
}

/// Makes what a flow's streams share.
struct Builder<'a> {
    plan: &'a Plan,
    controls: &'a Registry,
    flow: &'a Flow,
    /// Minimum MTU of the path in both directions, bytes.
    mtu: u32,
}

impl Builder<'_> {
    fn check(&self, round_trip: &[DirectionId]) -> Result<(), PlanError> {
        let zero = |is_zero: bool, setting: &str| {
            let place = format!("flows.{}.{setting}", self.flow.name);
            if is_zero { Err(PlanError::Zero { place }) } else { Ok(()) }
        };
        let too_long = |payload: u32, header: u32| {
            let length = u64::from(payload) + u64::from(header + self.flow.ip.header_len());
            if length <= u64::from(self.mtu) {
                return Ok(());
            }
            Err(PlanError::TooLong { flow: self.flow.name.clone(), payload, length, mtu: self.mtu })
        };
        let pattern = |pattern: &Option<Pattern>| {
            zero(pattern.is_some_and(|pattern| pattern.on == Span::ZERO), "pattern.on")
        };
        if self.flow.dscp > 63 {
            return Err(PlanError::Dscp { flow: self.flow.name.clone(), dscp: self.flow.dscp });
        }
        match &self.flow.traffic {
            Traffic::Tcp(plan::Tcp { pattern: pauses, .. }) => {
                pattern(pauses)?;
                self.takes_time(round_trip)
            }
            Traffic::Request(plan::Request { request, response, .. }) => {
                zero(*request == 0, "request")?;
                zero(*response == 0, "response")?;
                self.takes_time(round_trip)
            }
            Traffic::Http(plan::Http { web, .. }) => {
                zero(web.objects == 0, "objects")?;
                zero(web.page == 0, "page")?;
                zero(web.sizes.is_empty() || web.sizes.contains(&0), "sizes")?;
                self.takes_time(round_trip)
            }
            Traffic::Echo(plan::Echo { sizes, iterations, .. }) => {
                zero(sizes.is_empty() || sizes.contains(&0), "sizes")?;
                zero(*iterations == 0, "iterations")?;
                self.takes_time(round_trip)
            }
            Traffic::Udp(plan::Udp { payload, pattern: pauses, .. }) => {
                zero(*payload == 0, "payload")?;
                pattern(pauses)?;
                too_long(*payload, UDP_HEADER)
            }
            Traffic::Ping(plan::Ping { interval, payload, .. }) => {
                zero(*interval == Span::ZERO, "interval")?;
                too_long(*payload, ICMP_HEADER)
            }
        }
    }

    /// Where a round trip takes no time, a connection would exchange segments for ever at one instant.
    fn takes_time(&self, round_trip: &[DirectionId]) -> Result<(), PlanError> {
        let is_instant = |direction: &&DirectionId| {
            let link = &self.plan.links[**direction as usize / 2];
            let settings = if direction.is_multiple_of(2) { &link.forward } else { &link.backward };
            settings.rate.is_none() && settings.trace.is_none() && settings.delay == Span::ZERO
        };
        let instant: Vec<DirectionId> = round_trip.iter().filter(is_instant).copied().collect();
        let leads = |from: &String, to: &String| {
            let mut reached = vec![from];
            for &direction in &instant {
                let ends = &self.plan.links[direction as usize / 2].ends;
                let [near, far] = [0, 1].map(|end| &ends[end ^ (direction as usize % 2)]);
                if reached.contains(&near) {
                    reached.push(far);
                }
            }
            reached.contains(&to)
        };
        let no_time = leads(&self.flow.from, &self.flow.to) && leads(&self.flow.to, &self.flow.from);
        if no_time { Err(PlanError::NoTime { flow: self.flow.name.clone() }) } else { Ok(()) }
    }

    fn relay(&self, place: &Place) -> Result<relay::Settings, PlanError> {
        let host = &self.plan.nodes[usize::from(place.node)].tcp;
        let [towards_client, towards_server] =
            [&place.accelerator.towards_client, &place.accelerator.towards_server].map(|leg| {
                let config = Config {
                    send_buffer: leg.send_buffer.or(host.send_buffer),
                    receive_buffer: leg.receive_buffer.or(host.receive_buffer),
                    pacing: leg.pacing || host.pacing,
                    nagle: false,
                    ..host.clone()
                };
                Ok((self.control(&leg.cc)?, self.fitted(&config)?))
            });
        let ((client, client_config), (server, server_config)) = (towards_client?, towards_server?);
        Ok(relay::Settings {
            node: place.node,
            name: self.plan.nodes[usize::from(place.node)].name.clone(),
            controls: [client, server],
            configs: [client_config, server_config],
            max_age: place.max_age,
        })
    }

    /// None: the flow has no connections.
    fn settings(&self) -> Result<Option<Settings>, PlanError> {
        let Some(connections) = self.flow.traffic.connections() else { return Ok(None) };
        let [client, server] = [connections.sender, connections.receiver].map(|config| self.fitted(config));
        let hosts = [&self.flow.from, &self.flow.to];
        Ok(Some(Settings {
            control: self.control(connections.cc)?,
            configs: [client?, server?],
            queued: hosts.map(|name| is_queued(self.plan, name)),
            ticks: hosts.map(|name| ticks(self.plan, name)),
        }))
    }

    fn control(&self, cc: &Cc) -> Result<Control, PlanError> {
        let params = cc.params.iter().map(|(name, value)| (name.as_str(), *value));
        self.controls
            .find(cc.file.as_ref().unwrap_or(&cc.name))
            .and_then(|table| Control::of(table, params))
            .map_err(|source| PlanError::Control { flow: self.flow.name.clone(), source })
    }

    /// Settings of an end on a path with a smaller MTU than its own: path MTU discovery is taken to be done.
    fn fitted(&self, config: &Config) -> Result<Config, PlanError> {
        let maximum = self.mtu.saturating_sub(self.flow.ip.header_len() + TCP_HEADER);
        const MIN_MSS: u32 = 88;
        if maximum < MIN_MSS {
            return Err(PlanError::NoRoomForPayload { flow: self.flow.name.clone(), mtu: self.mtu });
        }
        Ok(Config { mss: config.mss.min(maximum), ..config.clone() })
    }
}
