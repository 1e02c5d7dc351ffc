//! Small captures with something of everything in them.

use tcplab_pcap::build::{Ethernet, FrameBuffer, Ipv4, Keep, Tcp, TcpOptions, Udp};
use tcplab_pcap::{Interface, Writer};
use tcplab_units::Time;

/// The files that the mutants of a target are made from.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let frames = frames();
    match target {
        "parser" => frames,
        "filter" => FILTERS.iter().map(|filter| filter.as_bytes().to_vec()).collect(),
        "compressed" => {
            let whole = [ng(&frames), classic(&frames, false)];
            whole.iter().flat_map(|file| compressed(file)).chain(broken(true)).collect()
        }
        _ => {
            let whole = [ng(&frames), classic(&frames, false), classic(&frames, true)];
            whole.into_iter().chain(broken(false)).collect()
        }
    }
}

/// The stored broken files, in the order of their names: those that are compressed, or those that are not.
fn broken(are_compressed: bool) -> Vec<Vec<u8>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/broken");
    let entries = std::fs::read_dir(directory).expect("the directory of broken files");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry of it").path()).collect();
    paths.sort_unstable();
    paths.retain(|path| {
        let compressed = path.extension().is_some_and(|extension| extension == "gz" || extension == "zst");
        compressed == are_compressed
    });
    let files = paths.iter().map(|path| std::fs::read(path).expect("a broken file"));
    // A mutant changes bytes that are there.
    files.filter(|bytes| !bytes.is_empty()).collect()
}

const FILTERS: [&str; 4] = [
    "port 5201 and host 10.0.0.1",
    "tcp and not (src net 10.0.0.0/8 or dst port 80-89)",
    "ip6 host fd00::1 || !udp && flow 3",
    "net ::/0 or ip net 0.0.0.0/0 and (icmp)",
];

/// Whether the client sends it, flags, sequence and acknowledgment number, payload length, SACK blocks.
type Numbers<'a> = (bool, u8, u32, u32, u32, &'a [(u32, u32)]);

/// A connection with a loss, SACK, and everything else the analysis looks at; UDP; IPv6 and tags.
fn frames() -> Vec<Vec<u8>> {
    let ethernet = Ethernet { source: [2; 6], destination: [4; 6] };
    let mut buffer = FrameBuffer::new(Keep::Full);
    let mut frames = Vec::new();
    let numbers: [Numbers<'_>; 14] = [
        (true, 0xc2, 0, 0, 0, &[]),
        (false, 0x52, 0, 1, 0, &[]),
        (true, 0x10, 1, 1, 0, &[]),
        (true, 0x10, 1, 1, 100, &[]),
        (true, 0x10, 101, 1, 100, &[]),
        (true, 0x10, 201, 1, 100, &[]),
        (false, 0x10, 1, 101, 0, &[(201, 301)]),
        (true, 0x10, 101, 1, 100, &[]),
        (false, 0x10, 1, 301, 0, &[(101, 201), (301, 401)]),
        (true, 0x11, 301, 1, 0, &[]),
        (false, 0x11, 1, 302, 0, &[]),
        (true, 0x10, 302, 2, 0, &[]),
        (true, 0x02, 70_000, 0, 0, &[]),
        (false, 0x14, 0, 70_001, 0, &[]),
    ];
    for (number, &(client, flags, seq, ack, len, sack)) in (0u32..).zip(&numbers) {
        let (source, destination) =
            if client { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
        let ip = Ipv4 { source, destination, identification: number as u16, ttl: 64, traffic_class: 2 };
        let (source_port, destination_port) = if client { (1000, 80) } else { (80, 1000) };
        let syn = flags & 2 != 0;
        let options = TcpOptions {
            mss: syn.then_some(1460),
            window_scale: syn.then_some(7),
            sack_permitted: syn,
            timestamps: Some((number, number)),
            sack,
            accecn: None,
        };
        let (seq, ack) = (seq.wrapping_sub(50), ack.wrapping_sub(50));
        let tcp = Tcp { source_port, destination_port, seq, ack, flags: flags.into(), window: 10, options };
        frames.push(buffer.tcp(&ethernet, &ip, &tcp, len).bytes.to_vec());
    }
    let ip = Ipv4 {
        source: [10, 0, 0, 1],
        destination: [10, 0, 0, 2],
        identification: 1,
        ttl: 64,
        traffic_class: 0,
    };
    let udp = buffer.udp(&ethernet, &ip, &Udp { source_port: 5, destination_port: 6 }, 40).bytes.to_vec();
    frames.push([&udp[..12], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2], &udp[12..]].concat());
    let mut fragment = udp.clone();
    fragment[20] = 0x20;
    frames.push(fragment.clone());
    fragment[20..22].copy_from_slice(&[0, 6]);
    frames.push(fragment);
    let mut ipv6 = [&udp[..12], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 0, 64]].concat();
    ipv6.extend([0xfd; 32]);
    ipv6.extend([44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1, 0, 0, 0, 9, 0, 5, 0, 6, 0, 8, 0, 0]);
    frames.push(ipv6);
    let quoted = frames[3][14..42].to_vec();
    let mut icmp = [&udp[..34], &[3, 4, 0, 0, 0, 0, 5, 0], &quoted].concat();
    icmp[23] = 1;
    frames.push(icmp);
    frames
}

fn ng(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), 0).expect("memory takes all");
    let interface = writer.add_interface(Interface { name: "a", snap_len: 0 }).expect("memory takes all");
    for (number, frame) in (1..).zip(frames) {
        let at = Time::from_ns(number * 20_000_000);
        writer.write_packet(interface, at, frame, frame.len() as u32).expect("memory takes all");
    }
    writer.write_statistics(interface, 1).expect("memory takes all");
    writer.finish().expect("memory takes all")
}

fn classic(frames: &[Vec<u8>], big: bool) -> Vec<u8> {
    let word = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    let version = if big { 0x0002_0004 } else { 0x0004_0002 };
    let mut file: Vec<u8> = [0xa1b2_c3d4, version, 0, 0, 65_535, 1].into_iter().flat_map(word).collect();
    for (number, frame) in (1..).zip(frames) {
        let len = frame.len() as u32;
        file.extend([number, 500, len, len].into_iter().flat_map(word));
        file.extend(frame);
    }
    file
}

fn compressed(file: &[u8]) -> [Vec<u8>; 2] {
    let mut gzip = Vec::new();
    let mut encoder = flate2::read::GzEncoder::new(file, flate2::Compression::fast());
    std::io::Read::read_to_end(&mut encoder, &mut gzip).expect("memory takes all");
    [gzip, zstd::encode_all(file, 1).expect("memory takes all")]
}
