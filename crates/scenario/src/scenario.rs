//! Reading a scenario: text, overrides, structure, sense; all mistakes are reported together.

use serde_json::Value as Json;
use tcplab_plan::Plan;

use crate::check::check;
use crate::document::{Document, Step};
use crate::error::{Mistake, Mistakes};
use crate::expand::expand;
use crate::language;
use crate::layout::Layout;
use crate::overrides;
use crate::pairs;
use crate::reader;
use crate::renamed;
use crate::schema::MARKED;
use crate::surroundings::Surroundings;

const A_STUDY: &str =
    "this is a study, not a scenario: `tcplab study FILE` runs it, `tcplab check FILE` checks it";

/// The plan of the scenario in a document, with overrides such as `flows.bulk.cc=reno` applied.
///
/// Every mistake is found before anything is refused.
pub fn plan(mut document: Document, sets: &[String], around: &dyn Surroundings) -> Result<Plan, Mistakes> {
    if document.root.get("study").is_some() {
        let study = [Step::from("study")];
        return Err(Mistakes::new(vec![document.mistake(&study, A_STUDY, "", true)]));
    }
    // Before the overrides, which may concern these keys, and after them, for they may bring some.
    renamed::rename(&mut document);
    let (mut found, doubtful) = (document.duplicates(), document.doubtful());
    found.extend(overrides::apply(&mut document, sets));
    renamed::rename(&mut document);
    let reading = reader::read(&document, &MARKED);
    found.extend(reading.found);
    let Some(mut scenario) = reading.value.and_then(|value| typed(value, &document, &mut found)) else {
        return Err(Mistakes::new(found));
    };
    pairs::spread(&mut scenario);
    let layout = Layout::new(&scenario, around);
    found.extend(check(&layout, &document, &[doubtful, reading.refused].concat()));
    if found.is_empty() { Ok(expand(&layout)) } else { Err(Mistakes::new(found)) }
}

/// The value as a scenario; none where too little of it is left to check.
fn typed(value: Json, document: &Document, found: &mut Vec<Mistake>) -> Option<language::Scenario> {
    let flows = value.get("flows").and_then(Json::as_array).is_some_and(|flows| !flows.is_empty());
    let network = value.get("network").is_some_and(|network| {
        network.get("path").is_some()
            || network.get("topology").is_some()
            || network.get("nodes").and_then(Json::as_array).is_some_and(|nodes| !nodes.is_empty())
    });
    if !flows || !network {
        return None;
    }
    match serde_json::from_value(value) {
        Ok(scenario) => Some(scenario),
        Err(error) => {
            // Data that pass the schema fill its types.
            if found.is_empty() {
                found.push(document.mistake(&[], &format!("cannot be read: {error}"), "", false));
            }
            None
        }
    }
}
