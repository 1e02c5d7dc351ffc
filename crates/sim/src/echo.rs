//! Messages sent back in full: a client that waits for each echo, and its server.

use std::sync::Arc;

use tcplab_tables::{ECHO_HEAD, EchoBatches, EchoRow, EchoTally, Echoes, MAX_ECHO_ROWS, Symbol};
use tcplab_tcp::Connection;
use tcplab_units::{Span, Time};

use crate::application::{Application, Context};
use crate::tcp_stream::SERVER;

/// Bytes of the greeting with which a client begins, without its sizes, and of each of these (`crates/traffic/src/echo/wire.rs`).
const GREETING: u64 = 54;
const SIZE: u64 = 4;
/// Bytes of the server's answer to it.
const ANSWER: u64 = 14;

/// The work of a flow's clients.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Bytes of a message, size after size.
    pub(crate) sizes: Arc<[u32]>,
    /// Messages of each size.
    pub(crate) iterations: u64,
    /// Minimum time from one message to the next.
    pub(crate) interval: Span,
    /// The first so many of each size have rows of their own.
    pub(crate) head: u64,
}

impl Job {
    /// One for `clients`; beyond a million round trips only the first of each size have rows of their own, at
    /// least `warmup`.
    pub(crate) fn new(sizes: &[u32], iterations: u64, interval: Span, warmup: u64, clients: u32) -> Job {
        let trips = iterations.saturating_mul(sizes.len() as u64).saturating_mul(u64::from(clients));
        let head = if trips > MAX_ECHO_ROWS { warmup.max(ECHO_HEAD) } else { u64::MAX };
        Job { sizes: sizes.into(), iterations, interval, head }
    }

    /// Bytes of the client's greeting.
    fn greeting(&self) -> u64 {
        GREETING + SIZE * self.sizes.len() as u64
    }

    fn size(&self, at: Place) -> Option<u64> {
        self.sizes.get(at.size).map(|&size| u64::from(size))
    }
}

/// Where in its work an end is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    /// Which size.
    size: usize,
    iteration: u64,
}

impl Place {
    fn next(self, job: &Job) -> Place {
        if self.iteration + 1 < job.iterations {
            Place { iteration: self.iteration + 1, ..self }
        } else {
            Place { size: self.size + 1, iteration: 0 }
        }
    }
}

/// A client and its server.
#[derive(Debug)]
pub(crate) struct Echo {
    job: Job,
    stop: Time,
    client: Place,
    /// Bytes the client has when the present echo is complete; before the first one, when its greeting is answered.
    awaited: u64,
    /// It is.
    answered: bool,
    issued: Option<Time>,
    /// The connection has been asked for. The next wake-up is the gate's then.
    opened: bool,
    stopped: bool,
    left: bool,
    server: Place,
    /// Bytes the server has when the message it is receiving is complete; before the first one, the greeting.
    expected: u64,
    /// The server has answered it.
    greeted: bool,
    tally: Option<Box<EchoTally>>,
}

/// The next step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It waits for the network.
    Wait,
    /// It wants to be woken.
    At(Time),
    /// It waits until all clients have come so far.
    Gate,
}

impl Echo {
    /// A client that does `job`, and sends nothing from `stop` on.
    pub(crate) fn new(job: Job, stop: Time) -> Echo {
        let expected = job.greeting();
        let tally = (job.head < job.iterations).then(Box::default);
        Echo {
            job,
            stop,
            client: Place::default(),
            awaited: ANSWER,
            answered: false,
            issued: None,
            opened: false,
            stopped: false,
            left: false,
            server: Place::default(),
            expected,
            greeted: false,
            tally,
        }
    }

    /// Has the other clients wait for this one no more, once it has stopped or `broke`.
    fn leave_if_done(&mut self, broke: bool, context: &mut Context) {
        if !self.left && (self.stopped || broke) {
            self.left = true;
            context.leave_gate();
        }
    }

    fn send_or_stop(&mut self, client: &mut Connection, now: Time) {
        let Some(size) = self.job.size(self.client).filter(|_| now < self.stop) else {
            if !self.stopped {
                self.stopped = true;
                client.close(now);
            }
            return;
        };
        self.issued = Some(now);
        self.awaited += size;
        client.write(size, now);
    }

    /// Data arrived at the server; whether it completed a message, which is sent back at once.
    fn serve(&mut self, server: &mut Connection, now: Time) -> bool {
        let mut acted = false;
        if !self.greeted && server.bytes_received() >= self.expected {
            server.write(ANSWER, now);
            self.greeted = true;
            self.expected += self.job.size(self.server).unwrap_or(u64::MAX / 2);
            acted = true;
        }
        while self.greeted
            && server.bytes_received() >= self.expected
            && let Some(size) = self.job.size(self.server)
        {
            server.write(size, now);
            self.server = self.server.next(&self.job);
            self.expected += self.job.size(self.server).unwrap_or(u64::MAX / 2);
            acted = true;
        }
        acted
    }

    /// Data arrived at the client. If that completes the echo, it is recorded, and it is said what is next.
    fn receive(
        &mut self,
        client: &mut Connection,
        now: Time,
        names: (Symbol, u64),
        tables: (&mut Echoes, &mut EchoBatches),
    ) -> Option<Next> {
        if client.bytes_received() < self.awaited {
            return None;
        }
        if !std::mem::replace(&mut self.answered, true) {
            return Some(Next::Gate);
        }
        let issued = self.issued.take()?;
        let place = self.client;
        self.client = place.next(&self.job);
        self.record(place, issued, now.since(issued), names, tables.0);
        if self.client.size != place.size {
            self.pour(place, names, tables);
            if self.client.size < self.job.sizes.len() {
                return Some(Next::Gate);
            }
        }
        let due = (issued + self.job.interval).min(self.stop);
        if due > now && self.client.size < self.job.sizes.len() {
            return Some(Next::At(due));
        }
        self.send_or_stop(client, now);
        Some(Next::Wait)
    }

    fn record(&mut self, at: Place, issued: Time, rtt: Span, names: (Symbol, u64), echoes: &mut Echoes) {
        let (time, rtt) = (issued.as_ns(), rtt.as_ns());
        match &mut self.tally {
            Some(tally) if at.iteration >= self.job.head => tally.record(at.iteration, time, rtt),
            _ => echoes.push(EchoRow {
                flow: names.0,
                client: names.1,
                size: self.job.size(at).unwrap_or(0),
                iteration: Some(at.iteration),
                time: Some(time),
                rtt,
                count: 1,
            }),
        }
    }

    fn pour(&mut self, at: Place, names: (Symbol, u64), tables: (&mut Echoes, &mut EchoBatches)) {
        if let Some(tally) = &mut self.tally {
            tally.pour(names.0, names.1, self.job.size(at).unwrap_or(0), tables.0, tables.1);
            tally.clear();
        }
    }
}

impl Application for Echo {
    /// The gate has opened, or the time of the next message has come, or only the connection is to be opened.
    fn on_timer(&mut self, client: &mut Connection, context: &mut Context) {
        if self.opened && self.issued.is_none() {
            self.send_or_stop(client, context.now());
        }
        self.opened = true;
        context.wake_at(Time::NEVER);
        self.leave_if_done(false, context);
    }

    fn on_established(&mut self, client: &mut Connection, context: &mut Context) -> bool {
        client.write(self.job.greeting(), context.now());
        true
    }

    fn on_data(&mut self, end: usize, connection: &mut Connection, context: &mut Context) -> bool {
        let now = context.now();
        if end == SERVER {
            return self.serve(connection, now);
        }
        let (names, tables) = context.echoes();
        match self.receive(connection, now, names, tables) {
            None => return false,
            Some(Next::Wait) => {
                self.leave_if_done(false, context);
                return true;
            }
            Some(Next::At(due)) => context.wake_at(due),
            Some(Next::Gate) => context.arrive_at_gate(),
        }
        false
    }

    fn on_abort(&mut self, context: &mut Context) {
        self.leave_if_done(true, context);
    }

    fn finish(&self, names: (Symbol, u64), tables: (&mut Echoes, &mut EchoBatches)) {
        if let Some(tally) = &self.tally
            && tally.count() > 0
        {
            tally.pour(names.0, names.1, self.job.size(self.client).unwrap_or(0), tables.0, tables.1);
        }
    }

    fn preamble(&self) -> [u64; 2] {
        [self.job.greeting(), ANSWER]
    }

    fn complete(&self, _received: u64, _end: Time, _ended: bool) -> bool {
        self.client.size == self.job.sizes.len()
    }
}

/// Where the clients of a flow wait for each other before each size.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    members: u32,
    waiting: Vec<u32>,
}

impl Gate {
    /// A gate for so many clients.
    pub(crate) fn new(members: u32) -> Gate {
        Gate { members, waiting: Vec::new() }
    }

    /// `stream` waits from now on; those that may go on if it is the last one.
    pub(crate) fn arrive(&mut self, stream: u32) -> Vec<u32> {
        self.waiting.push(stream);
        self.open_if_complete()
    }

    /// A client goes for good; those that may go on if they were waiting only for it.
    pub(crate) fn leave(&mut self, stream: u32) -> Vec<u32> {
        self.waiting.retain(|one| *one != stream);
        self.members = self.members.saturating_sub(1);
        self.open_if_complete()
    }

    fn open_if_complete(&mut self) -> Vec<u32> {
        if self.waiting.len() as u32 >= self.members { std::mem::take(&mut self.waiting) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_come_opens_the_gate_for_all() {
        let mut gate = Gate::new(3);
        assert!(gate.arrive(4).is_empty());
        assert!(gate.arrive(5).is_empty());
        assert_eq!(gate.arrive(6), [4, 5, 6]);
        assert!(gate.arrive(5).is_empty());
    }

    #[test]
    fn nobody_waits_for_one_that_has_gone() {
        let mut gate = Gate::new(2);
        assert!(gate.arrive(1).is_empty());
        assert_eq!(gate.leave(0), [1]);
        assert_eq!(gate.arrive(1), [1]);
    }

    #[test]
    fn a_million_round_trips_have_rows_and_more_have_not() {
        let head = |clients| Job::new(&[1, 2, 4, 8], 50_000, Span::ZERO, 0, clients).head;
        assert_eq!((head(5), head(6)), (u64::MAX, ECHO_HEAD));
    }
}
