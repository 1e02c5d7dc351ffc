//! The analysis of connections written by hand.

mod common;

use common::*;
use tcplab_pcap::flow::{Cause, Direction, End, Kind, Retransmissions};

const DATA: u32 = 1000;

/// A segment of the client: the `n`th, from 0, of 1000 bytes each.
fn data(at: u64, n: u32) -> Send<'static> {
    client(at, ACK, 1 + n * DATA, 1, DATA)
}

/// The server has everything before the `n`th.
fn ack(at: u64, n: u32) -> Send<'static> {
    server(at, ACK, 1, 1 + n * DATA, 0)
}

fn after_handshake(rest: &[Send<'static>]) -> Vec<Send<'static>> {
    [handshake(), rest.to_vec()].concat()
}

#[test]
fn two_kilobytes_over_an_mtu_of_1500_are_1448_and_600() {
    let stamp = |send: Send<'static>| Send { timestamps: Some((1, 1)), ..send };
    let sends = [
        client(0, SYN, 0, 0, 0),
        server(1, SYN | ACK, 0, 1, 0),
        client(1, ACK, 1, 1, 0),
        client(2, ACK, 1, 1, 1448),
        client(2, ACK, 1449, 1, 600),
        server(3, ACK, 1, 2049, 0),
        client(4, FIN | ACK, 2049, 1, 0),
        server(5, FIN | ACK, 1, 2050, 0),
        client(6, ACK, 2050, 2, 0),
    ]
    .map(stamp);
    let mut seen = Numbers::default();
    seen.read(capture(&sends));
    let numbers = [
        (0, None, 0),
        (0, Some(1), 0),
        (1, Some(1), 0),
        (1, Some(1), 1448),
        (1449, Some(1), 600),
        (1, Some(2049), 0),
        (2049, Some(1), 0),
        (1, Some(2050), 0),
        (2050, Some(2), 0),
    ];
    assert_eq!(seen.0, numbers);
    let flow = flow(&sends);
    assert_eq!(flow.end, End::Closed);
    assert_eq!(flow.tcp.expect("TCP").halves[0].acked_bytes, Some(2048));
    assert_eq!(flow.halves[0].largest_ip, 1500);
}

/// Relative sequence number, acknowledgment and length of each segment.
#[derive(Default)]
struct Numbers(Vec<(i64, Option<i64>, u32)>);

impl tcplab_pcap::Observer for Numbers {
    fn seen(&mut self, seen: &tcplab_pcap::flow::Seen<'_>) {
        self.0.push((seen.seq, seen.ack, seen.segment.payload_len));
    }
}

impl Numbers {
    fn read(&mut self, file: Vec<u8>) {
        let mut reader = tcplab_pcap::Reader::from_bytes(file).expect("a capture");
        let mut analysis = tcplab_pcap::Analysis::with_observer(Default::default(), Numbers::default());
        while let Some(packet) = reader.next_packet() {
            analysis.packet(&packet);
        }
        *self = analysis.finish().2;
    }
}

#[test]
fn the_handshake_tells_the_rtt_and_its_two_parts() {
    let tcp = flow(&handshake()).tcp.expect("TCP");
    let times = (tcp.handshake_rtt, tcp.handshake_server, tcp.handshake_client);
    assert_eq!(times, (Some(10_000_000), Some(10_000_000), Some(0)));
}

#[test]
fn a_repeated_syn_leaves_the_handshake_without_rtt() {
    let sends = [client(0, SYN, 0, 0, 0), client(1000, SYN, 0, 0, 0), server(1010, SYN | ACK, 0, 1, 0)];
    let tcp = flow(&sends).tcp.expect("TCP");
    assert_eq!(tcp.handshake_rtt, None);
    assert_eq!(tcp.halves[0].retransmissions, Retransmissions { timeout: 1, ..Default::default() });
}

#[test]
fn each_acknowledgment_of_new_data_gives_an_rtt() {
    let sends = after_handshake(&[data(20, 0), data(21, 1), ack(31, 2), data(40, 2), ack(52, 3)]);
    let rtt = sent(&sends).rtt;
    // The SYN's, the second segment's, the third's.
    assert_eq!((rtt.count(), rtt.min(), rtt.max()), (3, Some(10_000_000), Some(12_000_000)));
}

#[test]
fn a_segment_sent_twice_gives_no_rtt_but_its_timestamp_does() {
    let stamp = |send: Send<'static>, value, echo| Send { timestamps: Some((value, echo)), ..send };
    let sends = after_handshake(&[
        stamp(data(20, 0), 120, 0),
        stamp(data(400, 0), 500, 0),
        stamp(ack(411, 1), 7, 500),
    ]);
    let half = sent(&sends);
    assert_eq!(half.rtt.count(), 1, "only the SYN's");
    assert_eq!(half.rtt_timestamps.max(), Some(11_000_000));
    assert_eq!(half.retransmissions.timeout, 1);
}

#[test]
fn sack_blocks_before_a_retransmission_make_it_a_fast_one() {
    let dup = |at, sack| Send { sack, ..ack(at, 0) };
    let sends = after_handshake(&[
        data(20, 0),
        data(20, 1),
        data(20, 2),
        data(20, 3),
        dup(30, &[(1001, 2001)]),
        dup(30, &[(1001, 3001)]),
        dup(30, &[(1001, 4001)]),
        data(31, 0),
        ack(41, 4),
    ]);
    let half = sent(&sends);
    assert_eq!(half.retransmissions, Retransmissions { fast: 1, ..Default::default() });
    assert_eq!((half.retransmitted_bytes, half.unique_bytes, half.acked_bytes), (1000, 4000, Some(4000)));
    let receiver = &flow(&sends).tcp.expect("TCP").halves[1];
    assert_eq!((receiver.duplicate_acks, receiver.sacks, receiver.dsacks), (3, 3, 0));
}

#[test]
fn the_last_segment_again_after_two_round_trips_is_a_probe() {
    let sends = after_handshake(&[data(20, 0), data(20, 1), ack(30, 1), data(52, 1), ack(62, 2)]);
    assert_eq!(sent(&sends).retransmissions, Retransmissions { probe: 1, ..Default::default() });
}

#[test]
fn the_first_segment_again_after_the_timer_is_a_timeout_and_so_is_what_follows() {
    let sends = after_handshake(&[
        data(20, 0),
        data(20, 1),
        data(20, 2),
        data(240, 0),
        ack(250, 1),
        data(250, 1),
        data(250, 2),
        ack(260, 3),
    ]);
    let half = sent(&sends);
    assert_eq!(half.retransmissions, Retransmissions { timeout: 3, ..Default::default() });
    assert_eq!(half.timeouts, 1);
}

#[test]
fn a_dsack_shows_a_retransmission_to_have_been_needless() {
    let sends = after_handshake(&[
        data(20, 0),
        data(240, 0),
        ack(241, 1),
        Send { sack: &[(1, 1001)], ..ack(250, 1) },
        // Reported again, it is still one.
        Send { sack: &[(1, 1001)], ..ack(251, 1) },
    ]);
    let half = sent(&sends);
    assert_eq!((half.retransmissions.timeout, half.spurious), (1, 1));
    assert_eq!(flow(&sends).tcp.expect("TCP").halves[1].dsacks, 2);
}

#[test]
fn what_fills_a_gap_within_a_round_trip_was_overtaken() {
    let sends = after_handshake(&[data(20, 1), data(22, 0), ack(32, 2)]);
    assert_eq!(kinds(&sends)[3..5], [Kind::AfterGap, Kind::OutOfOrder]);
    let half = sent(&sends);
    assert_eq!((half.out_of_order, half.retransmissions.total(), half.unique_bytes), (1, 0, 2000));
}

#[test]
fn what_fills_a_gap_after_a_round_trip_was_retransmitted() {
    let sends = after_handshake(&[data(20, 1), data(31, 0)]);
    assert!(matches!(kinds(&sends)[4], Kind::Retransmission(_)), "{:?}", kinds(&sends));
}

#[test]
fn timestamps_and_identifications_overrule_time() {
    let stamped = |send: Send<'static>, value| Send { timestamps: Some((value, 0)), ..send };
    let late = after_handshake(&[stamped(data(20, 1), 120), stamped(data(60, 0), 119)]);
    assert_eq!(sent(&late).out_of_order, 1);
    let again = after_handshake(&[stamped(data(20, 1), 120), stamped(data(22, 0), 122)]);
    assert_eq!(sent(&again).retransmissions.total(), 1);
    let numbered = |send: Send<'static>, id| Send { id, ..send };
    let late = after_handshake(&[numbered(data(20, 1), 8), numbered(data(60, 0), 7)]);
    assert_eq!(sent(&late).out_of_order, 1);
    let again = after_handshake(&[numbered(data(20, 1), 0xffff), numbered(data(22, 0), 1)]);
    assert_eq!(sent(&again).retransmissions.total(), 1, "identifications wrap");
}

#[test]
fn the_same_packet_again_at_once_is_the_networks_copy() {
    let half = sent(&after_handshake(&[data(20, 0), data(20, 0), ack(30, 1)]));
    assert_eq!((half.duplicates, half.retransmissions.total(), half.unique_bytes), (1, 0, 1000));
    assert_eq!(half.rtt.count(), 2, "a copy does not spoil the RTT");
}

#[test]
fn a_connection_whose_packets_were_all_captured_twice_has_its_rtt_and_no_duplicate_acks() {
    let sends = after_handshake(&[data(20, 0), data(21, 1), ack(30, 1), ack(31, 2)]);
    let numbered = (1..).zip(sends).map(|(id, send)| Send { id, ..send });
    let twice: Vec<_> = numbered.flat_map(|send| [send, Send { at: send.at + MS / 100, ..send }]).collect();
    let flow = flow(&twice);
    assert_eq!(flow.tcp.as_ref().expect("TCP").handshake_rtt, Some(10_000_000));
    let [sender, receiver] = &flow.tcp.expect("TCP").halves;
    assert_eq!((sender.duplicates, receiver.duplicates, receiver.duplicate_acks), (3, 2, 0));
    assert_eq!((sender.rtt.count(), sender.rtt.max()), (3, Some(10_000_000)));
}

#[test]
fn a_keep_alive_is_not_a_retransmission() {
    let sends = after_handshake(&[data(20, 0), ack(30, 1), client(5000, ACK, 1000, 1, 0), ack(5010, 1)]);
    let half = sent(&sends);
    assert_eq!((half.keep_alives, half.retransmissions.total()), (1, 0));
    assert_eq!(flow(&sends).tcp.expect("TCP").halves[1].duplicate_acks, 0);
}

#[test]
fn a_window_probe_with_a_byte_is_not_data_until_it_is_taken() {
    let closed = |at| Send { window: 0, ..ack(at, 1) };
    let probe = |at| Send { len: 1, ..data(at, 1) };
    let probed = [data(20, 0), closed(30), probe(300), closed(310), probe(900), closed(910)];
    let opened = [&probed[..], &[ack(1000, 1), data(1010, 1), ack(1020, 2)]].concat();
    let half = sent(&after_handshake(&opened));
    assert_eq!((half.keep_alives, half.retransmissions.total(), half.timeouts), (2, 0, 0));
    assert_eq!((half.data_packets, half.unique_bytes, half.acked_bytes), (2, 2000, Some(2000)));
    assert_eq!(flow(&after_handshake(&opened)).tcp.expect("TCP").halves[1].duplicate_acks, 0);

    let taken =
        [Send { ack: 1002, ..ack(920, 1) }, Send { seq: 1002, len: 999, ..data(930, 1) }, ack(940, 2)];
    let half = sent(&after_handshake(&[&probed[..], &taken].concat()));
    assert_eq!((half.keep_alives, half.retransmissions.total(), half.missed_bytes), (2, 0, 0));
    assert_eq!((half.unique_bytes, half.acked_bytes), (2000, Some(2000)));
}

#[test]
fn a_closed_window_is_counted_and_timed() {
    let closed = Send { window: 0, ..ack(30, 1) };
    let sends = after_handshake(&[data(20, 0), closed, Send { at: 90 * MS, ..ack(0, 1) }]);
    let receiver = &flow(&sends).tcp.expect("TCP").halves[1];
    assert_eq!((receiver.zero_windows, receiver.zero_window_time), (1, 60_000_000));
    assert_eq!((receiver.window_min, receiver.window_max), (Some(0), Some(128_000)));
}

#[test]
fn sequence_numbers_wrap() {
    let wrap = |send: Send<'static>| Send { seq: send.seq.wrapping_sub(3000), ..send };
    let wrap_ack = |send: Send<'static>| Send { ack: send.ack.wrapping_sub(3000), ..send };
    let sends: Vec<_> = (0..6)
        .flat_map(|n| [wrap(data(20 + u64::from(n), n)), wrap_ack(ack(30 + u64::from(n), n + 1))])
        .map(|send| {
            if send.client {
                Send { seq: send.seq.wrapping_sub(CLIENT_ISN), ..send }
            } else {
                Send { ack: send.ack.wrapping_sub(CLIENT_ISN), ..send }
            }
        })
        .collect();
    let mut sends = sends;
    sends.sort_by_key(|send| send.at);
    let half = sent(&sends);
    assert_eq!((half.unique_bytes, half.acked_bytes, half.retransmissions.total()), (6000, Some(6000), 0));
}

#[test]
fn a_connection_seen_from_its_middle_counts_from_there() {
    let sends = [data(20, 700), ack(30, 701), data(31, 701), ack(41, 702)];
    let half = sent(&sends);
    assert_eq!((half.unique_bytes, half.acked_bytes, half.missed_bytes), (2000, Some(2000), 0));
    assert_eq!(half.rtt.count(), 2);
}

#[test]
fn an_acknowledgment_of_what_was_not_captured_says_so() {
    let sends = after_handshake(&[data(20, 0), ack(30, 3), data(40, 3), ack(50, 4)]);
    let half = sent(&sends);
    assert_eq!((half.missed_bytes, half.unique_bytes, half.acked_bytes), (2000, 2000, Some(4000)));
}

/// The sender goes on from where it was: it has sent nothing of what the forged acknowledgment covers.
#[test]
fn an_acknowledgment_of_what_was_never_sent_acknowledges_nothing() {
    let forged = ack(32, 900);
    let rest = [data(20, 0), ack(30, 1), forged, data(33, 1), data(34, 2), ack(43, 2), ack(44, 3)];
    let tcp = flow(&after_handshake(&rest)).tcp.expect("TCP");
    let [sender, receiver] = &tcp.halves;
    assert_eq!((sender.unique_bytes, sender.acked_bytes, sender.missed_bytes), (3000, Some(3000), 0));
    assert_eq!((sender.retransmissions.total(), sender.out_of_order, sender.duplicates), (0, 0, 0));
    assert_eq!((sender.rtt.count(), sender.rtt.max()), (4, Some(10_000_000)));
    assert_eq!((receiver.out_of_window, receiver.duplicate_acks), (1, 0));
    // The sender answers with an acknowledgment that shows where it is.
    let answered = [data(20, 0), ack(30, 1), forged, client(33, ACK, 1001, 1, 0), data(400, 1), ack(410, 2)];
    let half = sent(&after_handshake(&answered));
    assert_eq!((half.unique_bytes, half.acked_bytes, half.missed_bytes), (2000, Some(2000), 0));
    assert_eq!(half.retransmissions.total(), 0);
    // Nothing is sent behind it.
    let last = sent(&after_handshake(&[data(20, 0), ack(30, 1), ack(41, 3)]));
    assert_eq!((last.acked_bytes, last.missed_bytes), (Some(3000), 2000));
}

#[test]
fn acknowledgments_alone_are_believed() {
    let sends: Vec<_> = (0..2000).map(|n| ack(20 + u64::from(n), n)).collect();
    let half = sent(&after_handshake(&sends));
    assert_eq!((half.acked_bytes, half.missed_bytes), (Some(1_999_000), 1_999_000));
}

#[test]
fn one_direction_alone_is_analysed_too() {
    let sends: Vec<_> = (0..2000).map(|n| data(20 + u64::from(n), n)).chain([data(3000, 1990)]).collect();
    let half = sent(&sends);
    assert_eq!((half.acked_bytes, half.unique_bytes), (None, 2_000_000));
    assert_eq!(half.retransmissions.total(), 1);
}

#[test]
fn the_same_ports_again_are_another_connection() {
    let close = [client(20, FIN | ACK, 1, 1, 0), server(30, FIN | ACK, 1, 2, 0), client(30, ACK, 2, 2, 0)];
    let again = handshake().into_iter().map(|send| {
        let isn = 777_777;
        let later = Send { at: send.at + 100 * MS, ..send };
        if send.client {
            Send { seq: isn + send.seq, ..later }
        } else {
            Send { ack: isn + send.ack, ..later }
        }
    });
    let sends: Vec<_> = handshake().into_iter().chain(close).chain(again).collect();
    let (flows, ..) = analyse(capture(&sends));
    assert_eq!(flows.iter().map(|flow| flow.end).collect::<Vec<_>>(), [End::Closed, End::Open]);
    assert_eq!(flows[1].first_packet, 7);
}

#[test]
fn a_reset_a_half_close_and_an_open_end_are_distinguished() {
    let end = |rest: &[Send<'static>]| flow(&after_handshake(rest)).end;
    assert_eq!(end(&[server(20, RST | ACK, 1, 1, 0)]), End::Reset);
    assert_eq!(end(&[client(20, FIN | ACK, 1, 1, 0), server(30, ACK, 1, 2, 0)]), End::HalfClosed);
    assert_eq!(end(&[]), End::Open);
}

#[test]
fn a_reset_outside_the_window_ends_nothing() {
    let reset = Send { seq: 1 << 31, ..server(20, RST, 0, 0, 0) };
    let later = [data(30, 0), ack(40, 1), data(20_000, 1), ack(20_010, 2)];
    let flow = flow(&[handshake(), vec![reset], later.to_vec()].concat());
    assert_eq!((flow.end, flow.halves[0].payload_bytes), (End::Open, 2000));
    assert_eq!(flow.tcp.expect("TCP").halves[1].out_of_window, 1);
}

#[test]
fn windows_are_scaled_if_the_syn_ack_alone_was_captured() {
    let windows = |sends: &[Send<'static>]| flow(sends).tcp.expect("TCP").halves.map(|half| half.window_max);
    let all = [handshake(), vec![data(20, 0), ack(30, 1)]].concat();
    assert_eq!(windows(&all), [Some(128_000); 2]);
    // The client's factor is not known then, nor without a SYN whether there is one.
    assert_eq!(windows(&all[1..]), [Some(1000), Some(128_000)]);
    assert_eq!(windows(&all[2..]), [Some(1000); 2]);
    let syn_alone = [all[0], all[2], all[3], all[4]];
    assert_eq!(windows(&syn_alone), [Some(1000); 2]);
}

#[test]
fn a_probe_of_what_is_acknowledged_is_a_probe() {
    // Near the receiver: the acknowledgment passed here and was lost on its way to the sender, 100 ms away.
    let near = |rest: &[Send<'static>]| {
        let begin = [client(0, SYN, 0, 0, 0), server(0, SYN | ACK, 0, 1, 0), client(100, ACK, 1, 1, 0)];
        sent(&[begin.to_vec(), rest.to_vec()].concat()).retransmissions
    };
    let begin = [data(110, 0), ack(110, 1), data(111, 1), ack(111, 2)];
    let probed = near(&[begin.to_vec(), vec![data(330, 1)]].concat());
    assert_eq!(probed, Retransmissions { probe: 1, ..Default::default() });
    // After three duplicate ACKs it is what they asked for, though the gap was filled by the one overtaken.
    let [first, rest @ ..] = [1, 2, 3, 4].map(|n| data(112, n));
    let overtaken = [&begin[..2], &rest, &[ack(112, 1); 4], &[first, ack(113, 5), data(220, 1)]].concat();
    assert_eq!(near(&overtaken).fast, 1);
}

/// Near the receiver, from the middle of a connection: timestamps tell that the sender is 30 ms away.
#[test]
fn without_the_handshake_echoed_timestamps_tell_what_is_too_soon_for_a_retransmission() {
    let stamp = |send: Send<'static>, value, echo| Send { timestamps: Some((value, echo)), ..send };
    let mut begin = Vec::new();
    for n in 0..3 {
        let at = 100 + 30 * n;
        begin.push(stamp(data(at.into(), n), at, at - 30));
        begin.push(stamp(ack(at.into(), n + 1), at, at));
    }
    // Of the same tick of the clock as what has overtaken it, 5 ms late.
    let overtaken =
        [stamp(data(200, 4), 190, 160), stamp(ack(200, 3), 200, 160), stamp(data(205, 3), 190, 160)];
    let half = sent(&[begin.clone(), overtaken.to_vec()].concat());
    assert_eq!((half.out_of_order, half.retransmissions.total()), (1, 0));
    let lost = [stamp(data(200, 4), 190, 160), stamp(ack(200, 3), 200, 160), stamp(data(231, 3), 190, 160)];
    let half = sent(&[begin, lost.to_vec()].concat());
    assert_eq!((half.out_of_order, half.retransmissions.total()), (0, 1));
}

/// Near the receiver, from the middle of a connection: no timestamp has been echoed yet.
#[test]
fn before_the_first_echo_what_was_sent_in_the_same_tick_is_not_retransmitted() {
    let stamp = |send: Send<'static>, value, echo| Send { timestamps: Some((value, echo)), ..send };
    let begin = [stamp(data(100, 0), 90, 60), stamp(ack(100, 1), 100, 90)];
    let overtaken = [stamp(data(101, 2), 91, 60), stamp(ack(101, 1), 101, 90), stamp(data(106, 1), 91, 60)];
    let half = sent(&[begin, [overtaken[0], overtaken[2]]].concat());
    assert_eq!((half.out_of_order, half.retransmissions.total()), (1, 0));
    let half = sent(&[&begin[..], &overtaken].concat());
    assert_eq!((half.out_of_order, half.retransmissions.total()), (1, 0));
    let copied = [stamp(data(101, 1), 91, 60), stamp(data(101, 1), 91, 60), stamp(ack(101, 2), 101, 91)];
    let half = sent(&[&begin[..], &copied].concat());
    assert_eq!((half.duplicates, half.retransmissions.total()), (1, 0));
    let again = [stamp(data(101, 2), 91, 60), stamp(ack(101, 1), 101, 90), stamp(data(131, 1), 121, 60)];
    let half = sent(&[&begin[..], &again].concat());
    assert_eq!((half.out_of_order, half.retransmissions.total()), (0, 1));
}

/// Captures on several queues or interfaces have packets in another order than their times say.
#[test]
fn data_that_the_file_has_behind_its_acknowledgment_is_not_retransmitted() {
    let late = |again| {
        let rest = [data(20, 0), ack(30, 1), ack(41, 3), data(40, 1), data(41, 2), data(again, 2)];
        let half = sent(&after_handshake(&rest));
        (half.retransmissions.total() + half.duplicates, half.unique_bytes, half.missed_bytes)
    };
    assert_eq!(late(41), (1, 3000, 0));
    assert_eq!(late(300), (1, 3000, 0));
    // By its time it came after the acknowledgment: the first was missed, and this one retransmitted.
    let missed = sent(&after_handshake(&[data(20, 0), ack(30, 1), ack(41, 2), data(400, 1)]));
    assert_eq!((missed.retransmissions.total(), missed.unique_bytes, missed.missed_bytes), (1, 1000, 1000));
}

#[test]
fn the_opener_is_who_sent_the_syn_though_the_syn_ack_is_seen_first() {
    let sends = [server(10, SYN | ACK, 0, 1, 0), client(10, ACK, 1, 1, 0), data(20, 0)];
    let flow = flow(&sends);
    assert_eq!(flow.endpoints[0].port, 40_000);
    assert_eq!(flow.halves[Direction::Forward.index()].payload_bytes, 1000);
}

#[test]
fn syns_that_cross_are_answered_and_not_retransmitted() {
    let sends = [
        client(0, SYN, 0, 0, 0),
        server(1, SYN, 0, 0, 0),
        client(1, SYN | ACK, 0, 1, 0),
        server(10, SYN | ACK, 0, 1, 0),
        data(11, 0),
        ack(21, 1),
    ];
    let tcp = flow(&sends).tcp.expect("TCP");
    for half in &tcp.halves {
        assert_eq!((half.retransmissions.total(), half.timeouts, half.duplicates), (0, 0, 0));
    }
    assert_eq!((tcp.handshake_rtt, tcp.halves[0].acked_bytes), (None, Some(1000)));
    let again = [&sends[..4], &[server(1010, SYN | ACK, 0, 1, 0)]].concat();
    assert_eq!(flow(&again).tcp.expect("TCP").halves[1].retransmissions.timeout, 1);
}

#[test]
fn ecn_is_counted_by_direction() {
    let mut sends = vec![client(0, SYN | ECE | CWR, 0, 0, 0), server(10, SYN | ACK | ECE, 0, 1, 0)];
    sends.push(Send { ecn: 2, ..data(20, 0) });
    sends.push(Send { ecn: 3, ..data(21, 1) });
    sends.push(Send { flags: ACK | ECE, ..ack(31, 2) });
    sends.push(Send { flags: ACK | CWR, ecn: 2, ..data(32, 2) });
    let tcp = flow(&sends).tcp.expect("TCP");
    assert!(tcp.ecn_negotiated);
    let [forward, backward] = tcp.halves.map(|half| half.ecn);
    assert_eq!((forward.ect0, forward.ce, forward.cwr, backward.ece), (2, 1, 1, 1));
}

#[test]
fn accurate_ecn_is_negotiated_and_its_counter_is_not_taken_for_flags() {
    let syn = client(0, SYN | AE | CWR | ECE, 0, 0, 0);
    let agreed = |answer: u16| {
        let answer = server(10, SYN | ACK | answer, 0, 1, 0);
        let report = Send { flags: ACK | AE | CWR | ECE, ..ack(30, 1) };
        let tcp = flow(&[syn, answer, client(10, ACK, 1, 1, 0), data(20, 0), report]).tcp.expect("TCP");
        let ecn = tcp.halves[1].ecn;
        (tcp.ecn_negotiated, tcp.accecn_negotiated, ecn.ece + ecn.cwr)
    };
    for accurate in [CWR, CWR | ECE, AE, AE | CWR] {
        assert_eq!(agreed(accurate), (true, true, 0), "{accurate:#x}");
    }
    for classic in [ECE, AE | ECE] {
        assert_eq!(agreed(classic), (true, false, 2), "{classic:#x}");
    }
    for none in [0, AE | CWR | ECE] {
        assert_eq!(agreed(none), (false, false, 2), "{none:#x}");
    }
}

#[test]
fn a_clock_that_goes_back_changes_no_order() {
    let sends = after_handshake(&[data(20, 0), ack(5, 1), data(19, 1), ack(29, 2)]);
    let flow = flow(&sends);
    let half = &flow.tcp.as_ref().expect("TCP").halves[0];
    assert_eq!((half.acked_bytes, half.rtt.min()), (Some(2000), Some(0)));
    assert_eq!(flow.duration(), 29_000_000);
}

#[test]
fn a_sequence_number_no_window_allows_changes_nothing() {
    let stray = client(25, ACK, 0x7000_0000, 1, DATA);
    let half = sent(&after_handshake(&[data(20, 0), stray, ack(30, 1), data(31, 1), ack(41, 2)]));
    assert_eq!((half.out_of_window, half.acked_bytes, half.missed_bytes), (1, Some(2000), 0));
}

#[test]
fn a_partial_repeat_counts_what_was_seen_before_once() {
    let both = client(240, ACK, 1, 1, 2 * DATA);
    let half = sent(&after_handshake(&[data(20, 0), both, ack(250, 2)]));
    assert_eq!((half.unique_bytes, half.retransmitted_bytes, half.retransmissions.total()), (2000, 1000, 1));
}

#[test]
fn causes_have_names_of_their_own() {
    let all = [Cause::Fast, Cause::Timeout, Cause::Probe, Cause::Unknown];
    let names: std::collections::HashSet<_> = all.map(|cause| Kind::Retransmission(cause).name()).into();
    assert_eq!(names.len(), 4);
}
