//! Settings of the network namespace this thread is in (sysctl(8)).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A name may hold that of an interface, which may hold a dot; slashes then separate its parts.
pub(crate) fn path(name: &str) -> PathBuf {
    let parts = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    Path::new("/proc/sys").join(parts)
}

/// Of Linux 6.11 and later. Before, all namespaces shared one seed.
const MULTIPATH_SEED: &str = "net.ipv4.fib_multipath_hash_seed";

/// Sets a setting. One of IPv6 that a kernel without IPv6 lacks is left out.
pub(crate) fn write(name: &str, value: &str) -> Result<(), String> {
    match fs::write(path(name), value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if name.starts_with("net.ipv6.") || name == MULTIPATH_SEED {
                return Ok(());
            }
            Err(format!("this kernel has no setting {name} in a network namespace"))
        }
        Err(error) => Err(format!("cannot set {name} to {value:?}: {}", crate::netlink::plain(&error))),
        Ok(()) => Ok(()),
    }
}

/// A setting, its parts separated by single spaces; none where the kernel does not have it.
pub(crate) fn read(name: &str) -> Option<String> {
    let text = fs::read_to_string(path(name)).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}
