//! The bytes that an IP header describes, and the verdict on their checksum.

use super::tree::{Place, Tree};

/// The payload of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    /// The whole captured packet.
    pub(super) bytes: &'a [u8],
    /// Where the payload begins.
    pub(super) at: usize,
    /// Its length by the IP header, bytes.
    pub(super) len: usize,
    /// Its protocol's number.
    pub(super) protocol: u8,
    pub(super) source: Place,
    pub(super) destination: Place,
    /// It is the first of several fragments: the rest of the datagram is elsewhere.
    pub(super) fragment: bool,
    /// IP packets around this one.
    pub(super) nesting: u8,
}

/// The verdict on a checksum field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Correct,
    Wrong {
        expected: u16,
    },
    /// The field holds the sum over the pseudo-header alone.
    Offloaded,
    /// Zero: none was computed (UDP over IPv4).
    Absent,
    /// Some of what it covers was not captured.
    Cut,
    /// It covers a datagram of which this is a fragment.
    Fragment,
}

impl Verdict {
    /// In words, behind the value.
    pub(super) fn words(self) -> String {
        match self {
            Verdict::Correct => "correct".to_owned(),
            Verdict::Wrong { expected } => format!("wrong: 0x{expected:04x} would be right"),
            Verdict::Offloaded => "offloaded: only the pseudo-header is summed yet. The packet was captured \
                                   before the network card that completes the checksum"
                .to_owned(),
            Verdict::Absent => "none: the sender computed no checksum".to_owned(),
            Verdict::Cut => "not verified: the packet was not captured whole".to_owned(),
            Verdict::Fragment => "not verified: it covers all fragments of the datagram".to_owned(),
        }
    }
}

impl Segment<'_> {
    /// Bytes of the payload that were captured.
    pub(super) fn captured(&self) -> usize {
        self.bytes.len().saturating_sub(self.at).min(self.len)
    }

    /// The verdict on the 16 bits at `at` of the payload, a checksum over all of it and the pseudo-header.
    pub(super) fn verdict(&self, at: usize, pseudo_header: bool) -> Verdict {
        if self.fragment {
            return Verdict::Fragment;
        }
        let Some(covered) = self.bytes.get(self.at..).and_then(|rest| rest.get(..self.len)) else {
            return Verdict::Cut;
        };
        let Some(field) = covered.get(at..).and_then(|rest| rest.first_chunk::<2>()) else {
            return Verdict::Cut;
        };
        let found = u16::from_be_bytes(*field);
        let pseudo = if pseudo_header { self.pseudo_header() } else { 0 };
        // Over everything with the field in it, a right checksum makes the sum all ones (RFC 1071).
        let whole = fold(pseudo + sum(covered));
        if whole == 0xffff {
            return Verdict::Correct;
        }
        if pseudo_header && found == fold(pseudo) {
            return Verdict::Offloaded;
        }
        let expected = !fold(pseudo + sum(covered) + u64::from(!found));
        Verdict::Wrong { expected }
    }

    /// Sum of the pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1).
    fn pseudo_header(&self) -> u64 {
        let addresses: u64 = [self.source, self.destination]
            .iter()
            .map(|place| match place {
                Place::V4(address) => sum(&address.octets()),
                Place::V6(address) => sum(&address.octets()),
                Place::Mac(_) | Place::Unknown => 0,
            })
            .sum();
        let len = self.len as u64;
        addresses + u64::from(self.protocol) + (len >> 16) + (len & 0xffff)
    }
}

/// Writes a checksum field of two bytes.
pub(super) fn checksum_field(tree: &mut Tree, at: usize, found: u16, verdict: impl FnOnce() -> Verdict) {
    tree.field("Checksum", at, 2, || format!("0x{found:04x} ({})", verdict().words()));
}

/// Sum of 16-bit words in network order, an odd last byte padded with zero.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, odd) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum();
    sum + odd.first().map_or(0, |&byte| u64::from(byte) << 8)
}

/// Folds the carries in.
pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
