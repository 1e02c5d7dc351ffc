//! Congestion controls of `cc/` in the running kernel, as `tl_NAME`, for as long as their [`Loaded`] lives.
//!
//! Each control of `cc/` is an eBPF object, compiled when this crate is; those of other files are loaded from their
//! objects alike. Loading one corrects its accesses to kernel
//! fields by the running kernel's BTF, sets its parameters, has the kernel verify it, and registers it with TCP
//! through a struct_ops link. The link is a file descriptor: it goes with the process, however that ends, and the
//! name with it. Connections that use the control keep it until they are closed.

mod about;
mod error;
mod explain;
mod load;
mod log;
mod machine;
mod name;
mod objects;

pub use error::KernelccError;
pub use explain::Refusal;
pub use load::Loaded;
pub use machine::obstacle;
pub use objects::{built, names};
pub use tcplab_control::gauge::{Gauge, Place};
