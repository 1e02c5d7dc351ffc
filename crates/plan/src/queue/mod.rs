//! Queue disciplines and their limits, one file a discipline that has more than a limit.

mod cake;
mod codel;
mod drr;
mod dualpi2;
mod fq;
mod fq_codel;
mod pie;
mod prio;
mod red;
mod tbf;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use crate::describe::Bytes;

pub use cake::{AckFilter, Cake, Cells, Diffserv, Isolation};
pub use codel::Codel;
pub use drr::Drr;
pub use dualpi2::Dualpi2;
pub use fq::Fq;
pub use fq_codel::FqCodel;
pub use pie::Pie;
pub use prio::{Band, Prio};
pub use red::Red;
pub use tbf::Tbf;

/// The queue in front of a link direction's serialiser. Short form: the limit (`queue: 50 ms`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(extend("x-default" = "droptail", "x-short" = "limit"))]
pub enum Queue {
    /// First in, first out; arrivals beyond the limit are dropped.
    Droptail {
        /// Maximum that may wait, without the packet in transmission: `625 packets`, `200 kB` (frame bytes), `50 ms`
        /// (time to drain at the link's present rate), `1.5 BDP`, or `unlimited`.
        #[schemars(required, extend("x-tcplab" = "queue-limit"))]
        limit: Option<Limit>,
        /// Step marking: a packet that arrives while more than this waits is marked *congestion experienced*, if
        /// its sender has negotiated ECN. In the units of `limit`; default: nothing is marked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-tcplab" = "threshold"))]
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
    /// Fair queueing of flows, and a rate that none exceeds (Linux's fq).
    Fq(Fq),
    /// Fair queueing of flows with CoDel in each (RFC 8290).
    FqCodel(FqCodel),
    /// Random drops with a probability that a controller of the delay sets (RFC 8033, RFC 8034).
    Pie(Pie),
    /// Random drops by the average queue (Floyd and Jacobson 1993).
    Red(Red),
    /// Two coupled queues for scalable and classic flows (RFC 9332).
    Dualpi2(Dualpi2),
    /// A shaper with classes by DSCP, hosts and flows in turn, and COBALT in each (Høiland-Jørgensen and others 2018).
    Cake(Cake),
}

impl Queue {
    /// Maximum that may wait; none: no limit of its own.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Queue::Droptail { limit, .. } => *limit,
            Queue::Drr(drr) => drr.limit,
            Queue::Codel(codel) => Some(codel.limit),
            Queue::Fq(fq) => Some(fq.limit),
            Queue::FqCodel(fq_codel) => Some(fq_codel.limit),
            Queue::Pie(pie) => Some(pie.limit),
            Queue::Red(red) => Some(red.limit),
            Queue::Dualpi2(dualpi2) => Some(dualpi2.limit),
            Queue::Cake(cake) => Some(cake.limit()),
            // Their classes have limits.
            Queue::Prio(_) | Queue::Tbf(_) => None,
        }
    }
}

impl Queue {
    /// The settings that a switch of a kind stands for, where it stands for others than its own.
    pub fn preset(kind: &str, switch: &str) -> Option<Queue> {
        match (kind, switch) {
            ("pie", "docsis") => Some(Queue::Pie(Pie::docsis())),
            _ => None,
        }
    }

    /// The limit beyond which it drops arrivals, where nothing else makes it drop.
    pub fn tail_drop_limit(&self) -> Option<Limit> {
        match self {
            Queue::Droptail { limit, .. } => *limit,
            _ => None,
        }
    }

    /// Whether it may hold packets back though its link is free.
    pub fn shapes(&self) -> bool {
        match self {
            Queue::Tbf(_) => true,
            Queue::Cake(cake) => cake.bandwidth.is_some(),
            Queue::Fq(fq) => fq.maxrate.is_some(),
            Queue::Prio(prio) => prio.bands.iter().any(|band| band.queue.shapes()),
            Queue::Droptail { .. }
            | Queue::Drr(_)
            | Queue::Codel(_)
            | Queue::FqCodel(_)
            | Queue::Pie(_)
            | Queue::Red(_)
            | Queue::Dualpi2(_) => false,
        }
    }

    /// Whether all it does is to drop arrivals beyond its limit.
    pub fn only_drops_tail(&self) -> bool {
        matches!(self, Queue::Droptail { mark_above: None, .. })
    }
}

/// Maximum that may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Limit {
    /// Packets, whatever their size.
    Packets(u64),
    /// Frame bytes (IP length + 14).
    Bytes(u64),
    /// Time to drain at the link's present rate, or at the mean rate of its trace.
    Time(Span),
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Droptail { limit, mark_above } => {
                write!(f, "droptail{}", of_limit(*limit))?;
                mark_above.map_or(Ok(()), |threshold| write!(f, " (marks above {threshold})"))
            }
            Queue::Prio(prio) => prio.fmt(f),
            Queue::Drr(drr) => drr.fmt(f),
            Queue::Tbf(tbf) => tbf.fmt(f),
            Queue::Codel(codel) => codel.fmt(f),
            Queue::Fq(fq) => fq.fmt(f),
            Queue::FqCodel(fq_codel) => fq_codel.fmt(f),
            Queue::Pie(pie) => pie.fmt(f),
            Queue::Red(red) => red.fmt(f),
            Queue::Dualpi2(dualpi2) => dualpi2.fmt(f),
            Queue::Cake(cake) => cake.fmt(f),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(1) => f.write_str("1 packet"),
            Limit::Packets(packets) => write!(f, "{packets} packets"),
            Limit::Bytes(bytes) => Bytes(*bytes).fmt(f),
            Limit::Time(time) => time.fmt(f),
        }
    }
}

/// ` of 50 ms`, behind a discipline's name.
fn of_limit(limit: Option<Limit>) -> String {
    limit.map_or_else(|| " without limit".to_owned(), |limit| format!(" of {limit}"))
}
