//! Time, rate and probability as integer newtypes.
//!
//! Everything below the Python layer computes with these: no floating point decides when a packet
//! leaves or whether it is lost, so a run is the same on every machine. Quantities with units
//! (`25 ms`, `100 Mbit/s`) are parsed once, in `python/tcplab/scenario`; here they arrive as integers
//! in base units and are only printed. Beside them stands `prefetch`, a hint that changes no result.

mod prefetch;
mod probability;
mod rate;
mod schema;
mod time;

pub use prefetch::{prefetch, prefetch_part, prefetch_start};
pub use probability::Probability;
pub use rate::{Rate, write_scaled};
pub use time::{Span, Time};
