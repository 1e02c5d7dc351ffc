//! TCP sockets with the flow's settings: applied, read back, and connected within the run's time.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tcplab_plan::Flow;

use crate::{Context, SocketOptions, TrafficError};

/// How often a waiting stream looks whether the run is over.
pub(crate) const ATTENTION: Duration = Duration::from_millis(100);

/// A window the kernel granted less of than was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// The socket option.
    pub option: &'static str,
    /// Bytes asked.
    pub asked: u64,
    /// Bytes granted.
    pub granted: u64,
}

impl Clamped {
    /// In words.
    pub fn message(&self) -> String {
        let Clamped { option, asked, granted } = self;
        format!("the kernel granted {granted} bytes of {option} where {asked} were asked")
    }

    /// The command that allows more.
    pub fn hint(&self) -> String {
        let sysctl = if self.option == "SO_SNDBUF" { "wmem_max" } else { "rmem_max" };
        format!("sysctl -w net.core.{sysctl}={}", self.asked)
    }
}

/// Opens a TCP socket for `address` with `options` and congestion control `cc`; empty: the kernel's default.
pub fn tcp(
    address: SocketAddr,
    options: &SocketOptions,
    cc: &str,
) -> Result<(Socket, Vec<Clamped>), TrafficError> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
        .map_err(|source| TrafficError::Socket { what: "TCP", source })?;
    // Always set: what a namespace takes for its default depends on the host.
    if !cc.is_empty() {
        socket.set_tcp_congestion(cc.as_bytes()).map_err(|source| TrafficError::Control {
            name: cc.to_owned(),
            available: available_controls().join(", "),
            allowed: controls("allowed").join(" "),
            source,
        })?;
    }
    if let Some(mss) = options.mss {
        option("TCP_MAXSEG", u64::from(mss), socket.set_tcp_mss(mss))?;
    }
    if !options.nagle {
        option("TCP_NODELAY", 1, socket.set_tcp_nodelay(true))?;
    }
    if let Some(rate) = pacing_rate(options) {
        let set = set(&socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate);
        option("SO_MAX_PACING_RATE", rate, set)?;
    }
    let mut clamped = Vec::new();
    clamped.extend(buffer(&socket, Buffer::Send, options.send_buffer)?);
    clamped.extend(buffer(&socket, Buffer::Receive, options.receive_buffer)?);
    Ok((socket, clamped))
}

/// The rate to hand to SO_MAX_PACING_RATE in bytes per second; none: leave pacing to the control.
///
/// The kernel paces a socket from the first rate on that is not its "unlimited" (`sk_setsockopt` turns
/// SK_PACING_NONE into SK_PACING_NEEDED), so one below that asks for pacing without a bound.
fn pacing_rate(options: &SocketOptions) -> Option<u64> {
    match options.max_pacing_rate {
        Some(rate) => Some((rate / 8).max(1)),
        None => options.pacing.then_some(u64::MAX - 1),
    }
}

fn option(option: &'static str, value: u64, result: io::Result<()>) -> Result<(), TrafficError> {
    result.map_err(|source| TrafficError::Option { option, value, source })
}

/// Sends with the DSCP and the ECN field of `flow`; the sockets that a listening one accepts do so too. The kernel keeps
/// TCP's own ECN field.
pub(crate) fn set_traffic_class(
    socket: &Socket,
    address: SocketAddr,
    flow: &Flow,
) -> Result<(), TrafficError> {
    let class = flow.dscp << 2 | flow.traffic.ecn_field();
    if class == 0 {
        return Ok(());
    }
    let value = libc::c_int::from(class);
    let (name, set) = match address {
        SocketAddr::V4(_) => ("IP_TOS", set(socket, libc::IPPROTO_IP, libc::IP_TOS, value)),
        SocketAddr::V6(_) => ("IPV6_TCLASS", set(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, value)),
    };
    option(name, u64::from(class), set)
}

/// Sets an option whose value is a `T`.
pub(crate) fn set<T: Copy>(
    socket: &Socket,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the value is as many readable bytes as are said.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(&value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Buffer {
    Send,
    Receive,
}

/// Sets a buffer and reads it back. Beyond the host's limit only a privileged process gets it.
pub(crate) fn buffer(
    socket: &Socket,
    which: Buffer,
    asked: Option<u64>,
) -> Result<Option<Clamped>, TrafficError> {
    let Some(asked) = asked else { return Ok(None) };
    let (name, force) = match which {
        Buffer::Send => ("SO_SNDBUF", libc::SO_SNDBUFFORCE),
        Buffer::Receive => ("SO_RCVBUF", libc::SO_RCVBUFFORCE),
    };
    // The kernel doubles the value into an int.
    if asked > i32::MAX as u64 / 2 {
        let source = io::Error::from_raw_os_error(libc::EINVAL);
        return Err(TrafficError::Option { option: name, value: asked, source });
    }
    let size = asked as usize;
    let result = match which {
        Buffer::Send => socket.set_send_buffer_size(size),
        Buffer::Receive => socket.set_recv_buffer_size(size),
    };
    option(name, asked, result)?;
    let granted = || {
        let doubled = match which {
            Buffer::Send => socket.send_buffer_size(),
            Buffer::Receive => socket.recv_buffer_size(),
        };
        doubled.map(|bytes| bytes as u64 / 2).unwrap_or(0)
    };
    if granted() < asked {
        // A refusal (no CAP_NET_ADMIN over the host) leaves the clamped size.
        let _ = set(socket, libc::SOL_SOCKET, force, asked as libc::c_int);
    }
    let granted = granted();
    Ok((granted < asked).then_some(Clamped { option: name, asked, granted }))
}

/// Controls this namespace can choose.
pub fn available_controls() -> Vec<String> {
    controls("available")
}

/// Controls that are `available`, or `allowed` to a process without CAP_NET_ADMIN (tcp(7)).
fn controls(which: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{which}_congestion_control"));
    text.unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect()
}

/// Listens on `address`; port 0 lets the kernel choose.
pub(crate) fn listen(socket: Socket, address: SocketAddr) -> Result<(Socket, u16), TrafficError> {
    let failed = |source| TrafficError::Listen { address, source };
    socket.set_reuse_address(true).map_err(failed)?;
    if address.is_ipv6() {
        socket.set_only_v6(true).map_err(failed)?;
    }
    socket.bind(&address.into()).map_err(failed)?;
    socket.listen(16).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let port = local_port(&socket).map_err(failed)?;
    Ok((socket, port))
}

pub(crate) fn local_port(socket: &Socket) -> io::Result<u16> {
    Ok(socket.local_addr()?.as_socket().map_or(0, |address| address.port()))
}

/// Connects within the run's time. `asked` is called once the SYN is sent: the socket then has a port.
pub(crate) fn connect(
    socket: &Socket,
    address: SocketAddr,
    context: &Context,
    asked: impl FnOnce(),
) -> Result<(), TrafficError> {
    let failed = |source| TrafficError::Connect { address, source };
    socket.set_nonblocking(true).map_err(failed)?;
    match socket.connect(&address.into()) {
        Ok(()) => asked(),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {
            asked();
            let mut answered = false;
            while !answered {
                answered = wait(socket, libc::POLLOUT).map_err(failed)?;
                // An answer that comes later is none.
                if context.over() {
                    let late = "no answer before the run ended";
                    return Err(failed(io::Error::new(io::ErrorKind::TimedOut, late)));
                }
            }
            if let Some(error) = socket.take_error().map_err(failed)? {
                return Err(failed(error));
            }
        }
        Err(error) => return Err(failed(error)),
    }
    socket.set_nonblocking(false).map_err(failed)
}

/// The first connection to `listener` within the run's time.
pub(crate) fn accept(
    listener: &Socket,
    address: SocketAddr,
    context: &Context,
) -> Result<Socket, TrafficError> {
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                let failed = |source| TrafficError::Broken { stream: 0, address, source };
                socket.set_nonblocking(false).map_err(failed)?;
                return Ok(socket);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if context.over() {
                    return Err(TrafficError::NobodyConnected { address });
                }
                wait(listener, libc::POLLIN).map_err(|source| TrafficError::Listen { address, source })?;
            }
            Err(source) => return Err(TrafficError::Listen { address, source }),
        }
    }
}

/// Waits a moment for `events`; true when there are any.
pub(crate) fn wait(socket: &Socket, events: libc::c_short) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    // SAFETY: one valid pollfd.
    let ready = unsafe { libc::poll(&mut poll, 1, ATTENTION.as_millis() as libc::c_int) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
    }
    Ok(ready > 0)
}
