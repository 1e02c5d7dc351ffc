//! Congestion controls of tcplab in the running kernel, for as long as this process lives: the command `load`, of a node
//! and of the loader.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_kernelcc::{Gauge, KernelccError, Loaded, Place};

use crate::output;

/// A control to register.
#[derive(Debug, Deserialize)]
pub struct Load {
    /// Its name, with or without `tl_`; of a control that is in `object`, what messages call it.
    name: String,
    /// The eBPF object of a control that is not among tcplab's own, in base64.
    object: Option<String>,
    /// Parameters that differ from their defaults.
    #[serde(default)]
    params: BTreeMap<String, f64>,
}

/// Why no control can be loaded here; null if one can.
pub fn obstacle() -> Value {
    tcplab_kernelcc::obstacle().as_ref().map(in_words).into()
}

/// An error, as `message` and `hint`.
pub fn in_words(why: &KernelccError) -> Value {
    json!({"message": why.to_string(), "hint": why.hint()})
}

/// Loads a control and answers; it stays as long as what is returned.
pub fn load(id: Option<u64>, asked: &Load) -> Option<Loaded> {
    let params = asked.params.iter().map(|(name, value)| (name.as_str(), *value));
    let loaded = match &asked.object {
        None => Loaded::load(&asked.name, params),
        Some(text) => match STANDARD.decode(text) {
            Ok(object) => Loaded::load_object(&object, &asked.name, params),
            Err(error) => {
                output::refuse(id, &format!("the object of {} is not base64: {error}", asked.name), "");
                return None;
            }
        },
    };
    match loaded {
        Ok(loaded) => {
            let answer = json!({
                "registered": loaded.registered(),
                "wanted": loaded.wanted(),
                "state": loaded.state(),
                "phases": loaded.phases(),
                "gauges": loaded.gauges().iter().map(describe).collect::<Vec<_>>(),
            });
            output::ok(id, answer);
            Some(loaded)
        }
        Err(error) => {
            refuse(id, &error);
            None
        }
    }
}

/// A gauge, as the probe's configuration has it.
fn describe(gauge: &Gauge) -> Value {
    let Place { offset, size, signed, scale } = gauge.place;
    json!({
        "name": gauge.name, "unit": gauge.unit,
        "offset": offset, "size": size, "signed": signed, "scale": scale,
    })
}

/// Of a refusal by the verifier the parts come too, so that a tool can show them in its own way.
fn refuse(id: Option<u64>, error: &KernelccError) {
    let mut answer = json!({"event": "error", "id": id, "message": error.to_string(), "hint": error.hint()});
    if let KernelccError::Refused { refusal, .. } = error {
        answer["refusal"] = json!({
            "meaning": refusal.meaning,
            "verdict": refusal.verdict,
            "file": refusal.place.as_ref().map(|(file, _)| file),
            "line": refusal.place.as_ref().map(|(_, line)| line),
            "source": refusal.source,
            "log": refusal.log,
        });
    }
    output::emit(&answer);
}
