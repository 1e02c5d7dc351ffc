//! Errors of loading a control, with hints.

use tcplab_control::ControlError;

use crate::explain::Refusal;

/// Why a control is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum KernelccError {
    /// There was no compiler for eBPF when this was built.
    #[error("this tcplab was built without controls for the kernel: {0}")]
    NotBuilt(&'static str),
    /// No control of that name.
    #[error("unknown control {name:?}")]
    Unknown {
        /// The request.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The name or a parameter is wrong.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The kernel is too old.
    #[error("Linux {release} is older than 5.13, the first that can load tcplab's controls")]
    Old {
        /// The kernel's release.
        release: String,
    },
    /// The kernel does not describe its types.
    #[error("the kernel has no BTF: {path} cannot be read: {source}")]
    NoBtf {
        /// Where it should be.
        path: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// The process lacks a privilege.
    #[error("this process may not load controls: it lacks {0}")]
    NotPermitted(&'static str),
    /// The verifier found fault with it.
    #[error("the kernel's verifier rejects {name}: {refusal}")]
    Refused {
        /// The control.
        name: String,
        /// Its message.
        refusal: Box<Refusal>,
    },
    /// No name is left for it.
    #[error("every name for {name} from {first} to {last} is taken by other processes")]
    Taken {
        /// The control.
        name: String,
        /// The first name tried.
        first: String,
        /// The last name tried.
        last: String,
    },
    /// A step of loading failed for another reason.
    #[error("cannot {step} {name}: {source}\n{log}")]
    Failed {
        /// The operation.
        step: &'static str,
        /// The control.
        name: String,
        /// Answer of the kernel or libbpf.
        source: libbpf_rs::Error,
        /// The end of what they said.
        log: String,
    },
    /// Nothing would take the control away when its owner ends, on a kernel that does not do it by itself.
    #[error("the process that would take {name} away again cannot be started: {source}")]
    NoGuardian {
        /// The control.
        name: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The object is not shaped as `tcplab_cc_bpf.h` makes it.
    #[error("the object of {name} has no {what}")]
    Malformed {
        /// The control.
        name: String,
        /// The missing part.
        what: &'static str,
    },
}

impl KernelccError {
    /// How to fix it.
    pub fn hint(&self) -> String {
        match self {
            KernelccError::NotBuilt(_) => {
                "sudo apt-get install clang, then build tcplab again: uv sync --reinstall-package tcplab".into()
            }
            KernelccError::Unknown { known, .. } => format!("use one of {known}"),
            KernelccError::Control(_) => "`tcplab cc list -v` shows what can be set in each".into(),
            KernelccError::Old { .. } => "use Linux 5.13 or newer, or the simulator".into(),
            KernelccError::NoBtf { .. } => "use a kernel built with CONFIG_DEBUG_INFO_BTF=y".into(),
            KernelccError::NotPermitted(_) => "run as root of the host (CAP_BPF and CAP_PERFMON; those of a user namespace do not count)".into(),
            KernelccError::Refused { .. } => {
                "`tcplab cc check FILE` shows more of its log; docs/controls.md says what the verifier asks for".into()
            }
            KernelccError::Taken { .. } => "end other runs: bpftool struct_ops list shows what is loaded".into(),
            KernelccError::Failed { log, .. } if log.contains("for extern") => {
                "a control calls nothing but what tcplab_cc.h gives: write the function into the file".into()
            }
            KernelccError::Failed { log, .. } if log.contains("isn't referenced anywhere") => {
                "name the operation in CONGESTION_CONTROL, or leave it out".into()
            }
            KernelccError::Failed { .. } => "the kernel needs CONFIG_BPF_JIT=y and CONFIG_BPF_SYSCALL=y".into(),
            KernelccError::NoGuardian { .. } => {
                "allow it another process (ulimit -u) and file (ulimit -n), and close_range(2) where system calls are filtered".into()
            }
            KernelccError::Malformed { .. } => "write the control as cc/include/tcplab_cc.h says".into(),
        }
    }
}
