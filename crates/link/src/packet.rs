//! Properties of a packet that a link needs.

/// A packet that crosses links.
pub trait Packet {
    /// Bytes of its Ethernet frame (IP length + 14); what serialization and byte limits count.
    fn frame_len(&self) -> u32;
    /// A hash of the addresses, protocol and ports: alike for all packets that a connection sends one way.
    fn flow_hash(&self) -> u32;
    /// The ECN field of its IP header; `NotEct` where it cannot be marked.
    fn ecn(&self) -> Ecn;
    /// The differentiated services codepoint of its IP header, 0 to 63 (RFC 2474).
    fn dscp(&self) -> u8;
    /// Set "congestion experienced" (RFC 3168 section 5).
    fn mark_ce(&mut self);
    /// Damage it: it travels on, and the receiver's checksum discards it.
    fn corrupt(&mut self);
    /// An identical copy.
    fn duplicate(&self) -> Self;

    /// Whether its sender can be notified of congestion by a mark (ECT(0), ECT(1) or already CE).
    #[inline]
    fn is_ect(&self) -> bool {
        self.ecn() != Ecn::NotEct
    }
}

/// The codepoints of the ECN field (RFC 3168 section 5; ECT(1) as RFC 9331 uses it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not capable of ECN.
    NotEct = 0,
    /// Capable of ECN: a sender of L4S.
    Ect1 = 1,
    /// Capable of ECN.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The codepoint in the two low bits of `bits`.
    #[inline]
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}
