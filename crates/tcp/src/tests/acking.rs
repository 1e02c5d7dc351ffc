//! The receiver's side: when it acknowledges, what it reports, what window it offers.

use super::script::{Script, ack, data, plain, segment};
use crate::segment::{ACK, FIN, PSH};
use crate::{Config, Notice, Segment};

/// A client that has received much, all of it in order.
fn without_a_gap() -> (Script, u32) {
    let config = Config { receive_buffer: Some(100_000), ..plain() };
    let mut t = Script::client(&config, "reno", 10.0);
    let mut seq = 1;
    for i in 0..400 {
        t.at(20.0 + f64::from(i), data(seq, seq + 1000));
        seq += 1000;
    }
    (t, seq)
}

/// A client that has received so much that neither quick ACKs nor window growth force an ACK, also behind a gap.
fn settled() -> (Script, u32) {
    let (mut t, seq) = without_a_gap();
    t.at(430.0, data(seq + 1000, seq + 2000));
    t.at(431.0, data(seq, seq + 1000));
    t.until(500.0);
    t.sent();
    (t, seq + 2000)
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    let mut t = Script::client(&plain(), "reno", 10.0);
    for i in 0..16 {
        t.at(20.0 + f64::from(i), data(i * 1000 + 1, i * 1000 + 1001));
        assert_eq!(t.sent(), [format!("ack {}", i * 1000 + 1001)]);
    }
}

#[test]
fn data_that_is_sent_meanwhile_does_not_use_up_the_quick_acks() {
    let mut t = Script::client(&plain(), "reno", 10.0);
    t.end.read_at_once(false);
    t.at(20.0, data(1, 101));
    assert_eq!(t.sent(), ["ack 101"]);
    // Later than the estimated time between segments, so that it is not a reply.
    t.until(100.0);
    t.write(10_000);
    assert_eq!(t.sent().len(), 10);
    for i in 1..16 {
        t.at(110.0 + f64::from(i), Segment { ack: 10_001, ..data(i * 100 + 1, i * 100 + 101) });
        assert_eq!(t.sent(), [format!("ack {}", i * 100 + 101)]);
    }
    t.at(130.0, Segment { ack: 10_001, ..data(1601, 1701) });
    assert_eq!(t.sent(), [""; 0], "sixteen are used up");
}

#[test]
fn later_every_second_segment_is() {
    let (mut t, seq) = settled();
    t.at(501.0, data(seq, seq + 1000));
    assert_eq!(t.sent(), [""; 0]);
    t.at(502.0, data(seq + 1000, seq + 2000));
    assert_eq!(t.sent(), [format!("ack {}", seq + 2000)]);
}

/// A full segment is as large as the peer sends now, such as after its path got a smaller MTU.
#[test]
fn every_second_segment_is_acknowledged_after_the_peer_went_over_to_smaller_ones() {
    let each = [1; 8];
    let cases = [
        (400, 0, 400, [1, 0, 1, 0, 1, 0, 1, 0]),
        // The end of what was written is acknowledged when it is read, except where it settles the size.
        (600, PSH, 600, [1, 0, 1, 1, 1, 1, 1, 1]),
        (400, PSH, 1000, each),
        (80, 0, 1000, each),
    ];
    for (size, flags, taken, expected) in cases {
        let (mut t, mut seq) = settled();
        let mut acked = vec![];
        for i in 0..8 {
            t.at(501.0 + f64::from(i), data(seq, seq + size).flagged(flags));
            seq += size;
            acked.push(t.sent().len());
        }
        assert_eq!((t.end.rcv.delack.segment_size(), acked), (taken, expected.to_vec()), "{size} bytes");
    }
    // Sizes that change are the ends of what the peer writes.
    let (mut t, seq) = settled();
    t.at(501.0, data(seq, seq + 600));
    t.at(502.0, data(seq + 600, seq + 1300));
    t.at(503.0, data(seq + 1300, seq + 1900));
    assert_eq!(t.end.rcv.delack.segment_size(), 1000);
}

#[test]
fn a_lone_segment_is_acknowledged_after_40_ms() {
    let (mut t, seq) = settled();
    t.at(501.0, data(seq, seq + 1000));
    t.until(540.9);
    assert_eq!(t.sent(), [""; 0]);
    t.until(541.0);
    assert_eq!(t.sent(), [format!("ack {}", seq + 1000)]);
}

#[test]
fn the_odd_last_segment_of_a_burst_is_acknowledged_when_it_is_read() {
    let (mut t, seq) = settled();
    t.at(501.0, data(seq, seq + 1000));
    t.at(502.0, data(seq + 1000, seq + 2000));
    assert_eq!(t.sent(), [format!("ack {}", seq + 2000)]);
    t.at(503.0, data(seq + 2000, seq + 3000).flagged(PSH));
    assert_eq!(t.sent(), [format!("ack {}", seq + 3000)]);
}

#[test]
fn without_delayed_acks_every_segment_is_acknowledged() {
    let mut t = Script::client(&Config { delayed_ack: false, ..plain() }, "reno", 10.0);
    for i in 0..200 {
        t.at(20.0 + f64::from(i), data(i * 1000 + 1, i * 1000 + 1001));
        assert_eq!(t.sent().len(), 1);
    }
}

#[test]
fn a_gap_is_reported_at_once_and_so_is_its_filling() {
    let (mut t, s) = settled();
    t.at(501.0, data(s + 1000, s + 2000));
    t.at(502.0, data(s + 3000, s + 4000));
    assert_eq!(
        t.sent(),
        [
            format!("ack {s} [{}-{}]", s + 1000, s + 2000),
            format!("ack {s} [{}-{} {}-{}]", s + 3000, s + 4000, s + 1000, s + 2000)
        ]
    );
    t.at(503.0, data(s, s + 1000));
    assert_eq!(t.sent().last(), Some(&format!("ack {} [{}-{}]", s + 2000, s + 3000, s + 4000)));
    t.at(504.0, data(s + 2000, s + 3000));
    assert_eq!(t.sent(), [format!("ack {}", s + 4000)]);
}

#[test]
fn a_duplicate_is_reported_by_dsack() {
    let (mut t, s) = settled();
    t.at(501.0, data(s - 1000, s));
    assert_eq!(t.sent(), [format!("ack {s} [{}-{}]", s - 1000, s)]);
}

#[test]
fn three_blocks_fit_beside_timestamps_and_four_without() {
    for (timestamps, blocks) in [(true, 3), (false, 4)] {
        let mut t = Script::client(&Config { timestamps, ..plain() }, "reno", 10.0);
        let mut last = 0;
        for i in 1..=6 {
            let mut hole = data(i * 2000 + 1, i * 2000 + 988);
            if timestamps {
                hole = hole.stamped(5, 1000);
            }
            t.at(20.0 + f64::from(i) * 20.0, hole);
            t.until(35.0 + f64::from(i) * 20.0);
            last = t.segments().pop().map_or(0, |ack| ack.sack_count);
        }
        assert_eq!(last, blocks, "timestamps: {timestamps}");
    }
}

#[test]
fn acks_of_a_long_train_behind_a_hole_are_compressed_after_the_third() {
    let (mut t, s) = settled();
    for i in 1..=20 {
        t.at(501.0 + f64::from(i) * 0.01, data(s + i * 1000, s + i * 1000 + 1000));
    }
    assert_eq!(t.sent().len(), 3);
    // A twentieth of the RTT of 10 ms from the fourth, and the timer's slack.
    t.until(501.63);
    assert_eq!(t.sent(), [""; 0]);
    t.until(501.65);
    assert_eq!(t.sent(), [format!("ack {s} [{}-{}]", s + 1000, s + 21_000)]);
}

#[test]
fn the_first_gap_of_all_raises_the_window_once_more_which_its_own_ack_reports() {
    let (mut t, s) = without_a_gap();
    t.until(500.0);
    t.sent();
    for i in 1..=20 {
        t.at(501.0 + f64::from(i) * 0.01, data(s + i * 1000, s + i * 1000 + 1000));
    }
    // Measured on Linux 6.18: four at once behind the first gap, three behind others.
    assert_eq!(t.sent().len(), 4);
}

#[test]
fn a_compressed_ack_leaves_with_the_delayed_ack_timer_from_before_the_gap() {
    let (mut t, s) = settled();
    t.at(501.0, data(s, s + 1000));
    assert_eq!(t.sent(), [""; 0]);
    assert!((t.timer() - 40.0).abs() < 0.01, "{}", t.timer());
    t.at(501.5, data(s + 1000, s + 2000));
    assert_eq!(t.sent(), [format!("ack {}", s + 2000)]);
    for i in 3..=6 {
        t.at(540.5, data(s + i * 1000, s + i * 1000 + 1000));
    }
    assert_eq!(t.sent().len(), 3);
    // Compression alone would hold the fourth back until 541.1.
    t.until(540.99);
    assert_eq!(t.sent(), [""; 0]);
    t.until(541.0);
    assert_eq!(t.sent(), [format!("ack {} [{}-{}]", s + 2000, s + 3000, s + 7000)]);
}

#[test]
fn segments_that_wait_share_descriptors_with_neighbours_only() {
    // Each takes 1728 bytes; right behind another 1486 on average.
    for (apart, memory) in [(1000, 1728 + 9 * 1486), (2000, 10 * 1728)] {
        let (mut t, s) = settled();
        for i in 1..=10 {
            t.at(501.0, data(s + i * apart, s + i * apart + 1000));
        }
        assert_eq!(t.end.rcv.memory, memory, "{apart} apart");
    }
}

/// A hole, three segments behind it that are acknowledged at once, and one behind another hole.
fn holding_back() -> (Script, u32) {
    let (mut t, s) = settled();
    for i in 1..=3 {
        t.at(501.0, data(s + i * 1000, s + i * 1000 + 1000));
    }
    assert_eq!(t.sent().len(), 3);
    t.at(501.0, data(s + 5000, s + 6000));
    assert_eq!(t.sent(), [""; 0], "held back");
    (t, s)
}

#[test]
fn the_ack_that_a_third_block_sends_is_the_one_for_its_segment_too() {
    let (mut t, s) = holding_back();
    t.at(501.1, data(s + 7000, s + 8000));
    let first_two = format!("{}-{} {}-{}", s + 5000, s + 6000, s + 1000, s + 4000);
    assert_eq!(t.sent(), [format!("ack {s} [{first_two}]")]);
    t.until(510.0);
    assert_eq!(t.sent(), [""; 0]);
    t.at(510.0, data(s + 8000, s + 9000));
    t.until(511.0);
    assert_eq!(t.sent(), [format!("ack {s} [{}-{} {first_two}]", s + 7000, s + 9000)]);
}

#[test]
fn a_duplicate_held_back_is_not_reported_once_more_data_arrive() {
    for more in [false, true] {
        let (mut t, s) = holding_back();
        t.at(501.1, data(s + 5000, s + 6000));
        if more {
            t.at(501.2, data(s + 6000, s + 7000));
        }
        t.until(502.0);
        let duplicate = if more { String::new() } else { format!("{}-{} ", s + 5000, s + 6000) };
        let end = s + if more { 7000 } else { 6000 };
        let blocks = format!("{}-{end} {}-{}", s + 5000, s + 1000, s + 4000);
        assert_eq!(t.sent(), [format!("ack {s} [{duplicate}{blocks}]")]);
    }
}

#[test]
fn a_request_is_acknowledged_by_its_response() {
    let (mut t, mut s) = settled();
    for i in 0..3 {
        let now = 501.0 + f64::from(i) * 20.0;
        t.at(now, data(s, s + 100).flagged(PSH));
        s += 100;
        let at_once = t.sent();
        t.until(now + 1.0);
        t.write(300);
        let sent = t.segments();
        assert_eq!(sent.len(), 1, "one response");
        t.at(now + 11.0, Segment { seq: s, ..ack(i * 300 + 301) });
        if i > 0 {
            assert_eq!(at_once, [""; 0], "the response carries the ACK");
        }
    }
}

#[test]
fn a_fin_is_acknowledged_after_a_while_and_both_ends_close_in_order() {
    let mut t = Script::client(&plain(), "reno", 10.0);
    t.at(20.0, data(1, 501).flagged(FIN));
    assert_eq!(t.sent(), [""; 0], "the application may close too");
    t.until(59.0);
    assert_eq!(t.sent(), [""; 0]);
    t.until(60.0);
    assert_eq!(t.sent(), ["ack 502"]);
    assert!(t.noticed(Notice::PeerClosed) && !t.noticed(Notice::Closed));
    assert_eq!(t.end.bytes_received(), 500);
    t.write(100);
    t.end.close(t.now);
    assert_eq!(t.sent(), ["1:101 P", "101:101 F"]);
    t.at(70.0, Segment { seq: 502, ..ack(102) });
    assert!(t.noticed(Notice::Closed));
    assert_eq!(t.end.bytes_acked(), 100);
    // Our last ACK may be lost: the peer's FIN is acknowledged again.
    t.at(300.0, Segment { seq: 501, ..segment(ACK | FIN) });
    assert_eq!(t.sent(), ["ack 502"]);
}

#[test]
fn a_fin_in_answer_to_a_fin_carries_its_ack() {
    let mut t = Script::client(&plain(), "reno", 10.0);
    t.at(20.0, data(1, 501).flagged(FIN));
    t.end.close(t.now);
    let sent = t.segments();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].flags & FIN != 0 && sent[0].ack == t.end.rcv.nxt);
}

#[test]
fn ends_that_close_at_the_same_time_acknowledge_at_once() {
    let mut t = Script::client(&plain(), "reno", 10.0);
    t.end.close(t.now);
    assert_eq!(t.sent(), ["1:1 F"]);
    t.at(20.0, segment(ACK | FIN));
    assert_eq!(t.sent(), ["ack 2"]);
    assert!(!t.noticed(Notice::Closed));
    t.at(30.0, Segment { seq: 2, ..ack(2) });
    assert!(t.noticed(Notice::Closed));
}

#[test]
fn the_window_closes_when_nobody_reads_and_opens_when_somebody_does() {
    let config = Config { receive_buffer: Some(20_000), ..plain() };
    let mut t = Script::client(&config, "reno", 10.0);
    t.end.read_at_once(false);
    let mut seq = 1;
    let mut right_edge = 0;
    for i in 0..200 {
        t.at(20.0 + f64::from(i), data(seq, seq + 1000));
        for reply in t.segments() {
            let window = u32::from(reply.window) << t.end.rcv.window.scale();
            let acked = reply.ack.wrapping_sub(0xffff_fc00);
            assert!(acked + window >= right_edge, "the window never shrinks");
            right_edge = acked + window;
            seq = acked;
        }
    }
    assert_eq!(seq, right_edge, "closed");
    assert!(seq > 15_000, "only {seq} bytes were taken");
    t.until(400.0);
    t.sent();
    let now = t.now;
    let had = t.end.read(u64::MAX, now);
    assert_eq!(had, u64::from(seq) - 1);
    let update = t.segments();
    assert_eq!(update.len(), 1, "reading opens the window at once");
    assert!(update[0].window > 0);
}

#[test]
fn the_receive_window_grows_with_what_the_application_reads() {
    let mut t = Script::client(&Config { timestamps: true, ..plain() }, "reno", 100.0);
    let mut window = 0;
    let mut seq = 1;
    // The peer fills the window in every round trip of 100 ms.
    for round in 1..12u32 {
        let start = f64::from(round) * 100.0 + 1.0;
        let count = (window / 988).clamp(10, 3_000);
        for i in 0..count {
            let now = start + f64::from(i) * 0.01;
            let mut part = data(seq, seq + 988).stamped(round, (now - 100.0) as u32 + 1_000);
            part.window = 1_000;
            t.at(now, part);
            seq += 988;
        }
        for reply in t.segments() {
            window = u32::from(reply.window) << t.end.rcv.window.scale();
        }
    }
    // tcp_rmem[2] of 6 MiB, of which 988 in 1728 bytes are payload.
    assert!(window > 2_000_000, "auto-tuned to {window} bytes");
}

#[test]
fn a_fixed_receive_buffer_is_not_tuned() {
    let config = Config { receive_buffer: Some(100_000), ..plain() };
    let mut t = Script::client(&config, "reno", 100.0);
    let mut maximum = 0;
    for i in 0..3_000 {
        t.at(101.0 + f64::from(i) * 0.1, data(i * 1000 + 1, i * 1000 + 1001));
        for reply in t.segments() {
            maximum = maximum.max(u32::from(reply.window) << t.end.rcv.window.scale());
        }
    }
    // Twice the buffer, of which 1000 in 1728 bytes are payload (148/256), less a segment in reserve.
    assert!((114_000..=115_625).contains(&maximum), "{maximum}");
}

#[test]
fn a_buffer_that_nobody_reads_holds_as_much_as_linux_s() {
    let config = Config { receive_buffer: Some(100_000), ..Config::default() };
    let mut t = Script::client(&config, "reno", 10.0);
    t.end.read_at_once(false);
    let (mut now, mut end) = (20, 1);
    while now < 2_000 {
        if t.end.rcv.window.left(t.end.rcv.nxt) >= 1448 {
            t.at(f64::from(now), data(end, end + 1448).stamped(now, 1));
            end += 1448;
        } else {
            t.until(f64::from(now));
        }
        now += 4;
    }
    // Measured on Linux 6.18 behind a TAP device: 146,248.
    assert!((143_000..149_000).contains(&t.end.bytes_received()), "{}", t.end.bytes_received());
}
