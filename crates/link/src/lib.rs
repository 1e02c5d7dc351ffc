//! One direction of a link, as a pure model: queue, serialisation, impairments, delay.
//!
//! `now` is always an argument, so the simulator drives the model in virtual time and the emulator in
//! real time. A packet passes, in this order: queue discipline with its limit, serialisation at the
//! rate (Ethernet frame bytes), loss, corruption and duplication, then propagation delay and jitter.

pub mod config;

pub use config::Direction;
