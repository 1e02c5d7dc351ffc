//! Congestion controls of `cc/` in the running kernel, as `tl_NAME`, for as long as their [`Loaded`] lives.
//!
//! Each control of `cc/` is an eBPF object, compiled when this crate is; those of other files are loaded from their
//! objects alike. Loading one corrects its accesses to kernel fields by the running kernel's BTF, sets its parameters,
//! has the kernel verify it, and registers it with TCP. Since Linux 6.4 that is through a struct_ops link, a file
//! descriptor, which goes with the process, however that ends; before, a guardian process sees to that. Connections
//! that use the control keep it until they are closed.

mod elf_metadata;
mod error;
mod explain;
mod guardian;
mod kernel;
mod load;
mod log;
mod name;
mod objects;
mod ownership;
mod requirements;

pub use elf_metadata::{ElfMetadata, Parameter};
pub use error::KernelccError;
pub use explain::Refusal;
pub use load::Loaded;
pub use objects::{built, names};
pub use ownership::sweep;
pub use requirements::obstacle;
pub use tcplab_control::gauge::{Gauge, Place};
