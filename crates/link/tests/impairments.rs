//! Each impairment by itself, as a packet meets it on its way.

use crate::common::{Numbered, Recorder, chance, drain, droptail, loss, nothing, numbers, offer, rate};
use tcplab_link::config::{Distribution, Jitter, Limit, Loss, LossModel, Reorder};
use tcplab_link::{Direction, Event, Link};
use tcplab_units::{Probability, Span, Time};

const MILLISECOND: Span = Span::from_ms(1);

/// Whether `count` of `n` is within three standard deviations of a share, correlated by c.
fn is_near(count: usize, n: usize, share: f64, c: f64) -> bool {
    let (count, n) = (count as f64, n as f64);
    (count - n * share).abs() <= 3.0 * (n * share * (1.0 - share) * (1.0 + c) / (1.0 - c)).sqrt()
}

#[test]
fn a_link_without_settings_delivers_at_once() {
    let mut link = Link::new(&nothing(), 1);
    let deliveries = offer(&mut link, 3, 1514, MILLISECOND, &mut ());
    let times: Vec<u64> = deliveries.iter().map(|delivery| delivery.0).collect();
    assert_eq!(times, [0, 1_000_000, 2_000_000]);
}

#[test]
fn a_packet_is_serialized_and_then_delayed() {
    let config = Direction { rate: Some(rate(100_000_000)), delay: Span::from_ms(25), ..nothing() };
    let mut link = Link::new(&config, 1);
    let mut recorder = Recorder::default();
    let deliveries = offer(&mut link, 2, 1514, Span::ZERO, &mut recorder);
    assert_eq!(recorder.times(Event::Depart), [121_120, 242_240]);
    assert_eq!(deliveries[0].0, 25_121_120);
    assert_eq!(deliveries[1].0, 25_242_240);
}

#[test]
fn an_idle_link_asks_for_nothing_and_a_busy_one_for_its_next_delivery() {
    let config = Direction { rate: Some(rate(100_000_000)), delay: Span::from_ms(25), ..nothing() };
    let mut link = Link::new(&config, 1);
    assert_eq!(link.next_event(), Time::NEVER);
    for number in 1..=2 {
        link.enqueue(Numbered::new(number, 1514), Time::ZERO, &mut ());
    }
    assert_eq!(link.next_event(), Time::from_ns(25_121_120));
    assert!(link.poll(link.next_event(), &mut ()).is_some());
    assert_eq!(link.next_event(), Time::from_ns(25_242_240));
    assert!(link.poll(link.next_event(), &mut ()).is_some());
    assert_eq!(link.next_event(), Time::NEVER);
}

#[test]
fn a_full_link_asks_once_for_each_delivery() {
    let config = Direction { rate: Some(rate(100_000_000)), delay: Span::from_ms(25), ..nothing() };
    let mut link = Link::new(&config, 1);
    for number in 0..1000 {
        link.enqueue(Numbered::new(number, 1514), Time::ZERO, &mut ());
    }
    let mut asked = 0;
    while link.next_event() != Time::NEVER {
        asked += 1;
        assert!(link.poll(link.next_event(), &mut ()).is_some());
    }
    assert_eq!(asked, 1000);
}

#[test]
fn what_is_being_sent_does_not_count_as_waiting() {
    let config = Direction { rate: Some(rate(1_000_000)), queue: droptail(Limit::Packets(2)), ..nothing() };
    let mut link = Link::new(&config, 1);
    let mut recorder = Recorder::default();
    for number in 1..=4 {
        link.enqueue(Numbered::new(number, 1000), Time::ZERO, &mut recorder);
    }
    assert_eq!(recorder.numbers(Event::Enqueue), [1, 2, 3]);
    assert_eq!(recorder.numbers(Event::Drop), [4]);
    let sample = link.sample(Time::from_ns(5_000_000), &mut recorder);
    assert_eq!((sample.packets, sample.bytes, sample.head_sojourn), (2, 2000, Span::from_ms(5)));
    let sample = link.sample(Time::from_ns(9_000_000), &mut recorder);
    assert_eq!((sample.packets, sample.bytes, sample.head_sojourn), (1, 1000, Span::from_ms(9)));
}

#[test]
fn a_lost_packet_has_used_capacity_unless_it_is_lost_before_the_queue() {
    let end = |before_queue| {
        let model = LossModel::List { packets: vec![1, 2] };
        let loss = Some(Loss { model, before_queue });
        let mut link = Link::new(&Direction { rate: Some(rate(8_000_000)), loss, ..nothing() }, 1);
        let deliveries = offer(&mut link, 3, 1000, Span::ZERO, &mut ());
        (numbers(&deliveries), deliveries[0].0, link.stats().serialized, link.stats().bytes_serialized)
    };
    assert_eq!(end(false), (vec![3], 3_000_000, 3, 3000));
    assert_eq!(end(true), (vec![3], 1_000_000, 1, 1000));
}

#[test]
fn the_listed_packets_are_lost() {
    let model = LossModel::List { packets: vec![2, 3, 9] };
    let mut link = Link::new(&Direction { loss: loss(model), ..nothing() }, 1);
    let deliveries = offer(&mut link, 10, 100, MILLISECOND, &mut ());
    assert_eq!(numbers(&deliveries), [1, 4, 5, 6, 7, 8, 10]);
}

#[test]
fn one_packet_in_every_so_many_is_lost() {
    let model = LossModel::Every { packets: 4, first: 2 };
    let mut link = Link::new(&Direction { loss: loss(model), ..nothing() }, 1);
    let deliveries = offer(&mut link, 10, 100, MILLISECOND, &mut ());
    assert_eq!(numbers(&deliveries), [1, 3, 4, 5, 7, 8, 9]);
}

#[test]
fn random_loss_takes_the_share_asked_for() {
    for (rate, correlation) in [(5000, 0), (5000, 250_000), (100_000, 500_000)] {
        let model = LossModel::Random { chance: chance(rate, correlation) };
        let mut link = Link::new(&Direction { loss: loss(model), ..nothing() }, 1);
        let deliveries = offer(&mut link, 500_000, 100, MILLISECOND, &mut ());
        let (share, c) = (f64::from(rate) / 1e6, f64::from(correlation) / 1e6);
        assert!(is_near(500_000 - deliveries.len(), 500_000, share, c));
    }
}

#[test]
fn netems_recursion_loses_nearly_nothing_at_half_a_percent() {
    let model = LossModel::Netem { chance: chance(5000, 250_000) };
    let mut link = Link::new(&Direction { loss: loss(model), ..nothing() }, 1);
    let deliveries = offer(&mut link, 500_000, 100, MILLISECOND, &mut ());
    assert!(deliveries.len() >= 499_999);
}

#[test]
fn gilbert_elliott_loses_in_bursts() {
    let [p, r] = [10_000_000, 250_000_000].map(Probability::from_ppb);
    let model = LossModel::GilbertElliott { p, r, bad: Probability::ONE, good: Probability::ZERO };
    let mut link = Link::new(&Direction { loss: loss(model), ..nothing() }, 1);
    let mut recorder = Recorder::default();
    offer(&mut link, 500_000, 100, MILLISECOND, &mut recorder);
    let lost = recorder.numbers(Event::Lose);
    let bursts = 1 + lost.windows(2).filter(|pair| pair[1] > pair[0] + 1).count();
    // Bursts are geometric: mean 1/r, deviation sqrt(1 - r)/r.
    let mean = lost.len() as f64 / bursts as f64;
    assert!((mean - 4.0).abs() <= 3.0 * (0.75f64.sqrt() / 0.25) / (bursts as f64).sqrt(), "{mean}");
}

#[test]
fn damaged_packets_are_delivered_damaged() {
    let mut link = Link::new(&Direction { corrupt: Some(chance(20_000, 0)), ..nothing() }, 1);
    let deliveries = offer(&mut link, 100_000, 100, MILLISECOND, &mut ());
    assert_eq!(deliveries.len(), 100_000);
    let damaged = deliveries.iter().filter(|(_, packet)| packet.corrupted).count();
    assert!(is_near(damaged, 100_000, 0.02, 0.0));
    assert_eq!(link.stats().corrupted, damaged as u64);
}

#[test]
fn copies_follow_their_originals_and_use_no_capacity() {
    let config =
        Direction { rate: Some(rate(8_000_000)), duplicate: Some(chance(20_000, 250_000)), ..nothing() };
    let mut link = Link::new(&config, 1);
    let deliveries = offer(&mut link, 100_000, 1000, Span::ZERO, &mut ());
    let copies = deliveries.len() - 100_000;
    assert!(is_near(copies, 100_000, 0.02, 0.25));
    assert_eq!(link.stats().duplicated, copies as u64);
    for pair in deliveries.windows(2).filter(|pair| pair[1].1.copy) {
        assert_eq!((pair[0].0, pair[0].1.number), (pair[1].0, pair[1].1.number));
    }
    assert_eq!(deliveries.last().map(|delivery| delivery.0), Some(100_000_000_000));
}

#[test]
fn the_copy_of_a_damaged_packet_is_damaged() {
    let always = Some(chance(1_000_000, 0));
    let mut link = Link::new(&Direction { corrupt: always, duplicate: always, ..nothing() }, 1);
    let deliveries = offer(&mut link, 1, 100, MILLISECOND, &mut ());
    assert_eq!(deliveries.iter().filter(|(_, packet)| packet.corrupted).count(), 2);
}

#[test]
fn chosen_packets_skip_the_delay() {
    let reorder = Some(Reorder { chance: chance(10_000, 0), by: None });
    let config = Direction { delay: Span::from_ms(10), reorder, ..nothing() };
    let mut link = Link::new(&config, 1);
    let deliveries = offer(&mut link, 100_000, 100, MILLISECOND, &mut ());
    let early = deliveries.iter().filter(|(at, packet)| *at == (packet.number - 1) * 1_000_000).count();
    assert!(is_near(early, 100_000, 0.01, 0.0));
    let overtakings = numbers(&deliveries).windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(overtakings > 0 && overtakings <= early);
    assert_eq!(deliveries.len(), 100_000);
}

#[test]
fn chosen_packets_skip_as_much_of_the_delay_as_they_are_set() {
    let reorder = Some(Reorder { chance: chance(1_000_000, 0), by: Some(Span::from_ms(4)) });
    let config = Direction { delay: Span::from_ms(10), reorder, ..nothing() };
    let deliveries = offer(&mut Link::new(&config, 1), 1, 100, MILLISECOND, &mut ());
    assert_eq!(deliveries[0].0, 6_000_000);
}

#[test]
fn with_reordering_jitter_overtakes_too() {
    let jitter = Some(Jitter {
        distribution: Distribution::Uniform,
        amount: Span::from_ms(5),
        correlation_time: Span::ZERO,
    });
    let reorder = Some(Reorder { chance: chance(0, 0), by: None });
    let config = Direction { delay: Span::from_ms(10), jitter, reorder, ..nothing() };
    let deliveries = offer(&mut Link::new(&config, 1), 1000, 100, MILLISECOND, &mut ());
    assert!(!numbers(&deliveries).is_sorted());
}

#[test]
fn another_seed_gives_another_run() {
    let model = LossModel::Random { chance: chance(100_000, 0) };
    let config = Direction { loss: loss(model), ..nothing() };
    let delivered = |seed| numbers(&offer(&mut Link::new(&config, seed), 1000, 100, MILLISECOND, &mut ()));
    assert_ne!(delivered(1), delivered(2));
}

#[test]
fn a_late_caller_gets_the_exact_times() {
    let config = Direction { rate: Some(rate(8_000_000)), delay: Span::from_ms(3), ..nothing() };
    let mut link = Link::new(&config, 1);
    for number in 1..=3 {
        link.enqueue(Numbered::new(number, 1000), Time::ZERO, &mut ());
    }
    let late = Time::from_ns(5_999_999);
    let polled: Vec<_> = std::iter::from_fn(|| link.poll(late, &mut ())).map(|(at, _)| at.as_ns()).collect();
    assert_eq!(polled, [4_000_000, 5_000_000]);
    assert_eq!(drain(&mut link, &mut ())[0].0, 6_000_000);
}
