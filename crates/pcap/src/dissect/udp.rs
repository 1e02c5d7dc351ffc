//! UDP (RFC 768).

use super::segment::{Segment, Verdict, checksum_field};
use super::transport;
use super::tree::{Place, Tree};
use super::unpack::u16_at;

pub(super) fn header(tree: &mut Tree, segment: &Segment<'_>) {
    let Segment { bytes, at, .. } = *segment;
    if segment.captured() < 8 {
        return tree.cut("UDP", at, at + segment.captured());
    }
    let (source, destination) = (u16_at(bytes, at), u16_at(bytes, at + 2));
    tree.summary.ports = Some((source, destination));
    let said = usize::from(u16_at(bytes, at + 4));
    // 0 stands for what is longer than the field can say (RFC 2675 section 4), fragments hold a part of it.
    let len = if said == 0 || segment.fragment { segment.len } else { said };
    let data = len.saturating_sub(8);
    tree.field("UDP", at, 8, || format!("{source} -> {destination}, {data} bytes of data"));
    tree.down();
    tree.field("Source port", at, 2, || source);
    tree.field("Destination port", at + 2, 2, || destination);
    tree.field("Length", at + 4, 2, || match said {
        _ if said > segment.len && !segment.fragment => {
            format!("{said} (but the IP packet has only {} bytes left)", segment.len)
        }
        _ => said.to_string(),
    });
    let found = u16_at(bytes, at + 6);
    checksum_field(tree, at + 6, found, || {
        let v4 = matches!(segment.source, Place::V4(_));
        if found == 0 && v4 {
            return Verdict::Absent;
        }
        Segment { len: len.min(segment.len), ..*segment }.verdict(6, true)
    });
    tree.up();
    transport::data(tree, segment, at + 8, data.min(segment.len.saturating_sub(8)));
    tree.say("UDP", format_args!("{source} -> {destination} len {data}"));
}
