//! The surroundings that streams act on: the clock, the network, the record.

use std::marker::PhantomData;

use tcplab_link::{Link, Sampled, Stations};
use tcplab_tcp::Outbox;
use tcplab_units::{Span, Time};

use crate::bodies::Bodies;
use crate::cache::Stored;
use crate::echo::Gate;
use crate::http::Browser;
use crate::network::{DirectionId, Network, NodeId};
use crate::packet::{Body, Packet};
use crate::plan::Medium;
use crate::recorder::{LinkObserver, Mode, Recorder};
use crate::samplers::Sampler;
use crate::schedule::{Schedule, Slot};
use crate::splitter::Splitter;

/// Timers of a stream, beside those of its two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The application's: start, stop, pause, next datagram.
    Application = 0,
    /// Those of the endpoints of accelerators and caches on the way.
    Relay = 1,
}

impl Timer {
    /// How many a stream has.
    pub(crate) const COUNT: u32 = 2;
    pub(crate) const ALL: [Timer; 2] = [Timer::Application, Timer::Relay];
}

// Slots of the schedule after the network's: the streams' timers by place, the samplers', and these.

/// The routing protocols'.
pub(crate) const CONTROL_PLANE: Slot = Sampler::ALL.len() as Slot;
/// That of the next stream that starts.
pub(crate) const NEXT_START: Slot = CONTROL_PLANE + 1;
/// How many that are.
pub(crate) const CLOCKS: Slot = NEXT_START + 1;

/// Everything outside the streams.
pub(crate) struct SimContext {
    pub(crate) schedule: Schedule,
    /// Streams for whose timers it has room.
    pub(crate) places: u32,
    pub(crate) network: Network,
    pub(crate) bodies: Bodies,
    pub(crate) recorder: Recorder,
    /// Packets handed to hosts, of every kind.
    pub(crate) packets: u64,
    /// Where the clients of echo flows wait for each other, by the flow's place in the plan.
    pub(crate) gates: Vec<Gate>,
    /// The clients of http flows, likewise.
    pub(crate) browsers: Vec<Option<Browser>>,
    /// The stores of the nodes' caches, by the node's place in the plan.
    pub(crate) caches: Vec<Stored>,
    /// The accelerators of nodes, likewise.
    pub(crate) splitters: Vec<Option<Splitter>>,
    pub(crate) discarded: Discarded,
    /// That of the endpoint at work, which holds it meanwhile.
    pub(crate) outbox: Option<Box<Outbox>>,
}

/// Packets that nodes have discarded, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Discarded {
    /// No route led to where they went (ICMP: network unreachable).
    pub(crate) no_route: u64,
    /// They had passed too many routers (ICMP: time to live exceeded in transit).
    pub(crate) ttl_exceeded: u64,
}

impl SimContext {
    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.schedule.now()
    }

    /// The schedule's slot for a timer of the stream at `place`.
    #[inline]
    pub(crate) fn timer_slot(&self, place: u32, timer: Timer) -> Slot {
        self.first_timer() + place * Timer::COUNT + timer as u32
    }

    /// The schedule's slot for what belongs to no link and no stream.
    #[inline]
    pub(crate) fn clock(&self, number: Slot) -> Slot {
        self.first_timer() + self.places * Timer::COUNT + number
    }

    /// That of the first timer of the first stream.
    #[inline]
    pub(crate) fn first_timer(&self) -> Slot {
        self.network.components() as Slot
    }

    /// The schedule gets room for the timers of `places` streams, and of more, but not of more than `most`.
    pub(crate) fn make_room(&mut self, places: u32, most: u32) {
        if places > self.places {
            let places = places.next_power_of_two().min(most);
            self.schedule.insert(self.clock(0), (places - self.places) * Timer::COUNT);
            self.schedule.end_timers().grow(places);
            self.places = places;
        }
    }

    /// No timer of the stream at `place` fires any more.
    pub(crate) fn cancel_timers(&mut self, place: u32) {
        for timer in Timer::ALL {
            self.set_timer(place, timer, Time::NEVER);
        }
        self.schedule.end_timers().cancel(place);
    }

    /// The accelerator of a node.
    pub(crate) fn splitter(&mut self, node: NodeId) -> Option<&mut Splitter> {
        self.splitters.get_mut(usize::from(node)).and_then(Option::as_mut)
    }

    /// A timer of the stream at `place` fires at `time` and not at any other.
    #[inline]
    pub(crate) fn set_timer(&mut self, place: u32, timer: Timer, time: Time) {
        let slot = self.timer_slot(place, timer);
        self.schedule.set(slot, time);
    }

    /// The same at `time` or earlier.
    #[inline]
    pub(crate) fn set_timer_no_later(&mut self, place: u32, timer: Timer, time: Time) {
        let slot = self.timer_slot(place, timer);
        self.schedule.set_no_later(slot, time);
    }

    /// Sends `packet` on from `node`; whether an interface of that host had room for it. Static routes were checked when
    /// the plan was read; those of routing protocols come and go.
    #[inline]
    pub(crate) fn send<M: Mode>(&mut self, node: NodeId, packet: Packet) -> bool {
        let Some(direction) = self.network.next_hop(node, &packet) else {
            self.discarded.no_route += 1;
            self.discard(&packet);
            return false;
        };
        if let Some(interface) = self.network.interface_before(direction) {
            return self.send_by(interface, packet);
        }
        self.enter::<M>(direction, packet);
        true
    }

    /// Sends on a packet that has come to `node`, which is not where it goes.
    #[inline(never)]
    pub(crate) fn forward<M: Mode>(&mut self, node: NodeId, mut packet: Packet) {
        if self.network.is_router(node) && !packet.count_down() {
            self.discarded.ttl_exceeded += 1;
            return self.discard(&packet);
        }
        self.send::<M>(node, packet);
    }

    /// `packet` goes no further.
    #[cold]
    pub(crate) fn discard(&mut self, packet: &Packet) {
        self.recorder.count_loss(packet, self.schedule.now());
        self.bodies.release(packet.body());
    }

    /// Queues `packet` at the interface `number`; whether there was room.
    fn send_by(&mut self, number: DirectionId, packet: Packet) -> bool {
        let now = self.schedule.now();
        let (interface, _) = self.network.interface(number);
        let dropped = interface.stats().dropped;
        interface.enqueue(packet, now, &mut ());
        let has_room = interface.stats().dropped == dropped;
        let next = interface.next_event();
        self.schedule.set(number, next);
        if !has_room {
            self.recorder.count_loss(&packet, now);
            self.bodies.release(packet.body());
        }
        has_room
    }

    /// The next packet that the interface `number` has sent by now, on its link.
    pub(crate) fn sent_by<M: Mode>(&mut self, number: DirectionId) -> Option<(Packet, Body)> {
        let now = self.schedule.now();
        let (interface, into) = self.network.interface(number);
        let sent = interface.poll(now, &mut ());
        let next = interface.next_event();
        self.schedule.set(number, next);
        let (_, packet) = sent?;
        let body = self.bodies.get(&packet);
        self.enter::<M>(into, packet);
        Some((packet, body))
    }

    /// The link direction that packets like `packet` enter when they leave `node`, where nothing but that link is concerned:
    /// no interface of the host before it, no medium.
    #[inline(always)]
    pub(crate) fn direct(&self, node: NodeId, packet: &Packet) -> Option<DirectionId> {
        let direction = self.network.next_hop(node, packet)?;
        let alone = self.network.interface_before(direction).or(self.network.medium_of(direction)).is_none();
        alone.then_some(direction)
    }

    /// `packet` enters a link direction. `schedule_arrival` has to follow.
    #[inline(always)]
    pub(crate) fn enqueue<M: Mode>(&mut self, direction: DirectionId, packet: Packet) {
        let now = self.schedule.now();
        if M::CAPTURE
            && let Some(capture) = &mut self.recorder.capture
        {
            capture.hand_over(now, &packet, &self.bodies, direction);
        }
        let mut observer = LinkObserver::<M>::new(&mut self.recorder, &mut self.bodies, direction);
        self.network.link(direction).enqueue(packet, now, &mut observer);
    }

    /// The same for a run of `count` packets, of which `first` is the first.
    #[inline(always)]
    pub(crate) fn enqueue_run<M: Mode>(&mut self, direction: DirectionId, first: Packet, count: u32) {
        if count == 1 || M::PACKETS || M::CAPTURE {
            return (0..count).for_each(|place| self.enqueue::<M>(direction, first.at_place(place)));
        }
        let now = self.schedule.now();
        let mut observer = LinkObserver::<M>::new(&mut self.recorder, &mut self.bodies, direction);
        self.network.link(direction).enqueue_run(count, |place| first.at_place(place), now, &mut observer);
    }

    /// The next packet of a link direction arrives when the link says.
    #[inline(always)]
    pub(crate) fn schedule_arrival(&mut self, direction: DirectionId) {
        let next = self.network.peek(direction).next_event();
        self.schedule.set(direction, next);
    }

    #[inline(always)]
    fn enter<M: Mode>(&mut self, direction: DirectionId, packet: Packet) {
        self.enqueue::<M>(direction, packet);
        self.schedule_arrival(direction);
        if let Some(medium) = self.network.medium_of(direction) {
            self.contend::<M>(medium, Some(direction));
        }
    }

    /// Lets medium `number` do what it has to do by now, after a packet was enqueued on the direction `at`, if any.
    pub(crate) fn contend<M: Mode>(&mut self, number: DirectionId, at: Option<DirectionId>) {
        let now = self.schedule.now();
        let SimContext { schedule, network, bodies, recorder, .. } = self;
        let (medium, links) = network.medium(number);
        let mut stations = OnMedium { schedule, links, bodies, recorder, mode: PhantomData::<M> };
        medium.advance(now, &mut stations);
        if let Some(direction) = at {
            medium.enqueued(direction, now, &mut stations);
            medium.advance(now, &mut stations);
        }
        let next = medium.next_event();
        schedule.set(number, next);
    }

    /// The next packet that arrives now by `direction`.
    #[inline]
    pub(crate) fn poll<M: Mode>(&mut self, direction: DirectionId) -> Option<Packet> {
        let now = self.schedule.now();
        let mut observer = LinkObserver::<M>::new(&mut self.recorder, &mut self.bodies, direction);
        self.network.link(direction).poll(now, &mut observer).map(|(_, packet)| packet)
    }

    /// Samples every link direction's queue.
    pub(crate) fn sample_queues<M: Mode>(&mut self, now: Time) {
        for direction in 0..self.network.directions() as DirectionId {
            let mut observer = LinkObserver::<M>::new(&mut self.recorder, &mut self.bodies, direction);
            let link = self.network.link(direction);
            let queue = link.sample(now, &mut observer);
            let (classes, gauges) = (link.classes(), link.gauges(now, &mut observer));
            let (names, stats) = (self.recorder.names(direction), link.stats());
            let sampled = Sampled { time: now, names, queue, stats, classes: &classes, gauges: &gauges };
            self.recorder.queues().push(&sampled);
        }
    }

    /// Lets link direction `direction` do what it has to do by now.
    pub(crate) fn advance_link<M: Mode>(&mut self, direction: DirectionId) {
        let now = self.schedule.now();
        let mut observer = LinkObserver::<M>::new(&mut self.recorder, &mut self.bodies, direction);
        self.network.link(direction).advance(now, &mut observer);
    }

    /// Lets every link do what it has to do by now, so that all of it is recorded.
    pub(crate) fn advance_links<M: Mode>(&mut self) {
        for direction in 0..self.network.directions() as DirectionId {
            self.advance_link::<M>(direction);
        }
    }
}

/// The link directions, as a medium uses them.
struct OnMedium<'a, M> {
    schedule: &'a mut Schedule,
    links: &'a mut [Link<Packet>],
    bodies: &'a mut Bodies,
    recorder: &'a mut Recorder,
    mode: PhantomData<M>,
}

impl<M: Mode> OnMedium<'_, M> {
    fn link(&mut self, direction: DirectionId) -> (&mut Link<Packet>, LinkObserver<'_, M>) {
        let observer = LinkObserver::new(self.recorder, self.bodies, direction);
        (&mut self.links[direction as usize], observer)
    }
}

impl<M: Mode> Stations for OnMedium<'_, M> {
    fn ready(&mut self, direction: DirectionId, now: Time) -> Time {
        let (link, mut observer) = self.link(direction);
        link.ready(now, &mut observer)
    }

    fn begin(&mut self, direction: DirectionId, now: Time, medium: &Medium) -> Option<Span> {
        let (link, mut observer) = self.link(direction);
        link.begin_transmission(medium, now, &mut observer)
    }

    fn end(&mut self, direction: DirectionId, now: Time, collided: bool, medium: &Medium) -> bool {
        let (link, mut observer) = self.link(direction);
        let is_done = link.end_transmission(collided, medium, now, &mut observer);
        let next = link.next_event();
        self.schedule.set(direction, next);
        is_done
    }
}
