//! Links and their directions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcplab_units::{Rate, Span};

use crate::{Chance, Change, Jitter, Loss, Overhead, Policer, Queue, Reorder, Trace};

/// A link with its two directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The two nodes; forward is from the first to the second.
    pub ends: [String; 2],
    /// IPv4 addresses with prefix length of the two interfaces; none: a switch's port.
    pub addresses: [Option<String>; 2],
    /// IPv6 addresses likewise.
    #[serde(default)]
    pub addresses6: [Option<String>; 2],
    /// Largest IP packet.
    pub mtu: u32,
    /// First end to second end.
    pub forward: Direction,
    /// Second end to first end.
    pub backward: Direction,
}

/// Everything that one direction of a link does to a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Serialisation rate; none: packets leave the queue at once.
    pub rate: Option<Rate>,
    /// What each frame takes on the wire beside its own bytes.
    #[serde(default, skip_serializing_if = "Overhead::is_none")]
    pub overhead: Overhead,
    /// What drops packets before the queue that come faster than allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
    /// The queue in front of the serialiser.
    pub queue: Queue,
    /// One-way propagation delay.
    pub delay: Span,
    /// Variation added to the delay.
    pub jitter: Option<Jitter>,
    /// Packets sent ahead of their turn; without it, order is kept whatever the jitter. With it, each packet
    /// arrives after a delay of its own, so that jitter makes packets overtake too.
    pub reorder: Option<Reorder>,
    /// Which packets vanish.
    pub loss: Option<Loss>,
    /// Packets whose bits are damaged; the receiver's checksum discards them.
    pub corrupt: Option<Chance>,
    /// Packets delivered twice.
    pub duplicate: Option<Chance>,
    /// A down link drops what is offered to it and what it holds in its queue.
    pub up: bool,
    /// A delivery trace that replaces `rate`.
    pub trace: Option<Trace>,
    /// Settings that change during the run, by time.
    pub changes: Vec<Change>,
}
