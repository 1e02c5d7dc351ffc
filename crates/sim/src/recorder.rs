//! The record of a run.

use tcplab_link::{Event, Inside, Observer, Packet as _, QueueTables};
use tcplab_tables::{
    Dictionary, EchoBatches, Echoes, EventRow, Events, Fetches, Flows, Gauges, Intervals, Legs, LossTally,
    Losses, PacketRow, Packets, Pings, QueueClasses, QueueGauges, Queues, RouteRow, Routes, Sockets, Symbol,
    Table as _,
};
use tcplab_units::{Span, Time};

use crate::bodies::Bodies;
use crate::capture::Capture;
use crate::network::DirectionId;
use crate::packet::{Body, Packet};
use crate::plan::Plan;

/// The tables of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    /// The strings of all tables.
    pub dictionary: Dictionary,
    /// One row per stream; filled when the run is finished.
    pub flows: Flows,
    /// One row per stream and flow sample.
    pub intervals: Intervals,
    /// One row per stream and flow sample in which packets of it were lost; filled when the run is finished.
    pub losses: Losses,
    /// One row per sending TCP socket and sample.
    pub sockets: Sockets,
    /// One row per socket sample and figure that a control publishes of itself.
    pub gauges: Gauges,
    /// One row per leg of a connection that an accelerator has split, and socket sample.
    pub legs: Legs,
    /// One row per link direction and sample.
    pub queues: Queues,
    /// One row per class of a queue discipline, link direction and sample.
    pub queue_classes: QueueClasses,
    /// One row per figure that a queue discipline shows of itself, link direction and sample.
    pub queue_gauges: QueueGauges,
    /// One row per packet event.
    pub packets: Packets,
    /// One row per request and response.
    pub echoes: Echoes,
    /// One row per batch of echoes that are too many for a row each.
    pub echo_batches: EchoBatches,
    /// One row per request of an http flow that was answered.
    pub fetches: Fetches,
    /// One row per probe.
    pub pings: Pings,
    /// One row per change of state.
    pub events: Events,
    /// One row per route at the start, and per change of one.
    pub routes: Routes,
}

/// Rows with which a table is full.
const FULL: usize = 1 << 16;

/// Does `$each` to every table whose rows are final once they are there. Pings learn of their replies, and losses are counted
/// at the end.
macro_rules! each_final {
    ($each:ident, $tables:expr) => {
        $each!(
            $tables,
            flows,
            intervals,
            sockets,
            gauges,
            legs,
            queues,
            queue_classes,
            queue_gauges,
            packets,
            echoes,
            echo_batches,
            fetches,
            events,
            routes
        )
    };
}

impl Tables {
    /// Whether one is full.
    pub(crate) fn any_full(&self) -> bool {
        macro_rules! any {
            ($tables:expr, $($name:ident),+) => { $($tables.$name.rows() >= FULL)||+ };
        }
        each_final!(any, self)
    }

    /// The full ones, which begin anew; the others are empty.
    pub(crate) fn take_full(&mut self) -> Tables {
        let mut full = Tables { dictionary: self.dictionary.clone(), ..Tables::default() };
        macro_rules! take {
            ($tables:expr, $($name:ident),+) => {
                $(if $tables.$name.rows() >= FULL {
                    full.$name = std::mem::take(&mut $tables.$name);
                })+
            };
        }
        each_final!(take, self);
        full
    }
}

/// The tables as they grow, and the symbols of the names that occur in them.
pub(crate) struct Recorder {
    pub(crate) tables: Tables,
    pub(crate) capture: Option<Capture>,
    link_names: Vec<Symbol>,
    direction_names: [Symbol; 2],
    event_names: [Symbol; Event::ALL.len()],
    flows: Vec<FlowRecord>,
    /// The place of each stream's state; none, as `NOWHERE`, before it starts and after it has ended.
    places: Vec<u32>,
    /// Packets lost in the forward and the reverse direction, by the stream's place.
    losses: Vec<[u64; 2]>,
    lost: LossTally,
    samples_flows: bool,
    samples_sockets: bool,
}

/// No place.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The recorder's knowledge of a flow.
#[derive(Clone, Debug)]
struct FlowRecord {
    name: Symbol,
    /// The number of its first stream, counted over all flows.
    first: u32,
    /// Its nodes, by their places in the plan.
    ends: [u32; 2],
    /// Their names.
    names: [Symbol; 2],
}

impl Recorder {
    /// A recorder of a run of `plan` with nothing in it.
    pub(crate) fn new(plan: &Plan) -> Recorder {
        let mut tables = Tables::default();
        let mut symbol = |name: &str| tables.dictionary.symbol(name);
        let link_names = plan.links.iter().map(|link| symbol(&link.name)).collect();
        let direction_names = ["forward", "backward"].map(&mut symbol);
        let event_names = Event::ALL.map(|event| symbol(event.name()));
        let mut flows = Vec::new();
        let mut streams = 0;
        for flow in &plan.flows {
            let name = symbol(&flow.name);
            let ends = [&flow.from, &flow.to].map(|end| {
                let place = plan.nodes.iter().position(|node| node.name == *end);
                place.map_or(u32::MAX, |place| place as u32)
            });
            let names = [&flow.from, &flow.to].map(|end| symbol(end));
            flows.push(FlowRecord { name, first: streams, ends, names });
            streams += flow.streams;
        }
        let streams = streams as usize;
        let lost = LossTally::new(streams, plan.sample.flows.map(Span::as_ns));
        let (places, losses) = (vec![NOWHERE; streams], Vec::new());
        Recorder {
            tables,
            capture: None,
            link_names,
            direction_names,
            event_names,
            flows,
            places,
            losses,
            lost,
            samples_flows: plan.sample.flows.is_some(),
            samples_sockets: plan.sample.sockets.is_some(),
        }
    }

    /// The symbol of `name`.
    pub(crate) fn symbol(&mut self, name: &str) -> Symbol {
        self.tables.dictionary.symbol(name)
    }

    /// Flow name and number of a stream.
    pub(crate) fn stream(&self, stream: u32) -> (Symbol, u64) {
        let flow = self.flow(stream);
        (flow.name, u64::from(stream - flow.first))
    }

    fn flow(&self, stream: u32) -> &FlowRecord {
        &self.flows[self.flows.partition_point(|flow| flow.first <= stream) - 1]
    }

    /// Where a stream has its state while it is at work, else `NOWHERE`.
    #[inline]
    pub(crate) fn place(&self, stream: u32) -> u32 {
        self.places[stream as usize]
    }

    /// A stream starts, at `place`.
    pub(crate) fn enter(&mut self, stream: u32, place: u32) {
        self.places[stream as usize] = place;
        match self.losses.get_mut(place as usize) {
            Some(losses) => *losses = [0; 2],
            None => self.losses.push([0; 2]),
        }
    }

    /// A stream has ended, and leaves its place.
    pub(crate) fn leave(&mut self, stream: u32) {
        self.places[stream as usize] = NOWHERE;
    }

    /// Packets of a stream lost in the forward and the reverse direction.
    pub(crate) fn losses(&self, stream: u32) -> [u64; 2] {
        self.losses.get(self.place(stream) as usize).copied().unwrap_or_default()
    }

    /// The nodes that a packet comes from and goes to.
    fn ends(&self, packet: &Packet) -> [u32; 2] {
        let [from, to] = self.flow(packet.stream()).ends;
        if packet.forward() { [from, to] } else { [to, from] }
    }

    /// A packet will not reach its application.
    #[inline]
    pub(crate) fn count_loss(&mut self, packet: &Packet, at: Time) {
        let place = self.place(packet.stream()) as usize;
        if let Some(losses) = self.losses.get_mut(place) {
            losses[usize::from(!packet.forward())] += 1;
        }
        self.lost.count(packet.stream() as usize, !packet.forward(), at.as_ns());
    }

    /// Whether there is an interval for which streams have rows.
    pub(crate) fn samples_flows(&self) -> bool {
        self.samples_flows
    }

    /// Whether sockets have rows.
    pub(crate) fn samples_sockets(&self) -> bool {
        self.samples_sockets
    }

    /// The name of the node at an end of a stream.
    pub(crate) fn end(&self, stream: u32, end: usize) -> Symbol {
        self.flow(stream).names[end]
    }

    /// Fills the table of losses at the run's end.
    pub(crate) fn finish_losses(&mut self, end: Time) {
        let mut lost = std::mem::take(&mut self.lost);
        let mut rows = std::mem::take(&mut self.tables.losses);
        lost.drain(u64::MAX, end.as_ns(), |stream| self.stream(stream as u32), &mut rows);
        self.tables.losses = rows;
    }

    /// Something happened to a stream.
    pub(crate) fn stream_event(&mut self, time: Time, stream: u32, event: &str, detail: Option<&str>) {
        let (flow, number) = self.stream(stream);
        let event = self.symbol(event);
        let detail = detail.map(|detail| self.symbol(detail));
        self.tables.events.push(EventRow {
            time: time.as_ns(),
            flow: Some(flow),
            stream: Some(number),
            link: None,
            event,
            detail,
        });
    }

    /// A link's settings changed.
    pub(crate) fn link_event(&mut self, time: Time, link: &str, detail: &str) {
        let link = Some(self.symbol(link));
        let event = self.symbol("link_change");
        let detail = Some(self.symbol(detail));
        self.tables.events.push(EventRow {
            time: time.as_ns(),
            flow: None,
            stream: None,
            link,
            event,
            detail,
        });
    }

    /// An adjacency or a session of a routing protocol changed, on the link at this place of the plan.
    pub(crate) fn routing_event(&mut self, time: Time, link: Option<usize>, event: &str, detail: &str) {
        let link = link.map(|link| self.link_names[link]);
        let (event, detail) = (self.symbol(event), Some(self.symbol(detail)));
        let row = EventRow { time: time.as_ns(), flow: None, stream: None, link, event, detail };
        self.tables.events.push(row);
    }

    /// A router's route to `prefix` is by these next hops from now on; none: it is gone.
    pub(crate) fn route(
        &mut self,
        time: Time,
        node: &str,
        prefix: &str,
        next_hops: Option<&str>,
        protocol: &str,
    ) {
        let row = RouteRow {
            time: time.as_ns(),
            node: self.symbol(node),
            prefix: self.symbol(prefix),
            next_hops: next_hops.map(|hops| self.symbol(hops)),
            protocol: self.symbol(protocol),
        };
        self.tables.routes.push(row);
    }

    /// The names of a direction's link and of the direction.
    pub(crate) fn names(&self, direction: DirectionId) -> [Symbol; 2] {
        [self.link_names[direction as usize / 2], self.direction_names[direction as usize % 2]]
    }

    /// Where samples of queues go.
    pub(crate) fn queues(&mut self) -> QueueTables<'_> {
        let Tables { dictionary, queues, queue_classes: classes, queue_gauges: gauges, .. } =
            &mut self.tables;
        QueueTables { dictionary, queues, classes, gauges }
    }

    fn packet_event(
        &mut self,
        event: Event,
        at: Time,
        packet: &Packet,
        body: Body,
        direction: DirectionId,
        queue_packets: u32,
    ) {
        let (flow, number) = self.stream(packet.stream());
        let seq = match body {
            Body::Tcp(segment) => u64::from(segment.seq),
            Body::Udp { number, .. } | Body::Echo { number, .. } => number,
        };
        self.tables.packets.push(PacketRow {
            time: at.as_ns(),
            link: self.link_names[direction as usize / 2],
            direction: self.direction_names[direction as usize % 2],
            event: self.event_names[event as usize],
            flow: Some(flow),
            stream: Some(number),
            seq: Some(seq),
            len: u64::from(packet.frame_len()),
            queue_packets: u64::from(queue_packets),
        });
    }
}

/// The recorded properties of each packet; compiled once for each combination, so that nothing is asked per packet.
pub(crate) trait Mode {
    /// Every packet event goes into the table of packets.
    const PACKETS: bool;
    /// Packets that pass a captured interface are shown to the capture.
    const CAPTURE: bool;
}

/// A mode by its two answers.
pub(crate) struct Record<const PACKETS: bool, const CAPTURE: bool>;

impl<const PACKETS: bool, const CAPTURE: bool> Mode for Record<PACKETS, CAPTURE> {
    const PACKETS: bool = PACKETS;
    const CAPTURE: bool = CAPTURE;
}

/// Observes one link direction, and frees what its packets carried where they end on it.
pub(crate) struct LinkObserver<'a, M> {
    recorder: &'a mut Recorder,
    bodies: &'a mut Bodies,
    direction: DirectionId,
    mode: core::marker::PhantomData<M>,
}

impl<'a, M: Mode> LinkObserver<'a, M> {
    /// Records what happens on `direction`.
    #[inline(always)]
    pub(crate) fn new(
        recorder: &'a mut Recorder,
        bodies: &'a mut Bodies,
        direction: DirectionId,
    ) -> LinkObserver<'a, M> {
        LinkObserver { recorder, bodies, direction, mode: core::marker::PhantomData }
    }
}

impl<M: Mode> Observer<Packet> for LinkObserver<'_, M> {
    #[inline(always)]
    fn on(&mut self, event: Event, at: Time, packet: &Packet, queue_packets: u32) {
        if matches!(event, Event::Drop | Event::Lose) {
            self.recorder.count_loss(packet, at);
        }
        if M::PACKETS {
            let body = self.bodies.get(packet);
            self.recorder.packet_event(event, at, packet, body, self.direction, queue_packets);
        }
        if M::CAPTURE
            && let Some(capture) = &mut self.recorder.capture
        {
            capture.on(event, at, packet, self.bodies, self.direction);
        }
        match event {
            Event::Drop | Event::Lose => self.bodies.release(packet.body()),
            Event::Duplicate => self.bodies.share(packet.body()),
            _ => {}
        }
    }

    fn inside(&self, packet: &Packet) -> Inside {
        let [source, destination] = self.recorder.ends(packet);
        Inside { source, destination, ack: self.bodies.get(packet).acknowledgment() }
    }
}
