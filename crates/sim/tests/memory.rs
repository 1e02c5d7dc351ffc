//! Memory of a run: it grows with the streams at work, and with the rows of tables, not with the streams that have ended.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use common::{MS, direction, flow, parse, path, tcp, with};
use serde_json::{Value, json};
use tcplab_sim::Simulation;

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Held by the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

/// `groups` times 16 transfers of 3 kB, one group every 2 ms.
fn short(groups: u64) -> Value {
    let group = |group: u64| {
        let traffic = with(tcp("cubic"), json!({"bytes": 3_000}));
        let when = json!({"streams": 16, "start": group * 2 * MS, "stop": null});
        with(flow(&format!("group-{group}"), traffic), when)
    };
    let way = || direction(1_000_000_000, 2 * MS);
    let sample = json!({"sockets": null, "queues": null, "flows": null, "hosts": null, "packets": false});
    let plan = path(way(), way(), (0..groups).map(group).collect());
    with(plan, json!({"sample": sample, "duration": 600_000 * MS}))
}

/// Bytes a simulation of `groups` holds at its end besides its plan, and of these an upper bound of those of its rows.
fn held(groups: u64) -> (usize, usize) {
    let plan = parse(&short(groups));
    let before = ALLOCATED.load(Relaxed);
    let copy = plan.clone();
    let plan_size = ALLOCATED.load(Relaxed) - before;
    let mut simulation = Simulation::new(&copy).expect("a plan that can be simulated");
    while !simulation.advance(1000) {}
    // The simulation has a copy of its own.
    let held = ALLOCATED.load(Relaxed) - before - 2 * plan_size;
    let tables = simulation.finish();
    assert!(tables.flows.complete.iter().all(|complete| complete == Some(true)));
    assert!(tables.flows.stream.len() as u64 == 16 * groups);
    // A value takes at most 8 B, and a vector that grows has up to twice the room it needs.
    let rows = 2 * 8 * (26 * tables.flows.stream.len() + 6 * tables.events.time.len());
    (held, rows)
}

#[test]
fn streams_that_have_ended_take_no_memory_but_their_rows() {
    let _alone = ALONE.lock();
    let (few, rows_of_few) = held(128);
    let (many, rows_of_many) = held(512);
    let (more_streams, more) = (16 * (512 - 128), many.saturating_sub(few));
    assert!(more <= rows_of_many - rows_of_few, "{more} B more for {more_streams} streams more");
}

/// The most that a simulation of `groups` holds while full tables are taken from it, and the rows taken.
fn peak(groups: u64) -> (usize, usize) {
    let sample = json!({"sockets": null, "queues": 2_000, "flows": null, "hosts": null, "packets": false});
    let plan = parse(&with(short(groups), json!({"sample": sample})));
    let before = ALLOCATED.load(Relaxed);
    let mut simulation = Simulation::new(&plan).expect("a plan that can be simulated");
    let (mut peak, mut rows) = (0, 0);
    while !simulation.advance(1000) {
        peak = peak.max(ALLOCATED.load(Relaxed) - before);
        if simulation.is_full() {
            rows += simulation.take_full().queues.time.len();
        }
    }
    (peak, rows + simulation.finish().queues.time.len())
}

#[test]
fn rows_that_are_taken_take_no_memory() {
    let _alone = ALONE.lock();
    let ((few, rows_of_few), (many, rows_of_many)) = (peak(80), peak(240));
    assert!(rows_of_few > 1 << 17 && rows_of_many > 2 * rows_of_few);
    // The plan grows. Rows that were kept would double it.
    assert!(many < few + few / 4, "{few} B for {rows_of_few} rows, {many} B for {rows_of_many}");
}
