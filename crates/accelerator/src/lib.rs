//! A split-TCP accelerator: a performance-enhancing proxy (RFC 3135) on the real Linux stack.
//!
//! It stands in a router. Connections that pass are diverted to it (`divert`: nftables' TPROXY). The accelerator
//! accepts each as if it were the server, and opens a second connection as if it were the client (`socket`:
//! IP_TRANSPARENT). Payload goes from one leg to the other by splice(2), in both directions, without being copied to
//! user space (`splice`). One thread serves all connections (`accelerator`, `service`), until it has no open files for more (`threads`).
//!
//! An accelerator breaks TCP's end-to-end argument: what it has acknowledged to one end and the other has not
//! acknowledged yet is lost if the accelerator dies. [`Sample`] says how much that is. All sockets linger for zero
//! seconds while they carry data, so that both ends get a reset then, and not an orderly end of half a file.

mod accelerator;
mod cache;
mod connection;
mod divert;
mod error;
mod sample;
mod service;
mod socket;
mod splice;
mod threads;

pub use accelerator::Accelerator;
pub use cache::{Cache, CacheCounts};
pub use error::AcceleratorError;
pub use sample::{Counts, LegSample, Sample};
