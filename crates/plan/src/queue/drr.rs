//! Deficit round robin.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Limit, of_limit};

/// Flows take turns, each with as many bytes as the others (M. Shreedhar, G. Varghese, "Efficient fair queuing using
/// deficit round robin", 1996).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drr {
    /// Maximum that may wait in all flows together; beyond it the flow with the most bytes loses its last packet.
    /// `unlimited`: no limit.
    #[schemars(required, extend("x-tcplab" = "queue-limit"))]
    pub limit: Option<Limit>,
    /// Frame bytes that a flow may send in a turn. Default: 1514, an Ethernet frame.
    #[serde(default = "default_quantum")]
    #[schemars(range(max = 1_048_576), extend("x-tcplab" = "positive-size"))]
    pub quantum: u32,
    /// Queues that flows are hashed into. Default: 1024.
    #[serde(default = "default_flows")]
    #[schemars(range(min = 1, max = 65_536))]
    pub flows: u32,
}

/// A full Ethernet frame.
fn default_quantum() -> u32 {
    1514
}

/// As Linux's fq_codel has.
fn default_flows() -> u32 {
    1024
}

impl Discipline for Drr {
    fn limit(&self) -> Option<Limit> {
        self.limit
    }
}

impl fmt::Display for Drr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drr{} (quantum {} B)", of_limit(self.limit), self.quantum)
    }
}
