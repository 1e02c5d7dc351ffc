//! A proxy in a node, whose legs are rows while a run goes on.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tcplab_accelerator::{AcceleratorError, LegSample, Sample};
use tcplab_tables::{LegRow, Symbol};
use tcplab_traffic::Clock;

use crate::config;
use crate::output;
use crate::protocol::Destination;
use crate::recorder::{Recorder, Rows};

/// Without rows, how often a proxy is looked at.
pub const UNSEEN: Duration = Duration::from_millis(100);
/// How often a proxy that runs by itself reports its counts.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The report of a proxy: its counts, and its connections.
pub type Observe<'a> = &'a mut dyn FnMut(Value, &mut dyn Iterator<Item = Sample>);

/// A proxy that runs until the process ends.
#[derive(Clone)]
pub struct Proxy {
    name: &'static str,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    counts: Value,
    /// The run that rows are for.
    run: Option<(Arc<Recorder>, Clock)>,
    /// Maximum bytes exposed at a time in this run.
    held: u64,
}

/// Runs a proxy by itself, as a command of the agent, until its input ends, and returns the exit code. The first line
/// of the input is its settings. It reports the event `started`, its counts every second, and `done`.
pub fn alone<A: DeserializeOwned, P>(
    started: &str,
    open: impl FnOnce(A) -> Result<P, AcceleratorError>,
    run: impl FnOnce(P, &dyn Fn() -> bool, Observe<'_>) -> Result<Value, AcceleratorError>,
) -> u8 {
    let stop = Arc::new(AtomicBool::new(false));
    let refuse = |error: AcceleratorError, code| {
        output::refuse(None, &error.to_string(), &error.hint());
        code
    };
    let proxy = match config::read(&stop, "docs/agent-protocol.md lists the settings").map(open) {
        Ok(Ok(proxy)) => proxy,
        Ok(Err(error)) => return refuse(error, 3),
        Err(code) => return code,
    };
    output::emit(&json!({"event": started, "pid": std::process::id()}));
    let mut reported = Instant::now();
    let done = run(proxy, &|| stop.load(Ordering::Relaxed), &mut |mut counts, samples| {
        if reported.elapsed() >= REPORT_INTERVAL {
            reported = Instant::now();
            let held: u64 = samples.map(|sample| sample.exposed_up() + sample.exposed_down()).sum();
            counts["event"] = "counts".into();
            counts["held"] = held.into();
            output::emit(&counts);
        }
    });
    match done {
        Ok(mut counts) => {
            counts["event"] = "done".into();
            output::emit(&counts);
            0
        }
        Err(error) => refuse(error, 4),
    }
}

impl Proxy {
    /// Runs it in a thread: `run` is given the interval of observation, the time since the run's start in ns, and whom to notify.
    /// `streams` say whose a connection is; `sample` is the interval of rows, ns.
    pub fn start(
        name: &'static str,
        streams: Vec<Destination>,
        sample: Option<u64>,
        run: impl FnOnce(Duration, &dyn Fn() -> u64, Observe<'_>) -> Result<(), AcceleratorError> + Send + 'static,
    ) -> Result<Proxy, AcceleratorError> {
        let known: HashMap<SocketAddr, (String, u64)> = streams
            .into_iter()
            .map(|at| (SocketAddr::new(at.address, at.port), (at.flow, at.stream)))
            .collect();
        let proxy = Proxy { name, state: Arc::default() };
        let (reported, interval) = (proxy.clone(), sample.map_or(UNSEEN, Duration::from_nanos));
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            let now = || reported.lock().run.as_ref().map_or(0, |(_, clock)| clock.now());
            let ended = run(interval, &now, &mut |counts, samples| {
                reported.lock().observe(counts, samples, &known, sample.is_some());
            });
            if let Err(error) = ended {
                output::refuse(None, &error.to_string(), &error.hint());
            }
        });
        thread.map(|_| proxy).map_err(AcceleratorError::Events)
    }

    /// Its name in a run's facts.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Rows go to this run from now on.
    pub fn record(&self, recorder: &Arc<Recorder>, clock: Clock) {
        let mut state = self.lock();
        state.run = Some((recorder.clone(), clock));
        state.held = 0;
    }

    /// No more rows; what there is to say.
    pub fn finish(&self) -> Value {
        let mut state = self.lock();
        state.run = None;
        let mut facts = state.counts.clone();
        facts["held"] = state.held.into();
        facts
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn observe(
        &mut self,
        counts: Value,
        samples: &mut dyn Iterator<Item = Sample>,
        known: &HashMap<SocketAddr, (String, u64)>,
        rows_wanted: bool,
    ) {
        self.counts = counts;
        let Some((recorder, clock)) = &self.run else { return };
        let time = clock.now();
        if time == 0 || time > clock.duration {
            return;
        }
        let mut rows = recorder.rows();
        let mut held = 0;
        for sample in samples {
            let (up, down) = (sample.exposed_up(), sample.exposed_down());
            let (to_client, to_server) = (sample.unsent_down(), sample.unsent_up());
            held += up + down;
            if rows_wanted {
                let owner = known.get(&sample.server.peer);
                let owner = owner.map(|(flow, stream)| (rows.symbol(flow), *stream));
                push(&mut rows, time, owner, sample.connection, "client", sample.client, [up, to_client]);
                push(&mut rows, time, owner, sample.connection, "server", sample.server, [down, to_server]);
            }
        }
        self.held = self.held.max(held);
    }
}

fn push(
    rows: &mut Rows,
    time: u64,
    owner: Option<(Symbol, u64)>,
    connection: u64,
    leg: &str,
    LegSample { info, .. }: LegSample,
    [exposed, unsent]: [u64; 2],
) {
    let (node, leg) = (rows.node(), rows.symbol(leg));
    rows.leg(LegRow {
        time,
        flow: owner.map(|(flow, _)| flow),
        stream: owner.map(|(_, stream)| stream),
        node,
        connection,
        leg,
        bytes_received: info.bytes_received,
        bytes_acked: info.bytes_acked,
        exposed,
        unsent,
        cwnd: u64::from(info.snd_cwnd),
        srtt: info.srtt(),
        retransmits: u64::from(info.total_retrans),
        rwnd: u64::from(info.snd_wnd),
    });
}
