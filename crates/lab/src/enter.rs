//! Runs a program in a node of a lab: it has the terminal, its signals and its exit code are its own.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, chdir, execvp, fork, getpid, getppid};

/// How long a program may take to end after its lab.
const PATIENCE: Duration = Duration::from_secs(1);
/// Signals that are for the program, not for this process.
const PASSED_ON: [Signal; 6] =
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2];

/// Where a program runs, and which.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The lab's process: the program ends with it.
    pub lab: i32,
    /// A process in the node's namespaces.
    pub process: i32,
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// Runs the program to its end. Returns its exit code; 128 and the signal's number for one that a signal ended, 126
/// for one that cannot run, 127 for one that is not there.
pub fn enter(entry: &Entry) -> u8 {
    match run(entry) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tcplab: cannot enter the node: {error}");
            125
        }
    }
}

fn run(entry: &Entry) -> io::Result<u8> {
    let lab = pidfd(entry.lab)?;
    let from = std::env::current_dir();
    join(entry.process)?;
    if let Ok(directory) = from {
        // Another mount namespace begins at its root. Where the directory is not in it, the root it is.
        let _ = chdir(&directory);
    }
    let mut waited_for = SigSet::empty();
    PASSED_ON.into_iter().chain([Signal::SIGCHLD]).for_each(|signal| waited_for.add(signal));
    waited_for.thread_block()?;
    let signals = SignalFd::with_flags(&waited_for, SfdFlags::SFD_CLOEXEC)?;
    let parent = getpid();
    // SAFETY: this process has one thread, so the child finds no lock held.
    match unsafe { fork() }? {
        ForkResult::Child => become_program(entry, parent),
        ForkResult::Parent { child } => supervise(child, &lab, &signals),
    }
}

/// Enters the namespaces of a process: its user namespace too, if this process is in another.
pub fn join(process: i32) -> io::Result<()> {
    let same = |kind: &str| -> io::Result<bool> {
        let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/{kind}"));
        Ok(of("self")? == of(&process.to_string())?)
    };
    let mut flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS;
    if !same("user")? {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    Ok(setns(pidfd(process)?, flags)?)
}

fn become_program(entry: &Entry, parent: Pid) -> ! {
    let started = || -> nix::Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != parent {
            return Err(nix::errno::Errno::ESRCH);
        }
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        let words: Result<Vec<CString>, _> =
            entry.command.iter().map(|word| CString::new(word.as_str())).collect();
        let words = words.map_err(|_| nix::errno::Errno::EINVAL)?;
        let program = words.first().ok_or(nix::errno::Errno::ENOENT)?;
        execvp(program, &words).map(|_| ())
    };
    let error = started().err().unwrap_or(nix::errno::Errno::UnknownErrno);
    let program = entry.command.first().map_or("", String::as_str);
    eprintln!("tcplab: cannot run {program}: {}", error.desc());
    // SAFETY: takes no pointers. The exit handlers of this program are the parent's.
    unsafe { libc::_exit(if error == nix::errno::Errno::ENOENT { 127 } else { 126 }) }
}

fn supervise(child: Pid, lab: &OwnedFd, signals: &SignalFd) -> io::Result<u8> {
    let mut killed_at = None;
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG))? {
            WaitStatus::Exited(_, code) => return Ok(code as u8),
            WaitStatus::Signaled(_, signal, _) => return Ok(128 + signal as u8),
            _ => {}
        }
        let mut ready =
            [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(lab.as_fd(), PollFlags::POLLIN)];
        let watched = if killed_at.is_none() { &mut ready[..] } else { &mut ready[..1] };
        let wait = if killed_at.is_none() { PollTimeout::NONE } else { PollTimeout::from(100u8) };
        poll(watched, wait)?;
        let ended = killed_at.is_none() && is_ready(&ready[1]);
        if is_ready(&ready[0])
            && let Some(signal) = signals.read_signal()?
            && let Ok(number) = Signal::try_from(signal.ssi_signo as i32)
            && number != Signal::SIGCHLD
            // A key's signal has reached the program too, which is in the same process group. A hangup reaches the
            // leader of the session alone, which this process may be.
            && (signal.ssi_code != libc::SI_KERNEL || number == Signal::SIGHUP)
        {
            let _ = kill(child, number);
        }
        if ended {
            let _ = kill(child, Signal::SIGHUP);
            killed_at = Some(Instant::now());
        }
        if killed_at.is_some_and(|at: Instant| at.elapsed() > PATIENCE) {
            let _ = kill(child, Signal::SIGKILL);
        }
    }
}

fn is_ready(polled: &PollFd) -> bool {
    polled.revents().is_some_and(|events| !events.is_empty())
}

/// A descriptor that stands for a process, readable when it has ended (pidfd_open(2)).
pub(crate) fn pidfd(process: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers; a valid descriptor has no other owner.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, process, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as i32)) }
    }
}
