//! Caches: `cache` of a router.

use schemars::JsonSchema;
use serde::Deserialize;

use super::kinds;

/// An HTTP cache (RFC 9111).
///
/// It answers requests of http flows that pass the router from what it has stored, and passes on the others.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cache {
    /// Maximum bytes stored, heads and bodies; what was used least recently goes first (default 256 MiB).
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) size: Option<u64>,
    /// How long an end may leave unacknowledged what it was sent before its connection is reset (default 120 s).
    #[schemars(with = "Option<kinds::PositiveTime>")]
    pub(crate) user_timeout: Option<u64>,
}
