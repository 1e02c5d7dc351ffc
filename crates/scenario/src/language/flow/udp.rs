//! Datagrams: `kind: udp`.

use schemars::JsonSchema;
use serde::Deserialize;
use tcplab_plan::{Generator, Spacing, Traffic};
use tcplab_units::Rate;

use super::super::kinds;
use super::{Pattern, Payload, Written, one};
use crate::expand::{FlowEndpoints, segment};

/// Bytes of a UDP header (RFC 768).
const HEADER: u32 = 8;
const ONE_BIT: Rate = match Rate::from_bits_per_sec(1) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// Datagrams at a rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Udp {
    /// Number of parallel sources.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) streams: u32,
    /// Rate of UDP payload per stream.
    #[schemars(with = "kinds::Rate", extend("examples" = ["10 Mbit/s"]))]
    pub(crate) rate: u64,
    /// Payload of a datagram, at least 16 B, as its number and the time it was sent take; default: what fills the path's
    /// MTU (1472 B; 1452 B over IPv6).
    #[schemars(with = "Option<kinds::Size>", extend("minimum" = 16))]
    pub(crate) payload: Option<u64>,
    /// Payload per stream; default: as much as the time allows.
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) bytes: Option<u64>,
    /// Pauses.
    pub(crate) pattern: Option<Pattern>,
    /// Whether the intervals between datagrams are equal, or exponentially distributed: then they are a Poisson process
    /// whose mean rate is `rate`.
    #[serde(default)]
    #[schemars(with = "Option<Spacing>")]
    pub(crate) spacing: Spacing,
    /// Make datagrams ECN-capable: 0 for ECT(0), 1 for ECT(1), by which queues of L4S classify; default: they are not.
    /// The sender does not respond to marks.
    #[schemars(with = "Option<kinds::Ect>")]
    pub(crate) ect: Option<u8>,
    /// Program that makes the traffic where it is real.
    #[serde(default)]
    #[schemars(with = "Option<Generator>")]
    pub(crate) generator: Generator,
}

impl Written for Udp {
    fn streams(&self) -> u32 {
        self.streams
    }

    fn ends_by_itself(&self) -> bool {
        self.bytes.is_some()
    }

    fn payload(&self) -> Option<Payload> {
        self.payload.map(|bytes| Payload { bytes, header: HEADER })
    }

    fn plan(&self, ends: &FlowEndpoints<'_>) -> Traffic {
        Traffic::Udp(tcplab_plan::Udp {
            rate: Rate::from_bits_per_sec(self.rate.max(1)).unwrap_or(ONE_BIT),
            payload: self.payload.map_or(ends.room(HEADER), segment),
            bytes: self.bytes,
            pattern: self.pattern.as_ref().map(Pattern::plan),
            spacing: self.spacing,
            ect: self.ect,
            generator: self.generator,
        })
    }
}
