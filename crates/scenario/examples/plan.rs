//! Plans of the scenarios on standard input. One JSON object a line with `text`, `name`, `base` and `sets`. Out comes
//! one a line with the `plan`, its `warnings` and its `second` repetition, or the `mistakes` as they are printed.

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{BufRead, Write};
use std::panic::catch_unwind;

use serde_json::{Value, json};
use tcplab_scenario::{Document, plan, repetition, warnings, with_phases};

fn answer(case: &Value) -> Value {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    let sets: Vec<String> = case["sets"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|set| set.as_str().map(str::to_owned))
        .collect();
    let around = common::Folder(text("base").into());
    let read = Document::parse(text("text").as_bytes(), text("name"));
    match read.and_then(|document| plan(document, &sets, &around)) {
        Ok(plan) => {
            let second = with_phases(repetition(plan.clone(), 2));
            json!({"warnings": warnings(&plan), "second": second, "plan": plan})
        }
        Err(mistakes) => json!({"mistakes": mistakes.to_string()}),
    }
}

fn main() {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let said = catch_unwind(|| answer(&case)).unwrap_or_else(|_| json!({"panic": true}));
        writeln!(out, "{said}").expect("standard output");
    }
}
