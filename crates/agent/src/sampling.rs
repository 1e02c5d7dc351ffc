//! The threads that sample sockets and hosts on the run's clock.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tcplab_control::gauge::Place;
use tcplab_probe::diag::ControlInfo;
use tcplab_probe::hosts::{self, HostSample};
use tcplab_probe::sockets::{Sample, Sampler};
use tcplab_probe::{DiagError, Published, TcpInfo, clock, scheduling};
use tcplab_tables::{EventRow, GaugeRow, HostRow, SocketRow, Symbol};
use tcplab_traffic::{Clock, Context};

use crate::output;
use crate::protocol::{LoadedControl, LoadedGauge};
use crate::recorder::{Recorder, Rows};

/// How often [`Latest`] changes at most, ns.
const LATEST: u64 = 50_000_000;

/// How a schedule was kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// Samples taken.
    pub taken: AtomicU64,
    /// Samples left out because the one before took too long.
    pub missed: AtomicU64,
    /// CPU time of the sampling thread, ns.
    pub cpu: AtomicU64,
}

/// Calls `take` at every multiple of `interval` of the run's time. False from it ends the schedule.
fn on_schedule(
    interval: u64,
    clock: Clock,
    stop: &AtomicBool,
    kept: &Kept,
    mut take: impl FnMut(u64) -> bool,
) {
    scheduling::be_prompt();
    let mut next = 0;
    while next <= clock.duration && clock::sleep_until(clock.instant(next), stop) {
        if !take(clock.now()) {
            break;
        }
        kept.taken.fetch_add(1, Ordering::Relaxed);
        let following = (clock.now() / interval + 1) * interval;
        kept.missed.fetch_add((following - next) / interval - 1, Ordering::Relaxed);
        next = following;
    }
    kept.cpu.store(clock::thread_cpu(), Ordering::Relaxed);
}

/// Opens what controls of ours publish, and has their gauges recorded. Without it a run goes on, and knows less.
pub fn published(controls: &[LoadedControl], recorder: &Recorder) -> Vec<Published> {
    let open = |control: &LoadedControl| {
        let opened = Published::open(control.state, &control.registered, &control.phases);
        if let Err(error) = &opened {
            let what = format!("what {} publishes cannot be read: {error}", control.registered);
            output::warn(&what, "run as root of the host");
        }
        Some((opened.ok()?, Gauges::of(control, &mut recorder.rows())))
    };
    let (published, gauges) = controls.iter().filter_map(open).unzip();
    recorder.record_gauges(gauges);
    published
}

/// Figures that a control publishes in addition to its telemetry: place in its state, name and unit.
pub struct Gauges(Vec<(Place, Symbol, Symbol)>);

impl Gauges {
    fn of(control: &LoadedControl, rows: &mut Rows) -> Gauges {
        let known = control.gauges.iter().map(|gauge| {
            let LoadedGauge { offset, size, signed, scale, .. } = *gauge;
            let place = Place { offset, size, signed, scale };
            (place, rows.symbol(&gauge.name), rows.symbol(&gauge.unit))
        });
        Gauges(known.collect())
    }

    /// A row for each that has a value in `state`, of the socket sampled in `socket`.
    pub fn record(&self, rows: &mut Rows, socket: &SocketRow, state: &[u8]) {
        let SocketRow { time, flow, stream, node, .. } = *socket;
        for &(place, name, unit) in &self.0 {
            if let Some(value) = place.read(state) {
                rows.gauge(GaugeRow { time, flow, stream, node, name, value, unit });
            }
        }
    }
}

/// Congestion windows and smoothed RTTs of flows as of the latest sample, for progress reports.
#[derive(Default)]
pub struct Latest(Mutex<HashMap<Arc<str>, Sums>>);

/// Sums over the sockets of a flow.
#[derive(Clone, Copy, Default)]
struct Sums {
    sockets: u64,
    cwnd: u64,
    with_srtt: u64,
    srtt: u64,
}

impl Latest {
    /// Means over the sockets of `flow`: the window in segments, and the smoothed RTT in ns where one is known.
    pub fn of(&self, flow: &str) -> Option<(f64, Option<f64>)> {
        let sums = *self.0.lock().unwrap_or_else(PoisonError::into_inner).get(flow)?;
        let srtt = (sums.with_srtt > 0).then(|| sums.srtt as f64 / sums.with_srtt as f64);
        Some((sums.cwnd as f64 / sums.sockets as f64, srtt))
    }
}

impl Sums {
    fn add(&mut self, info: &TcpInfo) {
        self.sockets += 1;
        self.cwnd += u64::from(info.snd_cwnd);
        if let Some(srtt) = info.srtt() {
            self.with_srtt += 1;
            self.srtt += srtt;
        }
    }
}

/// Samples all sockets until the run is over.
pub fn sockets(
    interval: u64,
    mut sampler: Sampler,
    context: &Context,
    recorder: &Recorder,
    kept: &Kept,
    latest: &Latest,
) -> Result<(), DiagError> {
    let mut failure = None;
    let mut symbols = Symbols::default();
    // Summed up no more often than they are reported.
    let mut due = 0;
    on_schedule(interval, context.clock, &context.stop, kept, |time| {
        // The last figures are the streams' to report, as each ends.
        if time >= context.clock.duration {
            return false;
        }
        let mut sums = (time >= due).then(HashMap::<Arc<str>, Sums>::new);
        let mut rows = recorder.rows();
        let sampled = sampler.sample(&context.registry, |sample| {
            if let (Some(sums), Some(owner)) = (&mut sums, sample.owner)
                && sample.was_established()
            {
                sums.entry(owner.flow.clone()).or_default().add(sample.info);
            }
            recorder.sample(&mut rows, &mut symbols, time, sample);
        });
        drop(rows);
        if let Some(sums) = sums {
            *latest.0.lock().unwrap_or_else(PoisonError::into_inner) = sums;
            due = time + LATEST;
        }
        failure = sampled.err();
        failure.is_none()
    });
    failure.map_or(Ok(()), Err)
}

/// Retransmission timeouts that an earlier sample has shown, by local and remote port.
#[derive(Default)]
pub struct Timeouts(HashMap<(u16, u16), u16>);

impl Timeouts {
    /// An event for each one since the socket's last sample, at the time of this one: the kernel reports their number only.
    pub fn record(&mut self, rows: &mut Rows, socket: &SocketRow, sample: &Sample<'_>) {
        // Most sockets never have one.
        let now = sample.info.total_rto;
        if now == 0 {
            return;
        }
        let before = self.0.insert((sample.local_port, sample.remote_port), now).unwrap_or(0);
        // Fewer than before: another connection between the same ports.
        let new = if now < before { now } else { now - before };
        for _ in 0..new {
            let event = rows.symbol("rto");
            rows.event(EventRow {
                time: socket.time,
                flow: Some(socket.flow),
                stream: Some(socket.stream),
                link: None,
                event,
                detail: None,
            });
        }
    }
}

/// The symbols of the few strings that come again and again. Symbols stay valid for the whole run.
#[derive(Default)]
pub struct Symbols {
    known: Vec<(Box<str>, Symbol)>,
    node: Option<Symbol>,
}

impl Symbols {
    fn of(&mut self, rows: &mut Rows, string: &str) -> Symbol {
        if let Some((_, symbol)) = self.known.iter().find(|(known, _)| **known == *string) {
            return *symbol;
        }
        let symbol = rows.symbol(string);
        self.known.push((string.into(), symbol));
        symbol
    }
}

pub fn socket_row(rows: &mut Rows, symbols: &mut Symbols, time: u64, sample: &Sample<'_>) -> SocketRow {
    let info = sample.info;
    let ns = |us: u64| us * 1000;
    let (flow, stream) = match sample.owner {
        Some(owner) => (symbols.of(rows, &owner.flow), owner.stream),
        None => (rows.symbol(&format!("{}>{}", sample.local_port, sample.remote_port)), 0),
    };
    let (mut bandwidth, mut min_rtt_estimate, mut pacing_gain, mut cwnd_gain) = (None, None, None, None);
    match sample.control {
        ControlInfo::Bbr { bandwidth: bw, min_rtt, pacing_gain: pacing, cwnd_gain: cwnd } => {
            bandwidth = Some(bw as f64 * 8.0);
            min_rtt_estimate = (min_rtt != u32::MAX).then(|| ns(u64::from(min_rtt)));
            pacing_gain = Some(f64::from(pacing) / 256.0);
            cwnd_gain = Some(f64::from(cwnd) / 256.0);
        }
        ControlInfo::Published { telemetry, .. } => {
            let gain = |gain: u32| (gain != 0).then(|| f64::from(gain) / 256.0);
            bandwidth = (telemetry.bandwidth != 0).then_some(telemetry.bandwidth as f64);
            min_rtt_estimate = (telemetry.min_rtt != 0).then(|| ns(u64::from(telemetry.min_rtt)));
            pacing_gain = gain(telemetry.pacing_gain);
            cwnd_gain = gain(telemetry.cwnd_gain);
        }
        ControlInfo::Vegas { min_rtt, .. } if min_rtt != 0 && min_rtt < i32::MAX as u32 => {
            min_rtt_estimate = Some(ns(u64::from(min_rtt)));
        }
        _ => {}
    }
    SocketRow {
        time,
        flow,
        stream,
        node: *symbols.node.get_or_insert_with(|| rows.node()),
        state: symbols.of(rows, info.ca_state_name()),
        cwnd: u64::from(info.snd_cwnd),
        ssthresh: info.ssthresh().map(u64::from),
        srtt: info.srtt(),
        rttvar: info.srtt().map(|_| ns(u64::from(info.rttvar))),
        min_rtt: info.min_rtt(),
        inflight: u64::from(info.in_flight()),
        lost: u64::from(info.lost),
        retrans: u64::from(info.retrans),
        pacing_rate: sample.pacing_rate,
        delivery_rate: (info.delivery_rate != 0).then_some(info.delivery_rate as f64 * 8.0),
        app_limited: (info.delivery_rate != 0).then(|| info.app_limited()),
        rwnd: u64::from(info.snd_wnd),
        mss: u64::from(info.snd_mss),
        bytes_acked: sample.payload_acked(),
        delivered_ce: Some(u64::from(info.delivered_ce)),
        busy_time: Some(ns(info.busy_time)),
        rwnd_limited: Some(ns(info.rwnd_limited)),
        sndbuf_limited: Some(ns(info.sndbuf_limited)),
        phase: sample.phase.map(|phase| symbols.of(rows, phase)),
        bandwidth,
        min_rtt_estimate,
        pacing_gain,
        cwnd_gain,
    }
}

/// Samples this process, those named, and if asked the machine, until the run is over.
pub fn hosts(
    interval: u64,
    machine: bool,
    processes: &BTreeMap<String, u32>,
    clock: Clock,
    stop: &AtomicBool,
    recorder: &Arc<Recorder>,
    kept: &Kept,
) {
    let mut warned = false;
    on_schedule(interval, clock, stop, kept, |time| {
        let time = time.min(clock.duration);
        let own = ("agent", hosts::this_process());
        let others = processes.iter().map(|(name, pid)| (name.as_str(), hosts::process(*pid)));
        for (name, sample) in std::iter::once(own).chain(others) {
            // A process that has ended has no more figures; the run has not failed.
            if let Ok(sample) = sample {
                push(recorder, time, Some(name), sample);
            }
        }
        if machine {
            match hosts::machine() {
                Ok(sample) => push(recorder, time, None, sample),
                Err(error) => warn_once(&mut warned, &error),
            }
        }
        true
    });
}

fn push(recorder: &Recorder, time: u64, process: Option<&str>, sample: HostSample) {
    let mut rows = recorder.rows();
    let node = Some(rows.node());
    let process = process.map(|name| rows.symbol(name));
    rows.host(HostRow {
        time,
        node,
        process,
        cpu_user: Some(sample.user),
        cpu_system: Some(sample.system),
        cpu_softirq: sample.softirq,
        memory: sample.memory,
    });
}

fn warn_once(warned: &mut bool, error: &io::Error) {
    if !std::mem::replace(warned, true) {
        output::warn(&format!("the machine's CPU time cannot be read: {error}"), "mount /proc");
    }
}
