//! Conformance scripts and property tests of whole connections.

mod accecn;
mod acking;
mod ecn;
mod handshake;
mod invariants;
pub(crate) mod pair;
mod recovering;
pub(crate) mod script;
mod sending;
mod transfer;
