//! ICMP echo (RFC 792).

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

/// Fields of an ICMP echo message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// An answer, not a question.
    pub reply: bool,
    /// Tells one pinger from another.
    pub identifier: u16,
    /// Counts the questions.
    pub sequence: u16,
}

impl Echo {
    /// The header, its checksum zero.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&[if self.reply { ECHO_REPLY } else { ECHO_REQUEST }, 0, 0, 0]);
        bytes.extend_from_slice(&self.identifier.to_be_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
    }
}
