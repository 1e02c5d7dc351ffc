//! The plan: a scenario with every default filled in and every shorthand expanded.
//!
//! One file a kind. Times are nanoseconds, rates bit/s, sizes bytes, probabilities parts per billion. The
//! language (`crates/scenario`) makes plans, engines execute them; both share these types and nothing else.

mod accelerator;
mod cache;
mod cc;
mod chance;
mod change;
mod describe;
mod estimate;
mod flow;
mod ip;
mod jitter;
mod link;
mod loss;
mod measure;
mod medium;
mod nic;
mod node;
mod overhead;
mod plan;
mod policer;
mod queue;
pub mod random;
mod remote;
mod reorder;
mod routing;
mod tcp_settings;
mod timing;
mod trace;

pub use accelerator::{Accelerator, Leg, Load, WhenFull};
pub use cache::{Cache, Found, Store};
pub use cc::Cc;
pub use chance::Chance;
pub use change::Change;
pub use describe::{DirectionWords, FlowWords};
pub use estimate::Estimate;
pub use flow::*;
pub use ip::IpVersion;
pub use jitter::{Distribution, Jitter};
pub use link::{Direction, Link};
pub use loss::{Loss, LossModel, effective_loss};
pub use measure::{Capture, CaptureAt, CaptureWhat, Emulator, Omit, Sample};
pub use medium::{Aggregation, Medium};
pub use nic::Nic;
pub use node::{Node, NodeKind, NodeTraits, Offloads};
pub use overhead::Overhead;
pub use plan::Plan;
pub use policer::Policer;
pub use queue::*;
pub use remote::{Around, ExpectPath};
pub use reorder::Reorder;
pub use routing::*;
pub use tcp_settings::{Ecn, TcpSettings};
pub use timing::Timing;
pub use trace::{OPPORTUNITY_BYTES, Trace};
