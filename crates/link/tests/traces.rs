//! A trace carries what was recorded, no more and no less.

use crate::common::{Numbered, Recorder, nothing};
use proptest::prelude::*;
use tcplab_link::config::Trace;
use tcplab_link::{Direction, Event, Link};
use tcplab_units::Time;

/// IP bytes that leave a link that is never idle, by the end of each repetition.
fn carried(trace: &Trace, frame_len: u32, repetitions: u64) -> Vec<u64> {
    let period = trace.opportunities_ms.last().expect("not empty") * 1_000_000;
    let direction = Direction { trace: Some(trace.clone()), ..nothing() };
    let mut link = Link::new(&direction, 1);
    let mut number = 0;
    (1..=repetitions)
        .map(|repetition| {
            let end = Time::from_ns(repetition * period);
            let enough = (trace.opportunities_ms.len() as u64 + 1) * 1500 / u64::from(frame_len - 14);
            for _ in 0..enough + 2 {
                number += 1;
                link.enqueue(
                    Numbered::new(number, frame_len),
                    Time::from_ns((repetition - 1) * period),
                    &mut (),
                );
            }
            link.advance(end, &mut ());
            link.stats().serialized * u64::from(frame_len - 14)
        })
        .collect()
}

/// Directory of traces to test with, if this machine has one.
fn shared_traces() -> Vec<(String, Trace)> {
    let Some(directory) = std::env::var("TCPLAB_TRACES").ok().filter(|directory| !directory.is_empty())
    else {
        eprintln!("skipped: TCPLAB_TRACES does not name a directory of traces in mahimahi's format");
        return Vec::new();
    };
    let entries = std::fs::read_dir(&directory).expect("TCPLAB_TRACES is readable");
    let traces: Vec<_> = entries
        .map(|entry| entry.expect("TCPLAB_TRACES is readable").path())
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a trace is text");
            let name = path.display().to_string();
            let line = |line: &str| line.parse().unwrap_or_else(|error| panic!("{name}: {line}: {error}"));
            let trace = Trace { opportunities_ms: text.lines().map(line).collect() };
            (name, trace)
        })
        .collect();
    assert!(!traces.is_empty(), "{directory} is empty");
    traces
}

#[test]
fn recorded_traces_carry_what_was_recorded() {
    for (name, trace) in shared_traces() {
        let recorded = trace.opportunities_ms.len() as u64 * 1500;
        assert_eq!(carried(&trace, 1514, 1), [recorded], "{name}");
    }
}

proptest! {
    #[test]
    fn a_busy_link_carries_the_traces_bytes_in_every_repetition(
        gaps in prop::collection::vec(0u64..5, 1..50), frame_len in 60u32..4000,
    ) {
        let mut at = 0;
        let mut opportunities_ms: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
        opportunities_ms.push(at + 1);
        // Opportunities at 0 ms are over before the first packet comes, but those of the next repetition fall
        // on the end of each one.
        let trace = Trace { opportunities_ms };
        let each = trace.opportunities_ms.len() as u64 * 1500;
        for (repetition, bytes) in (1..).zip(carried(&trace, frame_len, 3)) {
            let recorded = repetition * each;
            // Whole packets only: the last one may be unfinished.
            prop_assert!(bytes <= recorded);
            prop_assert!(bytes + u64::from(frame_len) > recorded);
        }
    }
}

#[test]
fn packets_that_find_the_queue_empty_wait_for_the_next_opportunity() {
    let trace = Some(Trace { opportunities_ms: vec![10, 20] });
    let mut link = Link::new(&Direction { trace, ..nothing() }, 1);
    let mut recorder = Recorder::default();
    for (number, ms) in [(1, 3), (2, 20), (3, 20)] {
        link.enqueue(Numbered::new(number, 514), Time::from_ns(ms * 1_000_000), &mut recorder);
    }
    crate::common::drain(&mut link, &mut recorder);
    assert_eq!(recorder.times(Event::Deliver), [10_000_000, 30_000_000, 30_000_000]);
}

#[test]
fn a_packet_waits_until_its_first_opportunity() {
    let trace = Some(Trace { opportunities_ms: vec![10, 20] });
    let mut link = Link::new(&Direction { trace, ..nothing() }, 1);
    link.enqueue(Numbered::new(1, 3014), Time::ZERO, &mut ());
    let mut waiting = |ms: u64| link.sample(Time::from_ns(ms * 1_000_000), &mut ()).packets;
    assert_eq!((waiting(9), waiting(10), waiting(19)), (1, 0, 0));
    assert_eq!(link.stats().serialized, 0);
}
