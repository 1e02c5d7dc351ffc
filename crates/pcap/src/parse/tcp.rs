//! TCP (RFC 9293) with its options, and UDP (RFC 768).

use super::{Protocol, Segment, Unparsed};

/// The flags of a TCP header.
pub mod flag {
    /// The sender has no more data.
    pub const FIN: u8 = 0x01;
    /// Begins a connection.
    pub const SYN: u8 = 0x02;
    /// Ends a connection at once.
    pub const RST: u8 = 0x04;
    /// Deliver without delay.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// RFC 7323 section 2.3.
const LARGEST_SHIFT: u8 = 14;
const TCP_LEN: usize = 20;
/// Up to the window: what follows is the checksum, the urgent pointer and options.
const TCP_NEEDED: usize = 16;
const UDP_LEN: usize = 8;

/// A range of sequence numbers the receiver has (RFC 2018): from `left` to before `right`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: u32,
    /// The sequence number behind the block.
    pub right: u32,
}

/// The options of a TCP header that the analysis understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size; 0: not announced.
    pub mss: u16,
    /// Window scale (RFC 7323), at most 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// Whether there are timestamps (RFC 7323).
    pub has_timestamps: bool,
    /// Timestamp value.
    pub timestamp: u32,
    /// Timestamp echo reply.
    pub timestamp_echo: u32,
    pub(crate) sack: [SackBlock; 4],
    pub(crate) sack_count: u8,
}

impl TcpOptions {
    /// The SACK blocks.
    #[inline]
    pub fn sack(&self) -> &[SackBlock] {
        &self.sack[..usize::from(self.sack_count.min(4))]
    }
}

/// Reads the transport header at `at`; header and payload are `len` bytes by the IP header.
#[inline]
pub(super) fn parse(bytes: &[u8], at: usize, len: u32, segment: &mut Segment) -> Result<(), Unparsed> {
    match segment.protocol {
        Protocol::Tcp => tcp(bytes, at, len, segment),
        Protocol::Udp => udp(bytes, at, len, segment),
    }
}

#[inline]
fn udp(bytes: &[u8], at: usize, len: u32, segment: &mut Segment) -> Result<(), Unparsed> {
    let header = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>).ok_or(Unparsed::HeaderCut)?;
    segment.source_port = u16::from_be_bytes([header[0], header[1]]);
    segment.destination_port = u16::from_be_bytes([header[2], header[3]]);
    segment.payload_at = (at + UDP_LEN) as u16;
    let payload_len = len.checked_sub(UDP_LEN as u32).ok_or(Unparsed::Malformed)?;
    // Options may follow the payload within the IP packet (RFC 9868). The field is 0 in a jumbogram (RFC 2675 section
    // 4), and cannot tell how long a super-packet is.
    let said =
        bytes.get(at + 4..).and_then(<[u8]>::first_chunk).map(|&said| u32::from(u16::from_be_bytes(said)));
    let said = said.filter(|_| len <= u32::from(u16::MAX)).and_then(|said| said.checked_sub(UDP_LEN as u32));
    segment.payload_len = said.map_or(payload_len, |said| said.min(payload_len));
    Ok(())
}

#[inline]
fn tcp(bytes: &[u8], at: usize, len: u32, segment: &mut Segment) -> Result<(), Unparsed> {
    let captured = bytes.get(at..).unwrap_or(&[]);
    let header = captured.first_chunk::<TCP_NEEDED>().ok_or(Unparsed::HeaderCut)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < TCP_LEN {
        return Err(Unparsed::Malformed);
    }
    segment.source_port = u16::from_be_bytes([header[0], header[1]]);
    segment.destination_port = u16::from_be_bytes([header[2], header[3]]);
    segment.seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    segment.ack = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    segment.flags = header[13];
    segment.ae = header[12] & 1 != 0;
    segment.window = u16::from_be_bytes([header[14], header[15]]);
    segment.payload_at = (at + header_len) as u16;
    segment.payload_len = len.checked_sub(header_len as u32).ok_or(Unparsed::Malformed)?;
    if header_len == TCP_LEN {
        return Ok(());
    }
    let options = match captured.get(TCP_LEN..header_len) {
        Some(options) => options,
        None => {
            segment.options_cut = true;
            captured.get(TCP_LEN..).unwrap_or(&[])
        }
    };
    // The options of nearly every segment (RFC 7323 appendix A).
    if let &[NOP, NOP, TIMESTAMPS, 10, a, b, c, d, e, f, g, h] = options {
        segment.options.has_timestamps = true;
        segment.options.timestamp = u32::from_be_bytes([a, b, c, d]);
        segment.options.timestamp_echo = u32::from_be_bytes([e, f, g, h]);
    } else {
        parse_options(options, &mut segment.options);
    }
    Ok(())
}

/// Reads options up to the first that is cut or has an impossible length.
fn parse_options(mut bytes: &[u8], options: &mut TcpOptions) {
    loop {
        let (kind, len) = match bytes {
            [] | [END, ..] => return,
            [NOP, rest @ ..] => {
                bytes = rest;
                continue;
            }
            &[kind, len, ..] => (kind, usize::from(len)),
            _ => return,
        };
        let Some(value) = bytes.get(2..len) else { return };
        bytes = &bytes[len..];
        match (kind, value) {
            (MSS, &[a, b]) => options.mss = u16::from_be_bytes([a, b]),
            (WINDOW_SCALE, &[shift]) => options.window_scale = Some(shift.min(LARGEST_SHIFT)),
            (SACK_PERMITTED, []) => options.sack_permitted = true,
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                options.has_timestamps = true;
                options.timestamp = u32::from_be_bytes([a, b, c, d]);
                options.timestamp_echo = u32::from_be_bytes([e, f, g, h]);
            }
            (SACK, blocks) => {
                let (blocks, _) = blocks.as_chunks::<8>();
                for (slot, &[a, b, c, d, e, f, g, h]) in options.sack.iter_mut().zip(blocks) {
                    let (left, right) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                    *slot = SackBlock { left, right };
                }
                options.sack_count = blocks.len().min(options.sack.len()) as u8;
            }
            _ => {}
        }
    }
}
