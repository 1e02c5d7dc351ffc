//! Bursts, buffers, pacing, Nagle, application limits.

use super::script::{Script, ack, data, pairs, plain};
use crate::timers::Pending;
use crate::{Config, Segment};

#[test]
fn bursts_last_a_millisecond_at_the_pacing_rate_and_fill_at_most_half_the_window() {
    // (RTT in ms, segments of a burst): 200 % of ten segments an RTT are 200 bytes in a millisecond, so the
    // minimum of two segments; on the short path it is half the window.
    for (rtt, burst) in [(100.0, 2), (1.0, 5)] {
        let mut t = Script::client(&plain(), "reno", rtt);
        t.write(u64::MAX);
        let more: Vec<bool> = t.segments().iter().map(|s| s.more).collect();
        let expected: Vec<bool> = (1..=10).map(|i| i % burst != 0).collect();
        assert_eq!(more, expected, "RTT {rtt} ms");
    }
}

#[test]
fn without_segmentation_offload_segments_leave_one_by_one() {
    let mut t = Script::client(&Config { tso: false, ..plain() }, "reno", 100.0);
    t.write(u64::MAX);
    assert!(t.segments().iter().all(|s| !s.more));
}

/// Linux 6.18 beside a path of 10 Mbit/s: where the next ACK is 2 ms away, a window that grows by a segment lets three
/// out (`tcp_tso_should_defer`).
#[test]
fn a_short_burst_waits_only_for_an_ack_that_is_due_within_a_millisecond() {
    for (early, last) in [(2.0, 13), (0.4, 12)] {
        let mut t = Script::client(&plain(), "reno", 100.0);
        t.end.sk.snd_ssthresh = 2;
        t.write(u64::MAX);
        t.sent();
        t.at(200.0 - early, ack(3001));
        assert_eq!(t.sent(), pairs(11, last), "{early} ms before it is due");
    }
}

/// A burst waits while the host has two like it; what leaves makes room (`tcp_small_queue_check`).
#[test]
fn a_burst_waits_for_those_before_it_to_leave_the_host() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.end.behind_queue();
    t.write(u64::MAX);
    assert_eq!(t.sent().len(), 4, "two bursts of two");
    t.end.departed(1000, t.now);
    assert_eq!(t.sent().len(), 2, "less than two bursts are left");
    t.end.departed(1000, t.now);
    assert_eq!(t.sent().len(), 0);
    t.end.departed(4000, t.now);
    assert_eq!(t.sent().len(), 4, "the window of ten segments is full");
}

#[test]
fn a_segment_takes_at_most_half_the_largest_window_the_peer_announced() {
    // (MSS agreed, window, MSS used): small windows are sent whole, and there is a minimum size.
    let cases =
        [(1000, 1500, 750), (1000, 500, 500), (1000, 30, 48), (1000, 2000, 1000), (40_000, 60_000, 30_000)];
    for (mss, window, used) in cases {
        let config = Config { mss, ..plain() };
        let mut t = Script::client_with_window(&config, "reno", 100.0, window);
        assert_eq!(t.end.info(t.now).mss, used, "MSS {mss}, window {window}");
        t.at(110.0, ack(1).windowed(50_000));
        assert_eq!(t.end.info(t.now).mss, mss, "a larger window of 200,000");
        t.at(120.0, Segment { seq: 1, ..ack(1).windowed(1000) });
        assert_eq!(t.end.info(t.now).mss, mss, "the largest counts");
    }
}

/// So does a buffer of the send queue. A burst takes what it lacks from the next one alone.
#[test]
fn a_buffer_holds_at_most_half_the_largest_window_the_peer_announced() {
    let mut t = Script::client_with_window(&plain(), "reno", 1.0, 8000);
    t.write(u64::MAX);
    let two_of_four = [true, true, true, false, true, true, true, false];
    let more = |t: &mut Script| t.segments().iter().map(|s| s.more).collect::<Vec<_>>();
    assert_eq!(more(&mut t), two_of_four);
    t.at(2.0, ack(8001).windowed(2000));
    // The congestion window has room for a burst of nine, which is all of a buffer and of the next (`tcp_grow_skb`).
    assert_eq!(more(&mut t), [true, true, true, true, true, true, true, false]);
}

/// The burst with the tenth is the first that is paced (`tcp_update_skb_after_send`).
#[test]
fn ten_segments_leave_unpaced() {
    for mss in [1000, 333] {
        let config = Config { pacing: true, initial_window: 40, mss, ..plain() };
        let mut t = Script::client(&config, "reno", 100.0);
        t.write(u64::MAX);
        assert_eq!(t.sent().len(), 10, "MSS {mss}");
    }
}

/// The reordering timer waits for ACKs of what has left; a probe or timeout, for an answer to what may be held back.
#[test]
fn pacing_delays_probe_and_timeout_but_not_the_reordering_timer() {
    let mut t = Script::client(&Config { pacing: true, ..plain() }, "reno", 100.0);
    t.write(u64::MAX);
    t.at(200.0, ack(1).sacks(&[(1001, 2001)]));
    // A round trip and a quarter after all ten left, with 2 ms of slack.
    let timer = |t: &Script| (t.end.timers.pending, t.end.timers.xmit.since(t.now).as_us());
    t.at(200.1, ack(1).sacks(&[(1001, 3001)]));
    assert!(t.end.pacing_delay().as_us() > 1_000);
    assert_eq!(timer(&t), (Pending::Reordering, 27_000));
    t.at(200.2, ack(3001));
    let (pending, us) = timer(&t);
    let two_rtts = u64::from(t.end.sk.srtt_us >> 2);
    assert_eq!((pending, us), (Pending::LossProbe, two_rtts + 2_000 + t.end.pacing_delay().as_us()));
}

#[test]
fn nagle_holds_a_small_segment_behind_a_small_one() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(300);
    t.write(300);
    t.write(300);
    assert_eq!(t.sent(), ["1:301 P"]);
    t.at(200.0, ack(301));
    assert_eq!(t.sent(), ["301:901 P"]);
    let mut t = Script::client(&Config { nagle: false, ..plain() }, "reno", 100.0);
    t.write(300);
    t.write(300);
    assert_eq!(t.sent(), ["1:301 P", "301:601 P"]);
}

#[test]
fn a_burst_ends_with_psh_and_a_lone_segment_in_the_middle_has_none() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(u64::MAX);
    assert_eq!(t.sent(), pairs(1, 10));
    // A window of ten, nine of them out: no room for two.
    t.at(120.0, ack(1).sacks(&[(1001, 2001)]));
    assert_eq!(t.sent(), ["10001:11001"]);
    t.until(299.0);
    t.sent();
    // Retransmitted, the end of a burst is a lone segment.
    t.at(300.0, ack(3001).sacks(&[(4001, 10_001)]));
    assert_eq!(t.sent()[0], "3001:4001");
}

#[test]
fn without_bursts_each_segment_has_a_buffer_of_its_own() {
    let held = |tso| {
        let config = Config { send_buffer: Some(20_000), tso, pacing: true, ..plain() };
        let mut t = Script::client(&config, "reno", 100.0);
        t.write(u64::MAX);
        t.end.snd.write_seq.wrapping_sub(t.end.sk.snd_una) as u64
    };
    // Twice 20 kB; a segment of 1000 bytes takes 1896.
    assert_eq!(held(false), 22_000);
    assert_eq!(held(true), 40_000);
}

/// Linux frees a buffer once all of it is acknowledged. Its headers take room until then.
#[test]
fn what_an_ack_leaves_of_a_buffer_takes_room() {
    let mut t = Script::client(&Config { send_buffer: Some(100_000), ..plain() }, "reno", 100.0);
    t.write(6_000);
    let memory = |t: &Script| t.end.send_memory();
    assert_eq!((t.sent().len(), memory(&t)), (6, 6_000 + 3 * 896));
    t.at(200.0, ack(1_001));
    assert_eq!(memory(&t), 5_000 + 3 * 896);
    t.at(200.1, ack(2_001));
    assert_eq!(memory(&t), 4_000 + 2 * 896);
}

/// Linux keeps SACKed neighbours in one buffer. So a writer that waits for room goes on before the acknowledgment does.
#[test]
fn sacked_segments_leave_room_in_the_send_buffer() {
    // Room for ten segments of 1896 bytes; one that waits is woken when a third of it is free.
    let config = Config { send_buffer: Some(9_480), tso: false, ..plain() };
    let mut t = Script::client(&config, "reno", 100.0);
    t.write(u64::MAX);
    assert_eq!(t.sent().len(), 10);
    // Not next to each other: nothing is merged.
    t.at(200.0, ack(1).sacks(&[(9001, 10_001), (7001, 8001), (5001, 6001)]));
    assert_eq!(t.sent(), ["1:1001", "1001:2001", "2001:3001"], "retransmitted");
    // Nine in one buffer.
    t.at(201.0, ack(1).sacks(&[(1001, 10_001)]));
    assert_eq!(t.sent()[0], "10001:11001");
}

/// Linux's `tcp_send_fin` queues it as any segment, with which the sender is busy (`tcp_add_write_queue_tail`).
#[test]
fn a_sender_is_busy_until_its_fin_is_acknowledged() {
    let mut t = Script::client(&plain(), "reno", 50.0);
    t.write(1000);
    t.at(100.0, ack(1001));
    assert_eq!(t.end.info(t.now).busy_time.as_us(), 50_000);
    t.until(200.0);
    t.end.close(t.now);
    assert_eq!(t.sent().len(), 1 + 1, "data and FIN");
    t.at(250.0, ack(1002));
    assert_eq!(t.end.info(t.now).busy_time.as_us(), 100_000);
    t.until(400.0);
    assert_eq!(t.end.info(t.now).busy_time.as_us(), 100_000);
}

/// Linux's `forced_push`: a full buffer is sent two segments at a time and takes as much again, until more than half of the
/// largest window was written since the last push.
#[test]
fn a_writer_pushes_all_once_it_wrote_more_than_half_the_largest_window() {
    let mut t = Script::client(&Config { send_buffer: Some(4_000), ..plain() }, "reno", 100.0);
    t.write(u64::MAX);
    // The largest window is that of the SYN-ACK: 60,000 bytes.
    let mut round = |ms: f64, acked: u32| {
        t.at(ms, ack(1 + 1_000 * acked).windowed(15_000));
        t.sent().len()
    };
    let sent = [round(200.0, 10), round(300.0, 30), round(400.0, 40)];
    // The congestion window would let 40 of the third go.
    assert_eq!(sent, [10 + 20, 10, 32]);
}

/// Linux marks the buffer that it pushed (`tcp_mark_push`), so that its end has PSH if it leaves alone, too.
#[test]
fn a_lone_segment_has_psh_at_the_end_of_a_buffer_that_was_pushed() {
    // Buffers of four segments, half of the largest window. Each second one is pushed, and one ends at 20001.
    let mut t = Script::client_with_window(&plain(), "reno", 100.0, 8000);
    t.end.sk.snd_ssthresh = 2;
    t.write(100_000);
    t.sent();
    // A larger window changes nothing of them.
    t.at(200.0, ack(8001));
    assert_eq!(t.sent().last().map(String::as_str), Some("17001:18001 P"));
    t.at(201.0, ack(9001));
    assert_eq!(t.sent(), ["18001:19001"]);
    t.at(202.0, ack(10_001));
    assert_eq!(t.sent(), ["19001:20001 P"]);
    // So it has when it is retransmitted.
    t.at(302.0, ack(19_001));
    t.sent();
    t.at(303.0, ack(19_001).sacks(&[(20_001, 23_001)]));
    assert_eq!(t.sent()[0], "19001:20001 P");
}

#[test]
fn a_fixed_send_buffer_bounds_what_is_out() {
    for pacing in [true, false] {
        let config = Config { send_buffer: Some(10_000), pacing, ..plain() };
        let mut t = Script::client(&config, "reno", 100.0);
        t.write(u64::MAX);
        let mut maximum = 0;
        for round in 1..12u32 {
            t.until(90.0 + f64::from(round) * 100.0);
            t.sent();
            let out = t.end.info(t.now).inflight * 1000;
            maximum = maximum.max(out);
            let next = t.end.info(t.now).bytes_acked as u32 + 1 + out;
            t.at(100.0 + f64::from(round) * 100.0, ack(next.min(t.end.snd.write_seq)));
        }
        let info = t.end.info(t.now);
        assert!(info.sndbuf_limited <= info.busy_time);
        if pacing {
            assert!(maximum <= 2 * 10_000 + 64_000, "{maximum}");
            assert!(info.sndbuf_limited.as_us() > 0, "{info:?}");
        } else {
            // A full buffer is sent at once, so the last one has room again and is not asked for.
            assert!(maximum > 2 * 10_000 + 64_000 && maximum <= 2 * 131_072, "{maximum}");
        }
    }
}

#[test]
fn an_unpaced_control_sends_at_once_and_a_paced_one_spread_out() {
    for (pacing, timer) in [(false, false), (true, true)] {
        let mut t = Script::client(&Config { pacing, ..plain() }, "reno", 100.0);
        t.write(u64::MAX);
        assert_eq!(t.sent().len(), 10, "the first window is not paced");
        t.at(200.0, ack(10_001));
        let at_once = t.sent().len();
        assert_eq!(at_once < 20, timer, "{at_once}");
        t.until(299.0);
        assert_eq!(at_once + t.sent().len(), 20);
    }
}

#[test]
fn a_control_sees_when_pacing_lets_the_next_burst_go() {
    let mut t = Script::client(&plain(), "bbr1", 100.0);
    t.write(u64::MAX);
    assert_eq!(t.end.sk.tcp_clock_cache / 1000, t.end.sk.tcp_mstamp, "one clock in two units");
    t.at(200.0, ack(5001));
    let wait_ns = |t: &Script| t.end.sk.tcp_wstamp_ns - t.end.sk.tcp_clock_cache;
    let first = wait_ns(&t);
    assert!(first > 1_000_000, "{first}");
    assert_eq!((t.timer() * 1e6).round() as u64, first);
    t.at(200.5, ack(6001));
    assert_eq!(wait_ns(&t), first - 500_000);
}

#[test]
fn the_pacing_rate_is_twice_the_rate_in_slow_start() {
    let mut t = Script::client(&Config { pacing: true, ..plain() }, "reno", 100.0);
    t.write(u64::MAX);
    t.at(200.0, ack(10_001));
    // 200 % of 20 segments of 1000 bytes in 100 ms.
    assert_eq!(t.end.info(t.now).pacing_rate, Some(2 * 20 * 8000 * 10));
}

#[test]
fn a_sample_of_a_short_burst_is_application_limited() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(2000);
    t.at(200.0, ack(2001));
    let info = t.end.info(t.now);
    assert!(info.app_limited);
    // Two segments in 100 ms.
    assert_eq!(info.delivery_rate, Some(2 * 8000 * 10));
    t.write(u64::MAX);
    t.sent();
    let mut next = 2001;
    for round in 0..5 {
        let out = t.end.info(t.now).inflight;
        next += out * 1000;
        t.at(300.0 + f64::from(round) * 100.0, ack(next));
        t.sent();
    }
    assert!(!t.end.info(t.now).app_limited);
}

#[test]
fn a_fin_without_any_data_before_it_is_not_limited_by_the_application() {
    // As measured on Linux 6.18 at the end that opened the connection.
    let mut t = Script::client(&plain(), "reno", 100.0);
    let now = t.now;
    t.end.close(now);
    t.at(200.0, ack(2));
    let info = t.end.info(t.now);
    assert!(info.delivery_rate.is_some() && !info.app_limited);
}

#[test]
fn an_idle_connection_starts_again_from_a_smaller_window() {
    for (restart, expected) in [(true, 10), (false, 40)] {
        let config = Config { slow_start_after_idle: restart, ..plain() };
        let mut t = Script::client(&config, "reno", 100.0);
        t.write(30_000);
        t.at(200.0, ack(10_001));
        t.at(300.0, ack(30_001));
        assert_eq!(t.cwnd(), 40);
        t.until(60_000.0);
        t.sent();
        t.write(u64::MAX);
        assert_eq!((t.cwnd(), t.sent().len()), (expected, expected as usize));
    }
}

#[test]
fn an_application_that_does_not_use_its_window_does_not_grow_it() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    let mut next = 1;
    for round in 0..20 {
        t.write(2000);
        next += 2000;
        t.at(200.0 + f64::from(round) * 100.0, ack(next));
    }
    assert_eq!(t.cwnd(), 10);
}

#[test]
fn merged_segments_are_acknowledged_once() {
    let mut t = Script::client(&Config { gro: true, ..plain() }, "reno", 10.0);
    for i in 0..8u32 {
        let mut part = data(i * 1000 + 1, i * 1000 + 1001);
        part.more = i < 7;
        t.at(20.0 + f64::from(i) * 0.012, part);
    }
    t.until(21.0);
    assert_eq!(t.sent(), ["ack 8001"]);
}

#[test]
fn a_transfer_crosses_the_wrap_of_sequence_numbers() {
    // The script's sequence numbers wrap after 4096 bytes of ours.
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(10_000);
    assert_eq!(t.sent(), pairs(1, 10));
    t.at(200.0, ack(3001).sacks(&[(4001, 6001)]));
    t.at(201.0, ack(10_001));
    assert_eq!(t.end.bytes_acked(), 10_000);
}

#[test]
fn each_write_that_finds_all_sent_and_the_window_open_is_application_limited() {
    // The buffer takes more in a round trip than one write of 128 KiB, so that each has one.
    for (cwnd, limited) in [(10, false), (1_000, true)] {
        let config = Config { send_buffer: Some(80_000), ..plain() };
        let mut t = Script::client(&config, "reno", 100.0);
        t.write(u64::MAX);
        t.end.sk.snd_ssthresh = 2;
        // The first write found the connection idle; what it sent is delivered with the first ACK.
        assert_ne!(t.end.sk.app_limited, 0);
        for round in 2..8u32 {
            t.end.sk.snd_cwnd = cwnd;
            let sent = t.end.info(t.now).bytes_sent as u32;
            t.at(f64::from(round) * 100.0, ack(sent + 1));
            t.sent();
            assert_eq!(t.end.sk.app_limited != 0, limited && round > 2, "window {cwnd}, round {round}");
        }
    }
}
