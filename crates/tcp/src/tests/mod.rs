//! Conformance scripts and property tests of whole connections.

mod invariants;
mod pair;
mod transfer;
