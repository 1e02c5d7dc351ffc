//! `tcplab-agent capture`: an interface's packets to standard output, until Ctrl-C.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Seen, stream};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// Captures `interface` of this namespace as pcapng, whole packets, and says on standard error how many there were.
pub fn main(interface: &str) -> u8 {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
    let seen = Seen::default();
    let done = stream(interface, io::stdout().lock(), &STOP, &seen);
    let (packets, drops) = (seen.packets.load(Ordering::Relaxed), seen.drops.load(Ordering::Relaxed));
    match done {
        Ok(()) if drops > 0 => eprintln!("{packets} packets captured, {drops} dropped by the kernel"),
        Ok(()) => eprintln!("{packets} packets captured"),
        // Whoever read it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => {
            eprintln!("tcplab: cannot capture on {interface}: {error}");
            return 4;
        }
    }
    0
}
