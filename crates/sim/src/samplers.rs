//! Rows taken at intervals, and at the end.

use tcplab_control::Telemetry;
use tcplab_tables::{FlowRow, GaugeRow, IntervalRow, LegRow, SocketRow, Symbol, Table};
use tcplab_tcp::{Connection, Info};
use tcplab_units::{Span, Time};

use crate::capture;
use crate::histogram::Summary;
use crate::plan::Plan;
use crate::relay::Leg;
use crate::sim_context::SimContext;
use crate::stream::{Counts, Interval, Stream, StreamKind};
use crate::streams::Streams;
use crate::tcp_stream::state_name;

/// Sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampler {
    /// TCP sockets.
    Sockets = 0,
    /// Queues of link directions.
    Queues = 1,
    /// Counters of streams.
    Flows = 2,
    /// Changes of link settings, which are events.
    Changes = 3,
}

/// No table is given room for more rows ahead: a full one is taken away with half as many.
const ROOM_MAX: usize = 1 << 17;

impl Sampler {
    pub(crate) const ALL: [Sampler; 4] =
        [Sampler::Sockets, Sampler::Queues, Sampler::Flows, Sampler::Changes];
}

/// One row for every open socket that sends payload.
pub(crate) fn sockets(plan: &Plan, streams: &Streams, sim: &mut SimContext, now: Time) {
    let mut sample = SocketSample::new();
    let rows_before = [sim.recorder.tables.sockets.rows(), sim.recorder.tables.gauges.rows()];
    for stream in streams.in_order() {
        let StreamKind::Tcp(tcp) = &stream.kind else { continue };
        for (end, connection) in tcp.senders() {
            sample.add(sim, stream.endpoints.stream, (end, tcp.preamble(end)), connection);
        }
        for (node, both) in tcp.legs(now) {
            let node = &plan.nodes[usize::from(node)].name;
            legs(sim, now, stream.endpoints.stream, node, &both);
        }
    }
    sample.write(sim);
    // All that is to come finds room at once: tables that grow by and by are copied several times, into memory not used before.
    let left = passes_left(plan.duration, plan.sample.sockets, now);
    let expected = |rows: usize, before: usize| left.saturating_mul(rows - before).min(ROOM_MAX);
    let tables = &mut sim.recorder.tables;
    tables.sockets.reserve(expected(tables.sockets.rows(), rows_before[0]));
    tables.gauges.reserve(expected(tables.gauges.rows(), rows_before[1]));
}

/// Rows of sockets and of their controls' gauges, which are written to the tables together.
pub(crate) struct SocketSample<'a> {
    sockets: Vec<SocketRow>,
    gauges: Vec<GaugeRow>,
    names: Names<'a>,
}

impl<'a> SocketSample<'a> {
    /// So many rows of sockets stay in the processor's cache.
    const TOGETHER: usize = 64;

    /// A sample without rows.
    pub(crate) fn new() -> SocketSample<'a> {
        SocketSample { sockets: Vec::new(), gauges: Vec::new(), names: Names::default() }
    }

    /// Adds the row of a socket that sends `preamble` bytes before its payload, and those of its control's gauges.
    pub(crate) fn add(
        &mut self,
        sim: &mut SimContext,
        stream: u32,
        (end, preamble): (usize, u64),
        connection: &'a Connection,
    ) {
        let (now, names) = (sim.now(), &mut self.names);
        let mut info = connection.info(now);
        info.bytes_acked = info.bytes_acked.saturating_sub(preamble);
        let node = sim.recorder.end(stream, end);
        let state = names.state.symbol(state_name(info.ca_state), sim);
        let telemetry = connection.control().telemetry();
        let phase = (!telemetry.phase.is_empty()).then(|| names.phase.symbol(telemetry.phase, sim));
        let of = SocketNames { stream: sim.recorder.stream(stream), node, state, phase };
        for (number, (gauge, value)) in connection.control().gauges().enumerate() {
            if number == names.gauges.len() {
                names.gauges.push(Default::default());
            }
            let [latest, units] = &mut names.gauges[number];
            let (name, unit) = (latest.symbol(&gauge.name, sim), units.symbol(&gauge.unit, sim));
            let (time, (flow, stream)) = (now.as_ns(), of.stream);
            self.gauges.push(GaugeRow { time, flow, stream, node, name, value, unit });
        }
        self.sockets.push(socket_row(now, of, &info, &telemetry));
        if self.sockets.len() == Self::TOGETHER {
            self.write(sim);
        }
    }

    /// Writes its rows to the tables.
    pub(crate) fn write(&mut self, sim: &mut SimContext) {
        let tables = &mut sim.recorder.tables;
        tables.sockets.push_all(&self.sockets);
        tables.gauges.push_all(&self.gauges);
        self.sockets.clear();
        self.gauges.clear();
    }
}

/// The names in the rows of sockets, which are the same for many of them.
#[derive(Default)]
struct Names<'a> {
    state: Latest<'a>,
    phase: Latest<'a>,
    gauges: Vec<[Latest<'a>; 2]>,
}

/// How often samples will be taken after `now`.
fn passes_left(duration: Span, interval: Option<Span>, now: Time) -> usize {
    let left = (Time::ZERO + duration).since(now).as_ns();
    interval.and_then(|interval| left.checked_div(interval.as_ns())).unwrap_or(0) as usize
}

/// The name that was asked for last, which is often asked for again, and its symbol.
#[derive(Default)]
struct Latest<'a>(Option<(&'a str, Symbol)>);

impl<'a> Latest<'a> {
    #[inline]
    fn symbol(&mut self, name: &'a str, sim: &mut SimContext) -> Symbol {
        match self.0 {
            Some((latest, symbol)) if core::ptr::eq(latest, name) => symbol,
            _ => self.0.insert((name, sim.recorder.symbol(name))).1,
        }
    }
}

/// One row for each leg of every connection that an accelerator has split.
pub(crate) fn legs(sim: &mut SimContext, now: Time, stream: u32, node: &str, legs: &[Leg; 2]) {
    let (flow, number) = sim.recorder.stream(stream);
    let node = sim.recorder.symbol(node);
    for (leg, name) in legs.iter().zip(["client", "server"]) {
        let Leg { info, bytes_received, bytes_acked, retransmits, exposed, unsent } = leg;
        let row = LegRow {
            time: now.as_ns(),
            flow: Some(flow),
            stream: Some(number),
            node,
            connection: u64::from(stream),
            leg: sim.recorder.symbol(name),
            bytes_received: *bytes_received,
            bytes_acked: *bytes_acked,
            exposed: *exposed,
            unsent: *unsent,
            cwnd: u64::from(info.cwnd),
            srtt: (info.srtt > Span::ZERO).then_some(info.srtt.as_ns()),
            retransmits: *retransmits,
            rwnd: info.rwnd,
        };
        sim.recorder.tables.legs.push(row);
    }
}

struct SocketNames {
    stream: (Symbol, u64),
    node: Symbol,
    state: Symbol,
    phase: Option<Symbol>,
}

fn socket_row(now: Time, names: SocketNames, info: &Info, telemetry: &Telemetry) -> SocketRow {
    let sampled = info.srtt > Span::ZERO;
    let known = |value: u64| (value > 0).then_some(value);
    let gain = |gain: u32| (gain > 0).then(|| f64::from(gain) / 256.0);
    SocketRow {
        time: now.as_ns(),
        flow: names.stream.0,
        stream: names.stream.1,
        node: names.node,
        state: names.state,
        cwnd: u64::from(info.cwnd),
        ssthresh: info.ssthresh.map(u64::from),
        srtt: sampled.then_some(info.srtt.as_ns()),
        rttvar: sampled.then_some(info.rttvar.as_ns()),
        min_rtt: info.min_rtt.map(Span::as_ns),
        inflight: u64::from(info.inflight),
        lost: u64::from(info.lost),
        retrans: u64::from(info.retrans),
        pacing_rate: info.pacing_rate.map(|rate| rate as f64),
        delivery_rate: info.delivery_rate.map(|rate| rate as f64),
        app_limited: info.delivery_rate.map(|_| info.app_limited),
        rwnd: info.rwnd,
        mss: u64::from(info.mss),
        bytes_acked: info.bytes_acked,
        delivered_ce: Some(info.delivered_ce),
        busy_time: Some(info.busy_time.as_ns()),
        rwnd_limited: Some(info.rwnd_limited.as_ns()),
        sndbuf_limited: Some(info.sndbuf_limited.as_ns()),
        phase: names.phase,
        bandwidth: known(telemetry.bandwidth).map(|bandwidth| bandwidth as f64),
        min_rtt_estimate: known(u64::from(telemetry.min_rtt_us)).map(|us| us * 1000),
        pacing_gain: gain(telemetry.pacing_gain),
        cwnd_gain: gain(telemetry.cwnd_gain),
    }
}

/// One row for every stream at work: what happened since its last row. `is_drained`: no packet of a stream is on its way
/// any more, so datagrams that have not come are lost.
pub(crate) fn intervals(
    streams: &mut Streams,
    sim: &mut SimContext,
    now: Time,
    is_drained: impl Fn(u32) -> bool,
) {
    streams.for_each(|stream| {
        if now <= stream.interval.since || matches!(stream.kind, StreamKind::Ping(_)) {
            return;
        }
        let counts = counts(stream, is_drained(stream.endpoints.stream));
        if is_through(stream) && counts == stream.interval.counts {
            stream.interval.idle_until = now;
            return;
        }
        // A straggler of a stream that had ended. Rows leave no gap: one covers the time until then.
        let Interval { since, idle_until, counts: before, jitter } = stream.interval;
        if idle_until > since {
            interval(stream, sim, idle_until, before, jitter);
        }
        let jitter = match &stream.kind {
            StreamKind::Udp(udp) => udp.reception.jitter(),
            _ => None,
        };
        interval(stream, sim, now, counts, jitter);
    });
}

/// Whether no more payload of a stream will arrive.
fn is_through(stream: &Stream) -> bool {
    match &stream.kind {
        StreamKind::Tcp(tcp) => tcp.is_through(),
        _ => stream.finished(),
    }
}

/// The row of what happened since a stream's last row, up to `now`.
fn interval(stream: &mut Stream, sim: &mut SimContext, now: Time, counts: Counts, jitter: Option<f64>) {
    let before = stream.interval.counts;
    let duration = now.since(stream.interval.since);
    let bytes_received = counts.bytes_received - before.bytes_received;
    let (flow, number) = sim.recorder.stream(stream.endpoints.stream);
    let mut row = IntervalRow {
        time: now.as_ns(),
        duration: duration.as_ns(),
        flow,
        stream: number,
        bytes_received,
        bytes_sent: counts.bytes_sent - before.bytes_sent,
        goodput: bytes_received as f64 * 8.0 / duration.as_secs_f64(),
        retransmits: None,
        lost: None,
        out_of_order: None,
        duplicates: None,
        jitter,
    };
    if matches!(stream.kind, StreamKind::Udp(_)) {
        // A late datagram takes back the loss that an earlier interval counted.
        row.lost = Some(counts.lost as i64 - before.lost as i64);
        row.out_of_order = Some(counts.out_of_order - before.out_of_order);
        row.duplicates = Some(counts.duplicates - before.duplicates);
    } else {
        row.retransmits = Some(counts.retransmits - before.retransmits);
    }
    sim.recorder.tables.intervals.push(row);
    stream.interval = Interval { since: now, idle_until: now, counts, jitter };
}

/// Whether all that is to be written of a stream is known, and will be the same at the run's end. Then nothing of it is kept.
pub(crate) fn is_settled(stream: &Stream, sim: &SimContext, now: Time) -> bool {
    let StreamKind::Tcp(tcp) = &stream.kind else { return false };
    let in_intervals = !sim.recorder.samples_flows() || counts(stream, false) == stream.interval.counts;
    tcp.is_freed() && tcp.last_delivery > stream.start && tcp.complete(now, false) && in_intervals
}

fn counts(stream: &Stream, drained: bool) -> Counts {
    match &stream.kind {
        StreamKind::Tcp(tcp) => {
            let sent = tcp.counters();
            Counts {
                bytes_received: tcp.bytes_received(),
                bytes_sent: sent.bytes_sent,
                retransmits: sent.retransmits,
                ..Counts::default()
            }
        }
        StreamKind::Udp(udp) => Counts {
            bytes_received: udp.reception.bytes(),
            bytes_sent: udp.bytes_sent(),
            retransmits: 0,
            lost: udp.lost(drained),
            out_of_order: udp.reception.out_of_order(),
            duplicates: udp.reception.duplicates(),
        },
        StreamKind::Ping(_) | StreamKind::Gone => Counts::default(),
    }
}

/// The row of a stream, when the run has `ended` or is broken off. `drained` as in `intervals`.
pub(crate) fn flow(
    plan: &Plan,
    stream: &mut Stream,
    sim: &mut SimContext,
    (end, ended): (Time, bool),
    drained: bool,
) {
    let flow = &plan.flows[stream.flow];
    let (name, number) = sim.recorder.stream(stream.endpoints.stream);
    let mut symbol = |name: &str| sim.recorder.symbol(name);
    let cc = flow.traffic.cc().map(|cc| symbol(&cc.name));
    let (from, to, kind) = (symbol(&flow.from), symbol(&flow.to), symbol(flow.traffic.traits().name));
    let [forward, reverse] = sim.recorder.losses(stream.endpoints.stream);
    let ports = flow.traffic.traits().served.then(|| {
        let client = capture::client_port(stream.endpoints.stream);
        (client, capture::server_port(flow, stream.flow, number as u32))
    });
    let mut row = FlowRow {
        flow: name,
        stream: number,
        from,
        to,
        from_port: ports.map(|ports| u64::from(ports.0)),
        to_port: ports.map(|ports| u64::from(ports.1)),
        kind,
        cc,
        start: stream.start.as_ns(),
        end: end.max(stream.start).as_ns(),
        bytes_sent: 0,
        bytes_received: stream.bytes_received(),
        goodput: 0.0,
        segments_sent: None,
        retransmits: None,
        rtos: None,
        losses_true: Some(forward),
        losses_detected: None,
        rtt_mean: None,
        rtt_p50: None,
        rtt_p95: None,
        rtt_p99: None,
        cwnd_mean: None,
        cpu_sender: None,
        cpu_receiver: None,
        complete: false,
    };
    let started = stream.start <= end;
    let (last_delivery, rtt) = match &mut stream.kind {
        StreamKind::Tcp(tcp) => {
            let sent = tcp.counters();
            row.bytes_sent = sent.bytes_sent;
            row.segments_sent = Some(sent.segments_sent);
            row.retransmits = Some(sent.retransmits);
            row.rtos = Some(sent.rtos);
            row.losses_detected = Some(sent.losses_detected);
            row.cwnd_mean = tcp.mean_window(end);
            row.complete = started && tcp.complete(end, ended);
            if tcp.application.answers() {
                row.losses_true = Some(forward + reverse);
            }
            let tables = &mut sim.recorder.tables;
            tcp.application.finish((name, number), (&mut tables.echoes, &mut tables.echo_batches));
            (tcp.last_delivery, tcp.rtt())
        }
        StreamKind::Udp(udp) => {
            row.bytes_sent = udp.bytes_sent();
            row.segments_sent = Some(udp.sent());
            row.losses_detected = Some(udp.lost(drained));
            row.complete = started && udp.complete(ended);
            (udp.last_delivery, Summary::default())
        }
        StreamKind::Ping(ping) => {
            row.bytes_sent = ping.bytes(ping.sent());
            row.segments_sent = Some(ping.sent());
            row.losses_true = Some(forward + reverse);
            row.losses_detected = Some(ping.sent() - ping.replies());
            row.complete = started && ping.complete(ended);
            (ping.last_reply, ping.rtt.summary())
        }
        StreamKind::Gone => return,
    };
    row.rtt_mean = rtt.mean;
    [row.rtt_p50, row.rtt_p95, row.rtt_p99] = rtt.percentiles;
    if is_through(stream) && last_delivery > stream.start {
        row.end = last_delivery.as_ns();
    }
    let seconds = Span::from_ns(row.end - row.start).as_secs_f64();
    if seconds > 0.0 {
        row.goodput = row.bytes_received as f64 * 8.0 / seconds;
    }
    sim.recorder.tables.flows.push(row);
}

/// The changes of `plan`'s links by time, in words.
pub(crate) fn changes(plan: &Plan) -> Vec<(Time, String, String)> {
    let mut changes = Vec::new();
    for link in &plan.links {
        for (name, direction) in [("forward", &link.forward), ("backward", &link.backward)] {
            for change in &direction.changes {
                changes.push((change.at, link.name.clone(), format!("{name}: {change}")));
            }
        }
    }
    changes.sort_by_key(|change| change.0);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_taken_after_every_interval() {
        let left = |interval| passes_left(Span::from_ms(100), interval, Time::ZERO + Span::from_ms(10));
        assert_eq!([Some(Span::from_ms(10)), Some(Span::ZERO), None].map(left), [9, 0, 0]);
    }
}
