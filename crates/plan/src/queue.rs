//! Queue disciplines and their limits.

use serde::{Deserialize, Serialize};
use tcplab_units::Span;

/// A queue discipline and its limit. The limit counts what waits, not what is being sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Queue {
    /// First in, first out; arrivals beyond the limit are dropped.
    Droptail {
        /// How much may wait; none: no limit.
        limit: Option<Limit>,
        /// A packet that can carry a mark gets one ("congestion experienced") when more than this waits as it
        /// arrives; none: nothing is marked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark_above: Option<Limit>,
    },
}

/// How much may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Packets, whatever their size.
    Packets(u64),
    /// Frame bytes (IP length + 14).
    Bytes(u64),
    /// Time to drain at the link's present rate, or at the mean rate of its trace.
    Time(Span),
}
