//! Link layers: Ethernet with VLAN tags, MPLS and PPPoE; Linux cooked captures, loopback, raw IP.

use super::conversation::Conversations;
use super::tree::{Mac, Place, Tree};
use super::unpack::{array_at, hex, rest, u8_at, u16_at, u32_at};
use super::{Captured, arp, ipv4, ipv6, names};

const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const LOOP: u32 = 108;
const COOKED: u32 = 113;
const COOKED_2: u32 = 276;

/// Two of them are usual; more than this in one frame is not a VLAN stack.
const MAX_TAGS: usize = 8;

/// The packet from its first byte.
pub(super) fn link(tree: &mut Tree, seen: &mut Conversations, packet: &Captured<'_>) {
    let Captured { link_type, bytes, wire_len } = *packet;
    let wire_len = (wire_len as usize).max(bytes.len());
    match link_type {
        ETHERNET => ethernet(tree, seen, bytes, wire_len),
        COOKED => cooked(tree, seen, bytes, wire_len),
        COOKED_2 => cooked_2(tree, seen, bytes, wire_len),
        NULL | LOOP => loopback(tree, seen, bytes, wire_len, link_type),
        // Raw IP has several numbers: the file format's own, and those of systems that wrote theirs.
        12 | 14 | 101 | 228 | 229 => raw(tree, seen, bytes, 0, wire_len),
        other => {
            tree.field("Unknown link type", 0, bytes.len(), || format!("{other}: {}", hex(bytes)));
            tree.say("?", format_args!("link type {other}, {wire_len} bytes"));
        }
    }
}

fn ethernet(tree: &mut Tree, seen: &mut Conversations, bytes: &[u8], wire_len: usize) {
    if bytes.len() < 14 {
        return tree.cut("Ethernet", 0, bytes.len());
    }
    let (destination, source) = (array_at(bytes, 0), array_at(bytes, 6));
    tree.summary.source = Place::Mac(source);
    tree.summary.destination = Place::Mac(destination);
    tree.field("Ethernet", 0, 14, || format!("{} -> {}", Mac(&source), Mac(&destination)));
    tree.down();
    tree.field("Destination", 0, 6, || format!("{}{}", Mac(&destination), cast(&destination)));
    tree.field("Source", 6, 6, || Mac(&source));
    let number = u16_at(bytes, 12);
    if number < 0x600 {
        // IEEE 802.3 section 3.2.6: below 1536 it is the length of what follows.
        tree.field("Length", 12, 2, || number);
        tree.up();
        tree.field("LLC", 14, bytes.len() - 14, || hex(rest(bytes, 14)));
        tree.say("LLC", format_args!("IEEE 802.3 frame, {number} bytes"));
        return;
    }
    type_field(tree, 12, number);
    tree.up();
    tagged(tree, seen, bytes, 14, number, wire_len);
}

/// Dissects the contents by their EtherType, VLAN tags first.
fn tagged(
    tree: &mut Tree,
    seen: &mut Conversations,
    bytes: &[u8],
    mut at: usize,
    mut number: u16,
    wire_len: usize,
) {
    for _ in 0..MAX_TAGS {
        if !matches!(number, 0x8100 | 0x88a8 | 0x9100 | 0x9200) {
            return network(tree, seen, bytes, at, number, wire_len);
        }
        if bytes.len() < at + 4 {
            return tree.cut("VLAN", at, bytes.len());
        }
        let tag = u16_at(bytes, at);
        let name = if number == 0x88a8 { "VLAN (service tag)" } else { "VLAN" };
        tree.field(name, at, 4, || tag & 0xfff);
        tree.down();
        tree.field("Priority", at, 2, || tag >> 13);
        tree.field("Drop eligible", at, 2, || yes(tag & 0x1000 != 0));
        tree.field("Identifier", at, 2, || tag & 0xfff);
        number = u16_at(bytes, at + 2);
        type_field(tree, at + 2, number);
        tree.up();
        at += 4;
    }
    tree.say("VLAN", format_args!("more than {MAX_TAGS} tags"));
}

fn cooked(tree: &mut Tree, seen: &mut Conversations, bytes: &[u8], wire_len: usize) {
    if bytes.len() < 16 {
        return tree.cut("Linux cooked", 0, bytes.len());
    }
    let kind = u16_at(bytes, 0);
    tree.field("Linux cooked", 0, 16, || names::cooked_type(kind));
    tree.down();
    tree.field("Packet type", 0, 2, || format!("{kind} ({})", names::cooked_type(kind)));
    tree.field("ARPHRD type", 2, 2, || u16_at(bytes, 2));
    address(tree, bytes, u16_at(bytes, 4), 4, 2, 6);
    let number = u16_at(bytes, 14);
    type_field(tree, 14, number);
    tree.up();
    tagged(tree, seen, bytes, 16, number, wire_len);
}

fn cooked_2(tree: &mut Tree, seen: &mut Conversations, bytes: &[u8], wire_len: usize) {
    if bytes.len() < 20 {
        return tree.cut("Linux cooked 2", 0, bytes.len());
    }
    let number = u16_at(bytes, 0);
    let kind = u8_at(bytes, 10);
    tree.field("Linux cooked 2", 0, 20, || names::cooked_type(kind.into()));
    tree.down();
    type_field(tree, 0, number);
    tree.field("Reserved", 2, 2, || u16_at(bytes, 2));
    tree.field("Interface", 4, 4, || u32_at(bytes, 4));
    tree.field("ARPHRD type", 8, 2, || u16_at(bytes, 8));
    tree.field("Packet type", 10, 1, || format!("{kind} ({})", names::cooked_type(kind.into())));
    address(tree, bytes, u8_at(bytes, 11).into(), 11, 1, 12);
    tree.up();
    tagged(tree, seen, bytes, 20, number, wire_len);
}

/// The length and the 8 bytes of a cooked header's address.
fn address(tree: &mut Tree, bytes: &[u8], len: u16, len_at: usize, len_size: usize, at: usize) {
    tree.field("Address length", len_at, len_size, || len);
    if len == 6 {
        tree.summary.source = Place::Mac(array_at(bytes, at));
    }
    let used = usize::from(len).min(8);
    tree.field("Source", at, 8, || Mac(bytes.get(at..at + used).unwrap_or_default()).to_string());
}

fn loopback(tree: &mut Tree, seen: &mut Conversations, bytes: &[u8], wire_len: usize, link_type: u32) {
    if bytes.len() < 4 {
        return tree.cut("Loopback", 0, bytes.len());
    }
    // In the byte order of the machine that captured (LINKTYPE_NULL), or in network order (LINKTYPE_LOOP).
    let raw = u32_at(bytes, 0);
    let family = if link_type == NULL && raw > 0xffff { raw.swap_bytes() } else { raw };
    tree.field("Loopback", 0, 4, || format!("address family {family}"));
    raw_at(tree, seen, bytes, 4, wire_len);
}

fn raw(tree: &mut Tree, seen: &mut Conversations, bytes: &[u8], at: usize, wire_len: usize) {
    if bytes.len() <= at {
        return tree.cut("IP", at, bytes.len());
    }
    raw_at(tree, seen, bytes, at, wire_len);
}

/// IP of the version that its first bits say.
fn raw_at(tree: &mut Tree, seen: &mut Conversations, bytes: &[u8], at: usize, wire_len: usize) {
    let number = match u8_at(bytes, at) >> 4 {
        4 => 0x0800,
        6 => 0x86dd,
        version => {
            tree.field("Data", at, bytes.len().saturating_sub(at), || hex(rest(bytes, at)));
            return tree.say("?", format_args!("neither IPv4 nor IPv6 (version {version})"));
        }
    };
    network(tree, seen, bytes, at, number, wire_len);
}

fn network(tree: &mut Tree, seen: &mut Conversations, bytes: &[u8], at: usize, number: u16, wire_len: usize) {
    match number {
        0x0800 => ipv4::header(tree, seen, bytes, at, wire_len, 0),
        0x86dd => ipv6::header(tree, seen, bytes, at, wire_len, 0),
        0x0806 => arp::packet(tree, bytes, at),
        0x8847 | 0x8848 => mpls(tree, seen, bytes, at, wire_len),
        0x8864 => pppoe(tree, seen, bytes, at, wire_len),
        _ => {
            let left = wire_len.saturating_sub(at);
            tree.field("Data", at, left, || format!("{left} bytes: {}", hex(rest(bytes, at))));
            let protocol = names::ether_type(number);
            tree.say(
                if protocol == "unknown" { "Ethernet" } else { protocol },
                format_args!("EtherType 0x{number:04x}, {left} bytes"),
            );
        }
    }
}

/// A stack of labels (RFC 3032); nothing but its version tells IP from what else they may precede.
fn mpls(tree: &mut Tree, seen: &mut Conversations, bytes: &[u8], mut at: usize, wire_len: usize) {
    for _ in 0..MAX_TAGS {
        if bytes.len() < at + 4 {
            return tree.cut("MPLS", at, bytes.len());
        }
        let label = u32_at(bytes, at);
        let bottom = label & 0x100 != 0;
        tree.field("MPLS", at, 4, || format!("label {}", label >> 12));
        tree.down();
        tree.field("Label", at, 3, || label >> 12);
        tree.field("Traffic class", at + 2, 1, || label >> 9 & 7);
        tree.field("Bottom of stack", at + 2, 1, || yes(bottom));
        tree.field("Time to live", at + 3, 1, || label & 0xff);
        tree.up();
        at += 4;
        if bottom {
            return raw(tree, seen, bytes, at, wire_len);
        }
    }
    tree.say("MPLS", format_args!("more than {MAX_TAGS} labels"));
}

/// A PPPoE session (RFC 2516), and the PPP header in it.
fn pppoe(tree: &mut Tree, seen: &mut Conversations, bytes: &[u8], at: usize, wire_len: usize) {
    if bytes.len() < at + 8 {
        return tree.cut("PPPoE", at, bytes.len());
    }
    let (session, protocol) = (u16_at(bytes, at + 2), u16_at(bytes, at + 6));
    tree.field("PPPoE", at, 6, || format!("session {session}"));
    tree.down();
    tree.field("Code", at + 1, 1, || u8_at(bytes, at + 1));
    tree.field("Session", at + 2, 2, || session);
    tree.field("Length", at + 4, 2, || u16_at(bytes, at + 4));
    tree.up();
    tree.field("PPP protocol", at + 6, 2, || format!("0x{protocol:04x}"));
    match protocol {
        0x0021 => network(tree, seen, bytes, at + 8, 0x0800, wire_len),
        0x0057 => network(tree, seen, bytes, at + 8, 0x86dd, wire_len),
        _ => tree
            .say("PPP", format_args!("protocol 0x{protocol:04x}, {} bytes", wire_len.saturating_sub(at + 8))),
    }
}

fn type_field(tree: &mut Tree, at: usize, number: u16) {
    tree.field("Type", at, 2, || format!("0x{number:04x} ({})", names::ether_type(number)));
}

fn cast(mac: &[u8; 6]) -> &'static str {
    match mac[0] & 1 {
        0 => "",
        _ if *mac == [0xff; 6] => " (broadcast)",
        _ => " (multicast)",
    }
}

fn yes(it_is: bool) -> &'static str {
    if it_is { "yes" } else { "no" }
}
