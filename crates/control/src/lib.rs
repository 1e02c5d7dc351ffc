//! Hosts the C congestion controls of `cc/` for the simulator.
//!
//! A control is one C file written against Linux's `tcp_congestion_ops`. The running kernel loads it as eBPF;
//! here the same file, compiled natively, is called directly. A tour:
//!
//! - `cc/include/tcplab_cc.h` is the header a control is written with; `cc/reno.c` the shortest example.
//! - `build.rs` compiles every `cc/*.c` it finds: a new control is a new file and nothing else.
//! - [`sock`] is the connection as a control sees it: the twin, member for member, of the C structures.
//! - [`control`] is one control at work on one connection.
//! - [`registry`] says which controls there are and what can be set in each, and takes in those that were
//!   compiled elsewhere.
//! - [`gauge`] reads what a control shows of its state.
//! - [`files`] are the C files themselves.
//!
//! ```
//! use tcplab_control::{AckSample, Control, TcpSock};
//!
//! let mut sock = TcpSock { snd_cwnd: 10, is_cwnd_limited: 1, ..TcpSock::default() };
//! let mut reno = Control::new("reno", [("beta", 0.5)])?;
//! reno.init(&mut sock);
//! reno.pkts_acked(&mut sock, &AckSample { pkts_acked: 2, rtt_us: 50_000, in_flight: 10 });
//! reno.cong_avoid(&mut sock, 0, 2);
//! assert_eq!(sock.snd_cwnd, 12);
//! assert_eq!(reno.telemetry().phase, "SLOW_START");
//! # Ok::<(), tcplab_control::ControlError>(())
//! ```

#[cfg(test)]
mod abi;
mod binding;
pub mod control;
pub mod files;
pub mod gauge;
pub mod registry;
pub mod sock;

pub use control::{Control, ControlError, Telemetry};
pub use gauge::Gauge;
pub use registry::{Parameter, Registry, Table};
pub use sock::{AckSample, CaEvent, CaState, RateSample, TcpSock};
