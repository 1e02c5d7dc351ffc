//! Transparent sockets: they stand for addresses that are not this host's.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Socket, TcpKeepalive};
use tcplab_plan::Leg;
use tcplab_traffic::{SocketOptions, tcp_socket};

use crate::AcceleratorError;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// Keepalive probes without an answer after which an idle end has vanished.
const PROBES: u32 = 6;

/// A port to listen at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// One that nobody listens at; 0: of the kernel's choice.
    New(u16),
    /// One that another thread of this process listens at.
    Shared(u16),
}

/// Listens for diverted connections of IPv4 and IPv6; also says at which port. A connection from the client has the
/// settings of `leg`.
pub(crate) fn listen(leg: &Leg, place: Place) -> Result<(Socket, u16), AcceleratorError> {
    // The options of a listening socket are inherited, and buffers must be set before the handshake (tcp(7)).
    let (socket, port) = listen_at(place, leg)?;
    transparent(&socket, Domain::IPV6).map_err(AcceleratorError::Transparent)?;
    Ok((socket, port))
}

/// Listens at a port of this node's own addresses.
pub(crate) fn listen_at(place: Place, leg: &Leg) -> Result<(Socket, u16), AcceleratorError> {
    let (port, shared) = match place {
        Place::New(port) => (port, false),
        Place::Shared(port) => (port, true),
    };
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let socket = open(any, leg)?;
    let listened = (|| {
        socket.set_only_v6(false)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(shared)?;
        socket.bind(&any.into())?;
        // Only now, so that the port of another process is refused.
        socket.set_reuse_port(true)?;
        socket.listen(BACKLOG)?;
        socket.local_addr()
    })();
    let port = listened.map_err(AcceleratorError::Listen)?.as_socket().map_or(0, |address| address.port());
    Ok((socket, port))
}

/// Gives new connections to the socket that was the `number`th to listen at the port of `listener`, from 0: a filter
/// of one instruction returns its number (socket(7), SO_ATTACH_REUSEPORT_CBPF).
pub(crate) fn choose(listener: &Socket, number: usize) -> io::Result<()> {
    let code = (libc::BPF_RET | libc::BPF_K) as u16;
    let mut filter = libc::sock_filter { code, jt: 0, jf: 0, k: number as u32 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut filter };
    set(listener, libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, &program)
}

/// Begins to connect to `server` in the name of `client`; with none, from this node's own address.
pub(crate) fn connect(
    client: Option<SocketAddr>,
    server: SocketAddr,
    leg: &Leg,
    user_timeout: Duration,
) -> Result<Socket, AcceleratorError> {
    let socket = open(server, leg)?;
    if client.is_some() {
        transparent(&socket, Domain::for_address(server)).map_err(AcceleratorError::Transparent)?;
    }
    let begun = (|| {
        if let Some(client) = client {
            socket.set_reuse_address(true)?;
            socket.bind(&client.into())?;
        }
        match socket.connect(&server.into()) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            done => done,
        }
    })();
    begun.map_err(AcceleratorError::Listen)?;
    prepare(&socket, user_timeout).map_err(AcceleratorError::Transparent)?;
    Ok(socket)
}

/// Makes ready an accepted connection.
pub(crate) fn prepare(socket: &Socket, user_timeout: Duration) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // Data that came in whole leave whole: nothing waits for more, which the sender held back itself if it wanted to.
    socket.set_tcp_nodelay(true)?;
    // One that vanishes while idle is noticed as soon: after half the time it is probed. Linux counts whole seconds.
    let idle = (user_timeout / 2).max(Duration::from_secs(1));
    let interval = (idle / PROBES).max(Duration::from_secs(1));
    socket.set_tcp_keepalive(
        &TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(PROBES),
    )?;
    // If this process dies, both ends shall see an error.
    socket.set_linger(Some(Duration::ZERO))
}

fn open(address: SocketAddr, leg: &Leg) -> Result<Socket, AcceleratorError> {
    let options = SocketOptions {
        send_buffer: leg.send_buffer,
        receive_buffer: leg.receive_buffer,
        pacing: leg.pacing,
        ..SocketOptions::default()
    };
    let (socket, _) = tcp_socket(address, &options, &leg.cc.name)?;
    socket.set_nonblocking(true).map_err(AcceleratorError::Transparent)?;
    Ok(socket)
}

fn transparent(socket: &Socket, domain: Domain) -> io::Result<()> {
    let (level, option) = match domain {
        Domain::IPV4 => (libc::SOL_IP, libc::IP_TRANSPARENT),
        _ => (libc::SOL_IPV6, libc::IPV6_TRANSPARENT),
    };
    let on: libc::c_int = 1;
    set(socket, level, option, &on)
}

fn set<T>(socket: &Socket, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value can be read while the call lasts.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An IPv4 address that an IPv6 socket shows as mapped, as itself.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V6(ip) => SocketAddr::new(IpAddr::V6(ip).to_canonical(), address.port()),
        IpAddr::V4(_) => address,
    }
}

/// Waits until one of them can be read, has ended or broken; which.
pub(crate) fn wait_either(sockets: [&Socket; 2]) -> io::Result<[bool; 2]> {
    let mut polled = sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN));
    loop {
        match poll(&mut polled, PollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(polled.map(|one| one.any().unwrap_or(false))),
        }
    }
}

/// Waits until something of `flags` is so, or an error; false: not within that time.
pub(crate) fn wait(socket: &Socket, flags: PollFlags, time: Duration) -> io::Result<bool> {
    let mut polled = [PollFd::new(socket.as_fd(), flags)];
    let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    loop {
        match poll(&mut polled, timeout) {
            Err(Errno::EINTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}
