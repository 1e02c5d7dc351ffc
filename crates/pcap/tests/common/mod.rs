//! Captures written by hand: what is sent, by whom, when.

// Each test file uses what it needs.
#![allow(dead_code)]

use tcplab_pcap::build::{Ethernet, Frame, FrameBuffer, Ipv4, Keep, Tcp, TcpOptions, Udp};
use tcplab_pcap::flow::{Analysis, Counts, Direction, FlowSummary, Kind, Observer, Options, Seen, TcpHalf};
use tcplab_pcap::read::LinkType;
use tcplab_pcap::{Interface, Packet, Reader, Writer};
use tcplab_units::Time;

pub const MS: u64 = 1_000_000;
pub const SYN: u16 = 2;
pub const FIN: u16 = 1;
pub const RST: u16 = 4;
pub const ACK: u16 = 16;
pub const ECE: u16 = 64;
pub const CWR: u16 = 128;
pub const AE: u16 = 256;

pub const CLIENT: [u8; 4] = [10, 0, 0, 1];
pub const SERVER: [u8; 4] = [10, 0, 0, 2];
pub const CLIENT_ISN: u32 = 1000;
pub const SERVER_ISN: u32 = 5000;

/// A segment of the client (or, `.server()`, of the server); numbers count from the initial ones.
#[derive(Clone, Copy, Debug)]
pub struct Send<'a> {
    pub at: u64,
    pub client: bool,
    pub flags: u16,
    pub seq: u32,
    pub ack: u32,
    pub len: u32,
    pub window: u16,
    pub id: u16,
    pub ecn: u8,
    pub timestamps: Option<(u32, u32)>,
    pub sack: &'a [(u32, u32)],
    pub port: u16,
}

/// From the client, at a time in ms.
pub fn client(at: u64, flags: u16, seq: u32, ack: u32, len: u32) -> Send<'static> {
    let (window, port) = (1000, 40_000);
    Send {
        at: at * MS,
        client: true,
        flags,
        seq,
        ack,
        len,
        window,
        id: 0,
        ecn: 0,
        timestamps: None,
        sack: &[],
        port,
    }
}

/// From the server, at a time in ms.
pub fn server(at: u64, flags: u16, seq: u32, ack: u32, len: u32) -> Send<'static> {
    Send { client: false, ..client(at, flags, seq, ack, len) }
}

/// The first segments of a connection as its client's host sees them, with a round trip of 10 ms.
pub fn handshake() -> Vec<Send<'static>> {
    vec![client(0, SYN, 0, 0, 0), server(10, SYN | ACK, 0, 1, 0), client(10, ACK, 1, 1, 0)]
}

/// The segments as a pcapng capture.
pub fn capture(sends: &[Send<'_>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), 0).expect("memory takes all");
    let interface = writer.add_interface(Interface { name: "eth0", snap_len: 0 }).expect("memory takes all");
    let mut buffer = FrameBuffer::new(Keep::Full);
    for send in sends {
        let frame = frame(&mut buffer, send);
        let at = Time::from_ns(send.at);
        writer.write_packet(interface, at, frame.bytes, frame.original_len).expect("memory takes all");
    }
    writer.finish().expect("memory takes all")
}

pub fn frame<'b>(buffer: &'b mut FrameBuffer, send: &Send<'_>) -> Frame<'b> {
    let (own, other) = if send.client { (CLIENT_ISN, SERVER_ISN) } else { (SERVER_ISN, CLIENT_ISN) };
    let sack: Vec<_> = send.sack.iter().map(|&(left, right)| (other + left, other + right)).collect();
    let syn = send.flags & SYN != 0;
    let options = TcpOptions {
        mss: syn.then_some(1460),
        window_scale: syn.then_some(7),
        sack_permitted: syn,
        timestamps: send.timestamps,
        sack: &sack,
        accecn: None,
    };
    let ports = if send.client { (send.port, 5201) } else { (5201, send.port) };
    let tcp = Tcp {
        source_port: ports.0,
        destination_port: ports.1,
        seq: own.wrapping_add(send.seq),
        ack: if send.flags & ACK != 0 { other.wrapping_add(send.ack) } else { 0 },
        flags: send.flags,
        window: send.window,
        options,
    };
    buffer.tcp(&ETHERNET, &ip(send), &tcp, send.len)
}

pub const ETHERNET: Ethernet = Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2] };

fn ip(send: &Send<'_>) -> Ipv4 {
    let (source, destination) = if send.client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    Ipv4 { source, destination, identification: send.id, ttl: 64, traffic_class: send.ecn }
}

pub fn udp_frame(buffer: &mut FrameBuffer, client: bool, len: u32) -> Vec<u8> {
    let send = Send { client, ..crate::common::client(0, 0, 0, 0, 0) };
    let (source_port, destination_port) = if client { (9, 10) } else { (10, 9) };
    buffer.udp(&ETHERNET, &ip(&send), &Udp { source_port, destination_port }, len).bytes.to_vec()
}

/// The classification of each packet: number and kind.
#[derive(Debug, Default)]
pub struct Kinds(pub Vec<(u64, Kind)>);

impl Observer for Kinds {
    fn seen(&mut self, seen: &Seen<'_>) {
        self.0.push((seen.packet, seen.kind));
    }
}

/// The flows in a capture, what was counted, and the kind of each segment.
pub fn analyse(file: Vec<u8>) -> (Vec<FlowSummary>, Counts, Vec<(u64, Kind)>) {
    let mut reader = Reader::from_bytes(file).expect("a capture");
    let mut analysis = Analysis::with_observer(Options::default(), Kinds::default());
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
    }
    let (flows, counts, kinds) = analysis.finish();
    (flows, counts, kinds.0)
}

/// The only flow of these segments.
pub fn flow(sends: &[Send<'_>]) -> FlowSummary {
    let (mut flows, ..) = analyse(capture(sends));
    assert_eq!(flows.len(), 1, "{flows:#?}");
    flows.remove(0)
}

/// The packets of the client, of the only flow of these segments.
pub fn sent(sends: &[Send<'_>]) -> TcpHalf {
    let flow = flow(sends);
    flow.tcp.expect("TCP").halves[Direction::Forward.index()].clone()
}

/// The kinds of these segments in order.
pub fn kinds(sends: &[Send<'_>]) -> Vec<Kind> {
    analyse(capture(sends)).2.into_iter().map(|(_, kind)| kind).collect()
}

/// An Ethernet packet at a time, for those who need no file.
pub fn ethernet(number: u64, time: i64, bytes: &[u8]) -> Packet<'_> {
    let original_len = bytes.len() as u32;
    Packet { number, time, bytes, original_len, link: LinkType::ETHERNET, interface: 0 }
}

/// Frames that are not segments, or are only on a close look: fragments, extension headers, tags, ICMP, damage.
pub fn odd_frames() -> Vec<Vec<u8>> {
    let mut buffer = FrameBuffer::new(Keep::Full);
    let segment = frame(&mut buffer, &client(0, ACK, 1, 1, 100)).bytes.to_vec();
    let udp = udp_frame(&mut buffer, true, 40);
    let tagged = [&udp[..12], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2], &udp[12..]].concat();
    let mut first = udp.clone();
    // More fragments follow; 48 bytes of a datagram of 48 + 40.
    first[20] = 0x20;
    first[38..40].copy_from_slice(&96u16.to_be_bytes());
    let mut last = udp.clone();
    last[20..22].copy_from_slice(&[0, 6]);
    let mut lone = first.clone();
    lone[18] ^= 0xff;
    let mut ipv6 = [&udp[..12], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 16, 60, 64]].concat();
    ipv6.extend([0xfd; 32]);
    ipv6.extend([17, 0, 1, 4, 0, 0, 0, 0, 0, 5, 0, 6, 0, 8, 0, 0]);
    let mut too_big = [&udp[..34], &[3, 4, 0, 0, 0, 0, 5, 0], &segment[14..42]].concat();
    too_big[23] = 1;
    let mut arp = udp.clone();
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut malformed = segment.clone();
    malformed[46] = 0x10;
    let cut = segment[..40].to_vec();
    let headless = segment[..30].to_vec();
    vec![tagged, first, last, lone, ipv6, too_big, arp, malformed, cut, headless, udp]
}

/// A pcap file of Ethernet frames at their times (ns).
pub fn ethernet_file(frames: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let mut file: Vec<u8> =
        [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1u32].into_iter().flat_map(u32::to_le_bytes).collect();
    for (time, bytes) in frames {
        let (seconds, ns) = (time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000));
        let len = bytes.len() as u32;
        file.extend([seconds as u32, ns as u32, len, len].into_iter().flat_map(u32::to_le_bytes));
        file.extend(bytes);
    }
    file
}
