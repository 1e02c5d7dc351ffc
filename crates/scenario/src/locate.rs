//! Where in its text a part of a plan comes from.

use crate::document::{Document, Node, Step, Value};
use crate::error::Mistake;
use crate::overrides;

/// A mistake at the part of a scenario, overrides applied, that `place` in its plan comes from, such as `flows.bulk.cc`;
/// or at the nearest part around it. None if it comes from no part, as a default or the machine does.
pub fn located(document: &Document, sets: &[String], place: &str, message: &str) -> Option<Mistake> {
    let mut document = document.clone();
    // They were placed when the scenario was read.
    overrides::apply(&mut document, sets);
    let keys: Vec<&str> = place.split('.').collect();
    let steps = steps(&document.root, &keys);
    let mistake = || document.mistake(&steps, message, "", false);
    (!steps.is_empty()).then(|| Mistake { path: place.to_owned(), ..mistake() })
}

/// The steps that lead nearest. A plan has nodes and links at its top, a scenario in its network.
fn steps(root: &Node, keys: &[&str]) -> Vec<Step> {
    let network = root.get("network");
    match network {
        Some(network) if keys.first().is_some_and(|key| ["nodes", "links"].contains(key)) => {
            let mut steps = descend(network, keys);
            if let Some(shared) = shared(network, keys).filter(|_| steps.len() < 3) {
                steps = shared;
            }
            let is_named = steps.len() > 1;
            let generated = !is_named && network.get("topology").is_some();
            let below = if generated { vec![Step::from("topology")] } else { steps };
            [Step::from("network")].into_iter().chain(below).collect()
        }
        _ => descend(root, keys),
    }
}

/// The steps to a setting of a node or link that stands where several share it, or with the short form `path`.
fn shared(network: &Node, keys: &[&str]) -> Option<Vec<Step>> {
    let (places, below): (Vec<Vec<&str>>, _) = match keys {
        ["nodes", name, below @ ..] => {
            // With `per_flow` each flow has its own: left-FLOW.
            let side = name.split_once('-').map_or(*name, |(side, _)| side);
            (vec![vec!["path", side], vec!["hosts"]], below)
        }
        ["links", _, below @ ..] => (vec![vec!["path"]], below),
        _ => return None,
    };
    let found = |place: Vec<&str>| {
        let steps = descend(network, &[&place, below].concat());
        (steps.len() > place.len()).then_some(steps)
    };
    places.into_iter().find_map(found)
}

fn descend(mut node: &Node, mut keys: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some((key, below)) = keys.split_first() {
        match &node.value {
            Value::Mapping(_) => {
                let Some(child) = node.get(key) else { break };
                steps.push(Step::from(*key));
                (node, keys) = (child, below);
            }
            Value::List(items) => {
                let Some((item, taken)) = item(items, keys, &steps) else { break };
                steps.push(Step::Item(item));
                (node, keys) = (&items[item], &keys[taken..]);
            }
            _ => break,
        }
    }
    steps
}

/// The item that the keys name, and how many of them its name takes: it may hold dots. Flows between all hosts are
/// named after the item and their ends.
fn item(items: &[Node], keys: &[&str], list: &[Step]) -> Option<(usize, usize)> {
    let names: Vec<_> = items.iter().map(|item| overrides::name(item, list).unwrap_or_default()).collect();
    let named = |taken: usize| {
        let name = keys[..taken].join(".");
        Some((names.iter().position(|known| *known == name)?, taken))
    };
    let spread = || {
        let after = |name: &str| {
            let rest = keys[0].strip_prefix(name).unwrap_or_default();
            !name.is_empty() && rest.starts_with('-')
        };
        let item =
            (0..names.len()).filter(|&item| after(&names[item])).max_by_key(|&item| names[item].len())?;
        Some((item, 1))
    };
    (1..=keys.len()).rev().find_map(named).or_else(spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
network:
  topology: {kind: star, hosts: 3}
  nodes:
    - {name: r.1, kind: router}
    - plain
  links:
    - {ends: [plain, hub], rate: 1 Mbit/s}
flows:
  - {name: bulk, kind: tcp, cc: reno}
  - {name: mesh, kind: ping, between: all}
";

    fn at(place: &str, sets: &[&str]) -> (String, usize, usize) {
        let document = Document::parse(TEXT.as_bytes(), "f.yaml").expect("it is YAML");
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let mistake = located(&document, &sets, place, "is wrong").expect("a place");
        assert_eq!((mistake.path.as_str(), mistake.message.as_str()), (place, "is wrong"));
        (mistake.file, mistake.line, mistake.column)
    }

    fn in_file(place: &str) -> (usize, usize) {
        let (_, line, column) = at(place, &[]);
        (line, column)
    }

    #[test]
    fn what_is_written_is_found_by_its_names() {
        assert_eq!(in_file("flows.bulk"), (9, 5));
        assert_eq!(in_file("flows.bulk.cc"), (9, 33));
        assert_eq!(in_file("nodes.r.1.kind"), (4, 25));
        assert_eq!(in_file("nodes.plain"), (5, 7));
        assert_eq!(in_file("links.plain-hub.rate"), (7, 34));
    }

    #[test]
    fn what_is_derived_is_found_at_its_origin() {
        assert_eq!(in_file("links.h1-hub.forward"), (2, 3));
        assert_eq!(in_file("nodes.h1"), (2, 3));
        assert_eq!(in_file("flows.mesh-h1-h2.payload"), (10, 5));
        assert_eq!(in_file("flows.bulk.sender"), (9, 5));
        assert_eq!(in_file("flows.gone"), (8, 1));
        let document = Document::parse(TEXT.as_bytes(), "f.yaml").expect("it is YAML");
        assert_eq!(located(&document, &[], "emulator", "is wrong"), None);
    }

    #[test]
    fn what_is_shared_is_found_where_it_is_given() {
        let text = "network:\n  path: {rate: 1 Mbit/s, left: {cpus: 900}}\n  hosts: {cpus: 901}\n";
        let document = Document::parse(text.as_bytes(), "f.yaml").expect("it is YAML");
        let column = |place: &str| {
            let mistake = located(&document, &[], place, "is wrong").expect("a place");
            (mistake.line, mistake.column)
        };
        assert_eq!(column("nodes.left.cpus"), (2, 39));
        assert_eq!(column("nodes.left-bulk.cpus"), (2, 39));
        assert_eq!(column("nodes.right.cpus"), (3, 17));
        assert_eq!(column("links.path.rate"), (2, 16));
        assert_eq!(column("links.path.queue"), (1, 1));
    }

    #[test]
    fn what_an_override_gives_is_found_there() {
        assert_eq!(at("flows.bulk.cc", &["flows.bulk.cc=cubic"]), ("--set".to_owned(), 1, 15));
    }
}
