//! An accelerator in a node, and its rows while a run goes on; or by itself, as `tcplab-agent accelerate`.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tcplab_accelerator::{Accelerator, AcceleratorError, Counts, LegSample, Sample};
use tcplab_tables::{LegRow, Symbol};
use tcplab_traffic::Clock;

use crate::output;
use crate::protocol::Accelerate;
use crate::recorder::{Recorder, Rows};
use crate::told::told;

/// Without rows, how often memory is looked at.
const UNSEEN: Duration = Duration::from_millis(100);

/// How often `tcplab-agent accelerate` tells its counts.
const TELL: Duration = Duration::from_secs(1);

/// Splits connections until the input ends. The first line is the plan's accelerator; congestion controls by their names in this
/// kernel.
pub fn main() -> u8 {
    let stop = Arc::new(AtomicBool::new(false));
    let accelerator = match told(&stop, "docs/agent-protocol.md lists the settings").map(Accelerator::open) {
        Ok(Ok(accelerator)) => accelerator,
        Ok(Err(error)) => {
            output::refuse(None, &error.to_string(), &error.hint());
            return 3;
        }
        Err(code) => return code,
    };
    output::emit(&json!({"event": "accelerating", "pid": std::process::id()}));
    let mut told = Instant::now();
    let outcome = accelerator.run(
        UNSEEN,
        || stop.load(Ordering::Relaxed),
        |counts, samples| {
            if told.elapsed() >= TELL {
                told = Instant::now();
                let held: u64 = samples.map(|sample| sample.exposed_up() + sample.exposed_down()).sum();
                let mut event = facts(counts, held);
                event["event"] = "counts".into();
                output::emit(&event);
            }
        },
    );
    match outcome {
        Ok(counts) => {
            let mut event = facts(&counts, 0);
            event["event"] = "done".into();
            output::emit(&event);
            0
        }
        Err(error) => {
            output::refuse(None, &error.to_string(), &error.hint());
            4
        }
    }
}

fn facts(counts: &Counts, held: u64) -> Value {
    let Counts { open, accepted, broken, refused, passed } = *counts;
    json!({
        "open": open, "accepted": accepted, "broken": broken, "refused": refused, "passed": passed, "held": held,
    })
}

/// An accelerator that runs until the process ends.
#[derive(Clone, Default)]
pub struct Accelerating(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    counts: Counts,
    /// The run that rows are for.
    run: Option<(Arc<Recorder>, Clock)>,
    /// Most bytes held at a time in this run.
    held: u64,
}

impl Accelerating {
    /// Starts to split connections.
    pub fn start(&self, asked: Accelerate) -> Result<(), AcceleratorError> {
        let Accelerate { accelerator, streams, sample } = asked;
        let known: HashMap<SocketAddr, (String, u64)> = streams
            .into_iter()
            .map(|at| (SocketAddr::new(at.address, at.port), (at.flow, at.stream)))
            .collect();
        let accelerator = Accelerator::open(accelerator)?;
        let interval = sample.map_or(UNSEEN, Duration::from_nanos);
        let state = self.clone();
        let thread = std::thread::Builder::new().name("accelerator".into()).spawn(move || {
            let ended = accelerator.run(
                interval,
                || false,
                |counts, samples| {
                    state.lock().observe(counts, samples, &known, sample.is_some());
                },
            );
            if let Err(error) = ended {
                output::refuse(None, &error.to_string(), &error.hint());
            }
        });
        thread.map(drop).map_err(AcceleratorError::Events)
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
        facts(&state.counts, state.held)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn observe(
        &mut self,
        counts: &Counts,
        samples: &mut dyn Iterator<Item = Sample>,
        known: &HashMap<SocketAddr, (String, u64)>,
        rows_wanted: bool,
    ) {
        self.counts = *counts;
        let Some((recorder, clock)) = &self.run else { return };
        let time = clock.now();
        if time == 0 || time > clock.duration {
            return;
        }
        let mut rows = recorder.rows();
        let mut held = 0;
        for sample in samples {
            let (up, down) = (sample.exposed_up(), sample.exposed_down());
            held += up + down;
            if rows_wanted {
                let owner = known.get(&sample.server.peer);
                let owner = owner.map(|(flow, stream)| (rows.symbol(flow), *stream));
                push(&mut rows, time, owner, sample.connection, "client", sample.client, up);
                push(&mut rows, time, owner, sample.connection, "server", sample.server, down);
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
    exposed: u64,
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
        cwnd: u64::from(info.snd_cwnd),
        srtt: info.srtt(),
        retransmits: u64::from(info.total_retrans),
        rwnd: u64::from(info.snd_wnd),
    });
}
