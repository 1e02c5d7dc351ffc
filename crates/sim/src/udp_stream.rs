//! A stream of datagrams at a rate.

use tcplab_units::Time;

use crate::packet::Body;
use crate::plan::Pauses;
use crate::recorder::Mode;
use crate::send_room::SendRoom;
use crate::sim_context::{SimContext, Timer};
use crate::stream::FlowEndpoints;
use crate::udp::{Pacer, Reception};

/// Source and sink of a stream of datagrams.
#[derive(Debug)]
pub(crate) struct UdpStream {
    payload: u32,
    bytes_left: Option<u64>,
    pacer: Pacer,
    pauses: Option<Pauses>,
    /// When the source falls silent next.
    pause: Time,
    stop: Time,
    /// None: packets do not wait in the host.
    room: Option<SendRoom>,
    sent: u64,
    bytes_sent: u64,
    stopped: bool,
    pub(crate) reception: Reception,
    pub(crate) last_delivery: Time,
}

impl UdpStream {
    /// A source that sends datagrams of `payload` bytes as `pacer` says, up to `bytes` in all and `stop`; `queued`: through an
    /// interface at which they wait.
    pub(crate) fn new(
        payload: u32,
        bytes: Option<u64>,
        pacer: Pacer,
        mut pauses: Option<Pauses>,
        stop: Time,
        queued: bool,
    ) -> UdpStream {
        let start = pacer.next();
        let pause = pauses.as_mut().map_or(Time::NEVER, |pauses| start + pauses.on());
        let mut stream = UdpStream {
            payload,
            bytes_left: bytes,
            pacer,
            pauses,
            pause,
            stop,
            room: queued.then(SendRoom::default),
            sent: 0,
            bytes_sent: 0,
            stopped: bytes == Some(0),
            reception: Reception::new(),
            last_delivery: Time::ZERO,
        };
        stream.pacer.start();
        if stream.pacer.next() > start {
            stream.skip_pauses();
        }
        stream
    }

    /// Datagrams sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }
    /// Payload bytes sent.
    pub(crate) fn bytes_sent(&self) -> u64 {
        self.bytes_sent
    }
    /// Datagrams that have not come; those after the last one that came are lost once none is on its way: it is `drained`.
    pub(crate) fn lost(&self, drained: bool) -> u64 {
        self.reception.lost(drained.then_some(self.sent))
    }
    /// Whether nothing more will be sent.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// Whether all it was asked for was sent, if the run has `ended` or not.
    pub(crate) fn complete(&self, ended: bool) -> bool {
        self.bytes_left.map_or(self.stopped || (ended && self.stop == Time::NEVER), |left| left == 0)
    }

    /// It starts, or the time of the next datagram or of its end has come.
    pub(crate) fn wake<M: Mode>(&mut self, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        let now = sim.now();
        if now >= self.stop {
            self.stopped = true;
        }
        if self.stopped {
            return;
        }
        if now < self.pacer.next() {
            sim.set_timer(endpoints.place, Timer::Application, self.pacer.next().min(self.stop));
            return;
        }
        if self.room.as_mut().is_some_and(|room| !room.takes()) {
            return sim.set_timer(endpoints.place, Timer::Application, self.stop);
        }
        let payload = self.bytes_left.map_or(self.payload, |left| left.min(u64::from(self.payload)) as u32);
        let body = Body::Udp { number: self.sent, sent: now, payload };
        self.sent += 1;
        self.bytes_sent += u64::from(payload);
        let is_taken = endpoints.send::<M>(body, true, sim);
        if is_taken && let Some(room) = &mut self.room {
            room.charge(payload + endpoints.ip.header_len());
        }
        if let Some(left) = &mut self.bytes_left {
            *left -= u64::from(payload);
            self.stopped = *left == 0;
        }
        if !self.stopped {
            self.pacer.advance();
            self.skip_pauses();
            let next = self.pacer.next().max(now).min(self.stop);
            sim.set_timer(endpoints.place, Timer::Application, next);
        }
    }

    /// The host has sent a datagram of it: a source that was blocked goes on.
    pub(crate) fn departed<M: Mode>(&mut self, body: &Body, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        let Body::Udp { payload, .. } = *body else { return };
        let bytes = payload + endpoints.ip.header_len();
        if self.room.as_mut().is_some_and(|room| room.release(bytes)) {
            self.wake::<M>(endpoints, sim);
        }
    }

    /// A pause puts off what was to leave in it: datagrams keep their interval in the time in which the source sends. So the
    /// rate is kept, however short that time is.
    fn skip_pauses(&mut self) {
        let Some(pauses) = &mut self.pauses else { return };
        while self.pacer.next() >= self.pause && self.pause < self.stop {
            let off = pauses.off();
            self.pacer.postpone(off);
            self.pause += off + pauses.on();
        }
    }

    /// A datagram arrived.
    pub(crate) fn receive(&mut self, body: &Body, now: Time) {
        if let Body::Udp { number, sent, payload } = *body
            && self.reception.receive(number, payload, sent, now)
        {
            self.last_delivery = now;
        }
    }
}
