//! The link's tests, one program for all files.

mod against_reference;
mod changes;
mod common;
mod framing;
mod impairments;
mod independence;
mod jitter;
mod medium;
mod plain;
mod properties;
mod traces;
