//! The deterministic discrete-event network simulator.

pub mod plan;
