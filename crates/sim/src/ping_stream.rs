//! Echo requests and their replies.

use tcplab_tables::PingRow;
use tcplab_units::{Span, Time};

use crate::histogram::Histogram;
use crate::packet::Body;
use crate::recorder::Mode;
use crate::sim_context::{SimContext, Timer};
use crate::stream::FlowEndpoints;

/// A source of echo requests.
#[derive(Debug)]
pub(crate) struct PingStream {
    interval: Span,
    payload: u32,
    left: Option<u64>,
    stop: Time,
    sent: u64,
    replies: u64,
    stopped: bool,
    pub(crate) rtt: Histogram,
    pub(crate) last_reply: Time,
}

impl PingStream {
    /// A probe of `payload` bytes every `interval`, up to `count` probes and `stop`.
    pub(crate) fn new(interval: Span, payload: u32, count: Option<u64>, stop: Time) -> PingStream {
        PingStream {
            interval,
            payload,
            left: count,
            stop,
            sent: 0,
            replies: 0,
            stopped: count == Some(0),
            rtt: Histogram::default(),
            last_reply: Time::ZERO,
        }
    }

    /// Probes sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }
    /// Probes answered.
    pub(crate) fn replies(&self) -> u64 {
        self.replies
    }
    /// Payload bytes of `probes` probes.
    pub(crate) fn bytes(&self, probes: u64) -> u64 {
        probes * u64::from(self.payload)
    }
    /// Whether nothing more will be sent.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// Whether all it was asked for was sent, if the run has `ended` or not.
    pub(crate) fn complete(&self, ended: bool) -> bool {
        self.left.map_or(self.stopped || (ended && self.stop == Time::NEVER), |left| left == 0)
    }

    /// The time of the next probe has come.
    pub(crate) fn wake<M: Mode>(&mut self, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        let now = sim.now();
        if now >= self.stop {
            self.stopped = true;
        }
        if self.stopped {
            return;
        }
        let (flow, stream) = sim.recorder.stream(endpoints.stream);
        let pings = &mut sim.recorder.tables.pings;
        // Lost, until its reply comes.
        let row = pings.time.len() as u32;
        pings.push(PingRow { time: now.as_ns(), flow, stream, seq: self.sent, rtt: None, lost: true });
        let body = Body::Echo { number: self.sent, row, payload: self.payload, reply: false };
        self.sent += 1;
        endpoints.send::<M>(body, true, sim);
        if let Some(left) = &mut self.left {
            *left -= 1;
            self.stopped = *left == 0;
        }
        if !self.stopped {
            sim.set_timer(endpoints.place, Timer::Application, (now + self.interval).min(self.stop));
        }
    }

    /// A request arrived at the far end, or a reply back here.
    pub(crate) fn receive<M: Mode>(&mut self, body: &Body, endpoints: &FlowEndpoints, sim: &mut SimContext) {
        let Body::Echo { number, row, payload, reply } = *body else { return };
        if !reply {
            let reply = Body::Echo { number, row, payload, reply: true };
            endpoints.send::<M>(reply, false, sim);
            return;
        }
        let pings = &mut sim.recorder.tables.pings;
        let place = row as usize;
        // Of replies that come twice the first one counts.
        if pings.rtt.get(place).is_some() {
            return;
        }
        let Some(sent) = pings.time.get(place) else { return };
        let now = sim.schedule.now();
        let rtt = now.since(Time::from_ns(sent as u64));
        pings.rtt.set(place, rtt.as_ns() as i64);
        pings.lost.set(place, false);
        self.rtt.record(rtt);
        self.replies += 1;
        self.last_reply = now;
    }
}
