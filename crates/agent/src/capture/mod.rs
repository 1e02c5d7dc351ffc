//! Captures at the host: what tcpdump in this namespace would see, super-packets included.

pub mod live;
mod ring;

use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Deserialize;
use tcplab_pcap::{Interface, PartFile, Writer};
use tcplab_units::Time;

use ring::Ring;

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
    /// What to do about it.
    pub fn mend(&self) -> &'static str {
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
    file: PartFile,
}

/// What a capture has seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// Packets written.
    pub packets: AtomicU64,
    /// Packets the kernel had no room for.
    pub drops: AtomicU64,
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
    /// Opens `interface` of `node` and its file in `dir`.
    pub fn open(node: &str, dir: &Path, interface: &str, what: What) -> Result<Capture, CaptureError> {
        let path = dir.join(format!("{node}.{interface}.pcapng"));
        let snap_len = if what == What::Headers { HEADERS } else { WHOLE };
        let ring = Ring::open(interface, snap_len)
            .map_err(|source| CaptureError::Open { interface: interface.to_owned(), source })?;
        let file = PartFile::create(&path).map_err(|source| CaptureError::Write { path, source })?;
        Ok(Capture { ring, interface: interface.to_owned(), snap_len, file })
    }

    /// The capture's file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Writes packets until the run is over.
    pub fn run(mut self, stop: &AtomicBool, seen: &Seen) -> Result<(), CaptureError> {
        let path = self.path().to_owned();
        let written = self.write(stop, seen).and_then(|()| self.file.finish());
        written.map_err(|source| CaptureError::Write { path, source })
    }

    fn write(&mut self, stop: &AtomicBool, seen: &Seen) -> io::Result<()> {
        record(&mut self.ring, &self.interface, self.snap_len, &self.file, stop, seen)
    }
}

/// Writes all packets of `interface` to `to` until `stop` is set.
pub fn stream(interface: &str, to: impl Write, stop: &AtomicBool, seen: &Seen) -> io::Result<()> {
    record(&mut Ring::open(interface, WHOLE)?, interface, WHOLE, to, stop, seen)
}

fn record(
    ring: &mut Ring,
    interface: &str,
    snap_len: u32,
    to: impl Write,
    stop: &AtomicBool,
    seen: &Seen,
) -> io::Result<()> {
    let file = RefCell::new(BufWriter::with_capacity(1 << 18, to));
    // Packets carry CLOCK_REALTIME, so times are those since 1970 already.
    let mut writer = Writer::new(Shared(&file), 0)?;
    let interface = writer.add_interface(Interface { name: interface, snap_len })?;
    file.borrow_mut().flush()?;
    loop {
        let last = stop.load(Ordering::Relaxed);
        let more = ring.read(|packet| {
            seen.packets.fetch_add(1, Ordering::Relaxed);
            writer.write_packet(interface, Time::from_ns(packet.at), packet.bytes, packet.len)
        })?;
        if more {
            // By whole blocks, so that what was captured survives the process.
            file.borrow_mut().flush()?;
        } else if last {
            // What the ring still held when the run ended belongs to the capture, and is written.
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
