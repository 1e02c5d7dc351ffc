//! Media that links share, in the language.

use serde_json::json;
use tcplab_plan::{Aggregation, Overhead, Plan};
use tcplab_scenario::{Document, Memory, plan};
use tcplab_units::Span;

fn read(media: &str, laptop: &str) -> Result<Plan, Vec<String>> {
    let text = format!(
        "tcplab: 1\nname: test\nnetwork:\n  nodes: [{{name: ap, kind: router}}, server, laptop, phone]\n  media: \
         {media}\n  links:\n    - {{ends: [server, ap], rate: 1 Gbit/s, delay: 10 ms}}\n    - {laptop}\n    - {{ends: \
         [ap, phone], medium: wifi, rate: 6 Mbit/s, forward: {{rate: 12 Mbit/s}}, overhead: ethernet}}\nflows:\n  - \
         {{name: bulk, kind: tcp, from: server, to: laptop}}\n"
    );
    Document::parse(text.as_bytes(), "test.yaml")
        .and_then(|document| plan(document, &[], &Memory::default()))
        // The messages, without the line that they show.
        .map_err(|said| {
            said.to_string().lines().filter(|l| l.starts_with("test.yaml")).map(str::to_owned).collect()
        })
}

const LAPTOP: &str = "{ends: [ap, laptop], medium: wifi, rate: 100 Mbit/s}";

fn refused(media: &str, laptop: &str) -> Vec<String> {
    read(media, laptop).expect_err(media)
}

#[test]
fn a_name_is_enough_for_a_medium() {
    let plan = read("[wifi]", LAPTOP).expect("a plan");
    let written = serde_json::to_value(&plan.media).expect("JSON");
    assert_eq!(
        written,
        json!([{
            "name": "wifi", "aifs": 43_000, "slot": 9000, "cw_min": 15, "cw_max": 1023, "preamble": 36_000,
            "ack": 48_000, "aggregation": {"frames": 64, "bytes": 65_535, "time": 4_000_000}, "retries": 7,
        }])
    );
    let [server, laptop, phone] = &plan.links[..] else { panic!("three links") };
    assert_eq!([&server.medium, &laptop.medium], [&None, &Some("wifi".to_owned())]);
    // The framing of a Wi-Fi, unless another is given.
    let wifi = Overhead { bytes: 28, ..Overhead::default() };
    assert_eq!((server.forward.overhead, laptop.backward.overhead), (Overhead::default(), wifi));
    assert_eq!(phone.forward.overhead.bytes, 24);
    assert_eq!(phone.forward.rate.map(|rate| rate.bits_per_sec()), Some(12_000_000));
    let lines = plan.describe();
    assert!(lines.iter().any(|line| line.ends_with("28 B of overhead a frame, on wifi")), "{lines:#?}");
    assert!(
        lines.contains(&"  wifi: transmissions of up to 64 frames, 65.535 kB and 4 ms, 7 retries".to_owned()),
        "{lines:#?}"
    );
}

#[test]
fn a_medium_has_times_limits_and_retries() {
    let plan = read(
        "[{name: wifi, slot: 20 us, aggregation: {frames: 1, time: 2 ms}, retries: 0, cw_min: 31}]",
        LAPTOP,
    )
    .expect("a plan");
    let medium = &plan.media[0];
    assert_eq!((medium.slot, medium.retries, medium.cw_min), (Span::from_us(20), 0, 31));
    let expected = Aggregation { frames: 1, time: Span::from_ms(2), ..Aggregation::default() };
    assert_eq!(medium.aggregation, expected);
}

#[test]
fn mistakes_are_reported_where_they_are() {
    assert_eq!(
        refused("[wlan]", LAPTOP),
        [
            "test.yaml:8:36: network.links.1.medium: unknown medium `wifi`",
            "test.yaml:9:35: network.links.2.medium: unknown medium `wifi`"
        ]
    );
    assert_eq!(
        refused("[wifi]", "{ends: [ap, laptop], medium: wifi}"),
        [
            "test.yaml:8:36: network.links.1.medium: a link on a medium needs a `rate`, at which its station sends"
        ]
    );
    assert_eq!(
        refused("[wifi, wifi]", LAPTOP),
        ["test.yaml:5:17: network.media.wifi: duplicate medium name `wifi`"]
    );
    assert_eq!(
        refused("[{name: wifi, slot: 0 us, aggregation: {frames: 0}, retries: 300}]", LAPTOP).len(),
        3
    );
    assert_eq!(refused("[{name: wifi, rate: 6 Mbit/s}]", LAPTOP).len(), 1);
}
