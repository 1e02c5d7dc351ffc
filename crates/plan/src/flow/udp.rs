//! Datagrams at a rate.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Rate;

use super::{Flow, Generator, Kind, Pattern, Traits, tcp};
use crate::estimate::{self, Carried, Count, Fluid, Paths};

/// Datagrams at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Udp {
    /// Rate of UDP payload per stream.
    pub rate: Rate,
    /// Payload bytes of a datagram.
    pub payload: u32,
    /// Payload bytes per stream; none: as many as the time allows.
    pub bytes: Option<u64>,
    /// Pauses; none: without pause.
    pub pattern: Option<Pattern>,
    /// How the intervals between datagrams are distributed.
    #[serde(default, skip_serializing_if = "Spacing::is_constant")]
    pub spacing: Spacing,
    /// Datagrams are ECN-capable, ECT(0) or ECT(1); none: they are not. Their sender does not answer marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1))]
    pub ect: Option<u8>,
    /// The program that makes the traffic where it is real.
    #[serde(default)]
    pub generator: Generator,
}

/// How the intervals between a source's datagrams are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// All of them are equal.
    #[default]
    Constant,
    /// Exponentially, the first one from the start: a Poisson process.
    Exponential,
}

impl Spacing {
    fn is_constant(&self) -> bool {
        *self == Spacing::Constant
    }
}

impl Udp {
    pub(super) const TRAITS: Traits = Traits {
        name: "udp",
        connected: false,
        both_ways: false,
        mostly_back: false,
        served: true,
        moves_payload: true,
        bulk: true,
        round_trips: false,
    };

    /// Bytes of a datagram's frame.
    fn frame(&self) -> f64 {
        f64::from(self.payload) + f64::from(estimate::UDP_FRAME)
    }
}

impl Kind for Udp {
    fn traits(&self) -> Traits {
        Udp::TRAITS
    }

    fn ecn_field(&self) -> u8 {
        match self.ect {
            None => 0b00,
            Some(0) => 0b10,
            Some(_) => 0b01,
        }
    }

    fn fluid(&self, flow: &Flow, _ways: &Paths<'_>) -> Option<Fluid> {
        let share = self.pattern.map_or(1.0, |pattern| pattern.share());
        let frame = self.frame() / f64::from(self.payload);
        Some(Fluid {
            maximum: self.rate.bits_per_sec() as f64 * frame * share * f64::from(flow.streams),
            wanted: estimate::framed(self.bytes, flow.streams, self.payload),
            yields: false,
            responses: false,
        })
    }

    fn count(&self, _flow: &Flow, _ways: &Paths<'_>, carried: Carried, _time: f64) -> Count {
        Count { forward: carried.bits / 8.0 / self.frame(), reverse: 0.0, trips: 0.0, carried }
    }
}

impl fmt::Display for Udp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "udp at {}, {} B datagrams", self.rate, self.payload)?;
        self.ect.map_or(Ok(()), |ect| write!(f, " with ECT({ect})"))?;
        if self.spacing == Spacing::Exponential {
            f.write_str(" at exponential intervals")?;
        }
        tcp::amount(f, self.bytes, self.pattern)
    }
}
