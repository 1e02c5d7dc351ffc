//! Jitter has the mean and the spread asked for at any packet rate, and keeps packets in order.

use crate::common::{Numbered, nothing, rate};
use tcplab_link::config::{Distribution, Jitter};
use tcplab_link::{Direction, Link};
use tcplab_units::{Span, Time};

const AMOUNT: u64 = 100_000;
const DELAY: u64 = 20_000_000;

/// The law with its mean and its 1st and 99th percentiles, in amounts.
const LAWS: [(Distribution, f64, f64, f64); 3] = [
    (Distribution::Uniform, 0.0, -0.98, 0.98),
    (Distribution::Normal, 0.0, -2.3263, 2.3263),
    // (0.01^(-1/3) - 1) and (0.99^(-1/3) - 1) times the scale of two amounts.
    (Distribution::Pareto, 1.0, 0.00671, 7.2832),
];

/// 100 µs of jitter that forgets itself within a few milliseconds, on 20 ms of delay.
fn shaken(distribution: Distribution) -> Direction {
    let correlation_time = Span::from_ns(10 * AMOUNT);
    let jitter = Some(Jitter { distribution, amount: Span::from_ns(AMOUNT), correlation_time });
    Direction { delay: Span::from_ns(DELAY), jitter, ..nothing() }
}

/// The variations of a link's delay, in amounts, for packets `gap` ns apart.
fn variations(direction: &Direction, gap: u64, packets: u64) -> Vec<f64> {
    let mut link = Link::new(direction, 1);
    let mut variations = Vec::new();
    let mut before = Time::ZERO;
    for number in 1..=packets {
        let now = Time::from_ns((number - 1) * gap);
        link.enqueue(Numbered::new(number, 100), now, &mut ());
        let until = if number == packets { now + Span::from_secs(100) } else { now };
        while let Some((at, packet)) = link.poll(until, &mut ()) {
            assert!(at >= before, "order is kept");
            before = at;
            let delay = at.as_ns() - (packet.number - 1) * gap;
            variations.push((delay as f64 - DELAY as f64) / AMOUNT as f64);
        }
    }
    assert_eq!(variations.len() as u64, packets);
    variations
}

#[test]
fn the_law_holds_from_ten_to_a_hundred_thousand_packets_a_second() {
    for (distribution, mean, first, last) in LAWS {
        for (per_second, packets) in [(10, 40_000), (1000, 100_000), (100_000, 3_000_000)] {
            let name = format!("{distribution:?} at {per_second}/s");
            let mut found = variations(&shaken(distribution), 1_000_000_000 / per_second, packets);
            let at = found.iter().sum::<f64>() / packets as f64;
            // 5 % of the amount, which is 0.25 per mille of the delay.
            assert!((at - mean).abs() < 0.05, "{name}: mean {at}, not {mean}");
            found.sort_by(f64::total_cmp);
            for (share, expected) in [(0.01, first), (0.99, last)] {
                let at = found[(packets as f64 * share) as usize];
                assert!((at - expected).abs() < 0.05 * last, "{name}: {share} at {at}, not {expected}");
            }
        }
    }
}

#[test]
fn a_busy_link_behind_which_others_wait_keeps_the_law() {
    // 50 Mbit/s of datagrams, and a probe among them every 10 ms: as its neighbours, so the probe.
    for (distribution, mean, ..) in LAWS {
        let direction = Direction { rate: Some(rate(1_000_000_000)), ..shaken(distribution) };
        let found = variations(&direction, 240_000, 400_000);
        let probes: Vec<f64> = found.iter().copied().step_by(42).collect();
        for values in [&found, &probes] {
            // 100 bytes at 1 Gbit/s take 0.008 of an amount.
            let at = values.iter().sum::<f64>() / values.len() as f64 - 0.008;
            assert!((at - mean).abs() < 0.05, "{distribution:?}: {at}");
        }
    }
}

#[test]
fn with_reordering_each_packet_has_a_delay_of_its_own() {
    let chance = crate::common::chance(0, 0);
    let reorder = Some(tcplab_link::config::Reorder { chance, by: None });
    for (distribution, mean, ..) in LAWS {
        let mut link = Link::new(&Direction { reorder, ..shaken(distribution) }, 1);
        let gap = Span::from_us(10);
        let deliveries = crate::common::offer(&mut link, 200_000, 100, gap, &mut ());
        assert!(!crate::common::numbers(&deliveries).is_sorted());
        let mut delays = vec![0.0; 200_000];
        for (at, packet) in deliveries {
            let left = (packet.number - 1) * gap.as_ns();
            delays[packet.number as usize - 1] = (at as f64 - left as f64 - DELAY as f64) / AMOUNT as f64;
        }
        let at = delays.iter().sum::<f64>() / 200_000.0;
        assert!((at - mean).abs() < 0.02, "{distribution:?}: {at}");
        // Neighbours have nothing in common.
        let product: f64 = delays.windows(2).map(|pair| (pair[0] - at) * (pair[1] - at)).sum();
        let square: f64 = delays.iter().map(|delay| (delay - at).powi(2)).sum();
        assert!((product / square).abs() < 0.01, "{distribution:?}: {}", product / square);
    }
}

#[test]
fn a_link_that_was_idle_meets_the_delay_of_its_time() {
    let direction = shaken(Distribution::Normal);
    let delay_at = |times: &[u64]| {
        let mut link = Link::new(&direction, 1);
        for (number, &time) in (1..).zip(times) {
            link.enqueue(Numbered::new(number, 100), Time::from_ns(time), &mut ());
        }
        crate::common::drain(&mut link, &mut ()).last().map(|delivery| delivery.0)
    };
    let hour = 3_600_000_000_000;
    assert_eq!(delay_at(&[hour]), delay_at(&[0, 5_000_000, hour / 2, hour]));
}
