//! What a link needs to know of a packet.

/// A packet that crosses links.
pub trait Packet {
    /// Bytes of its Ethernet frame (IP length + 14); what serialisation and byte limits count.
    fn frame_len(&self) -> u32;
    /// Whether its sender can be told of congestion by a mark (ECT(0), ECT(1) or already CE).
    fn is_ect(&self) -> bool;
    /// Set "congestion experienced" (RFC 3168 section 5).
    fn mark_ce(&mut self);
    /// Damage it: it travels on, and the receiver's checksum discards it.
    fn corrupt(&mut self);
    /// An identical copy.
    fn duplicate(&self) -> Self;
}
