//! IPv4 (RFC 791) with its options and fragments.

use std::net::Ipv4Addr;

use super::conversation::Conversations;
use super::segment::{Segment, fold, sum};
use super::tree::{Place, Tree};
use super::unpack::{array_at, hex, u8_at, u16_at};
use super::{names, transport};

pub(super) fn header(
    tree: &mut Tree,
    seen: &mut Conversations,
    bytes: &[u8],
    at: usize,
    wire_len: usize,
    nesting: u8,
) {
    if bytes.len() < at + 20 {
        return tree.cut("IPv4", at, bytes.len());
    }
    let header_len = usize::from(u8_at(bytes, at) & 0xf) * 4;
    let said = usize::from(u16_at(bytes, at + 2));
    let on_wire = wire_len.saturating_sub(at);
    // A super-packet beyond the field's range says 0 (Linux's BIG TCP): the frame knows its length.
    let total = if said == 0 { on_wire } else { said };
    let source = Ipv4Addr::from(array_at(bytes, at + 12));
    let destination = Ipv4Addr::from(array_at(bytes, at + 16));
    tree.summary.source = Place::V4(source);
    tree.summary.destination = Place::V4(destination);
    let flags = u16_at(bytes, at + 6);
    let fragment_offset = usize::from(flags & 0x1fff) * 8;
    let more = flags & 0x2000 != 0;
    let protocol = u8_at(bytes, at + 9);

    tree.field("IPv4", at, header_len.max(20), || format!("{source} -> {destination}"));
    tree.down();
    tree.field("Version", at, 1, || u8_at(bytes, at) >> 4);
    tree.field("Header length", at, 1, || format!("{header_len} bytes"));
    let service = u8_at(bytes, at + 1);
    tree.field("DSCP", at + 1, 1, || format!("{} ({})", service >> 2, names::dscp(service >> 2)));
    tree.field("ECN", at + 1, 1, || format!("{} ({})", service & 3, names::ecn(service)));
    tree.field("Total length", at + 2, 2, || match said {
        0 => format!("0 (too long for the field: {on_wire} bytes by the frame)"),
        _ if said > on_wire => format!("{said} (but only {on_wire} bytes are left in the frame)"),
        _ => format!("{said}"),
    });
    tree.field("Identification", at + 4, 2, || {
        format!("0x{:04x} ({})", u16_at(bytes, at + 4), u16_at(bytes, at + 4))
    });
    tree.field("Don't fragment", at + 6, 1, || set(flags & 0x4000 != 0));
    tree.field("More fragments", at + 6, 1, || set(more));
    tree.field("Fragment offset", at + 6, 2, || fragment_offset);
    tree.field("Time to live", at + 8, 1, || u8_at(bytes, at + 8));
    tree.field("Protocol", at + 9, 1, || format!("{protocol} ({})", names::ip_protocol(protocol)));
    tree.field("Checksum", at + 10, 2, || checksum(bytes, at, header_len));
    tree.field("Source", at + 12, 4, || source);
    tree.field("Destination", at + 16, 4, || destination);
    if header_len < 20 {
        tree.up();
        return tree.say("IPv4", format_args!("bad header length {header_len}"));
    }
    if header_len > 20 {
        options(tree, bytes, at + 20, at + header_len);
    }
    tree.up();
    let len = total.saturating_sub(header_len);
    let end = at + total;
    if fragment_offset > 0 {
        tree.summary.ip_protocol = Some(protocol);
        let segment = segment(bytes, at + header_len, len, protocol, source, destination, true, nesting);
        transport::data(tree, &segment, at + header_len, len);
        let last = if more { "" } else { ", the last" };
        tree.say(
            "IPv4",
            format_args!(
                "fragment of {} 0x{:04x} at {fragment_offset}, {len} bytes{last}",
                names::ip_protocol(protocol),
                u16_at(bytes, at + 4),
            ),
        );
    } else {
        let segment = segment(bytes, at + header_len, len, protocol, source, destination, more, nesting);
        transport::payload(tree, seen, &segment);
        if more {
            tree.add(format_args!(" (first fragment)"));
        }
    }
    if nesting == 0 && end < wire_len && bytes.len() > end {
        tree.field("Padding", end, wire_len - end, || format!("{} bytes behind the packet", wire_len - end));
    }
}

#[expect(clippy::too_many_arguments, reason = "a constructor with a name for each")]
fn segment(
    bytes: &[u8],
    at: usize,
    len: usize,
    protocol: u8,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    fragment: bool,
    nesting: u8,
) -> Segment<'_> {
    let (source, destination) = (Place::V4(source), Place::V4(destination));
    Segment { bytes, at, len, protocol, source, destination, fragment, nesting }
}

fn checksum(bytes: &[u8], at: usize, header_len: usize) -> String {
    let found = u16_at(bytes, at + 10);
    let verdict = match bytes.get(at..at + header_len) {
        None => "not verified: the header was not captured whole".to_owned(),
        Some(header) if fold(sum(header)) == 0xffff => "correct".to_owned(),
        Some(_) if found == 0 => "offloaded: the network card fills it in".to_owned(),
        Some(header) => {
            let expected = !fold(sum(header) + u64::from(!found));
            format!("wrong: 0x{expected:04x} would be right")
        }
    };
    format!("0x{found:04x} ({verdict})")
}

fn options(tree: &mut Tree, bytes: &[u8], start: usize, end: usize) {
    let end_captured = end.min(bytes.len());
    tree.field("Options", start, end - start, || format!("{} bytes", end - start));
    tree.down();
    let mut at = start;
    while at < end_captured {
        let kind = u8_at(bytes, at);
        if kind < 2 {
            tree.field(if kind == 0 { "End of options" } else { "No operation" }, at, 1, || kind);
            if kind == 0 {
                break;
            }
            at += 1;
            continue;
        }
        let len = usize::from(u8_at(bytes, at + 1));
        if len < 2 || at + len > end {
            tree.field("Malformed option", at, end - at, || format!("kind {kind}, length {len}"));
            break;
        }
        let name = match kind {
            7 => "Record route",
            68 => "Timestamp",
            130 => "Security",
            131 => "Loose source route",
            137 => "Strict source route",
            148 => "Router alert",
            _ => "Option",
        };
        tree.field(name, at, len, || {
            let captured = bytes.get(at + 2..(at + len).min(bytes.len())).unwrap_or_default();
            format!("kind {kind}: {}", hex(captured))
        });
        at += len;
    }
    if end > bytes.len() {
        tree.field("Rest", bytes.len(), end - bytes.len(), || "not captured");
    }
    tree.up();
}

fn set(it_is: bool) -> &'static str {
    if it_is { "set" } else { "not set" }
}
