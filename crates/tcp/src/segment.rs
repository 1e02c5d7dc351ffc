//! A TCP segment as the endpoint and the network see it.

/// A segment: header fields, options and the payload's length. 72 bytes, copied freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first payload byte (or of the SYN).
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Payload bytes.
    pub len: u32,
    /// Timestamp value; meaningful where `has_timestamp`.
    pub ts_val: u32,
    /// Timestamp echo.
    pub ts_ecr: u32,
    /// SACK blocks, `sack_count` of them.
    pub sack: [(u32, u32); 4],
    /// Window field as on the wire (scaled except in a SYN).
    pub window: u16,
    /// SYN, ACK, FIN, RST, PSH, ECE, CWR as on the wire.
    pub flags: u8,
    /// How many `sack` blocks there are.
    pub sack_count: u8,
    /// MSS option of a SYN.
    pub mss: u16,
    /// Window scale option of a SYN; 255: absent.
    pub window_scale: u8,
    /// ECN codepoint of the IP header: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// SACK-permitted option of a SYN.
    pub sack_permitted: bool,
    /// Whether the timestamp option is there.
    pub has_timestamp: bool,
    /// The next segment belongs to the same TSO burst.
    pub more: bool,
    /// The sender has sent these bytes before (the simulator's truth; not on the wire).
    pub retransmission: bool,
}

/// FIN flag.
pub const FIN: u8 = 0x01;
/// SYN flag.
pub const SYN: u8 = 0x02;
/// RST flag.
pub const RST: u8 = 0x04;
/// PSH flag.
pub const PSH: u8 = 0x08;
/// ACK flag.
pub const ACK: u8 = 0x10;
/// ECN echo flag.
pub const ECE: u8 = 0x40;
/// Congestion window reduced flag.
pub const CWR: u8 = 0x80;
