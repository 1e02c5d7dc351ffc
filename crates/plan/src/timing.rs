//! How long hosts take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a host takes to notice what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// No time.
    #[default]
    Ideal,
    /// As long as a Linux host: some 25 µs. Arrivals meanwhile are handled with it.
    Linux,
}

impl Timing {
    /// Whether hosts take no time.
    pub fn is_ideal(&self) -> bool {
        *self == Timing::Ideal
    }
}
