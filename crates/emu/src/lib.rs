//! The emulator: the link models of `tcplab-link` between TAP devices, in real time.
//!
//! One thread serves all links of a lab. It reads frames with their virtio headers, cuts super-packets into
//! the packets of the wire without copying them, queues each in the model of its link direction, and
//! writes it when the model says it arrives; packets that leave together are joined again. So every
//! packet is treated by itself while system calls are made by burst.
//!
//! Time is logical: a packet enters when its node handed it over, which the kernel notes, and from there on
//! the model computes. That a delivery is late delays nothing after it. How late deliveries are is measured
//! and judged.

mod arena;
mod capture;
mod changes;
mod checksum;
mod clock;
pub mod config;
mod cut;
mod emulator;
mod frame;
mod headers;
mod join;
mod lateness;
mod layout;
mod port;
mod pump;
mod recording;
mod report;
#[cfg(test)]
mod roundtrip;
mod run;
mod stamps;
mod streams;
mod tap;
mod virtio;
mod way;
mod wire;
mod writer;

pub use config::{LiveChange, Setup, Start};
pub use emulator::{Emulator, SetupError};
pub use lateness::Verdict;
pub use report::{Facts, LinkFacts, News, Progress, StreamLosses, WayFacts};
