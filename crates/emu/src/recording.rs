//! Records of a run, made by the thread that serves the links.
//!
//! Rows are only collected here; `writer` encodes and writes them in a thread of its own, so that no disk
//! holds up a packet.

use tcplab_link::{Event, Inside, Observer, QueueTables};
use tcplab_tables::{
    Dictionary, EventRow, Events, Losses, PacketRow, Packets, QueueClasses, QueueGauges, Queues, Symbol,
    Table,
};
use tcplab_units::Time;

use crate::arena::Arena;
use crate::capture::Captures;
use crate::direction::LinkObserver;
use crate::frame_layout::Transport;
use crate::headers::{read_u32, sequence};
use crate::inside::inside;
use crate::streams::Streams;
use crate::wire::Wire;

/// Rows that are not written yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) dictionary: Dictionary,
    pub(crate) queues: Queues,
    pub(crate) queue_classes: QueueClasses,
    pub(crate) queue_gauges: QueueGauges,
    pub(crate) packets: Packets,
    pub(crate) events: Events,
    pub(crate) losses: Losses,
}

/// The records of a run.
#[derive(Debug)]
pub(crate) struct Recording {
    rows: Rows,
    /// By direction: link and direction.
    names: Vec<[Symbol; 2]>,
    event_names: [Symbol; Event::ALL.len()],
    link_change: Symbol,
    flows: Vec<(Symbol, u64)>,
    packets: bool,
    /// False before the run and after it.
    pub(crate) on: bool,
    pub(crate) streams: Streams,
    pub(crate) captures: Option<Captures>,
}

impl Recording {
    /// Nothing recorded yet of these links; every packet event will be if `packets`.
    pub(crate) fn new<'a>(links: impl Iterator<Item = &'a str>, packets: bool) -> Recording {
        let mut rows = Rows::default();
        let mut symbol = |name: &str| rows.dictionary.symbol(name);
        let mut names = Vec::new();
        for link in links {
            names.push([symbol(link), symbol("forward")]);
            names.push([symbol(link), symbol("backward")]);
        }
        let event_names = Event::ALL.map(|event| symbol(event.name()));
        let link_change = symbol("link_change");
        Recording {
            names,
            event_names,
            link_change,
            flows: Vec::new(),
            packets,
            on: false,
            streams: Streams::default(),
            captures: None,
            rows,
        }
    }

    /// The run begins.
    pub(crate) fn begin(&mut self, streams: Streams, captures: Option<Captures>) {
        self.flows = (streams.losses().iter())
            .map(|stream| (self.rows.dictionary.symbol(&stream.flow), stream.stream))
            .collect();
        self.streams = streams;
        self.captures = captures;
        self.on = true;
    }

    /// Whether events are wanted when they happen and not some time later.
    pub(crate) fn is_eager(&self) -> bool {
        self.on && (self.packets || self.captures.is_some())
    }

    /// Makes the rows of losses in intervals that ended at `until` or before, of a run that ends at `end`.
    pub(crate) fn settle_losses(&mut self, until: Time, end: Time) {
        let flows = &self.flows;
        let rows = &mut self.rows.losses;
        self.streams.lately.drain(until.as_ns(), end.as_ns(), |stream| flows[stream], rows);
    }

    /// The rows so far.
    pub(crate) fn take(&mut self) -> Rows {
        let dictionary = self.rows.dictionary.clone();
        std::mem::replace(&mut self.rows, Rows { dictionary, ..Rows::default() })
    }

    /// How many rows of packets wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.rows.packets.rows()
    }

    /// The names of a direction's link and of the direction.
    pub(crate) fn names(&self, number: usize) -> [Symbol; 2] {
        self.names[number]
    }

    /// Where samples of queues go.
    pub(crate) fn queues(&mut self) -> QueueTables<'_> {
        let Rows { dictionary, queues, queue_classes: classes, queue_gauges: gauges, .. } = &mut self.rows;
        QueueTables { dictionary, queues, classes, gauges }
    }

    /// A link's settings changed.
    pub(crate) fn change(&mut self, time: Time, number: usize, detail: &str) {
        let detail = self.rows.dictionary.symbol(detail);
        self.rows.events.push(EventRow {
            time: time.as_ns(),
            flow: None,
            stream: None,
            link: Some(self.names[number][0]),
            event: self.link_change,
            detail: Some(detail),
        });
    }

    fn packet(&mut self, event: Event, at: Time, packet: &Wire, number: usize, queue: u32, arena: &Arena) {
        let stream = self.streams.of(packet, arena).map(|(stream, _)| self.flows[stream]);
        let seq = match packet.layout.transport {
            Transport::Tcp => Some(u64::from(sequence(packet, packet.shared_header(arena)))),
            Transport::Udp | Transport::Icmp if stream.is_some() => datagram_number(packet, arena),
            _ => None,
        };
        self.rows.packets.push(PacketRow {
            time: at.as_ns(),
            link: self.names[number][0],
            direction: self.names[number][1],
            event: self.event_names[event as usize],
            flow: stream.map(|(flow, _)| flow),
            stream: stream.map(|(_, number)| number),
            seq,
            len: u64::from(tcplab_link::Packet::frame_len(packet)),
            queue_packets: u64::from(queue),
        });
    }
}

/// Datagrams of streams, and what their echo requests carry, begin with their number, most significant byte first.
fn datagram_number(packet: &Wire, arena: &Arena) -> Option<u64> {
    let payload = packet.payload(arena);
    (payload.len() >= 8).then(|| u64::from(read_u32(payload, 0)) << 32 | u64::from(read_u32(payload, 4)))
}

/// Observes one direction of a link.
pub(crate) struct DirectionObserver<'a> {
    pub(crate) arena: &'a mut Arena,
    pub(crate) recording: &'a mut Recording,
    pub(crate) direction: usize,
}

impl LinkObserver for DirectionObserver<'_> {
    #[inline]
    fn arena(&mut self) -> &mut Arena {
        self.arena
    }
}

impl Observer<Wire> for DirectionObserver<'_> {
    #[inline]
    fn on(&mut self, event: Event, at: Time, packet: &Wire, queue_packets: u32) {
        if self.recording.on {
            if self.recording.packets {
                self.recording.packet(event, at, packet, self.direction, queue_packets, self.arena);
            }
            if let Some(captures) = &mut self.recording.captures {
                captures.on(event, at, packet, self.direction, self.arena);
            }
        }
        match event {
            Event::Drop | Event::Lose => {
                if self.recording.on {
                    self.recording.streams.count_loss(packet, at, self.arena);
                }
                self.arena.release(packet.block);
            }
            // Its receiver discards it.
            Event::Deliver if packet.is_corrupt() && self.recording.on => {
                self.recording.streams.count_loss(packet, at, self.arena);
            }
            Event::Duplicate => self.arena.hold(packet.block),
            _ => {}
        }
    }

    fn inside(&self, packet: &Wire) -> Inside {
        inside(packet, packet.shared_header(self.arena))
    }
}
