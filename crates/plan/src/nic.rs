//! The network interfaces of a host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Rate;

/// How fast each network interface of a host sends. Its backlog is in the host, whose TCP sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    /// Rate at which it sends Ethernet frames.
    pub rate: Rate,
    /// Packets that may wait for it.
    pub queue: u32,
}
