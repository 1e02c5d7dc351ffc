//! The machine, for the manifest of a run on it: kernel, settings, network interfaces, CPUs.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use tcplab_probe::interface::{Interface, Offloads, interfaces};

/// The machine, with the values of `sysctls`; values that it does not report are null.
pub fn describe(sysctls: &[String]) -> Value {
    let settings: Map<String, Value> =
        sysctls.iter().map(|name| (name.clone(), sysctl(name).into())).collect();
    let offloads = Offloads::new().ok();
    let interfaces: Map<String, Value> = interfaces()
        .unwrap_or_default()
        .into_iter()
        .map(|(name, found)| {
            let on = offloads.as_ref().and_then(|offloads| offloads.on(&name).ok());
            let described = interface(&name, &found, on);
            (name, described)
        })
        .collect();
    json!({
        "name": text("/proc/sys/kernel/hostname"),
        "kernel": text("/proc/sys/kernel/osrelease"),
        "machine": std::env::consts::ARCH,
        "cpus": std::thread::available_parallelism().ok().map(std::num::NonZero::get),
        "cpu_model": cpu_model(),
        "cpu_governor": text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "sysctls": settings,
        "interfaces": interfaces,
        "loads_controls": loads_controls(),
        "reached": control_connection().map(|connection| connection.reached),
    })
}

/// Whether controls of tcplab can be loaded into this kernel: true, or why not, as `message` and `hint`.
#[cfg(feature = "controls")]
fn loads_controls() -> Value {
    match crate::controls::obstacle() {
        Value::Null => true.into(),
        obstacle => obstacle,
    }
}

#[cfg(not(feature = "controls"))]
fn loads_controls() -> Value {
    json!({"message": "this agent was built without the loader of controls", "hint": "scripts/agent"})
}

/// The connection over which the caller talks to this machine.
pub struct ControlConnection {
    /// This machine's address as the caller reached it.
    pub reached: String,
    /// The caller's port, and ours.
    pub ports: (u16, u16),
}

/// The connection that brought the commands; none where the caller is on this machine.
pub fn control_connection() -> Option<ControlConnection> {
    // `address port address port`: the caller's, then this machine's (ssh(1)).
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    let [_, from, reached, to] = connection.split(' ').collect::<Vec<_>>()[..] else { return None };
    Some(ControlConnection { reached: reached.to_owned(), ports: (from.parse().ok()?, to.parse().ok()?) })
}

fn interface(name: &str, found: &Interface, offloads: Option<Vec<&str>>) -> Value {
    let at = Path::new("/sys/class/net").join(name);
    let link = |what: &str| {
        let target = fs::read_link(at.join(what)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    };
    json!({
        "driver": link("device/driver"),
        "mtu": found.mtu,
        // Mbit/s; a device without a speed says -1, or refuses to be read.
        "speed": number(&at.join("speed")).filter(|speed| *speed > 0),
        "offloads": offloads,
        "qdisc": found.qdisc,
        "queues": names(at.join("queues")).len(),
    })
}

fn sysctl(name: &str) -> Option<String> {
    text(Path::new("/proc/sys").join(name.replace('.', "/")))
}

fn cpu_model() -> Option<String> {
    let info = text("/proc/cpuinfo")?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn number(path: &Path) -> Option<i64> {
    text(path)?.parse().ok()
}

fn names(directory: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
