//! `--set PATH=VALUE`: settings changed from the command line.
//!
//! A path is keys joined by dots. An item of a list is named by its `name` or its number from 0, a link also by its
//! ends (`a-b`). The value is read as YAML, so that it is written as in the file.

use crate::document::{Document, Entry, Mark, Node, Source, Step, Value};
use crate::error::Mistake;
use crate::nearest::nearest;
use crate::quantity::{Read, quoted};
use crate::renamed;

/// The key that a short form gives, so that `--set flows.bulk.cc.beta=0.8` works on `cc: cubic`.
const SHORT_FORMS: [(&str, &str); 8] = [
    ("queue", "limit"),
    ("loss", "rate"),
    ("corrupt", "rate"),
    ("duplicate", "rate"),
    ("reorder", "rate"),
    ("jitter", "amount"),
    ("cc", "name"),
    ("capture", "what"),
];

/// Puts each override in its place; those that could not be placed are returned.
pub(crate) fn apply(document: &mut Document, sets: &[String]) -> Vec<Mistake> {
    let mut found = Vec::new();
    for text in sets {
        match Override::parse(text) {
            Ok(change) => {
                let mut root = document.root.clone();
                match change.replace(&mut root, 0, &mut Vec::new()) {
                    Ok(()) => document.root = root,
                    Err(mistake) => found.push(*mistake),
                }
            }
            Err(mistakes) => found.extend(mistakes),
        }
    }
    found
}

struct Override {
    keys: Vec<(String, Mark)>,
    value: Node,
}

impl Override {
    fn parse(text: &str) -> Result<Override, Vec<Mistake>> {
        let source = Source::new("--set", text);
        let length = text.chars().count();
        let Some((path, value)) = text.split_once('=') else {
            let mark = Mark::new(&source, 1, 1, length.max(1));
            let message = format!("{} has no `=`", quoted(text));
            return Err(vec![mark.mistake("", text, &message, &format!("{text}=VALUE"))]);
        };
        let mut keys = Vec::new();
        let mut column = 1;
        let written: Vec<&str> = path.split('.').collect();
        for (depth, key) in written.iter().enumerate() {
            let width = key.chars().count();
            let mark = Mark::new(&source, 1, column, width.max(1));
            if key.trim().is_empty() {
                return Err(vec![mark.mistake(path, "", "a key is missing in the path", "")]);
            }
            keys.push((renamed::override_key(&written, depth).trim().to_owned(), mark));
            column += width + 1;
        }
        if value.trim().is_empty() {
            let mark = Mark::new(&source, 1, length, 1);
            return Err(vec![mark.mistake(path, "", &format!("{} has no value", quoted(text)), "")]);
        }
        // Read in its place, so that what is wrong stands where it does in the override.
        let by = path.chars().count() + 1;
        match Document::parse(value.as_bytes(), "--set").and_then(Document::without_duplicates) {
            Ok(mut document) => {
                document.root.relocate(&source, by);
                Ok(Override { keys, value: document.root })
            }
            Err(mistakes) => Err(mistakes
                .iter()
                .map(|mistake| {
                    let column = if mistake.line <= 1 { mistake.column + by } else { mistake.column };
                    Mistake { line: 1, column, source: source.line(1).to_owned(), ..mistake.clone() }
                })
                .collect()),
        }
    }

    fn mistake(&self, depth: usize, message: &str, suggestion: &str) -> Box<Mistake> {
        let dotted: Vec<&str> = self.keys[..=depth].iter().map(|(key, _)| key.as_str()).collect();
        let (key, mark) = &self.keys[depth];
        Box::new(mark.mistake(&dotted.join("."), key, message, suggestion))
    }

    fn replace(&self, node: &mut Node, depth: usize, path: &mut Vec<Step>) -> Result<(), Box<Mistake>> {
        let Some((key, mark)) = self.keys.get(depth) else {
            *node = self.value.clone();
            return Ok(());
        };
        let last = depth + 1 == self.keys.len();
        match &mut node.value {
            Value::List(items) => {
                let index = self.item(items, depth, path)?;
                path.push(Step::Item(index));
                self.replace(&mut items[index], depth + 1, path)
            }
            Value::Mapping(entries) => {
                let number = entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
                    let empty = Node {
                        mark: mark.clone(),
                        value: Value::Mapping(Vec::new()),
                        written: String::new(),
                    };
                    entries.push(Entry { key: key.clone(), mark: mark.clone(), value: empty });
                    entries.len() - 1
                });
                let entry = &mut entries[number];
                if last {
                    entry.mark = mark.clone();
                } else {
                    long_form(key, &mut entry.value);
                }
                path.push(Step::Key(key.clone()));
                self.replace(&mut entry.value, depth + 1, path)
            }
            _ => {
                let above = &self.keys[depth.saturating_sub(1)].0;
                let message = format!("{} is a value, with no {} below it", quoted(above), quoted(key));
                Err(self.mistake(depth, &message, ""))
            }
        }
    }

    fn item(&self, items: &[Node], depth: usize, path: &[Step]) -> Result<usize, Box<Mistake>> {
        let key = self.keys[depth].0.as_str();
        let names: Vec<Option<String>> = items.iter().map(|item| name(item, path)).collect();
        if let Some(index) = names.iter().position(|known| known.as_deref() == Some(key)) {
            return Ok(index);
        }
        if let Some(index) = key.parse().ok().filter(|&index: &usize| index < items.len())
            && key.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Ok(index);
        }
        let every: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
        let near = nearest(key, every.iter().copied(), 0.4).or(every.first().copied()).unwrap_or_default();
        let what = match path.last() {
            Some(Step::Key(list)) => list.strip_suffix('s').unwrap_or(list),
            _ => "item",
        };
        Err(self.mistake(depth, &format!("unknown {what} {}", quoted(key)), near))
    }
}

/// Writes a short form out; anything else stays as it is.
fn long_form(key: &str, node: &mut Node) {
    let scalar = !matches!(node.value, Value::List(_) | Value::Mapping(_) | Value::Null);
    let is_kind =
        key == "queue" && matches!(node.read(), Read::Text(text) if text.starts_with(char::is_alphabetic));
    if let Some((_, short)) = SHORT_FORMS.iter().find(|(long, _)| *long == key)
        && scalar
    {
        let short = if is_kind && node.written != "unlimited" { &"kind" } else { short };
        let mark = node.mark.clone();
        let entry = Entry { key: (*short).to_owned(), mark: mark.clone(), value: node.clone() };
        *node = Node { mark, value: Value::Mapping(vec![entry]), written: String::new() };
    }
}

/// The name of a list item.
pub(crate) fn name(item: &Node, path: &[Step]) -> Option<String> {
    if let Some(name) = item.name() {
        return Some(name.to_owned());
    }
    if path.last() != Some(&Step::from("links")) {
        return None;
    }
    match &item.get("ends")?.value {
        Value::List(ends) => Some(ends.iter().map(|end| end.written.as_str()).collect::<Vec<_>>().join("-")),
        _ => None,
    }
}
