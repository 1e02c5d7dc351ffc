//! ICMP echo (RFC 792, RFC 4443).

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

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
    pub(super) fn write(&self, bytes: &mut Vec<u8>, v6: bool) {
        let kind = match (self.reply, v6) {
            (false, false) => ECHO_REQUEST,
            (true, false) => ECHO_REPLY,
            (false, true) => ECHO_REQUEST_V6,
            (true, true) => ECHO_REPLY_V6,
        };
        bytes.extend_from_slice(&[kind, 0, 0, 0]);
        bytes.extend_from_slice(&self.identifier.to_be_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
    }
}
