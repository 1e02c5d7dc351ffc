//! Handshake: options, retransmission, what follows from a lost SYN.

use tcplab_units::Time;

use super::pair::control;
use super::script::{Script, at, plain, segment};
use crate::segment::{ACK, SYN, Segment};
use crate::{Config, Connection, Notice, Ticks};

#[test]
fn the_syn_carries_linux_options() {
    let mut end = Connection::connect(&Config::default(), control("reno"), 7, Time::ZERO);
    let syn = end.poll_transmit(Time::ZERO).expect("the SYN");
    assert_eq!((syn.flags, syn.seq, syn.mss, syn.window), (SYN, 7, 1460, 64_240));
    assert_eq!((syn.window_scale, syn.sack_permitted, syn.has_timestamp), (7, true, true));
    assert_eq!(end.poll_transmit(Time::ZERO), None);
}

#[test]
fn the_syn_ack_answers_with_what_was_offered() {
    let mut syn = segment(SYN);
    syn.mss = 1460;
    syn.window_scale = 7;
    syn.sack_permitted = true;
    let syn = syn.stamped(5, 0);
    let mut end = Connection::accept(&Config::default(), control("reno"), 9, &syn, Time::ZERO);
    let reply = end.poll_transmit(Time::ZERO).expect("the SYN-ACK");
    assert_eq!((reply.flags, reply.seq, reply.ack, reply.window), (SYN | ACK, 9, 2, 65_160));
    assert_eq!((reply.window_scale, reply.sack_permitted, reply.ts_ecr), (7, true, 5));

    let bare = segment(SYN);
    let mut end = Connection::accept(&Config::default(), control("reno"), 9, &bare, Time::ZERO);
    let reply = end.poll_transmit(Time::ZERO).expect("the SYN-ACK");
    assert_eq!((reply.window_scale, reply.sack_permitted, reply.has_timestamp), (255, false, false));
    assert_eq!(end.info(Time::ZERO).mss, 536);
}

/// Measured on Linux 6.18 with 250 ticks in a second.
#[test]
fn a_host_that_ticks_retransmits_a_syn_up_to_eight_ticks_late() {
    let waits = (0..200u64).map(|number| {
        let mut client = Connection::connect(&plain(), control("reno"), 0, Time::ZERO);
        client.tick(Ticks::new(number * 12_347));
        client.poll_timeout().as_us()
    });
    let (earliest, latest) = waits.fold((u64::MAX, 0), |(low, high), wait| (low.min(wait), high.max(wait)));
    assert!((1_000_000..1_004_000).contains(&earliest) && (1_028_000..=1_032_000).contains(&latest));
}

#[test]
fn a_small_fixed_buffer_needs_a_small_scale() {
    let config = Config { receive_buffer: Some(64 * 1024), ..Config::default() };
    let mut end = Connection::connect(&config, control("reno"), 7, Time::ZERO);
    let syn = end.poll_transmit(Time::ZERO).expect("the SYN");
    assert_eq!((syn.window_scale, syn.window), (1, 64_240));
}

#[test]
fn a_lost_syn_is_retransmitted_every_second_at_first_and_given_up_after_131() {
    let mut end = Connection::connect(&Config::default(), control("reno"), 7, Time::ZERO);
    assert!(end.poll_transmit(Time::ZERO).is_some());
    let (mut times, mut now, mut rtos) = (vec![], Time::ZERO, 0);
    while end.poll_timeout() != Time::NEVER {
        now = end.poll_timeout();
        end.handle_timeout(now);
        while end.poll_transmit(now).is_some() {
            times.push(now.as_us() / 1_000_000);
        }
    }
    assert_eq!(times, [1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
    assert_eq!(now.as_us(), 131_000_000);
    let counted = end.info(now);
    assert_eq!(counted.retransmits, 10, "they count, as in Linux (`total_retrans`)");
    assert_eq!(counted.rtos, 10, "they count, as in Linux (`total_rto`)");
    while end.poll_notice() == Some(Notice::Rto) {
        rtos += 1;
    }
    assert_eq!(rtos, 10);
    assert!(end.poll_notice().is_none(), "that of its end is among those read");
}

#[test]
fn a_lost_syn_ack_is_retransmitted_after_1_2_4_seconds_and_given_up_after_63() {
    let mut syn = segment(SYN);
    (syn.mss, syn.window_scale) = (1460, 7);
    let mut end = Connection::accept(&Config::default(), control("reno"), 9, &syn, Time::ZERO);
    assert!(end.poll_transmit(Time::ZERO).is_some());
    let (mut times, mut now) = (vec![], Time::ZERO);
    while end.poll_timeout() != Time::NEVER {
        now = end.poll_timeout();
        end.handle_timeout(now);
        while end.poll_transmit(now).is_some() {
            times.push(now.as_us() / 1_000_000);
        }
    }
    assert_eq!((times, now.as_us()), (vec![1, 3, 7, 15, 31], 63_000_000));
    assert_eq!((end.info(now).retransmits, end.info(now).rtos), (5, 5));
}

#[test]
fn the_first_flight_is_ten_segments_and_the_handshake_gives_the_rtt() {
    let mut t = Script::client(&plain(), "reno", 50.0);
    assert_eq!(t.end.info(t.now).srtt.as_us(), 50_000);
    // RFC 6298, section 2.2: three times the first sample, but the variance term is at least 200 ms.
    assert_eq!(t.rto().as_us(), 50_000 + 200_000);
    t.write(u64::MAX);
    assert_eq!(t.sent(), super::script::pairs(1, 10));
}

#[test]
fn a_syn_lost_twice_leaves_a_window_of_one_segment() {
    let mut end = Connection::connect(&plain(), control("reno"), 7, Time::ZERO);
    for _ in 0..2 {
        end.handle_timeout(end.poll_timeout());
    }
    let mut reply = segment(SYN | ACK);
    (reply.ack, reply.mss) = (8, 1000);
    let now = Time::from_ns(2_050_000_000);
    end.handle_segment(&reply, now);
    assert_eq!(end.info(now).cwnd, 1);
}

/// A peer at 600 ms sends its SYN again after a second, and acknowledges the first SYN-ACK at 1.2 s: 200 ms after the second.
#[test]
fn a_retransmitted_syn_ack_gives_an_rtt_by_timestamp_only() {
    for is_stamped in [false, true] {
        let mut syn = segment(SYN);
        (syn.mss, syn.window_scale) = (1460, 7);
        let stamped =
            |segment: Segment, val, ecr| if is_stamped { segment.stamped(val, ecr) } else { segment };
        let syn = stamped(syn, 5, 0);
        let mut end = Connection::accept(&Config::default(), control("reno"), 9, &syn, Time::ZERO);
        let reply = end.poll_transmit(Time::ZERO).expect("the SYN-ACK");
        assert!(!reply.retransmission);

        end.handle_segment(&stamped(syn, 1005, 0), at(1000.0));
        let again = end.poll_transmit(at(1000.0)).expect("the SYN-ACK again");
        assert!(again.retransmission);
        assert_eq!(end.info(at(1000.0)).retransmits, 1);

        let mut acknowledgment = segment(ACK);
        (acknowledgment.seq, acknowledgment.ack) = (2, 10);
        end.handle_segment(&stamped(acknowledgment, 605, reply.ts_val), at(1200.0));
        assert_eq!(end.poll_notice(), Some(Notice::Established));
        let expected = if is_stamped { 1_200_000 } else { 0 };
        assert_eq!(end.info(at(1200.0)).srtt.as_us(), expected, "timestamps: {is_stamped}");
    }
}
