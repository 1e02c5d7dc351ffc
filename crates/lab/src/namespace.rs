//! Namespaces of processes (namespaces(7)): made, entered, and why they may be forbidden.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::sethostname;

use crate::netlink::{self, Kernel};

/// Capabilities for making namespaces, and for configuring and capturing in them: CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN
/// (capabilities(7)). Root of a container may have one of them without the others.
const NEEDED: u64 = 1 << 12 | 1 << 13 | 1 << 21;
/// Settings of Ubuntu, Debian and Linux that forbid user namespaces: the value that does, one that does not.
const GATES: [(&str, &str, &str); 3] = [
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
];
/// FRR's run-time directory, of the package.
pub(crate) const RUN: &str = "/run/frr";
/// Where FRR keeps configurations that its console saves.
const SAVED: &str = "/etc/frr";
/// Its users may use the daemons' consoles (vtysh(1)).
const CONSOLE_GROUP: &str = "frrvty";
/// Names and their addresses (hosts(5)).
const NAMES: &str = "/etc/hosts";
/// A directory that every machine has, over which a file system is mounted for a moment.
const ANYWHERE: &str = "/tmp";
/// Entries of a node's own TCP hash table. A dump walks all of it, and the host's has hundreds of thousands; the
/// kernel also derives from it how many TIME-WAIT sockets the namespace may hold (half as many).
const HASH_ENTRIES: &str = "1024";

/// Leaves the host's namespaces for a network namespace of the lab's own, as root of a user namespace where this
/// process lacks the privilege. It must have one thread.
pub(crate) fn leave_host() -> io::Result<()> {
    if !is_privileged() {
        enter_user_namespace()?;
    }
    // For the time between the nodes: the host's is never entered again, and an unprivileged process could not.
    unshare(CloneFlags::CLONE_NEWNET)?;
    // The size of a namespace's hash table is taken from the namespace it is made in (`tcp_set_hashinfo`): from
    // this one, by every node. An older kernel has no such setting and one table for all.
    let _ = fs::write("/proc/sys/net/ipv4/tcp_child_ehash_entries", HASH_ENTRIES);
    Ok(())
}

/// Enters a new network namespace, with loopback up.
pub(crate) fn new_network() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    // The first interface of a namespace is its loopback (`loopback_net_init`).
    let up = vec![netlink::up("lo", 1, None, None)];
    Kernel::new()?.carry_out(up)?.map_err(io::Error::other)
}

/// Enters mount and UTS namespaces of its own: a host name, and directories that are gone with the last process in them.
pub(crate) fn new_host(name: &str) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)?;
    sethostname(name)?;
    const NONE: Option<&str> = None;
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE)?;
    // Those of the network namespace, as ip-netns(8) does. A mount that fails leaves the host's.
    let _ = mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), NONE);
    let _ = copy_names();
    // Where routing daemons keep their sockets.
    if Path::new(RUN).is_dir() {
        mount(Some("tmpfs"), RUN, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=755"))?;
        let groups = format!("{RUN}/group");
        fs::write(&groups, with_root_in_console_group(&fs::read_to_string("/etc/group")?))?;
        mount(Some(groups.as_str()), "/etc/group", NONE, MsFlags::MS_BIND, NONE)?;
    }
    // `write` in the console saves here, and not over the machine's own configuration.
    if Path::new(SAVED).is_dir() {
        mount(Some("tmpfs"), SAVED, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=755"))?;
        fs::write(format!("{SAVED}/vtysh.conf"), "service integrated-vtysh-config\n")?;
    }
    Ok(())
}

/// Puts a copy in place of the machine's names, which the node alone sees. It stays when the file system it is on is unmounted.
fn copy_names() -> io::Result<()> {
    const NONE: Option<&str> = None;
    let names = fs::read(NAMES)?;
    mount(Some("tmpfs"), ANYWHERE, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=755"))?;
    let copy = format!("{ANYWHERE}/hosts");
    let copied = fs::write(&copy, names)
        .and_then(|()| Ok(mount(Some(copy.as_str()), NAMES, NONE, MsFlags::MS_BIND, NONE)?));
    umount2(ANYWHERE, MntFlags::MNT_DETACH)?;
    copied
}

/// Adds lines to the names that a node has for itself; nothing is done where it sees the machine's.
pub(crate) fn add_names(node: u32, lines: &str) -> io::Result<()> {
    let names = format!("/proc/{node}/root{NAMES}");
    let (own, ours) = (fs::metadata(&names)?, fs::metadata(NAMES)?);
    if (own.dev(), own.ino()) == (ours.dev(), ours.ino()) {
        return Ok(());
    }
    OpenOptions::new().append(true).open(names)?.write_all(lines.as_bytes())
}

/// The node's own view of /etc/group: the daemons run as root of the node, and FRR wants that user in the group that
/// may use its consoles.
fn with_root_in_console_group(groups: &str) -> String {
    let lines = groups.lines().map(|line| match line.strip_prefix(CONSOLE_GROUP) {
        Some(rest) if rest.starts_with(':') && rest.ends_with(':') => format!("{line}root\n"),
        Some(rest) if rest.starts_with(':') => format!("{line},root\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// Does something in the network namespace of a process. Only this thread moves.
pub(crate) fn within<T>(process: u32, action: impl FnOnce() -> T) -> io::Result<T> {
    let own = File::open("/proc/thread-self/ns/net")?;
    setns(File::open(format!("/proc/{process}/ns/net"))?, CloneFlags::CLONE_NEWNET)?;
    let done = action();
    setns(own, CloneFlags::CLONE_NEWNET)?;
    Ok(done)
}

/// The command that lets ordinary users make user namespaces, from what forbids it on this machine.
pub(crate) fn remedy() -> String {
    for (name, closed, open) in GATES {
        let value = fs::read_to_string(Path::new("/proc/sys").join(name.replace('.', "/")));
        if value.is_ok_and(|value| value.trim() == closed) {
            return format!("run as root, or: sudo sysctl -w {name}={open}");
        }
    }
    "run as root".to_owned()
}

/// Becomes root of a new user namespace that maps this user alone. The process keeps its user's rights to files.
pub(crate) fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // A group map may be written without privileges only once setgroups is off (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Whether this process may make and configure namespaces without a user namespace.
pub(crate) fn is_privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & NEEDED == NEEDED)
}

/// Which network namespace a process is in; none for one that has ended or may not be looked at.
pub(crate) fn network_of(process: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// Every process that is to be seen.
pub(crate) fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
