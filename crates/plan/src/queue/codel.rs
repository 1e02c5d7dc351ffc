//! CoDel (RFC 8289), with the names and defaults of `tc-codel(8)`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Rate, Span};

use super::{Discipline, Limit, late_target};

/// Controlled delay: drops from the head when packets have waited longer than `target` for a whole `interval`, then
/// ever more often until they wait less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Codel {
    /// Maximum that may wait; arrivals beyond it are dropped. Default: 1000 packets.
    #[schemars(extend("x-tcplab" = "positive-amount"))]
    pub limit: Limit,
    /// The standing delay that is acceptable. Default: 5 ms (RFC 8289, section 4.4).
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub target: Span,
    /// For how long it may be exceeded: about the longest round trip of the flows. Default: 100 ms (section 4.3).
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub interval: Span,
    /// Mark packets of ECN-capable flows instead of dropping them. Default: off.
    pub ecn: bool,
    /// Also mark each packet that has waited longer than this, as for DCTCP. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Span>,
}

impl Default for Codel {
    fn default() -> Codel {
        Codel {
            limit: Limit::Packets(1000),
            target: Span::from_ms(5),
            interval: Span::from_ms(100),
            ecn: false,
            ce_threshold: None,
        }
    }
}

impl Discipline for Codel {
    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn cautions(&self, _rate: Option<Rate>) -> Vec<String> {
        late_target(self.target, self.interval).into_iter().collect()
    }
}

impl fmt::Display for Codel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ecn = if self.ecn { ", marks" } else { "" };
        write!(f, "codel of {} (target {}, interval {}{ecn})", self.limit, self.target, self.interval)
    }
}
