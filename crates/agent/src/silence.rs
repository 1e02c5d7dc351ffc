//! The end of a caller that cannot be seen to end: a connection that is cut says nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tcplab_probe::clock;

/// How often the time since the last command is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The exit code of a process that nobody tells anything any more.
const ABANDONED: i32 = 4;

/// When a command came last.
pub struct Heard(Arc<AtomicU64>);

impl Heard {
    /// Ends the process once no command has come for as long as `silence`.
    ///
    /// At once, with its sockets and threads: standard output may be blocked as well, so that an orderly end, which
    /// writes what is left, would wait for ever.
    pub fn watch(silence: Duration) -> Heard {
        let heard = Heard(Arc::new(AtomicU64::new(clock::now())));
        let last = heard.0.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                let passed = clock::now().saturating_sub(last.load(Ordering::Relaxed));
                if u128::from(passed) > silence.as_nanos() {
                    std::process::exit(ABANDONED);
                }
            }
        });
        heard
    }

    /// A command has come.
    pub fn now(&self) {
        self.0.store(clock::now(), Ordering::Relaxed);
    }
}
