//! Keys that had another name in an earlier version. They are read as before for one version, with a warning.

use crate::document::{Document, Node, Value};
use crate::error::Mistake;

/// A link's settings from its second end to its first.
const OLD: &str = "backward";
const NEW: &str = "reverse";

/// A warning for each key of a document, or of overrides, that has a new name.
pub fn renamed_keys(document: &Document, sets: &[String]) -> Vec<String> {
    let links = links(&document.root).map(Node::items).unwrap_or_default();
    let old = links.iter().flat_map(|link| link.entries().iter().filter(|entry| entry.key == OLD));
    let in_file = old.map(|entry| match entry.mark.mistake("", "", "", "") {
        Mistake { file, line: 0, .. } => format!("{file}: "),
        Mistake { file, line, column, .. } => format!("{file}:{line}:{column}: "),
    });
    let set = sets.iter().filter(|text| is_old(text.split('=').next().unwrap_or_default().split('.')));
    in_file
        .chain(set.map(|text| format!("--set {text}: ")))
        .map(|place| format!("{place}`{OLD}` of a link is now called `{NEW}`"))
        .collect()
}

/// Gives the keys of a document their new names. A link that has both keeps the old one, which is then unknown.
pub(crate) fn rename(document: &mut Document) {
    let Some(links) = links_mut(&mut document.root) else { return };
    for link in links {
        let has_new = link.get(NEW).is_some();
        if let Value::Mapping(entries) = &mut link.value
            && !has_new
        {
            entries
                .iter_mut()
                .filter(|entry| entry.key == OLD)
                .for_each(|entry| NEW.clone_into(&mut entry.key));
        }
    }
}

/// The key at this depth of an override by its new name.
pub(crate) fn override_key<'k>(keys: &[&'k str], depth: usize) -> &'k str {
    if depth == 3 && is_old(keys.iter().copied()) { NEW } else { keys[depth] }
}

fn is_old<'k>(mut keys: impl Iterator<Item = &'k str>) -> bool {
    let mut next = || keys.next().map(str::trim);
    next() == Some("network") && next() == Some("links") && next().is_some() && next() == Some(OLD)
}

fn links(root: &Node) -> Option<&Node> {
    root.get("network")?.get("links")
}

fn links_mut(root: &mut Node) -> Option<&mut Vec<Node>> {
    let mut node = root;
    for key in ["network", "links"] {
        let Value::Mapping(entries) = &mut node.value else { return None };
        node = &mut entries.iter_mut().find(|entry| entry.key == key)?.value;
    }
    match &mut node.value {
        Value::List(items) => Some(items),
        _ => None,
    }
}
