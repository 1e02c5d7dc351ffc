//! Conformance scripts and property tests of whole connections.

mod accecn;
mod acking;
mod ecn;
mod invariants;
mod opening;
pub(crate) mod pair;
mod recovering;
mod script;
mod sending;
mod transfer;
