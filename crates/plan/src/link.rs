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
    /// The medium that both directions share with other links; none: each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
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
    /// Overhead of each frame on the wire.
    #[serde(default, skip_serializing_if = "Overhead::is_none")]
    pub overhead: Overhead,
    /// Policer before the queue, which drops packets above its rate.
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

impl Link {
    /// Whether neither direction does anything to packets, so that a cable is enough.
    pub fn is_cable(&self) -> bool {
        [&self.forward, &self.backward].into_iter().all(Direction::is_cable)
    }
}

impl Direction {
    /// Whether it does nothing to packets.
    fn is_cable(&self) -> bool {
        let Direction {
            rate,
            overhead: _,
            policer,
            queue: _,
            delay,
            jitter,
            reorder,
            loss,
            corrupt,
            duplicate,
            up,
            trace,
            changes,
        } = self;
        // Without a rate nothing waits and nothing is on a wire.
        let service = rate.is_none() && trace.is_none() && policer.is_none();
        let losses = loss.is_none() && corrupt.is_none() && duplicate.is_none();
        let times = *delay == Span::ZERO && jitter.is_none() && reorder.is_none();
        *up && service && losses && times && changes.is_empty()
    }
}
