//! FlowQueue-CoDel (RFC 8290), with the names and defaults of `tc-fq_codel(8)`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Rate, Span};

use super::{Discipline, Limit, late_target};

/// Flows hashed into queues that are served in turn, with CoDel in each; a flow that has just begun goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FqCodel {
    /// Maximum that may wait in all queues together; beyond it the longest queue loses packets from its head. Default:
    /// 10240 packets (RFC 8290, section 5.2.1).
    #[schemars(extend("x-tcplab" = "positive-amount"))]
    pub limit: Limit,
    /// Queues that flows are hashed into. Default: 1024 (section 5.2.4).
    #[schemars(range(min = 1, max = 65_536))]
    pub flows: u32,
    /// Frame bytes that a queue may send in a turn. Default: 1514, an Ethernet frame (section 5.2.2).
    #[schemars(range(max = 1_048_576), extend("x-tcplab" = "positive-size"))]
    pub quantum: u32,
    /// CoDel's acceptable standing delay in each queue. Default: 5 ms.
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub target: Span,
    /// CoDel's interval in each queue. Default: 100 ms.
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub interval: Span,
    /// Mark packets of ECN-capable flows instead of dropping them. Default: on.
    pub ecn: bool,
    /// Also mark each packet that has waited longer than this. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Span>,
}

impl Default for FqCodel {
    fn default() -> FqCodel {
        FqCodel {
            limit: Limit::Packets(10_240),
            flows: 1024,
            quantum: 1514,
            target: Span::from_ms(5),
            interval: Span::from_ms(100),
            ecn: true,
            ce_threshold: None,
        }
    }
}

impl Discipline for FqCodel {
    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn cautions(&self, _rate: Option<Rate>) -> Vec<String> {
        late_target(self.target, self.interval).into_iter().collect()
    }
}

impl fmt::Display for FqCodel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ecn = if self.ecn { ", marks" } else { "" };
        write!(f, "fq_codel of {} (target {}, interval {}{ecn})", self.limit, self.target, self.interval)
    }
}
