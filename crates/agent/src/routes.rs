//! The thread that records how the node's routing table changes.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tcplab_lab::{RouteChange, RouteMonitor};
use tcplab_probe::clock;
use tcplab_tables::RouteRow;
use tcplab_traffic::Clock;

use crate::recorder::Recorder;

/// How long it takes at most to notice that the run is over.
const PATIENCE: Duration = Duration::from_millis(50);

/// Records the routes at the start and every change until the run is over.
pub fn record(clock: Clock, stop: &AtomicBool, recorder: &Recorder) -> io::Result<()> {
    let mut monitor = RouteMonitor::open()?;
    if !clock::sleep_until(clock.instant(0), stop) {
        return Ok(());
    }
    push(recorder, 0, monitor.table()?);
    while !stop.load(Ordering::Relaxed) {
        let changes = monitor.wait(PATIENCE)?;
        push(recorder, clock.now(), changes);
    }
    Ok(())
}

fn push(recorder: &Recorder, time: u64, changes: Vec<RouteChange>) {
    let mut rows = recorder.rows();
    for RouteChange { prefix, next_hops, protocol } in changes {
        let row = RouteRow {
            time,
            node: rows.node(),
            prefix: rows.symbol(&prefix),
            next_hops: (!next_hops.is_empty()).then(|| rows.symbol(&next_hops.join(", "))),
            protocol: rows.symbol(&protocol),
        };
        rows.route(row);
    }
}
