//! Whether the interface that a socket's packets leave by takes several of them as one.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use socket2::Socket;

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GGSO: u32 = 0x23;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Whether generic segmentation offload is on where this socket's packets leave (`ethtool -k`): false when it is off, or when
/// that cannot be reported.
///
/// Where it is off, a message that the kernel is to cut would still pass the interface's queue discipline in
/// one piece. Netem would delay or lose all its datagrams together.
pub(super) fn has_gso(socket: &Socket) -> bool {
    let address = socket.local_addr().ok().and_then(|own| own.as_socket());
    let Some(name) = address.and_then(|own| interface_of(own.ip())) else { return false };
    let mut value = Value { command: ETHTOOL_GGSO, data: 0 };
    // SAFETY: an all-zero ifreq is valid; the name is shorter than the field and stays terminated; the value outlives the call.
    let status = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(&name) {
            *to = *from;
        }
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
        libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request)
    };
    status == 0 && value.data != 0
}

/// The name of the interface that has this address.
fn interface_of(address: IpAddr) -> Option<Vec<libc::c_char>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the kernel's list is valid until it is freed, once, below; entries are only read.
    unsafe {
        if libc::getifaddrs(&mut first) != 0 {
            return None;
        }
        let mut found = None;
        let mut entry = first;
        while !entry.is_null() && found.is_none() {
            if ip((*entry).ifa_addr) == Some(address) {
                let name = CStr::from_ptr((*entry).ifa_name);
                found = Some(name.to_bytes().iter().map(|&byte| byte as libc::c_char).collect());
            }
            entry = (*entry).ifa_next;
        }
        libc::freeifaddrs(first);
        found
    }
}

/// # Safety
/// `address` is null or points to a socket address of its family.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller promises; read unaligned since the list may be packed.
    unsafe {
        match libc::c_int::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let v4 = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_is_found_by_its_address() {
        let name = interface_of(Ipv4Addr::LOCALHOST.into()).expect("a machine has a loopback interface");
        assert_eq!(name, [b'l' as libc::c_char, b'o' as libc::c_char]);
        // TEST-NET-1 of RFC 5737, which nobody has.
        assert_eq!(interface_of(Ipv4Addr::new(192, 0, 2, 1).into()), None);
    }
}
