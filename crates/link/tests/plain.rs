//! A link whose departures are computed ahead delivers, drops and marks as one that goes step by step.

use crate::common::{Numbered, Recorder, nothing, rate};
use proptest::prelude::*;
use tcplab_link::config::{Droptail, Limit, Overhead, Queue};
use tcplab_link::{Direction, Event, Link, QueueSample};
use tcplab_units::{Span, Time};

fn limits() -> impl Strategy<Value = Option<Limit>> {
    prop::option::of(prop_oneof![
        (0u64..20).prop_map(Limit::Packets),
        (0u64..30_000).prop_map(Limit::Bytes),
        (0u64..20_000).prop_map(|us| Limit::Time(Span::from_us(us))),
    ])
}

fn links() -> impl Strategy<Value = Direction> {
    // At some rates a byte takes a whole number of nanoseconds.
    let bits = prop_oneof![Just(8_000_000u64), 100_000u64..1_000_000_000];
    let overheads = (0u32..40, 0u32..90, any::<bool>());
    (bits, limits(), limits(), overheads, (0u64..3_000).prop_map(Span::from_us)).prop_map(
        |(bits, limit, mark_above, (bytes, minimum, atm), delay)| Direction {
            rate: Some(rate(bits)),
            queue: Queue::Droptail(Droptail { limit, mark_above }),
            overhead: Overhead { bytes, minimum, atm },
            delay,
            ..nothing()
        },
    )
}

/// All that an observer of drops, marks and losses can see.
#[derive(Debug, PartialEq)]
struct Seen {
    events: Vec<(Event, Time, u64, u32)>,
    deliveries: Vec<(Time, Numbered)>,
    next_events: Vec<Time>,
    samples: Vec<(QueueSample, tcplab_link::Stats)>,
    held: Vec<usize>,
}

/// Offers packets after a gap in ns each, with their bytes; polls whenever the link asks, and samples before some.
fn seen(mut link: Link<Numbered>, arrivals: &[(u64, u32)]) -> Seen {
    let (mut recorder, mut now) = (Recorder::default(), Time::ZERO);
    let mut seen =
        Seen { events: vec![], deliveries: vec![], next_events: vec![], samples: vec![], held: vec![] };
    for (number, &(gap, len)) in (1..).zip(arrivals) {
        now += Span::from_ns(gap);
        while link.next_event() <= now {
            let at = link.next_event();
            seen.deliveries.extend(link.poll(at, &mut recorder));
        }
        if len % 3 == 0 {
            seen.samples.push((link.sample(now, &mut recorder), *link.stats()));
        }
        link.enqueue(Numbered::new(number, len), now, &mut recorder);
        seen.next_events.push(link.next_event());
        seen.held.push(link.held());
    }
    seen.deliveries.extend(
        crate::common::drain(&mut link, &mut recorder)
            .into_iter()
            .map(|(at, packet)| (Time::from_ns(at), packet)),
    );
    seen.samples.push((link.sample(Time::NEVER, &mut recorder), *link.stats()));
    seen.events = recorder.0;
    seen.events.retain(|(event, ..)| matches!(event, Event::Drop | Event::Mark));
    seen
}

proptest! {
    #[test]
    fn departures_computed_ahead_are_those_of_the_steps(
        direction in links(),
        arrivals in prop::collection::vec((prop_oneof![Just(0), 0u64..200_000, 0u64..5_000_000], 60u32..1515), 1..150),
    ) {
        prop_assert_eq!(
            seen(Link::ahead(&direction, 1), &arrivals),
            seen(Link::new(&direction, 1), &arrivals)
        );
    }
}
