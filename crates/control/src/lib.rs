//! Hosts the C congestion controls of `cc/` for the simulator.

pub mod sock;

pub use sock::{AckSample, CaEvent, CaState, RateSample, TcpSock};
pub use control::{Control, ControlError, Telemetry};

pub mod control;
