//! One impairment shifts no decision of another, and no packet's fate depends on another packet's.

use std::collections::BTreeMap;

use crate::common::{Numbered, Recorder, chance, drain, nothing, rate};
use proptest::prelude::*;
use tcplab_link::config::{Distribution, Jitter, Limit, Loss, LossModel, Queue, Reorder};
use tcplab_link::{Direction, Event, Link};
use tcplab_units::{Probability, Span, Time};

/// The fates of a packet and of its copy, each: damaged, and the time from its offer to its arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fate {
    original: Option<(bool, u64)>,
    copy: Option<(bool, u64)>,
}

/// The fates of those that are delivered, of packets that are offered at these times in ns.
fn fates(direction: &Direction, times: &[u64]) -> BTreeMap<u64, Fate> {
    let mut link = Link::new(direction, 7);
    let mut observer = Recorder::default();
    let mut deliveries = Vec::new();
    for (number, &time) in (1..).zip(times) {
        let now = Time::from_ns(time);
        while let Some((at, packet)) = link.poll(now, &mut observer) {
            deliveries.push((at.as_ns(), packet));
        }
        link.enqueue(Numbered::new(number, 1000), now, &mut observer);
    }
    deliveries.extend(drain(&mut link, &mut observer));
    let mut fates: BTreeMap<u64, Fate> = BTreeMap::new();
    for (at, packet) in deliveries {
        let fate = fates.entry(packet.number).or_default();
        let place = if packet.copy { &mut fate.copy } else { &mut fate.original };
        *place = Some((packet.corrupted, at - times[packet.number as usize - 1]));
    }
    fates
}

/// `packets` times, a millisecond apart.
fn regular(packets: u64) -> Vec<u64> {
    (0..packets).map(|number| number * 1_000_000).collect()
}

fn jitter(distribution: Distribution) -> Option<Jitter> {
    Some(Jitter { distribution, amount: Span::from_ms(2), correlation_time: Span::from_ms(50) })
}

fn losses() -> impl Strategy<Value = Loss> {
    let share = || (0u32..=1_000_000_000).prop_map(Probability::from_ppb);
    let model = prop_oneof![
        (0u32..300_000, 0u32..900_000).prop_map(|(p, c)| LossModel::Random { chance: chance(p, c) }),
        (0u32..300_000, 0u32..900_000).prop_map(|(p, c)| LossModel::Netem { chance: chance(p, c) }),
        (share(), share(), share(), share()).prop_map(|(p, r, bad, good)| LossModel::GilbertElliott {
            p,
            r,
            bad,
            good
        }),
        (1u64..20, 1u64..20).prop_map(|(packets, first)| LossModel::Every { packets, first }),
    ];
    (model, any::<bool>()).prop_map(|(model, before_queue)| Loss { model, before_queue })
}

/// A direction with every impairment but loss.
fn impaired(reorder: bool, correlation: u32) -> Direction {
    Direction {
        delay: Span::from_ms(20),
        jitter: jitter(Distribution::Normal),
        corrupt: Some(chance(50_000, correlation)),
        duplicate: Some(chance(50_000, correlation)),
        reorder: reorder.then(|| Reorder { chance: chance(50_000, correlation), by: Some(Span::from_ms(5)) }),
        ..nothing()
    }
}

#[test]
fn one_percent_of_loss_changes_nothing_for_the_packets_that_are_left() {
    let model = LossModel::Random { chance: chance(10_000, 0) };
    for (reorder, before_queue, rated) in
        [(false, false, false), (false, true, false), (true, true, false), (true, false, true)]
    {
        let rate = rated.then(|| rate(100_000_000));
        let whole = Direction { rate, ..impaired(reorder, 0) };
        let lossy = Direction { loss: Some(Loss { model: model.clone(), before_queue }), ..whole.clone() };
        let (all, left) = (fates(&whole, &regular(1600)), fates(&lossy, &regular(1600)));
        assert!((1..1600).contains(&left.len()));
        let changed = left.iter().filter(|(number, fate)| all[number] != **fate).count();
        assert_eq!(changed, 0, "of {}", left.len());
    }
}

#[test]
fn a_loss_before_the_queue_changes_when_others_leave_and_nothing_else() {
    // A busy link: who is behind a lost packet leaves earlier, and meets the delay of that time.
    let loss = Some(Loss { model: LossModel::Every { packets: 10, first: 5 }, before_queue: true });
    let whole = Direction { rate: Some(rate(8_000_000)), ..impaired(false, 250_000) };
    let lossy = Direction { loss, ..whole.clone() };
    let times = [0; 1600];
    let (all, left) = (fates(&whole, &times), fates(&lossy, &times));
    let decided = |fate: &Fate| (fate.original.map(|it| it.0), fate.copy.map(|it| it.0));
    assert!(left.iter().all(|(number, fate)| decided(&all[number]) == decided(fate)));
}

#[test]
fn a_copy_shares_the_fate_of_its_original_and_with_reordering_has_its_own_jitter() {
    let doubled = |reorder| Direction { duplicate: Some(chance(1_000_000, 0)), ..impaired(reorder, 0) };
    let ordered = fates(&doubled(false), &regular(1000));
    assert!(ordered.values().all(|fate| fate.copy == fate.original));
    let loose = fates(&doubled(true), &regular(1000));
    let same = loose.values().filter(|fate| fate.copy == fate.original).count();
    assert!(same < 10, "{same}");
    let damaged = |it: Option<(bool, u64)>| it.map(|it| it.0);
    assert!(loose.values().all(|fate| damaged(fate.copy) == damaged(fate.original)));
}

#[test]
fn jitter_is_the_same_at_a_time_whoever_asks_then() {
    for distribution in [Distribution::Uniform, Distribution::Normal, Distribution::Pareto] {
        let config = Direction { delay: Span::from_ms(20), jitter: jitter(distribution), ..nothing() };
        let every = fates(&config, &regular(20_000));
        let some: Vec<u64> = regular(20_000).into_iter().filter(|time| time % 97_000_000 == 0).collect();
        for (number, fate) in fates(&config, &some) {
            let same_time = some[number as usize - 1] / 1_000_000 + 1;
            assert_eq!(every[&same_time], fate);
        }
    }
}

proptest! {
    #[test]
    fn a_loss_shifts_no_other_impairment(
        loss in losses(), reorder: bool, correlation in prop_oneof![Just(0u32), 0u32..900_000],
        gaps in prop::collection::vec(0u64..5_000_000, 1..200),
    ) {
        let times: Vec<u64> = gaps.iter().scan(0, |now, gap| { *now += gap; Some(*now) }).collect();
        let whole = impaired(reorder, correlation);
        let lossy = Direction { loss: Some(loss), ..whole.clone() };
        let all = fates(&whole, &times);
        for (number, fate) in fates(&lossy, &times) {
            prop_assert_eq!(&all[&number], &fate);
        }
    }

    #[test]
    fn other_impairments_shift_no_loss(
        loss in losses(), reorder: bool, gaps in prop::collection::vec(0u64..5_000_000, 1..200),
    ) {
        let times: Vec<u64> = gaps.iter().scan(0, |now, gap| { *now += gap; Some(*now) }).collect();
        let alone = Direction { delay: Span::from_ms(20), loss: Some(loss.clone()), ..nothing() };
        let among_others = Direction { loss: Some(loss), ..impaired(reorder, 250_000) };
        let kept = |direction| fates(direction, &times).into_keys().collect::<Vec<_>>();
        prop_assert_eq!(kept(&alone), kept(&among_others));
    }

    #[test]
    fn a_full_queue_shifts_no_fate_of_those_it_lets_in(
        packets in 0u64..10, correlation in prop_oneof![Just(0u32), 0u32..900_000],
        gaps in prop::collection::vec(0u64..2_000_000, 1..200),
    ) {
        let times: Vec<u64> = gaps.iter().scan(0, |now, gap| { *now += gap; Some(*now) }).collect();
        let whole = Direction { rate: Some(rate(8_000_000)), ..impaired(true, correlation) };
        let queue = Queue::droptail(Some(Limit::Packets(packets)));
        let all = fates(&whole, &times);
        for (number, fate) in fates(&Direction { queue, ..whole.clone() }, &times) {
            let damaged = |fate: &Fate| (fate.original.map(|it| it.0), fate.copy.map(|it| it.0));
            prop_assert_eq!(damaged(&all[&number]), damaged(&fate));
        }
    }
}

#[test]
fn events_say_what_the_fates_say() {
    let config = Direction { corrupt: Some(chance(50_000, 0)), ..nothing() };
    let mut recorder = Recorder::default();
    crate::common::offer(&mut Link::new(&config, 7), 1000, 1000, Span::from_ms(1), &mut recorder);
    let damaged =
        fates(&config, &regular(1000)).into_iter().filter(|(_, fate)| fate.original == Some((true, 0)));
    assert_eq!(recorder.numbers(Event::Corrupt), damaged.map(|(number, _)| number).collect::<Vec<_>>());
}
