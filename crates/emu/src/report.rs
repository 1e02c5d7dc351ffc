//! Events and statistics that the emulator reports.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::lateness::Verdict;

/// An event of the emulation.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// Once a second of a run.
    Progress(Progress),
    /// The run is over and everything is written.
    Done(Box<RunStats>),
    /// Records cannot be written any more; the emulation goes on.
    Failed {
        /// The error.
        message: String,
        /// How to fix it.
        hint: String,
    },
}

/// How far a run has come.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// ns since the run's start.
    pub time: u64,
    /// Frame bytes delivered so far, by link, forward and backward.
    pub delivered: BTreeMap<String, [u64; 2]>,
    /// Share of packets that were delivered too late so far.
    pub late_share: f64,
    /// Packets that are in links now.
    pub held: u64,
}

/// Statistics of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunStats {
    /// Statistics by link.
    pub links: BTreeMap<String, LinkStats>,
    /// Lateness of all deliveries together.
    pub lateness: Verdict,
    /// The machine was too slow for the run: deliveries late, a stall, or packets lost outside of the links.
    pub overloaded: bool,
    /// How many times its limit the worst of these is; above 1 is overloaded.
    pub excess: f64,
    /// Packets dropped for lack of buffer space between a node and the emulator.
    pub overflows: u64,
    /// Frames that no link can carry.
    pub malformed: u64,
    /// Frames that entered their link when they were read, as the kernel had not noted when they left their node.
    pub unstamped: u64,
    /// Packets of streams that links dropped or lost.
    pub losses: Vec<StreamLosses>,
    /// CPU time of the emulator, s.
    pub cpu: f64,
    /// The most memory that packets took, bytes.
    pub memory: u64,
    /// Rows written, by table.
    pub rows: BTreeMap<String, u64>,
    /// Packets captured, by file.
    pub captures: BTreeMap<String, u64>,
}

/// Statistics of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkStats {
    /// First end to second end.
    pub forward: DirectionStats,
    /// Second end to first end.
    pub backward: DirectionStats,
}

/// Counters of a link direction. `packets_in + duplicated = delivered + dropped + lost + held`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // as `tcplab_link::Stats`
pub struct DirectionStats {
    pub packets_in: u64,
    pub bytes_in: u64,
    pub dropped: u64,
    pub marked: u64,
    pub lost: u64,
    pub corrupted: u64,
    pub duplicated: u64,
    pub delivered: u64,
    pub bytes_delivered: u64,
    /// Packets still on the link.
    pub held: u64,
    /// Delivered packets that the receiving interface rejected because it was down.
    pub undeliverable: u64,
    pub lateness: Verdict,
}

/// Packets of a stream that links dropped or lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamLosses {
    /// The flow's name.
    pub flow: String,
    /// The stream's number.
    pub stream: u64,
    /// On the way to the server.
    pub to_server: u64,
    /// On the way from it.
    pub from_server: u64,
}
