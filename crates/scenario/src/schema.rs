//! The language as a JSON Schema: marked by kind for the reader, and as people write it for editors.

use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};
use tcplab_plan::Limit;
use tcplab_units::{Probability, Rate, Span};

use crate::language::{Scenario, Study};
use crate::quantity::Dimension;

/// The schema that the reader walks: each value marked with its kind.
pub(crate) static MARKED: LazyLock<Json> = LazyLock::new(marked::<Scenario>);
/// The same of a study's own keys.
pub(crate) static STUDY: LazyLock<Json> = LazyLock::new(marked::<Study>);

/// Whether queues of this kind have this key.
pub(crate) fn queue_has(kind: &str, key: &str) -> bool {
    queue_settings(kind).any(|(own, _)| own == key)
}

/// The key with which queues of this kind say what has this role: the one marked with it, or of its name.
pub(crate) fn queue_key(kind: &str, role: &str) -> Option<&'static str> {
    let marked = queue_settings(kind).find(|(_, setting)| setting["x-role"] == role);
    marked.or_else(|| queue_settings(kind).find(|(key, _)| *key == role)).map(|(key, _)| key)
}

/// The settings that a switch of queues of this kind stands for, where it stands for more than its own.
pub(crate) fn queue_preset(kind: &str, switch: &str) -> Option<&'static Map<String, Json>> {
    let (_, setting) = queue_settings(kind).find(|(key, _)| *key == switch)?;
    setting["x-preset"].as_object()
}

/// The keys of queues of this kind, with their marked schemas.
fn queue_settings(kind: &str) -> impl Iterator<Item = (&'static str, &'static Json)> {
    let kinds = MARKED["$defs"]["Queue"]["oneOf"].as_array().into_iter().flatten();
    let own = kinds.into_iter().find(|one| one["properties"]["kind"]["const"] == kind);
    let shared = own.and_then(|own| MARKED.pointer(own["$ref"].as_str()?.trim_start_matches('#')));
    let parts = [own, shared].into_iter().flatten();
    parts
        .filter_map(|part| part["properties"].as_object())
        .flatten()
        .map(|(key, value)| (key.as_str(), value))
}

fn marked<T: JsonSchema>() -> Json {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// JSON Schema (draft 2020-12) of a scenario file, with a description of every key.
pub fn json_schema() -> Json {
    let mut schema = opened(written(&MARKED));
    schema["$id"] = json!("urn:tcplab:schema:scenario:1");
    schema
}

/// JSON Schema (draft 2020-12) of a study file; the scenario inside has its own.
pub fn study_schema() -> Json {
    let mut schema = opened(written(&STUDY));
    schema["$id"] = json!("urn:tcplab:schema:study:1");
    schema
}

/// The schema without what closes a part of a mapping to the keys of its other parts: the variants of a `oneOf`, and
/// definitions that stand beside properties.
fn opened(mut schema: Json) -> Json {
    let mut parts = Vec::new();
    beside_properties(&schema, &mut parts);
    for part in parts {
        if let Some(Json::Object(keys)) = schema.pointer_mut(part.trim_start_matches('#')) {
            keys.remove("unevaluatedProperties");
        }
    }
    open_variants(&mut schema);
    schema
}

fn beside_properties(part: &Json, into: &mut Vec<String>) {
    match part {
        Json::Array(items) => items.iter().for_each(|item| beside_properties(item, into)),
        Json::Object(keys) => {
            if let (Some(Json::String(reference)), true) = (keys.get("$ref"), keys.contains_key("properties"))
            {
                into.push(reference.clone());
            }
            keys.values().for_each(|inside| beside_properties(inside, into));
        }
        _ => {}
    }
}

fn open_variants(part: &mut Json) {
    match part {
        Json::Array(items) => items.iter_mut().for_each(open_variants),
        Json::Object(keys) => {
            let variants = keys.get_mut("oneOf").and_then(Json::as_array_mut).into_iter().flatten();
            for variant in variants.filter_map(Json::as_object_mut) {
                variant.remove("unevaluatedProperties");
            }
            keys.values_mut().for_each(open_variants);
        }
        _ => {}
    }
}

/// A part of the schema as a person writes it: quantities with units, short forms, no null.
fn written(part: &Json) -> Json {
    let Json::Object(keys) = part else {
        return match part {
            Json::Array(items) => Json::Array(items.iter().map(written).collect()),
            other => other.clone(),
        };
    };
    let mut made = Map::new();
    if let Some(Json::String(text)) = keys.get("description") {
        made.insert("description".to_owned(), json!(text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    match keys.get("x-tcplab").and_then(Json::as_str) {
        Some("at") => {
            made.insert("type".to_owned(), json!("object"));
            made.insert("propertyNames".to_owned(), quantity(&[Dimension::Time], &[]));
            if let Some(inside) = keys.get("additionalProperties") {
                made.insert("additionalProperties".to_owned(), written(inside));
            }
            return Json::Object(made);
        }
        Some(kind) => {
            if let Some(Json::Object(value)) = of_kind(kind) {
                made.extend(value);
            }
            if let Some(default) = keys.get("default").and_then(|value| default_written(kind, value)) {
                made.insert("default".to_owned(), default);
            }
            if let Some(examples) = keys.get("examples") {
                made.insert("examples".to_owned(), examples.clone());
            }
            return Json::Object(made);
        }
        None => {}
    }
    for (key, value) in keys {
        match (key.as_str(), value) {
            (
                "description" | "x-short" | "x-short-list" | "x-default" | "x-rule" | "x-noun" | "x-example"
                | "x-change" | "x-role" | "x-preset",
                _,
            ) => {}
            ("default", value) => {
                if let Some(default) = default_written("", value) {
                    made.insert(key.clone(), default);
                }
            }
            ("type", Json::String(one)) if one == "boolean" => {
                made.extend(of_kind("switch").and_then(|form| form.as_object().cloned()).unwrap_or_default());
            }
            ("type", Json::Array(types)) => {
                let one = types.iter().find(|one| **one != json!("null")).cloned();
                made.insert(key.clone(), one.unwrap_or_default());
            }
            ("anyOf", Json::Array(options)) => {
                let others: Vec<&Json> =
                    options.iter().filter(|option| option.get("type") != Some(&json!("null"))).collect();
                match others.as_slice() {
                    [one] => {
                        for (key, value) in written(one).as_object().into_iter().flatten() {
                            made.entry(key.clone()).or_insert_with(|| value.clone());
                        }
                    }
                    several => {
                        made.insert(key.clone(), several.iter().map(|option| written(option)).collect());
                    }
                }
            }
            ("properties" | "$defs", Json::Object(inside)) => {
                let inside = inside.iter().map(|(name, schema)| (name.clone(), written(schema)));
                made.insert(key.clone(), Json::Object(inside.collect()));
            }
            _ => _ = made.insert(key.clone(), written(value)),
        }
    }
    let closed =
        made.contains_key("properties") || made.contains_key("oneOf") && keys.get("x-default").is_some();
    if closed && (made.contains_key("oneOf") || made.get("type") == Some(&json!("object"))) {
        made.remove("additionalProperties");
        made.insert("unevaluatedProperties".to_owned(), json!(false));
    }
    if let Some(default) = keys.get("x-default") {
        default_kind(&mut made, default);
    }
    match keys.get("x-short").and_then(Json::as_str) {
        Some(short) => with_short_form(keys, short, made),
        None => Json::Object(made),
    }
}

/// The default of a kind of value, in base units, as people write it; none for null, mappings and lists.
fn default_written(kind: &str, value: &Json) -> Option<Json> {
    let text = match (value, kind) {
        (Json::String(text), _) => return (!text.is_empty()).then(|| value.clone()),
        (Json::Bool(on), _) => (if *on { "on" } else { "off" }).to_owned(),
        (Json::Number(number), kind) => {
            let amount = number.as_u64()?;
            match kind {
                "time" | "positive-time" | "moment" | "positive-moment" | "interval" | "omit" => {
                    Span::from_ns(amount).to_string()
                }
                "rate" | "link-rate" => Rate::from_bits_per_sec(amount)?.to_string(),
                "size" | "positive-size" if amount % 1000 == 0 => Limit::Bytes(amount).to_string(),
                "size" | "positive-size" => format!("{amount} B"),
                "packets" | "initial-window" => Limit::Packets(amount).to_string(),
                "probability" | "correlation" => {
                    Probability::from_ppb(u32::try_from(amount).ok()?).to_string()
                }
                _ => return Some(value.clone()),
            }
        }
        (Json::Object(keys), "control") => return keys.get("name").cloned(),
        (Json::Object(_), "positive-amount" | "queue-limit" | "threshold") => {
            serde_json::from_value::<Limit>(value.clone()).ok()?.to_string()
        }
        _ => return None,
    };
    Some(json!(text))
}

/// A mapping whose `kind` need not be given: one without it has the keys of the kind `default`.
fn default_kind(made: &mut Map<String, Json>, default: &Json) {
    for variant in made.get_mut("oneOf").and_then(Json::as_array_mut).into_iter().flatten() {
        if variant.pointer("/properties/kind/const") == Some(default)
            && let Some(required) = variant.get_mut("required").and_then(Json::as_array_mut)
        {
            required.retain(|key| key != "kind");
        }
    }
}

/// A mapping that may be written as the value of one of its keys.
fn with_short_form(keys: &Map<String, Json>, short: &str, full: Map<String, Json>) -> Json {
    let inside = |schema: &Json| schema.get("properties").and_then(|all| all.get(short)).map(written);
    let variants = keys.get("oneOf").and_then(Json::as_array).into_iter().flatten();
    let value = keys
        .get("properties")
        .and_then(|all| all.get(short))
        .map(written)
        .or_else(|| variants.filter_map(inside).next())
        .unwrap_or_default();
    let description = full.get("description").cloned().unwrap_or_default();
    // A kind without settings may be written as its name alone.
    let kinds = full.get("oneOf").and_then(Json::as_array).into_iter().flatten();
    let bare = |kind: &&Json| kind.get("required").is_none_or(|keys| keys == &json!(["kind"]));
    let names: Vec<&Json> =
        kinds.filter(bare).filter_map(|kind| kind.pointer("/properties/kind/const")).collect();
    let mut forms = vec![value];
    if !names.is_empty() {
        forms.push(json!({"enum": names}));
    }
    forms.push(Json::Object(full));
    json!({"description": description, "anyOf": forms})
}

/// How a person writes a kind of value; none for one that is not known.
fn of_kind(kind: &str) -> Option<Json> {
    use Dimension::{Bdp, Packets, Probability, Rate, Size, Time};
    Some(match kind {
        "version" | "study-version" => json!({"const": 1}),
        "name" => json!({"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,47}$"}),
        "text" => json!({"type": "string"}),
        "switch" => json!({"enum": ["on", "off", true, false]}),
        "count" => json!({"type": "integer", "minimum": 1}),
        "port" => json!({"type": "integer", "minimum": 1, "maximum": 65_535}),
        "asn" => json!({"type": "integer", "minimum": 1, "maximum": 4_294_967_294_u32}),
        "area" => json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
        "cost" => json!({"type": "integer", "minimum": 1, "maximum": 65_535}),
        "paths" => json!({"type": "integer", "minimum": 1, "maximum": 256}),
        "distance" => json!({"type": "integer", "minimum": 1, "maximum": 254}),
        "streams" => json!({"type": "integer", "minimum": 1, "maximum": 100_000}),
        "warmup" => json!({"type": "integer", "minimum": 0, "maximum": 100_000}),
        "seed" => json!({"type": "integer", "minimum": 0}),
        "number" => json!({"type": "number"}),
        "ip" => json!({"enum": [4, 6]}),
        "ect" => json!({"enum": [0, 1]}),
        "time" | "positive-time" | "moment" | "positive-moment" => quantity(&[Time], &[]),
        "around" => {
            json!({"type": "string", "pattern": r"^[^±]+(±|\+-)\s*\d+(\.\d+)?\s*%$", "examples": ["80 ms ± 10 %"]})
        }
        "interval" => quantity(&[Time], &["off"]),
        "omit" => quantity(&[Time], &["auto"]),
        "rate" => quantity(&[Rate], &[]),
        "link-rate" => quantity(&[Rate], &["unlimited"]),
        "size" | "positive-size" => quantity(&[Size], &[]),
        "mtu" => {
            json!({"type": "string", "pattern": r"^\d+(\.\d+)?\s*(B|kB|KiB)$", "examples": ["1500 B", "9000 B"]})
        }
        "packets" | "initial-window" => quantity(&[Packets], &[]),
        "probability" | "correlation" => quantity(&[Probability], &[]),
        "positive-amount" => quantity(&[Packets, Size, Time, Bdp], &[]),
        "dscp" => json!({"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 63},
            {"type": "string", "pattern": "^(EF|VA|LE|DF|BE|CS[0-7]|AF[1-4][1-3])$", "examples": ["EF", "AF41"]},
        ]}),
        "queue-limit" => quantity(&[Packets, Size, Time, Bdp], &["unlimited"]),
        "threshold" => quantity(&[Packets, Size, Time, Bdp], &[]),
        "window" => quantity(&[Size, Bdp], &[]),
        "sizes" => {
            let one = || {
                vec![
                    json!({"type": "integer", "minimum": 1, "maximum": 16 << 20}),
                    json!({
                        "type": "string",
                        "pattern": r"^\+?\d+(\.\d+)?\s*(B|kB|MB|KiB|MiB)?$",
                        "examples": ["64 KiB"],
                    }),
                ]
            };
            let mut ways = one();
            ways.push(json!({"type": "string", "pattern": r"^[^.]+\.\.[^.]+$", "examples": ["1..65536"]}));
            ways.push(json!({"type": "array", "minItems": 1, "maxItems": 1024, "items": {"anyOf": one()}}));
            json!({"anyOf": ways})
        }
        "cpus" => json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
        "ports" => {
            json!({"type": "string", "pattern": r"^\s*\d{4,5}\s*-\s*\d{4,5}\s*$", "examples": ["5300-5399"]})
        }
        "sysctls" => json!({
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        }),
        "control" => {
            let name = json!({
                "type": "string",
                "description": "Name of the control, or the path of a C file.",
                "examples": ["cubic", "reno", "bbr1", "./mine.c"],
            });
            json!({"anyOf": [
                name,
                {
                    "type": "object",
                    "properties": {"name": name},
                    "required": ["name"],
                    "additionalProperties": {"type": "number"},
                },
            ]})
        }
        "file-or-mapping" => json!({"type": ["string", "object"], "examples": ["my-test.yaml"]}),
        "words" => json!({"anyOf": [
            {"type": "string"},
            {"type": "array", "minItems": 1, "items": {"type": "string"}},
        ]}),
        "settings" => json!({"type": "object"}),
        "scalars" => {
            json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})
        }
        "choices" => json!({"type": "object", "additionalProperties": {"type": "array"}}),
        "axis-values" => json!({"anyOf": [
            {"type": "array", "minItems": 1},
            {"type": "object", "minProperties": 1, "additionalProperties": {"type": "object"}},
        ]}),
        "cells" => json!({"anyOf": [
            {"enum": ["full", "zip"]},
            {"type": "array", "minItems": 1, "items": {"type": "object"}},
        ]}),
        "metric" => json!({"type": "string", "pattern": "^[a-z][a-z0-9_]*$", "examples": ["goodput"]}),
        _ => return None,
    })
}

/// A text with a number and a unit, or one of the words.
fn quantity(dimensions: &[Dimension], words: &[&str]) -> Json {
    let units: Vec<&str> =
        dimensions.iter().flat_map(|dimension| dimension.units()).map(|(unit, _)| *unit).collect();
    let mut pattern = format!(r"^\+?\d+(\.\d+)?([eE][+-]?\d+)?\s*({})$", units.join("|").replace('/', r"\/"));
    if !words.is_empty() {
        pattern = format!("{pattern}|^({})$", words.join("|"));
    }
    let examples: Vec<&str> =
        dimensions.iter().map(|dimension| dimension.example()).chain(words.iter().copied()).collect();
    json!({"type": "string", "pattern": pattern, "examples": examples})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::scalar;

    /// Every object inside a value.
    fn objects<'v>(value: &'v Json, into: &mut Vec<&'v Map<String, Json>>) {
        match value {
            Json::Array(items) => items.iter().for_each(|item| objects(item, into)),
            Json::Object(keys) => {
                into.push(keys);
                keys.values().for_each(|inside| objects(inside, into));
            }
            _ => {}
        }
    }

    #[test]
    fn each_kind_has_a_reader_and_a_form_for_editors() {
        let mut all = Vec::new();
        objects(&MARKED, &mut all);
        objects(&STUDY, &mut all);
        let kinds: Vec<&str> = all.iter().filter_map(|keys| keys.get("x-tcplab")?.as_str()).collect();
        assert!(kinds.len() > 100);
        let node = Document::parse(b"x", "").expect("a text").root;
        for kind in kinds {
            let mapping = matches!(kind, "at" | "control" | "sysctls");
            assert!(mapping || scalar::read(kind, &node).is_some(), "{kind} is not read");
            assert!(kind == "at" || of_kind(kind).is_some(), "{kind} is not in the schema for editors");
        }
    }

    #[test]
    fn every_key_is_described_and_nothing_of_the_markers_is_left() {
        let schemas = [json_schema(), study_schema()];
        let mut all = Vec::new();
        schemas.iter().for_each(|schema| objects(schema, &mut all));
        let mut described = 0;
        for keys in all {
            assert!(!keys.keys().any(|key| key.starts_with("x-")), "{keys:?}");
            for (key, value) in keys.get("properties").and_then(Json::as_object).into_iter().flatten() {
                let documented = value.get("description").is_some_and(|text| text != "");
                assert!(documented || key == "kind", "{key}");
                described += usize::from(documented);
            }
        }
        assert!(described > 100);
    }
}
