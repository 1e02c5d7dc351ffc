//! One direction of a link, as a pure model: queue, serialization, impairments, delay.
//!
//! `now` is always an argument, so the simulator drives the model in virtual time and the emulator in real time. A
//! [`Link`] is a policer, a port and a channel. A packet passes the policer, waits in the port's queue discipline
//! with its limit, and is taken by the channel. The channel is a service, then impairments (loss, corruption and
//! duplication), then a delay line (propagation delay and jitter). The service is serialization at a rate, of
//! Ethernet frame bytes and their overhead, or the opportunities of a trace. The links of a [`Medium`] have no
//! serialisation of their own: the medium says who sends, and when.
//!
//! Everything is integer arithmetic: the same settings and seed give the same deliveries on every machine.
//! The effect of an impairment on a packet depends on the seed, that impairment's settings and the packet's
//! number (as it was offered) alone. Jitter that keeps order depends on the time of departure alone. So
//! switching one impairment on changes no decision of another. Only a packet that is lost before the queue,
//! and so leaves earlier room for the next, changes when those behind it depart.

pub use tcplab_plan as config;

mod bucket;
mod channel;
mod correlated_chance;
mod delay_line;
mod excursions;
mod impairments;
mod inside;
mod jitter;
mod law;
mod link;
mod loss;
mod medium;
mod normal;
mod observer;
mod packet;
mod plain;
mod policer;
mod port;
pub mod qdisc;
mod random;
mod reorder;
mod rows;
mod serializer;
mod service;
mod stats;
mod threshold;
mod trace_service;
mod wake_up;
mod window;

pub use config::Direction;
pub use inside::{Acknowledgment, Inside};
pub use link::Link;
pub use medium::{Medium, Stations};
pub use observer::{Event, Observer};
pub use packet::{Ecn, Packet};
pub use qdisc::{Class, Drops, Gauge};
pub use rows::{QueueTables, Sampled};
pub use stats::{QueueSample, Stats};
pub use tcplab_plan::random::{component_seed, mix};
