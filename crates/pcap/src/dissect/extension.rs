//! IPv6 extension headers (RFC 8200 section 4, RFC 4302).

use std::net::Ipv6Addr;

use super::names;
use super::tree::Tree;
use super::unpack::{array_at, hex, u8_at, u16_at, u32_at};

/// Where a chain of extension headers led.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    /// Where the payload begins.
    pub(super) at: usize,
    /// The payload's protocol.
    pub(super) protocol: u8,
    pub(super) fragment_offset: usize,
    pub(super) more_fragments: bool,
    /// The capture ends within the chain.
    pub(super) cut: bool,
    /// The last address of a routing header: the pseudo-header has it in the destination's place.
    pub(super) last_destination: Option<Ipv6Addr>,
}

/// Follows the chain from `at`, whose first header is of the kind `next`; the packet ends at `end`.
pub(super) fn chain(tree: &mut Tree, bytes: &[u8], at: usize, end: usize, next: u8) -> Chain {
    let mut chain = Chain {
        at,
        protocol: next,
        fragment_offset: 0,
        more_fragments: false,
        cut: false,
        last_destination: None,
    };
    while matches!(chain.protocol, 0 | 43 | 44 | 51 | 60 | 135) {
        let (kind, at) = (chain.protocol, chain.at);
        if bytes.len() < at + 8 {
            chain.cut = true;
            tree.cut(name(kind), at, bytes.len());
            return chain;
        }
        let next = u8_at(bytes, at);
        let units = usize::from(u8_at(bytes, at + 1));
        let len = match kind {
            44 => 8,
            // An authentication header counts in words of 4 bytes (RFC 4302 section 2.2).
            51 => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        tree.field(name(kind), at, len, || format!("{len} bytes"));
        tree.down();
        tree.field("Next header", at, 1, || format!("{next} ({})", names::ip_protocol(next)));
        match kind {
            44 => fragment(tree, bytes, at, &mut chain),
            0 | 60 => options(tree, bytes, at + 2, (at + len).min(end)),
            43 => routing(tree, bytes, at, len, &mut chain),
            _ => tree.field("Content", at + 2, len - 2, || {
                hex(bytes.get(at + 2..(at + len).min(bytes.len())).unwrap_or_default())
            }),
        }
        tree.up();
        chain.protocol = next;
        chain.at = at + len;
        if kind == 44 && chain.fragment_offset > 0 {
            break;
        }
    }
    chain
}

fn name(kind: u8) -> &'static str {
    match kind {
        0 => "Hop-by-hop options",
        43 => "Routing header",
        44 => "Fragment header",
        51 => "Authentication header",
        60 => "Destination options",
        _ => "Mobility header",
    }
}

fn fragment(tree: &mut Tree, bytes: &[u8], at: usize, chain: &mut Chain) {
    let word = u16_at(bytes, at + 2);
    chain.fragment_offset = usize::from(word & 0xfff8);
    chain.more_fragments = word & 1 != 0;
    tree.field("Fragment offset", at + 2, 2, || word & 0xfff8);
    tree.field("More fragments", at + 3, 1, || if word & 1 != 0 { "set" } else { "not set" });
    tree.field("Identification", at + 4, 4, || format!("0x{:08x}", u32_at(bytes, at + 4)));
}

fn routing(tree: &mut Tree, bytes: &[u8], at: usize, len: usize, chain: &mut Chain) {
    let (kind, left) = (u8_at(bytes, at + 2), u8_at(bytes, at + 3));
    tree.field("Routing type", at + 2, 1, || kind);
    tree.field("Segments left", at + 3, 1, || left);
    // Types 2 (RFC 6275) and 4 (segment routing, RFC 8754) hold whole addresses behind 8 bytes. The final destination
    // is the last address of type 2 and the first of type 4.
    let addresses = (len - 8) / 16;
    for index in 0..addresses {
        let from = at + 8 + 16 * index;
        if bytes.len() < from + 16 {
            break;
        }
        let address = Ipv6Addr::from(array_at(bytes, from));
        tree.field("Address", from, 16, || address);
        let last = match kind {
            2 => index + 1 == addresses,
            4 => index == 0,
            _ => false,
        };
        if left > 0 && last {
            chain.last_destination = Some(address);
        }
    }
}

fn options(tree: &mut Tree, bytes: &[u8], start: usize, end: usize) {
    let mut at = start;
    while at < end.min(bytes.len()) {
        let kind = u8_at(bytes, at);
        if kind == 0 {
            tree.field("Padding", at, 1, || "1 byte");
            at += 1;
            continue;
        }
        let len = 2 + usize::from(u8_at(bytes, at + 1));
        if at + len > end {
            tree.field("Malformed option", at, end - at, || format!("kind {kind}, {len} bytes"));
            return;
        }
        let content = bytes.get(at + 2..(at + len).min(bytes.len())).unwrap_or_default();
        match kind {
            1 => tree.field("Padding", at, len, || format!("{len} bytes")),
            0x05 => tree.field("Router alert", at, len, || u16_at(bytes, at + 2)),
            0xc2 => tree.field("Jumbo payload", at, len, || format!("{} bytes", u32_at(bytes, at + 2))),
            _ => tree.field("Option", at, len, || format!("kind 0x{kind:02x}: {}", hex(content))),
        }
        at += len;
    }
}
