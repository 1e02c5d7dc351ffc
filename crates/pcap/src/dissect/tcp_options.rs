//! TCP options.

use super::conversation::Side;
use super::tree::Tree;
use super::unpack::{hex, u8_at, u16_at, u32_at};

/// The options between `start` and `end`, the end of the header. `side` counts the edges of SACK blocks.
pub(super) fn list(tree: &mut Tree, bytes: &[u8], start: usize, end: usize, side: Option<Side>) {
    let captured = end.min(bytes.len());
    tree.field("Options", start, end - start, || format!("{} bytes", end - start));
    tree.down();
    let mut at = start;
    while at < captured {
        let kind = u8_at(bytes, at);
        match kind {
            0 => {
                tree.field("End of options", at, end - at, || "the rest is padding");
                break;
            }
            1 => {
                tree.field("No operation", at, 1, || "padding");
                at += 1;
                continue;
            }
            _ => {}
        }
        if at + 2 > captured {
            tree.field("Malformed option", at, captured - at, || format!("kind {kind} without a length"));
            break;
        }
        let len = usize::from(u8_at(bytes, at + 1));
        if len < 2 || at + len > end {
            tree.field("Malformed option", at, end - at, || format!("kind {kind}, length {len}"));
            break;
        }
        if at + len > captured {
            tree.field("Option", at, len, || format!("kind {kind}, cut off by the capture"));
            break;
        }
        option(tree, bytes, at, kind, len, side);
        at += len;
    }
    if end > bytes.len() {
        tree.field("Rest", bytes.len(), end - bytes.len(), || "not captured");
    }
    tree.up();
}

fn option(tree: &mut Tree, bytes: &[u8], at: usize, kind: u8, len: usize, side: Option<Side>) {
    let content = bytes.get(at + 2..at + len).unwrap_or_default();
    match (kind, len) {
        (2, 4) => {
            let mss = u16_at(bytes, at + 2);
            tree.field("Maximum segment size", at, len, || format!("{mss} bytes"));
            tree.add(format_args!(" mss {mss}"));
        }
        (3, 3) => {
            let shift = u8_at(bytes, at + 2);
            // RFC 7323 section 2.3: more than 14 counts as 14.
            tree.field("Window scale", at, len, || format!("{shift} (times {})", 1u32 << shift.min(14)));
            tree.add(format_args!(" wscale {shift}"));
        }
        (4, 2) => {
            tree.field("SACK permitted", at, len, || "yes");
            tree.add(format_args!(" sackOK"));
        }
        (5, _) => sack(tree, bytes, at, len, side),
        (8, 10) => {
            let (value, echo) = (u32_at(bytes, at + 2), u32_at(bytes, at + 6));
            tree.field("Timestamps", at, len, || format!("value {value}, echo reply {echo}"));
            tree.down();
            tree.field("Value", at + 2, 4, || value);
            tree.field("Echo reply", at + 6, 4, || echo);
            tree.up();
            tree.add(format_args!(" ts {value}/{echo}"));
        }
        (14, 3) => tree.field("Alternate checksum request", at, len, || hex(content)),
        (19, _) => tree.field("MD5 signature", at, len, || hex(content)),
        (27, _) => tree.field("Quick-start response", at, len, || hex(content)),
        (28, 4) => {
            let raw = u16_at(bytes, at + 2);
            let unit = if raw & 0x8000 == 0 { "s" } else { "min" };
            tree.field("User timeout", at, len, || format!("{} {unit}", raw & 0x7fff));
        }
        (29, _) => tree.field("Authentication (TCP-AO)", at, len, || hex(content)),
        (30, _) => {
            let subtype = u8_at(bytes, at + 2) >> 4;
            tree.field("Multipath TCP", at, len, || format!("{}: {}", multipath(subtype), hex(content)));
            tree.add(format_args!(" {}", multipath(subtype)));
        }
        (34, 2) => {
            tree.field("Fast Open", at, len, || "asks for a cookie");
            tree.add(format_args!(" TFO request"));
        }
        (34, _) => {
            tree.field("Fast Open", at, len, || format!("cookie {}", hex(content)));
            tree.add(format_args!(" TFO cookie"));
        }
        (172 | 174, _) => accurate_ecn(tree, bytes, at, kind, len),
        (253 | 254, _) if len >= 4 => tree.field("Experimental", at, len, || {
            format!("kind {kind}, experiment 0x{:04x}: {}", u16_at(bytes, at + 2), hex(&content[2..]))
        }),
        _ => tree.field("Option", at, len, || format!("kind {kind}: {}", hex(content))),
    }
}

/// RFC 2018; a first block that is below the acknowledgment or within the second is a D-SACK (RFC 2883).
fn sack(tree: &mut Tree, bytes: &[u8], at: usize, len: usize, side: Option<Side>) {
    let blocks = (len - 2) / 8;
    tree.field("SACK", at, len, || match blocks {
        1 => "1 block".to_owned(),
        _ => format!("{blocks} blocks"),
    });
    tree.down();
    tree.add(format_args!(" sack"));
    for block in 0..blocks {
        let from = at + 2 + 8 * block;
        let (left, right) = (u32_at(bytes, from), u32_at(bytes, from + 4));
        let span = right.wrapping_sub(left);
        let Some(side) = side else {
            tree.field("Block", from, 8, || {
                format!("{left} to {right} ({span} bytes, without an acknowledgment)")
            });
            continue;
        };
        let [first, last] = [left, right].map(|edge| side.count(edge));
        tree.field("Block", from, 8, || {
            format!("{left} to {right} ({span} bytes, relative {first} to {last})")
        });
        tree.add(format_args!(" {first}-{last}"));
    }
    tree.up();
}

/// RFC 8684 section 3.
fn multipath(subtype: u8) -> &'static str {
    match subtype {
        0 => "MP_CAPABLE",
        1 => "MP_JOIN",
        2 => "DSS",
        3 => "ADD_ADDR",
        4 => "REMOVE_ADDR",
        5 => "MP_PRIO",
        6 => "MP_FAIL",
        7 => "MP_FASTCLOSE",
        8 => "MP_TCPRST",
        _ => "MPTCP",
    }
}

/// RFC 9768 section 3.2.3: counters of 24 bits, in the order that the kind says, later ones left out.
fn accurate_ecn(tree: &mut Tree, bytes: &[u8], at: usize, kind: u8, len: usize) {
    let order = if kind == 172 { ["ECT(0)", "CE", "ECT(1)"] } else { ["ECT(1)", "CE", "ECT(0)"] };
    tree.field("Accurate ECN", at, len, || format!("{} counters of bytes", (len - 2) / 3));
    tree.down();
    for (index, name) in order.iter().enumerate().take((len - 2) / 3) {
        let from = at + 2 + 3 * index;
        tree.field(name, from, 3, || {
            u32::from_be_bytes([0, u8_at(bytes, from), u8_at(bytes, from + 1), u8_at(bytes, from + 2)])
        });
    }
    tree.up();
    tree.add(format_args!(" AccECN"));
}
