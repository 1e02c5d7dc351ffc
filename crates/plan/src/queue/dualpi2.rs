//! DualPI2 (RFC 9332), with the names and defaults of `tc-dualpi2(8)`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Probability, Span};

use super::{Discipline, Limit};

/// Two queues with coupled controllers: one for scalable flows, whose packets carry ECT(1) or CE, and one for all
/// others. Both get about the same rate a flow, and the former hardly any delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dualpi2 {
    /// Maximum that may wait in both queues; arrivals beyond it are dropped. Default: 10000 packets.
    #[schemars(extend("x-tcplab" = "positive-amount"))]
    pub limit: Limit,
    /// The delay that the controller steers the classic queue to. Default: 15 ms (RFC 9332, appendix A.1).
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub target: Span,
    /// Interval at which its probability is computed. Default: 16 ms.
    #[schemars(extend("x-tcplab" = "positive-time"))]
    pub tupdate: Span,
    /// Weight of the delay's distance from the target, in 1/256 Hz. Default: 41, which is 0.16 Hz.
    #[schemars(range(max = 65_536))]
    pub alpha: u32,
    /// Weight of the delay's change, in 1/256 Hz. Default: 819, which is 3.2 Hz.
    #[schemars(range(max = 65_536))]
    pub beta: u32,
    /// Factor from the controller's probability to that of marks for scalable flows. Default: 2 (section 2.1).
    #[schemars(range(max = 255))]
    pub coupling_factor: u32,
    /// Delay from which every packet of the scalable queue is marked. Default: 1 ms.
    pub step_thresh: Span,
    /// The classic queue's share of the link while both have packets. Default: 10 %.
    pub classic_protection: Probability,
}

impl Default for Dualpi2 {
    fn default() -> Dualpi2 {
        Dualpi2 {
            limit: Limit::Packets(10_000),
            target: Span::from_ms(15),
            tupdate: Span::from_ms(16),
            alpha: 41,
            beta: 819,
            coupling_factor: 2,
            step_thresh: Span::from_ms(1),
            classic_protection: Probability::from_ppb(100_000_000),
        }
    }
}

impl Discipline for Dualpi2 {
    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }
}

impl fmt::Display for Dualpi2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dualpi2 of {} (target {}, step at {})", self.limit, self.target, self.step_thresh)
    }
}
