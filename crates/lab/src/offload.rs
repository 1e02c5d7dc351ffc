//! Offloads of interfaces, by the ethtool ioctl (linux/ethtool.h).

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Name in a plan, and the commands that read and set it.
const OFFLOADS: [(&str, u32, u32); 3] = [("tso", 0x1e, 0x1f), ("gso", 0x23, 0x24), ("gro", 0x2b, 0x2c)];

/// struct ethtool_value
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// The interfaces of the namespace this thread was in when it was made.
pub(crate) struct Offloads(UdpSocket);

impl Offloads {
    pub(crate) fn new() -> io::Result<Offloads> {
        Ok(Offloads(UdpSocket::bind("0.0.0.0:0")?))
    }

    /// The offloads that are on, in the order of `OFFLOADS`.
    pub(crate) fn on(&self, interface: &str) -> io::Result<Vec<&'static str>> {
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
    pub(crate) fn set(&self, interface: &str, name: &str, on: bool) -> io::Result<()> {
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
            if libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL, &mut request) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(value.data)
    }
}

fn lacks(error: &io::Error) -> bool {
    let missing = [libc::EOPNOTSUPP, libc::EAFNOSUPPORT, libc::EPROTONOSUPPORT, libc::ENODEV];
    error.raw_os_error().is_some_and(|number| missing.contains(&number))
}
