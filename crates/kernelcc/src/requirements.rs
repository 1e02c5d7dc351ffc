//! Requirements on the machine and the process for loading controls.

use std::ffi::CStr;

use crate::KernelccError;

const BTF: &str = "/sys/kernel/btf/vmlinux";
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;
/// The first release that is supported.
const FIRST: (u32, u32) = (5, 13);

/// The first thing that stands in the way of loading any control here; none if it can be done, as far as one can
/// tell.
pub fn obstacle() -> Option<KernelccError> {
    checked().err()
}

fn checked() -> Result<(), KernelccError> {
    let release = release();
    if version(&release).is_none_or(|version| version < FIRST) {
        return Err(KernelccError::Old { release });
    }
    std::fs::File::open(BTF).map_err(|source| KernelccError::NoBtf { path: BTF, source })?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let has = |bit: u32| effective(&status) >> bit & 1 == 1;
    // CAP_SYS_ADMIN includes the other two; it alone may open a map by its number, as telemetry does.
    match () {
        () if has(CAP_SYS_ADMIN) => {}
        () if !has(CAP_BPF) => return Err(KernelccError::NotPermitted("CAP_BPF")),
        () if !has(CAP_PERFMON) => return Err(KernelccError::NotPermitted("CAP_PERFMON")),
        () => {}
    }
    // Capabilities over a user namespace below the first do not count for bpf(2).
    match std::fs::read_to_string("/proc/self/uid_map") {
        Ok(map) if map.split_ascii_whitespace().ne(["0", "0", "4294967295"]) => {
            Err(KernelccError::NotPermitted("CAP_BPF outside its user namespace"))
        }
        _ => Ok(()),
    }
}

fn effective(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn release() -> String {
    // SAFETY: an all-zero utsname is valid, and uname(2) leaves C strings in it.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&mut name);
        CStr::from_ptr(name.release.as_ptr()).to_string_lossy().into_owned()
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("6.4-rc1"), Some((6, 4)));
        assert_eq!(version("5.15"), Some((5, 15)));
        assert_eq!(version("unknown"), None);
        assert!(version("6.1.0-56-cloud-amd64") > Some(FIRST) && version("5.9.1") < Some(FIRST));
    }

    #[test]
    fn effective_capabilities_are_read() {
        assert_eq!(effective("Name:\tx\nCapEff:\t0000000000001000\n") >> 12 & 1, 1);
        assert_eq!(effective(""), 0);
    }
}
