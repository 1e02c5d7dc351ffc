//! `tcplab-agent echo-serve` and `echo-run`: the two ends of `tcplab echo`, between any two machines.
//!
//! Both read one JSON object with their configuration from the first line of input, write events to
//! standard output, and end when their input does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_probe::clock;
use tcplab_tables::{ECHO_HEAD, EchoTally};
use tcplab_traffic::echo::{
    self, Answer, Connected, EchoError, Greeting, Job, Keep, Limit, Limits, Live, Observer, Round, Served,
    Server, ServerObserver, Unserved,
};
use tcplab_traffic::{SocketOptions, TrafficError};

use crate::config;
use crate::output;

/// How often a run reports its progress.
const TELL: Duration = Duration::from_millis(250);
/// Connections that are not served are reported one by one up to so many a second, then counted.
const REPORTS_PER_SECOND: u64 = 10;

type Socket = socket2::Socket;

/// Configuration of `echo-serve`.
#[derive(Debug, Deserialize)]
struct Serve {
    /// Where it listens.
    addresses: Vec<SocketAddr>,
    /// Clients at a time.
    clients: u32,
    /// Longest message, bytes.
    size: u32,
    /// Clients may have it poll.
    busy_poll: bool,
    /// CPUs for its threads, in turn.
    #[serde(default)]
    cpus: Vec<usize>,
}

/// Configuration of `echo-run`. Times in ns.
#[derive(Debug, Deserialize)]
struct Run {
    addresses: Vec<SocketAddr>,
    sizes: Vec<u32>,
    iterations: u64,
    clients: usize,
    warmup: u64,
    interval: u64,
    timeout: u64,
    nodelay: bool,
    busy_poll: bool,
    /// Congestion control of both ends; empty: the kernels' defaults.
    control: String,
    #[serde(default)]
    cpus: Vec<usize>,
    /// Write every round trip there.
    raw: Option<PathBuf>,
}

/// Serves until the input ends.
pub fn serve() -> u8 {
    let stop = Arc::new(AtomicBool::new(false));
    let config: Serve = match config::read(&stop, "use `tcplab echo`") {
        Ok(config) => config,
        Err(code) => return code,
    };
    let mut listeners = Vec::new();
    let mut addresses = Vec::new();
    for address in config.addresses {
        match echo::listen(address, &SocketOptions::default(), "") {
            Ok((listener, port)) => {
                listeners.push(listener);
                addresses.push(SocketAddr::new(address.ip(), port).to_string());
            }
            Err(error) => return failed(&error),
        }
    }
    output::emit(&json!({
        "event": "listening", "protocol": echo::VERSION, "addresses": addresses, "pid": std::process::id(),
    }));
    let limits = Limits {
        clients: config.clients,
        size: config.size,
        busy_poll: config.busy_poll,
        ..Limits::default()
    };
    let server = Server::new(listeners, limits, config.cpus);
    let reporter = ServerReporter::default();
    let outcome = std::thread::scope(|scope| {
        let counted = scope.spawn(|| reporter.count(&stop));
        let outcome = server.run(Limit { stop: &stop, end: u64::MAX }, None, &reporter);
        stop.store(true, Ordering::Relaxed);
        let _ = counted.join();
        outcome
    });
    output::emit(&json!({"event": "done"}));
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            output::refuse(None, &format!("cannot wait for connections: {error}"), "end other programs");
            3
        }
    }
}

/// Runs the clients to their end.
pub fn run() -> u8 {
    let stop = Arc::new(AtomicBool::new(false));
    let config: Run = match config::read(&stop, "use `tcplab echo`") {
        Ok(config) => config,
        Err(code) => return code,
    };
    let raw = match config.raw.as_ref().map(|path| Raw::create(path)).transpose() {
        Ok(raw) => raw,
        Err(error) => {
            let path = config.raw.unwrap_or_default();
            output::refuse(None, &format!("cannot write {}: {error}", path.display()), "write elsewhere");
            return 3;
        }
    };
    let options = SocketOptions { nagle: !config.nodelay, ..SocketOptions::default() };
    let open = |client: usize| {
        echo::open(config.addresses[client % config.addresses.len()], &options, &config.control)
    };
    let sockets = match (0..config.clients).map(open).collect::<Result<Vec<_>, _>>() {
        Ok(sockets) => sockets,
        Err(error) => return failed(&error),
    };
    let head = config.warmup.max(ECHO_HEAD);
    let keep = match &raw {
        Some(_) => Keep { rounds: u64::MAX, tally_from: head },
        None => Keep::head(head),
    };
    let job = Job {
        addresses: config.addresses,
        sizes: config.sizes,
        iterations: config.iterations,
        interval: config.interval,
        stop: u64::MAX,
        timeout: config.timeout,
        nodelay: config.nodelay,
        busy_poll: config.busy_poll,
        control: config.control,
        cpus: config.cpus,
        keep,
        zero: clock::now(),
    };
    let lives: Vec<Live> = sockets.iter().map(|_| Live::default()).collect();
    let reporter = ClientReporter { head, raw, heads: Mutex::default(), failed: AtomicBool::new(false) };
    let over = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| report_progress(&lives, &job, &over));
        let outcome = job.run(sockets, &lives, Limit { stop: &stop, end: u64::MAX }, &reporter);
        over.store(true, Ordering::Release);
        outcome
    });
    if let Err(error) = outcome {
        output::refuse(None, &format!("cannot start a thread: {error}"), "use fewer clients");
    }
    reporter.finish();
    output::emit(&json!({"event": "done", "time": clock::now() - job.zero}));
    0
}

fn failed(error: &TrafficError) -> u8 {
    output::refuse(None, &error.to_string(), &error.hint());
    3
}

/// Tells now and then how far each client has come.
fn report_progress(lives: &[Live], job: &Job, over: &AtomicBool) {
    while !over.load(Ordering::Acquire) {
        // In slices, so as not to hold up the end.
        for _ in 0..5 {
            std::thread::sleep(TELL / 5);
            if over.load(Ordering::Acquire) {
                return;
            }
        }
        let clients: Vec<Value> = lives
            .iter()
            .map(|live| {
                let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
                json!({
                    "size": job.sizes.get(load(&live.place) as usize),
                    "done": load(&live.done), "sum": load(&live.sum), "max": load(&live.max),
                })
            })
            .collect();
        output::emit(&json!({"event": "progress", "time": clock::now() - job.zero, "clients": clients}));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells what clients measured.
struct ClientReporter {
    head: u64,
    raw: Option<Raw>,
    /// The first round trips at its present size, by client.
    heads: Mutex<BTreeMap<u32, Vec<(u64, u64)>>>,
    failed: AtomicBool,
}

impl ClientReporter {
    fn finish(&self) {
        if let Some(raw) = &self.raw
            && let Err(error) = lock(&raw.file).flush()
        {
            self.unwritable(raw, &error);
        }
    }

    fn unwritable(&self, raw: &Raw, error: &io::Error) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            let message = format!("cannot write {}: {error}", raw.path.display());
            output::warn(&message, "free space on this disk, or write elsewhere");
        }
    }
}

impl Observer for ClientReporter {
    fn connected(&self, client: u32, _: &Socket, connected: &Connected) {
        output::emit(&json!({
            "event": "connected", "client": client, "port": connected.local_port, "mss": connected.mss,
            "control": connected.control, "server_polls": connected.server_polls, "words": connected.words,
        }));
    }

    fn rounds(&self, client: u32, size: u32, rounds: &[Round]) {
        let head = rounds.iter().take_while(|round| round.iteration < self.head);
        lock(&self.heads).entry(client).or_default().extend(head.map(|round| (round.time, round.rtt)));
        if let Some(raw) = &self.raw
            && let Err(error) = raw.write(client, size, rounds)
        {
            self.unwritable(raw, &error);
        }
    }

    fn size_done(&self, client: u32, size: u32, done: u64, tally: &EchoTally) {
        let head = lock(&self.heads).remove(&client).unwrap_or_default();
        let batches = tally.batches();
        output::emit(&json!({
            "event": "series", "client": client, "size": size, "done": done, "rounds": head,
            "buckets": tally.buckets().collect::<Vec<_>>(),
            "batches": batches.map(|b| (b.iteration, b.time, b.count, b.mean(), b.max)).collect::<Vec<_>>(),
        }));
    }

    fn ended(&self, client: u32, _: Option<(&Socket, u64)>, outcome: Result<(), EchoError>) {
        let (error, hint) = match &outcome {
            Err(error) if !error.is_over() => (Some(error.to_string()), Some(error.hint())),
            _ => (None, None),
        };
        output::emit(&json!({
            "event": "ended", "client": client, "complete": outcome.is_ok(), "error": error, "hint": hint,
        }));
    }
}

/// Every round trip, as CSV.
struct Raw {
    path: PathBuf,
    file: Mutex<BufWriter<File>>,
}

impl Raw {
    fn create(path: &std::path::Path) -> io::Result<Raw> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "client,size,iteration,time_ns,rtt_ns")?;
        Ok(Raw { path: path.to_owned(), file: Mutex::new(file) })
    }

    fn write(&self, client: u32, size: u32, rounds: &[Round]) -> io::Result<()> {
        let mut file = lock(&self.file);
        for Round { iteration, time, rtt } in rounds {
            writeln!(file, "{client},{size},{iteration},{time},{rtt}")?;
        }
        Ok(())
    }
}

/// Reports connections, served or not.
#[derive(Default)]
struct ServerReporter {
    reported: AtomicU64,
    unreported: AtomicU64,
}

impl ServerReporter {
    /// Once a second: how many more connections were rejected.
    fn count(&self, stop: &AtomicBool) {
        while clock::sleep_until(clock::now() + 1_000_000_000, stop) {
            self.reported.store(0, Ordering::Relaxed);
            let unreported = self.unreported.swap(0, Ordering::Relaxed);
            if unreported > 0 {
                output::emit(&json!({"event": "unserved", "count": unreported}));
            }
        }
    }
}

impl ServerObserver for ServerReporter {
    fn accepted(&self, peer: SocketAddr, greeting: &Greeting, _: &Answer, _: &Socket, _: &Arc<AtomicU64>) {
        output::emit(&json!({
            "event": "accepted", "peer": peer.to_string(), "client": greeting.client,
            "clients": greeting.clients, "iterations": greeting.iterations, "sizes": greeting.sizes,
        }));
    }

    fn ended(&self, peer: SocketAddr, greeting: &Greeting, _: &Socket, served: Served) {
        let client = greeting.client;
        let error = served
            .broken
            .map(|(size, iteration, source)| EchoError::Lost { client, size, iteration, source }.to_string());
        output::emit(&json!({
            "event": "ended", "peer": peer.to_string(), "client": client, "messages": served.messages,
            "error": error,
        }));
    }

    fn unserved(&self, peer: SocketAddr, why: &Unserved) {
        if self.reported.fetch_add(1, Ordering::Relaxed) < REPORTS_PER_SECOND {
            let reason = why.to_string();
            output::emit(
                &json!({"event": "unserved", "peer": peer.to_string(), "reason": reason, "count": 1}),
            );
        } else {
            self.unreported.fetch_add(1, Ordering::Relaxed);
        }
    }
}
