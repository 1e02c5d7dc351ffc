//! Many flows at a time: what makes a flow, how many are kept in mind, and several cores.

mod common;

use common::*;
use proptest::prelude::*;
use tcplab_pcap::build::{FrameBuffer, Keep};
use tcplab_pcap::flow::{Analysis, Direction, End, Observer, Options, Seen};
use tcplab_pcap::parse::Protocol;
use tcplab_pcap::read::Ending;
use tcplab_pcap::{Packet, Reader, summarise};

/// A hundred connections side by side, each with up to `maximum` segments of data.
fn connections(maximum: u32) -> Vec<Send<'static>> {
    let mut sends = Vec::new();
    for n in 0..100u16 {
        let at = |send: Send<'static>| Send { at: send.at + u64::from(n) * MS, port: 30_000 + n, ..send };
        sends.extend(handshake().into_iter().map(at));
        let segments = u32::from(n) * 7 % maximum;
        for k in 0..segments {
            sends.push(at(client(20 + u64::from(k), ACK, 1 + k * 500, 1, 500)));
        }
        sends.push(at(client(40 + u64::from(maximum), FIN | ACK, 1 + segments * 500, 1, 0)));
    }
    sends.sort_by_key(|send| send.at);
    sends
}

fn hundred() -> Vec<u8> {
    capture(&connections(7))
}

/// `hundred` longer, with packets between that are not segments, or whose ends only show on a close look.
fn all_sorts() -> Vec<u8> {
    let file = capture(&connections(300));
    let odd = odd_frames();
    let mut reader = Reader::from_bytes(file).expect("a capture");
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        frames.push((packet.time, packet.bytes.to_vec()));
        if packet.number.is_multiple_of(50) {
            let odd = &odd[packet.number as usize / 50 % odd.len()];
            frames.push((packet.time, odd.clone()));
        }
        // The first connections once more when they are forgotten, and then by a clock that has gone back.
        if packet.number.is_multiple_of(3) {
            let later = if packet.number.is_multiple_of(2) { 30_000 } else { 5_000 };
            frames.push((packet.time + later * MS as i64, packet.bytes.to_vec()));
        }
    }
    ethernet_file(&frames)
}

#[test]
fn any_number_of_cores_gives_the_same_summary() {
    let file = all_sorts();
    let summary = |cores| {
        let mut reader = Reader::from_bytes(file.clone()).expect("a capture");
        let summary = summarise(&mut reader, Options::default(), cores);
        assert_eq!(reader.ending(), Some(&Ending::Complete));
        assert_eq!(reader.counts().packets, summary.counts.packets);
        (summary.flows.iter().collect::<Vec<_>>(), summary.counts)
    };
    let (flows, counts) = summary(1);
    assert!(flows.len() > 100 && counts.packets > 10_000, "{}, {counts:?}", flows.len());
    let odd = [counts.udp, counts.not_ip, counts.other_protocol, counts.header_cut, counts.malformed];
    assert!(
        odd.iter().all(|&count| count > 0) && counts.fragments > counts.fragments_incomplete,
        "{counts:?}"
    );
    for cores in [2, 3, 8] {
        let (theirs, their_counts) = summary(cores);
        assert_eq!(their_counts, counts, "{cores} cores");
        assert_eq!(theirs.len(), flows.len(), "{cores} cores");
        for (theirs, own) in theirs.iter().zip(&flows) {
            assert_eq!(theirs, own, "{cores} cores");
        }
    }
}

#[test]
fn a_capture_of_one_flow_is_summarised_on_two_cores() {
    let sends: Vec<_> = (0..50_000).map(|k| client(u64::from(k), ACK, 1 + k * 500, 1, 500)).collect();
    let mut reader = Reader::from_bytes(capture(&sends)).expect("a capture");
    let summary = summarise(&mut reader, Options::default(), 2);
    assert_eq!(summary.flows.len(), 1);
    let flow = summary.flows.get(0).expect("a flow");
    assert_eq!(flow.halves[0].payload_bytes, 25_000_000);
}

#[test]
fn a_stream_is_summarised_on_one_core() {
    let mut reader = Reader::from_stream(std::io::Cursor::new(hundred())).expect("a capture");
    assert_eq!(summarise(&mut reader, Options::default(), 2).flows.len(), 100);
}

#[test]
fn beyond_the_most_flows_those_idle_for_longest_are_ended() {
    let mut reader = Reader::from_bytes(hundred()).expect("a capture");
    let options = Options { most_flows: 20, ..Options::default() };
    let mut analysis = Analysis::with_observer(options, Kinds::default());
    let mut evicted = 0;
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
        evicted += analysis.drain().filter(|flow| flow.end != End::Open).count();
    }
    assert!(evicted >= 80, "{evicted}");
    assert!(analysis.finish().0.len() <= 20);
}

#[test]
fn eight_flows_of_few_packets_take_the_room_of_one() {
    let sends: Vec<_> = (0..1000).map(|n| Send { port: n, ..client(u64::from(n), SYN, 0, 0, 0) }).collect();
    let mut reader = Reader::from_bytes(capture(&sends)).expect("a capture");
    let options = Options { most_flows: 20, ..Options::default() };
    let summary = summarise(&mut reader, options, 1);
    assert_eq!(summary.flows.len(), 1000);
    let evicted = summary.flows.iter().filter(|flow| flow.end == End::Evicted).count();
    assert!((840..860).contains(&evicted), "{evicted}");
    assert_eq!(summary.flows.place_of(1000), Some(999));
}

#[derive(Debug)]
struct CountingObserver;

impl Observer for CountingObserver {
    fn seen(&mut self, _: &Seen<'_>) {}
}

/// A segment or datagram between a handful of ports, with what makes a flow grow among it.
fn any_send() -> impl Strategy<Value = (Send<'static>, u64)> {
    let flags = prop_oneof![
        4 => Just(ACK), 2 => Just(SYN), 2 => Just(SYN | ACK), 1 => Just(RST), 1 => Just(RST | ACK), 1 => Just(FIN | ACK)
    ];
    let sack = prop_oneof![8 => Just(&[][..]), 1 => Just(&[(3, 5)][..])];
    let time = prop_oneof![8 => 0..40u64, 1 => Just(11_000)];
    let number = || prop_oneof![9 => 0..4u32, 1 => Just(1 << 31)];
    let numbers = (number(), number(), 0..3u32);
    (any::<bool>(), flags, numbers, sack, 0..3u16, time, proptest::option::of((0..9u32, 0..9u32))).prop_map(
        |(client, flags, (seq, ack, len), sack, port, after, timestamps)| {
            let send = Send { client, sack, port, timestamps, ..crate::client(0, flags, seq, ack, len) };
            (send, after)
        },
    )
}

proptest! {
    /// A flow that is kept as its packets is reported like one that is analyzed from its first packet on.
    #[test]
    fn flows_of_few_packets_are_reported_as_if_analyzed(sends in proptest::collection::vec(any_send(), 1..40)) {
        let mut at = 0;
        let sends: Vec<_> = sends
            .into_iter()
            .map(|(send, after)| {
                at += after * MS;
                Send { at, ..send }
            })
            .collect();
        let file = capture(&sends);
        let mut watched = Analysis::with_observer(Options::default(), CountingObserver);
        let mut reader = Reader::from_bytes(file.clone()).expect("a capture");
        while let Some(packet) = reader.next_packet() {
            watched.packet(&packet);
        }
        let (analyzed, counts, _) = watched.finish();
        let summary = summarise(&mut Reader::from_bytes(file).expect("a capture"), Options::default(), 1);
        prop_assert_eq!(summary.flows.iter().collect::<Vec<_>>(), analyzed);
        prop_assert_eq!(summary.counts, counts);
    }
}

#[test]
fn an_ended_connection_is_forgotten_after_a_while() {
    let close = [client(20, RST, 1, 0, 0)];
    let other = Send { port: 41_000, ..client(20_000, SYN, 0, 0, 0) };
    let sends: Vec<_> = handshake().into_iter().chain(close).chain([other]).collect();
    let mut reader = Reader::from_bytes(capture(&sends)).expect("a capture");
    let mut analysis = Analysis::new(Options::default());
    let mut ended = Vec::new();
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
        ended.extend(analysis.drain().map(|flow| (packet.number, flow.end)));
    }
    assert_eq!(ended, [(5, End::Reset)]);
}

#[test]
fn one_packet_on_two_interfaces_is_two_flows() {
    let mut buffer = FrameBuffer::new(Keep::Full);
    let bytes = frame(&mut buffer, &client(0, ACK, 1, 1, 100)).bytes.to_vec();
    let mut analysis = Analysis::new(Options::default());
    for interface in [0, 1] {
        analysis.packet(&Packet { interface, ..ethernet(u64::from(interface) + 1, 0, &bytes) });
    }
    let (flows, ..) = analysis.finish();
    assert_eq!(flows.iter().map(|flow| flow.interface).collect::<Vec<_>>(), [0, 1]);
    assert!(flows.iter().all(|flow| flow.tcp.as_ref().expect("TCP").halves[0].retransmissions.total() == 0));
}

/// RFC 9868: what an IP packet holds behind its datagram are options, not payload.
#[test]
fn the_payload_of_a_datagram_is_as_long_as_its_header_says() {
    let mut buffer = FrameBuffer::new(Keep::Full);
    // 0 of a jumbogram, and more than there is: the IP header decides.
    for (length, payload) in [(108, 100), (28, 20), (8, 0), (0, 100), (7, 100), (200, 100)] {
        let mut bytes = udp_frame(&mut buffer, true, 100);
        bytes[38..40].copy_from_slice(&u16::to_be_bytes(length));
        let mut analysis = Analysis::new(Options::default());
        analysis.packet(&ethernet(1, 0, &bytes));
        assert_eq!(analysis.finish().0[0].halves[0].payload_bytes, payload, "length {length}");
    }
}

#[test]
fn datagrams_are_counted_and_timed() {
    let mut buffer = FrameBuffer::new(Keep::Full);
    let [forward, reverse] = [true, false].map(|client| udp_frame(&mut buffer, client, 100));
    let mut analysis = Analysis::new(Options::default());
    for (number, at) in (1..).zip([0, 10, 20, 40]) {
        analysis.packet(&ethernet(number, at * MS as i64, &forward));
    }
    analysis.packet(&ethernet(5, 41 * MS as i64, &reverse));
    let (flows, counts, ()) = analysis.finish();
    let flow = &flows[0];
    assert_eq!((flows.len(), counts.udp, flow.protocol), (1, 5, Protocol::Udp));
    let half = &flow.halves[Direction::Forward.index()];
    assert_eq!((half.packets, half.payload_bytes, half.interarrival.count()), (4, 400, 3));
    assert_eq!((half.interarrival.min(), half.interarrival.max()), (Some(10_000_000), Some(20_000_000)));
    assert_eq!(flow.goodput(Direction::Forward), Some(400.0 * 8.0 / 0.04));
}
