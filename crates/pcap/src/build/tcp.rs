//! The TCP header and its options (RFC 9293, RFC 7323, RFC 2018, RFC 9768).

const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// A TCP header is at most 60 bytes, so its options 40.
const MAX_OPTION_BYTES: usize = 40;

/// Fields of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// AE, CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the highest bit to the lowest.
    pub flags: u16,
    /// Window as on the wire.
    pub window: u16,
    /// Options.
    pub options: TcpOptions<'a>,
}

/// Options of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions<'a> {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Timestamp value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks, left and right edge; those that don't fit into the header are left out.
    pub sack: &'a [(u32, u32)],
    /// Accurate ECN: the option's kind, and its counters of 24 bits in the order of that kind.
    pub accecn: Option<(u8, &'a [u32])>,
}

impl Tcp<'_> {
    /// The header with its options, its checksum zero.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend_from_slice(&self.source_port.to_be_bytes());
        bytes.extend_from_slice(&self.destination_port.to_be_bytes());
        bytes.extend_from_slice(&self.seq.to_be_bytes());
        bytes.extend_from_slice(&self.ack.to_be_bytes());
        bytes.extend_from_slice(&(self.flags & 0x1ff).to_be_bytes());
        bytes.extend_from_slice(&self.window.to_be_bytes());
        bytes.extend_from_slice(&[0, 0, 0, 0]);
        self.options.write(bytes);
        let header_len = bytes.len() - start;
        bytes[start + 12] |= (header_len as u8 / 4) << 4;
    }
}

impl TcpOptions<'_> {
    /// The options in the order and with the padding of Linux's `tcp_options_write`.
    fn write(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        if let Some(mss) = self.mss {
            bytes.extend_from_slice(&[MSS, 4]);
            bytes.extend_from_slice(&mss.to_be_bytes());
        }
        if self.sack_permitted {
            if self.timestamps.is_none() {
                bytes.extend_from_slice(&[NOP, NOP]);
            }
            bytes.extend_from_slice(&[SACK_PERMITTED, 2]);
        }
        if let Some((value, echo)) = self.timestamps {
            if !self.sack_permitted {
                bytes.extend_from_slice(&[NOP, NOP]);
            }
            bytes.extend_from_slice(&[TIMESTAMPS, 10]);
            bytes.extend_from_slice(&value.to_be_bytes());
            bytes.extend_from_slice(&echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            bytes.extend_from_slice(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        let room = MAX_OPTION_BYTES - (bytes.len() - start);
        let blocks = &self.sack[..self.sack.len().min(room.saturating_sub(4) / 8)];
        if !blocks.is_empty() {
            bytes.extend_from_slice(&[NOP, NOP, SACK, 2 + 8 * blocks.len() as u8]);
            for (left, right) in blocks {
                bytes.extend_from_slice(&left.to_be_bytes());
                bytes.extend_from_slice(&right.to_be_bytes());
            }
        }
        if let Some((kind, counters)) = self.accecn {
            bytes.extend_from_slice(&[kind, 2 + 3 * counters.len() as u8]);
            for counter in counters {
                bytes.extend_from_slice(&counter.to_be_bytes()[1..]);
            }
            while !(bytes.len() - start).is_multiple_of(4) {
                bytes.push(NOP);
            }
        }
        debug_assert!(bytes.len() - start <= MAX_OPTION_BYTES && (bytes.len() - start).is_multiple_of(4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(options: TcpOptions<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        options.write(&mut bytes);
        bytes
    }

    #[test]
    fn a_syn_as_linux_sends_it() {
        let syn = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((0x0102_0304, 0)),
            ..Default::default()
        };
        let bytes = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(options(syn), bytes);
    }

    #[test]
    fn sack_permitted_and_timestamps_alone_are_padded() {
        assert_eq!(options(TcpOptions { sack_permitted: true, ..Default::default() }), [1, 1, 4, 2]);
        let timestamps = TcpOptions { timestamps: Some((1, 2)), ..Default::default() };
        assert_eq!(options(timestamps), [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    }

    #[test]
    fn sack_blocks_follow_padding() {
        let bytes = [1, 1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 5];
        assert_eq!(options(TcpOptions { sack: &[(3, 5)], ..Default::default() }), bytes);
    }

    #[test]
    fn a_fourth_sack_block_does_not_fit_beside_timestamps() {
        let sack = &[(1, 2), (3, 4), (5, 6), (7, 8)];
        assert_eq!(options(TcpOptions { sack, ..Default::default() }).len(), 36);
        let crowded = TcpOptions { sack, timestamps: Some((1, 2)), ..Default::default() };
        assert_eq!(options(crowded).len(), 40);
    }

    #[test]
    fn accurate_ecn_is_a_flag_and_an_option() {
        let accecn = Some((174, &[1001, 500][..]));
        let bytes = [174, 8, 0, 3, 233, 0, 1, 244];
        assert_eq!(options(TcpOptions { accecn, ..Default::default() }), bytes);
        let full = Some((172, &[1, 0, 1][..]));
        let bytes = [172, 11, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1];
        assert_eq!(options(TcpOptions { accecn: full, ..Default::default() }), bytes);
        let mut bytes = Vec::new();
        let options = TcpOptions::default();
        Tcp { source_port: 1, destination_port: 2, seq: 3, ack: 4, flags: 0x150, window: 5, options }
            .write(&mut bytes);
        assert_eq!(bytes[12..14], [5 << 4 | 1, 0x50]);
    }

    #[test]
    fn the_data_offset_counts_the_options() {
        let mut bytes = Vec::new();
        let options = TcpOptions { timestamps: Some((1, 2)), ..Default::default() };
        let tcp =
            Tcp { source_port: 1, destination_port: 2, seq: 3, ack: 4, flags: 0x10, window: 5, options };
        tcp.write(&mut bytes);
        assert_eq!(bytes.len(), 20 + 12);
        assert_eq!(bytes[12], 8 << 4);
    }
}
