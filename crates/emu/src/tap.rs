//! TAP devices in other processes' network namespaces.
//!
//! A device lives as long as its descriptor: when this process ends, however it ends, it is gone.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::at_once::at_once;
use crate::coalescing::Coalescing;
use crate::config::End;
use crate::tx_timestamps::{Idle, TxTimestamps};

/// Frames that wait in the device for the emulator. The default of 500 is filled by one burst of datagrams; what does
/// not find room is lost to the sender's namespace unseen.
const QUEUE_LEN: libc::c_int = 10_000;

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETPERSIST: libc::c_ulong = 0x4004_54cb;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUNSETCARRIER: libc::c_ulong = 0x4004_54e2;
const IFF_TAP: libc::c_short = 0x0002;
const IFF_NO_PI: libc::c_short = 0x1000;
const IFF_VNET_HDR: libc::c_short = 0x4000;
const IFF_TUN_EXCL: libc::c_short = 0x8000u16 as libc::c_short;
const TUN_F_CSUM: libc::c_uint = 0x01;
const TUN_F_TSO4: libc::c_uint = 0x02;
const TUN_F_TSO6: libc::c_uint = 0x04;
const TUN_F_TSO_ECN: libc::c_uint = 0x08;
const TUN_F_USO: libc::c_uint = 0x20 | 0x40;

/// Why a device cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} for {interface}: {source}")]
pub struct TapError {
    doing: &'static str,
    interface: String,
    source: io::Error,
}

impl TapError {
    /// How to fix it.
    pub fn hint(&self) -> &'static str {
        match (self.doing, self.source.raw_os_error()) {
            ("open /dev/net/tun", Some(libc::ENOENT | libc::ENODEV | libc::ENXIO)) => {
                "load the module (modprobe tun) or make the device (mkdir -p /dev/net && mknod /dev/net/tun c 10 200)"
            }
            (_, Some(libc::EPERM | libc::EACCES)) => {
                "run as root, or inside a user namespace that owns the nodes: unshare --user --map-root-user"
            }
            ("make a TAP device", Some(libc::EBUSY)) => {
                "give the two ends of links in one node different interface names"
            }
            (_, Some(libc::EMFILE | libc::ENFILE)) => "raise the limit of open files: ulimit -n",
            _ => "see that the node's process is alive and the interface's name, MAC and MTU are valid",
        }
    }
}

/// A device, seen from outside its namespace.
#[derive(Debug)]
pub(crate) struct Tap {
    file: OwnedFd,
    /// Packets that the namespace accepts merged.
    pub(crate) coalescing: Coalescing,
    /// None where the kernel does not note when frames leave their node.
    timestamps: Option<TxTimestamps>,
    /// The counters of the namespace's devices.
    counters: File,
    name: String,
    carrier: bool,
    /// Frames that were dropped while there was no carrier, and the count when it was lost last.
    unplugged: u64,
    lost_at: u64,
}

impl Tap {
    /// Makes the device that each of `ends` describes in the namespace of its process; they are down still.
    pub(crate) fn open_all<'a>(ends: impl Iterator<Item = &'a End>) -> Result<Vec<Tap>, TapError> {
        let opened = ends.map(Tap::open).collect::<Result<Vec<_>, _>>()?;
        let (mut taps, stampers): (Vec<Tap>, Vec<_>) = opened.into_iter().unzip();
        at_once(taps.iter_mut().zip(stampers).collect(), |(tap, stamper)| {
            tap.timestamps = stamper.and_then(|stamper| stamper.begin().ok());
        });
        Ok(taps)
    }

    fn open(end: &End) -> Result<(Tap, Option<Idle>), TapError> {
        let failed = |doing, source| TapError { doing, interface: end.interface.clone(), source };
        let own = File::open("/proc/thread-self/ns/net").map_err(|e| failed("find our own namespace", e))?;
        let namespace = File::open(format!("/proc/{}/ns/net", end.pid))
            .map_err(|e| failed("find the node's namespace", e))?;
        let counters = File::open(format!("/proc/{}/net/dev", end.pid))
            .map_err(|e| failed("find the node's counters", e))?;
        enter(&namespace).map_err(|e| failed("enter the node's namespace", e))?;
        let made = make(end);
        // Only a thread that is back may go on.
        enter(&own).map_err(|e| failed("leave the node's namespace", e))?;
        let (file, coalescing, stamper) = made.map_err(|(doing, e)| failed(doing, e))?;
        let name = end.interface.clone();
        let tap = Tap {
            file,
            coalescing,
            timestamps: None,
            counters,
            name,
            carrier: true,
            unplugged: 0,
            lost_at: 0,
        };
        Ok((tap, stamper))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Reads one frame with its virtio header; none: there is none now.
    #[inline]
    pub(crate) fn read(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: `room` is valid for its whole length.
        let read = unsafe { libc::read(self.fd(), room.as_mut_ptr().cast(), room.len()) };
        if read >= 0 {
            return Ok(Some(read as usize));
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            error => Err(error),
        }
    }

    /// When `frame`, which was read, left its node: CLOCK_REALTIME, ns; None: no timestamp.
    #[inline]
    pub(crate) fn timestamp(&mut self, frame: &[u8]) -> Option<u64> {
        self.timestamps.as_mut()?.find(frame)
    }

    /// Writes one frame that lies in several parts.
    #[inline]
    pub(crate) fn write(&self, parts: &[libc::iovec]) -> io::Result<()> {
        // SAFETY: whoever made `parts` sees to it that each is valid for reading.
        let written = unsafe { libc::writev(self.fd(), parts.as_ptr(), parts.len() as libc::c_int) };
        if written >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Tells the node whether something is at the other end. A kernel before Linux 5.0 cannot.
    pub(crate) fn set_carrier(&mut self, is_up: bool) {
        if is_up == self.carrier {
            return;
        }
        if is_up {
            self.unplugged += self.dropped() - self.lost_at;
        } else {
            self.lost_at = self.dropped();
        }
        self.carrier = is_up;
        let value = libc::c_int::from(is_up);
        // SAFETY: the request reads an int, which outlives the call.
        unsafe { libc::ioctl(self.fd(), TUNSETCARRIER as _, &raw const value) };
    }

    /// Leaves the device to its namespace. The kernel removes the devices of namespaces that end all at once; closed, each
    /// is removed by itself, which waits for every CPU (rcu_barrier) and takes 16 ms or more. Returns what read its timestamps.
    pub(crate) fn leave(&mut self) -> Option<TxTimestamps> {
        // SAFETY: the request takes a number. Where it fails the device ends as ever.
        unsafe { libc::ioctl(self.fd(), TUNSETPERSIST as _, 1 as libc::c_ulong) };
        self.timestamps.take()
    }

    /// Frames that found no room in the device on their way to the emulator, so far.
    pub(crate) fn overflows(&self) -> u64 {
        let dropped = self.dropped();
        dropped - self.unplugged - if self.carrier { 0 } else { dropped - self.lost_at }
    }

    /// Frames that the namespace's side of the device has dropped.
    fn dropped(&self) -> u64 {
        use std::os::unix::fs::FileExt;
        let mut text = vec![0; 1 << 16];
        let len = self.counters.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..len]);
        let device =
            text.lines().find_map(|line| line.trim_start().strip_prefix(&self.name)?.strip_prefix(':'));
        // Behind the eight counters of reception stand bytes, packets, errors and drops of transmission.
        device.and_then(|counters| counters.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
    }
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: takes no pointers; only this thread changes its namespace.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

type Made = Result<(OwnedFd, Coalescing, Option<Idle>), (&'static str, io::Error)>;

fn make(end: &End) -> Made {
    let path = CString::from(c"/dev/net/tun");
    // SAFETY: the path is terminated; a valid descriptor has no other owner.
    let file = unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC);
        if fd < 0 {
            return Err(("open /dev/net/tun", io::Error::last_os_error()));
        }
        OwnedFd::from_raw_fd(fd)
    };
    let fd = file.as_raw_fd();
    let mut request = request(&end.interface).map_err(|e| ("name a TAP device", e))?;
    request.ifr_ifru.ifru_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_TUN_EXCL;
    ioctl(fd, TUNSETIFF, &mut request).map_err(|e| ("make a TAP device", e))?;
    let coalescing = offload(fd, end).map_err(|e| ("set the offloads", e))?;

    let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(|e| ("open a socket", e))?;
    let socket = socket.as_raw_fd();
    request.ifr_ifru.ifru_hwaddr = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
    // SAFETY: the field just set is the valid one.
    let address = unsafe { &mut request.ifr_ifru.ifru_hwaddr.sa_data };
    for (to, from) in address.iter_mut().zip(end.mac.0) {
        *to = from as libc::c_char;
    }
    ioctl(socket, libc::SIOCSIFHWADDR, &mut request).map_err(|e| ("set the MAC", e))?;
    request.ifr_ifru.ifru_mtu = end.mtu as libc::c_int;
    ioctl(socket, libc::SIOCSIFMTU, &mut request).map_err(|e| ("set the MTU", e))?;
    request.ifr_ifru.ifru_metric = QUEUE_LEN;
    match ioctl(socket, libc::SIOCSIFTXQLEN, &mut request) {
        // This call asks for privileges over the whole machine; over netlink those over the namespace are enough, so
        // whoever configures the interface can still do it.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
        done => done.map_err(|e| ("set the queue length", e))?,
    }
    ioctl(socket, libc::SIOCGIFINDEX, &mut request).map_err(|e| ("find the number", e))?;
    // SAFETY: the field just filled is the valid one.
    let index = unsafe { request.ifr_ifru.ifru_ifindex };
    // Where packet sockets are not to be had (CAP_NET_RAW over the namespace), the time of reading has to do.
    Ok((file, coalescing, Idle::of(index).ok()))
}

/// Has the namespace leave checksums, and segmentation if it may, to the device.
fn offload(fd: RawFd, end: &End) -> io::Result<Coalescing> {
    let set = |features: libc::c_uint| {
        // SAFETY: the request takes a number.
        check(unsafe { libc::ioctl(fd, TUNSETOFFLOAD as _, libc::c_ulong::from(features)) })
    };
    let tso = if end.tso { TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN } else { 0 };
    // UDP segmentation needs Linux 6.2. The offloads that a device takes do not depend on those that it gives, but a kernel
    // that knows neither is recognized here.
    let has_uso = set(TUN_F_CSUM | tso | TUN_F_USO).is_ok();
    if !has_uso || !end.tso {
        set(TUN_F_CSUM | tso)?;
    }
    Ok(Coalescing { tcp: end.gro, udp: end.gro && has_uso })
}

fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(['\0', '/', '%']) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn ioctl(fd: RawFd, what: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: all requests used here take a valid ifreq.
    check(unsafe { libc::ioctl(fd, what as _, std::ptr::from_mut(request)) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
