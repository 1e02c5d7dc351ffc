//! Captures of both ends of a path whose delays, losses and clocks are known.

mod common;

use common::*;
use tcplab_pcap::Reader;
use tcplab_pcap::flow::Direction;
use tcplab_pcap::pairing::{Clocks, Pairing, pair};

const FORWARD: u64 = 10 * MS;
const REVERSE: u64 = 10 * MS;
/// The second clock is this far ahead, and this much faster.
const OFFSET: u64 = 5_000 * MS;
const SKEW: f64 = 50e-6;

/// 400 segments, each acknowledged; every 50th is lost and retransmitted, every 70th acknowledgment is lost.
fn both_ends() -> [Vec<Send<'static>>; 2] {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let ahead = |at: u64| at + OFFSET + (at as f64 * SKEW) as u64;
    let mut to_server = |at: u64, send: Send<'static>, lost: bool, queue: u64| {
        first.push(Send { at, ..send });
        if !lost {
            second.push(Send { at: ahead(at + FORWARD + queue), ..send });
        }
    };
    let mut acks = Vec::new();
    to_server(0, client(0, SYN, 0, 0, 0), false, 0);
    acks.push((FORWARD, server(0, SYN | ACK, 0, 1, 0), false));
    for n in 0..400u32 {
        let at = (50 + u64::from(n) * 20) * MS;
        let stamp = |at: u64| Some(((at / MS) as u32, 0));
        let data = Send { timestamps: stamp(at), ..client(0, ACK, 1 + n * 100, 1, 100) };
        let lost = n % 50 == 7;
        to_server(at, data, lost, u64::from(n % 7) * MS / 10);
        if lost {
            to_server(at + 300 * MS, Send { timestamps: stamp(at + 300 * MS), ..data }, false, 0);
        }
        let answered = at + FORWARD + MS + if lost { 300 * MS } else { 0 };
        acks.push((answered, server(0, ACK, 1, 1 + (n + 1) * 100, 0), n % 70 == 20));
    }
    for (at, ack, lost) in acks {
        second.push(Send { at: ahead(at), ..ack });
        if !lost {
            first.push(Send { at: at + REVERSE, ..ack });
        }
    }
    first.sort_by_key(|send| send.at);
    second.sort_by_key(|send| send.at);
    [first, second]
}

fn paired(ends: &[&[Send<'static>]; 2], clocks: Clocks) -> Pairing {
    let [mut first, mut second] = ends.map(|sends| Reader::from_bytes(capture(sends)).expect("a capture"));
    pair(&mut first, &mut second, clocks)
}

#[test]
fn delays_and_losses_are_found_under_offset_and_skew() {
    let [first, second] = both_ends();
    let pairing = paired(&[&first, &second], Clocks::Different);
    assert!((pairing.clock.skew - SKEW).abs() < 1e-6, "{:?}", pairing.clock);
    assert!(pairing.clock.offset.abs_diff(OFFSET as i64) < 50_000, "{:?}", pairing.clock);
    let flow = &pairing.flows[0];
    assert_eq!((pairing.flows.len(), pairing.unpaired, flow.sent_at_first), (1, [0, 0], Direction::Forward));
    let [forward, reverse] = &flow.halves;
    assert_eq!((forward.sent, forward.lost, forward.retransmissions, forward.needless), (409, 8, 8, 0));
    assert_eq!((reverse.lost_acks, reverse.lost, reverse.unsent), (6, 0, 0));
    let close =
        |delay: Option<i64>, truth: u64| delay.is_some_and(|delay| delay.abs_diff(truth as i64) < 100_000);
    assert!(
        close(forward.delay.min(), FORWARD) && close(forward.delay.max(), FORWARD + 6 * MS / 10),
        "{forward:?}"
    );
    assert!(close(reverse.delay.min(), REVERSE) && close(reverse.delay.max(), REVERSE), "{reverse:?}");
}

#[test]
fn what_the_capture_at_the_receiver_missed_is_not_lost() {
    let [first, second] = both_ends();
    // Every 30th segment that came is missing there, retransmissions too: all are acknowledged.
    let mut count = 0;
    let kept: Vec<_> = second
        .iter()
        .filter(|send| {
            count += usize::from(send.client);
            !send.client || count % 30 != 10
        })
        .copied()
        .collect();
    let dropped = (second.len() - kept.len()) as u64;
    for ends in [[&first[..], &kept[..]], [&kept[..], &first[..]]] {
        let half = &paired(&ends, Clocks::Different).flows[0].halves[0];
        assert_eq!((half.sent, half.lost, half.missed), (409, 8, dropped), "{half:?}");
        assert_eq!(half.arrived, 401 - dropped);
    }
}

#[test]
fn the_ends_are_distinguished_whichever_comes_first() {
    let [first, second] = both_ends();
    let pairing = paired(&[&second, &first], Clocks::Different);
    let flow = &pairing.flows[0];
    assert_eq!(flow.sent_at_first, Direction::Backward);
    assert_eq!((flow.halves[0].lost, flow.halves[1].lost_acks), (8, 6));
}

#[test]
fn a_capture_that_begins_with_the_other_side_has_the_same_directions() {
    let [first, second] = both_ends();
    let begins = (200..).find(|&place: &usize| !first[place].client).expect("an acknowledgment");
    for ends in [[&first[begins..], &second[..]], [&second[..], &first[begins..]]] {
        let pairing = paired(&ends, Clocks::Different);
        let flow = &pairing.flows[0];
        let data = usize::from(flow.endpoints[0].port != 40_000);
        let [sent, acks] = [&flow.halves[data], &flow.halves[1 - data]];
        assert!(sent.sent > 150 && sent.lost > 0 && sent.lost_acks == 0, "{sent:?}");
        assert!(acks.sent > 150 && acks.lost == 0 && acks.lost_acks > 0, "{acks:?}");
        assert!(sent.delay.min() > Some(0) && acks.delay.min() > Some(0), "{sent:?} {acks:?}");
        assert_eq!((sent.unsent, acks.unsent), (0, 0));
    }
}

#[test]
fn one_clock_is_left_as_it_is() {
    let [first, _] = both_ends();
    let later = |sends: &[Send<'static>]| -> Vec<Send<'static>> {
        sends.iter().filter(|send| send.client).map(|send| Send { at: send.at + 3 * MS, ..*send }).collect()
    };
    let second = later(&first);
    let pairing = paired(&[&first, &second], Clocks::Same);
    assert_eq!(pairing.flows[0].halves[0].delay.max(), Some(3 * MS as i64));
    assert_eq!(pairing.flows[0].halves[0].lost, 0);
}

#[test]
fn a_retransmission_of_what_had_arrived_is_needless() {
    let mut first = handshake();
    let data = client(20, ACK, 1, 1, 100);
    let stamped = |at: u64| Send { at: at * MS, timestamps: Some((at as u32, 0)), ..data };
    first.extend([stamped(20), stamped(400), server(401, ACK, 1, 101, 0)]);
    let second: Vec<_> = first.iter().map(|send| Send { at: send.at + MS, ..*send }).collect();
    let half = &paired(&[&first, &second], Clocks::Same).flows[0].halves[0];
    assert_eq!((half.retransmissions, half.needless), (1, 1));
}

#[test]
fn other_connections_have_no_pair() {
    let other: Vec<_> = handshake().iter().map(|send| Send { port: 41_000, ..*send }).collect();
    let pairing = paired(&[&handshake(), &other], Clocks::Different);
    assert_eq!((pairing.flows.len(), pairing.unpaired), (0, [1, 1]));
}

/// A super-packet of 3,000 bytes captured above the network card, and of a thousand later.
fn super_packets() -> Vec<Send<'static>> {
    let stamped = |at: u64, seq: u32, len: u32| Send {
        timestamps: Some((at as u32, 0)),
        ..client(at, ACK, seq, 1, len)
    };
    let mut sends: Vec<_> =
        handshake().iter().map(|send| Send { timestamps: Some((1, 1)), ..*send }).collect();
    sends.extend([stamped(20, 1, 4000), stamped(40, 1449, 1448), stamped(41, 4001, 1000)]);
    sends
}

fn handshake_there() -> Vec<Send<'static>> {
    super_packets()[..3]
        .iter()
        .map(|send| Send { at: if send.client { send.at + 5 * MS } else { send.at - 5 * MS }, ..*send })
        .collect()
}

#[test]
fn a_packet_that_was_cut_is_matched_by_its_numbers() {
    let first = super_packets();
    let mut second = handshake_there();
    let part = |at: u64, from: usize, seq: u32, len: u32| Send { at: at * MS, seq, len, ..first[from] };
    // The second segment of the three is lost, and comes when it is retransmitted.
    second.extend([
        part(25, 3, 1, 1448),
        part(26, 3, 2897, 1104),
        part(45, 4, 1449, 1448),
        part(46, 5, 4001, 1000),
    ]);
    let pairing = paired(&[&first, &second], Clocks::Same);
    let half = &pairing.flows[0].halves[0];
    // SYN, ACK, three segments, one again, one.
    assert_eq!((half.sent, half.arrived, half.lost, half.unsent), (7, 6, 1, 0));
    assert_eq!((half.retransmissions, half.needless), (1, 0));
    assert_eq!((half.delay.min(), half.delay.max()), (Some(5 * MS as i64), Some(6 * MS as i64)));
    let lost: Vec<_> = pairing.pairs.delay.iter().map(|delay| delay.is_none()).collect();
    let place = lost.iter().position(|&lost| lost).expect("one is lost");
    assert_eq!((pairing.pairs.seq.get(place), pairing.pairs.len.get(place)), (Some(1449), Some(1448)));
}

#[test]
fn what_was_merged_on_its_way_is_matched_with_all_it_was_made_of() {
    let mut first = super_packets();
    let whole = first.remove(3);
    first.retain(|send| send.len != 1448);
    for n in 0..4 {
        first.push(Send { seq: 1 + n * 1000, len: 1000, at: whole.at + u64::from(n) * MS, ..whole });
    }
    first.sort_by_key(|send| send.at);
    let mut second = handshake_there();
    second.push(Send { at: 30 * MS, seq: 1, len: 3000, ..whole });
    second.push(Send { at: 46 * MS, ..*first.last().expect("not empty") });
    let half = &paired(&[&first, &second], Clocks::Same).flows[0].halves[0];
    // The fourth thousand never came.
    assert_eq!((half.sent, half.arrived, half.lost, half.unsent), (7, 6, 1, 0));
    assert_eq!(half.delay.max(), Some(10 * MS as i64));
}

#[test]
fn a_cut_packet_retransmitted_though_it_had_come_is_needless_by_the_segment() {
    let mut first = super_packets();
    first[4] = Send { seq: 1, len: 4000, ..first[4] };
    let mut second = handshake_there();
    for (at, from) in [(25, 3), (46, 4)] {
        for (seq, len) in [(1, 1448), (1449, 1448), (2897, 1104)] {
            // The third of them is lost the first time.
            if (at, seq) != (25, 2897) {
                second.push(Send { at: at * MS, seq, len, ..first[from] });
            }
        }
    }
    second.push(Send { at: 47 * MS, ..first[5] });
    let half = &paired(&[&first, &second], Clocks::Same).flows[0].halves[0];
    assert_eq!((half.lost, half.retransmissions, half.needless, half.unsent), (1, 3, 2, 0));
}

#[test]
fn a_capture_that_begins_later_counts_from_another_number() {
    let first = super_packets();
    let later = first[4..].iter().map(|send| Send { at: send.at + 5 * MS, ..*send });
    let cut = Send { at: 80 * MS, len: 2000, seq: 5001, timestamps: Some((70, 0)), ..first[4] };
    let mut second: Vec<_> = later.collect();
    second.extend([Send { len: 1448, ..cut }, Send { seq: 5001 + 1448, len: 552, ..cut }]);
    let mut first = first;
    first.push(Send { at: 75 * MS, ..cut });
    let half = &paired(&[&first, &second], Clocks::Same).flows[0].halves[0];
    assert_eq!((half.lost, half.unsent), (0, 0), "{half:?}");
    assert_eq!(half.delay.count(), 4);
}
