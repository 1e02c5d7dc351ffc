//! Echo requests of ICMP: `kind: ping`.

use schemars::JsonSchema;
use serde::Deserialize;
use tcplab_plan::Traffic;
use tcplab_units::Span;

use super::super::kinds;
use super::{Payload, Written, one};
use crate::expand::{FlowEndpoints, segment};

/// Bytes of the header of an echo request (RFC 792, RFC 4443).
const HEADER: u32 = 8;

/// Echo requests, as ICMP.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Ping {
    /// Number of parallel sources.
    #[serde(default = "one")]
    #[schemars(with = "Option<kinds::Streams>")]
    pub(crate) streams: u32,
    /// Time between two probes (default 100 ms).
    #[serde(default = "tenth_of_a_second")]
    #[schemars(with = "Option<kinds::PositiveTime>")]
    pub(crate) interval: u64,
    /// Payload of a probe (default 56 B).
    #[serde(default = "fifty_six")]
    #[schemars(with = "Option<kinds::Size>")]
    pub(crate) payload: u64,
    /// How many; default: as many as the time allows.
    #[schemars(with = "Option<kinds::Count>")]
    pub(crate) count: Option<u64>,
}

fn tenth_of_a_second() -> u64 {
    100_000_000
}

fn fifty_six() -> u64 {
    56
}

impl Written for Ping {
    fn streams(&self) -> u32 {
        self.streams
    }

    fn ends_by_itself(&self) -> bool {
        self.count.is_some()
    }

    fn payload(&self) -> Option<Payload> {
        Some(Payload { bytes: self.payload, header: HEADER })
    }

    fn without_ports(&self) -> Option<&'static str> {
        Some("ping has no ports")
    }

    fn plan(&self, _: &FlowEndpoints<'_>) -> Traffic {
        Traffic::Ping(tcplab_plan::Ping {
            interval: Span::from_ns(self.interval),
            payload: segment(self.payload),
            count: self.count,
        })
    }
}
