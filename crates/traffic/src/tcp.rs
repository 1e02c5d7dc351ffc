//! The life of TCP streams, whatever they carry: connect or accept, work, drain, report.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::ops::Add;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use socket2::Socket;
use tcplab_plan::{Connections, Ecn};
use tcplab_probe::sockets::Owner;
use tcplab_probe::{TcpInfo, clock};

use crate::conversation::Conversation;
use crate::counter::Counter;
use crate::error::is_timeout;
use crate::socket::{self, ATTENTION, Clamped};
use crate::{Context, End, Role, SocketOptions, Summary, Totals, TrafficError, bulk};

/// Stack of a stream's thread.
pub(crate) const STACK: usize = 128 << 10;

/// How much earlier than this end the other may end a run, ns.
const MOMENT: u64 = 200_000_000;

/// A prepared end of a TCP flow.
#[derive(Debug)]
pub(crate) struct Tcp {
    conversation: Box<dyn Conversation>,
    sockets: Vec<(Socket, SocketAddr)>,
    clamped: Vec<Clamped>,
}

/// The block that is written again and again: one memory for all streams, which so stays in the CPU's cache.
pub(crate) static BLOCK: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0x55; bulk::WRITE]);

/// A flow's task, seen from one end.
pub(crate) struct Task<'a> {
    pub end: &'a End,
    pub context: &'a Context,
    pub totals: &'a Totals,
    pub conversation: &'a dyn Conversation,
    pub options: SocketOptions,
    /// This end sends (for request: asks).
    pub sends: bool,
    /// Both ends send and receive.
    pub both_ways: bool,
}

/// One stream, as its thread and the collector see it.
pub(crate) struct Stream {
    pub number: u64,
    pub counter: Mutex<Counter>,
    sockets: Mutex<Sockets>,
    settled: OnceLock<Sent>,
    pub over: AtomicBool,
}

/// A stream's connections: one, except at the server of an http flow.
#[derive(Default)]
struct Sockets {
    open: Vec<Arc<Socket>>,
    /// Sent by connections that are closed.
    closed: Sent,
}

impl Stream {
    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of the stream.
    pub fn open(&self, socket: Arc<Socket>) {
        self.sockets().open.push(socket);
    }

    /// One of its connections has ended.
    pub fn close(&self, socket: &Arc<Socket>) {
        let mut sockets = self.sockets();
        sockets.open.retain(|other| !Arc::ptr_eq(other, socket));
        sockets.closed = sockets.closed + Sent::by(socket);
    }

    /// Sum of what its connections have sent; of a settled stream, as of then.
    pub fn sent(&self) -> Sent {
        self.settled.get().copied().unwrap_or_else(|| self.sum())
    }

    /// That sum for the stream's last rows. Sockets go on sending at the run's end: that counts in none of them.
    pub fn settle(&self) -> Sent {
        *self.settled.get_or_init(|| self.sum())
    }

    fn sum(&self) -> Sent {
        let sockets = self.sockets();
        sockets.open.iter().fold(sockets.closed, |sum, socket| sum + Sent::by(socket))
    }

    /// Its open connections.
    pub fn connections(&self) -> Vec<Arc<Socket>> {
        self.sockets().open.clone()
    }

    /// Nothing more is written.
    fn shut(&self) {
        for socket in &self.sockets().open {
            let _ = socket.shutdown(Shutdown::Write);
        }
    }

    /// Bytes received, and when the last of them came.
    pub fn received(&self) -> (u64, Option<u64>) {
        let counter = self.counter.lock().unwrap_or_else(PoisonError::into_inner);
        (counter.total(), counter.last())
    }
}

impl Tcp {
    pub fn prepare(end: &End, conversation: Box<dyn Conversation>) -> Result<(Tcp, Vec<u16>), TrafficError> {
        let mut tcp = Tcp { conversation, sockets: Vec::new(), clamped: Vec::new() };
        let Some((control, options, _)) = ours(end) else { return Ok((tcp, Vec::new())) };
        let mut ports = Vec::new();
        for address in end.addresses() {
            let (socket, clamped) = socket::tcp(address, &options, control)?;
            socket::set_traffic_class(&socket, address, &end.flow)?;
            let (socket, port) = match end.role {
                Role::Server => socket::listen(socket, address)?,
                Role::Client => (socket, address.port()),
            };
            ports.push(port);
            tcp.sockets.push((socket, SocketAddr::new(address.ip(), port)));
            tcp.clamped = clamped;
        }
        Ok((tcp, ports))
    }

    pub fn run(self, end: &End, context: &Context, totals: &Totals) -> Result<(), TrafficError> {
        let Some((_, options, sends)) = ours(end) else { return Ok(()) };
        let both_ways = end.flow.traffic.traits().both_ways;
        for clamped in &self.clamped {
            context.sink.warning(format!("{}: {}", end.flow.name, clamped.message()), clamped.hint());
        }
        let conversation = self.conversation.as_ref();
        let task = Task { end, context, totals, conversation, options, sends, both_ways };
        let width = end.sample.unwrap_or(crate::collect::DEFAULT);
        let streams: Vec<Stream> = (0..self.sockets.len() as u64)
            .map(|number| Stream {
                number,
                counter: Mutex::new(Counter::new(width, end.start())),
                sockets: Mutex::default(),
                settled: OnceLock::new(),
                over: AtomicBool::new(false),
            })
            .collect();
        std::thread::scope(|scope| {
            let mut outcome = Ok(());
            for (stream, (socket, address)) in streams.iter().zip(self.sockets) {
                let task = &task;
                let spawned = std::thread::Builder::new()
                    .name(format!("{}.{}", end.flow.name, stream.number))
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || task.stream(stream, socket, address));
                if let Err(error) = spawned {
                    stream.over.store(true, Ordering::Release);
                    outcome = Err(TrafficError::Thread(error));
                }
            }
            task.collect(&streams, width);
            // A shutdown wakes a thread that sleeps in a write.
            for stream in &streams {
                stream.shut();
            }
            outcome
        })
    }
}

/// This end's control and options, and whether it sends.
fn ours(end: &End) -> Option<(&str, SocketOptions, bool)> {
    let Connections { cc, sender, receiver } = end.flow.traffic.connections()?;
    let sends = (end.role == Role::Server) == end.reverse;
    Some((&cc.name, end.options(if sends { sender } else { receiver }), sends))
}

impl Task<'_> {
    fn stream(&self, stream: &Stream, socket: Socket, address: SocketAddr) {
        let flow = &self.end.flow;
        if let Some(hosted) = self.conversation.host(self, stream, &socket, address) {
            if let Err(error) = hosted {
                self.context.sink.failed(flow, &error);
            }
            return stream.over.store(true, Ordering::Release);
        }
        let connected = self.connected(stream, socket, address).inspect_err(|_| {
            // A row all the same: whoever adds up streams shall see that this one carried nothing. Its SYNs count.
            let (start, now) = (self.end.start(), self.context.clock.now());
            let sends = self.sends || self.both_ways;
            let nothing = Summary {
                stream: stream.number,
                start,
                end: now.min(self.context.clock.duration).max(start),
                bytes_received: (!self.sends || self.both_ways).then_some(0),
                ..if sends { stream.settle().summary() } else { Summary::default() }
            };
            self.context.sink.summary(flow, &nothing);
        });
        let done = connected.and_then(|socket| {
            let Some(socket) = socket else { return Ok(()) };
            if self.sends {
                // An event of a connection is its sender's to report, as both ends have it.
                let now = self.context.clock.now();
                let ecn = agreed_ecn(self.end, &socket);
                self.context.sink.event(flow, now, stream.number, "established", ecn);
                self.send(stream, &socket, address)
            } else {
                self.receive(stream, &socket, address)
            }
        });
        if let Err(error) = done {
            self.context.sink.failed(flow, &error);
        }
        stream.over.store(true, Ordering::Release);
    }

    /// An error as the run ends is not a failure: the other end may have ended a little earlier. `instead` is for a run that has
    /// its time, false for one that is ended early.
    fn forgive(&self, result: io::Result<bool>, instead: bool) -> io::Result<bool> {
        if result.is_err() {
            let begin = self.context.clock.now();
            while !self.context.over() && self.context.clock.now() < begin + MOMENT {
                std::thread::sleep(ATTENTION / 20);
            }
        }
        let has_its_time = || self.context.clock.now() >= self.context.clock.duration;
        if self.context.over() { result.or_else(|_| Ok(instead && has_its_time())) } else { result }
    }

    fn connected(
        &self,
        stream: &Stream,
        socket: Socket,
        address: SocketAddr,
    ) -> Result<Option<Arc<Socket>>, TrafficError> {
        match self.end.role {
            Role::Server => match socket::accept(&socket, address, self.context) {
                // The run was ended before the flow was to start.
                Err(_) if self.context.clock.now() < self.end.start() => Ok(None),
                accepted => Ok(Some(self.counted(stream, accepted?))),
            },
            Role::Client => {
                if !self.context.sleep_until(self.end.start()) {
                    return Ok(None);
                }
                let socket = self.counted(stream, socket);
                // Timeouts of its SYN are events, too.
                let watch = || {
                    if self.sends || self.both_ways {
                        self.watch(stream, &socket, address);
                    }
                };
                socket::connect(&socket, address, self.context, watch)
                    .inspect_err(|_| self.context.unwatch_unanswered(&socket, self.ports(stream, &socket)))?;
                Ok(Some(socket))
            }
        }
    }

    /// A socket whose figures are the stream's if it sends. That of who only receives is its thread's alone: closing it
    /// notifies the sender that all was read.
    fn counted(&self, stream: &Stream, socket: Socket) -> Arc<Socket> {
        let socket = Arc::new(socket);
        if self.sends || self.both_ways {
            stream.open(socket.clone());
        }
        socket
    }

    /// Counts payload that was read; false: it came when the run was over, and does not count.
    pub fn arrived(&self, stream: &Stream, bytes: u64) -> bool {
        let mut counter = stream.counter.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that nothing is added to an interval the collector has reported.
        let now = self.context.clock.now();
        if now >= self.context.clock.duration || counter.is_closed() {
            return false;
        }
        counter.add(now, bytes);
        drop(counter);
        self.totals.received.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// When the source stops.
    pub fn stop(&self) -> u64 {
        self.end.stop(self.context.clock.duration)
    }

    /// Whether the run leaves the flow the time it was given: of one without an amount of work, that is all its work.
    pub fn has_its_time(&self) -> bool {
        self.end.has_its_time(self.context.clock.duration)
    }

    fn send(&self, stream: &Stream, socket: &Arc<Socket>, address: SocketAddr) -> Result<(), TrafficError> {
        let cpu = clock::thread_cpu();
        let ports = self.watch(stream, socket, address);
        let started = self.context.clock.now();
        let written = self.conversation.send(self, stream, socket);
        let written = self.forgive(written, self.conversation.bytes().is_none() && self.has_its_time());
        // Where the run cuts it off, it lasts until then.
        let done = written.is_ok() && !self.context.over();
        let drained = match &written {
            Ok(_) => self.forgive(self.drain(socket), false),
            Err(_) => Ok(false),
        };
        let ended = self.context.clock.now().min(self.context.clock.duration);
        self.context.unwatch(socket, ports);
        let closed = matches!(drained, Ok(true));
        // Whether all has arrived the receiver knows, also where the run ends before the connection does.
        let complete = matches!(written, Ok(true)) && drained.is_ok();
        let (received, last) = stream.received();
        let summary = Summary {
            stream: stream.number,
            start: if self.end.role == Role::Client { self.end.start() } else { started },
            end: last.filter(|_| done && self.both_ways).unwrap_or(ended),
            bytes_received: self.both_ways.then_some(received),
            ports: Some(ports),
            cpu_sender: Some((clock::thread_cpu() - cpu) as f64 / 1e9),
            complete,
            ..stream.settle().summary()
        };
        self.context.sink.summary(&self.end.flow, &summary);
        if written.is_err() || drained.is_err() {
            self.context.sink.event(&self.end.flow, ended, stream.number, "aborted", None);
        } else if closed {
            self.context.sink.event(&self.end.flow, ended, stream.number, "closed", None);
        }
        let broken = |source| TrafficError::of_connection(stream.number, address, source);
        written.and(drained).map(|_| ()).map_err(broken)
    }

    /// Says that no more is coming and waits until the other end has read everything; false if the run ends
    /// first.
    fn drain(&self, socket: &Socket) -> io::Result<bool> {
        socket.shutdown(Shutdown::Write)?;
        socket.set_read_timeout(Some(ATTENTION))?;
        let mut byte = [MaybeUninit::uninit(); 1];
        while !self.context.over() {
            match socket.recv(&mut byte) {
                // As the run ends the other end closes as well.
                Ok(0) => return Ok(!self.context.over()),
                Ok(_) => {}
                Err(error) if waited(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// A socket's own port and the other end's, which a client knows before it is connected.
    pub fn ports(&self, stream: &Stream, socket: &Socket) -> (u16, u16) {
        let (own, other) = ports(socket);
        let asked = self.end.ports.get(stream.number as usize).filter(|_| self.end.role == Role::Client);
        (own, asked.copied().unwrap_or(other))
    }

    /// Has a sender's socket sampled; its own port and the other end's.
    pub fn watch(&self, stream: &Stream, socket: &Socket, address: SocketAddr) -> (u16, u16) {
        let ports = self.ports(stream, socket);
        let paced = self.options.pacing || self.options.max_pacing_rate.is_some();
        let (flow, opened) = (self.end.flow.name.as_str().into(), self.end.role == Role::Client);
        let owner = Owner { flow, stream: stream.number, paced, opened, greeting: 0 };
        self.context.registry.add(ports.0, ports.1, address.is_ipv6(), owner);
        ports
    }

    fn receive(&self, stream: &Stream, socket: &Socket, address: SocketAddr) -> Result<(), TrafficError> {
        let cpu = clock::thread_cpu();
        let watched = self.both_ways.then(|| self.watch(stream, socket, address));
        let started = self.context.clock.now();
        let read = self.forgive(self.conversation.receive(self, stream, socket), false);
        let over = self.context.clock.now();
        if let Some(ports) = watched {
            self.context.unwatch(socket, ports);
        }
        let sent = if self.both_ways { stream.settle().summary() } else { Summary::default() };
        if self.both_ways {
            // As closing it would: the collector still reads its figures. It fails where the other end is gone.
            let _ = socket.shutdown(Shutdown::Write);
        }
        let (total, last) = stream.received();
        // One that is cut off has all of the run, also where nothing comes any more.
        let cut_off = matches!(read, Ok(false)) && self.conversation.bytes() != Some(total);
        let ended = last.filter(|_| !cut_off).unwrap_or(over).min(self.context.clock.duration);
        let complete = match (&read, self.conversation.bytes()) {
            (Err(_), _) => false,
            (Ok(_), Some(bytes)) => total == bytes,
            (Ok(ended), None) => *ended || over >= self.context.clock.duration,
        };
        self.context.sink.summary(
            &self.end.flow,
            &Summary {
                stream: stream.number,
                start: if self.end.role == Role::Client { self.end.start() } else { started },
                end: ended,
                bytes_received: Some(total),
                cpu_receiver: Some((clock::thread_cpu() - cpu) as f64 / 1e9),
                complete,
                ..sent
            },
        );
        if read.as_ref().is_err_and(is_timeout) {
            // Otherwise the sender, which is the other end, reports how the connection ends.
            self.context.sink.event(&self.end.flow, ended, stream.number, "aborted", None);
        }
        read.map(|_| ()).map_err(|source| TrafficError::of_connection(stream.number, address, source))
    }
}

/// Counters of what connections have sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub bytes: u64,
    pub retransmits: u64,
    pub segments: u64,
    rtos: u64,
}

impl Sent {
    pub fn by(socket: &Socket) -> Sent {
        let Ok(info) = TcpInfo::of(socket.as_raw_fd()) else { return Sent::default() };
        Sent {
            bytes: info.first_sent(),
            retransmits: u64::from(info.total_retrans),
            segments: u64::from(info.data_segs_out),
            rtos: u64::from(info.total_rto),
        }
    }

    /// As columns of a stream's row.
    pub fn summary(self) -> Summary {
        Summary {
            bytes_sent: Some(self.bytes),
            segments_sent: Some(self.segments),
            retransmits: Some(self.retransmits),
            rtos: TcpInfo::counts_rtos().then_some(self.rtos),
            ..Summary::default()
        }
    }
}

impl Add for Sent {
    type Output = Sent;

    fn add(self, other: Sent) -> Sent {
        Sent {
            bytes: self.bytes + other.bytes,
            retransmits: self.retransmits + other.retransmits,
            segments: self.segments + other.segments,
            rtos: self.rtos + other.rtos,
        }
    }
}

/// The kind of ECN that both ends of a connection have agreed on. The kernel says that they have; where a host asks
/// for accurate ECN it does not say of which kind.
pub(crate) fn agreed_ecn(end: &End, socket: &Socket) -> Option<&'static str> {
    let Connections { sender, receiver, .. } = end.flow.traffic.connections()?;
    let may_be_accurate = [sender, receiver].iter().any(|settings| settings.ecn == Ecn::Accecn);
    let info = TcpInfo::of(socket.as_raw_fd()).ok()?;
    (info.has_ecn() && !may_be_accurate).then_some("ECN")
}

/// A socket's own port and the other end's.
pub(crate) fn ports(socket: &Socket) -> (u16, u16) {
    let port = |address: io::Result<socket2::SockAddr>| {
        address.ok().and_then(|address| address.as_socket()).map_or(0, |address| address.port())
    };
    (port(socket.local_addr()), port(socket.peer_addr()))
}

/// Whether a call ended for want of anything to do. (`TimedOut` is ETIMEDOUT: TCP has given the connection up.)
pub(crate) fn waited(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
