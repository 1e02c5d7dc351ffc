//! Ancillary data of a datagram: its time of arrival, and the router that dropped one that was sent.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use socket2::{SockAddr, Socket};

/// A datagram, or a router's word about one of ours.
#[derive(Debug, Default)]
pub struct Arrived {
    /// Bytes.
    pub length: usize,
    /// Who sent it.
    pub from: Option<SocketAddr>,
    /// When it came, ns on CLOCK_REALTIME, where that was asked for.
    pub at: Option<u64>,
    /// The router that dropped it.
    pub router: Option<IpAddr>,
}

/// Has the kernel say when each datagram came.
pub fn stamp_arrivals(socket: &Socket) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Sends datagrams whole or not at all, whatever is known of the path (`ip(7)`, IP_PMTUDISC_PROBE).
pub fn never_fragment(socket: &Socket, v6: bool) -> io::Result<()> {
    match v6 {
        true => set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
        false => set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
    }
}

/// Keeps what routers say about datagrams, for `receive` with MSG_ERRQUEUE.
pub fn keep_errors(socket: &Socket, v6: bool) -> io::Result<()> {
    match v6 {
        true => set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
        false => set(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1),
    }
}

/// The largest packet that the route of a connected socket begins with, B.
pub fn route_mtu(socket: &Socket, v6: bool) -> io::Result<usize> {
    let (level, option) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let mut mtu: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is an int, and `mtu` and `length` are valid for writing one.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut mtu).cast(), &raw mut length)
    };
    if result == 0 { Ok((mtu as usize).min(65_535)) } else { Err(io::Error::last_os_error()) }
}

/// Takes the next datagram, with what the kernel says of it.
pub fn receive(socket: &Socket, buffer: &mut [u8], flags: libc::c_int) -> io::Result<Arrived> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = [0_u64; 64];
    // SAFETY: an all-zero msghdr is valid; every pointer in it is to memory of the length given beside it, which lives
    // until the call has returned. The address is whole when recvmsg(2) has written it.
    let (header, length, from) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        let (received, from) = SockAddr::try_init(|storage, size| {
            header.msg_name = storage.cast();
            header.msg_namelen = *size;
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&control) as _;
            let received = libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags);
            if received < 0 {
                return Err(io::Error::last_os_error());
            }
            *size = header.msg_namelen;
            Ok(received)
        })?;
        (header, received as usize, from)
    };
    let mut arrived = Arrived { length, from: from.as_socket(), ..Arrived::default() };
    // SAFETY: the kernel has filled the control buffer, and the macros stay within its length. The level and type of
    // each message say what the message holds (`socket(7)`, `ip(7)`). Its data is read unaligned.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            let data = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let at: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                    arrived.at = Some(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64);
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) => {
                    let offender = data.add(size_of::<libc::sock_extended_err>());
                    let address: libc::sockaddr_in = offender.cast::<libc::sockaddr_in>().read_unaligned();
                    if libc::c_int::from(address.sin_family) == libc::AF_INET {
                        arrived.router = Some(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()));
                    }
                }
                (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    let offender = data.add(size_of::<libc::sock_extended_err>());
                    let address: libc::sockaddr_in6 = offender.cast::<libc::sockaddr_in6>().read_unaligned();
                    if libc::c_int::from(address.sin6_family) == libc::AF_INET6 {
                        arrived.router = Some(IpAddr::from(address.sin6_addr.s6_addr));
                    }
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    Ok(arrived)
}

fn set(socket: &Socket, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the option is an int, and `value` is one.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
