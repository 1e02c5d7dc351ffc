//! A policer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Rate;

/// A token bucket that drops the packets it has no tokens for. It delays none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate at which the bucket fills.
    pub rate: Rate,
    /// Size of the bucket in frame bytes: what passes at once after a pause.
    pub burst: u64,
}
