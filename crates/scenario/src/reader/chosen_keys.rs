//! Mappings whose keys a user chooses: names, times of changes, parameters of a congestion control, sysctls.

use serde_json::{Map, Value as Json, json};

use super::{Path, Reader};
use crate::document::{Entry, Node, Step, Value};
use crate::quantity::{Read, decimal, quoted};
use crate::scalar;
use crate::suggestions;

impl<'d> Reader<'d> {
    /// A mapping whose keys are names that the file chooses.
    pub(super) fn named(&mut self, node: &Node, path: &mut Path, schema: &'d Json) -> Option<Json> {
        let entries = self.entries(node, path)?;
        let mut values = Map::new();
        for entry in entries {
            path.push(Step::Key(entry.key.clone()));
            if let Some(value) = self.value(&entry.value, path, schema) {
                values.insert(entry.key.clone(), value);
            }
            path.pop();
        }
        Some(Json::Object(values))
    }

    /// Settings by time: `at: {20 s: {rate: 20 Mbit/s}}`.
    pub(super) fn changes(&mut self, node: &Node, path: &mut Path, schema: &'d Json) -> Option<Json> {
        let entries = self.entries(node, path)?;
        let inside = schema.get("additionalProperties")?;
        let mut seen: Vec<(u64, &str)> = Vec::new();
        let mut changes = Vec::new();
        for entry in entries {
            path.push(Step::Key(entry.key.clone()));
            let time = scalar::moment_ns(&Read::Text(&entry.key));
            let change = self.value(&entry.value, path, inside);
            match time {
                Ok(time) => {
                    if let Some((_, other)) = seen.iter().find(|(one, _)| *one == time) {
                        let message =
                            format!("{} and {} are the same time", quoted(&entry.key), quoted(other));
                        self.refuse(path, &message, "", true);
                    } else {
                        seen.push((time, &entry.key));
                        if let Some(change) = change {
                            changes.push(json!({"key": entry.key, "time": time, "change": change}));
                        }
                    }
                }
                Err(wrong) => self.refuse(path, &wrong.message, &wrong.suggestion, true),
            }
            path.pop();
        }
        Some(Json::Array(changes))
    }

    /// A congestion control: its name, or a mapping with its name and any parameters.
    pub(super) fn control(&mut self, node: &Node, path: &mut Path) -> Option<Json> {
        let mut name = None;
        let mut params = Map::new();
        match &node.value {
            Value::Text(_) => match scalar::text(&node.read()) {
                Ok(text) => name = Some(text),
                Err(wrong) => self.refuse(path, &wrong.message, &wrong.suggestion, false),
            },
            Value::Mapping(entries) => {
                // Parameters are numbers: a text is a misspelt name.
                let is_meant = |entry: &&Entry| {
                    matches!(entry.value.value, Value::Text(_))
                        && !suggestions::near_key(&entry.key, &["name"], &[]).is_empty()
                };
                let given = entries.iter().find(|entry| entry.key == "name");
                let given = given.or_else(|| entries.iter().find(is_meant)).map(|entry| entry.key.as_str());
                for entry in entries {
                    path.push(Step::Key(entry.key.clone()));
                    if Some(entry.key.as_str()) == given {
                        if entry.key != "name" {
                            self.refuse(path, &format!("unknown key {}", quoted(&entry.key)), "name", true);
                        }
                        name = self.scalar_of("text", &entry.value, path);
                    } else if entry.key == "params" && matches!(entry.value.value, Value::Mapping(_)) {
                        for param in entry.value.entries() {
                            path.push(Step::Key(param.key.clone()));
                            self.parameter(&param.key, &param.value, path, &mut params);
                            path.pop();
                        }
                    } else {
                        self.parameter(&entry.key, &entry.value, path, &mut params);
                    }
                    path.pop();
                }
                if given.is_none() {
                    let message = "`name` is missing";
                    self.found.push(self.document.mistake(path, message, "name: cubic", true));
                    self.refused.push([path.as_slice(), &[Step::Key("name".to_owned())]].concat());
                }
            }
            _ => {
                let message = format!("{} is not a congestion control", node.read().shown());
                self.refuse(path, &message, "cubic", false);
            }
        }
        Some(json!({"name": name.unwrap_or_else(|| json!("unnamed")), "params": params}))
    }

    /// A scalar that may not be empty.
    fn scalar_of(&mut self, kind: &str, node: &Node, path: &[Step]) -> Option<Json> {
        if matches!(node.value, Value::Null) {
            let key = if let Some(Step::Key(key)) = path.last() { key.as_str() } else { "" };
            self.refuse(path, &format!("{} has no value", quoted(key)), "", true);
            return None;
        }
        self.scalar(kind, node, path, &Json::Null)
    }

    fn parameter(&mut self, key: &str, node: &Node, path: &[Step], params: &mut Map<String, Json>) {
        if let Err(wrong) = scalar::text(&Read::Text(key)) {
            self.refuse(path, &wrong.message, &wrong.suggestion, true);
        } else if let Some(value) = self.scalar_of("number", node, path) {
            params.insert(key.to_owned(), value);
        }
    }

    /// Kernel settings by name, as texts.
    pub(super) fn sysctls(&mut self, node: &Node, path: &mut Path) -> Option<Json> {
        let entries = self.entries(node, path)?;
        let mut settings = Map::new();
        for entry in entries {
            path.push(Step::Key(entry.key.clone()));
            let written = match entry.value.read() {
                Read::Bool(yes) => u8::from(yes).to_string(),
                Read::Int(number) => number.to_string(),
                Read::Float(number) => decimal(number),
                Read::Text(text) => text.to_owned(),
                Read::Nothing | Read::List | Read::Mapping => {
                    self.refuse(path, &format!("the sysctl `{}` needs a value", entry.key), "", true);
                    path.pop();
                    continue;
                }
            };
            for text in [&entry.key, &written] {
                if let Err(wrong) = scalar::text(&Read::Text(text)) {
                    self.refuse(path, &wrong.message, &wrong.suggestion, false);
                }
            }
            settings.insert(entry.key.clone(), json!(written));
            path.pop();
        }
        Some(Json::Object(settings))
    }
    /// The entries of a mapping; anything else is refused.
    fn entries<'n>(&mut self, node: &'n Node, path: &[Step]) -> Option<&'n [Entry]> {
        let Value::Mapping(entries) = &node.value else {
            let message = format!("expected a mapping of keys, found {}", node.read().shown());
            self.refuse(path, &message, "", false);
            return None;
        };
        Some(entries)
    }
}
