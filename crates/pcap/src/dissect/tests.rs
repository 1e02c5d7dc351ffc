use crate::build::{Ethernet, FrameBuffer, Ipv4, Keep, Tcp, TcpOptions, Udp};

use super::{Captured, Dissector, Field};

const ETHERNET: Ethernet = Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2] };
const IP: Ipv4 = Ipv4 {
    source: [10, 0, 0, 1],
    destination: [10, 0, 0, 2],
    identification: 0x1234,
    ttl: 64,
    traffic_class: 2,
};

fn captured(bytes: &[u8]) -> Captured<'_> {
    Captured { link_type: 1, bytes, wire_len: bytes.len() as u32 }
}

fn fields(bytes: &[u8]) -> Vec<Field> {
    Dissector::new().fields(&captured(bytes)).0
}

fn info(bytes: &[u8]) -> String {
    Dissector::new().summary(&captured(bytes)).info.clone()
}

/// Offset, length and value of the first field of this name.
fn named<'a>(fields: &'a [Field], name: &str) -> (usize, usize, &'a str) {
    let field = fields.iter().find(|field| field.name == name);
    let field = field.unwrap_or_else(|| panic!("there is no field {name}: {fields:#?}"));
    (field.offset, field.len, &field.value)
}

fn segment(seq: u32, ack: u32, flags: u16, payload: u32) -> Vec<u8> {
    let timestamps = TcpOptions { timestamps: Some((1000, 2000)), ..TcpOptions::default() };
    let syn = TcpOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true, ..timestamps };
    let options = if flags & 2 == 0 { timestamps } else { syn };
    let tcp = Tcp { source_port: 40000, destination_port: 5001, seq, ack, flags, window: 502, options };
    FrameBuffer::new(Keep::Full).tcp(&ETHERNET, &IP, &tcp, payload).bytes.to_vec()
}

/// The same with the two ends exchanged.
fn turned(mut frame: Vec<u8>) -> Vec<u8> {
    for (one, other, len) in [(26, 30, 4), (34, 36, 2)] {
        for i in 0..len {
            frame.swap(one + i, other + i);
        }
    }
    frame
}

/// Ethernet around an IPv6 header of this next header and around `rest`.
fn v6(next: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0x10, 0, 7];
    bytes.extend((rest.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend(rest);
    bytes
}

#[test]
fn every_field_of_a_segment_stands_at_its_place() {
    let frame = segment(100, 200, 0x18, 4);
    let fields = fields(&frame);
    assert_eq!(named(&fields, "Ethernet"), (0, 14, "02:00:00:00:00:01 -> 02:00:00:00:00:02"));
    assert_eq!(named(&fields, "Type"), (12, 2, "0x0800 (IPv4)"));
    assert_eq!(named(&fields, "IPv4"), (14, 20, "10.0.0.1 -> 10.0.0.2"));
    assert_eq!(named(&fields, "ECN"), (15, 1, "2 (ECT(0))"));
    assert_eq!(named(&fields, "Total length"), (16, 2, "56"));
    assert_eq!(named(&fields, "Don't fragment"), (20, 1, "set"));
    assert_eq!(named(&fields, "TCP"), (34, 32, "40000 -> 5001 [PSH, ACK], 4 bytes of data"));
    assert_eq!(named(&fields, "Sequence number"), (38, 4, "100 (relative 1)"));
    assert_eq!(named(&fields, "Flags"), (46, 2, "0x018 [PSH, ACK]"));
    assert_eq!(named(&fields, "Timestamps"), (56, 10, "value 1000, echo reply 2000"));
    assert_eq!(named(&fields, "Data"), (66, 4, "4 bytes: 00000000"));
}

#[test]
fn headers_follow_one_another_and_hold_their_parts() {
    let frame = segment(100, 200, 0x12, 0);
    let fields = fields(&frame);
    let mut header = 0..0;
    for field in &fields {
        if field.depth == 0 {
            assert_eq!(field.offset, header.end, "{field:?} begins where the header before ended");
            header = field.offset..field.offset + field.len;
        } else {
            assert!(
                header.start <= field.offset && field.offset + field.len <= header.end,
                "{field:?} in {header:?}"
            );
        }
    }
    assert_eq!(header.end, frame.len());
}

#[test]
fn sequence_numbers_are_reported_from_the_handshake_on() {
    let mut dissector = Dissector::new();
    let frames = [
        segment(u32::MAX, 0, 0x02, 0),
        turned(segment(7000, 0, 0x12, 0)),
        segment(0, 7001, 0x10, 1448),
        segment(1448, 7001, 0x18, 600),
        turned(segment(7001, 2048, 0x10, 0)),
        segment(2048, 7001, 0x11, 0),
        turned(segment(7001, 2049, 0x10, 0)),
    ];
    let said: Vec<String> =
        frames.iter().map(|frame| dissector.summary(&captured(frame)).info.clone()).collect();
    assert_eq!(
        said,
        [
            "40000 -> 5001 [SYN] seq 0 win 502 len 0 mss 1460 sackOK ts 1000/2000 wscale 7",
            "5001 -> 40000 [SYN, ACK] seq 0 ack 1 win 502 len 0 mss 1460 sackOK ts 1000/2000 wscale 7",
            "40000 -> 5001 [ACK] seq 1 ack 1 win 502 len 1448 ts 1000/2000",
            "40000 -> 5001 [PSH, ACK] seq 1449 ack 1 win 502 len 600 ts 1000/2000",
            "5001 -> 40000 [ACK] seq 1 ack 2049 win 502 len 0 ts 1000/2000",
            "40000 -> 5001 [FIN, ACK] seq 2049 ack 1 win 502 len 0 ts 1000/2000",
            "5001 -> 40000 [ACK] seq 1 ack 2050 win 502 len 0 ts 1000/2000",
        ]
    );
}

#[test]
fn a_port_used_again_begins_anew() {
    let mut dissector = Dissector::new();
    for first in [500, 90_000] {
        dissector.summary(&captured(&segment(first, 0, 0x02, 0)));
        let data = segment(first + 1, 1, 0x10, 10);
        assert!(dissector.summary(&captured(&data)).info.contains("seq 1 ack 1 "));
    }
}

#[test]
fn a_checksum_is_verified_where_everything_was_captured() {
    let good = segment(1, 1, 0x10, 9);
    assert!(named(&fields(&good), "Checksum").2.ends_with("(correct)"));
    let tcp_checksum = |frame: &[u8]| {
        let fields = fields(frame);
        fields.iter().filter(|field| field.name == "Checksum").nth(1).map(|field| field.value.clone())
    };
    assert!(tcp_checksum(&good).is_some_and(|value| value.ends_with("(correct)")));

    let right = u16::from_be_bytes([good[50], good[51]]);
    let mut wrong = good.clone();
    wrong[51] ^= 1;
    let expected = format!("(wrong: 0x{right:04x} would be right)");
    assert!(tcp_checksum(&wrong).is_some_and(|value| value.ends_with(&expected)));

    let mut offloaded = good.clone();
    // 10.0.0.1 + 10.0.0.2 + protocol 6 + 41 bytes of TCP.
    offloaded[50..52].copy_from_slice(&(0x0a00u16 + 1 + 0x0a00 + 2 + 6 + 41).to_be_bytes());
    assert!(tcp_checksum(&offloaded).is_some_and(|value| value.contains("offloaded")));

    let cut = Captured { link_type: 1, bytes: &good[..70], wire_len: good.len() as u32 };
    let (fields, _) = Dissector::new().fields(&cut);
    let last = fields.iter().rfind(|field| field.name == "Checksum").map(|field| field.value.as_str());
    assert!(last.is_some_and(|value| value.contains("not captured whole")));
    assert_eq!(named(&fields, "Data").2, "9 bytes, 4 of them captured: 00000000");
}

#[test]
fn udp_without_a_checksum_is_not_an_error() {
    let udp = Udp { source_port: 1, destination_port: 2 };
    let mut frame = FrameBuffer::new(Keep::Full).udp(&ETHERNET, &IP, &udp, 3).bytes.to_vec();
    assert_eq!(info(&frame), "1 -> 2 len 3");
    frame[40..42].fill(0);
    let fields = fields(&frame);
    assert!(fields.iter().any(|field| field.value.contains("the sender computed no checksum")));
}

#[test]
fn vlan_tags_are_peeled_one_by_one() {
    let plain = segment(1, 1, 0x10, 0);
    let mut tagged = plain[..12].to_vec();
    tagged.extend([0x88, 0xa8, 0x20, 0x64, 0x81, 0x00, 0x00, 0x0a, 0x08, 0x00]);
    tagged.extend(&plain[14..]);
    let fields = fields(&tagged);
    assert_eq!(named(&fields, "VLAN (service tag)"), (14, 4, "100"));
    assert_eq!(named(&fields, "VLAN"), (18, 4, "10"));
    assert_eq!(named(&fields, "TCP").0, 42);
}

#[test]
fn labels_and_pppoe_lead_to_the_ip_header() {
    let plain = segment(1, 1, 0x10, 0);
    let within = |header: &[u8]| fields(&[&plain[..12], header, &plain[14..]].concat());
    let labels = within(&[0x88, 0x47, 0, 1, 0x04, 9, 0, 2, 0x11, 8]);
    assert_eq!(named(&labels, "MPLS"), (14, 4, "label 16"));
    assert_eq!(named(&labels, "Traffic class"), (16, 1, "2"));
    assert_eq!(named(&labels, "TCP").0, 42);
    let session = within(&[0x88, 0x64, 0x11, 0, 0, 5, 0, 42, 0, 0x21]);
    assert_eq!(named(&session, "PPPoE"), (14, 6, "session 5"));
    assert_eq!(named(&session, "TCP").0, 42);
    let control = [&plain[..12], &[0x88, 0x64, 0x11, 0, 0, 5, 0, 4, 0xc0, 0x21, 1, 1]].concat();
    assert_eq!(info(&control), "protocol 0xc021, 2 bytes");
}

#[test]
fn cooked_loopback_and_raw_captures_are_read() {
    let ip = segment(1, 1, 0x10, 0)[14..].to_vec();
    let mut cooked = vec![0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    let mut cooked_2 = vec![8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    let mut null = vec![2, 0, 0, 0];
    for (link_type, head) in [(113, &mut cooked), (276, &mut cooked_2), (0, &mut null), (101, &mut vec![])] {
        head.extend(&ip);
        let packet = Captured { link_type, bytes: head, wire_len: head.len() as u32 };
        let mut dissector = Dissector::new();
        let summary = dissector.summary(&packet);
        assert_eq!((summary.protocol, summary.source.to_string().as_str()), ("TCP", "10.0.0.1"));
    }
}

#[test]
fn extension_headers_are_followed_to_the_transport() {
    // Hop-by-hop with a router alert, destination options of padding, then UDP.
    let mut rest = vec![60, 0, 5, 2, 0, 0, 1, 0, 17, 0, 1, 4, 0, 0, 0, 0];
    rest.extend([0, 53, 0, 54, 0, 10, 0, 0, 9, 9]);
    let frame = v6(0, &rest);
    let fields = fields(&frame);
    assert_eq!(named(&fields, "Router alert").2, "0");
    assert_eq!(named(&fields, "UDP"), (70, 8, "53 -> 54, 2 bytes of data"));
    assert_eq!(named(&fields, "Flow label").2, "0x00007");
    assert_eq!(named(&fields, "ECN").2, "1 (ECT(1))");
}

#[test]
fn fragments_say_where_they_belong() {
    let mut later = segment(1, 1, 0x10, 8);
    later[20..22].copy_from_slice(&[0x20, 185]);
    assert_eq!(info(&later), "fragment of TCP 0x1234 at 1480, 40 bytes");
    let fragment = [17, 0, 0x05, 0xc8, 0, 0, 0, 9, 1, 2, 3];
    assert_eq!(info(&v6(44, &fragment)), "fragment of UDP at 1480, 3 bytes, the last");
    let first = [17, 0, 0, 1, 0, 0, 0, 9, 0, 53, 0, 54, 0x05, 0xd0, 0, 0];
    assert_eq!(info(&v6(44, &first)), "53 -> 54 len 0 (first fragment)");
}

#[test]
fn path_mtu_messages_name_the_mtu_and_the_connection() {
    let quoted = &segment(1, 1, 0x10, 0)[14..42];
    let mut icmp = vec![3, 4, 0, 0, 0, 0, 0x05, 0x78];
    icmp.extend(quoted);
    let mut frame = segment(1, 1, 0x10, 4)[..34].to_vec();
    frame[23] = 1;
    frame.extend(&icmp);
    let said = info(&frame);
    assert_eq!(said, "fragmentation needed, mtu 1400, about TCP 10.0.0.1:40000 -> 10.0.0.2:5001");
    assert_eq!(named(&fields(&frame), "MTU of the next hop"), (40, 2, "1400"));

    let mut too_big = vec![2, 0, 0, 0, 0, 0, 0x05, 0x00];
    too_big.extend(&v6(17, &[0, 53, 0, 54, 0, 8, 0, 0])[14..]);
    let said = info(&v6(58, &too_big));
    assert_eq!(said, "packet too big, mtu 1280, about UDP fd00::1:53 -> fd00::2:54");
}

#[test]
fn arp_asks_in_words() {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    assert_eq!(info(&frame), "who has 10.0.0.2? tell 10.0.0.1");
    assert_eq!(named(&fields(&frame), "Destination").2, "ff:ff:ff:ff:ff:ff (broadcast)");
}

#[test]
fn every_common_option_has_a_name() {
    let options = [
        5, 10, 0, 0, 0, 3, 0, 0, 0, 13, 28, 4, 0x80, 5, 34, 6, 1, 2, 3, 4, 30, 4, 0x20, 0, 253, 4, 0x0a,
        0xbc, 172, 5, 0, 0, 7, 77, 3, 9, 0, 0, 0, 0,
    ];
    let mut frame = segment(1, 1, 0x10, 0)[..54].to_vec();
    frame[16..18].copy_from_slice(&(20 + 20 + options.len() as u16).to_be_bytes());
    frame[46] = 0xf0;
    frame.extend(options);
    let fields = fields(&frame);
    assert_eq!(named(&fields, "Block").2, "3 to 13 (10 bytes, relative 3 to 13)");
    assert_eq!(named(&fields, "User timeout").2, "5 min");
    assert_eq!(named(&fields, "Fast Open").2, "cookie 01020304");
    assert_eq!(named(&fields, "Multipath TCP").2, "DSS: 2000");
    assert_eq!(named(&fields, "Experimental").2, "kind 253, experiment 0x0abc: ");
    assert_eq!(named(&fields, "ECT(0)").2, "7");
    assert_eq!(named(&fields, "Option").2, "kind 77: 09");
    assert_eq!(named(&fields, "End of options"), (90, 4, "the rest is padding"));
}

#[test]
fn numbers_before_the_first_captured_are_absolute() {
    let mut dissector = Dissector::new();
    let mut info = |frame: Vec<u8>| dissector.summary(&captured(&frame)).info.clone();
    // Within a connection: the data that the first acknowledgment is for was not captured.
    assert!(info(segment(50_000, 7_000, 0x10, 1000)).contains("seq 1 ack 1 "));
    assert!(info(turned(segment(7_000, 48_000, 0x10, 0))).contains("seq 1 ack 48000 (absolute) "));
    assert!(info(turned(segment(7_000, 51_000, 0x10, 0))).contains("seq 1 ack 1001 "));
    assert!(info(segment(49_000, 7_000, 0x10, 1000)).contains("seq 49000 (absolute) ack 1 "));
}

#[test]
fn numbers_count_on_beyond_4_gib() {
    let mut dissector = Dissector::new();
    let step = 1_u32 << 30;
    for (place, relative) in [1_u64, 1 << 30, 2 << 30, 3 << 30, 4 << 30, 5 << 30].into_iter().enumerate() {
        let frame = segment(1_u32.wrapping_add(step.wrapping_mul(place as u32)), 1, 0x10, 0);
        let expected = if place == 0 { 1 } else { relative + 1 };
        let info = dissector.summary(&captured(&frame)).info.clone();
        assert!(info.contains(&format!("seq {expected} ack 1 ")), "{info}");
    }
}

#[test]
fn a_tunnel_shows_both_packets() {
    let inner = segment(1, 1, 0x10, 0)[14..].to_vec();
    let mut frame = segment(1, 1, 0x10, 0)[..34].to_vec();
    frame[16..18].copy_from_slice(&(20 + inner.len() as u16).to_be_bytes());
    frame[23] = 4;
    frame.extend(inner);
    let fields = fields(&frame);
    assert_eq!(fields.iter().filter(|field| field.name == "IPv4").count(), 2);
    assert_eq!(named(&fields, "TCP").0, 54);
}

#[test]
fn what_is_cut_off_is_said() {
    let frame = segment(1, 1, 0x10, 100);
    for (kept, said) in [
        (6, "Ethernet header cut off"),
        (20, "IPv4 header cut off"),
        (40, "TCP header cut off"),
        (60, "40000 -> 5001 [ACK] seq 1 ack 1 win 502 len 100"),
    ] {
        let packet = Captured { link_type: 1, bytes: &frame[..kept], wire_len: frame.len() as u32 };
        assert_eq!(Dissector::new().summary(&packet).info, said);
    }
}

mod any_bytes {
    use proptest::prelude::*;

    use super::*;

    /// Whole headers to begin with, so that random bytes reach the deep places.
    fn starts() -> Vec<(u32, Vec<u8>)> {
        let tcp = segment(1, 1, 0x12, 40);
        let mut tunnel = tcp.clone();
        tunnel[23] = 41;
        let mut icmp = tcp.clone();
        icmp[23] = 1;
        icmp[34] = 3;
        let mut v6_in_cooked = vec![0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x86, 0xdd];
        v6_in_cooked.extend(&v6(0, &[43, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0])[14..]);
        vec![
            (1, tcp.clone()),
            (1, tunnel),
            (1, icmp),
            (1, v6(58, &[135, 0, 0, 0, 0, 0, 0, 0])),
            (113, v6_in_cooked),
            (101, tcp[14..].to_vec()),
            (0, vec![2, 0, 0, 0, 0x45]),
            (276, vec![0x08, 0x06]),
        ]
    }

    proptest! {
        #[test]
        fn are_dissected_without_a_panic_and_the_same_in_both_ways(
            start in prop::sample::select(starts()),
            changes in prop::collection::vec((0usize..140, any::<u8>()), 0..12),
            tail in prop::collection::vec(any::<u8>(), 0..60),
            kept in 0usize..200,
            extra in 0u32..70_000,
        ) {
            let (link_type, mut bytes) = start;
            bytes.extend(tail);
            for (at, value) in changes {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            let wire_len = bytes.len() as u32 + extra;
            bytes.truncate(kept);
            let packet = Captured { link_type, bytes: &bytes, wire_len };
            let mut dissector = Dissector::new();
            let (fields, with_fields) = dissector.fields(&packet);
            let with_fields = with_fields.clone();
            // A last header may claim 2048 bytes that are not there.
            let end = bytes.len().max(wire_len as usize) + 2048;
            prop_assert!(fields.iter().all(|field| field.offset <= end));
            let mut other = Dissector::new();
            prop_assert_eq!(other.summary(&packet), &with_fields);
        }
    }
}
