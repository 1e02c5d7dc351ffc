//! Linux's fq, with the names and defaults of `tc-fq(8)`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Rate, Span};

use super::{Discipline, Limit};

/// A queue for each flow, without collisions, served in turn; a flow that has just begun goes first. Hosts pace with
/// it; on a link it knows no departure times of senders, only `maxrate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fq {
    /// Maximum that may wait in all flows together; arrivals beyond it are dropped. Default: 10000 packets.
    #[schemars(extend("x-tcplab" = "positive-amount"))]
    pub limit: Limit,
    /// Maximum packets of a flow that may wait. Default: 100.
    #[schemars(range(min = 1, max = 65_536))]
    pub flow_limit: u32,
    /// Frame bytes that a flow may send in a turn. Default: 3028, two Ethernet frames.
    #[schemars(range(max = 1_048_576), extend("x-tcplab" = "positive-size"))]
    pub quantum: u32,
    /// Frame bytes that a new flow may send in its first turn. Default: 15140, ten Ethernet frames.
    #[schemars(range(max = 1_048_576), extend("x-tcplab" = "positive-size"))]
    pub initial_quantum: u32,
    /// Rate that no flow exceeds. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maxrate: Option<Rate>,
    /// Mark each packet that has waited longer than this. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Span>,
}

impl Default for Fq {
    fn default() -> Fq {
        Fq {
            limit: Limit::Packets(10_000),
            flow_limit: 100,
            quantum: 3028,
            initial_quantum: 15_140,
            maxrate: None,
            ce_threshold: None,
        }
    }
}

impl Discipline for Fq {
    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn shapes(&self) -> bool {
        self.maxrate.is_some()
    }
}

impl fmt::Display for Fq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fq of {} ({} packets a flow", self.limit, self.flow_limit)?;
        self.maxrate.map_or(Ok(()), |rate| write!(f, ", {rate} at most"))?;
        f.write_str(")")
    }
}
