//! A browser's connections, together.

use crate::common::*;
use serde_json::{Value, json};

/// Pages over 10 Mbit/s and 40 ms, with `loss` of one packet in so many.
fn pages(streams: u32, web: Value, loss: Option<u64>) -> Run {
    let base = json!({
        "objects": 100, "sizes": [100_000], "popularity": "zipf", "page": 1, "ranges": 1, "think": 0,
        "count": 10,
    });
    let flow = with(
        flow("f", json!({"kind": "http", "cc": {"name": "cubic"}, "sender": {}, "receiver": {}})),
        json!({"streams": streams, "stop": null, "web": with(base, web)}),
    );
    let loss = loss.map(|packets| {
        json!({"model": {"kind": "every", "packets": packets, "first": packets}, "before_queue": false})
    });
    let mut plan = path(
        direction(10_000_000, 20 * MS),
        with(direction(10_000_000, 20 * MS), json!({"loss": loss})),
        vec![flow],
    );
    plan["duration"] = json!(60 * SECOND);
    run(&plan)
}

fn column(column: impl Iterator<Item = Option<i64>>) -> Vec<i64> {
    column.map(|value| value.expect("a value")).collect()
}

#[test]
fn every_object_of_every_page_comes_once() {
    let run = pages(4, json!({"page": 7, "think": 100 * MS}), Some(50));
    let fetches = &run.tables.fetches;
    let mut pages = column(fetches.page.iter());
    pages.sort_unstable();
    assert_eq!(pages, (0..10).flat_map(|page| [page; 7]).collect::<Vec<_>>());
    assert!(fetches.bytes.iter().all(|bytes| bytes == Some(100_000)));
    for stream in 0..4 {
        assert_eq!(run.tables.flows.complete.get(run.flow_stream("f", stream)), Some(true));
    }
    let received: i64 = run.tables.flows.bytes_received.iter().flatten().sum();
    assert_eq!(received, 70 * (100 + 250 + 100_000));
    assert!(run.stats.simulated.as_ns() < 60 * SECOND, "it ends by itself");
}

#[test]
fn the_first_byte_takes_a_round_trip_and_the_next_page_waits_for_the_thought() {
    let run = pages(2, json!({"sizes": [1000], "think": 500 * MS, "count": 3}), None);
    let fetches = &run.tables.fetches;
    let first = column(fetches.first_byte.iter());
    // 40 ms, and what the packets of 166 and up to 1316 B take at 10 Mbit/s.
    assert!(first.iter().all(|time| (40 * MS as i64..42 * MS as i64).contains(time)), "{first:?}");
    let (times, durations) = (column(fetches.time.iter()), column(fetches.duration.iter()));
    for page in 1..3 {
        assert_eq!(times[page], times[page - 1] + durations[page - 1] + 500 * MS as i64);
    }
}

#[test]
fn ranges_cover_the_object_and_parallel_ones_are_faster_on_a_path_with_loss() {
    let web = |ranges: u32| json!({"sizes": [3_000_001], "ranges": ranges, "count": 1});
    let [one, six] = [1, 6].map(|ranges| pages(6, web(ranges), Some(200)));
    let fetches = &six.tables.fetches;
    let mut ranges: Vec<_> =
        column(fetches.offset.iter()).into_iter().zip(column(fetches.bytes.iter())).collect();
    ranges.sort_unstable();
    assert_eq!(ranges.len(), 6);
    assert_eq!(ranges[0].0, 0);
    assert!(ranges.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0));
    assert_eq!(ranges[5].0 + ranges[5].1, 3_000_001);
    let last = |run: &Run| {
        let fetches = &run.tables.fetches;
        let times = column(fetches.time.iter());
        times.into_iter().zip(column(fetches.duration.iter())).map(|(time, took)| time + took).max()
    };
    assert!(last(&six) < last(&one), "{:?} and {:?} ns", last(&six), last(&one));
}

#[test]
fn a_flow_without_a_number_of_pages_stops_in_time() {
    let run = pages(3, json!({"count": null}), None);
    assert!(run.tables.fetches.page.iter().flatten().max() > Some(100));
    assert_eq!(run.tables.flows.complete.get(run.flow("f")), Some(true));
}

#[test]
fn the_connections_used_last_are_used_next() {
    let run = pages(4, json!({"page": 2}), None);
    let mut streams = column(run.tables.fetches.stream.iter());
    assert_eq!(streams.len(), 20);
    streams.sort_unstable();
    streams.dedup();
    assert_eq!(streams.len(), 2, "{streams:?}");
}
