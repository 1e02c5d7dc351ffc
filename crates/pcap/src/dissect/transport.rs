//! From an IP protocol number to what reads it.

use super::conversation::Conversations;
use super::segment::Segment;
use super::tree::Tree;
use super::unpack::{hex, rest};
use super::{icmp, ipv4, ipv6, names, tcp, udp};

/// IP packets within IP packets that are followed.
const MAX_NESTING: u8 = 4;

pub(super) fn payload(tree: &mut Tree, seen: &mut Conversations, segment: &Segment<'_>) {
    let Segment { bytes, at, len, protocol, nesting, .. } = *segment;
    tree.summary.ip_protocol = Some(protocol);
    match protocol {
        6 => tcp::header(tree, seen, segment),
        17 => udp::header(tree, segment),
        1 => icmp::v4(tree, segment),
        58 => icmp::v6(tree, segment),
        4 if nesting < MAX_NESTING => ipv4::header(tree, seen, bytes, at, at + len, nesting + 1),
        41 if nesting < MAX_NESTING => ipv6::header(tree, seen, bytes, at, at + len, nesting + 1),
        59 => tree.say("IPv6", format_args!("no next header, {len} bytes")),
        _ => {
            let name = names::ip_protocol(protocol);
            data(tree, segment, at, len);
            if name == "unknown" {
                tree.say("IP", format_args!("protocol {protocol}, {len} bytes"));
            } else {
                tree.say(name, format_args!("{len} bytes"));
            }
        }
    }
}

/// Payload that nothing reads further.
pub(super) fn data(tree: &mut Tree, segment: &Segment<'_>, at: usize, len: usize) {
    if len > 0 {
        let captured = segment.bytes.len().saturating_sub(at).min(len);
        tree.field("Data", at, len, || {
            let shown = hex(rest(segment.bytes, at).get(..captured).unwrap_or_default());
            match captured {
                0 => format!("{len} bytes, none of them captured"),
                _ if captured < len => format!("{len} bytes, {captured} of them captured: {shown}"),
                _ => format!("{len} bytes: {shown}"),
            }
        });
    }
}
