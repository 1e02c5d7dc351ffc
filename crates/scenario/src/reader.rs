//! Walks a document and the language's schema together: a JSON value in base units comes out, and every mistake.
//!
//! Rejected values are left out, or replaced by a stand-in where the rest needs one, so that the remainder can be
//! checked further. The places that were rejected are kept, because nothing may be concluded from them.

mod chosen_keys;

use serde_json::{Map, Value as Json, json};

use crate::document::{Document, Entry, Node, Step, Value};
use crate::error::Mistake;
use crate::quantity::{Dimension, Read, format, quoted};
use crate::rules;
use crate::scalar;
use crate::suggestions;

/// So many keys or fewer are listed where one is unknown and none is near.
const FEW_KEYS: usize = 10;

/// Steps from the root of the document.
pub(crate) type Path = Vec<Step>;

/// The result of reading a document.
pub(crate) struct Reading {
    /// Values in base units; none if the whole was refused.
    pub(crate) value: Option<Json>,
    /// The error message.
    pub(crate) found: Vec<Mistake>,
    /// Where something was refused, and what stands there now is a stand-in or a default.
    pub(crate) refused: Vec<Path>,
}

/// Reads `document` by `schema`, the root of a schema with its definitions.
pub(crate) fn read(document: &Document, schema: &Json) -> Reading {
    let mut reader =
        Reader { document, root: schema, around: Vec::new(), found: Vec::new(), refused: Vec::new() };
    let value = reader.value(&document.root, &mut Vec::new(), schema);
    Reading { value, found: reader.found, refused: reader.refused }
}

struct Reader<'d> {
    document: &'d Document,
    root: &'d Json,
    /// The mappings that are being read, outermost first: length of the path to each, and its keys.
    around: Vec<(usize, Vec<&'d str>)>,
    found: Vec<Mistake>,
    refused: Vec<Path>,
}

/// A mapping's keys: the schema of each, and which must be there.
#[derive(Default, Clone)]
struct Shape<'d> {
    properties: Vec<(&'d str, &'d Json)>,
    required: Vec<&'d str>,
}

impl<'d> Reader<'d> {
    fn refuse(&mut self, path: &[Step], message: &str, suggestion: &str, at_key: bool) {
        self.found.push(self.document.mistake(path, message, suggestion, at_key));
        self.refused.push(path.to_vec());
    }

    /// Follows references and leaves out the alternative `null`, which no one writes.
    fn resolved(&self, mut schema: &'d Json) -> &'d Json {
        loop {
            if schema.get("x-tcplab").is_some() {
                return schema;
            }
            if schema.get("properties").is_none()
                && let Some(reference) = schema.get("$ref").and_then(Json::as_str)
            {
                match self.root.pointer(reference.trim_start_matches('#')) {
                    Some(definition) => schema = definition,
                    None => return schema,
                }
            } else if let Some(options) = schema.get("anyOf").and_then(Json::as_array)
                && let Some(option) = options.iter().find(|option| option.get("type") != Some(&json!("null")))
                && options.len() == 2
            {
                schema = option;
            } else {
                return schema;
            }
        }
    }

    fn value(&mut self, node: &Node, path: &mut Path, schema: &'d Json) -> Option<Json> {
        if matches!(node.value, Value::Null) && !path.is_empty() {
            let shown = match path.last() {
                Some(Step::Key(key)) => quoted(key),
                Some(Step::Item(index)) => quoted(&index.to_string()),
                None => String::new(),
            };
            let resolved = self.resolved(schema);
            let example = match path.last() {
                Some(Step::Key(key)) if self.takes_nothing(resolved) => format!("{key}: {{}}"),
                _ => String::new(),
            };
            self.refuse(path, &format!("{shown} has no value"), &example, true);
            return None;
        }
        let schema = self.resolved(schema);
        match schema.get("x-tcplab").and_then(Json::as_str) {
            Some("at") => return self.changes(node, path, schema),
            Some("control") => return self.control(node, path),
            Some("sysctls") => return self.sysctls(node, path),
            Some(kind) => return self.scalar(kind, node, path, schema),
            None => {}
        }
        match schema.get("type").and_then(Json::as_str) {
            Some("boolean") => return self.scalar("switch", node, path, schema),
            Some("integer") => return self.scalar("integer", node, path, schema),
            _ => {}
        }
        if let Some(words) = words_of(schema) {
            return self.word(node, path, &words);
        }
        if is_list(schema) {
            return self.list(node, path, schema);
        }
        if let Some(inside) = schema.get("additionalProperties")
            && inside.is_object()
        {
            return self.named(node, path, inside);
        }
        self.mapping(node, path, schema)
    }

    /// A value of a kind, within the bounds that its schema sets.
    fn scalar(&mut self, kind: &str, node: &Node, path: &[Step], schema: &Json) -> Option<Json> {
        let bound = |key| schema.get(key).and_then(Json::as_u64);
        match scalar::bounded(kind, node, bound("minimum"), bound("maximum"))? {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.refuse(path, &wrong.message, &wrong.suggestion, false);
                None
            }
        }
    }

    fn word(&mut self, node: &Node, path: &[Step], words: &[&str]) -> Option<Json> {
        let read = node.read();
        let written = match &read {
            // `true` and `false` mean `on` and `off` wherever those are words.
            Read::Bool(yes) if words.contains(&"on") => if *yes { "on" } else { "off" }.to_owned(),
            Read::Text(text) => (*text).to_owned(),
            other => other.shown().trim_matches('`').to_owned(),
        };
        if words.contains(&written.as_str()) {
            return Some(json!(written));
        }
        let choice = if words.len() > 2 { "one of " } else { "" };
        let message = format!("{} is not {choice}{}", read.shown(), suggestions::listed(words, "or"));
        let near = match words {
            [only] => (*only).to_owned(),
            _ => suggestions::near_word(&written, words),
        };
        self.refuse(path, &message, &near, false);
        None
    }

    fn list(&mut self, node: &Node, path: &mut Path, schema: &'d Json) -> Option<Json> {
        let Value::List(items) = &node.value else {
            let message = format!("expected a list, found {}", node.read().shown());
            let one_is_enough = schema.get("minItems").and_then(Json::as_u64).unwrap_or(0) <= 1;
            let written = node.read().written().filter(|_| one_is_enough);
            let list = match written {
                Some(written) => format!("[{written}]"),
                None => suggestions::list_meant(node),
            };
            self.refuse(path, &message, &list, false);
            return None;
        };
        let item_schema = schema.get("items")?;
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            path.push(Step::Item(index));
            let value = self.value(item, path, item_schema);
            path.pop();
            if let Some(mut value) = value {
                // Where it stands, for items before it may be refused and left out.
                if let Json::Object(keys) = &mut value {
                    keys.insert("#".to_owned(), json!(index));
                }
                values.push(value);
            }
        }
        let bound = |key: &str| schema.get(key).and_then(Json::as_u64).map(|bound| bound as usize);
        let (minimum, maximum) = (bound("minItems").unwrap_or(0), bound("maxItems").unwrap_or(usize::MAX));
        if values.len() < items.len() {
            // One that is no more: what is said of the items as a whole is not concluded from the rest.
            self.refused.push([path.as_slice(), &[Step::Key("*".to_owned())]].concat());
            if values.len() < minimum {
                self.refused.push(path.clone());
                return None;
            }
        } else if items.len() < minimum {
            let (message, example) = match path.last() {
                Some(Step::Key(key)) if items.is_empty() => {
                    ("the list is empty".to_owned(), suggestions::example(key, schema))
                }
                _ => (format!("the list is too short: the minimum length is {minimum}"), String::new()),
            };
            self.refuse(path, &message, &example, false);
            return None;
        } else if items.len() > maximum {
            self.refuse(path, &format!("the list is too long: it takes at most {maximum}"), "", false);
            return None;
        }
        Some(Json::Array(values))
    }

    /// The keys of a mapping, those of what it refers to included.
    fn shape(&self, schema: &'d Json, into: &mut Shape<'d>) {
        if let Some(properties) = schema.get("properties").and_then(Json::as_object) {
            into.properties.extend(properties.iter().map(|(key, schema)| (key.as_str(), schema)));
        }
        if let Some(required) = schema.get("required").and_then(Json::as_array) {
            into.required.extend(required.iter().filter_map(Json::as_str));
        }
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str)
            && let Some(definition) = self.root.pointer(reference.trim_start_matches('#'))
        {
            self.shape(definition, into);
        }
    }

    /// Whether a mapping without keys is a valid value.
    fn takes_nothing(&self, schema: &'d Json) -> bool {
        let mut shape = Shape::default();
        self.shape(schema, &mut shape);
        !shape.properties.is_empty() && shape.required.is_empty() && schema.get("oneOf").is_none()
    }

    /// The mapping that was probably meant by a value: of the first key that takes it; or without keys, where none is needed.
    fn meant_mapping(&self, node: &Node, schema: &'d Json) -> String {
        if !self.takes_nothing(schema) {
            return String::new();
        }
        let read = node.read();
        let mut shape = Shape::default();
        self.shape(schema, &mut shape);
        let takes = |schema: &&Json| match schema.get("x-tcplab").and_then(Json::as_str) {
            Some("control") => matches!(read, Read::Text(text) if !text.contains(' ')),
            Some("switch" | "text" | "name") | None => false,
            Some(kind) => scalar::bounded(kind, node, None, None).is_some_and(|read| read.is_ok()),
        };
        let switch = matches!(read, Read::Bool(_) | Read::Text("on" | "off" | "yes" | "no"));
        let short = schema.get("x-short").and_then(Json::as_str);
        let short = shape.properties.iter().find(|(key, _)| Some(*key) == short);
        if switch && let Some(words) = short.and_then(|(_, schema)| words_of(self.resolved(schema))) {
            let on = matches!(read, Read::Bool(true) | Read::Text("on" | "yes"));
            let meant = words.iter().find(|word| on != matches!(**word, "none" | "off"));
            return meant.copied().unwrap_or_default().to_owned();
        }
        let key = shape.properties.iter().find(|(_, schema)| !switch && takes(&self.resolved(schema)));
        match (key, read.written()) {
            (Some((key, _)), Some(written)) => format!("{{{key}: {written}}}"),
            _ => "{}".to_owned(),
        }
    }

    fn mapping(&mut self, node: &Node, path: &mut Path, schema: &'d Json) -> Option<Json> {
        let short = schema.get("x-short").and_then(Json::as_str);
        let is_short = match node.value {
            Value::Text(_) | Value::Int(_) | Value::Float(_) => true,
            Value::List(_) => schema.get("x-short-list").is_some(),
            _ => false,
        };
        if !(node.is_mapping() || short.is_some() && is_short) {
            let message = format!("expected a mapping of keys, found {}", node.read().shown());
            let meant = self.meant_mapping(node, schema);
            self.refuse(path, &message, &meant, false);
            return None;
        }
        let mut shape = Shape::default();
        self.shape(schema, &mut shape);
        let mut values = Map::new();
        let mut rule = schema.get("x-rule");
        let mut has_kinds = false;
        let mut unsure = false;
        let mut is_short = is_short;
        if let Some(kinds) = schema.get("oneOf").and_then(Json::as_array) {
            let bare = if is_short { self.bare_kind(node, path, kinds)? } else { None };
            is_short &= bare.is_none();
            let given = self.kind_given(node, kinds, &shape);
            let has_default = schema.get("x-default").is_some();
            let (kind, variant) = match bare {
                Some(named) => named,
                None => {
                    let refused_before = self.refused.len();
                    let chosen = self.kind(node, given, path, schema, kinds);
                    unsure = !has_default && self.refused.len() > refused_before;
                    chosen?
                }
            };
            has_kinds = true;
            rule = rule.or(variant.get("x-rule"));
            // The default is left out where no kind was given: a change names none.
            if bare.is_some() || given.is_some() || !has_default {
                values.insert("kind".to_owned(), json!(kind));
            }
            self.shape(variant, &mut shape);
            shape.properties.retain(|(key, _)| *key != "kind");
            shape.required.retain(|key| *key != "kind" && schema.get("x-change").is_none());
        }
        if let (Some(short), true) = (short, is_short) {
            let (_, schema) = shape.properties.iter().find(|(key, _)| *key == short)?;
            match self.value(node, path, schema) {
                Some(value) => _ = values.insert(short.to_owned(), value),
                None => _ = values.insert(short.to_owned(), self.stand_in(schema)),
            }
            return Some(Json::Object(values));
        }
        let refused_before = self.refused.len();
        let meant = self.unknown_keys(node, path, &shape, has_kinds);
        self.around.push((path.len(), shape.properties.iter().map(|(key, _)| *key).collect()));
        for (key, schema) in &shape.properties {
            let required = shape.required.contains(key);
            path.push(Step::Key((*key).to_owned()));
            let value = match node.get(key) {
                Some(child) => {
                    let value = self.value(child, path, schema);
                    if value.is_none() && (required || *key == "rate") {
                        Some(self.stand_in(schema))
                    } else {
                        value
                    }
                }
                None if required => {
                    // A misspelt key is not missing as well.
                    if !meant.iter().any(|meant| meant == key) {
                        let around = &path[..path.len() - 1];
                        let message = format!("{} is missing", quoted(key));
                        let example = suggestions::example(key, schema);
                        self.found.push(self.document.mistake(around, &message, &example, true));
                        self.refused.push(path.clone());
                    }
                    Some(self.stand_in(schema))
                }
                None => None,
            };
            path.pop();
            if let Some(value) = value {
                values.insert((*key).to_owned(), value);
            }
        }
        self.around.pop();
        if unsure {
            self.refused.push(path.clone());
            return None;
        }
        let values = Json::Object(values);
        if let Some(rule) = rule.and_then(Json::as_str) {
            let whole = self.refused.len() == refused_before;
            let kept = rules::check_keys(rule, node, whole)
                .and_then(|()| if whole { rules::check(rule, &values) } else { Ok(()) });
            if let Err((message, suggestion)) = kept {
                self.refuse(path, &message, &suggestion, false);
                return None;
            }
        }
        Some(values)
    }

    /// A mapping's `kind`, or the key that was probably meant by it.
    fn kind_given<'n>(&self, node: &'n Node, kinds: &'d [Json], common: &Shape<'d>) -> Option<&'n Entry> {
        let entries = node.entries();
        if let Some(kind) = entries.iter().find(|entry| entry.key == "kind") {
            return Some(kind);
        }
        let mut shape = common.clone();
        kinds.iter().for_each(|variant| self.shape(variant, &mut shape));
        let known: Vec<&str> = shape.properties.iter().map(|(key, _)| *key).collect();
        let given: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        entries.iter().find(|entry| {
            !known.contains(&entry.key.as_str())
                && suggestions::near_key(&entry.key, &known, &given) == "kind"
        })
    }

    /// The variant that a mapping's `kind` names, or was probably meant by it.
    fn kind(
        &mut self,
        node: &Node,
        given: Option<&Entry>,
        path: &mut Path,
        schema: &'d Json,
        kinds: &'d [Json],
    ) -> Option<(&'d str, &'d Json)> {
        let names = kind_names(kinds);
        let by_name = |name: &str| variant_of(kinds, name);
        let default = schema.get("x-default").and_then(Json::as_str);
        let text = |key, otherwise| schema.get(key).and_then(Json::as_str).unwrap_or(otherwise);
        let noun = text("x-noun", "flow");
        let Some(Entry { key, value: given, .. }) = given else {
            return match default {
                Some(default) => {
                    // A change of what there is need not repeat its kind.
                    let changed = schema.get("x-change").and_then(|_| {
                        let kinds = std::iter::once(default).chain(names.iter().copied());
                        kinds.filter_map(by_name).find(|(_, kind)| self.has_all_keys(kind, node))
                    });
                    changed.or_else(|| by_name(default))
                }
                None => {
                    let message = "`kind` is missing".to_owned();
                    self.refuse(path, &message, text("x-example", "kind: tcp"), true);
                    None
                }
            };
        };
        path.push(Step::Key(key.clone()));
        let read = given.read();
        let text = if let Read::Text(text) = read { text } else { "" };
        let chosen = by_name(text).or_else(|| {
            let near = suggestions::near_word(text, &names);
            match (&given.value, default) {
                // Its key is answered.
                _ if key != "kind" && text.is_empty() => {}
                (Value::Null, _) => {
                    self.refuse(path, &format!("{} has no value", quoted(key)), "", true);
                    return default.and_then(by_name);
                }
                (_, Some(_)) => _ = self.word(given, path, &names),
                (_, None) => {
                    let kinds = suggestions::listed(&names, "and");
                    let message = format!("{} is not a kind of {noun}: {kinds}", read.shown());
                    self.refuse(path, &message, &near, false);
                }
            }
            // The other keys are read as those of the kind that was probably meant.
            by_name(&near)
        });
        if chosen.is_none() && key != "kind" {
            self.refuse(path, &format!("unknown key {}", quoted(key)), "kind", true);
        }
        path.pop();
        if chosen.is_none() {
            self.refused.push(path.clone());
        }
        chosen
    }

    /// Whether every key of a mapping is one of `schema`.
    fn has_all_keys(&self, schema: &'d Json, node: &Node) -> bool {
        let mut shape = Shape::default();
        self.shape(schema, &mut shape);
        node.entries().iter().all(|entry| shape.properties.iter().any(|(known, _)| *known == entry.key))
    }

    /// The variant whose `kind` is all that is written (`queue: fq_codel`); none: it is the value of the short form.
    /// None at all: it is neither, and refused.
    #[expect(clippy::option_option, reason = "refused, or not a kind")]
    fn bare_kind(
        &mut self,
        node: &Node,
        path: &[Step],
        kinds: &'d [Json],
    ) -> Option<Option<(&'d str, &'d Json)>> {
        let Read::Text(text) = node.read() else { return Some(None) };
        if let Some(named) = variant_of(kinds, text) {
            return Some(Some(named));
        }
        let names = kind_names(kinds);
        if text.chars().any(|c| c.is_ascii_digit()) || suggestions::near_word(text, &names).is_empty() {
            return Some(None);
        }
        self.word(node, path, &names);
        None
    }

    /// The keys whose mappings have `key`.
    fn holders(&self, key: &str, shape: &Shape<'d>) -> Vec<&'d str> {
        let holds = |schema: &'d Json| {
            let mut inside = Shape::default();
            self.shape(self.resolved(schema), &mut inside);
            inside.properties.iter().any(|(known, _)| *known == key)
        };
        shape.properties.iter().filter(|(_, schema)| holds(schema)).map(|(holder, _)| *holder).collect()
    }

    /// The key of `path` whose neighbour `key` may be.
    fn beside(&self, key: &str, path: &[Step]) -> Option<String> {
        let (depth, _) = self.around.iter().rev().find(|(_, keys)| keys.contains(&key))?;
        path[*depth..].iter().find_map(|step| match step {
            Step::Key(key) => Some(key.clone()),
            Step::Item(_) => None,
        })
    }

    /// Refuses keys that are unknown. Those that were probably meant are refused too, and returned.
    fn unknown_keys(&mut self, node: &Node, path: &mut Path, shape: &Shape<'d>, kind: bool) -> Vec<String> {
        let mut known: Vec<&str> = shape.properties.iter().map(|(key, _)| *key).collect();
        if kind {
            known.push("kind");
        }
        let given: Vec<&str> = node.entries().iter().map(|entry| entry.key.as_str()).collect();
        let mut meant = Vec::new();
        for key in &given {
            if !known.contains(key) {
                path.push(Step::Key((*key).to_owned()));
                let mut near = suggestions::near_key(key, &known, &given);
                let mut message = format!("unknown key {}", quoted(key));
                let holders = self.holders(key, shape);
                if !holders.is_empty() {
                    near.clear();
                }
                if near.is_empty() {
                    let keys = if holders.is_empty() {
                        let all = || format!("the keys are {}", suggestions::listed(&known, "and"));
                        (known.len() <= FEW_KEYS).then(all)
                    } else {
                        Some(format!("it is a key of {}", suggestions::listed(&holders, "and of")))
                    };
                    let beside = |key: String| format!("it may stand beside {}", quoted(&key));
                    let beside = self.beside(key, path).map(beside);
                    let hints: Vec<String> = keys.into_iter().chain(beside).collect();
                    if !hints.is_empty() {
                        message += &format!(": {}", hints.join("; "));
                    }
                }
                self.refuse(path, &message, &near, true);
                path.pop();
                if !near.is_empty() && !given.contains(&near.as_str()) {
                    self.refused.push([path.as_slice(), &[Step::Key(near.clone())]].concat());
                    meant.push(near);
                }
            }
        }
        meant
    }

    /// Stand-in for a required value that was rejected.
    fn stand_in(&self, schema: &'d Json) -> Json {
        let schema = self.resolved(schema);
        match schema.get("x-tcplab").and_then(Json::as_str) {
            Some("control") => json!({"name": "cubic", "params": {}}),
            Some(kind) => scalar::stand_in(kind),
            None => match words_of(schema) {
                Some(words) => json!(words.first()),
                None if is_list(schema) => {
                    let minimum = schema.get("minItems").and_then(Json::as_u64).unwrap_or(0) as usize;
                    let item = schema.get("items").map(|items| self.stand_in(items));
                    Json::Array(vec![item.unwrap_or_default(); minimum])
                }
                None => {
                    let mut shape = Shape::default();
                    self.shape(schema, &mut shape);
                    let required = shape.properties.iter().filter(|(key, _)| shape.required.contains(key));
                    Json::Object(required.map(|(key, s)| ((*key).to_owned(), self.stand_in(s))).collect())
                }
            },
        }
    }
}

/// The `kind` of each variant.
fn kind_names(kinds: &[Json]) -> Vec<&str> {
    kinds.iter().filter_map(|variant| variant.pointer("/properties/kind/const")?.as_str()).collect()
}

/// The variant of this kind.
fn variant_of<'d>(kinds: &'d [Json], name: &str) -> Option<(&'d str, &'d Json)> {
    kinds.iter().find_map(|variant| {
        let kind = variant.pointer("/properties/kind/const")?.as_str()?;
        (kind == name).then_some((kind, variant))
    })
}

/// Whether it is the schema of a list, which may also be absent.
fn is_list(schema: &Json) -> bool {
    match schema.get("type") {
        Some(Json::String(one)) => one == "array",
        Some(Json::Array(several)) => several.contains(&json!("array")),
        _ => false,
    }
}

/// The words of an enumeration, if the schema is one.
fn words_of(schema: &Json) -> Option<Vec<&str>> {
    if let Some(words) = schema.get("enum").and_then(Json::as_array) {
        return words.iter().map(Json::as_str).collect();
    }
    let options = schema.get("oneOf")?.as_array()?;
    let mut words = Vec::new();
    for option in options {
        match (option.get("const"), option.get("enum").and_then(Json::as_array)) {
            (Some(word), _) => words.push(word.as_str()?),
            (None, Some(several)) => words.extend(several.iter().filter_map(Json::as_str)),
            (None, None) => return None,
        }
    }
    Some(words)
}

/// A time as messages print it.
pub(crate) fn shown_time(ns: u64) -> String {
    format(ns, Dimension::Time)
}
