//! The process itself: its namespace, its signals, its CPUs, and whose child it is.

use std::io;
use std::os::fd::AsRawFd;

/// Entries of the namespace's own TCP hash table. A dump walks all of it, and the host's has hundreds of
/// thousands; the kernel also derives from it how many TIME-WAIT sockets the namespace may hold (half as
/// many).
const HASH_ENTRIES: &str = "1024";

/// Enters a network namespace of its own, with loopback up.
pub fn new_network_namespace() -> io::Result<()> {
    unshare()?;
    // A namespace takes the size of its hash table from the namespace it is made in (`tcp_set_hashinfo`). So a small
    // table takes two namespaces if the host is not to be changed.
    if std::fs::write("/proc/sys/net/ipv4/tcp_child_ehash_entries", HASH_ENTRIES).is_ok() {
        unshare()?;
    }
    loopback_up()
}

fn unshare() -> io::Result<()> {
    // SAFETY: takes no pointers; the process has one thread still.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

fn loopback_up() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: an all-zero ifreq is valid; the name fits and stays terminated; the descriptor is open.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request))
    }
}

/// Open files that 10,000 split connections need, and as many again.
const MANY_FILES: libc::rlim_t = 40_000;

/// Raises the soft limit of open files to the hard one: a stream takes one or two. The privileged raise that one, too, if it is low.
pub fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for all calls; a refusal leaves the limit as it is.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return;
        }
        let maximum = limit.rlim_max.max(MANY_FILES);
        let raised = libc::rlimit { rlim_cur: maximum, rlim_max: maximum };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) != 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Calls `end` when the process is asked to end or its parent is gone.
///
/// Ctrl-C at a terminal reaches every process of the group; it is for the caller to decide what then happens
/// to the run, so SIGINT is ignored here.
pub fn on_end(end: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // SAFETY: the set is initialised by sigemptyset before use; SIG_IGN is a valid disposition.
    let set = unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGHUP);
        check(libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))?;
        set
    };
    // SAFETY: neither call takes a pointer.
    let parent = unsafe {
        let parent = libc::getppid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGHUP);
        parent
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        loop {
            let mut signal = 0;
            // SAFETY: both are valid; the signals are blocked in every thread.
            unsafe { libc::sigwait(&set, &mut signal) };
            // The parent-death signal also comes when only the thread that started us ends.
            // SAFETY: takes no pointers.
            let orphan = unsafe { libc::getppid() } != parent;
            if signal == libc::SIGTERM || orphan {
                return end();
            }
        }
    })?;
    Ok(())
}

/// Whether this process has capability number `bit` (`capabilities(7)`).
pub fn has_capability(bit: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> bit & 1 == 1)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
