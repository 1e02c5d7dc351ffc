//! Echo requests of ICMP.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use super::{Flow, Kind, Traits};
use crate::estimate::{Carried, Count, Fluid, Paths};

/// Echo requests, as ICMP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ping {
    /// Time between two.
    pub interval: Span,
    /// Payload bytes.
    pub payload: u32,
    /// How many; none: as many as the time allows.
    pub count: Option<u64>,
}

impl Ping {
    pub(super) const TRAITS: Traits = Traits {
        name: "ping",
        connected: false,
        both_ways: false,
        mostly_back: false,
        served: false,
        moves_payload: false,
        bulk: false,
        round_trips: true,
    };
}

impl Kind for Ping {
    fn traits(&self) -> Traits {
        Ping::TRAITS
    }

    fn fluid(&self, _flow: &Flow, _ways: &Paths<'_>) -> Option<Fluid> {
        None
    }

    fn count(&self, flow: &Flow, _ways: &Paths<'_>, _carried: Carried, time: f64) -> Count {
        let streams = f64::from(flow.streams);
        let maximum = self.count.map_or(f64::INFINITY, |count| count as f64);
        let probes = (time * 1e9 / self.interval.as_ns() as f64).min(maximum) * streams;
        // It ends with the last of those asked for, or with its time.
        let lasts = if probes / streams >= maximum { maximum * self.interval.as_secs_f64() } else { time };
        let carried = Carried { bits: 0.0, seconds: time, end: flow.start.as_secs_f64() + lasts };
        Count { forward: probes, reverse: probes, trips: probes, carried }
    }

    fn trip_rows(&self, _flow: &Flow, trips: f64) -> Option<(&'static str, f64)> {
        Some(("pings", trips))
    }
}

impl fmt::Display for Ping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ping every {}, {} B", self.interval, self.payload)?;
        self.count.map_or(Ok(()), |count| write!(f, ", {count} times"))
    }
}
