//! Reading what a study file says of itself; its scenario is read once for each of its cells.

use serde_json::Value as Json;

use crate::document::{Document, Step};
use crate::error::Mistakes;
use crate::language::Study;
use crate::reader;
use crate::schema::STUDY;

const A_SCENARIO: &str =
    "this is a scenario, not a study: `tcplab run FILE` runs it, `tcplab check FILE` checks it";

/// The keys of a study in base units, with every default filled in; the scenario inside is as written.
pub fn study(document: &Document) -> Result<Json, Mistakes> {
    let has = |key| document.root.get(key).is_some();
    if has("flows") && !has("study") && !has("scenario") {
        let flows = [Step::from("flows")];
        return Err(Mistakes::new(vec![document.mistake(&flows, A_SCENARIO, "", true)]));
    }
    let reading = reader::read(document, &STUDY);
    let found = [document.duplicates(), reading.found].concat();
    if !found.is_empty() {
        return Err(Mistakes::new(found));
    }
    let file = serde_json::from_value::<Study>(reading.value.unwrap_or_default());
    file.and_then(serde_json::to_value).map_err(|error| {
        Mistakes::new(vec![document.mistake(&[], &format!("cannot be read: {error}"), "", false)])
    })
}
