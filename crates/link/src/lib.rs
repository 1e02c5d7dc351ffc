//! One direction of a link, as a pure model: queue, serialisation, impairments, delay.
//!
//! `now` is always an argument, so the simulator drives the model in virtual time and the emulator in
//! real time. A packet passes, in this order: queue discipline with its limit, serialisation at the
//! rate (Ethernet frame bytes), loss, corruption and duplication, then propagation delay and jitter.
//!
//! Everything is integer arithmetic and every impairment draws from a random stream of its own: the
//! same settings and seed give the same deliveries on every machine, and switching one impairment on
//! shifts no other.

pub mod config;

mod chain;
mod droptail;
mod flight;
mod jitter;
mod link;
mod loss;
mod normal;
mod observer;
mod packet;
mod player;
mod random;
mod reorder;
mod service;
mod shaper;
mod stats;
mod strikes;
mod threshold;
mod trace;

pub use config::Direction;
pub use link::Link;
pub use observer::{Event, Observer};
pub use packet::Packet;
pub use random::component_seed;
pub use stats::{QueueSample, Stats};
