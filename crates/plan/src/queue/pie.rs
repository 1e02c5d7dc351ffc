//! PIE (RFC 8033), with the names and defaults of `tc-pie(8)`, and DOCSIS-PIE (RFC 8034).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use super::{Discipline, Limit};

/// Proportional integral controller, enhanced: drops arrivals at random with a probability that a controller of the
/// queueing delay sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pie {
    /// Maximum that may wait; arrivals beyond it are dropped. Default: 1000 packets.
    #[schemars(extend("x-tcplab" = "positive-amount"))]
    pub limit: Limit,
    /// The queueing delay that the controller steers to. Default: 15 ms (RFC 8033, section 4.2).
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub target: Span,
    /// Interval at which the drop probability is computed. Default: 15 ms.
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub tupdate: Span,
    /// Weight of the delay's distance from the target, in 1/16 Hz. Default: 2, which is 0.125 Hz.
    #[schemars(range(max = 32))]
    pub alpha: u32,
    /// Weight of the delay's change, in 1/16 Hz. Default: 20, which is 1.25 Hz.
    #[schemars(range(max = 32))]
    pub beta: u32,
    /// For how long after a quiet time nothing is dropped. Default: 150 ms (section 4.4).
    pub max_burst: Span,
    /// Mark packets of ECN-capable flows instead of dropping them, while the probability is below 10 %
    /// (section 5.1). Default: off.
    pub ecn: bool,
    /// Drop small packets less often, by their size. Default: off (section 5.3).
    pub bytemode: bool,
    /// The control law of cable modems (RFC 8034, appendix A). Default: off.
    #[schemars(extend("x-preset" = Pie::docsis()))]
    pub docsis: bool,
}

impl Default for Pie {
    fn default() -> Pie {
        Pie {
            limit: Limit::Packets(1000),
            target: Span::from_ms(15),
            tupdate: Span::from_ms(15),
            alpha: 2,
            beta: 20,
            max_burst: Span::from_ms(150),
            ecn: false,
            bytemode: false,
            docsis: false,
        }
    }
}

impl Pie {
    /// DOCSIS-PIE: the values of RFC 8034, section 4 and appendix A.
    pub fn docsis() -> Pie {
        Pie {
            target: Span::from_ms(10),
            tupdate: Span::from_ms(16),
            // 0.25 and 2.5 Hz.
            alpha: 4,
            beta: 40,
            max_burst: Span::from_ms(142),
            bytemode: true,
            docsis: true,
            ..Pie::default()
        }
    }
}

impl Discipline for Pie {
    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }
}

impl fmt::Display for Pie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let law = if self.docsis { ", DOCSIS" } else { "" };
        let ecn = if self.ecn { ", marks" } else { "" };
        write!(f, "pie of {} (target {}{law}{ecn})", self.limit, self.target)
    }
}
