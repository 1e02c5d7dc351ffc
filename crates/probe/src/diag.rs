//! Dumps of TCP sockets over netlink (`sock_diag(7)`, `inet_diag`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::published::{self, Published, Telemetry};
use crate::{Filter, TcpInfo};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const TCPDIAG_NOTIFY_DONE: u16 = libc::NLMSG_DONE as u16;
const REQ_BYTECODE: u16 = 1;
const REQ_STORAGES: u16 = 2;
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;

const ATTR_INFO: u16 = 2;
const ATTR_VEGAS: u16 = 3;
const ATTR_CONG: u16 = 4;
const ATTR_DCTCP: u16 = 9;
const ATTR_BBR: u16 = 16;
const ATTR_STORAGES: u16 = 20;

/// States in which a socket has data to send or acknowledged: ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK,
/// CLOSING; and SYN_SENT, whose timeouts are shown.
const SENDING_STATES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11;

/// The receive buffer of a dump. The kernel sizes its replies by the largest read it has seen, up to 32 KiB.
const BUFFER: usize = 64 << 10;

/// Why a dump failed.
#[derive(Debug, thiserror::Error)]
pub enum DiagError {
    /// The kernel has no sock_diag socket for us.
    #[error(
        "cannot open a sock_diag socket: {0}; the kernel needs CONFIG_INET_DIAG and CONFIG_INET_TCP_DIAG"
    )]
    Open(io::Error),
    /// The request could not be sent or its answer not read.
    #[error("sock_diag dump failed: {0}")]
    Dump(io::Error),
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, mapped IPv4 addresses included.
    V6,
}

/// A control's own report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlInfo {
    /// Nothing.
    #[default]
    None,
    /// `struct tcpvegas_info`: RTT samples in the window, last and minimum RTT in µs.
    Vegas {
        /// RTT samples since the last window change.
        samples: u32,
        /// Latest RTT, µs.
        rtt: u32,
        /// Minimum RTT, µs.
        min_rtt: u32,
    },
    /// `struct tcp_dctcp_info`.
    Dctcp {
        /// Fraction of marked bytes, in 1/1024.
        alpha: u32,
        /// Whether the last packet was marked.
        ce_state: bool,
    },
    /// `struct tcp_bbr_info`.
    Bbr {
        /// Bandwidth estimate, bytes per second.
        bandwidth: u64,
        /// Minimum RTT, µs.
        min_rtt: u32,
        /// Pacing gain in 1/256.
        pacing_gain: u32,
        /// Window gain in 1/256.
        cwnd_gain: u32,
    },
    /// A control of tcplab's.
    Published {
        /// Which of the dump's controls it is.
        control: usize,
        /// Its gauges.
        telemetry: Telemetry,
    },
}

impl ControlInfo {
    /// The report of a control of the kernel's, in its attribute of a dump.
    fn of_kernel(kind: u16, value: &[u8]) -> Option<ControlInfo> {
        Some(match kind {
            ATTR_VEGAS if value.len() >= 16 => ControlInfo::Vegas {
                samples: u32_at(value, 4),
                rtt: u32_at(value, 8),
                min_rtt: u32_at(value, 12),
            },
            ATTR_DCTCP if value.len() >= 16 => {
                ControlInfo::Dctcp { ce_state: u16_at(value, 2) != 0, alpha: u32_at(value, 4) }
            }
            ATTR_BBR if value.len() >= 20 => ControlInfo::Bbr {
                bandwidth: u64::from(u32_at(value, 4)) << 32 | u64::from(u32_at(value, 0)),
                min_rtt: u32_at(value, 8),
                pacing_gain: u32_at(value, 12),
                cwnd_gain: u32_at(value, 16),
            },
            _ => return None,
        })
    }

    /// The report of an open socket's control `cc`, with its whole state if it is one of `controls`. A socket whose connection has
    /// ended has it too (TCP_CC_INFO), and is in no dump any more.
    pub(crate) fn of(socket: RawFd, cc: &str, controls: &[Published]) -> (ControlInfo, Vec<u8>) {
        if let Some((control, telemetry, state)) = published::of(socket, cc, controls) {
            return (ControlInfo::Published { control, telemetry }, state);
        }
        // The kernel leaves out the attribute; those that report anything else report it as Vegas does.
        let kind = match cc {
            "bbr" => ATTR_BBR,
            "dctcp" => ATTR_DCTCP,
            _ => ATTR_VEGAS,
        };
        let mut value = [0_u8; 64];
        let mut len = value.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes, and says how many.
        let result = unsafe {
            libc::getsockopt(
                socket,
                libc::IPPROTO_TCP,
                libc::TCP_CC_INFO,
                value.as_mut_ptr().cast(),
                &mut len,
            )
        };
        let value = value.get(..len as usize).filter(|_| result == 0).unwrap_or_default();
        (ControlInfo::of_kernel(kind, value).unwrap_or_default(), Vec::new())
    }
}

/// One socket of a dump.
#[derive(Clone, Copy, Debug)]
pub struct Socket<'a> {
    /// Local port.
    pub local_port: u16,
    /// Remote port.
    pub remote_port: u16,
    /// The kernel's figures.
    pub info: &'a TcpInfo,
    /// Name of the congestion control.
    pub cc: &'a str,
    /// The control's own report.
    pub control: ControlInfo,
    /// The whole state of a control of tcplab's, which its gauges lead into; else empty.
    pub state: &'a [u8],
}

/// A netlink socket for dumps, with its buffers.
#[derive(Debug)]
pub struct Dump {
    socket: OwnedFd,
    request: Vec<u8>,
    buffer: Vec<u8>,
    sequence: u32,
    controls: Arc<[Published]>,
}

impl Dump {
    /// Opens one in the network namespace of the calling thread.
    pub fn open() -> Result<Dump, DiagError> {
        Dump::with_controls(Arc::new([]))
    }

    /// Opens one that also reads what `controls` publish.
    pub fn with_controls(controls: Arc<[Published]>) -> Result<Dump, DiagError> {
        // SAFETY: socket(2) takes no pointers; the descriptor it returns is owned by nobody else.
        let socket = unsafe {
            let fd =
                libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG);
            if fd < 0 {
                return Err(DiagError::Open(io::Error::last_os_error()));
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Dump { socket, request: Vec::new(), buffer: vec![0; BUFFER], sequence: 0, controls })
    }

    /// Shows every connected TCP socket of `family` that passes `filter` to `each`.
    pub fn each(
        &mut self,
        family: Family,
        filter: &Filter,
        mut each: impl FnMut(&Socket<'_>),
    ) -> Result<(), DiagError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.write_request(family, filter);
        let fd = self.socket.as_raw_fd();
        // SAFETY: the request is initialised memory of the given length.
        let sent = unsafe { libc::send(fd, self.request.as_ptr().cast(), self.request.len(), 0) };
        if sent < 0 {
            return Err(DiagError::Dump(io::Error::last_os_error()));
        }
        loop {
            // SAFETY: the buffer has the given number of writable bytes.
            let got = unsafe { libc::recv(fd, self.buffer.as_mut_ptr().cast(), self.buffer.len(), 0) };
            if got < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(DiagError::Dump(error));
            }
            let bytes = &self.buffer[..got as usize];
            if !read_messages(bytes, self.sequence, filter, &self.controls, &mut each)? {
                return Ok(());
            }
        }
    }

    fn write_request(&mut self, family: Family, filter: &Filter) {
        let code = filter.bytecode();
        let storages = Some(published::request(&self.controls)).filter(|request| !request.is_empty());
        let size = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, |v| 4 + v.len());
        let total = HEADER + REQUEST + size(&code) + size(&storages);
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        let extensions: u8 = [ATTR_INFO, ATTR_VEGAS, ATTR_CONG].iter().map(|a| 1u8 << (a - 1)).sum();
        let out = &mut self.request;
        out.clear();
        out.extend_from_slice(&(total as u32).to_ne_bytes());
        out.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        out.extend_from_slice(&flags.to_ne_bytes());
        out.extend_from_slice(&self.sequence.to_ne_bytes());
        out.extend_from_slice(&0u32.to_ne_bytes());
        let family = match family {
            Family::V4 => libc::AF_INET,
            Family::V6 => libc::AF_INET6,
        };
        out.extend_from_slice(&[family as u8, libc::IPPROTO_TCP as u8, extensions, 0]);
        out.extend_from_slice(&SENDING_STATES.to_ne_bytes());
        out.resize(HEADER + REQUEST, 0);
        // Both are whole words, so nothing needs padding.
        for (kind, value) in [(REQ_BYTECODE, code), (REQ_STORAGES, storages)] {
            let Some(value) = value else { continue };
            out.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
            out.extend_from_slice(&kind.to_ne_bytes());
            out.extend_from_slice(&value);
        }
    }
}

/// Reads one datagram of messages; false after the last one of the dump.
fn read_messages(
    mut bytes: &[u8],
    sequence: u32,
    filter: &Filter,
    controls: &[Published],
    each: &mut impl FnMut(&Socket<'_>),
) -> Result<bool, DiagError> {
    // One for all sockets: it is the bulk of what is read, and copied once.
    let mut info = TcpInfo::default();
    while bytes.len() >= HEADER {
        let len = u32_at(bytes, 0) as usize;
        if len < HEADER || len > bytes.len() {
            return Err(DiagError::Dump(io::Error::from(io::ErrorKind::InvalidData)));
        }
        let (message, rest) = bytes.split_at(len);
        bytes = &rest[(align(len) - len).min(rest.len())..];
        // An answer left over from a dump that was abandoned.
        if u32_at(message, 8) != sequence {
            continue;
        }
        match u16_at(message, 4) {
            TCPDIAG_NOTIFY_DONE => return Ok(false),
            SOCK_DIAG_BY_FAMILY if len >= HEADER + MESSAGE => {
                let socket = read_socket(&message[HEADER..], controls, &mut info);
                if filter.matches(socket.local_port, socket.remote_port) {
                    each(&socket);
                }
            }
            kind if i32::from(kind) == libc::NLMSG_ERROR && len >= HEADER + 4 => {
                let errno = -(u32_at(message, HEADER) as i32);
                if errno != 0 {
                    return Err(DiagError::Dump(io::Error::from_raw_os_error(errno)));
                }
            }
            _ => {}
        }
    }
    Ok(true)
}

/// Reads a `struct inet_diag_msg` and its attributes; `info` lends the room for the socket's figures.
fn read_socket<'a>(message: &'a [u8], controls: &[Published], info: &'a mut TcpInfo) -> Socket<'a> {
    let (mut cc, mut control, mut state): (_, _, &[u8]) = ("", ControlInfo::None, &[]);
    let (mut info_bytes, mut storages): (&[u8], &[u8]) = (&[], &[]);
    for (kind, value) in published::Attributes(&message[MESSAGE..]) {
        match kind {
            ATTR_INFO => info_bytes = value,
            ATTR_CONG => {
                let name = value.split(|&b| b == 0).next().unwrap_or_default();
                cc = std::str::from_utf8(name).unwrap_or_default();
            }
            ATTR_STORAGES => storages = value,
            _ => control = ControlInfo::of_kernel(kind, value).unwrap_or(control),
        }
    }
    if let Some((number, telemetry, whole)) = published::read(storages, cc, controls) {
        control = ControlInfo::Published { control: number, telemetry };
        state = whole;
    }
    info.copy(info_bytes);
    Socket {
        local_port: u16::from_be_bytes([message[4], message[5]]),
        remote_port: u16::from_be_bytes([message[6], message[7]]),
        info,
        cc,
        control,
        state,
    }
}

fn align(len: usize) -> usize {
    (len + 3) & !3
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_dump_shows_the_sockets_of_the_filters_port_and_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let _other = TcpStream::connect(other.local_addr().unwrap()).unwrap();
        let mut dump = match Dump::open() {
            Ok(dump) => dump,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let mut seen = Vec::new();
        let filter = Filter { local: vec![], remote: vec![port..=port] };
        dump.each(Family::V4, &filter, |s| seen.push((s.local_port, *s.info, s.cc.to_owned()))).unwrap();
        assert_eq!(seen.len(), 1);
        let (local, info, cc) = &seen[0];
        assert_eq!(*local, client.local_addr().unwrap().port());
        assert_eq!(info.state, 1);
        assert!(info.snd_cwnd >= 10 && info.snd_mss > 500, "{info:?}");
        assert!(!cc.is_empty());
    }

    #[test]
    fn a_damaged_message_is_an_error_not_a_panic() {
        let mut bytes = vec![0u8; 40];
        bytes[0] = 8;
        let result = read_messages(&bytes, 0, &Filter::default(), &[], &mut |_| {});
        assert!(result.is_err());
    }
}
