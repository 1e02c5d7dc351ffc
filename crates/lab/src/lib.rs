//! Networks of real Linux hosts on one machine: a network namespace for each node.
//!
//! One process builds a lab and is the parent of everything in it. Each namespace is held by a process and has no
//! name on disk, so it is gone with its process, however that ends. The lab dies with the process that started it,
//! and every child dies with the lab. `layout` works out from
//! the plan what each namespace holds, `configure` fills it.

mod child;
mod closer;
mod configure;
mod control;
mod enter;
mod frr;
mod layout;
mod namespace;
mod netlink;
mod ping;
mod probe;
mod routes;
mod session;
mod sysctl;
mod verify;

pub use child::Role;
pub use enter::{Entry, enter, join};
pub use layout::{Layout, Unlike, netems, unlike};
pub use probe::probe;
pub use routes::{RouteChange, RouteMonitor};
pub use session::{Options, serve};

use std::io;

/// Why a lab cannot do what was asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum LabError {
    #[error("cannot make namespaces: {0}")]
    Namespaces(io::Error),
    #[error("cannot enter the namespace of {node}: {source}")]
    Enter { node: String, source: io::Error },
    #[error("cannot start a process for {name}: {source}")]
    Start { name: String, source: io::Error },
    #[error("no node of this lab is called {0:?}")]
    NoNode(String),
    #[error("{node}: cannot {what}: {said}")]
    Refused { node: String, what: String, said: String },
    #[error("{node}: {said}")]
    Setting { node: String, said: String },
    #[error("cannot make the links: {0}")]
    Shape(String),
    #[error("there is a lab called {name:?} already")]
    Name { name: String, source: io::Error },
    #[error("cannot understand the command: {0}")]
    NotUnderstood(String),
    #[error("the {0} process has ended")]
    Ended(String),
    #[error("{message}")]
    Explained { message: String, hint: String },
    /// A file of the scenario is wrong.
    #[error("{message}")]
    Input { message: String, hint: String },
    #[error("{node}: cannot write {path}: {source}")]
    Write { node: String, path: String, source: io::Error },
    #[error("cannot talk to the kernel: {0}")]
    Kernel(#[from] io::Error),
}

impl LabError {
    /// How to fix it; empty where no hint is general.
    pub fn hint(&self) -> String {
        let error = match self {
            LabError::Namespaces(error) | LabError::Kernel(error) => Some(error),
            LabError::Enter { source, .. }
            | LabError::Start { source, .. }
            | LabError::Name { source, .. }
            | LabError::Write { source, .. } => Some(source),
            _ => None,
        };
        match self {
            // A node takes some files of this process and of the one that keeps its namespaces.
            _ if error.and_then(io::Error::raw_os_error) == Some(libc::EMFILE) => {
                "raise the limit of open files: ulimit -n".to_owned()
            }
            LabError::Namespaces(_) => namespace::remedy(),
            LabError::Start { .. } => "end other programs".to_owned(),
            LabError::Name { name, .. } => {
                format!("choose another with --name, or end it: tcplab topo down {name}")
            }
            LabError::Explained { hint, .. } | LabError::Input { hint, .. } => hint.clone(),
            _ => String::new(),
        }
    }
}
