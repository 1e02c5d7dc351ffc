//! How long hosts take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a host takes to notice what arrives, and when its timers fire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// No time; timers fire on time.
    #[default]
    Ideal,
    /// As long as a Linux host: some 25 µs. Arrivals meanwhile are handled with it. Timers fire with ticks of 4 ms.
    Linux,
}

impl Timing {
    /// Whether hosts take no time.
    pub fn is_ideal(&self) -> bool {
        *self == Timing::Ideal
    }
}
