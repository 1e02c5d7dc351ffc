//! First in, first out.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Rate;

use super::{Discipline, Limit, of_limit};

/// First in, first out; arrivals beyond the limit are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Droptail {
    /// Maximum that may wait, without the packet in transmission: `625 packets`, `200 kB` (frame bytes), `50 ms`
    /// (time to drain at the link's present rate), `1.5 BDP`, or `unlimited`.
    #[schemars(required, extend("x-tcplab" = "queue-limit"))]
    pub limit: Option<Limit>,
    /// Step marking: a packet that arrives while more than this waits is marked *congestion experienced*, if
    /// its sender has negotiated ECN. In the units of `limit`; default: nothing is marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-tcplab" = "threshold"))]
    pub mark_above: Option<Limit>,
}

impl Discipline for Droptail {
    fn limit(&self) -> Option<Limit> {
        self.limit
    }

    fn tail_drop_limit(&self) -> Option<Limit> {
        self.limit
    }

    fn only_drops_tail(&self) -> bool {
        self.mark_above.is_none()
    }

    fn cautions(&self, rate: Option<Rate>) -> Vec<String> {
        let Some((limit, threshold)) = self.limit.zip(self.mark_above) else { return Vec::new() };
        let never = format!("`mark_above` of {threshold} has no effect: the queue's limit is {limit}");
        limit.is_at_most(threshold, rate).then_some(never).into_iter().collect()
    }
}

impl fmt::Display for Droptail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "droptail{}", of_limit(self.limit))?;
        self.mark_above.map_or(Ok(()), |threshold| write!(f, " (marks above {threshold})"))
    }
}
