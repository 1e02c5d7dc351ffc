//! The deterministic discrete-event network simulator.
//!
//! A [`Simulation`] takes a [`plan::Plan`] and fills [`Tables`]. It reads no clock, no environment and no
//! file: the caller decides how many events to process at a time and where the tables go. Equal plans give
//! equal tables, on every machine.

pub mod capture;
pub mod packet;
pub use tcplab_plan as plan;

mod application;
mod bodies;
mod build;
mod bulk;
mod cache;
mod echo;
mod end_timers;
mod error;
mod histogram;
mod http;
mod look_ahead;
mod mean_window;
mod network;
mod ping_stream;
mod recorder;
mod relay;
mod request;
mod routing;
mod samplers;
mod schedule;
mod send_room;
mod sim_context;
mod simulation;
mod splitter;
mod stream;
mod streams;
mod tcp_stream;
mod udp;
mod udp_stream;

pub use error::PlanError;
pub use recorder::Tables;
pub use simulation::{Progress, Routing, RunStats, Simulation};
pub use splitter::SplitCounts;
