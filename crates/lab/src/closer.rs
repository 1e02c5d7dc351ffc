//! The process that closes the emulator's descriptors when it has been killed.
//!
//! The kernel closes what a killed process leaves one after another, and waits for RCU with each device and each
//! packet socket. That takes half a minute for 280 links, in which their namespaces stay. This process shares the
//! emulator's descriptors (CLONE_FILES, clone(2)), so that they outlive it, and closes many at a time.

use std::fs;
use std::io;

use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::unistd::{Pid, getpid, getppid};

use crate::child::set_title;

/// How many descriptors are closed at a time.
const AT_ONCE: usize = 64;
const TUNSETPERSIST: libc::c_ulong = 0x4004_54cb;

/// Starts it for the calling process, which must have one thread.
pub(crate) fn start() -> io::Result<()> {
    let emulator = getpid();
    if duplicate()? == 0 {
        // Where it cannot wait the descriptors are closed one by one.
        if wait_for_end(emulator).is_ok() {
            close_all();
        }
        // SAFETY: takes no pointers.
        unsafe { libc::_exit(0) }
    }
    Ok(())
}

/// As fork(2), but both have the same descriptors.
fn duplicate() -> io::Result<i64> {
    // SAFETY: without a stack of its own the new process goes on with a copy of this one.
    match unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_FILES | libc::SIGCHLD, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        process => Ok(process),
    }
}

fn wait_for_end(emulator: Pid) -> io::Result<()> {
    set_title("tcplab-agent closer");
    // Only SIGKILL ends it before the emulator.
    SigSet::all().thread_block()?;
    prctl::set_pdeathsig(Signal::SIGUSR1)?;
    let ended = SigSet::from(Signal::SIGUSR1);
    while getppid() == emulator {
        ended.wait()?;
    }
    Ok(())
}

fn close_all() {
    // The other end learns from the end of these that the emulator is gone.
    close(0..3);
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> = open.filter_map(|one| one.ok()?.file_name().to_str()?.parse().ok()).collect();
    for &descriptor in &open {
        // Devices go with their namespaces, all at once. Other descriptors refuse.
        // SAFETY: the request takes a number.
        unsafe { libc::ioctl(descriptor, TUNSETPERSIST as _, 1 as libc::c_ulong) };
    }
    // SAFETY: no handler of ours is installed.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) };
    for first in 0..AT_ONCE.min(open.len()) {
        let descriptors = open.iter().copied().skip(first).step_by(AT_ONCE);
        match duplicate() {
            Ok(0) => {
                close(descriptors);
                // SAFETY: takes no pointers.
                unsafe { libc::_exit(0) }
            }
            Ok(_) => {}
            Err(_) => close(descriptors),
        }
    }
}

fn close(descriptors: impl Iterator<Item = i32>) {
    for descriptor in descriptors {
        // SAFETY: nothing in this process uses it.
        unsafe { libc::close(descriptor) };
    }
}
