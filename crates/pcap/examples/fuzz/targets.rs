//! The operations on a mutant, and the properties that must hold then.

use std::io::Cursor;

use tcplab_pcap::dissect::{Captured, Dissector};
use tcplab_pcap::filter::{Filter, Subject};
use tcplab_pcap::flow::{Analysis, Direction, Observer, Options, Seen};
use tcplab_pcap::list::{Layout, PacketList};
use tcplab_pcap::pairing::{Clocks, pair};
use tcplab_pcap::read::LinkType;
use tcplab_pcap::{Reader, parse, summarise};

/// A target: its name, and what it does with a mutant.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: [Target; 8] = [
    ("reader", read_whole_and_streamed),
    ("compressed", read_compressed),
    ("parser", parse_on_every_link),
    ("analysis", analyse),
    ("cores", divide),
    ("pairing", pair_with_itself),
    ("list", list_and_dissect),
    ("filter", filter_text),
];

fn packets(mut reader: Reader) -> Vec<(i64, Vec<u8>, u32)> {
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        packets.push((packet.time, packet.bytes.to_vec(), packet.original_len));
        assert!(packets.len() < 100_000, "packets without end");
    }
    assert!(reader.ending().is_some());
    packets
}

fn read_whole_and_streamed(bytes: &[u8]) {
    let whole = Reader::from_bytes(bytes.to_vec()).map(packets);
    let streamed = Reader::from_stream(Cursor::new(bytes.to_vec())).map(packets);
    match (whole, streamed) {
        (Ok(whole), Ok(streamed)) => assert_eq!(whole, streamed),
        (Err(whole), Err(streamed)) => assert_eq!(whole.to_string(), streamed.to_string()),
        (whole, streamed) => panic!("whole {whole:?}, streamed {streamed:?}"),
    }
}

fn read_compressed(bytes: &[u8]) {
    if let Ok(mut reader) = Reader::from_bytes(bytes.to_vec()) {
        // A few bytes may stand for very many.
        for _ in 0..10_000 {
            if reader.next_packet().is_none() {
                break;
            }
        }
    }
}

fn parse_on_every_link(bytes: &[u8]) {
    for link in [0, 1, 12, 14, 101, 108, 113, 228, 229, 276, 999] {
        for original_len in [bytes.len() as u32, 0, u32::MAX] {
            if let Ok(segment) = parse(LinkType(link), bytes, original_len) {
                assert!(segment.ip_at <= segment.transport_at && segment.transport_at <= segment.payload_at);
            }
        }
    }
    let mut dissector = Dissector::new();
    for link_type in [0, 1, 101, 113, 276] {
        dissector.fields(&Captured { link_type, bytes, wire_len: bytes.len() as u32 });
    }
}

/// The most that was ever outstanding, by what observers are shown.
struct Outstanding(u64);

impl Observer for Outstanding {
    fn seen(&mut self, seen: &Seen<'_>) {
        self.0 = self.0.max(seen.outstanding).max(seen.outstanding_peer);
        // No packet can be farther ahead of those before it than the largest window.
        assert!(self.0 >> 30 <= seen.packet, "{} bytes outstanding", self.0);
        assert!(seen.new_bytes <= seen.segment.payload_len);
    }
}

/// Each core's share together is what one core finds.
fn divide(bytes: &[u8]) {
    let options = Options { linger: 1_000_000, ..Options::default() };
    let summary = |cores| {
        let mut reader = Reader::from_bytes(bytes.to_vec()).ok()?;
        let summary = summarise(&mut reader, options, cores);
        let flows: Vec<_> = summary.flows.iter().collect();
        Some((flows, summary.counts, reader.ending().cloned(), reader.counts()))
    };
    assert!(summary(1) == summary(3), "three cores find something else");
}

fn analyse(bytes: &[u8]) {
    let Ok(mut reader) = Reader::from_bytes(bytes.to_vec()) else { return };
    let options = Options { most_flows: 3, linger: 1_000_000 };
    let mut analysis = Analysis::with_observer(options, Outstanding(0));
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
    }
    let (flows, counts, _) = analysis.finish();
    for flow in &flows {
        let sent = flow.halves.iter().map(|half| half.packets).sum::<u64>();
        assert!(sent > 0 && sent <= counts.packets && flow.duration() >= 0);
        for direction in [Direction::Forward, Direction::Backward] {
            let _ = flow.goodput(direction);
            let half = &flow.halves[direction.index()];
            let Some(tcp) = &flow.tcp else { continue };
            let tcp = &tcp.halves[direction.index()];
            assert!(tcp.unique_bytes <= half.payload_bytes, "{} of {}", tcp.unique_bytes, half.payload_bytes);
            assert!(tcp.spurious <= tcp.retransmissions.total());
            assert!(tcp.retransmissions.total() + tcp.out_of_order + tcp.duplicates <= half.packets);
            for share in [0.0, 0.5, 1.0] {
                assert_eq!(tcp.rtt.quantile(share).is_some(), tcp.rtt.count() > 0);
            }
        }
    }
}

fn pair_with_itself(bytes: &[u8]) {
    let open = || Reader::from_bytes(bytes.to_vec());
    if let (Ok(mut first), Ok(mut second)) = (open(), open()) {
        pair(&mut first, &mut second, Clocks::Different);
    }
}

fn list_and_dissect(bytes: &[u8]) {
    let Ok(reader) = Reader::from_bytes(bytes.to_vec()) else { return };
    let filter = Filter::parse("not flow 1 or net 10.0.0.0/8 and port 80").ok();
    let (mut list, mut layout, mut text) = (PacketList::new(reader, filter), Layout::new(80), String::new());
    while list.write_lines(&mut text, 64, &mut layout) > 0 {}
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    let Ok(reader) = Reader::from_bytes(bytes.to_vec()) else { return };
    let mut list = PacketList::new(reader, None);
    for number in 1..1000 {
        let Some(details) = list.details(number) else { break };
        assert_eq!(details.number, number);
        assert!(details.fields.first().is_none_or(|field| field.depth == 0));
    }
}

fn filter_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let address = "10.0.0.1".parse().ok();
    let subject = Subject {
        source: address,
        destination: address,
        source_port: Some(80),
        destination_port: Some(81),
        protocol: Some(6),
        flow: Some(1),
    };
    match Filter::parse(&text) {
        // A packet that a filter accepts, its negation does not.
        Ok(filter) => {
            if let Ok(negated) = Filter::parse(&format!("not ({text})")) {
                assert_ne!(filter.matches(&subject), negated.matches(&subject));
            }
        }
        Err(error) => assert!(error.at + error.len <= text.chars().count(), "{error:?}"),
    }
}
