//! The scenario language: a YAML text read with positions, checked, and expanded to a plan. Every mistake names file,
//! line, column and the nearest valid spelling, and all of them come together.
//!
//! The types in `language` say what may be written in scenarios and studies, and those of `tcplab_plan` what a queue may be. Their JSON Schema
//! drives the one reader. It reads no file and no clock: what a scenario names from outside (a delivery trace, a
//! control) it asks of [`Surroundings`].

mod addresses;
mod caution;
mod check;
mod document;
mod error;
mod expand;
mod generate;
mod language;
mod layout;
mod locate;
pub mod nearest;
mod overrides;
mod pairs;
pub mod quantity;
mod reader;
mod renamed;
mod routes;
mod rules;
mod scalar;
mod scenario;
mod schedule;
mod schema;
mod structured;
mod study;
mod suggestions;
mod surroundings;
mod topology;
pub mod trace;
mod vary;

pub use caution::warnings;
pub use document::{Document, Entry, Mark, Node, Source, Step, Value};
pub use error::{Mistake, Mistakes};
pub use language::node_kinds;
pub use locate::located;
pub use renamed::renamed_keys;
pub use scalar::read as value;
pub use scenario::plan;
pub use schema::{json_schema, study_schema};
pub use structured::plain;
pub use study::study;
pub use surroundings::{Known, Memory, Parameter, Surroundings, Unreadable};
pub use vary::{repetition, with_phases};
