//! Interfaces of the namespace: offloads, by the ethtool ioctl (linux/ethtool.h), and queue disciplines (rtnetlink(7)).

use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A netlink message's header, and the body of one about a link, which the attributes follow.
const HEADER: usize = 16;
const LINK: usize = 16;
/// The place of `tx_dropped` in struct rtnl_link_stats64.
const TX_DROPPED: usize = 7 * 8;
/// More than the kernel puts into one datagram.
const BUFFER: usize = 64 << 10;

/// Name in a plan, and the commands that read and set it.
const OFFLOADS: [(&str, u32, u32); 3] = [("tso", 0x1e, 0x1f), ("gso", 0x23, 0x24), ("gro", 0x2b, 0x2c)];

/// struct ethtool_value
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// The interfaces of the namespace this thread was in when it was made.
#[derive(Debug)]
pub struct Offloads(UdpSocket);

impl Offloads {
    /// Of this thread's namespace.
    pub fn new() -> io::Result<Offloads> {
        Ok(Offloads(UdpSocket::bind("0.0.0.0:0")?))
    }

    /// The offloads that are on, in the order of `OFFLOADS`.
    pub fn on(&self, interface: &str) -> io::Result<Vec<&'static str>> {
        let mut found = Vec::new();
        for (name, read, _) in OFFLOADS {
            match self.call(interface, read, 0) {
                Ok(0) => {}
                Ok(_) => found.push(name),
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Switches an offload. A device that cannot do it leaves it off: that shows in `on`.
    pub fn set(&self, interface: &str, name: &str, on: bool) -> io::Result<()> {
        let Some((_, _, command)) = OFFLOADS.into_iter().find(|(known, ..)| *known == name) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("unknown offload {name:?}")));
        };
        match self.call(interface, command, u32::from(on)) {
            Err(error) if on && lacks(&error) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    fn call(&self, interface: &str, command: u32, data: u32) -> io::Result<u32> {
        let mut value = Value { command, data };
        // SAFETY: an all-zero ifreq is valid; the name stays terminated; `value` outlives the call; the descriptor is open.
        unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(interface.bytes()) {
                *to = from as libc::c_char;
            }
            request.ifr_ifru.ifru_data = (&raw mut value).cast();
            if libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(value.data)
    }
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The largest packet that it sends, B.
    pub mtu: u32,
    /// Its root queue discipline.
    pub qdisc: String,
    /// Packets that were to leave and were dropped, so far. On veth: also those for which the CPU's queue of arrivals was full
    /// (`net.core.netdev_max_backlog`).
    pub tx_dropped: u64,
}

/// Each interface, by its name.
pub fn interfaces() -> io::Result<BTreeMap<String, Interface>> {
    // SAFETY: takes no pointers; the descriptor is new, and ours alone.
    let socket = unsafe {
        let socket = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(socket)
    };
    let mut request = [0; HEADER + LINK];
    request[..4].copy_from_slice(&((HEADER + LINK) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    request[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    // SAFETY: the pointer and the length are those of the request.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut found, mut buffer) = (BTreeMap::new(), vec![0; BUFFER]);
    loop {
        // SAFETY: the pointer and the length are those of the buffer.
        let length = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        let mut rest = &buffer[..length];
        while let Some((kind, body, next)) = message(rest) {
            match kind {
                libc::RTM_NEWLINK => found.extend(link(body)),
                _ => return Ok(found),
            }
            rest = next;
        }
    }
}

/// A message's type and body, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    let body = bytes.get(HEADER..length)?;
    Some((kind, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The interface of a message.
fn link(body: &[u8]) -> Option<(String, Interface)> {
    let (mut name, mut found) = (None, Interface::default());
    let mut rest = body.get(LINK..)?;
    while let Some([low, high, kind, other]) = rest.first_chunk() {
        let length = usize::from(u16::from_ne_bytes([*low, *high]));
        let Some(value) = rest.get(4..length) else { break };
        let text = || String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
        match u16::from_ne_bytes([*kind, *other]) {
            libc::IFLA_IFNAME => name = Some(text()),
            libc::IFLA_QDISC => found.qdisc = text(),
            libc::IFLA_STATS64 => {
                let count = value.get(TX_DROPPED..).and_then(|rest| rest.first_chunk());
                found.tx_dropped = count.map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            }
            libc::IFLA_MTU => found.mtu = value.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes)),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some((name?, found))
}

fn lacks(error: &io::Error) -> bool {
    let missing = [libc::EOPNOTSUPP, libc::EAFNOSUPPORT, libc::EPROTONOSUPPORT, libc::ENODEV];
    error.raw_os_error().is_some_and(|number| missing.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_read() {
        let lo = interfaces().expect("netlink").remove("lo").expect("a loopback interface");
        assert_eq!((lo.qdisc.as_str(), lo.mtu), ("noqueue", 65_536));
        Offloads::new().expect("a socket").on("lo").expect("loopback");
    }
}
