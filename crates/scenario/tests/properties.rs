//! Whatever is written, reading ends with a plan or with mistakes that point into the text.

use proptest::prelude::*;
use tcplab_scenario::{Document, Memory, plan};

const VALUES: [&str; 26] = [
    "5",
    "-1",
    "off",
    "on",
    "1 s",
    "10 ms",
    "1.5 BDP",
    "0 packets",
    "7 packets",
    "x",
    "1 MB",
    "5 kbps",
    "3 %",
    "101 %",
    "[a, b]",
    "{}",
    "[]",
    "{rate: 1 %}",
    "unlimited",
    "1e3 s",
    "2 Mbit/s",
    "0 B",
    "cubic",
    "{name: cubic, beta: 1}",
    "",
    "1..100",
];
const KEYS: [&str; 24] = [
    "rate", "rtt", "loss", "queue", "delay", "jitter", "name", "kind", "cc", "streams", "start", "stop",
    "duration", "window", "mss", "limit", "from", "to", "ip", "reverse", "at", "per_flow", "mtu", "ecn",
];
const SCENARIO: &str = include_str!("../../../scenarios/link-changes.yaml");

/// Where a key or a value stands in the text.
fn words(text: &str) -> Vec<(usize, usize, bool)> {
    let mut found = Vec::new();
    for (start, _) in text.char_indices().filter(|(_, c)| *c == ':') {
        let key =
            text[..start].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        found.push((key, start, true));
        if text[start..].starts_with(": ") {
            let from = start + 2;
            let to = text[from..].find([',', '}', ']', '\n', '#']).map_or(text.len(), |at| from + at);
            found.push((from, to, false));
        }
    }
    found
}

fn altered(edits: &[(usize, usize)]) -> String {
    let mut text = SCENARIO.to_owned();
    for (place, choice) in edits {
        let places = words(&text);
        let (from, to, key) = places[place % places.len()];
        let with = if key { KEYS[choice % KEYS.len()] } else { VALUES[choice % VALUES.len()] };
        text.replace_range(from..to, with);
    }
    text
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(?s).{0,200}") {
        let _ = Document::parse(text.as_bytes(), "f").and_then(|read| plan(read, &[], &Memory::default()));
    }

    #[test]
    fn an_altered_scenario_is_a_plan_or_its_mistakes_stand_in_its_lines(
        edits in proptest::collection::vec((0..1000_usize, 0..1000_usize), 1..5),
    ) {
        let text = altered(&edits);
        let lines: Vec<&str> = text.lines().collect();
        match Document::parse(text.as_bytes(), "f").and_then(|read| plan(read, &[], &Memory::default())) {
            Ok(made) => {
                let json = serde_json::to_string(&made).expect("JSON");
                prop_assert_eq!(serde_json::from_str::<tcplab_plan::Plan>(&json).expect("a plan"), made);
            }
            Err(mistakes) => {
                prop_assert!(!mistakes.is_empty());
                for mistake in mistakes.iter() {
                    prop_assert!((1..=lines.len() + 1).contains(&mistake.line), "{}", mistake);
                    prop_assert!(!mistake.message.contains("cannot be read: "), "{}", mistake);
                }
            }
        }
    }

    #[test]
    fn any_override_is_applied_or_refused(set in "[a-z0-9.=\\[\\]{}: \"]{0,40}") {
        let read = Document::parse(SCENARIO.as_bytes(), "f").expect("a shipped scenario");
        if let Err(mistakes) = plan(read, &[set], &Memory::default()) {
            prop_assert!(mistakes.iter().all(|mistake| mistake.file == "--set" || mistake.line > 0));
        }
    }
}
