//! How long the threads of flows waited for a CPU: the scheduler's run delay.
//!
//! A delayed sender looks like an idle application, a delayed receiver like a slow one, and both bunch the ACKs. TCP's own
//! figures do not show it. `/proc/self/task/TID/schedstat` has the time a thread has run, and the time it was runnable
//! and did not run, ns (`Documentation/scheduler/sched-stats.rst`).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// Where the kernel lists the threads of this process.
const THREADS: &str = "/proc/self/task";

/// The run delay of all threads started after it was made.
#[derive(Debug, Default)]
pub struct RunDelay {
    others: Vec<u32>,
    /// ns so far, by thread.
    before: BTreeMap<u32, u64>,
    since: u64,
    total: u64,
    worst: Option<Worst>,
}

/// The longest run delay of a thread between two readings.
#[derive(Clone, Debug, PartialEq)]
struct Worst {
    thread: String,
    /// When it ended, ns of the run.
    time: u64,
    /// ns.
    waited: u64,
    /// Share of the time between the readings, or 1 where it had begun before them.
    share: f64,
}

impl RunDelay {
    /// Call it when all other threads have started and those of flows have not.
    pub fn new() -> RunDelay {
        RunDelay { others: threads(), ..RunDelay::default() }
    }

    /// Reads the counters, at `time` ns of the run.
    pub fn read(&mut self, time: u64) {
        let passed = time.saturating_sub(self.since);
        self.since = time;
        for thread in threads() {
            if self.others.contains(&thread) {
                continue;
            }
            // A thread may end between being listed and being read.
            let Some(waited) = waited(thread) else { continue };
            let fresh = waited - self.before.insert(thread, waited).unwrap_or(0).min(waited);
            self.total += fresh;
            if passed > 0 && self.worst.as_ref().is_none_or(|worst| fresh > worst.waited) {
                self.worst =
                    Some(Worst { thread: name(thread), time, waited: fresh, share: share(fresh, passed) });
            }
        }
    }

    /// Totals in seconds; null where the kernel does not count.
    pub fn statistics(&self) -> Value {
        let s = |ns: u64| ns as f64 / 1e9;
        let worst = self.worst.as_ref().map(|worst| {
            json!({"thread": worst.thread, "time": s(worst.time), "waited": s(worst.waited), "share": worst.share})
        });
        json!({"total": s(self.total), "worst": worst})
    }
}

/// The share of `passed` ns that a thread waited which has `waited` for so long at its end. The kernel counts a wait when the
/// thread gets its CPU (`sched_info_arrive`): one that began before the last reading is longer than the time since.
fn share(waited: u64, passed: u64) -> f64 {
    waited as f64 / passed.max(waited) as f64
}

fn threads() -> Vec<u32> {
    let entries = std::fs::read_dir(THREADS).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn waited(thread: u32) -> Option<u64> {
    let text = std::fs::read_to_string(Path::new(THREADS).join(thread.to_string()).join("schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn name(thread: u32) -> String {
    let text = std::fs::read_to_string(Path::new(THREADS).join(thread.to_string()).join("comm"));
    text.unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tcplab_probe::scheduling;

    #[test]
    fn a_wait_that_began_before_the_last_reading_is_all_of_its_time() {
        assert_eq!(share(762_000_000, 349_000_000), 1.0);
        assert_eq!(share(100_000_000, 400_000_000), 0.25);
    }

    #[test]
    fn a_thread_that_shares_its_cpu_waits_and_is_named() {
        if waited(std::process::id()).is_none() {
            return eprintln!("skipped: this kernel does not count waits (CONFIG_SCHED_INFO)");
        }
        // SAFETY: takes no pointers.
        let cpu = usize::try_from(unsafe { libc::sched_getcpu() }).expect("a CPU of ours");
        let over = AtomicBool::new(false);
        let mut run_delay = RunDelay::new();
        std::thread::scope(|scope| {
            for name in ["one.0", "one.1"] {
                let busy = || {
                    scheduling::pin(&[cpu]).expect("it is still there");
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                };
                std::thread::Builder::new().name(name.into()).spawn_scoped(scope, busy).expect("a thread");
            }
            for look in 1..=4 {
                std::thread::sleep(std::time::Duration::from_millis(50));
                run_delay.read(look * 50_000_000);
            }
            over.store(true, Ordering::Relaxed);
        });
        let facts = run_delay.statistics();
        assert!(facts["worst"]["thread"].as_str().is_some_and(|name| name.starts_with("one.")), "{facts}");
        assert!(facts["total"].as_f64() > Some(0.02), "{facts}");
    }
}
