//! The header a TAP device puts before each frame (`struct virtio_net_hdr`, virtio 1.2 section 5.1.6): what is
//! left for the device to do.

/// Its length on the wire between kernel and emulator.
pub(crate) const LEN: usize = 10;

/// The transport checksum is to be completed from `checksum_start` on; its field holds the pseudo-header's sum.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;

/// Not segmented.
pub(crate) const GSO_NONE: u8 = 0;
/// TCP over IPv4.
pub(crate) const GSO_TCP4: u8 = 1;
/// TCP over IPv6.
pub(crate) const GSO_TCP6: u8 = 4;
/// UDP datagrams, each with its own header on the wire.
pub(crate) const GSO_UDP: u8 = 5;
/// The first segment alone carries CWR.
pub(crate) const GSO_ECN: u8 = 0x80;

/// The header's fields. All numbers are in the machine's byte order, as TAP devices give them by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) flags: u8,
    pub(crate) gso_type: u8,
    /// Bytes of all headers of the frame.
    pub(crate) header_len: u16,
    /// Payload bytes of each segment but the last.
    pub(crate) gso_size: u16,
    pub(crate) checksum_start: u16,
    /// From `checksum_start` to the field.
    pub(crate) checksum_offset: u16,
}

impl Header {
    #[inline]
    pub(crate) fn read(bytes: &[u8; LEN]) -> Header {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Header {
            flags: bytes[0],
            gso_type: bytes[1],
            header_len: number(2),
            gso_size: number(4),
            checksum_start: number(6),
            checksum_offset: number(8),
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> [u8; LEN] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        let numbers = [self.header_len, self.gso_size, self.checksum_start, self.checksum_offset];
        for (at, number) in numbers.into_iter().enumerate() {
            bytes[2 + 2 * at..4 + 2 * at].copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let header = Header {
            flags: NEEDS_CHECKSUM,
            gso_type: GSO_TCP4 | GSO_ECN,
            header_len: 66,
            gso_size: 1448,
            checksum_start: 34,
            checksum_offset: 16,
        };
        assert_eq!(Header::read(&header.bytes()), header);
    }
}
