//! Keys of an earlier version: read as what they are called now, with a warning.

use serde_json::Value;
use tcplab_scenario::{Document, Memory, plan, renamed_keys};

fn document(link: &str) -> Document {
    let text = format!(
        "tcplab: 1\nname: t\nnetwork:\n  nodes: [a, b]\n  links:\n    - {{name: core, ends: [a, b]{link}}}\n\
         flows:\n  - {{name: f, kind: ping, from: a, to: b}}\n"
    );
    Document::parse(text.as_bytes(), "t.yaml").expect("YAML")
}

fn rates(document: &Document, sets: &[&str]) -> [Value; 2] {
    let sets: Vec<String> = sets.iter().map(|&text| text.to_owned()).collect();
    let made = plan(document.clone(), &sets, &Memory::default()).unwrap_or_else(|said| panic!("{said}"));
    let link = &serde_json::to_value(made).expect("JSON")["links"][0];
    ["forward", "backward"].map(|way| link[way]["rate"].clone())
}

#[test]
fn a_links_backward_is_its_reverse() {
    let (old, new) = (document(", backward: {rate: 1 Mbit/s}"), document(", reverse: {rate: 1 Mbit/s}"));
    assert_eq!(rates(&old, &[])[1], 1_000_000);
    assert_eq!(rates(&old, &[]), rates(&new, &[]));
    assert_eq!(renamed_keys(&old, &[]), ["t.yaml:6:34: `backward` of a link is now called `reverse`"]);
    assert_eq!(renamed_keys(&new, &[]), [""; 0]);
}

#[test]
fn overrides_reach_it_by_either_name() {
    for given in
        [document(", backward: {rate: 1 Mbit/s}"), document(", reverse: {rate: 1 Mbit/s}"), document("")]
    {
        for key in ["backward", "reverse"] {
            assert_eq!(rates(&given, &[&format!("network.links.core.{key}.rate=2 Mbit/s")])[1], 2_000_000);
            assert_eq!(
                rates(&given, &[&format!("network.links.core.{key}={{rate: 3 Mbit/s}}")])[1],
                3_000_000
            );
        }
    }
    let set = "network.links.core.backward.rate=2 Mbit/s".to_owned();
    let expected = format!("--set {set}: `backward` of a link is now called `reverse`");
    assert_eq!(renamed_keys(&document(""), &[set]), [expected]);
}

#[test]
fn both_names_at_once_are_a_mistake() {
    let given = document(", backward: {rate: 1 Mbit/s}, reverse: {rate: 2 Mbit/s}");
    let said = plan(given, &[], &Memory::default()).expect_err("two names for one thing").to_string();
    assert!(said.contains("t.yaml:6:34: network.links.core.backward: unknown key `backward`"), "{said}");
}
