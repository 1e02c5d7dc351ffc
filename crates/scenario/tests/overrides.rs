//! `--set`: what it reaches, and how it refuses.

use serde_json::Value;
use tcplab_scenario::{Document, Memory, plan};

const TEXT: &str = "tcplab: 1
name: test
network:
  path: {rate: 10 Mbit/s, rtt: 40 ms, queue: 50 ms}
flows:
  - {name: bulk, kind: tcp, cc: cubic}
  - {name: noise, kind: udp, rate: 1 Mbit/s}
";

fn read(text: &str, sets: &[&str]) -> Result<Value, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Document::parse(text.as_bytes(), "test.yaml")
        .and_then(|document| plan(document, &sets, &Memory::default()))
        .map(|made| serde_json::to_value(made).expect("JSON"))
        .map_err(|mistakes| mistakes.to_string())
}

fn made(sets: &[&str]) -> Value {
    read(TEXT, sets).unwrap_or_else(|said| panic!("{said}"))
}

#[test]
fn a_flow_is_named_or_numbered() {
    assert_eq!(made(&["flows.bulk.cc=bbr2"])["flows"][0]["cc"]["name"], "bbr2");
    assert_eq!(made(&["flows.1.rate=2 Mbit/s"])["flows"][1]["rate"], 2_000_000);
}

#[test]
fn the_last_override_wins() {
    assert_eq!(made(&["seed=2", "seed=3"])["seed"], 3);
}

#[test]
fn a_key_that_was_not_given_is_added_with_all_above_it() {
    let made = made(&["network.path.reverse.rate=1 Mbit/s", "sample.sockets=1 ms"]);
    assert_eq!(made["links"][0]["backward"]["rate"], 1_000_000);
    assert_eq!(made["sample"]["sockets"], 1_000_000);
}

#[test]
fn a_short_form_grows_where_needed() {
    let made = made(&["flows.bulk.cc.beta=0.8", "network.path.queue.kind=droptail"]);
    assert_eq!(made["flows"][0]["cc"]["params"]["beta"], 0.8);
    assert_eq!(made["links"][0]["forward"]["queue"]["limit"]["time"], 50_000_000);
}

#[test]
fn a_value_may_be_a_mapping_or_a_list() {
    let made =
        made(&["network.path.loss={rate: 1 %, correlation: 25 %}", "flows=[{name: only, kind: ping}]"]);
    assert_eq!(made["links"][0]["forward"]["loss"]["model"]["chance"]["correlation"], 250_000_000);
    assert_eq!(made["flows"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_override_of_a_shared_value_leaves_the_others() {
    let text = "tcplab: 1
name: test
network:
  nodes: [a, b, c]
  links:
    - {name: one, ends: [a, b], queue: &queue {limit: 10 packets}, rate: 1 Mbit/s}
    - {name: two, ends: [b, c], queue: *queue, rate: 1 Mbit/s}
flows:
  - {name: bulk, kind: tcp, from: a, to: b}
";
    let made = read(text, &["network.links.one.queue.limit=99 packets"]).expect("a plan");
    let limit = |link: usize| made["links"][link]["forward"]["queue"]["limit"]["packets"].clone();
    assert_eq!([limit(0), limit(1)], [99, 10]);
}

#[test]
fn a_refused_override_looks_like_any_other_mistake() {
    let refusal = |set: &str| read(TEXT, &[set]).expect_err(set);
    assert_eq!(
        refusal("flows.blk.cc=reno"),
        "--set:1:7: flows.blk: unknown flow `blk`\n  1 | flows.blk.cc=reno\n    |       ^^^\n  did you mean `bulk`?"
    );
    assert_eq!(
        refusal("network.path.rate=50mbps"),
        "--set:1:19: network.path.rate: `50mbps`: unknown unit `mbps`\n  1 | network.path.rate=50mbps\n    |                   \
         ^^^^^^\n  did you mean `50 Mbit/s`?"
    );
    for set in ["", "=", "seed", "seed=", ".=1", "a..b=1", "seed.x=1", "flows.9.cc=reno", "a=\""] {
        assert!(refusal(set).starts_with("--set:1:"), "{set}");
    }
}

#[test]
fn mistakes_of_the_file_and_of_overrides_come_together() {
    let said = read(&TEXT.replace("40 ms", "40"), &["seed=x"]).expect_err("two mistakes");
    assert!(said.starts_with("test.yaml:4:") && said.contains("\n--set:1:"), "{said}");
}
