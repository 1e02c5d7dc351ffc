//! Tries out what labs need of this machine, and says how it went.
//!
//! Trying is the only sure way: limits come from the kernel's configuration, containers, security modules and sysctls
//! alike. With the end of the process all it made is gone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::sched::{CloneFlags, unshare};
use serde_json::{Map, Value, json};
use socket2::{Domain, Socket, Type};

use crate::layout::Mac;
use crate::netlink::{self, Kernel, Request};
use crate::{namespace, sysctl};

/// TUNSETIFF and its flags (linux/if_tun.h).
const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
const TAP_WITH_HEADER: libc::c_short = 0x0002 | 0x1000 | 0x4000;

/// A setting that every kernel has, and every lab sets.
const FORWARDING: &str = "net.ipv4.ip_forward";

/// Tries everything and returns what could be done: null, or why something could not.
pub fn probe(sysctls: &[String]) -> Value {
    let mut found = Map::new();
    let privileged = namespace::is_privileged();
    found.insert("privileged".into(), privileged.into());
    if !privileged {
        found.insert("user_namespace".into(), said(user_namespace()));
    }
    let namespace = unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
    let usable = namespace.is_ok();
    found.insert("namespace".into(), said(namespace));
    if usable {
        let veth =
            ask(|own| netlink::veth("v0", Mac([2, 0, 0, 0, 0, 1]), own, "v1", Mac([2, 0, 0, 0, 0, 2]), 1500));
        let netem = match &veth {
            Ok(()) => said(ask_netem()),
            Err(_) => "there is no veth to try it on".into(),
        };
        found.insert("veth".into(), said(veth));
        found.insert("bridge".into(), said(ask(|_| netlink::bridge("br0"))));
        found.insert("tun".into(), said(tap()));
        found.insert("capture".into(), said(Socket::new(Domain::PACKET, Type::RAW, None)));
        found.insert("ipv6".into(), said(UdpSocket::bind("[::]:0")));
        found.insert("netem".into(), netem);
        found.insert("accecn".into(), said(accecn()));
        found.insert("sysctls".into(), sysctl::write(FORWARDING, "1").err().into());
        // The settings of an interface appear with it: until then those of `default` stand for them.
        let (there, absent): (Vec<&String>, Vec<&String>) =
            sysctls.iter().partition(|name| sysctl::path(name).exists());
        let writable = |name: &str| OpenOptions::new().write(true).open(sysctl::path(name)).is_ok();
        let read_only: Vec<&String> = there.into_iter().filter(|name| !writable(name)).collect();
        found.insert("absent".into(), json!(absent));
        found.insert("read_only".into(), json!(read_only));
    }
    Value::Object(found)
}

fn said<T>(outcome: io::Result<T>) -> Value {
    outcome.err().map_or(Value::Null, |error| netlink::plain(&error).into())
}

fn user_namespace() -> io::Result<()> {
    namespace::enter_user_namespace().map_err(|error| match error.raw_os_error() {
        // The meaning of the error here, user_namespaces(7).
        Some(libc::ENOSPC) => io::Error::other("there may be no more of them (user.max_user_namespaces)"),
        _ => error,
    })
}

/// Has the kernel do what a function of our own process number says. Its own words are the error.
fn ask(request: impl FnOnce(u32) -> Request) -> io::Result<()> {
    let refused = |refusal: netlink::Refusal| io::Error::other(refusal.said);
    Kernel::new()?.carry_out(vec![request(std::process::id())])?.map_err(refused)
}

/// Whether TCP here can be set to offer accurate ECN (RFC 9768).
fn accecn() -> io::Result<()> {
    fs::write(sysctl::path("net.ipv4.tcp_ecn"), "3").map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => io::Error::other("net.ipv4.tcp_ecn cannot be 3"),
        _ => error,
    })
}

fn ask_netem() -> io::Result<()> {
    let known = Kernel::new()?.interfaces()?;
    let index = known.get("v0").copied().ok_or(io::ErrorKind::NotFound)?;
    ask(|_| netlink::netem("v0", index))
}

fn tap() -> io::Result<()> {
    let device = File::options().read(true).write(true).open("/dev/net/tun")?;
    // SAFETY: an all-zero ifreq is valid; the name fits and stays terminated; the descriptor is open.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b't' as libc::c_char;
        request.ifr_ifru.ifru_flags = TAP_WITH_HEADER;
        if libc::ioctl(device.as_raw_fd(), TUNSETIFF, &request) < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}
