//! TCP (RFC 9293).

use std::fmt;

use super::conversation::{Conversations, Numbers};
use super::segment::{Segment, checksum_field};
use super::tree::Tree;
use super::unpack::{u8_at, u16_at, u32_at};
use super::{tcp_options, transport};

const SYN: u16 = 0x02;
const ACK: u16 = 0x10;

/// From the lowest bit to the highest. AE is the accurate ECN bit (RFC 9768), formerly NS.
const FLAGS: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];

/// The flags that are set, as `[SYN, ACK]`.
struct Flags(u16);

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        let set = FLAGS.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 == 1);
        for (i, (_, name)) in set.enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            f.write_str(name)?;
        }
        f.write_str("]")
    }
}

pub(super) fn header(tree: &mut Tree, seen: &mut Conversations, segment: &Segment<'_>) {
    let Segment { bytes, at, .. } = *segment;
    if segment.captured() < 20 {
        return tree.cut("TCP", at, at + segment.captured());
    }
    let (source, destination) = (u16_at(bytes, at), u16_at(bytes, at + 2));
    tree.summary.ports = Some((source, destination));
    let (seq, ack) = (u32_at(bytes, at + 4), u32_at(bytes, at + 8));
    let header_len = usize::from(u8_at(bytes, at + 12) >> 4) * 4;
    let flags = u16_at(bytes, at + 12) & 0x1ff;
    let window = u16_at(bytes, at + 14);
    let payload = segment.len.saturating_sub(header_len.max(20));
    let ends = (segment.source, source, segment.destination, destination);
    let numbers = Numbers { seq, ack, syn: flags & SYN != 0, has_ack: flags & ACK != 0 };
    let relative = seen.relative(ends, numbers);

    tree.field("TCP", at, header_len.max(20), || {
        format!("{source} -> {destination} {}, {payload} bytes of data", Flags(flags))
    });
    tree.down();
    tree.field("Source port", at, 2, || source);
    tree.field("Destination port", at + 2, 2, || destination);
    tree.field("Sequence number", at + 4, 4, || format!("{seq} ({})", relative.seq.remark()));
    tree.field("Acknowledgment number", at + 8, 4, || match relative.ack {
        None => format!("{ack} (not used: ACK is not set)"),
        Some((counted, _)) => format!("{ack} ({})", counted.remark()),
    });
    tree.field("Header length", at + 12, 1, || format!("{header_len} bytes"));
    tree.field("Flags", at + 12, 2, || format!("0x{flags:03x} {}", Flags(flags)));
    tree.down();
    for (bit, name) in FLAGS.iter().enumerate().rev() {
        let byte = if bit == 8 { at + 12 } else { at + 13 };
        tree.field(name, byte, 1, || if flags >> bit & 1 == 1 { "set" } else { "not set" });
    }
    tree.up();
    tree.field("Window", at + 14, 2, || match flags & SYN {
        0 => format!("{window} (times two to the window scale of the SYN, where both sent one)"),
        _ => format!("{window} (never scaled in a SYN)"),
    });
    checksum_field(tree, at + 16, u16_at(bytes, at + 16), || segment.verdict(16, true));
    tree.field("Urgent pointer", at + 18, 2, || u16_at(bytes, at + 18));
    if header_len < 20 || header_len > segment.len {
        tree.up();
        return tree.say("TCP", format_args!("{source} -> {destination} bad header length {header_len}"));
    }
    tree.say("TCP", format_args!("{source} -> {destination} {} seq {}", Flags(flags), relative.seq));
    if let Some((ack, _)) = relative.ack {
        tree.add(format_args!(" ack {ack}"));
    }
    tree.add(format_args!(" win {window} len {payload}"));
    if header_len > 20 {
        tcp_options::list(tree, bytes, at + 20, at + header_len, relative.ack.map(|(_, side)| side));
    }
    tree.up();
    transport::data(tree, segment, at + header_len, payload);
}
