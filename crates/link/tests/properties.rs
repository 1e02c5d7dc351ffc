//! Properties of every link, whatever its settings.

use std::collections::HashMap;

use crate::common::{Numbered, Recorder, chance, nothing, numbers, rate};
use proptest::prelude::*;
use tcplab_link::config::{
    Chance, Change, Distribution, Jitter, Limit, Loss, LossModel, Queue, Reorder, Trace,
};
use tcplab_link::{Direction, Event, Link};
use tcplab_units::{Probability, Span, Time};

fn chances() -> impl Strategy<Value = Chance> {
    (0u32..300_000, prop_oneof![Just(0), 0u32..900_000])
        .prop_map(|(rate, correlation)| chance(rate, correlation))
}

fn jitters() -> impl Strategy<Value = Jitter> {
    let distribution =
        prop_oneof![Just(Distribution::Uniform), Just(Distribution::Normal), Just(Distribution::Pareto),];
    (distribution, 0u64..20_000, 0u64..200_000).prop_map(|(distribution, us, correlation_us)| Jitter {
        distribution,
        amount: Span::from_us(us),
        correlation_time: Span::from_us(correlation_us),
    })
}

fn losses() -> impl Strategy<Value = Loss> {
    let share = || (0u32..=1_000_000_000).prop_map(Probability::from_ppb);
    let model = prop_oneof![
        chances().prop_map(|chance| LossModel::Random { chance }),
        chances().prop_map(|chance| LossModel::Netem { chance }),
        (share(), share(), share(), share()).prop_map(|(p, r, bad, good)| LossModel::GilbertElliott {
            p,
            r,
            bad,
            good
        }),
    ];
    (model, any::<bool>()).prop_map(|(model, before_queue)| Loss { model, before_queue })
}

fn reorders() -> impl Strategy<Value = Reorder> {
    (chances(), prop::option::of((0u64..20_000).prop_map(Span::from_us)))
        .prop_map(|(chance, by)| Reorder { chance, by })
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0u64..20).prop_map(Limit::Packets),
        (0u64..30_000).prop_map(Limit::Bytes),
        (0u64..20_000).prop_map(|us| Limit::Time(Span::from_us(us))),
    ]
}

fn changes() -> impl Strategy<Value = Change> {
    let settings = (
        prop::option::weighted(0.3, limits()),
        prop::option::weighted(0.3, (0u64..30_000).prop_map(Span::from_us)),
        prop::option::weighted(0.3, jitters()),
        prop::option::weighted(0.3, losses()),
        prop::option::weighted(0.3, chances()),
        prop::option::weighted(0.3, any::<bool>()),
    );
    ((0u64..100_000), settings).prop_map(|(us, (limit, delay, jitter, loss, duplicate, up))| Change {
        at: Time::from_ns(us * 1000),
        rate: None,
        limit,
        mark_above: None,
        delay,
        jitter,
        reorder: None,
        loss,
        corrupt: None,
        duplicate,
        up,
    })
}

/// Links of every kind that keep order.
fn orderly() -> impl Strategy<Value = Direction> {
    let path = (
        prop::option::weighted(0.8, 100_000u64..1_000_000_000),
        prop::option::of(limits()),
        (0u64..30_000).prop_map(Span::from_us),
    );
    let impairments = (
        prop::option::of(jitters()),
        prop::option::of(losses()),
        prop::option::of(chances()),
        prop::option::of(chances()),
        prop::collection::vec(changes(), 0..4),
    );
    (path, impairments).prop_map(|((bits, limit, delay), (jitter, loss, corrupt, duplicate, changes))| {
        let queue = Queue::droptail(limit);
        Direction {
            rate: bits.map(rate),
            queue,
            delay,
            jitter,
            loss,
            corrupt,
            duplicate,
            changes,
            ..nothing()
        }
    })
}

/// Gap since the packet before in ns, and frame bytes.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![Just(0), 0u64..200_000, 0u64..5_000_000];
    prop::collection::vec((gap, 60u32..1515), 1..150)
}

/// Offers everything, polling every link now and then, and shows it to `check` after every step.
fn run(
    direction: &Direction,
    seed: u64,
    arrivals: &[(u64, u32)],
    mut check: impl FnMut(&mut Link<Numbered>),
) -> (Link<Numbered>, Recorder, Vec<(u64, Numbered)>) {
    let mut link = Link::new(direction, seed);
    let mut recorder = Recorder::default();
    let mut deliveries = Vec::new();
    let mut now = Time::ZERO;
    for (number, &(gap, len)) in (1..).zip(arrivals) {
        now += Span::from_ns(gap);
        link.enqueue(Numbered::new(number, len), now, &mut recorder);
        check(&mut link);
        if len % 3 == 0 {
            while let Some((at, packet)) = link.poll(now, &mut recorder) {
                deliveries.push((at.as_ns(), packet));
                check(&mut link);
            }
        }
    }
    deliveries.extend(crate::common::drain(&mut link, &mut recorder));
    check(&mut link);
    assert_eq!(link.held(), 0);
    (link, recorder, deliveries)
}

proptest! {
    #[test]
    fn packets_are_conserved(
        direction in orderly(), reorder in prop::option::of(reorders()), arrivals in arrivals(), seed: u64,
    ) {
        let direction = Direction { reorder, ..direction };
        let (link, recorder, deliveries) = run(&direction, seed, &arrivals, |link| {
            let stats = link.stats();
            let gone = stats.delivered + stats.dropped + stats.lost;
            assert_eq!(stats.packets_in + stats.duplicated, gone + link.held() as u64);
        });
        let count = |event| recorder.numbers(event).len() as u64;
        let stats = link.stats();
        prop_assert_eq!(stats.delivered, deliveries.len() as u64);
        prop_assert_eq!(stats.packets_in, arrivals.len() as u64);
        prop_assert_eq!(stats.bytes_in, arrivals.iter().map(|&(_, len)| u64::from(len)).sum::<u64>());
        prop_assert_eq!(
            [stats.delivered, stats.dropped, stats.lost, stats.corrupted, stats.duplicated, stats.serialized],
            [Event::Deliver, Event::Drop, Event::Lose, Event::Corrupt, Event::Duplicate, Event::Depart].map(count)
        );
    }

    #[test]
    fn order_is_kept_whatever_the_jitter_and_the_changes_of_delay(
        direction in orderly(), arrivals in arrivals(), seed: u64,
    ) {
        let (_, recorder, deliveries) = run(&direction, seed, &arrivals, |_| {});
        let departed: HashMap<u64, u64> =
            recorder.numbers(Event::Depart).into_iter().zip(recorder.times(Event::Depart)).collect();
        for pair in deliveries.windows(2) {
            let left = departed[&pair[1].1.number] - departed[&pair[0].1.number];
            // No faster than twice as fast as they left.
            prop_assert!(pair[1].0 - pair[0].0 >= left / 2);
        }
        prop_assert!(numbers(&deliveries).is_sorted());
        prop_assert!(deliveries.is_sorted_by_key(|delivery| delivery.0));
    }

    #[test]
    fn deliveries_come_in_order_of_time_even_where_packets_overtake(
        direction in orderly(), reorder in reorders(), arrivals in arrivals(), seed: u64,
    ) {
        let direction = Direction { reorder: Some(reorder), ..direction };
        let (_, recorder, deliveries) = run(&direction, seed, &arrivals, |_| {});
        prop_assert!(deliveries.is_sorted_by_key(|delivery| delivery.0));
        let departures = recorder.times(Event::Depart);
        prop_assert!(departures.is_sorted());
    }

    #[test]
    fn no_window_carries_more_than_the_rate_and_one_packet(
        bits in 100_000u64..10_000_000_000, direction in orderly(), arrivals in arrivals(),
    ) {
        let direction = Direction { rate: Some(rate(bits)), ..direction };
        let (_, recorder, _) = run(&direction, 1, &arrivals, |_| {});
        let departures: Vec<(u64, u64)> = recorder.0.iter()
            .filter(|record| record.0 == Event::Depart)
            .map(|&(_, at, number, _)| (at.as_ns(), u64::from(arrivals[number as usize - 1].1)))
            .collect();
        for (first, &(start, _)) in departures.iter().enumerate() {
            let mut sent = 0u128;
            for &(end, len) in &departures[first + 1..] {
                sent += u128::from(len) * 8_000_000_000;
                // Departures are rounded up to a nanosecond, so a window may look one too short.
                prop_assert!(sent <= u128::from(end - start + 1) * u128::from(bits));
            }
        }
    }

    #[test]
    fn the_queue_never_holds_more_than_its_limit(
        bits in 100_000u64..100_000_000, limit in limits(), direction in orderly(), arrivals in arrivals(),
    ) {
        let rate = rate(bits);
        let queue = Queue::droptail(Some(limit));
        let direction = Direction { rate: Some(rate), queue, changes: Vec::new(), ..direction };
        let mut link = Link::new(&direction, 1);
        let mut now = Time::ZERO;
        for (number, &(gap, len)) in (1..).zip(&arrivals) {
            now += Span::from_ns(gap);
            let dropped = link.stats().dropped;
            let before = link.sample(now, &mut ());
            link.enqueue(Numbered::new(number, len), now, &mut ());
            let after = link.sample(now, &mut ());
            let within = |packets: u32, bytes: u64| match limit {
                Limit::Packets(limit) => u64::from(packets) <= limit,
                Limit::Bytes(limit) => bytes <= limit,
                Limit::Time(limit) => bytes <= rate.bytes_in(limit),
            };
            prop_assert!(within(after.packets, after.bytes));
            if link.stats().dropped > dropped {
                prop_assert!(!within(before.packets + 1, before.bytes + u64::from(len)));
            }
            prop_assert!(after.head_sojourn <= now.since(Time::ZERO));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run_and_the_same_events(
        direction in orderly(), reorder in prop::option::of(reorders()), arrivals in arrivals(), seed: u64,
    ) {
        let direction = Direction { reorder, ..direction };
        let (_, first_events, first) = run(&direction, seed, &arrivals, |_| {});
        let (_, second_events, second) = run(&direction, seed, &arrivals, |_| {});
        prop_assert_eq!(first, second);
        prop_assert_eq!(first_events.0, second_events.0);
    }
}

proptest! {
    #[test]
    fn a_caller_that_learns_late_of_packets_makes_no_link_faster(
        arrivals in prop::collection::vec((0u64..3_000_000, 0u64..6_000_000), 1..60),
        trace in any::<bool>(),
    ) {
        // Either takes 1 ms a packet.
        let len = if trace { 1500 } else { 1000 };
        let opportunities = trace.then(|| Trace { opportunities_ms: (1..=10).collect() });
        let mut link = Link::new(&Direction { rate: Some(rate(8_000_000)), trace: opportunities, ..nothing() }, 1);
        let mut record = Recorder::default();
        let (mut came, mut known) = (0, 0);
        for (number, (gap, late)) in (1..).zip(arrivals) {
            came += gap;
            known = known.max(came + late);
            while link.poll(Time::from_ns(known), &mut record).is_some() {}
            link.enqueue(Numbered::new(number, len), Time::from_ns(came), &mut record);
        }
        crate::common::drain(&mut link, &mut record);
        let departures = record.times(Event::Depart);
        prop_assert!(departures.windows(2).all(|two| two[1] - two[0] >= 1_000_000), "{departures:?}");
    }
}
