//! Rows, and what they take on disk and in memory.

use indexmap::IndexMap;
use tcplab_units::Span;

use super::Estimate;
use super::load::Load;
use crate::{CaptureWhat, Plan};

/// Of a table's row: bytes on disk (Parquet, compressed), and while the run is summarized and its report written, which
/// takes whole tables. The simulation itself keeps few rows.
const ROW: [(&str, u64, u64); 8] = [
    ("sockets", 14, 900),
    ("queues", 15, 380),
    ("intervals", 9, 500),
    ("gauges", 1, 180),
    ("packets", 12, 120),
    ("echoes", 5, 160),
    ("fetches", 8, 160),
    ("pings", 5, 180),
];
/// Gauges of a control (`GAUGES` in cc/*.c), on average.
const GAUGES: f64 = 3.0;
/// A run directory and its process before the first row.
const DISK: u64 = 35_000;
const MEMORY: u64 = 160 << 20;
/// A stream's rows, and its sockets and histograms in the simulator.
const STREAM_DISK: u64 = 40;
const STREAM_MEMORY: u64 = 60_000;
/// The rows of one that has ended, as above.
const ENDED_MEMORY: u64 = 550;
/// pcapng: a block around the bytes kept, and the headers that are kept.
const CAPTURED: f64 = 40.0 + 66.0;
/// A packet is enqueued, departs and is delivered.
const PACKET_EVENTS: f64 = 3.0;

pub(super) fn estimate(plan: &Plan, loads: &[Load<'_>]) -> Estimate {
    let packets: f64 = loads.iter().map(|load| load.packets).sum();
    let counted = rows(plan, loads, packets).into_iter().filter(|(_, count)| *count > 0.0);
    let rows: IndexMap<&'static str, u64> =
        counted.map(|(table, count)| (table, count.ceil() as u64)).collect();
    let (mut disk, mut memory) = (DISK, MEMORY);
    for (table, on_disk, held) in ROW {
        let rows = rows.get(table).copied().unwrap_or(0);
        disk = disk.saturating_add(rows.saturating_mul(on_disk));
        memory = memory.saturating_add(rows.saturating_mul(held));
    }
    let streams: u64 = plan.flows.iter().map(|flow| u64::from(flow.streams)).sum();
    disk = disk.saturating_add(STREAM_DISK * streams).saturating_add(captured(plan, loads).ceil() as u64);
    memory = memory.saturating_add(STREAM_MEMORY * at_once(loads) + ENDED_MEMORY * streams);
    Estimate { packets: packets.ceil() as u64, rows, disk, memory }
}

/// The most streams that are at work at one time.
fn at_once(loads: &[Load<'_>]) -> u64 {
    let change = |load: &Load<'_>| {
        let (start, streams) = (load.flow.start.as_secs_f64(), i64::from(load.flow.streams));
        [(start, streams), (load.carried.end.max(start), -streams)]
    };
    let mut changes: Vec<(f64, i64)> = loads.iter().flat_map(change).collect();
    // Of those at one time, starts come first.
    changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    let at_work = changes.iter().scan(0, |at_work, (_, change)| {
        *at_work += change;
        Some(*at_work)
    });
    at_work.max().unwrap_or(0).max(0) as u64
}

fn rows(plan: &Plan, loads: &[Load<'_>], packets: f64) -> IndexMap<&'static str, f64> {
    let sample = &plan.sample;
    let samples = |seconds: f64, every: Option<Span>| {
        every.filter(|every| *every != Span::ZERO).map_or(0.0, |every| seconds / every.as_secs_f64())
    };
    let mut rows: IndexMap<&'static str, f64> = IndexMap::new();
    let mut add = |table, count| *rows.entry(table).or_default() += count;
    for load in loads {
        let (kind, streams) = (load.flow.traffic.traits(), f64::from(load.flow.streams));
        if kind.connected {
            let ends = if kind.both_ways { 2.0 } else { 1.0 };
            let sockets = ends * streams * samples(load.carried.seconds, sample.sockets);
            add("sockets", sockets);
            add("gauges", GAUGES * sockets);
        }
        if let Some((table, count)) = load.flow.traffic.kind().trip_rows(load.flow, load.trips) {
            add(table, count);
        }
        if kind.moves_payload {
            add("intervals", streams * samples(load.carried.seconds, sample.flows));
        }
    }
    let duration = plan.duration.as_secs_f64();
    let end = loads.iter().map(|load| load.carried.end).reduce(f64::max).unwrap_or(duration).min(duration);
    add("queues", 2.0 * plan.links.len() as f64 * samples(end, sample.queues));
    if sample.packets {
        add("packets", PACKET_EVENTS * packets);
    }
    rows
}

/// Bytes of the captures.
fn captured(plan: &Plan, loads: &[Load<'_>]) -> f64 {
    let Some(capture) = &plan.capture else { return 0.0 };
    let of = |load: &Load<'_>| {
        let ends = [&load.flow.from, &load.flow.to].iter().filter(|end| capture.nodes.contains(end)).count();
        let whole = if capture.what == CaptureWhat::Full { load.carried.bits / 8.0 } else { 0.0 };
        ends as f64 * (load.sent * CAPTURED + whole)
    };
    loads.iter().map(of).sum()
}
