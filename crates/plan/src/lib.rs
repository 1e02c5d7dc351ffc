//! The plan: a scenario with every default filled in and every shorthand expanded.
//!
//! One file a kind. Times are nanoseconds, rates bit/s, sizes bytes, probabilities parts per billion. The
//! language (`crates/scenario`) makes plans, engines execute them; both share these types and nothing else.

mod accelerator;
mod chance;
mod change;
mod describe;
mod flow;
mod ip;
mod jitter;
mod link;
mod loss;
mod measure;
mod nic;
mod node;
mod overhead;
mod plan;
mod policer;
mod queue;
mod remote;
mod reorder;
mod routing;
mod tcp_settings;
mod trace;

pub use accelerator::{Accelerator, Leg, WhenFull};
pub use chance::Chance;
pub use change::Change;
pub use describe::{DirectionWords, FlowWords};
pub use flow::{
    Cc, Flow, Generator, Object, Pattern, PatternDistribution, Popularity, Requests, Traffic, Web,
};
pub use ip::IpVersion;
pub use jitter::{Distribution, Jitter};
pub use link::{Direction, Link};
pub use loss::{Loss, LossModel};
pub use measure::{Capture, CaptureAt, CaptureWhat, Emulator, Omit, Sample};
pub use nic::Nic;
pub use node::{Node, NodeKind, Offloads};
pub use overhead::Overhead;
pub use plan::Plan;
pub use policer::Policer;
pub use queue::{Band, Codel, Drr, Dualpi2, Fq, FqCodel, Limit, Pie, Prio, Queue, Red, Tbf};
pub use remote::{Around, ExpectPath};
pub use reorder::Reorder;
pub use routing::{Bgp, FrrFile, Ospf, OspfInterface, Routing, StaticRoute};
pub use tcp_settings::{Ecn, TcpSettings};
pub use trace::{OPPORTUNITY_BYTES, Trace};
