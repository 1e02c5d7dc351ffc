//! Random variation of the delay.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

/// Random variation of the delay: a process in time, which keeps packets in order, or with `reorder`
/// independent from packet to packet. Mean and spread are the same at any packet rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// How the variation is distributed.
    pub distribution: Distribution,
    /// Half width (uniform), standard deviation (normal), or mean excess (Pareto).
    pub amount: Span,
    /// Time in which the autocorrelation of the delay falls to 1/e. It has no meaning with `reorder`.
    pub correlation_time: Span,
}

/// Shapes of jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Evenly within ± amount.
    Uniform,
    /// Gaussian with this standard deviation; never below zero delay.
    Normal,
    /// Heavy-tailed (shape 3), only lengthens the delay.
    Pareto,
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Distribution::Uniform => "uniform",
            Distribution::Normal => "normal",
            Distribution::Pareto => "Pareto",
        })
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} jitter of {}", self.distribution, self.amount)
    }
}
