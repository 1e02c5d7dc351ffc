//! Samples of sockets, CPUs and memory from the running kernel, on a fixed schedule.
//!
//! Sockets come from `sock_diag(7)` in the namespace of the calling thread: one dump reads them all, whoever
//! owns them. Host figures come from `/proc`. Rows are handed to the caller one at a time; nothing is
//! allocated for a sample.

pub mod clock;
pub mod diag;
mod filter;
pub mod hosts;
pub mod interface;
pub mod published;
pub mod scheduling;
pub mod sockets;
pub mod tcp_info;

pub use diag::{DiagError, Dump};
pub use filter::Filter;
pub use published::Published;
pub use tcp_info::TcpInfo;
