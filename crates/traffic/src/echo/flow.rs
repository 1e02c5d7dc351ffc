//! A flow of `kind: echo`: the clients at one node, the server at the other, as rows of the run's tables.

use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use socket2::Socket;
use tcplab_plan::Traffic;
use tcplab_probe::sockets::Owner;
use tcplab_probe::{TcpInfo, clock, scheduling};
use tcplab_tables::{ECHO_HEAD, EchoTally, MAX_ECHO_ROWS};

use super::client::{Connected, Job, Observer};
use super::error::EchoError;
use super::framed_io::Limit;
use super::record::{Keep, Live, Round};
use super::server::{Limits, Served, Server, ServerObserver, Unserved};
use super::wire::{Answer, Greeting};
use crate::collect::Intervals;
use crate::socket::{self, Clamped};
use crate::tcp::{Sent, agreed_ecn};
use crate::{Context, End, Exchange, Interval, Role, SocketOptions, Summary, Totals, TrafficError};

/// How much earlier than this end the other may end a run, ns.
const MOMENT: u64 = 200_000_000;

/// A prepared end of an echo flow.
#[derive(Debug)]
pub(crate) struct Echo {
    sockets: Vec<(Socket, SocketAddr)>,
    clamped: Vec<Clamped>,
}

impl Echo {
    pub fn prepare(end: &End) -> Result<(Echo, Vec<u16>), TrafficError> {
        let mut echo = Echo { sockets: Vec::new(), clamped: Vec::new() };
        let mut ports = Vec::new();
        let Traffic::Echo(traffic) = &end.flow.traffic else { return Ok((echo, ports)) };
        for (is_zero, what) in [(traffic.sizes.is_empty(), "sizes"), (traffic.iterations == 0, "iterations")]
        {
            if is_zero {
                return Err(TrafficError::Zero { what });
            }
        }
        for address in end.addresses() {
            let (socket, clamped) = socket::tcp(address, &options(end, traffic), &traffic.cc.name)?;
            socket::set_traffic_class(&socket, address, &end.flow)?;
            let (socket, port) = match end.role {
                Role::Server => socket::listen(socket, address)?,
                Role::Client => (socket, address.port()),
            };
            ports.push(port);
            echo.sockets.push((socket, SocketAddr::new(address.ip(), port)));
            echo.clamped = clamped;
        }
        Ok((echo, ports))
    }

    pub fn run(self, end: &End, context: &Context, totals: &Totals) -> Result<(), TrafficError> {
        let Traffic::Echo(traffic) = &end.flow.traffic else { return Ok(()) };
        for clamped in &self.clamped {
            context.sink.warning(format!("{}: {}", end.flow.name, clamped.message()), clamped.hint());
        }
        let slots = self.sockets.iter().map(|_| Slot::default()).collect();
        let lives: Vec<Live> = self.sockets.iter().map(|_| Live::default()).collect();
        let (sockets, addresses): (Vec<_>, Vec<_>) = self.sockets.into_iter().unzip();
        let part = Part { end, context, traffic, slots, addresses, over: AtomicBool::new(false) };
        // A message that is under way when the flow stops is waited for until the run ends.
        let limit = Limit { stop: &context.stop, end: context.clock.instant(context.clock.duration) };
        std::thread::scope(|scope| {
            let collector = std::thread::Builder::new()
                .stack_size(crate::tcp::STACK)
                .spawn_scoped(scope, || part.collect(&lives, totals));
            let outcome = match end.role {
                Role::Client => part.ask(sockets, &lives, limit),
                Role::Server => part.answer(sockets, limit),
            };
            part.over.store(true, Ordering::Release);
            collector.map_err(TrafficError::Thread).map(|_| ()).and(outcome)
        })
    }
}

fn options(end: &End, traffic: &tcplab_plan::Echo) -> SocketOptions {
    match end.role {
        Role::Client => end.options(&traffic.sender),
        Role::Server => end.options(&traffic.receiver),
    }
}

/// One client's connection, as this end sees it.
struct Slot {
    socket: Mutex<Option<Socket>>,
    received: Mutex<Option<Arc<AtomicU64>>>,
    /// At a client, bytes of its answers of the sizes that are done.
    answered: AtomicU64,
    started: AtomicU64,
    /// Bytes that this end sends before its first message, and the segments that take them; until they are known, all that
    /// it sends.
    greeting: AtomicU64,
    greeting_segments: AtomicU64,
    /// Bytes that it receives before; until they are known, all that it receives.
    greeted: AtomicU64,
    settled: OnceLock<(Sent, u64)>,
    port: AtomicU64,
}

impl Default for Slot {
    fn default() -> Slot {
        Slot {
            socket: Mutex::default(),
            received: Mutex::default(),
            answered: AtomicU64::new(0),
            started: AtomicU64::new(0),
            greeting: AtomicU64::new(u64::MAX),
            greeting_segments: AtomicU64::new(u64::MAX),
            greeted: AtomicU64::new(u64::MAX),
            settled: OnceLock::new(),
            port: AtomicU64::new(0),
        }
    }
}

impl Slot {
    /// Counts of what this end has sent, and the bytes that it has received, greetings left out; of a settled one, as of then.
    fn counts(&self) -> (Sent, u64) {
        let open = || lock(&self.socket).as_ref().map(|socket| self.by(socket));
        self.settled.get().copied().or_else(open).unwrap_or_default()
    }

    /// Those for the last rows. Sockets go on at the run's end: that counts in none of them.
    fn settle(&self, socket: &Socket) -> (Sent, u64) {
        *self.settled.get_or_init(|| self.by(socket))
    }

    /// Its own port and the other end's.
    fn ports(&self) -> (u16, u16) {
        let ports = self.port.load(Ordering::Relaxed);
        ((ports >> 16) as u16, ports as u16)
    }

    /// Also of a message that has not come whole.
    fn by(&self, socket: &Socket) -> (Sent, u64) {
        let mut sent = Sent::by(socket);
        sent.bytes = sent.bytes.saturating_sub(self.greeting.load(Ordering::Relaxed));
        sent.segments = sent.segments.saturating_sub(self.greeting_segments.load(Ordering::Relaxed));
        (sent, payload_received(socket).saturating_sub(self.greeted.load(Ordering::Relaxed)))
    }
}

struct Part<'a> {
    end: &'a End,
    context: &'a Context,
    traffic: &'a tcplab_plan::Echo,
    slots: Vec<Slot>,
    addresses: Vec<SocketAddr>,
    over: AtomicBool,
}

impl Part<'_> {
    fn ask(&self, sockets: Vec<Socket>, lives: &[Live], limit: Limit) -> Result<(), TrafficError> {
        if !self.context.sleep_until(self.end.start()) {
            return Ok(());
        }
        let traffic = self.traffic;
        let trips = traffic.iterations.saturating_mul((traffic.sizes.len() * sockets.len()) as u64);
        let keep = if trips > MAX_ECHO_ROWS { Keep::head(traffic.warmup.max(ECHO_HEAD)) } else { Keep::ALL };
        let job = Job {
            addresses: self.addresses.clone(),
            sizes: traffic.sizes.clone(),
            iterations: traffic.iterations,
            interval: traffic.interval.as_ns(),
            stop: self.context.clock.instant(self.end.stop(self.context.clock.duration)),
            timeout: traffic.timeout.as_ns(),
            nodelay: !traffic.receiver.nagle,
            busy_poll: traffic.busy_poll,
            control: traffic.cc.name.clone(),
            cpus: Vec::new(),
            keep,
            zero: self.context.clock.start,
        };
        job.run(sockets, lives, limit, self).map_err(TrafficError::Thread)
    }

    fn answer(&self, sockets: Vec<Socket>, limit: Limit) -> Result<(), TrafficError> {
        let limits = Limits {
            clients: u32::MAX,
            size: u32::MAX,
            messages: u64::MAX,
            interval: u64::MAX / 4,
            message: self.traffic.timeout.as_ns().saturating_mul(2),
            busy_poll: true,
            ..Limits::default()
        };
        let expected = sockets.len() as u32;
        let address = self.addresses[0];
        let server = Server::new(sockets, limits, Vec::new());
        server.run(limit, Some(expected), self).map_err(|source| TrafficError::Listen { address, source })
    }

    /// Whether the flow's time is over, or ends in a moment, so that what breaks now is not a failure.
    fn ends(&self) -> bool {
        let stop = self.end.stop(u64::MAX);
        let over = || self.context.over() || self.context.clock.now() >= stop;
        let begun = clock::now();
        while !over() && clock::now() < begun + MOMENT {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        over()
    }

    fn begin(&self, slot: &Slot, stream: u64, greeting: u64, socket: &Socket) {
        let now = self.context.clock.now();
        slot.started.store(now, Ordering::Relaxed);
        slot.greeting.store(greeting, Ordering::Relaxed);
        let mss = TcpInfo::of(socket.as_raw_fd()).map_or(u64::MAX, |info| u64::from(info.snd_mss).max(1));
        slot.greeting_segments.store(greeting.div_ceil(mss), Ordering::Relaxed);
        // The other end has greeted, and sends no message before this one has.
        slot.greeted.store(payload_received(socket), Ordering::Relaxed);
        self.watch(slot, stream, greeting, socket);
    }

    /// Has a socket sampled that sends `greeting` bytes before its first message; until they are known, all that it sends.
    fn watch(&self, slot: &Slot, stream: u64, greeting: u64, socket: &Socket) {
        *lock(&slot.socket) = socket.try_clone().ok();
        let paced = {
            let options = options(self.end, self.traffic);
            options.pacing || options.max_pacing_rate.is_some()
        };
        let (local, remote, ipv6) = self.ports(stream, socket);
        slot.port.store(u64::from(local) << 16 | u64::from(remote), Ordering::Relaxed);
        let (flow, opened) = (self.end.flow.name.as_str().into(), self.end.role == Role::Client);
        let owner = Owner { flow, stream, paced, opened, greeting };
        self.context.registry.add(local, remote, ipv6, owner);
    }

    /// A socket's own port and the other end's, which a client knows before it is connected, and whether it is of IPv6.
    fn ports(&self, stream: u64, socket: &Socket) -> (u16, u16, bool) {
        let (own, other, ipv6) = ports(socket);
        let asked = self.addresses.get(stream as usize).filter(|_| self.end.role == Role::Client);
        (own, asked.map_or(other, SocketAddr::port), ipv6)
    }

    fn finish(&self, slot: &Slot, connected: bool) {
        if let Some(socket) = lock(&slot.socket).as_ref() {
            if connected {
                self.context.unwatch(socket, slot.ports());
            } else {
                self.context.unwatch_unanswered(socket, slot.ports());
            }
        }
        *lock(&slot.socket) = None;
    }

    /// Tells payload so far, and interval rows at their boundaries where they are wanted.
    fn collect(&self, lives: &[Live], totals: &Totals) {
        let width = self.end.sample.unwrap_or(crate::collect::DEFAULT);
        let mut before: Vec<Interval> = self.slots.iter().map(|_| Interval::default()).collect();
        scheduling::be_prompt();
        let mut intervals = Intervals::new(self.context, self.end.start(), width);
        loop {
            let passed = intervals.wait(|| self.over.load(Ordering::Acquire));
            let (mut sent, mut received) = (0, 0);
            for (number, slot) in self.slots.iter().enumerate() {
                let bytes = match self.end.role {
                    Role::Client => lives[number].bytes.load(Ordering::Relaxed),
                    Role::Server => lock(&slot.received).as_ref().map_or(0, |r| r.load(Ordering::Relaxed)),
                };
                (sent, received) = (sent + bytes, received + bytes);
                if passed.is_last
                    && let Some(socket) = lock(&slot.socket).as_ref()
                {
                    slot.settle(socket);
                    // Its thread may look up some time after the run's end.
                    self.context.unwatch(socket, slot.ports());
                }
                if self.end.sample.is_some() {
                    for (from, to) in passed.rows() {
                        let row = Interval { time: to, stream: number as u64, ..Interval::default() };
                        self.interval(slot, bytes, row, &mut before[number], from);
                    }
                }
            }
            totals.sent.store(sent, Ordering::Relaxed);
            totals.received.store(received, Ordering::Relaxed);
            if passed.is_last {
                return;
            }
        }
    }

    fn interval(&self, slot: &Slot, bytes: u64, now: Interval, before: &mut Interval, from: u64) {
        let mut row = now;
        row.duration = row.time - from;
        let (sent, received) = slot.counts();
        let counts = Interval {
            bytes_received: Some(received.max(bytes)),
            bytes_sent: Some(sent.bytes),
            retransmits: Some(sent.retransmits),
            ..row.clone()
        };
        let more = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before.unwrap_or(0)));
        row.bytes_received = more(counts.bytes_received, before.bytes_received);
        row.bytes_sent = more(counts.bytes_sent, before.bytes_sent);
        row.retransmits = more(counts.retransmits, before.retransmits);
        *before = counts;
        self.context.sink.interval(&self.end.flow, &row);
    }
}

fn payload_received(socket: &Socket) -> u64 {
    TcpInfo::of(socket.as_raw_fd()).map_or(0, |info| info.payload_received())
}

fn ports(socket: &Socket) -> (u16, u16, bool) {
    let of = |address: std::io::Result<socket2::SockAddr>| address.ok().and_then(|a| a.as_socket());
    let (local, peer) = (of(socket.local_addr()), of(socket.peer_addr()));
    (local.map_or(0, |a| a.port()), peer.map_or(0, |a| a.port()), local.is_some_and(|a| a.is_ipv6()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for Part<'_> {
    fn connecting(&self, client: u32, socket: &Socket) {
        self.watch(&self.slots[client as usize], u64::from(client), u64::MAX, socket);
    }

    fn established(&self, client: u32, socket: &Socket) {
        let ecn = agreed_ecn(self.end, socket);
        let now = self.context.clock.now();
        self.context.sink.event(&self.end.flow, now, u64::from(client), "established", ecn);
    }

    fn connected(&self, client: u32, socket: &Socket, connected: &Connected) {
        let greeting = Sent::by(socket).bytes;
        self.begin(&self.slots[client as usize], u64::from(client), greeting, socket);
        if !connected.words.is_empty() {
            let message =
                format!("{}: the server says of client {client}: {}", self.end.flow.name, connected.words);
            self.context.sink.warning(message, String::new());
        }
    }

    fn rounds(&self, client: u32, size: u32, rounds: &[Round]) {
        let (client, size) = (u64::from(client), u64::from(size));
        for &Round { iteration, time, rtt } in rounds {
            self.context.sink.exchange(&self.end.flow, &Exchange { client, size, iteration, time, rtt });
        }
    }

    fn size_done(&self, client: u32, size: u32, done: u64, tally: &EchoTally) {
        let answered = done.saturating_mul(u64::from(size));
        self.slots[client as usize].answered.fetch_add(answered, Ordering::Relaxed);
        if tally.count() > 0 {
            self.context.sink.tally(&self.end.flow, u64::from(client), u64::from(size), tally);
        }
    }

    fn ended(&self, client: u32, socket: Option<(&Socket, u64)>, outcome: Result<(), EchoError>) {
        let flow = &self.end.flow;
        let slot = &self.slots[client as usize];
        let clock = self.context.clock;
        let now = clock.now().min(clock.duration);
        let done = socket.map_or(now, |(_, done)| done.saturating_sub(clock.start).min(now));
        let socket = socket.map(|(socket, _)| socket);
        let (sent, received) = socket.map_or_else(|| slot.counts(), |socket| slot.settle(socket));
        let summary = Summary {
            stream: u64::from(client),
            start: self.end.start(),
            end: done.max(self.end.start()),
            bytes_received: Some(received.max(slot.answered.load(Ordering::Relaxed))),
            // The other end's is not known any more once both have closed.
            ports: socket.map(|_| slot.ports()),
            cpu_sender: Some(clock::thread_cpu() as f64 / 1e9),
            complete: outcome.is_ok(),
            ..sent.summary()
        };
        self.finish(slot, socket.is_some());
        self.context.sink.summary(flow, &summary);
        let broken = outcome.err().filter(|_| !self.ends());
        let event = if broken.is_some() { "aborted" } else { "closed" };
        // As of other flows, the run's end closes none.
        if broken.is_some() || summary.complete || !self.context.over() {
            self.context.sink.event(flow, now, u64::from(client), event, None);
        }
        if let Some(error) = broken {
            self.context.sink.failed(flow, &TrafficError::Echo(error));
        }
    }
}

impl ServerObserver for Part<'_> {
    fn accepted(
        &self,
        _: SocketAddr,
        greeting: &Greeting,
        answer: &Answer,
        socket: &Socket,
        received: &Arc<AtomicU64>,
    ) {
        let Some(slot) = self.slots.get(greeting.client as usize) else { return };
        *lock(&slot.received) = Some(received.clone());
        self.begin(slot, u64::from(greeting.client), answer.encode().len() as u64, socket);
    }

    fn ended(&self, peer: SocketAddr, greeting: &Greeting, socket: &Socket, served: Served) {
        let Some(slot) = self.slots.get(greeting.client as usize) else { return };
        let clock = self.context.clock;
        let (flow, now) = (&self.end.flow, clock.now().min(clock.duration));
        let (sent, received) = slot.settle(socket);
        self.finish(slot, true);
        let whole = lock(&slot.received).as_ref().map_or(0, |r| r.load(Ordering::Relaxed));
        let summary = Summary {
            stream: u64::from(greeting.client),
            start: slot.started.load(Ordering::Relaxed),
            // Of one that was served the end is its last answer: its client closes later.
            end: served.last.map_or(now, |last| last.saturating_sub(clock.start).min(now)),
            bytes_received: Some(received.max(whole)),
            cpu_receiver: Some(clock::thread_cpu() as f64 / 1e9),
            complete: served.broken.is_none(),
            ..sent.summary()
        };
        self.context.sink.summary(flow, &summary);
        if let Some((size, iteration, source)) = served.broken
            && !self.ends()
        {
            let client = greeting.client;
            let error = EchoError::Lost { client, size, iteration, source };
            self.context.sink.failed(flow, &TrafficError::EchoServer { peer, source: error });
        }
    }

    fn unserved(&self, peer: SocketAddr, why: &Unserved) {
        let message = format!("{}: {peer} was not served: {why}", self.end.flow.name);
        self.context.sink.warning(message, String::new());
    }
}
