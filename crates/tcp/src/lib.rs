//! A TCP endpoint modelled on Linux 6.x: sans-IO, no clock, no sockets.
//!
//! The caller hands in segments and the time, and polls for segments to send and for the next timeout.
//! Payload is counted, not carried.

pub mod config;
pub mod connection;
pub mod segment;

pub use config::Config;
pub use connection::{Connection, Info, Notice};
pub use segment::Segment;
