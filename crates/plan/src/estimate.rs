//! Estimate of a run from its plan alone: packets, rows, disk and memory, to within a factor of about two.
//!
//! Traffic is a fluid. Between any two moments at which something starts, stops or changes, flows share the links
//! max-min fairly, below what their windows (RFC 7323) and random loss allow. The load of each kind of traffic,
//! and its packets, are in its file (`flow`). Numbers here that are not in a plan were measured
//! with the shipped scenarios; `tests/test_estimate.py` compares the estimates with real runs.

mod connection;
mod load;
mod paths;
mod rows;
mod sharing;

use indexmap::IndexMap;
use serde::Serialize;

use crate::Plan;

pub(crate) use connection::{acks_a_segment, connection_rate, framed, framed_rate};
pub(crate) use paths::{Paths, slowest};

/// Ethernet 14, IPv4 20, TCP 20 with 12 of timestamps.
pub(crate) const HEADERS: u32 = 66;
/// Headers of a frame beside an MSS, which counts the timestamps, and of a frame with a datagram.
pub(crate) const TCP_FRAME: u32 = 54;
pub(crate) const UDP_FRAME: u32 = 42;

/// The estimate of one run of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// Packets that arrive at a node, every hop counted.
    pub packets: u64,
    /// By table.
    pub rows: IndexMap<&'static str, u64>,
    /// Bytes of its run directory, without the plan in it.
    pub disk: u64,
    /// Bytes of the process that makes and summarizes it, and writes its report.
    pub memory: u64,
}

impl Plan {
    /// Estimates one run. Takes no longer for long runs or many streams than for others.
    pub fn estimate(&self) -> Estimate {
        rows::estimate(self, &load::loads(self))
    }
}

/// The demand of a flow on links that it shares with others.
pub(crate) struct Fluid {
    /// The most it takes, frame bits per second.
    pub(crate) maximum: f64,
    /// Frame bits that it has to carry; infinite where time ends it.
    pub(crate) wanted: f64,
    /// It takes what others leave; otherwise it keeps to its rate.
    pub(crate) yields: bool,
    /// Its payload goes from its second node to its first.
    pub(crate) responses: bool,
}

/// The load of a flow on the links.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    /// Of frames in the direction of the payload.
    pub(crate) bits: f64,
    /// How long it is active.
    pub(crate) seconds: f64,
    /// When it ends, seconds from the start of the run.
    pub(crate) end: f64,
}

/// A flow's packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    /// From its first node to its second.
    pub(crate) forward: f64,
    pub(crate) reverse: f64,
    /// Probes, messages or requests that were answered.
    pub(crate) trips: f64,
    pub(crate) carried: Carried,
}
