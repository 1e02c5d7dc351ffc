//! The processes of a lab: forked from it, so that none has a program to load, and killed with it.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Pid, execvp, fork, getpid, getppid};
use serde::Deserialize;

use crate::enter::pidfd;
use crate::{closer, namespace};

/// The role of a process of a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Holds a node's namespace: traffic, probe and capture.
    Node,
    /// All links with settings.
    Emulator,
    /// Congestion controls of ours in the kernel.
    Controls,
    /// Holds a node's namespaces and does nothing: network, mounts and host name.
    Hold,
}

impl Role {
    /// As `tcplab-agent` gets it.
    fn mode(self) -> &'static str {
        match self {
            Role::Node => "node",
            Role::Emulator => "emu",
            Role::Controls => "controls",
            Role::Hold => "hold",
        }
    }
}

/// Starts a process that talks over `socket` and does what `act` does in its role.
///
/// It is forked without a new program, which for a node takes a few milliseconds in place of 50 or more for an
/// interpreter. This process must have one thread.
pub(crate) fn start(
    name: &str,
    role: Role,
    is_machine: bool,
    socket: OwnedFd,
    act: &dyn Fn(Role) -> u8,
) -> io::Result<Pid> {
    let parent = getpid();
    // SAFETY: this process has one thread, so the child finds no lock held.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let code = match become_child(name, role, is_machine, &socket, parent) {
                Ok(()) if role == Role::Hold => hold(),
                Ok(()) => act(role),
                Err(error) => {
                    let message = format!("cannot make a network namespace: {error}");
                    let line = serde_json::json!({"event": "error", "message": message, "hint": namespace::remedy()});
                    let _ = writeln!(io::stdout(), "{line}");
                    3
                }
            };
            // SAFETY: takes no pointers. The exit handlers of the program that we were forked from are not ours.
            unsafe { libc::_exit(code.into()) }
        }
    }
}

fn become_child(name: &str, role: Role, is_machine: bool, socket: &OwnedFd, parent: Pid) -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid() != parent {
        return Err(io::Error::other("the lab has ended"));
    }
    // SAFETY: the descriptors are open, and nobody else in this process uses those that are replaced or closed.
    unsafe {
        libc::dup2(socket.as_raw_fd(), 0);
        libc::dup2(socket.as_raw_fd(), 1);
        libc::close_range(3, libc::c_uint::MAX, 0);
    }
    let is_node = matches!(role, Role::Node | Role::Hold);
    let mut title = format!("tcplab-agent {}", role.mode());
    if is_node {
        title = format!("{title} {name}");
    }
    set_title(&title);
    if role == Role::Emulator {
        closer::start()?;
    }
    if is_node {
        namespace::new_network()?;
    }
    if is_machine || role == Role::Hold { namespace::new_host(name) } else { Ok(()) }
}

/// Says that the namespaces are there and waits to be killed.
fn hold() -> u8 {
    let _ = writeln!(io::stdout(), "{}", serde_json::json!({"event": "hello"}));
    loop {
        nix::unistd::pause();
    }
}

/// Sets what ps(1) shows of this process, as far as the arguments it was started with leave room.
pub(crate) fn set_title(title: &str) {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return };
    // arg_start and arg_end are the fields 48 and 49 (proc_pid_stat(5)); the second, a name, may hold spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number =
        |field: usize| fields.get(field - 3).and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
    let (start, end) = (number(48), number(49));
    if start == 0 || end <= start {
        return;
    }
    // SAFETY: the kernel put this process's arguments there, writable and for good; nobody reads them any more.
    let room = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, end - start) };
    room.fill(0);
    let length = title.len().min(room.len() - 1);
    room[..length].copy_from_slice(&title.as_bytes()[..length]);
}

/// Starts a program in the namespaces of a process, without input; what it says goes to the file `log`.
pub(crate) fn daemon(process: u32, command: &[String], log: &str) -> io::Result<Pid> {
    let parent = getpid();
    let words: Vec<CString> = command
        .iter()
        .map(|word| CString::new(word.as_str()))
        .collect::<Result<_, _>>()
        .map_err(io::Error::other)?;
    let node = pidfd(process as i32)?;
    let mut space = CloneFlags::CLONE_NEWNET;
    space |= CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS;
    // SAFETY: this process has one thread, so the child finds no lock held.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let started = || -> io::Result<()> {
                prctl::set_pdeathsig(Signal::SIGKILL)?;
                if getppid() != parent {
                    return Err(io::Error::other("the lab has ended"));
                }
                setns(&node, space)?;
                let input = fs::File::open("/dev/null")?;
                let output = fs::File::create(log)?;
                // SAFETY: the descriptors are open, and nobody else in this process uses those that are replaced.
                unsafe {
                    libc::dup2(input.as_raw_fd(), 0);
                    libc::dup2(output.as_raw_fd(), 1);
                    libc::dup2(output.as_raw_fd(), 2);
                    libc::close_range(3, libc::c_uint::MAX, 0);
                }
                execvp(&words[0], &words)?;
                Ok(())
            };
            if let Err(error) = started() {
                eprintln!("cannot run {}: {error}", command[0]);
            }
            // SAFETY: takes no pointers.
            unsafe { libc::_exit(127) }
        }
    }
}
