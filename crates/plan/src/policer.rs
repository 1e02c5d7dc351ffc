//! A policer.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Rate;

use crate::describe::Bytes;

/// A token bucket that drops the packets it has no tokens for. It delays none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate at which the bucket fills.
    pub rate: Rate,
    /// Size of the bucket in frame bytes: what passes at once after a pause.
    pub burst: u64,
}

impl fmt::Display for Policer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policed to {} with bursts of {}", self.rate, Bytes(self.burst))
    }
}
