//! Every format, byte order, resolution, compression and link type; and files that are broken.

mod common;

use std::io::{Read, Write};

use common::*;
use tcplab_pcap::build::{FrameBuffer, Keep};
use tcplab_pcap::parse::Unparsed;
use tcplab_pcap::read::{Damage, Ending, LinkType, OpenError};
use tcplab_pcap::{Reader, parse};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Numbers in one byte order or the other.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn u32(self, number: u32) -> [u8; 4] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn u16(self, number: u16) -> [u8; 2] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    /// A pcap file with these records: seconds, fraction, bytes, original length.
    fn pcap(self, magic: u32, link: u32, records: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
        let mut file = Vec::new();
        file.extend(self.u32(magic));
        file.extend(self.u16(2));
        file.extend(self.u16(4));
        for word in [0, 0, 65_535, link] {
            file.extend(self.u32(word));
        }
        for &(seconds, fraction, bytes, original_len) in records {
            for word in [seconds, fraction, bytes.len() as u32, original_len] {
                file.extend(self.u32(word));
            }
            file.extend(bytes);
        }
        file
    }

    /// A pcapng block.
    fn block(self, kind: u32, body: &[&[u8]]) -> Vec<u8> {
        let mut body = body.concat();
        body.resize(body.len().next_multiple_of(4), 0);
        let len = self.u32(body.len() as u32 + 12);
        [&self.u32(kind)[..], &len, &body, &len].concat()
    }

    fn section(self) -> Vec<u8> {
        let version = [self.u16(1), self.u16(0)].concat();
        self.block(0x0a0d_0d0a, &[&self.u32(0x1a2b_3c4d), &version, &[0xff; 8]])
    }

    fn interface(self, link: u16, snap_len: u32, options: &[&[u8]]) -> Vec<u8> {
        self.block(1, &[&self.u16(link), &[0; 2], &self.u32(snap_len), &options.concat()])
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [&self.u16(code)[..], &self.u16(value.len() as u16), value].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn packet(self, interface: u32, units: u64, bytes: &[u8], original_len: u32) -> Vec<u8> {
        let words = [interface, (units >> 32) as u32, units as u32, bytes.len() as u32, original_len];
        self.block(6, &[&words.map(|word| self.u32(word)).concat(), bytes])
    }
}

const ORDERS: [Order; 2] = [Order { big: false }, Order { big: true }];

/// Time, bytes, original length, link type and interface of each packet, and how the capture ended.
type Row = (i64, Vec<u8>, u32, u16, u32);

fn rows(mut reader: Reader) -> (Vec<Row>, Ending) {
    let mut rows = Vec::new();
    while let Some(packet) = reader.next_packet() {
        rows.push((packet.time, packet.bytes.to_vec(), packet.original_len, packet.link.0, packet.interface));
    }
    let ending = reader.ending().expect("it has ended").clone();
    (rows, ending)
}

fn read(file: Vec<u8>) -> (Vec<Row>, Ending) {
    rows(Reader::from_bytes(file).expect("a capture"))
}

#[test]
fn pcap_in_both_byte_orders_and_both_resolutions() {
    for order in ORDERS {
        for (magic, unit) in [(MICROSECONDS, 1000), (NANOSECONDS, 1)] {
            let file = order.pcap(magic, 1, &[(5, 7, &[1, 2, 3], 60), (4_294_967_295, 0, &[], 0)]);
            let expected = vec![
                (5_000_000_000 + 7 * unit, vec![1, 2, 3], 60, 1, 0),
                (4_294_967_295_000_000_000, vec![], 0, 1, 0),
            ];
            assert_eq!(read(file), (expected, Ending::Complete));
        }
    }
}

#[test]
fn pcapng_with_sections_of_both_byte_orders_and_interfaces_of_any_resolution() {
    let mut file = Vec::new();
    for order in ORDERS {
        file.extend(order.section());
        file.extend(order.interface(1, 0, &[]));
        let options = [order.option(2, b"lo"), order.option(9, &[9]), order.option(14, &[0; 8])].concat();
        file.extend(order.interface(101, 0, &[&options]));
        let offset = if order.big { 100i64.to_be_bytes() } else { 100i64.to_le_bytes() };
        let options = [order.option(9, &[0x80 | 10]), order.option(14, &offset)].concat();
        file.extend(order.interface(113, 0, &[&options]));
        file.extend(order.packet(0, 1_000_001, &[1; 5], 1514));
        file.extend(order.block(0xbad, &[b"unknown blocks are skipped"]));
        file.extend(order.packet(1, 1_000_001, &[2], 1));
        file.extend(order.packet(2, 1536, &[], 0));
    }
    let section = [
        (1_000_001_000, vec![1; 5], 1514, 1, 0),
        (1_000_001, vec![2], 1, 101, 1),
        (101_500_000_000, vec![], 0, 113, 2),
    ];
    assert_eq!(read(file), ([section.clone(), section].concat(), Ending::Complete));
}

#[test]
fn an_interface_of_a_later_section_is_one_of_before_if_it_has_its_name() {
    let order = ORDERS[0];
    let section = |names: &[&[u8]], first: u8| {
        let interfaces = names.iter().map(|name| order.interface(1, 0, &[&order.option(2, name)]));
        let packets =
            (0..names.len()).map(|number| order.packet(number as u32, 0, &[first + number as u8], 1));
        [order.section()].into_iter().chain(interfaces).chain(packets).collect::<Vec<_>>().concat()
    };
    let file = [section(&[b"eth0", b"lo"], 0), section(&[b"lo", b"wlan0"], 10), section(&[b"lo", b"lo"], 20)]
        .concat();
    let interfaces: Vec<_> = read(file).0.iter().map(|row| (row.1[0], row.4)).collect();
    assert_eq!(interfaces, [(0, 0), (1, 1), (10, 1), (11, 2), (20, 1), (21, 3)]);
}

#[test]
fn packets_without_time_or_interface_are_counted() {
    let order = ORDERS[0];
    let mut file = [order.section(), order.packet(0, 0, &[1], 1), order.interface(1, 3, &[])].concat();
    file.extend(order.packet(0, 5_000_000, &[1], 1));
    file.extend(order.block(3, &[&order.u32(5), &[1, 2, 3]]));
    file.extend(order.packet(0, 4_000_000, &[1], 1));
    let dropped =
        [order.option(4, &[9, 0, 0, 0, 0, 0, 0, 0]), order.option(5, &[2, 0, 0, 0, 0, 0, 0, 0])].concat();
    file.extend(order.block(5, &[&[0; 12], &dropped]));
    let mut reader = Reader::from_bytes(file).expect("a capture");
    let mut last = None;
    while let Some(packet) = reader.next_packet() {
        last = Some((packet.number, packet.time));
        if packet.number == 2 {
            assert_eq!((packet.time, packet.bytes, packet.original_len), (5_000_000_000, &[1, 2, 3][..], 5));
        }
    }
    assert_eq!(last, Some((3, 4_000_000_000)));
    let counts = reader.counts();
    assert_eq!((counts.packets, counts.without_interface, counts.without_time), (3, 1, 1));
    assert_eq!((counts.back_in_time, counts.dropped_at_capture), (1, 2));
}

#[test]
fn gzip_zstd_and_a_pipe_give_the_same_packets() {
    let plain = capture(&handshake());
    let expected = read(plain.clone());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).expect("memory takes all");
    assert_eq!(read(gzip.finish().expect("memory takes all")), expected);
    let zstd = zstd::encode_all(&plain[..], 1).expect("memory takes all");
    assert_eq!(read(zstd), expected);
    let drops = OneByOne(plain);
    assert_eq!(rows(Reader::from_stream(drops).expect("a capture")), expected);
}

/// Gives one byte at a time, as the slowest of pipes.
struct OneByOne(Vec<u8>);

impl Read for OneByOne {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0.is_empty() || buffer.is_empty() {
            return Ok(0);
        }
        buffer[0] = self.0.remove(0);
        Ok(1)
    }
}

#[test]
fn a_file_cut_anywhere_gives_what_came_before() {
    let file = capture(&handshake());
    let whole = read(file.clone()).0;
    for len in 0..file.len() {
        let cut = &file[..len];
        let Ok(reader) = Reader::from_bytes(cut.to_vec()) else { continue };
        let (packets, ending) = rows(reader);
        assert_eq!(packets[..], whole[..packets.len()]);
        if let Ending::Cut { at, missing } = ending {
            assert!(at < len as u64 && missing > 0);
        } else {
            assert_eq!(ending, Ending::Complete, "cut between two blocks at {len}");
        }
        assert_eq!(
            rows(Reader::from_stream(std::io::Cursor::new(cut.to_vec())).expect("a capture")).0,
            packets
        );
    }
}

#[test]
fn a_cut_gzip_file_gives_what_came_before_and_says_so() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gzip.write_all(&capture(&handshake())).expect("memory takes all");
    let mut file = gzip.finish().expect("memory takes all");
    file.truncate(file.len() - 40);
    let (packets, ending) = read(file);
    assert!(!packets.is_empty());
    assert!(matches!(ending, Ending::Failed { .. } | Ending::Cut { .. }), "{ending}");
}

#[test]
fn other_files_than_captures_are_rejected_with_a_message() {
    let refused = |bytes: &[u8]| Reader::from_bytes(bytes.to_vec()).expect_err("no capture").to_string();
    assert_eq!(refused(b"GET / HTTP"), "not a pcap or pcapng file (magic 47 45 54 20)");
    for (first, said) in [
        (&b"\x04\x22\x4d\x18\x64\x40"[..], "lz4, which is not supported: unpack it with `lz4 -d`"),
        (b"\xfd7zXZ\0", "xz, which is not supported: unpack it with `unxz`"),
        (b"BZh91AY", "bzip2, which is not supported: unpack it with `bunzip2`"),
    ] {
        assert_eq!(refused(first), format!("it is compressed with {said}"));
    }
    assert_eq!(refused(&[]), "it has 0 bytes, too few for a capture's header");
    let order = ORDERS[1];
    assert!(refused(&order.pcap(0xa1b2_cd34, 1, &[])).contains("Kuznetsov"));
    assert!(refused(&order.u32(0x1c00_01ac)).contains("IXIA"));
    let mut old = order.pcap(MICROSECONDS, 1, &[]);
    old[5] = 9;
    assert_eq!(refused(&old), "its format's version is 9.4, which is not known");
    assert!(matches!(Reader::open("/".as_ref()), Err(OpenError::Io(_))));
}

#[test]
fn a_damaged_record_ends_the_capture_where_it_is() {
    let order = ORDERS[0];
    let mut file = order.pcap(MICROSECONDS, 1, &[(1, 1, &[1; 4], 4)]);
    file.extend([0xff; 16]);
    let (packets, ending) = read(file);
    assert_eq!(packets.len(), 1);
    assert_eq!(ending, Ending::Damaged { at: 44, what: Damage::PacketLength { len: u32::MAX } });
    let start = [order.section(), order.interface(1, 0, &[])].concat();
    let damage = |block: Vec<u8>| read([start.clone(), block].concat()).1;
    let at = start.len() as u64;
    let what = Damage::BlockLength { len: 13 };
    assert_eq!(damage([order.u32(6), order.u32(13), [0; 4], [0; 4]].concat()), Ending::Damaged { at, what });
    let what = Damage::BlockLengths { first: 12, last: 16 };
    assert_eq!(damage([order.u32(6), order.u32(12), order.u32(16)].concat()), Ending::Damaged { at, what });
}

/// An IPv4 packet with a UDP datagram of `len` bytes.
fn ipv4(len: u32) -> Vec<u8> {
    udp_frame(&mut FrameBuffer::new(Keep::Full), true, len)[14..].to_vec()
}

/// An IPv6 packet: extension headers (each begins with its own type), then UDP of `len` bytes.
fn ipv6(extensions: &[(u8, &[u8])], len: u16) -> Vec<u8> {
    let mut types: Vec<u8> = extensions.iter().map(|extension| extension.0).collect();
    types.push(17);
    let rest: Vec<u8> = extensions
        .iter()
        .zip(&types[1..])
        .flat_map(|((_, body), &next)| [&[next][..], body].concat())
        .collect();
    let udp = [&[0, 9, 0, 10][..], &(len + 8).to_be_bytes(), &[0; 2], &vec![0; usize::from(len)]].concat();
    let payload_len = (rest.len() + udp.len()) as u16;
    let mut packet = vec![0x60, 0x30, 0, 0];
    packet.extend(payload_len.to_be_bytes());
    packet.extend([types[0], 64]);
    packet.extend([0xfd; 16]);
    packet.extend([0xfe; 16]);
    [packet, rest, udp].concat()
}

#[test]
fn every_link_type_leads_to_the_ip_header() {
    let packet = ipv4(100);
    let links: [(LinkType, &[u8]); 16] = [
        (LinkType::ETHERNET, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
        (LinkType::ETHERNET, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 5, 8, 0]),
        (LinkType::ETHERNET, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]),
        // PPPoE and PPP, and two labels of MPLS.
        (
            LinkType::ETHERNET,
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x64, 0x11, 0, 0, 5, 0, 130, 0, 0x21],
        ),
        (LinkType::ETHERNET, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x47, 0, 1, 0, 9, 0, 2, 1, 9]),
        (LinkType::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x47, 0, 2, 1, 9]),
        (
            LinkType::LINUX_SLL2,
            &[0x88, 0x47, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 9],
        ),
        (LinkType::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
        (LinkType::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 7, 8, 0]),
        (LinkType::LINUX_SLL2, &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0]),
        (LinkType::RAW, &[]),
        (LinkType::RAW_OLD, &[]),
        (LinkType::IPV4, &[]),
        (LinkType::NULL, &[2, 0, 0, 0]),
        (LinkType::NULL, &[0, 0, 0, 2]),
        (LinkType::LOOP, &[0, 0, 0, 2]),
    ];
    for (link, header) in links {
        let bytes = [header, &packet].concat();
        let segment = parse(link, &bytes, bytes.len() as u32).expect("UDP");
        assert_eq!((segment.ip_at as usize, segment.payload_len), (header.len(), 100), "{link:?} {header:?}");
    }
    assert_eq!(parse(LinkType(147), &packet, 128), Err(Unparsed::LinkType));
    let arp = [&[0; 12][..], &[8, 6, 0, 0]].concat();
    assert_eq!(parse(LinkType::ETHERNET, &arp, 60), Err(Unparsed::NotIp));
    let control = [&[0; 12][..], &[0x88, 0x64, 0x11, 0, 0, 5, 0, 130, 0xc0, 0x21, 1, 1]].concat();
    assert_eq!(parse(LinkType::ETHERNET, &control, 60), Err(Unparsed::NotIp));
    let endless = [&[0; 12][..], &[0x88, 0x47], &[0; 60]].concat();
    assert_eq!(parse(LinkType::ETHERNET, &endless, 74), Err(Unparsed::Malformed));
    assert_eq!(parse(LinkType::ETHERNET, &endless[..20], 74), Err(Unparsed::HeaderCut));
}

#[test]
fn ipv6_extension_headers_are_passed() {
    let options: (u8, &[u8]) = (0, &[0, 1, 4, 0, 0, 0, 0]);
    let routing: (u8, &[u8]) = (43, &[0, 0, 0, 0, 0, 0, 0]);
    let authentication: (u8, &[u8]) = (51, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let atomic: (u8, &[u8]) = (44, &[0, 0, 0, 0, 0, 0, 9]);
    for extensions in [&[][..], &[options], &[options, routing, authentication, atomic]] {
        let bytes = ipv6(extensions, 77);
        let segment = parse(LinkType::RAW, &bytes, bytes.len() as u32).expect("UDP");
        assert_eq!((segment.payload_len, segment.ecn, segment.destination_port), (77, 3, 10));
        assert_eq!(segment.fragment, None);
    }
    let endless: Vec<(u8, &[u8])> = vec![options; 40];
    assert_eq!(parse(LinkType::RAW, &ipv6(&endless, 1), 0), Err(Unparsed::Malformed));
}

#[test]
fn a_cut_packet_counts_by_its_ip_length_and_a_super_packet_by_its_frame() {
    let mut bytes = ipv4(1000);
    bytes.truncate(40);
    assert_eq!(parse(LinkType::RAW, &bytes, 1028).expect("UDP").payload_len, 1000);
    // Ethernet's padding is not payload.
    assert_eq!(parse(LinkType::RAW, &bytes, 1500).expect("UDP").payload_len, 1000);
    bytes[2..4].fill(0);
    assert_eq!(parse(LinkType::RAW, &bytes, 65_563).expect("UDP").payload_len, 65_535);
}

/// The three fragments of a datagram with 2992 bytes of data.
fn three_fragments() -> [Vec<u8>; 3] {
    let whole = ipv4(2992);
    [0, 1000, 2000].map(|offset: usize| {
        let mut packet = whole[..20].to_vec();
        packet[2..4].copy_from_slice(&1020u16.to_be_bytes());
        packet[4..6].copy_from_slice(&[7, 7]);
        let place = (offset as u16 / 8) | if offset < 2000 { 0x2000 } else { 0 };
        packet[6..8].copy_from_slice(&place.to_be_bytes());
        packet.extend(&whole[20 + offset..1020 + offset]);
        packet
    })
}

#[test]
fn fragments_count_once_all_have_come_in_any_order() {
    let [a, b, c] = three_fragments();
    for order in [[&a, &b, &c], [&c, &a, &b]] {
        let records: Vec<_> = order.iter().map(|bytes| (1, 1, &bytes[..], 1020)).collect();
        let (flows, counts, _) = analyse(ORDERS[0].pcap(MICROSECONDS, 101, &records));
        let half = &flows[0].halves[0];
        assert_eq!((half.packets, half.payload_bytes, half.fragments, half.ip_bytes), (3, 2992, 3, 3060));
        assert_eq!((half.largest_ip, half.may_fragment), (1020, 3));
        assert_eq!((counts.fragments, counts.fragments_incomplete), (3, 0));
    }
    let records = [(1, 1, &a[..], 1020), (1, 1, &b[..], 1020)];
    let (flows, counts, _) = analyse(ORDERS[0].pcap(MICROSECONDS, 101, &records));
    assert_eq!((flows.len(), counts.fragments_incomplete), (0, 2));
}

#[test]
fn a_fragment_that_came_twice_does_not_stand_for_a_missing_one() {
    let [a, b, c] = three_fragments();
    let incomplete = |order: &[&Vec<u8>]| {
        let records: Vec<_> = order.iter().map(|bytes| (1, 1, &bytes[..], 1020)).collect();
        analyse(ORDERS[0].pcap(MICROSECONDS, 101, &records)).1.fragments_incomplete
    };
    assert_eq!(incomplete(&[&a, &a, &c]), 3);
    assert_eq!(incomplete(&[&c, &a, &a, &c]), 4);
    assert_eq!(incomplete(&[&a, &a, &c, &b]), 0);
}

#[test]
fn fragments_of_an_older_datagram_with_the_same_identification_are_given_up() {
    let [a, b, c] = three_fragments();
    let sent = [(1, &a), (1, &b), (60, &a), (60, &b), (60, &c)];
    let records = sent.map(|(second, bytes)| (second, 1, &bytes[..], 1020));
    let (flows, counts, _) = analyse(ORDERS[0].pcap(MICROSECONDS, 101, &records));
    assert_eq!((flows[0].halves[0].packets, counts.fragments_incomplete), (3, 2));
}

#[test]
fn what_could_not_be_read_is_counted_by_reason() {
    let good = ipv4(10);
    let other = {
        let mut bytes = good.clone();
        bytes[9] = 47;
        bytes
    };
    let malformed = {
        let mut bytes = good.clone();
        bytes[0] = 0x41;
        bytes
    };
    let packets: [&[u8]; 5] = [&good, &good[..22], &other, &malformed, &[]];
    let records: Vec<_> = packets.iter().map(|&bytes| (1, 1, bytes, 38)).collect();
    let (_, counts, _) = analyse(ORDERS[0].pcap(MICROSECONDS, 101, &records));
    assert_eq!((counts.packets, counts.udp, counts.header_cut), (5, 1, 2));
    assert_eq!((counts.other_protocol, counts.malformed), (1, 1));
}

#[test]
fn a_packet_too_big_for_a_link_is_reported_with_its_flow() {
    let mut buffer = FrameBuffer::new(Keep::Full);
    let quoted = frame(&mut buffer, &client(0, ACK, 1, 1, 1460)).bytes[14..42].to_vec();
    let mut icmp = ipv4(0)[..20].to_vec();
    icmp[9] = 1;
    icmp.extend([3, 4, 0, 0, 0, 0, 0x05, 0x14]);
    icmp.extend(quoted);
    let len = icmp.len() as u16;
    icmp[2..4].copy_from_slice(&len.to_be_bytes());
    let icmp = [&[0; 12][..], &[8, 0], &icmp].concat();
    let sends = handshake();
    let frames: Vec<Vec<u8>> = sends.iter().map(|send| frame(&mut buffer, send).bytes.to_vec()).collect();
    let mut records: Vec<_> = frames.iter().map(|bytes| (1, 1, &bytes[..], 60)).collect();
    records.push((1, 1, &icmp, 70));
    let (flows, ..) = analyse(ORDERS[0].pcap(MICROSECONDS, 1, &records));
    let half = &flows[0].tcp.as_ref().expect("TCP").halves[0];
    assert_eq!((half.too_big, half.path_mtu), (1, Some(1300)));
}
