//! How long the threads of flows waited for a CPU.
//!
//! A sender that is held up looks like an idle application, a receiver like a slow one, and both bunch the ACKs. TCP's own
//! figures do not tell; the scheduler's do: `/proc/self/task/TID/schedstat` has the time a thread has run and the time
//! it was ready to and did not, ns (`Documentation/scheduler/sched-stats.rst`).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// Where the kernel lists the threads of this process.
const THREADS: &str = "/proc/self/task";

/// The waits of all threads that came into being after it did.
#[derive(Debug, Default)]
pub struct Waiting {
    others: Vec<u32>,
    /// ns so far, by thread.
    before: BTreeMap<u32, u64>,
    since: u64,
    total: u64,
    worst: Option<Worst>,
}

/// The longest wait of a thread between two looks.
#[derive(Clone, Debug, PartialEq)]
struct Worst {
    thread: String,
    /// When it ended, ns of the run.
    time: u64,
    /// ns.
    waited: u64,
    /// Of the time between the looks.
    share: f64,
}

impl Waiting {
    /// Those of flows, if it is called when all other threads are there and those of flows are not.
    pub fn new() -> Waiting {
        Waiting { others: threads(), ..Waiting::default() }
    }

    /// Looks, at `time` ns of the run.
    pub fn look(&mut self, time: u64) {
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
                let share = fresh as f64 / passed as f64;
                self.worst = Some(Worst { thread: name(thread), time, waited: fresh, share });
            }
        }
    }

    /// What there is to tell: s, and null where the kernel does not count.
    pub fn facts(&self) -> Value {
        let s = |ns: u64| ns as f64 / 1e9;
        let worst = self.worst.as_ref().map(|worst| {
            json!({"thread": worst.thread, "time": s(worst.time), "waited": s(worst.waited), "share": worst.share})
        });
        json!({"total": s(self.total), "worst": worst})
    }
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
    fn a_thread_that_shares_its_cpu_waits_and_is_named() {
        if waited(std::process::id()).is_none() {
            return eprintln!("skipped: this kernel does not count waits (CONFIG_SCHED_INFO)");
        }
        // SAFETY: takes no pointers.
        let cpu = usize::try_from(unsafe { libc::sched_getcpu() }).expect("a CPU of ours");
        let over = AtomicBool::new(false);
        let mut waiting = Waiting::new();
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
                waiting.look(look * 50_000_000);
            }
            over.store(true, Ordering::Relaxed);
        });
        let facts = waiting.facts();
        assert!(facts["worst"]["thread"].as_str().is_some_and(|name| name.starts_with("one.")), "{facts}");
        assert!(facts["total"].as_f64() > Some(0.02), "{facts}");
    }
}
