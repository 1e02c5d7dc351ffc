//! ICMP (RFC 792) and ICMPv6 (RFC 4443), with the packet that an error quotes.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::segment::{Segment, checksum_field};
use super::tree::{Place, Tree};
use super::unpack::{array_at, u8_at, u16_at, u32_at};
use super::{names, transport};

pub(super) fn v4(tree: &mut Tree, segment: &Segment<'_>) {
    let Segment { bytes, at, len, .. } = *segment;
    if segment.captured() < 8 {
        return tree.cut("ICMP", at, at + segment.captured());
    }
    let (kind, code) = (u8_at(bytes, at), u8_at(bytes, at + 1));
    let name = v4_name(kind, code);
    head(tree, segment, "ICMP", kind, code, name, false);
    match kind {
        0 | 8 => echo(tree, bytes, at, name, "ICMP"),
        3 if code == 4 => {
            // RFC 1191 section 4.
            let mtu = u16_at(bytes, at + 6);
            tree.field("MTU of the next hop", at + 6, 2, || mtu);
            tree.say("ICMP", format_args!("{name}, mtu {mtu}"));
        }
        5 => {
            let gateway = Ipv4Addr::from(array_at(bytes, at + 4));
            tree.field("Gateway", at + 4, 4, || gateway);
            tree.say("ICMP", format_args!("redirect to {gateway}"));
        }
        _ => {
            tree.field("Rest of header", at + 4, 4, || format!("0x{:08x}", u32_at(bytes, at + 4)));
            tree.say("ICMP", format_args!("{name}"));
        }
    }
    tree.up();
    if matches!(kind, 3 | 4 | 5 | 11 | 12) {
        quoted_v4(tree, bytes, at + 8);
    } else {
        transport::data(tree, segment, at + 8, len.saturating_sub(8));
    }
}

pub(super) fn v6(tree: &mut Tree, segment: &Segment<'_>) {
    let Segment { bytes, at, len, .. } = *segment;
    if segment.captured() < 8 {
        return tree.cut("ICMPv6", at, at + segment.captured());
    }
    let (kind, code) = (u8_at(bytes, at), u8_at(bytes, at + 1));
    let name = v6_name(kind, code);
    head(tree, segment, "ICMPv6", kind, code, name, true);
    match kind {
        2 => {
            let mtu = u32_at(bytes, at + 4);
            tree.field("MTU", at + 4, 4, || mtu);
            tree.say("ICMPv6", format_args!("{name}, mtu {mtu}"));
        }
        128 | 129 => echo(tree, bytes, at, name, "ICMPv6"),
        135 | 136 if bytes.len() >= at + 24 => {
            let target = Ipv6Addr::from(array_at(bytes, at + 8));
            tree.field("Target", at + 8, 16, || target);
            tree.say("ICMPv6", format_args!("{name} of {target}"));
        }
        _ => {
            tree.field("Rest of header", at + 4, 4, || format!("0x{:08x}", u32_at(bytes, at + 4)));
            tree.say("ICMPv6", format_args!("{name}"));
        }
    }
    tree.up();
    if kind < 128 {
        quoted_v6(tree, bytes, at + 8);
    } else {
        let read = if matches!(kind, 135 | 136) { 24 } else { 8 };
        transport::data(tree, segment, at + read, len.saturating_sub(read));
    }
}

fn head(
    tree: &mut Tree,
    segment: &Segment<'_>,
    protocol: &'static str,
    kind: u8,
    code: u8,
    name: &'static str,
    pseudo_header: bool,
) {
    let Segment { bytes, at, .. } = *segment;
    tree.field(protocol, at, 8, || name);
    tree.down();
    tree.field("Type", at, 1, || kind);
    tree.field("Code", at + 1, 1, || code);
    checksum_field(tree, at + 2, u16_at(bytes, at + 2), || segment.verdict(2, pseudo_header));
}

fn echo(tree: &mut Tree, bytes: &[u8], at: usize, name: &'static str, protocol: &'static str) {
    let (identifier, sequence) = (u16_at(bytes, at + 4), u16_at(bytes, at + 6));
    tree.field("Identifier", at + 4, 2, || identifier);
    tree.field("Sequence number", at + 6, 2, || sequence);
    tree.say(protocol, format_args!("{name} id {identifier} seq {sequence}"));
}

/// The beginning of an IPv4 packet that an error is about.
fn quoted_v4(tree: &mut Tree, bytes: &[u8], at: usize) {
    if bytes.len() < at + 20 {
        return;
    }
    let header_len = usize::from(u8_at(bytes, at) & 0xf) * 4;
    let source = Ipv4Addr::from(array_at(bytes, at + 12));
    let destination = Ipv4Addr::from(array_at(bytes, at + 16));
    let (source, destination) = (Place::V4(source), Place::V4(destination));
    quoted(tree, bytes, at, header_len.max(20), u8_at(bytes, at + 9), source, destination);
}

fn quoted_v6(tree: &mut Tree, bytes: &[u8], at: usize) {
    if bytes.len() < at + 40 {
        return;
    }
    let source = Place::V6(Ipv6Addr::from(array_at(bytes, at + 8)));
    let destination = Place::V6(Ipv6Addr::from(array_at(bytes, at + 24)));
    quoted(tree, bytes, at, 40, u8_at(bytes, at + 6), source, destination);
}

fn quoted(
    tree: &mut Tree,
    bytes: &[u8],
    at: usize,
    header_len: usize,
    protocol: u8,
    source: Place,
    destination: Place,
) {
    let ports = at + header_len;
    let has_ports = matches!(protocol, 6 | 17) && bytes.len() >= ports + 4;
    tree.field("Packet it is about", at, header_len, || {
        format!("{source} -> {destination}, {}", names::ip_protocol(protocol))
    });
    if has_ports {
        let (from, to) = (u16_at(bytes, ports), u16_at(bytes, ports + 2));
        tree.down();
        tree.field("Source port", ports, 2, || from);
        tree.field("Destination port", ports + 2, 2, || to);
        if protocol == 6 && bytes.len() >= ports + 8 {
            tree.field("Sequence number", ports + 4, 4, || u32_at(bytes, ports + 4));
        }
        tree.up();
        let name = names::ip_protocol(protocol);
        tree.add(format_args!(", about {name} {source}:{from} -> {destination}:{to}"));
    } else {
        tree.add(format_args!(", about {source} -> {destination}"));
    }
}

fn v4_name(kind: u8, code: u8) -> &'static str {
    match (kind, code) {
        (0, _) => "echo reply",
        (3, 0) => "network unreachable",
        (3, 1) => "host unreachable",
        (3, 2) => "protocol unreachable",
        (3, 3) => "port unreachable",
        (3, 4) => "fragmentation needed",
        (3, 9 | 10 | 13) => "administratively prohibited",
        (3, _) => "destination unreachable",
        (4, _) => "source quench",
        (5, _) => "redirect",
        (8, _) => "echo request",
        (9, _) => "router advertisement",
        (10, _) => "router solicitation",
        (11, 0) => "time to live exceeded",
        (11, _) => "reassembly time exceeded",
        (12, _) => "parameter problem",
        (13, _) => "timestamp request",
        (14, _) => "timestamp reply",
        _ => "other",
    }
}

fn v6_name(kind: u8, code: u8) -> &'static str {
    match (kind, code) {
        (1, 0) => "no route to destination",
        (1, 1) => "administratively prohibited",
        (1, 3) => "address unreachable",
        (1, 4) => "port unreachable",
        (1, _) => "destination unreachable",
        (2, _) => "packet too big",
        (3, 0) => "hop limit exceeded",
        (3, _) => "reassembly time exceeded",
        (4, _) => "parameter problem",
        (128, _) => "echo request",
        (129, _) => "echo reply",
        (130, _) => "multicast listener query",
        (131, _) => "multicast listener report",
        (132, _) => "multicast listener done",
        (133, _) => "router solicitation",
        (134, _) => "router advertisement",
        (135, _) => "neighbour solicitation",
        (136, _) => "neighbour advertisement",
        (137, _) => "redirect",
        (143, _) => "multicast listener report v2",
        _ => "other",
    }
}
