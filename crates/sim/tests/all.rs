//! The simulator's tests, one program for all files but one: `memory.rs` counts what the whole program allocates.

mod accelerator_limits;
mod accelerators;
mod bulk;
mod caches;
mod captures;
mod common;
mod controls;
mod datagrams;
mod determinism;
mod echoes;
mod interfaces;
mod jitter;
mod marking;
mod media;
mod multipath;
mod pages;
mod plans;
mod probes;
mod queues;
mod requests;
mod routing;
