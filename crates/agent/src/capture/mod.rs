//! Captures at the host: what tcpdump in this namespace would see, super-packets included.

pub mod choice;
pub mod live;
mod ring;

use std::cell::RefCell;
use std::ffi::CStr;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Deserialize;
use tcplab_pcap::{Interface, PartFile, Writer};
use tcplab_units::Time;

use choice::Choice;
use ring::Ring;

use crate::destination::Destination;

/// Ethernet, IPv4 with options or IPv6, TCP with options.
const HEADERS: u32 = 14 + 60 + 60;
/// The most a packet holds: 64 KiB of IP, or less than 512 KiB with BIG TCP.
const WHOLE: u32 = 512 << 10;

/// How much of each packet is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Ethernet, IP and transport headers.
    Headers,
    /// Everything.
    Full,
}

/// Why an interface cannot be captured.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum CaptureError {
    #[error("cannot capture on {interface}: {source}")]
    Open { interface: String, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl CaptureError {
    /// How to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            CaptureError::Open { source, .. } if source.raw_os_error() == Some(libc::EPERM) => {
                "run as root, or with CAP_NET_RAW over the namespace"
            }
            CaptureError::Open { .. } => "name an interface of the node: ip link",
            CaptureError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "free space on this disk, or capture headers only"
            }
            CaptureError::Write { .. } => "give a run directory that can be written",
        }
    }
}

/// One interface's capture, open since it was prepared.
#[derive(Debug)]
pub struct Capture {
    ring: Ring,
    interface: String,
    snap_len: u32,
    /// None: every packet.
    choice: Option<Choice>,
    path: PathBuf,
    file: Written,
}

/// Where a capture goes.
enum Written {
    /// A file of this machine.
    Here(PartFile),
    /// The caller's.
    There(Box<dyn Write + Send>),
}

impl std::fmt::Debug for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Written::Here(_) => "Here",
            Written::There(_) => "There",
        })
    }
}

/// Counters of a capture.
#[derive(Debug, Default)]
pub struct Seen {
    /// Packets written.
    pub packets: AtomicU64,
    /// Packets the kernel had no room for.
    pub drops: AtomicU64,
}

/// The interfaces that packets to these addresses leave by.
pub fn interfaces_towards(peers: &[IpAddr]) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for peer in peers {
        let any: IpAddr =
            if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0))?;
        // Nothing is sent: the kernel chooses the address that it would send from. Port 9 is discard.
        socket.connect((*peer, 9))?;
        names.extend(interface_with(socket.local_addr()?.ip())?);
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// The interface that has an address.
fn interface_with(address: IpAddr) -> io::Result<Option<String>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: `list` is valid for the call, which makes a list that ends with a null pointer. Its names are terminated and
    // its addresses are of the family they say. It is freed once, after the last use.
    unsafe {
        if libc::getifaddrs(&raw mut list) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut found = None;
        let mut next = list;
        while let Some(entry) = next.as_ref() {
            let own = entry.ifa_addr.as_ref().and_then(|own| match i32::from(own.sa_family) {
                libc::AF_INET => {
                    let own = &*entry.ifa_addr.cast::<libc::sockaddr_in>();
                    Some(IpAddr::from(own.sin_addr.s_addr.to_ne_bytes()))
                }
                libc::AF_INET6 => {
                    Some(IpAddr::from((*entry.ifa_addr.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr))
                }
                _ => None,
            });
            if own == Some(address) {
                found = Some(CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned());
                break;
            }
            next = entry.ifa_next;
        }
        libc::freeifaddrs(list);
        Ok(found)
    }
}

/// The interfaces of this namespace except loopback.
pub fn interfaces() -> io::Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    // /sys shows the namespace it was mounted in; /proc shows ours.
    for line in std::fs::read_to_string("/proc/net/dev")?.lines().skip(2) {
        if let Some((name, _)) = line.split_once(':')
            && name.trim() != "lo"
        {
            names.push(name.trim().to_owned());
        }
    }
    Ok(names)
}

impl Capture {
    /// Opens `interface` of `node` and its file at `to`, for the packets of `choice`.
    pub fn open(
        node: &str,
        to: &Destination,
        interface: &str,
        what: What,
        choice: Option<Choice>,
    ) -> Result<Capture, CaptureError> {
        let name = format!("{node}.{interface}.pcapng");
        let path = to.path(&name);
        let snap_len = if what == What::Headers { HEADERS } else { WHOLE };
        let ring = Ring::open(interface, snap_len)
            .map_err(|source| CaptureError::Open { interface: interface.to_owned(), source })?;
        let file = match to {
            Destination::Directory(_) => PartFile::create(&path).map(Written::Here),
            Destination::Caller => to.create(&name).map(Written::There),
        };
        let file = file.map_err(|source| CaptureError::Write { path: path.clone(), source })?;
        Ok(Capture { ring, interface: interface.to_owned(), snap_len, choice, path, file })
    }

    /// The capture's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Writes packets until the run is over.
    pub fn run(mut self, stop: &AtomicBool, seen: &Seen) -> Result<(), CaptureError> {
        let (source, choice) =
            (Source { interface: &self.interface, snap_len: self.snap_len }, self.choice.as_ref());
        let written = match self.file {
            Written::Here(file) => {
                record(&mut self.ring, source, choice, &file, stop, seen).and_then(|()| file.finish())
            }
            Written::There(file) => record(&mut self.ring, source, choice, file, stop, seen),
        };
        written.map_err(|source| CaptureError::Write { path: self.path, source })
    }
}

/// Writes all packets of `interface` to `to` until `stop` is set.
pub fn stream(interface: &str, to: impl Write, stop: &AtomicBool, seen: &Seen) -> io::Result<()> {
    let mut ring = Ring::open(interface, WHOLE)?;
    record(&mut ring, Source { interface, snap_len: WHOLE }, None, to, stop, seen)
}

/// Link type of a ring's packets.
struct Source<'a> {
    interface: &'a str,
    snap_len: u32,
}

fn record(
    ring: &mut Ring,
    source: Source<'_>,
    choice: Option<&Choice>,
    to: impl Write,
    stop: &AtomicBool,
    seen: &Seen,
) -> io::Result<()> {
    let file = RefCell::new(BufWriter::with_capacity(1 << 18, to));
    // Packets carry CLOCK_REALTIME, so times are those since 1970 already.
    let mut writer = Writer::new(Shared(&file), 0)?;
    let interface = writer.add_interface(Interface { name: source.interface, snap_len: source.snap_len })?;
    file.borrow_mut().flush()?;
    loop {
        let last = stop.load(Ordering::Relaxed);
        let more = ring.read(|packet| {
            if choice.is_some_and(|choice| !choice.keeps(packet.bytes)) {
                return Ok(());
            }
            seen.packets.fetch_add(1, Ordering::Relaxed);
            writer.write_packet(interface, Time::from_ns(packet.at), packet.bytes, packet.len)
        })?;
        if more {
            // By whole blocks, so that what was captured survives the process.
            file.borrow_mut().flush()?;
        } else if last {
            // Frames that the ring still held when the run ended belong to the capture, and are written.
            break;
        }
    }
    let drops = ring.drops()?;
    seen.drops.store(drops, Ordering::Relaxed);
    writer.write_statistics(interface, drops)?;
    writer.finish().map(|_| ())
}

/// A writer that can be flushed while another holds it.
#[derive(Debug)]
struct Shared<'a, W>(&'a RefCell<W>);

impl<W: Write> Write for Shared<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}
