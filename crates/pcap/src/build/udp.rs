//! The UDP header (RFC 768).

/// Fields of a UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl Udp {
    /// The header, its checksum zero.
    pub(super) fn write(&self, bytes: &mut Vec<u8>, payload_len: u32) {
        let len = u16::try_from(8 + payload_len).unwrap_or(0);
        bytes.extend_from_slice(&self.source_port.to_be_bytes());
        bytes.extend_from_slice(&self.destination_port.to_be_bytes());
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(&[0, 0]);
    }
}
