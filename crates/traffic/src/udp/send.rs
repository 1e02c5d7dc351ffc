//! The sender: even, or of a Poisson process.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use socket2::Socket;
use tcplab_plan::{Traffic, Udp};
use tcplab_probe::{clock, scheduling};

use super::batch::{BATCH, Batch};
use super::schedule::Schedule;
use crate::counter::Counter;
use crate::pattern::Phases;
use crate::tcp::ports;
use crate::{Context, End, Interval, Summary, Totals, TrafficError};

/// Datagrams due within this time of each other may leave together, ns. Waking for each would cost more than
/// it brings, as a wake-up itself comes some tens of µs late.
const SLACK: u64 = 100_000;
/// A sender that was held up longer than this sends what it missed over time, not at once, ns.
const STALL: u64 = 1_000_000;
/// How long after its end a sender may still send what was due before, ns.
const GRACE: u64 = 20_000_000;
/// Below this a wait is spun, ns: a sleep would take longer.
const SHORT: u64 = 60_000;

/// Sends one stream until its work is done or the run is over.
pub fn run(
    socket: &Socket,
    address: SocketAddr,
    stream: u64,
    end: &End,
    context: &Context,
    totals: &Totals,
) -> Result<(), TrafficError> {
    let Traffic::Udp(Udp { rate, payload, bytes, .. }) = end.flow.traffic else {
        return Ok(());
    };
    let broken = |source| TrafficError::Broken { stream, address, source };
    scheduling::be_prompt();
    if !context.sleep_until(end.start()) {
        return Ok(());
    }
    socket.connect(&address.into()).map_err(|source| TrafficError::Connect { address, source })?;
    let cpu = clock::thread_cpu();
    let mut schedule = Schedule::new(payload, rate.bits_per_sec(), end.start());
    if let Some(intervals) = end.flow.random_intervals(stream, end.seed) {
        schedule = schedule.at_random(intervals);
    }
    let mut sender = Sender {
        end,
        context,
        batch: Batch::new(payload, bytes, socket),
        schedule,
        phases: Phases::new(end.flow.pauses(stream, end.seed), end.start()),
        stop: end.stop(context.clock.duration),
        left: bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(u64::from(payload))),
        sent: 0,
        payload: u64::from(payload),
        bytes: bytes.unwrap_or(u64::MAX),
        stream,
        counter: end.sample.map(|width| Counter::new(width, end.start())),
    };
    let behind = sender.send_all(socket, totals).map_err(broken)?;
    let over = context.clock.now().min(context.clock.duration);
    sender.report(over, true);
    if behind > 0 {
        context.sink.warning(
            format!("{}: {behind} datagrams of stream {stream} were due but not sent in time", end.flow.name),
            "this host cannot send at this rate: lower it, or use larger datagrams".into(),
        );
    }
    // It returns when nothing more is due before its stop.
    let cut_off = sender.left > 0 && !context.stop.load(Ordering::Relaxed);
    context.sink.summary(
        &end.flow,
        &Summary {
            stream,
            start: end.start(),
            end: if cut_off { sender.stop } else { over },
            bytes_sent: Some(sender.bytes_of(sender.sent)),
            segments_sent: Some(sender.sent),
            ports: Some(ports(socket)),
            cpu_sender: Some((clock::thread_cpu() - cpu) as f64 / 1e9),
            complete: behind == 0
                && bytes.map_or(end.has_its_time(context.clock.duration), |_| sender.left == 0),
            ..Summary::default()
        },
    );
    Ok(())
}

struct Sender<'a> {
    end: &'a End,
    context: &'a Context,
    batch: Batch,
    schedule: Schedule,
    phases: Phases,
    stop: u64,
    left: u64,
    sent: u64,
    payload: u64,
    /// Of all datagrams; the last one has what is left.
    bytes: u64,
    stream: u64,
    counter: Option<Counter>,
}

impl Sender<'_> {
    /// Sends until the work is done or the time is over; how many were due by then and not sent.
    fn send_all(&mut self, socket: &Socket, totals: &Totals) -> io::Result<u64> {
        let gap = self.schedule.gap().max(1);
        // A sender that was held up catches up at twice its rate: that it was not given the CPU shall not
        // look like a burst of the flow's own making.
        let burst = (2 * STALL / gap).clamp(1, BATCH as u64);
        let slack = SLACK.min(gap.saturating_mul(BATCH as u64 / 2));
        let random = self.schedule.is_random();
        let rest = match self.end.spin {
            true => 0,
            // However short an interval of a Poisson process is, it is its own.
            false if random && gap >= SLACK => 0,
            false if random => slack,
            false => slack.max(gap / 2),
        };
        let mut before = self.end.start().saturating_sub(gap);
        // Of a Poisson process, that which was due by this time may leave. It is behind only after a stall.
        let mut caught_up = before;
        while self.left > 0 {
            let due = self.schedule.due();
            if due >= self.stop {
                return Ok(0);
            }
            let (pause, until) = self.phases.pause_before(due);
            if pause > 0 {
                self.schedule.postpone(pause);
                continue;
            }
            let held = if random { due.saturating_sub(caught_up).div_ceil(2) } else { 0 };
            // The first one has none before it.
            let next = if self.sent == 0 { due } else { due.max(before.saturating_add(rest.max(held))) };
            let goes_on = self.wait(next);
            let now = self.context.clock.now();
            if !goes_on {
                // The run is over.
                return Ok(self.due_by(now.saturating_sub(GRACE)));
            }
            let last = now.min(self.stop - 1).min(until - 1);
            let count = if random {
                let planned = next.min(caught_up + 2 * (next - before));
                caught_up = now.min(planned + 2 * (now - next).min(STALL));
                self.schedule.due_by(last.min(caught_up), self.left.min(BATCH as u64))
            } else {
                self.schedule.due_by(last, (2 * (now - before) / gap).clamp(1, burst).min(self.left))
            };
            if now >= self.stop + GRACE {
                return Ok(self.due_by(self.stop - 1));
            }
            let sent = match self.batch.send(socket, self.sent, count as usize, now) {
                Ok(sent) => sent,
                // Nobody listens at the other end (ICMP says): the datagram has left all the same.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.schedule.advance(sent);
            let bytes = self.bytes_of(self.sent + sent) - self.bytes_of(self.sent);
            self.sent += sent;
            self.left -= sent;
            totals.sent.fetch_add(bytes, Ordering::Relaxed);
            before = now;
            // After the run's end too, which only those leave that were due before.
            let within = now.min(self.context.clock.duration.saturating_sub(1));
            if let Some(counter) = &mut self.counter {
                counter.add(within, bytes);
            }
            self.report(within, false);
        }
        Ok(0)
    }

    /// Datagrams that were due by `time` and are not sent.
    fn due_by(&mut self, time: u64) -> u64 {
        self.schedule.due_by(time.min(self.stop - 1), self.left.min(1 << 20))
    }

    /// Payload of the first `datagrams`.
    fn bytes_of(&self, datagrams: u64) -> u64 {
        (datagrams * self.payload).min(self.bytes)
    }

    /// Waits until `time` of the run; false if it is stopped first.
    fn wait(&self, time: u64) -> bool {
        let clock = self.context.clock;
        if self.end.spin || time.saturating_sub(clock.now()) < SHORT {
            clock::spin_until(clock.instant(time), 2 * SHORT, &self.context.stop)
        } else {
            clock::sleep_until(clock.instant(time), &self.context.stop)
        }
    }

    /// Reports the intervals that are over; at the end the one that is not, too.
    fn report(&mut self, time: u64, ended: bool) {
        let Some(counter) = &mut self.counter else { return };
        let width = self.end.sample.unwrap_or(1);
        // The first one begins with the flow.
        let start = self.end.start();
        let begin = |index: u64| start.max(index * width);
        let row = |index: u64, time: u64, bytes| Interval {
            time,
            duration: time - begin(index),
            stream: self.stream,
            bytes_sent: Some(bytes),
            ..Interval::default()
        };
        counter.advance(time);
        for (index, bytes) in counter.take() {
            self.context.sink.interval(&self.end.flow, &row(index, (index + 1) * width, bytes));
        }
        let (index, bytes) = counter.open();
        if ended && time > begin(index) {
            // Nothing more comes in this interval, so it is whole unless the run ends in it.
            let end = ((index + 1) * width).min(self.context.clock.duration);
            self.context.sink.interval(&self.end.flow, &row(index, end, bytes));
        }
    }
}
