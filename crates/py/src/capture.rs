//! Captured packets into pcapng files, one for each interface.

use std::io::{self, BufWriter};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tcplab_pcap::build::{Echo, Ethernet, Ip, Ipv4, Ipv6, Keep, Tcp, TcpOptions, Udp};
use tcplab_pcap::{FrameBuffer, Interface, InterfaceId, PartFile, Writer};
use tcplab_sim::capture::{self, CaptureSink, Frame};
use tcplab_sim::packet::Body;
use tcplab_sim::plan::CaptureWhat;
use tcplab_tcp::Segment;
use tcplab_tcp::segment::SYN;
use tcplab_units::Time;

/// The first error of a capture's files, shared between the sink and its owner.
pub(crate) type Failure = Arc<Mutex<Option<(PathBuf, io::Error)>>>;

/// Writes `NODE-LINK.pcapng` for every captured interface.
pub(crate) struct Files {
    files: Vec<CaptureFile>,
    buffer: FrameBuffer,
    failure: Failure,
}

struct CaptureFile {
    path: PathBuf,
    /// None once writing has failed.
    writer: Option<Writer<BufWriter<PartFile>>>,
    interface: InterfaceId,
}

impl Files {
    /// Creates the files in `directory`.
    pub(crate) fn create(
        directory: &Path,
        interfaces: &[capture::Interface],
        what: CaptureWhat,
        failure: Failure,
    ) -> Result<Files, (PathBuf, io::Error)> {
        let keep = match what {
            CaptureWhat::Headers => Keep::Headers,
            CaptureWhat::Full => Keep::Full,
        };
        let files = interfaces.iter().map(|interface| {
            let path = directory.join(format!("{}-{}.pcapng", interface.node, interface.link));
            CaptureFile::create(&path, interface).map_err(|error| (path.clone(), error))
        });
        Ok(Files { files: files.collect::<Result<_, _>>()?, buffer: FrameBuffer::new(keep), failure })
    }
}

impl CaptureFile {
    fn create(path: &Path, interface: &capture::Interface) -> io::Result<CaptureFile> {
        // Simulated time begins at 1970.
        let mut writer = Writer::new(BufWriter::with_capacity(1 << 18, PartFile::create(path)?), 0)?;
        let interface = writer.add_interface(Interface { name: &interface.link, snap_len: 0 })?;
        Ok(CaptureFile { path: path.to_owned(), writer: Some(writer), interface })
    }
}

impl CaptureSink for Files {
    fn frame(&mut self, interface: usize, at: Time, frame: &Frame) {
        let Some(file) = self.files.get_mut(interface) else { return };
        let Some(writer) = &mut file.writer else { return };
        let built = build(&mut self.buffer, frame);
        if let Err(error) = writer.write_packet(file.interface, at, built.bytes, built.original_len) {
            file.writer = None;
            note(&self.failure, &file.path, error);
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in &mut self.files {
            if let Some(mut writer) = file.writer.take()
                && let Err(error) = writer.write_statistics(file.interface, 0).and_then(|()| whole(writer))
            {
                note(&self.failure, &file.path, error);
            }
        }
    }
}

/// Writes what is buffered, and gives the file its name.
fn whole(writer: Writer<BufWriter<PartFile>>) -> io::Result<()> {
    writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// The first failure is the one worth telling.
fn note(failure: &Failure, path: &Path, error: io::Error) {
    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
    failure.get_or_insert((path.to_owned(), error));
}

fn build<'a>(buffer: &'a mut FrameBuffer, frame: &Frame) -> tcplab_pcap::build::Frame<'a> {
    let ethernet = Ethernet { source: frame.source_mac, destination: frame.destination_mac };
    let ip = ip_header(frame);
    if frame.corrupted {
        buffer.damage_next();
    }
    match &frame.body {
        Body::Tcp(segment) => {
            let counters = segment.accecn.counters();
            let tcp = tcp_header(frame, segment, &counters);
            buffer.tcp(&ethernet, ip, &tcp, segment.len)
        }
        Body::Udp { payload, .. } => {
            let udp = Udp { source_port: frame.source_port, destination_port: frame.destination_port };
            buffer.udp(&ethernet, ip, &udp, *payload)
        }
        Body::Echo { number, payload, reply, .. } => {
            let client_port = if *reply { frame.destination_port } else { frame.source_port };
            let echo = Echo { reply: *reply, identifier: client_port, sequence: *number as u16 };
            buffer.echo(&ethernet, ip, &echo, *payload)
        }
    }
}

fn ip_header(frame: &Frame) -> Ip {
    let (ttl, traffic_class) = (frame.ttl, frame.traffic_class);
    match (frame.source, frame.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let [source, destination] = [source, destination].map(|address| address.octets());
            // Atomic datagrams need no identification (RFC 6864 section 4.1).
            Ip::V4(Ipv4 { source, destination, identification: 0, ttl, traffic_class })
        }
        (source, destination) => {
            let six = |address: IpAddr| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            Ip::V6(Ipv6 { source: six(source), destination: six(destination), ttl, traffic_class })
        }
    }
}

fn tcp_header<'a>(frame: &Frame, segment: &'a Segment, counters: &'a [u32; 3]) -> Tcp<'a> {
    let syn = segment.flags & SYN != 0;
    Tcp {
        source_port: frame.source_port,
        destination_port: frame.destination_port,
        seq: segment.seq,
        ack: segment.ack,
        flags: u16::from(segment.ae) << 8 | u16::from(segment.flags),
        window: segment.window,
        options: TcpOptions {
            mss: syn.then_some(segment.mss),
            window_scale: (syn && segment.window_scale != u8::MAX).then_some(segment.window_scale),
            sack_permitted: syn && segment.sack_permitted,
            timestamps: segment.has_timestamp.then_some((segment.ts_val, segment.ts_ecr)),
            sack: &segment.sack[..usize::from(segment.sack_count).min(segment.sack.len())],
            accecn: (segment.accecn.fields > 0)
                .then(|| (segment.accecn.kind(), &counters[..usize::from(segment.accecn.fields).min(3)])),
        },
    }
}
