//! CPU time and memory of processes and of the whole machine, from `/proc`.

use std::io;

/// CPU time so far in seconds, and resident memory in bytes. A figure the kernel does not keep is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostSample {
    /// In user mode.
    pub user: f64,
    /// In the kernel, softirq excluded where it is counted apart.
    pub system: f64,
    /// In softirq; the kernel charges it to no process.
    pub softirq: Option<f64>,
    /// Resident memory; for the machine, memory in use.
    pub memory: Option<u64>,
}

/// The whole machine (`/proc/stat`, `/proc/meminfo`).
pub fn machine() -> io::Result<HostSample> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let mut sample = machine_cpu(&stat).ok_or_else(|| damaged("/proc/stat"))?;
    sample.memory = memory_used(&std::fs::read_to_string("/proc/meminfo")?);
    Ok(sample)
}

/// Process `pid` with all its threads (`/proc/PID/stat`).
pub fn process(pid: u32) -> io::Result<HostSample> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    process_stat(&stat).ok_or_else(|| damaged("/proc/PID/stat"))
}

/// This process, to the microsecond (`getrusage`).
pub fn this_process() -> io::Result<HostSample> {
    // SAFETY: an all-zero rusage is valid, and the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_SELF, &mut usage) != 0 {
            return Err(io::Error::last_os_error());
        }
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Ok(HostSample {
        user: seconds(usage.ru_utime),
        system: seconds(usage.ru_stime),
        softirq: None,
        memory: process(std::process::id())?.memory,
    })
}

fn damaged(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{path} does not read as proc(5) says"))
}

/// Seconds of one clock tick of `/proc`.
fn tick() -> f64 {
    // SAFETY: sysconf takes no pointers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1.0 / ticks.max(1) as f64
}

fn machine_cpu(stat: &str) -> Option<HostSample> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<f64> = line.split_ascii_whitespace().skip(1).map_while(|n| n.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq] = *ticks.first_chunk()?;
    Some(HostSample {
        user: (user + nice) * tick(),
        system: (system + irq) * tick(),
        softirq: Some(softirq * tick()),
        memory: None,
    })
}

fn memory_used(meminfo: &str) -> Option<u64> {
    let kib = |key: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    Some(kib("MemTotal:")?.saturating_sub(kib("MemAvailable:")?) * 1024)
}

fn process_stat(stat: &str) -> Option<HostSample> {
    // The name in parentheses may itself hold spaces and parentheses.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    // SAFETY: sysconf takes no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64;
    Some(HostSample {
        user: number(14)? as f64 * tick(),
        system: number(15)? as f64 * tick(),
        softirq: None,
        memory: Some(number(24)? * page),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_hold_spaces_and_parentheses() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 250 50 0 0 20 0 3 0 100 9000 12 0 0";
        let sample = process_stat(stat).unwrap();
        assert_eq!((sample.user, sample.system), (250.0 * tick(), 50.0 * tick()));
        assert!(sample.memory.unwrap() >= 12 * 4096);
    }

    #[test]
    fn the_machine_counts_softirq_apart() {
        let sample = machine_cpu("cpu  100 10 40 900 5 2 30 0 0 0\ncpu0 1 2 3").unwrap();
        assert_eq!(sample.user, 110.0 * tick());
        assert_eq!(sample.system, 42.0 * tick());
        assert_eq!(sample.softirq, Some(30.0 * tick()));
        assert_eq!(machine_cpu("cpu  1 2"), None);
    }

    #[test]
    fn the_running_kernel_can_be_read() {
        let own = this_process().unwrap();
        assert!(own.memory.unwrap() > 100_000);
        assert!(machine().unwrap().memory.unwrap() > 1_000_000);
        assert!(process(u32::MAX).is_err());
    }
}
