//! A packet field by field, and in a line.
//!
//! [`Dissector::fields`] names every field of every header with its place in the packet, for a person who looks at
//! one packet. [`Dissector::summary`] says what matters in a line, for lists of millions. Both walk the same code
//! over the bytes: a summary merely leaves the fields unwritten.
//!
//! Nothing here trusts a length that a packet claims: what lies beyond the captured bytes is said to be missing.

mod arp;
mod conversation;
mod ethernet;
mod extension;
mod icmp;
mod ipv4;
mod ipv6;
mod names;
mod segment;
mod tcp;
mod tcp_options;
mod transport;
mod tree;
mod udp;
mod unpack;

pub use tree::{Field, Place, Summary};

use conversation::Conversations;
use tree::Tree;

/// A packet as it stands in a capture.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The link type's number (LINKTYPE_ETHERNET is 1).
    pub link_type: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Its length on the wire, bytes.
    pub wire_len: u32,
}

/// Dissects the packets of one capture, in their order: sequence numbers are relative to earlier packets.
#[derive(Debug, Default)]
pub struct Dissector {
    tree: Tree,
    conversations: Conversations,
}

impl Dissector {
    /// A dissector that has seen nothing yet.
    pub fn new() -> Dissector {
        Dissector::default()
    }

    /// The packet in a line. It holds until the next packet is dissected.
    pub fn summary(&mut self, packet: &Captured<'_>) -> &Summary {
        self.tree.begin(false);
        ethernet::link(&mut self.tree, &mut self.conversations, packet);
        &self.tree.summary
    }

    /// The line of the packet dissected last.
    pub fn last(&self) -> &Summary {
        &self.tree.summary
    }

    /// Every field of the packet, in the order of its bytes, and the packet in a line.
    pub fn fields(&mut self, packet: &Captured<'_>) -> (Vec<Field>, &Summary) {
        self.tree.begin(true);
        ethernet::link(&mut self.tree, &mut self.conversations, packet);
        (self.tree.take(), &self.tree.summary)
    }
}

#[cfg(test)]
mod tests;
