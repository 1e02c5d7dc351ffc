//! The emulator: the link models of `tcplab-link` between TAP devices, in real time.
//!
//! One thread serves all links of a lab. It reads frames with their virtio headers, and cuts super-packets into the
//! packets of the wire without copying them. It queues each packet in the model of its link direction, and writes the
//! packet when the model says it arrives. Packets that leave together are coalesced again. So every packet is treated
//! by itself while system calls are made by burst.
//!
//! Time is logical: a packet enters when its node handed it over, which the kernel notes, and from there on
//! the model computes. That a delivery is late delays nothing after it. How late deliveries are is measured
//! and rated.

mod arena;
mod at_once;
mod capture;
mod changes;
mod checksum;
mod clock;
mod coalescing;
pub mod config;
mod direction;
mod emulator;
mod event_loop;
mod frame;
mod frame_layout;
mod headers;
mod inside;
mod lateness;
mod media;
mod port;
mod recording;
mod report;
#[cfg(test)]
mod roundtrip;
mod run;
mod segmentation;
mod streams;
mod tap;
mod tx_timestamps;
mod virtio;
mod wire;
mod writer;

pub use config::{LiveChange, Setup, Start};
pub use emulator::{Emulator, SetupError};
pub use lateness::Verdict;
pub use report::{DirectionStats, LinkStats, Progress, Report, RunStats, StreamLosses};
