//! IPv6 (RFC 8200).

use std::net::Ipv6Addr;

use super::conversation::Conversations;
use super::segment::Segment;
use super::tree::{Place, Tree};
use super::unpack::{array_at, u8_at, u16_at, u32_at};
use super::{extension, names, transport};

pub(super) fn header(
    tree: &mut Tree,
    seen: &mut Conversations,
    bytes: &[u8],
    at: usize,
    wire_len: usize,
    nesting: u8,
) {
    if bytes.len() < at + 40 {
        return tree.cut("IPv6", at, bytes.len());
    }
    let word = u32_at(bytes, at);
    let said = usize::from(u16_at(bytes, at + 4));
    let next = u8_at(bytes, at + 6);
    let source = Ipv6Addr::from(array_at(bytes, at + 8));
    let destination = Ipv6Addr::from(array_at(bytes, at + 24));
    tree.summary.source = Place::V6(source);
    tree.summary.destination = Place::V6(destination);
    tree.field("IPv6", at, 40, || format!("{source} -> {destination}"));
    tree.down();
    tree.field("Version", at, 1, || word >> 28);
    let dscp = (word >> 22) as u8 & 0x3f;
    tree.field("DSCP", at, 2, || format!("{dscp} ({})", names::dscp(dscp)));
    let ecn = (word >> 20) as u8 & 3;
    tree.field("ECN", at + 1, 1, || format!("{ecn} ({})", names::ecn(ecn)));
    tree.field("Flow label", at + 1, 3, || format!("0x{:05x}", word & 0xf_ffff));
    tree.field("Payload length", at + 4, 2, || match said {
        0 => "0 (a jumbo payload option or the frame says)".to_owned(),
        _ => said.to_string(),
    });
    tree.field("Next header", at + 6, 1, || format!("{next} ({})", names::ip_protocol(next)));
    tree.field("Hop limit", at + 7, 1, || u8_at(bytes, at + 7));
    tree.field("Source", at + 8, 16, || source);
    tree.field("Destination", at + 24, 16, || destination);
    tree.up();
    let on_wire = wire_len.saturating_sub(at + 40);
    let len = if said == 0 { on_wire } else { said };
    let chain = extension::chain(tree, bytes, at + 40, at + 40 + len, next);
    let end = at + 40 + len;
    let segment = Segment {
        bytes,
        at: chain.at,
        len: end.saturating_sub(chain.at),
        protocol: chain.protocol,
        source: Place::V6(source),
        destination: Place::V6(chain.last_destination.unwrap_or(destination)),
        fragment: chain.more_fragments,
        nesting,
    };
    if chain.cut {
        // The summary has said so.
    } else if chain.fragment_offset > 0 {
        tree.summary.ip_protocol = Some(segment.protocol);
        transport::data(tree, &segment, segment.at, segment.len);
        let last = if chain.more_fragments { "" } else { ", the last" };
        tree.say(
            "IPv6",
            format_args!(
                "fragment of {} at {}, {} bytes{last}",
                names::ip_protocol(segment.protocol),
                chain.fragment_offset,
                segment.len,
            ),
        );
    } else {
        transport::payload(tree, seen, &segment);
        if segment.fragment {
            tree.add(format_args!(" (first fragment)"));
        }
    }
    if nesting == 0 && end < wire_len && bytes.len() > end {
        tree.field("Padding", end, wire_len - end, || format!("{} bytes behind the packet", wire_len - end));
    }
}
