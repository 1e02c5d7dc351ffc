//! The scenario language: a YAML text read with positions, quantities read exactly, and mistakes that name file, line,
//! column and the nearest valid spelling.
//!
//! It reads no file and no clock. What a scenario names from outside (a delivery trace, a control's file) is for the
//! caller to fetch.

mod document;
mod error;
pub mod nearest;
pub mod quantity;

pub use document::{Document, Entry, Mark, Node, Source, Step, Value};
pub use error::{Mistake, Mistakes};
