//! Values of a study file that are data rather than quantities: settings by path, values of axes, lists of cells.

use serde_json::{Map, Value as Json, json};

use crate::document::{Node, Value};
use crate::quantity::{QuantityError, Read, quoted};

type Reading = Result<Json, QuantityError>;

/// The value of a kind; none for an unknown kind.
pub(crate) fn read(kind: &str, node: &Node) -> Option<Reading> {
    Some(match kind {
        "words" => words(node),
        "settings" => mapping(node, |inside| Ok(plain(inside))),
        "scalars" => mapping(node, scalar),
        "choices" => mapping(node, |inside| match inside.value {
            Value::List(_) => Ok(plain(inside)),
            _ => wrong(format!("expected a list, found {}", inside.read().shown())),
        }),
        "axis-values" => axis_values(node),
        "cells" => cells(node),
        "file-or-mapping" => match node.value {
            Value::Text(_) | Value::Mapping(_) => Ok(plain(node)),
            _ => wrong(format!("{} is neither a file nor a scenario", node.read().shown())),
        },
        "metric" => metric(&node.read()),
        _ => return None,
    })
}

/// A value as JSON.
pub fn plain(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(yes) => json!(yes),
        Value::Int(number) => match (u64::try_from(*number), i64::try_from(*number)) {
            (Ok(number), _) => json!(number),
            (_, Ok(number)) => json!(number),
            _ => json!(*number as f64),
        },
        Value::Float(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Mapping(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.clone(), plain(&entry.value))).collect())
        }
    }
}

fn wrong<T>(message: String) -> Result<T, QuantityError> {
    Err(QuantityError::new(message, ""))
}

fn mapping(node: &Node, value: impl Fn(&Node) -> Reading) -> Reading {
    if !node.is_mapping() {
        return wrong(format!("expected a mapping of keys, found {}", node.read().shown()));
    }
    let mut read = Map::new();
    for entry in node.entries() {
        if matches!(entry.value.value, Value::Null) {
            return wrong(format!("{} has no value", quoted(&entry.key)));
        }
        read.insert(entry.key.clone(), value(&entry.value)?);
    }
    Ok(Json::Object(read))
}

fn scalar(node: &Node) -> Reading {
    match node.value {
        Value::List(_) | Value::Mapping(_) => {
            wrong(format!("expected one value, found {}", node.read().shown()))
        }
        _ => Ok(plain(node)),
    }
}

/// One text, or several.
fn words(node: &Node) -> Reading {
    let text = |one: &Node| match &one.value {
        Value::Text(text) if !text.is_empty() => Ok(json!(text)),
        _ => wrong(format!("{} is not a string", one.read().shown())),
    };
    match &node.value {
        Value::List(items) if items.is_empty() => wrong("the list is empty".to_owned()),
        Value::List(items) => items.iter().map(text).collect(),
        _ => Ok(json!([text(node)?])),
    }
}

fn axis_values(node: &Node) -> Reading {
    match &node.value {
        Value::List(items) if items.is_empty() => wrong("the axis has no values".to_owned()),
        Value::Mapping(entries) if entries.is_empty() => wrong("the axis has no values".to_owned()),
        Value::List(_) => Ok(plain(node)),
        Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
            let shown = node.read().shown();
            let meant = format!("[{}]", shown.trim_matches('`'));
            Err(QuantityError::new(format!("expected a list of values, found {shown}"), meant))
        }
        _ => mapping(node, |settings| mapping(settings, |inside| Ok(plain(inside)))),
    }
}

fn cells(node: &Node) -> Reading {
    match &node.value {
        Value::Text(text) if text == "full" || text == "zip" => Ok(json!(text)),
        Value::List(items) if items.is_empty() => wrong("the list of cells is empty".to_owned()),
        Value::List(items) => items.iter().map(|item| mapping(item, |inside| Ok(plain(inside)))).collect(),
        _ => {
            let message = format!("{} is neither `full`, `zip` nor a list of grids", node.read().shown());
            Err(QuantityError::new(message, "full"))
        }
    }
}

/// A metric's name as the summary writes it.
fn metric(read: &Read<'_>) -> Reading {
    match read {
        Read::Text(text)
            if text.starts_with(|c: char| c.is_ascii_lowercase())
                && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') =>
        {
            Ok(json!(text))
        }
        _ => wrong(format!("{} is not the name of a metric: small letters, digits and `_`", read.shown())),
    }
}
