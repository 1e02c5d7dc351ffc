//! ARP (RFC 826).

use std::net::Ipv4Addr;

use super::names;
use super::tree::{Mac, Tree};
use super::unpack::{array_at, hex, rest, u8_at, u16_at};

pub(super) fn packet(tree: &mut Tree, bytes: &[u8], at: usize) {
    if bytes.len() < at + 8 {
        return tree.cut("ARP", at, bytes.len());
    }
    let hardware = usize::from(u8_at(bytes, at + 4));
    let protocol = usize::from(u8_at(bytes, at + 5));
    let operation = u16_at(bytes, at + 6);
    let said = match operation {
        1 => "request",
        2 => "reply",
        _ => "other",
    };
    tree.field("ARP", at, 8 + 2 * (hardware + protocol), || said);
    tree.down();
    tree.field("Hardware type", at, 2, || u16_at(bytes, at));
    tree.field("Protocol type", at + 2, 2, || {
        format!("0x{:04x} ({})", u16_at(bytes, at + 2), names::ether_type(u16_at(bytes, at + 2)))
    });
    tree.field("Hardware address length", at + 4, 1, || hardware);
    tree.field("Protocol address length", at + 5, 1, || protocol);
    tree.field("Operation", at + 6, 2, || format!("{operation} ({said})"));
    if (hardware, protocol) == (6, 4) && bytes.len() >= at + 28 {
        let sender = Ipv4Addr::from(array_at(bytes, at + 14));
        let target = Ipv4Addr::from(array_at(bytes, at + 24));
        tree.field("Sender hardware address", at + 8, 6, || Mac(&array_at::<6>(bytes, at + 8)).to_string());
        tree.field("Sender address", at + 14, 4, || sender);
        tree.field("Target hardware address", at + 18, 6, || Mac(&array_at::<6>(bytes, at + 18)).to_string());
        tree.field("Target address", at + 24, 4, || target);
        match operation {
            1 if sender == target => tree.say("ARP", format_args!("{sender} announces itself")),
            1 => tree.say("ARP", format_args!("who has {target}? tell {sender}")),
            2 => tree.say("ARP", format_args!("{sender} is at {}", Mac(&array_at::<6>(bytes, at + 8)))),
            _ => tree.say("ARP", format_args!("operation {operation}")),
        }
    } else {
        tree.field("Addresses", at + 8, 2 * (hardware + protocol), || hex(rest(bytes, at + 8)));
        tree.say("ARP", format_args!("{said}"));
    }
    tree.up();
}
