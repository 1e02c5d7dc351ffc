//! A TCP endpoint modelled on Linux 6.x: sans-IO, no clock, no sockets.
//!
//! The caller hands in segments and the time, and polls for segments to send and for the next timeout.
//! Payload is counted, not carried. `docs/simulator-tcp.md` says what of Linux is modelled, and how it deviates.

pub mod connection;
pub mod segment;

mod accecn;
mod ack;
mod ack_flags;
mod chrono;
mod cwnd;
mod delack;
mod ecn;
mod gro;
mod handshake;
mod incoming;
mod minmax;
mod mss;
mod outbox;
mod pacing;
mod persist;
mod prediction;
mod prr;
mod rack;
mod rate;
mod reassembly;
mod receive;
mod recovery;
mod retransmit;
mod rtt;
mod sack;
mod scoreboard;
mod sender;
mod seq;
mod small_queue;
mod sndbuf;
mod ticks;
mod time_wait;
mod timeout;
mod timers;
mod tlp;
mod transmit;
mod tray;
mod undo;
mod window;

pub use connection::{Connection, Counters, Info, Notice};
pub use ecn::EcnFeedback;
pub use outbox::Outbox;
pub use segment::Segment;
pub use tcplab_plan::{Ecn, TcpSettings as Config};
pub use ticks::Ticks;
pub use time_wait::TimeWait;

#[cfg(test)]
mod tests;
