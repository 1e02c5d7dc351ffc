//! An HTTP cache in a router.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::Span;

use crate::describe::Bytes;

mod store;

pub use store::{Found, Store};

/// Answers the requests of http flows that pass the node from what it has stored, and passes on the others (RFC 9111).
///
/// It ends each connection of these flows, and opens a second one to its destination when a request first needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cache {
    /// Maximum bytes stored: heads and bodies.
    pub size: u64,
    /// How long an end may leave unacknowledged what it was sent before its connection is reset.
    pub user_timeout: Span,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { size: 256 << 20, user_timeout: Span::from_secs(120) }
    }
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cache of {}", Bytes(self.size))
    }
}
