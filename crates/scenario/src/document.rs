//! A YAML text as plain data that remembers where each value stood: every key and value keeps its line and column.

mod source;
mod yaml;

use std::sync::Arc;

use crate::error::{Mistake, Mistakes};
use crate::quantity::Read;

pub use source::{Mark, Source};

const MAX_BYTES: usize = 1 << 20;
const MAX_VALUES: usize = 100_000;

/// A step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// An item of a list.
    Item(usize),
    /// A key of a mapping.
    Key(String),
}

impl From<&str> for Step {
    fn from(key: &str) -> Step {
        Step::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(item: usize) -> Step {
        Step::Item(item)
    }
}

/// A key's place and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key, as written.
    pub key: String,
    /// Where the key stands.
    pub mark: Mark,
    /// Its value.
    pub value: Node,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`, or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order written.
    Mapping(Vec<Entry>),
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where.
    pub mark: Mark,
    /// The value.
    pub value: Value,
    /// A scalar as written.
    pub written: String,
}

impl Node {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The entries of a mapping; none of anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// Whether it is a mapping.
    pub fn is_mapping(&self) -> bool {
        matches!(self.value, Value::Mapping(_))
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The value as messages quote it.
    pub fn read(&self) -> Read<'_> {
        match &self.value {
            Value::Null => Read::Nothing,
            Value::Bool(yes) => Read::Bool(*yes),
            Value::Int(number) => Read::Int(*number),
            Value::Float(number) => Read::Float(*number),
            Value::Text(text) => Read::Text(text),
            Value::List(_) => Read::List,
            Value::Mapping(_) => Read::Mapping,
        }
    }

    /// Moves it into another source, `by` columns to the right of where it stands.
    pub(crate) fn relocate(&mut self, source: &Arc<Source>, by: usize) {
        fn moved(mark: &mut Mark, source: &Arc<Source>, by: usize) {
            mark.source = source.clone();
            mark.column += if mark.line == 1 { by } else { 0 };
        }
        moved(&mut self.mark, source, by);
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.relocate(source, by)),
            Value::Mapping(entries) => {
                for entry in entries {
                    moved(&mut entry.mark, source, by);
                    entry.value.relocate(source, by);
                }
            }
            _ => {}
        }
    }

    /// The name of a list item: its `name`, or the item if it is a string.
    pub fn name(&self) -> Option<&str> {
        let named = if matches!(self.value, Value::Mapping(_)) { self.get("name")? } else { self };
        match &named.value {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    fn step(&self, step: &Step) -> Option<&Node> {
        match step {
            Step::Key(key) => self.get(key),
            Step::Item(index) => self.items().get(*index),
        }
    }

    /// How many values it holds, itself included.
    fn count(&self) -> usize {
        let inside: usize = match &self.value {
            Value::Mapping(entries) => entries.iter().map(|entry| entry.value.count()).sum(),
            Value::List(items) => items.iter().map(Node::count).sum(),
            _ => 0,
        };
        1 + inside
    }
}

/// A scenario's text, read.
#[derive(Clone, Debug)]
pub struct Document {
    /// The outermost value.
    pub root: Node,
    /// Mistakes of any plan or study in it.
    duplicates: Vec<Duplicate>,
}

/// A key that is given twice: the first is the one that is read.
#[derive(Clone, Debug)]
struct Duplicate {
    first: Mark,
    mistake: Mistake,
}

impl From<Node> for Document {
    fn from(root: Node) -> Document {
        Document { root, duplicates: Vec::new() }
    }
}

impl Document {
    /// The document of a YAML text called `name`. Duplicate keys leave the rest to be read.
    pub fn parse(text: &[u8], name: &str) -> Result<Document, Mistakes> {
        Document::parse_at_most(text, name, MAX_BYTES, MAX_VALUES)
    }

    /// The same without bounds on its length: of a file that tcplab wrote.
    pub fn parse_unbounded(text: &str, name: &str) -> Result<Document, Mistakes> {
        Document::parse_at_most(text.as_bytes(), name, usize::MAX, usize::MAX)?.without_duplicates()
    }

    /// The document, unless a key is given twice.
    pub(crate) fn without_duplicates(self) -> Result<Document, Mistakes> {
        if self.duplicates.is_empty() { Ok(self) } else { Err(Mistakes::new(self.duplicates())) }
    }

    /// The mistakes about keys that are given twice.
    pub(crate) fn duplicates(&self) -> Vec<Mistake> {
        self.duplicates.iter().map(|one| one.mistake.clone()).collect()
    }

    /// Where keys are given twice: nothing may be concluded from their values.
    pub(crate) fn doubtful(&self) -> Vec<Vec<Step>> {
        fn within(node: &Node, path: &mut Vec<Step>, known: &[Duplicate], found: &mut Vec<Vec<Step>>) {
            for entry in node.entries() {
                path.push(Step::Key(entry.key.clone()));
                let at = (entry.mark.line, entry.mark.column);
                if known.iter().any(|one| (one.first.line, one.first.column) == at) {
                    found.push(path.clone());
                }
                within(&entry.value, path, known, found);
                path.pop();
            }
            for (index, item) in node.items().iter().enumerate() {
                path.push(Step::Item(index));
                within(item, path, known, found);
                path.pop();
            }
        }
        let mut found = Vec::new();
        if !self.duplicates.is_empty() {
            within(&self.root, &mut Vec::new(), &self.duplicates, &mut found);
        }
        found
    }

    fn parse_at_most(text: &[u8], name: &str, bytes: usize, maximum: usize) -> Result<Document, Mistakes> {
        if text.len() > bytes {
            // Who read the file may have stopped there.
            let message = format!("the file has more than {bytes} bytes, the maximum of a scenario");
            return Err(Mistakes::new(vec![Mistake {
                file: name.to_owned(),
                message,
                ..Mistake::default()
            }]));
        }
        let text = decoded(text, name)?;
        let source = Source::new(name, text);
        let (root, duplicates) = yaml::read(text, &source, maximum).map_err(Mistakes::new)?;
        Ok(Document { root, duplicates })
    }

    /// The part of it at `path`, whose mistakes still say where they stand.
    pub fn part(&self, path: &[Step]) -> Option<Document> {
        Some(self.node(path)?.clone().into())
    }

    /// The value at `path`, if it is there.
    pub fn node(&self, path: &[Step]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, step| node.step(step))
    }

    /// The longest beginning of `path` that exists.
    pub fn known<'p>(&self, path: &'p [Step]) -> &'p [Step] {
        let mut node = &self.root;
        for (depth, step) in path.iter().enumerate() {
            match node.step(step) {
                Some(child) => node = child,
                None => return &path[..depth],
            }
        }
        path
    }

    /// Where the value at `path` stands, or the nearest value around it.
    pub fn value_mark(&self, path: &[Step]) -> &Mark {
        &self.node(self.known(path)).unwrap_or(&self.root).mark
    }

    /// Where the key of `path` stands; for a list item, the item.
    pub fn key_mark(&self, path: &[Step]) -> &Mark {
        let path = self.known(path);
        if let Some((Step::Key(key), around)) = path.split_last()
            && let Some(parent) = self.node(around)
            && let Some(entry) = parent.entries().iter().find(|entry| entry.key == *key)
        {
            return &entry.mark;
        }
        self.value_mark(path)
    }

    /// The path as a person writes it: list items by their name where they have one.
    pub fn dotted(&self, path: &[Step]) -> String {
        let mut parts = Vec::with_capacity(path.len());
        for (depth, step) in path.iter().enumerate() {
            parts.push(match step {
                Step::Key(key) => key.clone(),
                Step::Item(index) => {
                    let name = self.node(&path[..=depth]).and_then(Node::name);
                    name.map_or_else(|| index.to_string(), str::to_owned)
                }
            });
        }
        parts.join(".")
    }

    /// A mistake at `path`: at its value, or at its key where it concerns a whole mapping or list.
    pub fn mistake(&self, path: &[Step], message: &str, suggestion: &str, at_key: bool) -> Mistake {
        let node = self.node(path);
        let whole = node.is_some_and(|node| matches!(node.value, Value::Mapping(_) | Value::List(_)));
        let mark = if at_key || whole { self.key_mark(path) } else { self.value_mark(path) };
        mark.mistake(&self.dotted(path), node.map_or("", |node| &node.written), message, suggestion)
    }
}

fn decoded<'t>(text: &'t [u8], name: &str) -> Result<&'t str, Mistakes> {
    match std::str::from_utf8(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)) {
        Ok(text) => Ok(text),
        Err(error) => {
            let at = error.valid_up_to();
            let before = &text[..at];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            let column =
                at - before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1) + 1;
            let message = match text {
                [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "the file is UTF-16, not UTF-8".to_owned(),
                _ => format!("byte {:#04x} is not UTF-8", text[at]),
            };
            let file = name.to_owned();
            Err(Mistakes::new(vec![Mistake { file, line, column, message, ..Mistake::default() }]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> String {
        let read = Document::parse(text.as_bytes(), "f.yaml").and_then(Document::without_duplicates);
        read.expect_err("a mistake").to_string()
    }

    #[test]
    fn a_file_of_another_encoding_is_named() {
        let said = |text: &[u8]| Document::parse(text, "f.yaml").expect_err("a mistake").to_string();
        assert!(said(b"name: \xe9").contains("byte 0xe9 is not UTF-8"));
        for bytes in [b"\xff\xfen\0", b"\xfe\xff\0n"] {
            assert!(said(bytes).contains("the file is UTF-16, not UTF-8"));
        }
    }

    #[test]
    fn a_key_given_twice_names_its_first_line() {
        assert!(
            mistakes("a: 1\nb: 2\na: 3\n")
                .starts_with("f.yaml:3:1: duplicate key `a` (first in line 1)\n  3 | a: 3\n    | ^")
        );
    }

    #[test]
    fn what_a_text_can_cost_is_bounded() {
        let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
        assert!(mistakes(&deep).contains("nested more than 24 deep"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..8 {
            bomb += &format!("a{n}: &a{n} [{}]\n", [format!("*a{}", n - 1).as_str(); 10].join(", "));
        }
        assert!(mistakes(&bomb).contains("values once aliases are replaced"));
    }

    #[test]
    fn empty_files_and_tabs_and_anchors_are_reported() {
        assert!(mistakes("# nothing\n").contains("the file is empty"));
        assert!(mistakes("a:\n\tb: 1\n").contains(":2:1: a tab cannot indent in YAML; use spaces"));
        assert!(mistakes("a: *b\n").contains("the anchor `b` is not defined above"));
        assert!(mistakes("a: !!x {b: 1}\n").contains("the tag"));
    }
}
