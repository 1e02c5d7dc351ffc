//! Queue disciplines and their limits, one file a discipline that has more than a limit.

mod cake;
mod codel;
mod droptail;
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
use tcplab_units::{Rate, Span};

use crate::describe::Bytes;

pub use cake::{AckFilter, Cake, Cells, Diffserv, Isolation};
pub use codel::Codel;
pub use droptail::Droptail;
pub use drr::Drr;
pub use dualpi2::Dualpi2;
pub use fq::Fq;
pub use fq_codel::FqCodel;
pub use pie::Pie;
pub use prio::{Band, Prio};
pub use red::Red;
pub use tbf::Tbf;

/// The queue in front of a link direction's serialiser. Short form: the limit (`queue: 50 ms`).
///
/// The language reads the marks of settings: `x-role` is `shaper` for the rate of a shaper, and `limit` for a limit
/// under another name. `x-preset` has the settings that a switch stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(extend("x-default" = "droptail", "x-short" = "limit"))]
pub enum Queue {
    /// First in, first out; arrivals beyond the limit are dropped.
    Droptail(Droptail),
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

/// Traits of a discipline, from its settings; its words are its `Display`.
pub(crate) trait Discipline: fmt::Display {
    /// Maximum that may wait; none: no limit of its own.
    fn limit(&self) -> Option<Limit>;

    /// The limit beyond which it drops arrivals, where nothing else makes it drop.
    fn tail_drop_limit(&self) -> Option<Limit> {
        None
    }

    /// Whether it may hold packets back though its link is free.
    fn shapes(&self) -> bool {
        false
    }

    /// Whether all it does is to drop arrivals beyond its limit.
    fn only_drops_tail(&self) -> bool {
        false
    }

    /// Settings that are valid but rarely intended, a sentence each, on a link of this rate.
    fn cautions(&self, _rate: Option<Rate>) -> Vec<String> {
        Vec::new()
    }
}

impl Queue {
    fn discipline(&self) -> &dyn Discipline {
        match self {
            Queue::Droptail(droptail) => droptail,
            Queue::Prio(prio) => prio,
            Queue::Drr(drr) => drr,
            Queue::Tbf(tbf) => tbf,
            Queue::Codel(codel) => codel,
            Queue::Fq(fq) => fq,
            Queue::FqCodel(fq_codel) => fq_codel,
            Queue::Pie(pie) => pie,
            Queue::Red(red) => red,
            Queue::Dualpi2(dualpi2) => dualpi2,
            Queue::Cake(cake) => cake,
        }
    }

    /// First in, first out, without marks; none: without limit.
    pub fn droptail(limit: Option<Limit>) -> Queue {
        Queue::Droptail(Droptail { limit, mark_above: None })
    }

    /// Maximum that may wait; none: no limit of its own.
    pub fn limit(&self) -> Option<Limit> {
        self.discipline().limit()
    }

    /// The limit beyond which it drops arrivals, where nothing else makes it drop.
    pub fn tail_drop_limit(&self) -> Option<Limit> {
        self.discipline().tail_drop_limit()
    }

    /// Whether it may hold packets back though its link is free.
    pub fn shapes(&self) -> bool {
        self.discipline().shapes()
    }

    /// Whether all it does is to drop arrivals beyond its limit.
    pub fn only_drops_tail(&self) -> bool {
        self.discipline().only_drops_tail()
    }

    /// Settings that are valid but rarely intended, a sentence each, on a link of this rate; none: of any.
    pub fn cautions(&self, rate: Option<Rate>) -> Vec<String> {
        self.discipline().cautions(rate)
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

impl Limit {
    /// Whether it is known to be no more than another at this rate.
    fn is_at_most(self, other: Limit, rate: Option<Rate>) -> bool {
        let bytes = |limit| match limit {
            Limit::Packets(_) => None,
            Limit::Bytes(bytes) => Some(bytes),
            Limit::Time(time) => rate.map(|rate| rate.bytes_in(time)),
        };
        match (self, other) {
            (Limit::Packets(one), Limit::Packets(other)) => one <= other,
            (Limit::Time(one), Limit::Time(other)) => one <= other,
            _ => bytes(self).zip(bytes(other)).is_some_and(|(one, other)| one <= other),
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.discipline().fmt(f)
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

/// A shaper that is faster than the link behind it.
fn never_shapes(shaper: &str, own: Rate, link: Option<Rate>) -> Option<String> {
    let link = link.filter(|link| own >= *link)?;
    Some(format!("{shaper} of {own} has no effect: the link has {link}"))
}

/// CoDel's target, which is 5 to 10 % of its interval (RFC 8289, section 4.4).
fn late_target(target: Span, interval: Span) -> Option<String> {
    let rule = "RFC 8289 has 5 to 10 % of it";
    (target >= interval)
        .then(|| format!("`target` of {target} is not below `interval` of {interval}; {rule}"))
}

/// ` of 50 ms`, behind a discipline's name.
fn of_limit(limit: Option<Limit>) -> String {
    limit.map_or_else(|| " without limit".to_owned(), |limit| format!(" of {limit}"))
}
