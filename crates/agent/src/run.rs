//! One run on this node: starts flows and samplers together, and reports when they end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tcplab_probe::clock;
use tcplab_probe::interface::interfaces;
use tcplab_probe::sockets::{Registry, Sampler};
use tcplab_traffic::{Clock, Context, Handle, PATIENCE, Prepared};

use crate::capture::{Capture, Seen};
use crate::output;
use crate::protocol::Probe;
use crate::proxy::Proxy;
use crate::recorder::Recorder;
#[cfg(feature = "local")]
use crate::routes;
use crate::run_delay::RunDelay;
use crate::sampling::{self, Kept, Latest};

/// How often there may be something to do, ns.
const TICK: u64 = 50_000_000;
/// How often rows are written, ns. Small batches stay in memory that is used again, large ones fault in new
/// pages.
const FLUSH: u64 = 5 * TICK;
/// How often progress is reported, ns.
const TELL: u64 = 2 * TICK;

/// A run in progress.
pub struct Run {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    /// How long its threads may take to notice that it is over.
    patience: Duration,
}

/// Counters of each interface's capture.
type SeenBy = Vec<(String, Arc<Seen>)>;

/// Parts of a run on this node.
pub struct Parts {
    /// Ends of flows, ready.
    pub flows: Vec<Prepared>,
    /// Sampling.
    pub probe: Probe,
    /// Interfaces that are captured.
    pub captures: Vec<Capture>,
    /// The accelerator and the cache of this node.
    pub proxies: Vec<Proxy>,
    /// Where rows go.
    pub recorder: Arc<Recorder>,
}

impl Run {
    /// Launches everything; it ends by itself at the end of the run's time.
    pub fn start(parts: Parts, clock: Clock) -> std::io::Result<Run> {
        let stop = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicBool::new(false));
        let patience = parts.flows.iter().map(Prepared::patience).max().unwrap_or(PATIENCE);
        let thread = thread::Builder::new().name("run".into()).spawn({
            let (stop, written) = (stop.clone(), written.clone());
            move || {
                let facts = conduct(parts, clock, &stop, patience);
                // Before the report: its reader may start the next run at once.
                written.store(true, Ordering::Release);
                output::emit(&json!({"event": "done", "time": clock.now(), "facts": facts}));
            }
        })?;
        Ok(Run { stop, written, thread, patience })
    }

    /// Ends it now.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether everything is written, so that another run may start.
    pub fn is_over(&self) -> bool {
        self.written.load(Ordering::Acquire)
    }

    /// Ends it and waits, for a bounded time, until everything is written and reported.
    pub fn end(&self) {
        self.stop();
        let begin = Instant::now();
        while !self.thread.is_finished() && begin.elapsed() < self.patience + Duration::from_secs(1) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Carries a run out; returns what there is to say of it.
fn conduct(parts: Parts, clock: Clock, stop: &Arc<AtomicBool>, patience: Duration) -> Value {
    let Parts { flows, probe, captures, proxies, recorder } = parts;
    let registry = Arc::new(Registry::default());
    let dropped_before = dropped();
    let context = Context { clock, stop: stop.clone(), sink: recorder.clone(), registry };
    // Before the traffic, which they are to see from its first packet.
    let (mut helpers, seen) = start_captures(captures, &context);
    let (samplers, kept) = start_samplers(&probe, &context, &recorder);
    helpers.extend(samplers);
    for proxy in &proxies {
        proxy.record(&recorder, clock);
    }
    let mut run_delay = RunDelay::new();
    let mut handles = Vec::new();
    for flow in flows {
        match flow.start(context.clone()) {
            Ok(handle) => handles.push(handle),
            Err(error) => output::refuse(None, &error.to_string(), &error.hint()),
        }
    }

    let mut writable = true;
    let mut next = TICK;
    loop {
        let due = next.min(clock.duration);
        let last = !clock::sleep_until(clock.instant(due), stop) || due == clock.duration;
        if last || next.is_multiple_of(FLUSH) {
            run_delay.read(clock.now());
            if writable {
                writable = written(recorder.flush());
            }
        }
        if last || next.is_multiple_of(TELL) {
            progress(&clock, &handles, &kept.latest);
        }
        if last {
            break;
        }
        next += TICK;
    }
    stop.store(true, Ordering::Relaxed);
    let late = wait(handles.iter().map(|h| (&h.thread, h.name.as_str())), &helpers, patience);
    let proxied: Vec<_> = proxies.iter().map(|proxy| (proxy.name(), proxy.finish())).collect();
    if writable {
        written(recorder.finish());
    }
    let mut facts = facts(&recorder, &kept, &run_delay, &seen, late);
    facts["dropped"] = more(&dropped(), &dropped_before).into();
    for (name, counts) in proxied {
        facts[name] = counts;
    }
    facts
}

/// The packets that each interface has dropped instead of sending them, so far.
fn dropped() -> BTreeMap<String, u64> {
    let found = interfaces().unwrap_or_default();
    found.into_iter().map(|(name, interface)| (name, interface.tx_dropped)).collect()
}

/// The counts that have grown, and by how much.
fn more(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> Map<String, Value> {
    let grown = |name: &String, count: &u64| count - count.min(before.get(name).unwrap_or(&0));
    let all = now.iter().map(|(name, count)| (name.clone(), grown(name, count)));
    all.filter(|&(_, count)| count > 0).map(|(name, count)| (name, count.into())).collect()
}

fn start_captures(captures: Vec<Capture>, context: &Context) -> (Vec<JoinHandle<()>>, SeenBy) {
    let (mut threads, mut all) = (Vec::new(), Vec::new());
    for capture in captures {
        let seen = Arc::new(Seen::default());
        all.push((capture.interface().to_owned(), seen.clone()));
        let context = context.clone();
        let thread = thread::Builder::new().name("capture".into()).spawn(move || {
            if let Err(error) = capture.run(&context.stop, &seen) {
                output::refuse(None, &error.to_string(), error.hint());
            }
        });
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                output::refuse(None, &format!("cannot start a capture: {error}"), "end other programs")
            }
        }
    }
    (threads, all)
}

struct Schedules {
    sockets: Arc<Kept>,
    hosts: Arc<Kept>,
    latest: Arc<Latest>,
}

fn start_samplers(
    probe: &Probe,
    context: &Context,
    recorder: &Arc<Recorder>,
) -> (Vec<JoinHandle<()>>, Schedules) {
    let kept = Schedules { sockets: Arc::default(), hosts: Arc::default(), latest: Arc::default() };
    let mut threads = Vec::new();
    if let Some(interval) = probe.sockets {
        let (context, recorder) = (context.clone(), recorder.clone());
        let (all, latest, kept) = (probe.all_sockets, kept.latest.clone(), kept.sockets.clone());
        let controls = sampling::published(&probe.controls, &recorder);
        threads.push(thread::Builder::new().name("sockets".into()).spawn(move || {
            let sampled = Sampler::open(all, controls).and_then(|sampler| {
                sampling::sockets(interval, sampler, &context, &recorder, &kept, &latest)
            });
            if let Err(error) = sampled {
                output::refuse(None, &error.to_string(), "leave out `sample: {sockets: ...}`");
            }
        }));
    }
    if let Some(interval) = probe.hosts {
        let (context, recorder, probe) = (context.clone(), recorder.clone(), probe.clone());
        let kept = kept.hosts.clone();
        threads.push(thread::Builder::new().name("hosts".into()).spawn(move || {
            sampling::hosts(
                interval,
                probe.machine,
                &probe.processes,
                context.clock,
                &context.stop,
                &recorder,
                &kept,
            );
        }));
    }
    #[cfg(feature = "local")]
    if probe.routes {
        let (context, recorder) = (context.clone(), recorder.clone());
        threads.push(thread::Builder::new().name("routes".into()).spawn(move || {
            if let Err(error) = routes::record(context.clock, &context.stop, &recorder) {
                output::warn(&format!("routes are not recorded: {error}"), "");
            }
        }));
    }
    let mut running = Vec::new();
    for thread in threads {
        match thread {
            Ok(thread) => running.push(thread),
            Err(error) => {
                output::refuse(None, &format!("cannot start a sampler: {error}"), "end other programs")
            }
        }
    }
    (running, kept)
}

/// Reports a failure to write, once; nothing more is written then.
fn written(result: Result<(), crate::recorder::WriteError>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            output::refuse(None, &error.to_string(), error.hint());
            false
        }
    }
}

fn progress(clock: &Clock, handles: &[Handle], latest: &Latest) {
    let mut flows = Map::new();
    for handle in handles {
        let received = handle.totals.received.load(Ordering::Relaxed);
        let sent = handle.totals.sent.load(Ordering::Relaxed);
        let mut flow = json!({"received": received, "sent": sent});
        if let Some((cwnd, srtt)) = latest.of(&handle.name) {
            flow["cwnd"] = json!(cwnd);
            flow["srtt"] = json!(srtt);
        }
        flows.insert(handle.name.clone(), flow);
    }
    output::emit(&json!({"event": "progress", "time": clock.now(), "flows": flows}));
}

/// Waits for all threads for a bounded time; the names of those that did not end.
fn wait<'a>(
    flows: impl Iterator<Item = (&'a JoinHandle<()>, &'a str)>,
    helpers: &'a [JoinHandle<()>],
    patience: Duration,
) -> Vec<&'a str> {
    let begin = Instant::now();
    let all: Vec<_> =
        flows.chain(helpers.iter().map(|h| (h, h.thread().name().unwrap_or_default()))).collect();
    while all.iter().any(|(thread, _)| !thread.is_finished()) && begin.elapsed() < patience {
        thread::sleep(Duration::from_millis(2));
    }
    all.iter().filter(|(thread, _)| !thread.is_finished()).map(|(_, name)| *name).collect()
}

fn facts(
    recorder: &Recorder,
    kept: &Schedules,
    run_delay: &RunDelay,
    seen: &[(String, Arc<Seen>)],
    late: Vec<&str>,
) -> Value {
    let schedule = |kept: &Kept| {
        json!({
            "taken": kept.taken.load(Ordering::Relaxed),
            "missed": kept.missed.load(Ordering::Relaxed),
            "cpu": kept.cpu.load(Ordering::Relaxed) as f64 / 1e9,
        })
    };
    let captures: Map<String, Value> = seen
        .iter()
        .map(|(interface, seen)| {
            let (packets, drops) = (seen.packets.load(Ordering::Relaxed), seen.drops.load(Ordering::Relaxed));
            (interface.clone(), json!({"packets": packets, "drops": drops}))
        })
        .collect();
    json!({
        "captures": captures,
        "rows": recorder.written(),
        "socket_samples": schedule(&kept.sockets),
        "host_samples": schedule(&kept.hosts),
        "waiting": run_delay.statistics(),
        "did_not_end": late,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_those_of_the_run() {
        let before = BTreeMap::from([("eth0".to_owned(), 3), ("eth1".to_owned(), 7)]);
        let now = BTreeMap::from([("eth0".to_owned(), 5), ("eth1".to_owned(), 7), ("eth2".to_owned(), 1)]);
        assert_eq!(Value::from(more(&now, &before)), json!({"eth0": 2, "eth2": 1}));
    }
}
