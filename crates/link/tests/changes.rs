//! Settings that change during the run take effect at their own time, whenever the link is next used.

use crate::common::{Numbered, Recorder, at, chance, drain, droptail, loss, nothing, numbers, offer, rate};
use tcplab_link::config::{Change, Distribution, Jitter, Limit, LossModel, Reorder, Trace};
use tcplab_link::{Direction, Event, Link};
use tcplab_units::{Span, Time};

/// 1000 bytes take 1 ms.
fn eight_mbit() -> Direction {
    Direction { rate: Some(rate(8_000_000)), ..nothing() }
}

fn times(deliveries: &[(u64, Numbered)]) -> Vec<u64> {
    deliveries.iter().map(|(at, _)| at / 1_000_000).collect()
}

fn micros(deliveries: &[(u64, Numbered)]) -> Vec<u64> {
    deliveries.iter().map(|(at, _)| at / 1000).collect()
}

#[test]
fn a_new_rate_holds_from_its_time_on_also_for_the_rest_of_a_packet() {
    let changes = vec![Change { rate: Some(rate(4_000_000)), ..at(2) }];
    let mut link = Link::new(&Direction { changes, ..eight_mbit() }, 1);
    let deliveries = offer(&mut link, 5, 1000, Span::ZERO, &mut ());
    assert_eq!(times(&deliveries), [1, 2, 4, 6, 8]);

    let changes =
        vec![Change { rate: Some(rate(800_000)), ..at(1) }, Change { rate: Some(rate(8_000_000)), ..at(3) }];
    let mut link = Link::new(&Direction { changes, ..eight_mbit() }, 1);
    let deliveries = offer(&mut link, 3, 1000, Span::ZERO, &mut ());
    // In the 2 ms at 800 kbit/s one fifth of the second packet is sent.
    assert_eq!(micros(&deliveries), [1000, 3800, 4800]);
}

#[test]
fn an_outage_made_by_a_rate_ends_with_it() {
    // At 1 kbit/s the packet being sent would take 8 s.
    let changes =
        vec![Change { rate: Some(rate(1000)), ..at(5) }, Change { rate: Some(rate(8_000_000)), ..at(1005) }];
    let mut link = Link::new(&Direction { changes, ..eight_mbit() }, 1);
    let deliveries = offer(&mut link, 10, 1000, Span::from_us(900), &mut ());
    // In the second of 1 kbit/s an eighth of a packet is sent.
    assert_eq!(micros(&deliveries)[4..], [5000, 1_005_875, 1_006_875, 1_007_875, 1_008_875, 1_009_875]);
}

#[test]
fn a_packet_is_sent_at_every_rate_there_is_meanwhile() {
    // 8000 bits: 1 ms at 4 Mbit/s, then 2 ms at 1 Mbit/s, of two changes at 1 ms the later, then 2 Mbit/s.
    let changes = vec![
        Change { rate: Some(rate(1)), ..at(1) },
        Change { rate: Some(rate(1_000_000)), ..at(1) },
        Change { rate: Some(rate(2_000_000)), ..at(3) },
    ];
    let mut link = Link::new(&Direction { changes, rate: Some(rate(4_000_000)), ..nothing() }, 1);
    assert_eq!(micros(&offer(&mut link, 2, 1000, Span::ZERO, &mut ())), [4000, 8000]);
}

#[test]
fn a_rate_that_changes_while_nothing_is_sent_holds_for_the_next_packet() {
    let changes =
        vec![Change { rate: Some(rate(1000)), ..at(2) }, Change { rate: Some(rate(800_000)), ..at(4) }];
    let mut link = Link::new(&Direction { changes, ..eight_mbit() }, 1);
    assert_eq!(times(&offer(&mut link, 2, 1000, Span::from_ms(5), &mut ())), [1, 15]);
}

#[test]
fn a_new_rate_moves_no_packet_of_a_trace() {
    let trace = Some(Trace { opportunities_ms: vec![10, 20] });
    let changes =
        vec![Change { rate: Some(rate(1000)), ..at(5) }, Change { rate: Some(rate(1_000_000)), ..at(15) }];
    let mut link = Link::new(&Direction { trace, changes, ..nothing() }, 1);
    assert_eq!(times(&offer(&mut link, 2, 3014, Span::ZERO, &mut ())), [20, 40]);
}

#[test]
fn a_packet_being_sent_is_gone_when_the_link_comes_up_at_another_rate() {
    let changes = vec![
        Change { rate: Some(rate(1000)), ..at(1) },
        Change { up: Some(false), rate: Some(rate(2000)), ..at(2) },
        Change { up: Some(true), rate: Some(rate(800_000)), ..at(3) },
    ];
    let mut link = Link::new(&Direction { changes, ..eight_mbit() }, 1);
    let deliveries = offer(&mut link, 3, 1000, Span::from_ms(3) / 2, &mut ());
    assert_eq!((numbers(&deliveries), times(&deliveries)), (vec![1, 3], vec![1, 13]));
}

#[test]
fn a_marking_threshold_holds_for_those_that_arrive_after_it() {
    let changes = vec![Change { mark_above: Some(Limit::Packets(1)), ..at(1) }];
    let mut link = Link::new(&Direction { changes, ..eight_mbit() }, 1);
    let mut seen = Recorder::default();
    for number in 1..=4 {
        link.enqueue(Numbered::new(number, 1000), Time::ZERO, &mut seen);
    }
    for number in 5..=8 {
        link.enqueue(Numbered::new(number, 1000), Time::from_ns(1_000_000), &mut seen);
    }
    // Only those with odd numbers can be marked.
    assert_eq!(seen.numbers(Event::Mark), [5, 7]);
    assert_eq!((link.stats().marked, link.stats().dropped), (2, 0));
}

#[test]
fn a_limit_in_time_follows_the_rate() {
    let changes = vec![Change { rate: Some(rate(80_000_000)), ..at(1) }];
    let queue = droptail(Limit::Time(Span::from_ms(2)));
    let mut link = Link::new(&Direction { queue, changes, ..eight_mbit() }, 1);
    // One is being sent, two wait.
    for number in 1..=4 {
        link.enqueue(Numbered::new(number, 1000), Time::ZERO, &mut ());
    }
    assert_eq!(link.stats().dropped, 1);
    // Now one is being sent, and twenty may wait.
    for number in 5..=30 {
        link.enqueue(Numbered::new(number, 1000), Time::from_ns(1_000_000), &mut ());
    }
    assert_eq!(link.sample(Time::from_ns(1_000_000), &mut ()).packets, 20);
}

#[test]
fn a_lower_limit_drops_arrivals_and_not_what_waits() {
    let changes = vec![Change { limit: Some(Limit::Packets(1)), ..at(1) }];
    let mut link = Link::new(&Direction { changes, ..eight_mbit() }, 1);
    for number in 1..=5 {
        link.enqueue(Numbered::new(number, 1000), Time::ZERO, &mut ());
    }
    link.enqueue(Numbered::new(6, 1000), Time::from_ns(1_000_000), &mut ());
    assert_eq!(numbers(&drain(&mut link, &mut ())), [1, 2, 3, 4, 5]);
}

#[test]
fn a_shorter_delay_lets_none_overtake_and_none_arrive_twice_as_fast_as_it_left() {
    let changes = vec![Change { delay: Some(Span::from_ms(1)), ..at(2) }];
    let mut link = Link::new(&Direction { delay: Span::from_ms(10), changes, ..nothing() }, 1);
    let deliveries = offer(&mut link, 22, 1000, Span::from_ms(1), &mut ());
    // Packets leave at 0, 1, 2 ...; those of 0 and 1 still take 10 ms, and hold the others up until 20.
    let expected = (0..22)
        .map(|n| if n < 2 { 10_000 + n * 1000 } else { (11_000 + (n - 1) * 500).max(n * 1000 + 1000) });
    assert_eq!(micros(&deliveries), expected.collect::<Vec<u64>>());
    assert!(numbers(&deliveries).is_sorted());
}

#[test]
fn a_busy_link_comes_down_to_its_new_delay_at_twice_its_rate() {
    // A satellite's path of 50 ms becomes one of 10 ms; 1000 bytes take 1 ms.
    let changes = vec![Change { delay: Some(Span::from_ms(10)), ..at(20) }];
    let config = Direction { delay: Span::from_ms(50), changes, ..eight_mbit() };
    let deliveries = offer(&mut Link::new(&config, 1), 200, 1000, Span::ZERO, &mut ());
    let arrivals = micros(&deliveries);
    let gaps: Vec<u64> = arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The last of the long way arrives at 69 ms; the gap of 40 ms is made up in 80.
    assert_eq!(
        (&gaps[..18], &gaps[18..98], &gaps[98..]),
        (&[1000; 18][..], &[500; 80][..], &[1000; 101][..])
    );
    assert_eq!(arrivals[199], 210_000);
}

#[test]
fn packets_that_left_together_arrive_together_when_the_delay_falls() {
    let changes = vec![Change { delay: Some(Span::from_ms(1)), ..at(1) }];
    let mut link = Link::new(&Direction { delay: Span::from_ms(10), changes, ..nothing() }, 1);
    link.enqueue(Numbered::new(1, 100), Time::ZERO, &mut ());
    for number in 2..=4 {
        link.enqueue(Numbered::new(number, 100), Time::from_ns(2_000_000), &mut ());
    }
    assert_eq!(times(&drain(&mut link, &mut ())), [10, 11, 11, 11]);
}

#[test]
fn a_delay_that_goes_down_and_up_again_at_one_instant_has_not_changed() {
    let changes =
        vec![Change { delay: Some(Span::ZERO), ..at(2) }, Change { delay: Some(Span::from_ms(10)), ..at(2) }];
    let mut link = Link::new(&Direction { delay: Span::from_ms(10), changes, ..nothing() }, 1);
    assert_eq!(times(&offer(&mut link, 5, 100, Span::from_ms(1), &mut ())), [10, 11, 12, 13, 14]);
}

#[test]
fn jitter_that_shrinks_lets_none_overtake() {
    let jitter = |ms| {
        let correlation_time = Span::from_ms(500);
        Some(Jitter { distribution: Distribution::Uniform, amount: Span::from_ms(ms), correlation_time })
    };
    let changes = vec![Change { jitter: jitter(0), ..at(300) }];
    for seed in 1..20 {
        let config =
            Direction { delay: Span::from_ms(50), jitter: jitter(50), changes: changes.clone(), ..nothing() };
        let deliveries = offer(&mut Link::new(&config, seed), 5000, 100, Span::from_us(100), &mut ());
        assert!(numbers(&deliveries).is_sorted());
        assert!(micros(&deliveries).windows(2).all(|pair| pair[1] - pair[0] >= 49), "at twice the rate");
        assert_eq!(micros(&deliveries)[4999], 499_900 + 50_000);
    }
}

#[test]
fn a_change_that_brings_the_next_delivery_forward_is_asked_for() {
    // One packet takes until 10 ms to be sent; the change at 5 ms makes it arrive at 11 instead of 40.
    let changes = vec![Change { delay: Some(Span::from_ms(1)), ..at(5) }];
    let config = Direction { rate: Some(rate(800_000)), delay: Span::from_ms(30), changes, ..nothing() };
    let mut link = Link::new(&config, 1);
    link.enqueue(Numbered::new(1, 1000), Time::ZERO, &mut ());
    // `drain` insists that the link asks at the very time of each delivery.
    assert_eq!(times(&drain(&mut link, &mut ())), [11]);
}

#[test]
fn a_link_that_goes_down_drops_what_it_holds_and_what_is_offered() {
    let changes = vec![Change { up: Some(false), ..at(2) }, Change { up: Some(true), ..at(4) }];
    let config = Direction { delay: Span::from_ms(10), changes, ..eight_mbit() };
    let mut link = Link::new(&config, 1);
    let mut recorder = Recorder::default();
    for number in 1..=5 {
        link.enqueue(Numbered::new(number, 1000), Time::from_ns(500_000), &mut recorder);
    }
    for (number, ms) in [(6, 3), (7, 4), (8, 5)] {
        link.enqueue(Numbered::new(number, 1000), Time::from_ns(ms * 1_000_000), &mut recorder);
    }
    let deliveries = drain(&mut link, &mut recorder);
    // The first was already on its way; the second was being sent; the others waited.
    assert_eq!(numbers(&deliveries), [1, 7, 8]);
    assert_eq!(times(&deliveries), [11, 15, 16]);
    assert_eq!(recorder.numbers(Event::Drop), [2, 3, 4, 5, 6]);
    assert_eq!(recorder.times(Event::Drop), [2_000_000, 2_000_000, 2_000_000, 2_000_000, 3_000_000]);
}

#[test]
fn a_trace_goes_on_after_the_link_was_down() {
    let changes = vec![Change { up: Some(false), ..at(3) }, Change { up: Some(true), ..at(5) }];
    let trace = Some(Trace { opportunities_ms: vec![1] });
    let mut link = Link::new(&Direction { trace, changes, ..nothing() }, 1);
    link.enqueue(Numbered::new(1, 14 + 1500 * 40), Time::ZERO, &mut ());
    link.enqueue(Numbered::new(2, 1514), Time::from_ns(5_500_000), &mut ());
    let deliveries = drain(&mut link, &mut ());
    assert_eq!((numbers(&deliveries), times(&deliveries)), (vec![2], vec![6]));
}

#[test]
fn a_link_may_begin_down() {
    let changes = vec![Change { up: Some(true), ..at(2) }];
    let mut link = Link::new(&Direction { up: false, changes, ..nothing() }, 1);
    assert_eq!(times(&offer(&mut link, 4, 100, Span::from_ms(1), &mut ())), [2, 3]);
}

#[test]
fn impairments_can_begin_during_the_run() {
    let always = Some(chance(1_000_000, 0));
    let changes = vec![
        Change { loss: loss(LossModel::Every { packets: 2, first: 2 }), ..at(2) },
        Change { corrupt: always, ..at(4) },
        Change { duplicate: always, ..at(6) },
        Change {
            jitter: Some(Jitter {
                distribution: Distribution::Pareto,
                amount: Span::from_ms(1),
                correlation_time: Span::from_ms(10),
            }),
            ..at(8)
        },
    ];
    let mut link = Link::new(&Direction { changes, ..nothing() }, 1);
    let deliveries = offer(&mut link, 12, 100, Span::from_ms(1), &mut ());
    // The loss process counts from when it began: the packet of 2 ms is its first.
    assert_eq!(numbers(&deliveries), [1, 2, 3, 5, 7, 7, 9, 9, 11, 11]);
    let damaged = deliveries.iter().filter(|(_, packet)| packet.corrupted).count();
    assert_eq!(damaged, 7);
    let late = deliveries.iter().filter(|(at, packet)| *at > (packet.number - 1) * 1_000_000).count();
    assert_eq!(late, 4);
}

#[test]
fn reordering_can_begin_during_the_run() {
    let reorder = Some(Reorder { chance: chance(1_000_000, 0), by: None });
    let changes = vec![Change { reorder, ..at(2) }];
    let mut link = Link::new(&Direction { delay: Span::from_ms(10), changes, ..nothing() }, 1);
    let deliveries = offer(&mut link, 4, 100, Span::from_ms(1), &mut ());
    assert_eq!(numbers(&deliveries), [3, 4, 1, 2]);
}

#[test]
fn changes_apply_in_order_of_time_however_they_are_listed() {
    let changes = vec![
        Change { delay: Some(Span::from_ms(7)), ..at(2) },
        Change { delay: Some(Span::from_ms(3)), ..at(1) },
    ];
    let mut link = Link::new(&Direction { changes, ..nothing() }, 1);
    assert_eq!(times(&offer(&mut link, 3, 100, Span::from_ms(1), &mut ())), [0, 4, 9]);
}

#[test]
fn a_rate_can_be_given_to_a_link_that_had_none() {
    let changes = vec![Change { rate: Some(rate(8_000_000)), ..at(1) }];
    let mut link = Link::new(&Direction { changes, ..nothing() }, 1);
    let mut now = Vec::new();
    for (number, ms) in [(1, 0), (2, 1), (3, 1)] {
        link.enqueue(Numbered::new(number, 1000), Time::from_ns(ms * 1_000_000), &mut ());
        now.extend(drain(&mut link.clone(), &mut ()).last().map(|delivery| delivery.0 / 1_000_000));
    }
    assert_eq!(now, [0, 2, 3]);
}
