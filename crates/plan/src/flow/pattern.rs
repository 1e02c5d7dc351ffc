//! Pauses in a flow.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

/// Pauses in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// Mean time of sending.
    pub on: Span,
    /// Mean time of silence.
    pub off: Span,
    /// How both are distributed.
    pub distribution: PatternDistribution,
}

/// How on and off times are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternDistribution {
    /// Always the mean.
    Constant,
    /// Exponentially.
    Exponential,
}

impl Pattern {
    /// The share of the time in which it sends.
    pub(crate) fn share(&self) -> f64 {
        self.on.as_ns() as f64 / (self.on.as_ns() + self.off.as_ns()) as f64
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distribution = match self.distribution {
            PatternDistribution::Constant => "constant",
            PatternDistribution::Exponential => "exponential",
        };
        write!(f, "{} on and {} off ({distribution})", self.on, self.off)
    }
}
