//! Ends the process when commands stop: a connection that is cut does not signal its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tcplab_probe::clock;

/// How often the time since the last command is checked.
const LOOK: Duration = Duration::from_millis(100);
/// The exit code when no command has come in time.
const TIMED_OUT: i32 = 4;

/// The time of the last command.
pub struct CommandTimeout(Arc<AtomicU64>);

impl CommandTimeout {
    /// Ends the process once no command has come for as long as `silence`.
    ///
    /// At once, with its sockets and threads: standard output may be blocked as well, so that an orderly
    /// end, which writes its last events, would wait for ever.
    pub fn start(silence: Duration) -> CommandTimeout {
        let timeout = CommandTimeout(Arc::new(AtomicU64::new(clock::now())));
        let last = timeout.0.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                let passed = clock::now().saturating_sub(last.load(Ordering::Relaxed));
                if u128::from(passed) > silence.as_nanos() {
                    // Into another pipe, which the caller reads when the connection has ended.
                    eprintln!("the agent received no command for {:.1} s", passed as f64 / 1e9);
                    std::process::exit(TIMED_OUT);
                }
            }
        });
        timeout
    }

    /// Restarts the timer: a command has come.
    pub fn restart(&self) {
        self.0.store(clock::now(), Ordering::Relaxed);
    }
}
