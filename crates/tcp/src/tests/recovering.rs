//! The sender's side: loss detection, recovery, undo, timeouts.

use super::script::{OURS, Script, ack, data, pairs, plain, segment};
use crate::segment::{ACK, FIN, RST};
use crate::{Config, Notice, Segment};
use tcplab_control::CaState;

/// A client with ten segments out, sent at 100 ms over a path of 100 ms.
fn ten_out(config: &Config, control: &str) -> Script {
    let mut t = Script::client(config, control, 100.0);
    t.write(u64::MAX);
    assert_eq!(t.sent().len(), 10);
    t
}

fn state(t: &Script) -> CaState {
    t.end.info(t.now).ca_state
}

#[test]
fn slow_start_doubles_the_window() {
    let mut t = ten_out(&plain(), "reno");
    for i in 1..=5 {
        t.at(200.0, ack(i * 2000 + 1));
    }
    assert_eq!(t.cwnd(), 20);
    assert_eq!(t.sent(), pairs(11, 30));
}

#[test]
fn three_sacked_segments_mean_loss_while_no_reordering_was_seen() {
    let mut t = ten_out(&plain(), "reno");
    t.at(200.0, ack(1).sacks(&[(1001, 2001)]));
    assert_eq!((t.sent(), state(&t)), (vec!["10001:11001".into()], CaState::Disorder));
    t.at(200.1, ack(1).sacks(&[(1001, 3001)]));
    t.sent();
    assert_eq!(t.end.info(t.now).lost, 0);
    t.at(200.2, ack(1).sacks(&[(1001, 4001)]));
    assert_eq!(t.sent(), ["1:1001"], "the fast retransmission");
    assert_eq!(state(&t), CaState::Recovery);
    let info = t.end.info(t.now);
    assert_eq!((info.ssthresh, info.lost, info.retrans), (Some(5), 1, 1), "lost until it is acknowledged");
}

#[test]
fn fewer_wait_for_a_quarter_of_the_minimum_rtt() {
    let mut t = ten_out(&plain(), "reno");
    t.at(200.0, ack(1).sacks(&[(1001, 2001)]));
    t.sent();
    // RTT 100 ms + reordering window 25 ms after sending at 100 ms, + 2 ms slack of Linux's timer.
    assert!((t.timer() - 27.0).abs() < 0.01, "{}", t.timer());
    t.until(226.0);
    assert_eq!(t.sent(), [""; 0]);
    t.until(227.0);
    assert_eq!(t.sent(), ["1:1001"]);
    assert_eq!(state(&t), CaState::Recovery);
}

#[test]
fn once_reordering_was_seen_duplicates_no_longer_count() {
    let mut t = ten_out(&plain(), "reno");
    t.at(200.0, ack(1).sacks(&[(1001, 3001)]));
    // The first segment comes late: the network reorders.
    t.at(201.0, ack(3001));
    assert_eq!(state(&t), CaState::Open);
    t.sent();
    t.at(202.0, ack(3001).sacks(&[(4001, 8001)]));
    t.sent();
    assert_eq!(t.end.info(t.now).lost, 0);
    t.until(260.0);
    assert_eq!(t.sent(), ["3001:4001"], "after the reordering window");
}

/// The segment that the reordering timer retransmits is not the first one here, whose timeout must not start anew.
#[test]
fn the_timeout_after_the_reordering_timer_counts_from_the_first_segment() {
    let mut t = ten_out(&plain(), "reno");
    t.at(200.0, ack(1).sacks(&[(1001, 3001)]));
    t.at(201.0, ack(3001));
    t.at(202.0, ack(3001).sacks(&[(4001, 8001)]));
    t.until(239.0);
    t.sent();
    let first = t.end.snd.board.first().map(|sent| (sent.seq, sent.sent_us, sent.retransmitted()));
    let Some((_, sent_us, true)) = first else { panic!("{first:?}") };
    t.at(240.0, ack(3001).sacks(&[(9001, 10_001), (4001, 8001)]));
    t.sent();
    t.until(275.0);
    assert_eq!(t.sent(), ["8001:9001"], "by the reordering timer");
    // The endpoint's clock is a second ahead of the script's.
    assert_eq!(t.end.timers.xmit.as_us() + 1_000_000, sent_us + t.rto().as_us());
}

#[test]
fn proportional_rate_reduction_halves_the_window_over_a_round_trip() {
    let mut t = ten_out(&plain(), "reno");
    for i in 1..=10 {
        t.at(200.0, ack(i * 1000 + 1));
    }
    assert_eq!((t.sent().len(), t.cwnd()), (20, 20));
    // The first of these 20 is lost; the others are SACKed one by one.
    let mut sent = vec![];
    for i in 2..=20 {
        t.at(300.0 + f64::from(i) * 1.5, ack(10_001).sacks(&[(11_001, 10_001 + i * 1000)]));
        sent.push(t.sent().len());
    }
    // Limited transmit for the two SACKs that are not loss yet, then the retransmission, then one segment
    // for every two delivered.
    assert_eq!(sent[..3], [1, 1, 1]);
    let total: usize = sent.iter().sum();
    assert_eq!(total, 2 + 8, "one for every two delivered in recovery: {sent:?}");
    assert_eq!(t.end.info(t.now).inflight, 10, "the pipe holds the threshold");
    assert!(sent[3..].iter().all(|n| *n <= 1), "no bursts: {sent:?}");
    t.at(400.0, ack(31_001));
    assert_eq!((t.cwnd(), state(&t)), (10, CaState::Recovery), "held until all that was out is acknowledged");
}

#[test]
fn a_lost_retransmission_is_retransmitted() {
    let mut t = ten_out(&plain(), "reno");
    t.at(200.0, ack(1).sacks(&[(1001, 4001)]));
    assert!(t.sent().contains(&"1:1001".into()));
    t.at(200.1, ack(1).sacks(&[(1001, 10_001)]));
    let new = t.sent();
    assert!(!new.is_empty() && !new.contains(&"1:1001".into()));
    // Data sent after the retransmission arrive, the retransmission does not.
    t.at(300.2, ack(1).sacks(&[(1001, 11_001)]));
    t.until(330.0);
    assert_eq!(t.sent().iter().filter(|s| *s == "1:1001").count(), 1);
    assert_eq!(t.end.info(t.now).rtos, 0);
}

#[test]
fn a_retransmission_is_not_older_than_data_that_left_before_it_in_the_same_microsecond() {
    let mut t = ten_out(&plain(), "reno");
    // Three ACKs at one instant: limited transmit first, then the retransmission.
    t.at(200.0, ack(1).sacks(&[(1001, 2001)]));
    t.at(200.0, ack(1).sacks(&[(1001, 3001)]));
    t.at(200.0, ack(1).sacks(&[(1001, 4001)]));
    assert_eq!(t.sent(), ["10001:11001", "1:1001"]);
    // They arrive in that order, and so do their ACKs.
    t.at(300.0, ack(1).sacks(&[(1001, 11_001)]));
    t.at(300.0, ack(11_001));
    assert!(!t.sent().contains(&"1:1001".into()));
    let info = t.end.info(t.now);
    assert_eq!((info.retransmits, info.losses_detected), (1, 1));
}

/// So it, not the new data above it, makes the rate sample of an ACK that delivers both.
#[test]
fn a_retransmission_is_the_latest_sent_for_the_rate_sample_too() {
    let mut t = ten_out(&plain(), "reno");
    t.at(200.0, ack(1).sacks(&[(1001, 2001)]));
    t.at(200.0, ack(1).sacks(&[(1001, 4001)]));
    assert_eq!(t.sent(), ["10001:11001", "1:1001"]);
    // Delivered when they left: two (the SYN counts) and four.
    t.at(300.0, ack(11_001));
    assert_eq!((t.end.sk.delivered, t.end.snd.latest_rate.delivered()), (12, 8));
}

#[test]
fn without_sack_three_duplicates_start_newreno_and_a_partial_ack_goes_on() {
    let mut t = ten_out(&Config { sack: false, ..plain() }, "reno");
    // The first one only scales the window.
    for _ in 0..4 {
        t.at(200.0, ack(1));
    }
    assert!(t.sent().contains(&"1:1001".into()));
    assert_eq!(state(&t), CaState::Recovery);
    // Segment 5 is lost too, so the other five give duplicates as well.
    for _ in 0..5 {
        t.at(201.0, ack(1));
    }
    t.sent();
    t.at(300.0, ack(4001));
    assert!(t.sent().contains(&"4001:5001".into()), "the next hole");
    assert_eq!(state(&t), CaState::Recovery);
}

/// Without SACK the state is held at `high_seq`, and Linux forgets there when it first retransmitted. The next ACK
/// then must not read as if nothing had been retransmitted.
#[test]
fn without_sack_a_recovery_that_repaired_a_loss_is_not_undone() {
    let mut t = ten_out(&Config { sack: false, ..plain() }, "reno");
    for _ in 0..4 {
        t.at(200.0, ack(1));
    }
    assert_eq!(t.sent(), ["10001:11001", "1:1001"]);
    t.at(300.0, ack(11_001));
    assert_eq!(state(&t), CaState::Recovery, "held at the last segment of the recovery");
    t.at(400.0, ack(12_001));
    assert!(!t.noticed(Notice::Undo));
    assert_eq!((t.end.info(t.now).ssthresh, t.cwnd(), state(&t)), (Some(5), 5, CaState::Open));
}

#[test]
fn without_sack_but_with_timestamps_a_real_loss_is_not_undone_and_a_late_original_is() {
    for late in [false, true] {
        let mut t = ten_out(&Config { sack: false, timestamps: true, mss: 1012, ..plain() }, "reno");
        // The clock of timestamps starts at 1000 ms.
        for _ in 0..4 {
            t.at(200.0, ack(1).stamped(2, 1100));
        }
        assert_eq!(state(&t), CaState::Recovery);
        t.at(300.0, ack(11_001).stamped(3, if late { 1100 } else { 1200 }));
        t.at(400.0, ack(12_001).stamped(4, 1300));
        assert_eq!(t.noticed(Notice::Undo), late);
        assert_eq!((t.end.info(t.now).ssthresh, state(&t)), ((!late).then_some(5), CaState::Open));
    }
}

#[test]
fn without_sack_a_real_timeout_is_not_undone() {
    let mut t = Script::client(&Config { sack: false, ..plain() }, "reno", 100.0);
    t.write(2000);
    t.until(401.0);
    assert_eq!(state(&t), CaState::Loss);
    t.at(501.0, ack(2001));
    assert_eq!(state(&t), CaState::Loss, "held at the last segment sent before the timeout");
    t.write(1000);
    t.at(601.0, ack(3001));
    assert!(!t.noticed(Notice::Undo));
    assert_eq!((t.end.info(t.now).ssthresh, state(&t)), (Some(5), CaState::Open));
}

#[test]
fn a_tail_loss_probe_goes_out_after_two_rtts() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(3000);
    assert_eq!(t.sent(), ["1:1001", "1001:2001 P", "2001:3001 P"]);
    // 2 * srtt + 2 ms.
    assert!((t.timer() - 202.0).abs() < 0.01, "{}", t.timer());
    t.until(302.0);
    // Still pushed, so that its ACK is not delayed.
    assert_eq!(t.sent(), ["2001:3001 P"]);
    assert!(t.noticed(Notice::TailLossProbe));
    // No duplicate is reported before something later is acknowledged: the probe repaired a loss, and the
    // window is reduced as for any other.
    t.at(402.0, ack(3001));
    t.write(1000);
    assert_eq!(t.end.info(t.now).ssthresh, None);
    t.at(502.0, ack(4001));
    assert_eq!(t.end.info(t.now).ssthresh, Some(5));
    assert_eq!(t.cwnd(), 5);
}

#[test]
fn a_probe_that_was_not_needed_costs_nothing() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(3000);
    t.until(302.0);
    t.sent();
    t.at(310.0, ack(3001));
    t.at(402.0, ack(3001).sacks(&[(2001, 3001)]));
    assert_eq!((t.end.info(t.now).ssthresh, state(&t)), (None, CaState::Open));
}

#[test]
fn a_lone_segment_gives_the_delayed_ack_time_before_a_probe() {
    let mut t = Script::client(&plain(), "reno", 50.0);
    t.write(500);
    t.sent();
    // 2 * srtt + 200 ms, but the timeout of 250 ms is earlier.
    assert!((t.timer() - 250.0).abs() < 0.01, "{}", t.timer());
}

#[test]
fn the_probe_is_new_data_when_there_is_some() {
    let mut t = ten_out(&plain(), "reno");
    t.until(303.0);
    assert_eq!(t.sent(), ["10001:11001"]);
}

#[test]
fn timeouts_back_off_and_the_window_falls_to_one() {
    let mut t = Script::client(&Config { sack: false, ..plain() }, "reno", 100.0);
    t.write(2000);
    t.sent();
    let mut waits = vec![];
    for _ in 0..6 {
        waits.push((t.timer() / 100.0).round() as u32);
        let due = t.end.poll_timeout().as_ns() as f64 / 1e6;
        t.until(due);
        assert_eq!(t.sent(), ["1:1001"]);
    }
    assert_eq!(waits, [3, 6, 12, 24, 48, 96], "in tenths of a second");
    assert_eq!((t.cwnd(), state(&t)), (1, CaState::Loss));
    assert_eq!(t.end.info(t.now).rtos, 6);
    // A retransmission gives no RTT sample, so the back-off stays (Karn).
    t.at(t.now.as_ns() as f64 / 1e6 + 100.0, ack(1001));
    assert_eq!(t.sent(), ["1001:2001 P"]);
    assert!(t.rto().as_us() >= 19_000_000);
}

#[test]
fn a_dead_peer_is_given_up_after_fifteen_minutes() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(2000);
    t.until(900_000.0);
    assert!(!t.noticed(Notice::Aborted));
    t.until(1_100_000.0);
    assert!(t.noticed(Notice::Aborted));
    assert_eq!(t.end.poll_timeout(), tcplab_units::Time::NEVER);
}

#[test]
fn duplicates_of_every_retransmission_undo_the_reduction() {
    let mut t = ten_out(&plain(), "reno");
    t.at(200.0, ack(1).sacks(&[(1001, 4001)]));
    t.sent();
    assert!(t.cwnd() < 10);
    // The original was only late: it is acknowledged, then the retransmission is reported as duplicate.
    t.at(205.0, ack(4001));
    t.at(300.0, ack(4001).sacks(&[(1, 1001)]));
    assert!(t.noticed(Notice::Undo));
    assert_eq!((t.cwnd() >= 10, state(&t)), (true, CaState::Open));
    assert_eq!(t.end.info(t.now).ssthresh, None);
}

#[test]
fn the_duplicate_of_a_probe_does_not_stand_for_the_retransmission_after_it() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(2000);
    t.until(700.0);
    // The first of two segments is lost. The second is the probe, then a timeout retransmits the first.
    assert_eq!(t.sent(), ["1:1001", "1001:2001 P", "1001:2001 P", "1:1001"]);
    // Both copies of the second arrived.
    t.at(701.0, ack(1).sacks(&[(1001, 2001), (1001, 2001)]));
    t.at(702.0, ack(2001));
    assert!(!t.noticed(Notice::Undo));
    assert_eq!(t.end.info(t.now).ssthresh, Some(5));
}

#[test]
fn an_echo_older_than_the_retransmission_undoes_it() {
    let config = Config { timestamps: true, mss: 1012, ..plain() };
    let mut t = Script::client(&config, "reno", 100.0);
    t.write(u64::MAX);
    let sent_at = t.segments()[0].ts_val;
    t.at(200.0, ack(1).sacks(&[(1001, 4001)]).stamped(2, sent_at));
    assert_eq!(state(&t), CaState::Recovery);
    t.at(205.0, ack(10_001).stamped(3, sent_at));
    assert!(t.noticed(Notice::Undo));
    assert_eq!((t.end.info(t.now).ssthresh, state(&t)), (None, CaState::Open));
}

#[test]
fn a_spurious_timeout_is_found_out_by_never_retransmitted_data() {
    let mut t = ten_out(&plain(), "reno");
    let before = t.cwnd();
    t.until(800.0);
    assert_eq!(state(&t), CaState::Loss);
    t.sent();
    // F-RTO: the first ACK after the timeout covers the retransmission, the next one originals.
    t.at(810.0, ack(1001));
    t.at(811.0, ack(3001));
    assert!(t.noticed(Notice::Undo));
    assert_eq!(state(&t), CaState::Open);
    assert!(t.cwnd() >= before, "{}", t.cwnd());
}

#[test]
fn after_a_real_timeout_the_rest_is_retransmitted_in_slow_start() {
    let mut t = ten_out(&Config { sack: false, ..plain() }, "reno");
    t.until(401.0);
    assert_eq!(t.sent(), ["1:1001"]);
    t.at(501.0, ack(1001));
    // F-RTO tries new data first.
    assert_eq!(t.sent(), ["10001:11001", "11001:12001"]);
    t.at(601.0, ack(1001));
    assert_eq!(t.sent()[0], "1001:2001");
}

#[test]
fn nagle_does_not_hold_back_what_f_rto_sends() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(500);
    t.write(500);
    t.until(450.0);
    assert_eq!(t.sent(), ["1:501 P", "501:1001 P"], "the second as a probe");
    t.write(500);
    t.until(750.0);
    assert_eq!((state(&t), t.sent()), (CaState::Loss, vec!["1:501 P".to_owned()]));
    t.at(760.0, ack(501));
    assert_eq!(t.sent(), ["1001:1501 P"]);
}

#[test]
fn a_zero_window_is_probed_with_back_off() {
    let mut t = ten_out(&plain(), "reno");
    t.at(200.0, ack(10_001).windowed(0));
    assert_eq!(t.sent(), [""; 0]);
    let mut waits = vec![];
    for i in 0..4 {
        waits.push((t.timer() / 100.0).round() as u32);
        let due = t.end.poll_timeout().as_ns() as f64 / 1e6;
        t.until(due);
        assert_eq!(t.segments().len(), 1);
        if i < 3 {
            t.at(due + 1.0, ack(10_001).windowed(0));
        }
    }
    assert_eq!(waits, [3, 6, 12, 24]);
    assert!(t.end.info(t.now).rwnd_limited.as_us() > 3_000_000);
    let now = t.now.as_ns() as f64 / 1e6;
    t.at(now + 1.0, ack(10_001).windowed(1000));
    assert_eq!(t.sent()[..4], pairs(11, 14));
}

#[test]
fn a_receiver_that_reneges_is_survived() {
    let mut t = ten_out(&plain(), "reno");
    t.at(200.0, ack(1).sacks(&[(1001, 10_001)]));
    t.sent();
    t.at(301.0, ack(1001));
    // The first unacknowledged segment had been SACKed: it is retransmitted soon.
    t.until(360.0);
    assert!(t.sent().contains(&"1001:2001".into()));
}

#[test]
fn a_reset_ends_the_connection() {
    let mut t = ten_out(&plain(), "reno");
    t.at(110.0, segment(RST));
    assert!(t.noticed(Notice::Aborted));
    t.at(120.0, data(1, 11));
    assert_eq!(t.sent(), ["reset 1"]);
    // One that does not fit exactly is only answered (RFC 5961).
    let mut t = ten_out(&plain(), "reno");
    t.at(110.0, Segment { seq: 500, ..segment(RST) });
    assert_eq!(t.sent(), ["ack 1"]);
}

#[test]
fn a_reset_behind_the_last_held_data_or_before_the_fin_is_exact() {
    // RFC 5961 knows RCV.NXT only. The sender of the reset has sent more where something was lost.
    for (seq, ends) in [(5001, true), (5000, false), (3001, false)] {
        let mut t = ten_out(&plain(), "reno");
        t.at(101.0, data(4001, 5001));
        t.at(102.0, data(2001, 3001));
        t.at(110.0, Segment { seq, ..segment(RST) });
        assert_eq!(t.noticed(Notice::Aborted), ends, "at {seq}");
    }
    // It may not count its FIN, which we have received.
    for fin in [true, false] {
        let mut t = ten_out(&plain(), "reno");
        let last = data(1, 1001);
        t.at(101.0, if fin { last.flagged(FIN) } else { last });
        t.at(110.0, Segment { seq: if fin { 1001 } else { 1000 }, ..segment(RST) });
        assert_eq!(t.noticed(Notice::Aborted), fin, "FIN: {fin}");
    }
}

#[test]
fn without_sack_a_fin_is_not_a_duplicate() {
    let mut t = ten_out(&Config { sack: false, ..plain() }, "reno");
    // The first ACK after the handshake, and after the FIN, updates the window.
    for i in 0..3 {
        t.at(200.0 + f64::from(i) * 0.1, ack(1));
    }
    t.at(200.3, segment(ACK | FIN));
    assert_eq!(state(&t), CaState::Disorder, "two duplicates");
    t.at(200.4, Segment { seq: 2, ..ack(1) });
    assert_eq!(state(&t), CaState::Disorder);
    t.at(200.5, Segment { seq: 2, ..ack(1) });
    assert_eq!(state(&t), CaState::Recovery);
}

#[test]
fn who_gives_up_resets_and_acknowledges() {
    let mut t = ten_out(&plain(), "reno");
    t.end.reset(t.now);
    let reset = t.segments().remove(0);
    assert_eq!((reset.flags, reset.seq), (RST | ACK, OURS.wrapping_add(10_001)));
}

#[test]
fn an_old_timestamp_is_refused() {
    let config = Config { timestamps: true, ..plain() };
    let mut t = Script::client(&config, "reno", 10.0);
    t.at(20.0, data(1, 1001).stamped(1000, 1000));
    t.at(21.0, data(1001, 2001).stamped(900, 1000));
    assert_eq!(t.end.bytes_received(), 1000);
    t.at(22.0, data(1001, 2001).stamped(1001, 1000));
    assert_eq!(t.end.bytes_received(), 2000);
}

#[test]
fn an_ack_overtaken_within_a_tick_of_the_timestamp_still_reports_what_it_sacks() {
    for (age, sacked) in [(0, 2), (1, 2), (2, 0)] {
        let mut t = Script::client(&Config { timestamps: true, mss: 1012, ..plain() }, "reno", 100.0);
        t.write(u64::MAX);
        t.at(200.0, ack(1001).stamped(50, 1100));
        t.at(200.1, ack(1).sacks(&[(5001, 7001)]).stamped(50 - age, 1100));
        assert_eq!(t.end.sk.sacked_out, sacked, "{age} ms older");
    }
}

/// It does not acknowledge, it does not open the window, and it is not older than 1.2 timeouts.
#[test]
fn an_overtaken_duplicate_ack_is_taken_however_its_window_was_smaller() {
    for (age, window, sacked) in [(300, 50_000, 2), (300, 60_000, 2), (300, 60_001, 0), (400, 50_000, 0)] {
        let mut t = Script::client(&Config { timestamps: true, mss: 1012, ..plain() }, "reno", 100.0);
        t.write(u64::MAX);
        t.at(200.0, ack(1001).stamped(500, 1100));
        let rto_ms = t.rto().as_us() / 1_000;
        assert_eq!(rto_ms, 300);
        t.at(200.1, ack(1001).sacks(&[(5001, 7001)]).windowed(window).stamped(500 - age, 1100));
        assert_eq!(t.end.sk.sacked_out, sacked, "{age} ms older, window {window}");
        assert_eq!(t.end.info(t.now).rwnd, 240_000);
    }
}

#[test]
fn the_fin_is_retransmitted_like_data() {
    let mut t = Script::client(&plain(), "reno", 100.0);
    t.write(1500);
    t.end.close(t.now);
    assert_eq!(t.sent(), ["1:1001", "1001:1501 P", "1501:1501 F"]);
    t.at(200.0, ack(1501));
    t.until(1_000.0);
    let again = t.sent();
    assert!(again.contains(&"1501:1501 F".into()), "{again:?}");
    t.at(1_001.0, segment(ACK | FIN).acking(1502));
    assert_eq!(t.end.bytes_acked(), 1500);
    assert!(t.noticed(Notice::Closed));
}

impl Segment {
    fn acking(mut self, ack: u32) -> Segment {
        self.ack = ack;
        self
    }
}
