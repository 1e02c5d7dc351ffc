//! A TCP segment as the endpoint and the network see it.

/// A segment: header fields, options and the payload's length. 84 bytes, copied freely.
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
    /// The AE flag, which with CWR and ECE makes the ACE field of accurate ECN (RFC 9768).
    pub ae: bool,
    /// Accurate ECN's byte counters, where `fields` of it is not zero.
    pub accecn: AccEcnOption,
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

impl Segment {
    /// It has data or a FIN, so it is not a pure ACK.
    pub(crate) fn occupies_sequence(&self) -> bool {
        self.len > 0 || self.flags & FIN != 0
    }
}

/// The option of accurate ECN (RFC 9768, section 3.2.3): bytes that arrived with each codepoint, modulo 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccEcnOption {
    /// How many of the counters it carries; 0: it is not there.
    pub fields: u8,
    /// It begins with ECT(1) (AccECN1), and not with ECT(0) (AccECN0).
    pub ect1_first: bool,
    /// Bytes with ECT(0), plus 1.
    pub e0b: u32,
    /// Bytes with CE.
    pub ceb: u32,
    /// Bytes with ECT(1), plus 1.
    pub e1b: u32,
}

impl AccEcnOption {
    /// Kind of the option: 172 for AccECN0, 174 for AccECN1.
    pub fn kind(&self) -> u8 {
        if self.ect1_first { 174 } else { 172 }
    }

    /// The counters in the order of the wire, those it does not carry too.
    pub fn counters(&self) -> [u32; 3] {
        if self.ect1_first { [self.e1b, self.ceb, self.e0b] } else { [self.e0b, self.ceb, self.e1b] }
    }

    /// Whether the count of marked bytes is among them: it is always the second.
    pub fn carries_marks(&self) -> bool {
        self.fields >= 2
    }

    /// Bytes of the option with its padding.
    pub fn padded_len(&self) -> u32 {
        match self.fields {
            0 => 0,
            fields => (2 + 3 * u32::from(fields)).next_multiple_of(4),
        }
    }
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
