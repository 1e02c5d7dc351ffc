//! A connection: its two endpoints and the applications at both ends.

use std::sync::Arc;

use tcplab_control::{CaState, Control};
use tcplab_tcp::{Config, Connection, Counters, EcnFeedback, Notice, Segment, Ticks, TimeWait};
use tcplab_units::Time;

use crate::application::{Application, Context};
use crate::histogram::{Histogram, Summary};
use crate::mean_window::MeanWindow;
use crate::network::NodeId;
use crate::packet::{Body, Packet, is_opening};
use crate::recorder::Mode;
use crate::relay::{Hop, Leg, Relay};
use crate::samplers::SocketSample;
use crate::sim_context::{SimContext, Timer};
use crate::stream::FlowEndpoints;

mod expected;
mod prefetch;

pub(crate) use expected::Expected;

/// The end at the flow's `from`, which opens the connection.
pub(crate) const CLIENT: usize = 0;
/// The end at the flow's `to`.
pub(crate) const SERVER: usize = 1;

/// State that the connections of a flow share.
pub(crate) struct Settings {
    /// The specification of both ends' controls.
    pub(crate) control: Control,
    pub(crate) configs: [Config; 2],
    /// Whether the ends' hosts have interfaces at which packets wait.
    pub(crate) queued: [bool; 2],
    /// The ticks of both ends' hosts, where their timers need any.
    pub(crate) ticks: [Option<Ticks>; 2],
}

impl Settings {
    /// An end of a connection comes to its host.
    fn place(&self, connection: &mut Connection, end: usize) {
        if self.queued[end] {
            connection.behind_queue();
        }
        if let Some(ticks) = self.ticks[end] {
            connection.tick(ticks);
        }
    }
}

/// A connection of a flow. Members for arriving data come first, then those for ACKs, each in lines of the processor's cache of
/// their own (see `Connection`).
#[repr(C, align(64))]
pub(crate) struct TcpStream {
    /// None before the connection is opened, and when `remains` has taken their place.
    ends: [Option<Box<Connection>>; 2],
    delivered: [u64; 2],
    /// When payload last arrived at its application; of a connection that carried none, when its receiver knew that none comes.
    pub(crate) last_delivery: Time,
    opened: [bool; 2],
    closed: [bool; 2],
    /// Whose applications have no socket any more.
    left: [bool; 2],
    aborted: bool,
    /// The client's end has been established.
    established: bool,
    /// The end that sends most of the payload.
    data_end: u8,
    /// Whether the application answers what arrives.
    answers: bool,
    /// The present phase of the control of that end.
    phase: &'static str,
    window: MeanWindow,
    rtt: Histogram,
    pub(crate) application: Box<dyn Application>,
    /// Accelerators and caches on the way, from the client on. Each end then talks to the one next to it.
    relays: Vec<Relay>,
    settings: Arc<Settings>,
    initial_sequence: [u32; 2],
    remains: Option<Box<Remains>>,
}

/// The record of a connection that both ends have closed.
struct Remains {
    ends: [TimeWait; 2],
    counters: [Counters; 2],
    rtt: Summary,
}

impl core::fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TcpStream").field("application", &self.application).finish_non_exhaustive()
    }
}

impl TcpStream {
    /// A connection to be opened when its application timer fires.
    pub(crate) fn new(
        application: Box<dyn Application>,
        settings: Arc<Settings>,
        initial_sequence: [u32; 2],
        relays: Vec<Relay>,
    ) -> TcpStream {
        TcpStream {
            ends: [None, None],
            delivered: [0; 2],
            last_delivery: Time::ZERO,
            opened: [false; 2],
            closed: [false; 2],
            left: [false; 2],
            aborted: false,
            established: false,
            data_end: application.data_end() as u8,
            answers: application.answers(),
            phase: "",
            window: MeanWindow::default(),
            rtt: Histogram::default(),
            application,
            relays,
            settings,
            initial_sequence,
            remains: None,
        }
    }

    /// A timer fires.
    pub(crate) fn wake<M: Mode>(&mut self, timer: Timer, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        let now = sim.now();
        match timer {
            Timer::Application => {
                if !std::mem::replace(&mut self.opened[CLIENT], true) {
                    let (settings, isn) = (&self.settings, self.initial_sequence[CLIENT]);
                    let control = settings.control.another();
                    let mut client = Connection::connect(&settings.configs[CLIENT], control, isn, now);
                    settings.place(&mut client, CLIENT);
                    self.ends[CLIENT] = Some(Box::new(client));
                }
                let Some(client) = &mut self.ends[CLIENT] else { return };
                client.lend_outbox(&mut sim.outbox);
                self.application.on_timer(client, &mut Context { endpoints, sim });
                self.drive_apart::<M>(CLIENT, endpoints, sim);
                self.return_outbox(CLIENT, sim);
            }
            Timer::Relay => {
                for (number, relay) in self.relays.iter_mut().enumerate() {
                    let application = &mut *self.application;
                    relay.wake::<M>(&mut Hop { number, endpoints, application }, sim);
                }
            }
        }
    }

    /// A timer of an end fires.
    pub(crate) fn time_out<M: Mode>(&mut self, end: usize, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        let Some(connection) = &mut self.ends[end] else { return };
        connection.lend_outbox(&mut sim.outbox);
        connection.handle_timeout(sim.now());
        self.drive_apart::<M>(end, endpoints, sim);
        self.return_outbox(end, sim);
    }

    /// A segment arrived at the end it was sent to. The application reads when no `more` are to be handled with it.
    #[inline]
    pub(crate) fn receive<M: Mode>(
        &mut self,
        packet: &Packet,
        more: bool,
        endpoints: &FlowEndpoints,
        sim: &mut SimContext,
    ) {
        let end = if packet.forward() { SERVER } else { CLIENT };
        let now = sim.now();
        let Some(connection) = &mut self.ends[end] else {
            return self.receive_without_end::<M>(packet, endpoints, sim);
        };
        connection.lend_outbox(&mut sim.outbox);
        if more {
            connection.read_at_once(false);
        }
        if let Some(segment) = sim.bodies.segment(packet) {
            connection.handle_segment(segment, now);
        }
        if !more && !connection.reads_at_once() {
            connection.read_at_once(true);
            connection.read(u64::MAX, now);
        }
        sim.bodies.release(packet.body());
        self.drive::<M>(end, endpoints, sim);
        self.return_outbox(end, sim);
    }

    /// Whether data that arrive in this direction change nothing but the endpoint there, which acknowledges them at most.
    #[inline]
    pub(crate) fn only_acknowledges(&self, forward: bool) -> bool {
        !self.answers
            && !self.brings_acks(forward)
            && self.ends[usize::from(forward)].as_ref().is_some_and(|end| end.only_receives())
    }

    /// Takes back the outbox that an end was lent, if it is still there.
    #[inline]
    fn return_outbox(&mut self, end: usize, sim: &mut SimContext) {
        if let Some(connection) = &mut self.ends[end] {
            connection.return_outbox(&mut sim.outbox);
        }
    }

    /// The same before the end is there, and when it is not there any more.
    #[cold]
    fn receive_without_end<M: Mode>(
        &mut self,
        packet: &Packet,
        endpoints: &FlowEndpoints,
        sim: &mut SimContext,
    ) {
        let now = sim.now();
        let Body::Tcp(segment) = sim.bodies.take(packet) else { return };
        let end = if packet.forward() { SERVER } else { CLIENT };
        if let Some(remains) = &self.remains {
            if let Some(answer) = remains.ends[end].answer(&segment, now) {
                endpoints.send::<M>(Body::Tcp(answer), end == CLIENT, sim);
            }
            return;
        }
        self.accept(&segment, now);
        self.drive_apart::<M>(end, endpoints, sim);
        self.return_outbox(end, sim);
    }

    /// The host of an end has sent a segment of it.
    pub(crate) fn departed<M: Mode>(
        &mut self,
        body: &Body,
        forward: bool,
        endpoints: &FlowEndpoints,
        sim: &mut SimContext,
    ) {
        let Body::Tcp(segment) = body else { return };
        let end = if forward { CLIENT } else { SERVER };
        if let Some(connection) = &mut self.ends[end] {
            connection.lend_outbox(&mut sim.outbox);
            connection.departed(segment.len, sim.now());
            self.drive_apart::<M>(end, endpoints, sim);
            self.return_outbox(end, sim);
        }
    }

    /// Whether a segment that arrived at the relay of this number opens a connection that the relay does not take. It is
    /// none of this stream's from then on.
    pub(crate) fn passes(&mut self, number: usize, body: &Body, forward: bool, sim: &mut SimContext) -> bool {
        let (Some(relay), Body::Tcp(segment)) = (self.relays.get_mut(number), body) else { return false };
        if !forward || relay.admits(segment, sim) {
            return false;
        }
        self.relays.remove(number);
        true
    }

    /// A segment arrived at the relay of this number.
    pub(crate) fn relay<M: Mode>(
        &mut self,
        number: usize,
        body: &Body,
        forward: bool,
        endpoints: &FlowEndpoints,
        sim: &mut SimContext,
    ) {
        if let (Some(relay), Body::Tcp(segment)) = (self.relays.get_mut(number), body) {
            let application = &mut *self.application;
            relay.receive::<M>(segment, forward, &mut Hop { number, endpoints, application }, sim);
        }
    }

    /// Whether segments of this direction bring ACKs as a rule, not data.
    #[inline]
    fn brings_acks(&self, forward: bool) -> bool {
        u8::from(forward) == self.data_end
    }

    /// The server's end comes into being with the first SYN.
    fn accept(&mut self, segment: &Segment, now: Time) {
        if is_opening(segment) && !std::mem::replace(&mut self.opened[SERVER], true) {
            let (settings, isn) = (&self.settings, self.initial_sequence[SERVER]);
            let control = settings.control.another();
            let mut server = Connection::accept(&settings.configs[SERVER], control, isn, segment, now);
            settings.place(&mut server, SERVER);
            self.ends[SERVER] = Some(Box::new(server));
        }
    }

    /// Frees what a connection that both ends have closed needs no more.
    #[cold]
    fn retire(&mut self) {
        let [client, server] = std::mem::take(&mut self.ends);
        let (client, server) = match (client, server) {
            (Some(client), Some(server)) if client.is_at_rest() && server.is_at_rest() => (client, server),
            ends => {
                self.ends = ends.into();
                return;
            }
        };
        self.remains = Some(Box::new(Remains {
            counters: [client.counters(), server.counters()],
            ends: [client.time_wait(), server.time_wait()],
            rtt: std::mem::take(&mut self.rtt).summary(),
        }));
    }

    /// Does all that follows from the last thing that happened to an end.
    #[inline(always)]
    fn drive<M: Mode>(&mut self, end: usize, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        let forward = end == CLIENT;
        let is_data_end = end == usize::from(self.data_end);
        loop {
            let Some(connection) = &mut self.ends[end] else { return };
            if connection.has_to_transmit() {
                endpoints.transmit::<M>(connection, forward, sim);
            }
            let mut acted = false;
            while let Some(notice) = self.ends[end].as_mut().and_then(|connection| connection.poll_notice()) {
                match notice {
                    Notice::RttSample(rtt) if is_data_end => self.rtt.record(rtt),
                    Notice::RttSample(_) => {}
                    other => acted |= self.notice(end, other, endpoints, sim),
                }
            }
            acted |= self.deliver(end, endpoints, sim);
            if !acted {
                break;
            }
        }
        if is_data_end {
            self.observe(end, endpoints, sim);
        }
        if let Some(connection) = &self.ends[end] {
            sim.schedule.set_end_timer(endpoints.place, end, connection.poll_timeout());
        }
        if self.closed == [true; 2] && !self.aborted {
            self.retire();
        }
    }

    /// `drive` for rare events, as a call: inlined again it would spread the code of a segment.
    #[inline(never)]
    fn drive_apart<M: Mode>(&mut self, end: usize, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        self.drive::<M>(end, endpoints, sim);
    }

    /// Records a notice; whether the application acted on it.
    #[cold]
    fn notice(
        &mut self,
        end: usize,
        notice: Notice,
        endpoints: &FlowEndpoints,
        sim: &mut SimContext,
    ) -> bool {
        let now = sim.now();
        let is_client = end == CLIENT;
        let mut event = |name: &str, detail| sim.recorder.stream_event(now, endpoints.stream, name, detail);
        match notice {
            Notice::RttSample(_) => {}
            Notice::Established => {
                if is_client {
                    self.established = true;
                    let feedback =
                        self.ends[end].as_ref().map_or(EcnFeedback::None, |own| own.ecn_feedback());
                    event("established", feedback_name(feedback));
                    if let Some(client) = &mut self.ends[end] {
                        return self.application.on_established(client, &mut Context { endpoints, sim });
                    }
                }
            }
            Notice::CaState(state) => {
                if end == usize::from(self.data_end) {
                    event("state", Some(state_name(state)));
                }
            }
            Notice::Rto => {
                if self.sends(end) {
                    event("rto", None);
                }
            }
            Notice::TailLossProbe => event("tail_loss_probe", None),
            Notice::Undo => event("undo", None),
            Notice::EcnResponse => event("ecn", None),
            Notice::PeerClosed => {
                self.leave(end, endpoints, sim);
                if let Some(connection) = &mut self.ends[end] {
                    connection.close(now);
                    return true;
                }
            }
            Notice::Closed => {
                if is_client {
                    event("closed", None);
                }
                self.close(end, endpoints, sim);
            }
            Notice::Aborted => {
                event("aborted", None);
                self.close(end, endpoints, sim);
                self.aborted = true;
                self.application.on_abort(&mut Context { endpoints, sim });
            }
        }
        false
    }

    /// An application has read to the end or its connection is aborted: the last figures of a socket that is sampled.
    fn leave(&mut self, end: usize, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        if self.left[end] {
            return;
        }
        if self.delivered == [0; 2] && (end == SERVER || self.answers) {
            self.last_delivery = sim.now();
        }
        if sim.recorder.samples_sockets()
            && let Some((_, connection)) = self.senders().find(|sender| sender.0 == end)
        {
            let mut sample = SocketSample::new();
            sample.add(sim, endpoints.stream, (end, self.preamble(end)), connection);
            sample.write(sim);
        }
        self.left[end] = true;
    }

    /// An end is done with the connection.
    fn close(&mut self, end: usize, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        self.leave(end, endpoints, sim);
        self.closed[end] = true;
        // The other end never knew of it.
        if self.last_delivery == Time::ZERO {
            self.last_delivery = sim.now();
        }
    }

    /// Hands what has arrived to the application; whether it acted on it.
    #[inline]
    fn deliver(&mut self, end: usize, endpoints: &FlowEndpoints, sim: &mut SimContext) -> bool {
        let Some(connection) = &mut self.ends[end] else { return false };
        let received = connection.bytes_received();
        if received == self.delivered[end] || !connection.reads_at_once() {
            return false;
        }
        self.delivered[end] = received;
        self.last_delivery = sim.now();
        self.answers && self.application.on_data(end, connection, &mut Context { endpoints, sim })
    }

    /// Keeps account of the window and phase of the end that sends most.
    #[inline]
    fn observe(&mut self, end: usize, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        let Some(connection) = &self.ends[end] else { return };
        if !connection.was_established() {
            return;
        }
        let now = sim.now();
        self.window.set(connection.cwnd(), now);
        let phase = connection.control().telemetry().phase;
        if !core::ptr::eq(phase, self.phase) {
            self.note_phase(phase, endpoints, sim);
        }
    }

    #[cold]
    fn note_phase(&mut self, phase: &'static str, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        if phase != self.phase {
            self.phase = phase;
            sim.recorder.stream_event(sim.now(), endpoints.stream, "phase", Some(phase));
        }
    }

    /// Whether both ends are done with the connection.
    pub(crate) fn finished(&self) -> bool {
        // Where a cache has answered everything, there is no server's end.
        let served = || self.closed[SERVER] || self.relays.iter().any(Relay::never_connected);
        self.aborted || self.closed[CLIENT] && served()
    }

    /// Whether no more payload will arrive, where the connection may have yet to close. A client closes when all is answered.
    /// A connection that carries none ends when its server has the FIN.
    pub(crate) fn is_through(&self) -> bool {
        let has_delivered = |client: &Connection| {
            client.has_sent_fin()
                && (self.delivered[SERVER] > 0 || self.left[SERVER])
                && client.counters().bytes_sent == self.delivered[SERVER]
        };
        self.finished() || self.ends[CLIENT].as_deref().is_some_and(has_delivered)
    }

    /// Whether the stream did all it was asked to by `end`, when the run had `ended` or was broken off. One that was never
    /// established did nothing of it, also where time alone is the work.
    pub(crate) fn complete(&self, end: Time, ended: bool) -> bool {
        self.established && !self.aborted && self.application.complete(self.delivered[SERVER], end, ended)
    }

    /// Payload bytes that arrived: at the server for a bulk transfer, at both ends for requests.
    pub(crate) fn bytes_received(&self) -> u64 {
        let of = |end: usize| self.delivered[end].saturating_sub(self.preamble(1 - end));
        of(CLIENT) + of(SERVER)
    }

    /// The ends that send payload and whose applications have a socket that is connected, with which end it is.
    pub(crate) fn senders(&self) -> impl Iterator<Item = (usize, &Connection)> {
        [CLIENT, SERVER].into_iter().filter(|end| self.sends(*end) && !self.left[*end]).filter_map(|end| {
            let connection = self.ends[end].as_deref().filter(|connection| connection.was_established())?;
            Some((end, connection))
        })
    }

    /// Bytes that `end` sends before its payload.
    pub(crate) fn preamble(&self, end: usize) -> u64 {
        self.application.preamble()[end]
    }

    /// Whether `end` sends payload.
    fn sends(&self, end: usize) -> bool {
        end == CLIENT || self.answers
    }

    /// Where accelerators and caches on the way are, and figures of the two legs of each.
    pub(crate) fn legs(&self, now: Time) -> impl Iterator<Item = (NodeId, [Leg; 2])> {
        self.relays.iter().filter_map(move |relay| Some((relay.node(), relay.legs(now)?)))
    }

    /// Counts of what the ends that send payload have sent and lost.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for end in [CLIENT, SERVER].into_iter().filter(|end| self.sends(*end)) {
            let counters = match (&self.ends[end], &self.remains) {
                (Some(connection), _) => connection.counters(),
                (None, Some(remains)) => remains.counters[end],
                (None, None) => continue,
            };
            let preamble = self.preamble(end);
            let is_begun = preamble > 0 && counters.bytes_sent > 0;
            sum.bytes_sent += counters.bytes_sent.saturating_sub(preamble);
            sum.segments_sent += counters.segments_sent - u64::from(is_begun);
            sum.retransmits += counters.retransmits;
            sum.rtos += counters.rtos;
            sum.losses_detected += counters.losses_detected;
        }
        sum
    }

    /// Whether nothing but figures is left of it.
    pub(crate) fn is_freed(&self) -> bool {
        self.remains.is_some() && self.relays.is_empty()
    }

    /// The RTTs of the end that sends most.
    pub(crate) fn rtt(&mut self) -> Summary {
        self.remains.as_ref().map_or_else(|| self.rtt.summary(), |remains| remains.rtt)
    }

    /// Mean congestion window over the connection's time, segments; none: it was never established.
    pub(crate) fn mean_window(&self, now: Time) -> Option<f64> {
        let end = if self.finished() { self.last_delivery } else { now };
        self.established.then(|| self.window.mean(end))?
    }
}

/// Which feedback of ECN two ends agreed on; none without ECN.
fn feedback_name(feedback: EcnFeedback) -> Option<&'static str> {
    match feedback {
        EcnFeedback::None => None,
        EcnFeedback::Classic => Some("ECN"),
        EcnFeedback::Accurate => Some("AccECN"),
    }
}

/// The name of a congestion avoidance state in the tables.
pub(crate) fn state_name(state: CaState) -> &'static str {
    match state {
        CaState::Open => "open",
        CaState::Disorder => "disorder",
        CaState::Cwr => "cwr",
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
    }
}
