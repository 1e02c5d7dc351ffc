//! A control at work on one connection.

use crate::sock::{AckSample, CaEvent, CaState, RateSample, TcpSock};

/// A congestion control bound to one connection: the C operations and their private state.
///
/// Every call takes the connection's `TcpSock`; the control reads and writes it in place, as in Linux.
pub struct Control {
    _private: (),
}

/// What a control publishes of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Telemetry {
    /// Name of the present phase ("STARTUP", "PROBE_BW", ...); empty if the control has none.
    pub phase: &'static str,
    /// Bandwidth estimate, bit/s; 0: none.
    pub bandwidth: u64,
    /// Minimum RTT estimate, microseconds; 0: none.
    pub min_rtt_us: u32,
    /// Pacing gain, in 1/256; 0: none.
    pub pacing_gain: u32,
    /// Window gain, in 1/256; 0: none.
    pub cwnd_gain: u32,
}

/// Why a control could not be had.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ControlError {
    /// No such control.
    #[error("there is no congestion control `{0}` in the simulator")]
    Unknown(String),
    /// No such parameter.
    #[error("congestion control `{control}` has no parameter `{name}`")]
    UnknownParameter {
        /// The control.
        control: String,
        /// The parameter.
        name: String,
    },
    /// A value outside its range.
    #[error("{control}: `{name}` is {value}, but must be from {min} to {max}")]
    OutOfRange {
        /// The control.
        control: String,
        /// The parameter.
        name: String,
        /// What was given.
        value: f64,
        /// The least allowed.
        min: f64,
        /// The most allowed.
        max: f64,
    },
}

#[allow(unused_variables)]
impl Control {
    /// The control called `name` with the parameters that differ from their defaults.
    pub fn new<'a>(name: &str, params: impl IntoIterator<Item = (&'a str, f64)>) -> Result<Control, ControlError> {
        todo!()
    }
    /// Names of all controls the simulator has.
    pub fn names() -> impl Iterator<Item = &'static str> {
        [].into_iter()
    }
    /// The control's name.
    pub fn name(&self) -> &'static str {
        todo!()
    }
    /// Called once the connection is established; binds the private state to `sk`.
    pub fn init(&mut self, sk: &mut TcpSock) {
        todo!()
    }
    /// The threshold after a loss.
    pub fn ssthresh(&mut self, sk: &mut TcpSock) -> u32 {
        todo!()
    }
    /// Grows the window on an ACK of new data; not called where `has_cong_control`.
    pub fn cong_avoid(&mut self, sk: &mut TcpSock, ack: u32, acked: u32) {
        todo!()
    }
    /// Tells of a new congestion avoidance state, before it is set.
    pub fn set_state(&mut self, sk: &mut TcpSock, state: CaState) {
        todo!()
    }
    /// Tells of an event.
    pub fn cwnd_event(&mut self, sk: &mut TcpSock, event: CaEvent) {
        todo!()
    }
    /// Tells of an ACK's flags before it is processed.
    pub fn in_ack_event(&mut self, sk: &mut TcpSock, flags: u32) {
        todo!()
    }
    /// Tells of newly acknowledged packets and their RTT.
    pub fn pkts_acked(&mut self, sk: &mut TcpSock, sample: &AckSample) {
        todo!()
    }
    /// The window to go back to after a spurious recovery.
    pub fn undo_cwnd(&mut self, sk: &mut TcpSock) -> u32 {
        todo!()
    }
    /// Whether the control sets window and pacing rate itself on every ACK (`cong_control`).
    pub fn has_cong_control(&self) -> bool {
        todo!()
    }
    /// Sets window and pacing rate from a rate sample.
    pub fn cong_control(&mut self, sk: &mut TcpSock, ack: u32, flags: u32, sample: &RateSample) {
        todo!()
    }
    /// Least segments of a TSO burst; Linux's default is 2.
    pub fn min_tso_segs(&mut self, sk: &mut TcpSock) -> u32 {
        todo!()
    }
    /// Factor by which the send buffer exceeds the window; Linux's default is 2.
    pub fn sndbuf_expand(&mut self, sk: &mut TcpSock) -> u32 {
        todo!()
    }
    /// Whether the control's packets must be ECN-capable (`TCP_CONG_NEEDS_ECN`).
    pub fn needs_ecn(&self) -> bool {
        todo!()
    }
    /// What the control publishes now.
    pub fn telemetry(&self) -> Telemetry {
        todo!()
    }
}
