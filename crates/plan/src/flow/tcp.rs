//! Bulk transfers over TCP.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Connections, Flow, Generator, Kind, Pattern, Traits};
use crate::describe::Bytes;
use crate::estimate::{self, Carried, Count, Fluid, Paths};
use crate::{Cc, TcpSettings};

/// A bulk transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tcp {
    /// Congestion control.
    pub cc: Cc,
    /// Bytes per stream; none: as many as the time allows.
    pub bytes: Option<u64>,
    /// Pauses; none: without pause.
    pub pattern: Option<Pattern>,
    /// The sender's settings: its node's, with what the flow sets otherwise.
    pub sender: Box<TcpSettings>,
    /// The receiver's settings.
    pub receiver: Box<TcpSettings>,
    /// The program that makes the traffic where it is real.
    #[serde(default)]
    pub generator: Generator,
}

impl Tcp {
    pub(super) const TRAITS: Traits = Traits {
        name: "tcp",
        connected: true,
        both_ways: false,
        mostly_back: false,
        served: true,
        moves_payload: true,
        bulk: true,
        round_trips: false,
    };
}

impl Kind for Tcp {
    fn traits(&self) -> Traits {
        Tcp::TRAITS
    }

    fn connections(&self) -> Option<Connections<'_>> {
        Some(Connections { cc: &self.cc, sender: &self.sender, receiver: &self.receiver })
    }

    fn fluid(&self, flow: &Flow, paths: &Paths<'_>) -> Option<Fluid> {
        let mut one =
            estimate::connection_rate(&self.cc, &self.sender, &self.receiver, paths, &paths.forward);
        if let Some(pattern) = self.pattern {
            one *= pattern.share();
        }
        let mss = self.sender.mss;
        Some(Fluid {
            maximum: estimate::framed_rate(one, flow.streams, mss),
            wanted: estimate::framed(self.bytes, flow.streams, mss),
            yields: true,
            responses: false,
        })
    }

    fn count(&self, _flow: &Flow, _ways: &Paths<'_>, carried: Carried, _time: f64) -> Count {
        let forward = carried.bits / 8.0 / f64::from(self.sender.mss + estimate::TCP_FRAME);
        Count { forward, reverse: forward * estimate::acks_a_segment(&self.receiver), trips: 0.0, carried }
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tcp")?;
        amount(f, self.bytes, self.pattern)
    }
}

/// How much is sent, and with which pauses.
pub(super) fn amount(
    f: &mut fmt::Formatter<'_>,
    bytes: Option<u64>,
    pattern: Option<Pattern>,
) -> fmt::Result {
    bytes.map_or(Ok(()), |bytes| write!(f, ", {} a stream", Bytes(bytes)))?;
    pattern.map_or(Ok(()), |pattern| write!(f, ", {pattern}"))
}
