//! Queue disciplines and their limits, one file a discipline that has more than a limit.

mod codel;
mod drr;
mod dualpi2;
mod fq_codel;
mod pie;
mod prio;
mod red;
mod tbf;

use serde::{Deserialize, Serialize};
use tcplab_units::Span;

pub use codel::Codel;
pub use drr::Drr;
pub use dualpi2::Dualpi2;
pub use fq_codel::FqCodel;
pub use pie::Pie;
pub use prio::{Band, Prio};
pub use red::Red;
pub use tbf::Tbf;

/// A queue discipline and its limit. The limit counts what waits, not what is being sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Queue {
    /// First in, first out; arrivals beyond the limit are dropped.
    Droptail {
        /// How much may wait; none: no limit.
        limit: Option<Limit>,
        /// A packet that can carry a mark gets one ("congestion experienced") when more than this waits as it
        /// arrives; none: nothing is marked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark_above: Option<Limit>,
    },
    /// Strict priority by DSCP.
    Prio(Prio),
    /// Deficit round robin between flows.
    Drr(Drr),
    /// A token bucket that shapes.
    Tbf(Tbf),
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// Fair queueing of flows with CoDel in each (RFC 8290).
    FqCodel(FqCodel),
    /// Random drops with a probability that a controller of the delay sets (RFC 8033, RFC 8034).
    Pie(Pie),
    /// Random drops by the average queue (Floyd and Jacobson 1993).
    Red(Red),
    /// Two coupled queues for scalable and classic flows (RFC 9332).
    Dualpi2(Dualpi2),
}

/// How much may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Packets, whatever their size.
    Packets(u64),
    /// Frame bytes (IP length + 14).
    Bytes(u64),
    /// Time to drain at the link's present rate, or at the mean rate of its trace.
    Time(Span),
}
