//! Settings of real hosts: requirements on the path between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Probability, Span};

/// Requirements on the path between real hosts; the run does not start if they are not met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectPath {
    /// Its idle round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Around>,
    /// Its largest IP packet, at least (B).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
}

/// A time, more or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Around {
    /// The time.
    pub value: Span,
    /// How far from it is accepted, as a share of it.
    pub tolerance: Probability,
}
