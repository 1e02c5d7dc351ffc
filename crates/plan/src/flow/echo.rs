//! Echoes over TCP.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use super::{Connections, Flow, Kind, Traits};
use crate::describe::Bytes;
use crate::estimate::{self, Carried, Count, Fluid, Paths};
use crate::{Cc, TcpSettings};

/// Clients that send messages, size after size, and wait for each to come back; a stream is a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Echo {
    /// Congestion control of both ends.
    pub cc: Cc,
    /// Bytes of a message, size after size.
    pub sizes: Vec<u32>,
    /// Messages of each size.
    pub iterations: u64,
    /// The first so many of each size have rows of their own, so that they can be left out.
    #[serde(default)]
    pub warmup: u64,
    /// Minimum time from one message to the next.
    #[serde(default)]
    pub interval: Span,
    /// How long a message may take to come back where it is real.
    #[serde(default)]
    pub timeout: Span,
    /// Both ends poll instead of sleeping where they are real.
    #[serde(default)]
    pub busy_poll: bool,
    /// The clients' settings.
    pub sender: Box<TcpSettings>,
    /// The server's settings.
    pub receiver: Box<TcpSettings>,
}

/// Of more round trips than `ROWS` only the first `HEAD` of each size have rows of their own
/// (`crates/tables/src/tally.rs`).
const ROWS: u64 = 1_000_000;
const HEAD: u64 = 1000;

impl Echo {
    pub(super) const TRAITS: Traits = Traits {
        name: "echo",
        connected: true,
        both_ways: true,
        mostly_back: false,
        served: true,
        moves_payload: true,
        bulk: false,
        round_trips: true,
    };
}

impl Kind for Echo {
    fn traits(&self) -> Traits {
        Echo::TRAITS
    }

    fn connections(&self) -> Option<Connections<'_>> {
        Some(Connections { cc: &self.cc, sender: &self.sender, receiver: &self.receiver })
    }

    fn fluid(&self, _flow: &Flow, _ways: &Paths<'_>) -> Option<Fluid> {
        None
    }

    fn count(&self, flow: &Flow, paths: &Paths<'_>, _carried: Carried, time: f64) -> Count {
        let (mut left, mut packets, mut trips) = (time, 0.0, 0.0);
        let streams = f64::from(flow.streams);
        for &message in &self.sizes {
            let segments = (f64::from(message) / f64::from(self.sender.mss)).ceil();
            let frames = 8.0 * (f64::from(message) + segments * f64::from(estimate::HEADERS));
            let slowest = [&paths.forward, &paths.reverse].map(|way| estimate::slowest(way).max(1.0));
            // All clients' messages share the links; one alone is stored and forwarded at each.
            let busy = slowest.iter().map(|rate| frames * streams / rate).fold(0.0, f64::max);
            let alone = paths.rtt() + slowest.iter().map(|rate| frames / rate).sum::<f64>();
            let trip = self.interval.as_secs_f64().max(alone).max(busy);
            let done = (self.iterations as f64).min(left / trip);
            left -= done * trip;
            trips += done * streams;
            // Beyond one segment the other end acknowledges before its echo begins.
            packets += done * streams * if segments == 1.0 { segments } else { 1.5 * segments };
        }
        let active = time - left;
        let carried = Carried { bits: 0.0, seconds: active, end: flow.start.as_secs_f64() + time - left };
        Count { forward: packets, reverse: packets, trips, carried }
    }

    fn trip_rows(&self, flow: &Flow, trips: f64) -> Option<(&'static str, f64)> {
        let sizes = self.sizes.len() as f64 * f64::from(flow.streams);
        let asked = self.iterations as f64 * sizes;
        let kept = sizes * self.iterations.min(self.warmup.max(HEAD)) as f64;
        Some(("echoes", if asked <= ROWS as f64 { trips } else { kept.min(trips) }))
    }
}

impl fmt::Display for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (minimum, maximum) = (self.sizes.iter().min(), self.sizes.iter().max());
        let size = |bytes: Option<&u32>| Bytes(bytes.copied().unwrap_or(0).into());
        f.write_str("echoes of ")?;
        if minimum != maximum {
            write!(f, "{} sizes from {} to ", self.sizes.len(), size(minimum))?;
        }
        write!(f, "{}, {} of each", size(maximum), self.iterations)?;
        if self.interval != Span::ZERO {
            write!(f, ", {} apart", self.interval)?;
        }
        f.write_str(if self.busy_poll { ", both ends polling" } else { "" })
    }
}
