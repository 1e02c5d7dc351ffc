//! Wireshark's own dissectors read our captures and find every checksum right.

use std::path::PathBuf;
use std::process::Command;

use tcplab_pcap::build::{Echo, Ethernet, Frame, FrameBuffer, Ipv4, Keep, Tcp, TcpOptions, Udp};
use tcplab_pcap::{Interface, Writer};
use tcplab_units::Time;

const ETHERNET: Ethernet = Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2] };
const IP: Ipv4 = Ipv4 {
    source: [10, 0, 0, 1],
    destination: [10, 0, 1, 200],
    identification: 7,
    ttl: 63,
    traffic_class: 3,
};
const TCP: Tcp<'_> = Tcp {
    source_port: 40000,
    destination_port: 5001,
    seq: 0xffff_fff0,
    ack: 0x8000_0001,
    flags: 0x10,
    window: 0xfedc,
    options: TcpOptions {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: &[],
        accecn: None,
    },
};

/// A file that is removed with the test.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Files that can't be removed are left in the temporary directory.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes the frames that `build` makes, a microsecond apart, and returns the columns tshark reads; none if
/// there is no tshark.
fn dissect(test: &str, keep: Keep, build: &[Build], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let version = Command::new("tshark").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: tshark is not installed");
        return None;
    }
    let mut writer = Writer::new(Vec::new(), 1_700_000_000_000_000_000).expect("memory takes all");
    let interface =
        writer.add_interface(Interface { name: "a:path", snap_len: 0 }).expect("memory takes all");
    let mut buffer = FrameBuffer::new(keep);
    for (at, build) in (1..).zip(build) {
        let frame = build(&mut buffer);
        let at = Time::from_ns(at * 1000 + 1);
        writer.write_packet(interface, at, frame.bytes, frame.original_len).expect("memory takes all");
    }
    writer.write_statistics(interface, 3).expect("memory takes all");
    let file = writer.finish().expect("memory takes all");
    let path =
        TemporaryFile(std::env::temp_dir().join(format!("tcplab-{test}-{}.pcapng", std::process::id())));
    std::fs::write(&path.0, file).expect("the temporary directory is writable");
    let mut command = Command::new("tshark");
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    command.args(["-o", "tcp.relative_sequence_numbers:FALSE"]);
    command.arg("-r").arg(&path.0).args(["-T", "fields", "-E", "separator=/t"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("tshark writes UTF-8");
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

type Build = fn(&mut FrameBuffer) -> Frame<'_>;

/// Every kind of frame, with odd and even lengths and every option.
const FRAMES: [Build; 8] = [
    |buffer| {
        let options = TcpOptions {
            mss: Some(1460),
            window_scale: Some(9),
            sack_permitted: true,
            timestamps: Some((1, 0)),
            sack: &[],
            accecn: None,
        };
        buffer.tcp(&ETHERNET, &IP, &Tcp { flags: 0xc2, options, ..TCP }, 0)
    },
    |buffer| buffer.tcp(&ETHERNET, &IP, &TCP, 1460),
    |buffer| {
        let sack = &[(10, 20), (30, 40), (0xffff_ff00, 5)];
        let options = TcpOptions { timestamps: Some((0xdead_beef, 77)), sack, ..TcpOptions::default() };
        buffer.tcp(&ETHERNET, &IP, &Tcp { options, ..TCP }, 0)
    },
    |buffer| buffer.tcp(&ETHERNET, &IP, &TCP, 65_495),
    |buffer| buffer.udp(&ETHERNET, &IP, &Udp { source_port: 1, destination_port: 65535 }, 1471),
    |buffer| buffer.udp(&ETHERNET, &IP, &Udp { source_port: 9, destination_port: 10 }, 0),
    |buffer| buffer.echo(&ETHERNET, &IP, &Echo { reply: false, identifier: 513, sequence: 4 }, 56),
    |buffer| buffer.echo(&ETHERNET, &IP, &Echo { reply: true, identifier: 513, sequence: 4 }, 57),
];

#[test]
fn every_checksum_is_right_and_nothing_is_malformed() {
    let fields = [
        "ip.checksum.status",
        "tcp.checksum.status",
        "udp.checksum.status",
        "icmp.checksum.status",
        "_ws.malformed",
    ];
    let Some(rows) = dissect("checksums", Keep::Full, &FRAMES, &fields) else { return };
    let good = |transport: usize| -> Vec<String> {
        (0..5).map(|column| if column == 0 || column == transport { "1" } else { "" }.to_owned()).collect()
    };
    let expected: Vec<_> = [1, 1, 1, 1, 2, 2, 3, 3].map(good).into();
    assert_eq!(rows, expected);
}

#[test]
fn a_damaged_frame_is_seen_as_damaged() {
    let damaged: [Build; 2] = [
        |buffer| {
            buffer.damage_next();
            buffer.tcp(&ETHERNET, &IP, &TCP, 100)
        },
        |buffer| buffer.tcp(&ETHERNET, &IP, &TCP, 100),
    ];
    let fields = ["ip.checksum.status", "tcp.checksum.status"];
    let Some(rows) = dissect("damaged", Keep::Full, &damaged, &fields) else { return };
    assert_eq!(rows, [["1", "0"], ["1", "1"]]);
}

#[test]
fn header_fields_options_and_times_are_read_back() {
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "ip.dst",
        "ip.dsfield.ecn",
        "tcp.seq_raw",
        "tcp.flags",
        "tcp.options.mss_val",
        "tcp.options.wscale.shift",
        "tcp.options.timestamp.tsval",
        "tcp.options.sack_le",
    ];
    let Some(rows) = dissect("fields", Keep::Full, &FRAMES[..3], &fields) else { return };
    let network = ["a:path", "10.0.1.200", "3", "4294967280"];
    let row = |time: &str, rest: [&str; 5]| -> Vec<String> {
        [&[time][..], &network, &rest].concat().into_iter().map(str::to_owned).collect()
    };
    assert_eq!(rows[0], row("1700000000.000001001", ["0x00c2", "1460", "9", "1", ""]));
    assert_eq!(rows[1], row("1700000000.000002001", ["0x0010", "", "", "", ""]));
    assert_eq!(rows[2], row("1700000000.000003001", ["0x0010", "", "", "3735928559", "10,30,4294967040"]));
}

#[test]
fn headers_alone_show_the_original_length() {
    let fields = ["frame.len", "frame.cap_len", "tcp.len", "udp.length", "_ws.malformed"];
    let Some(rows) = dissect("headers", Keep::Headers, &FRAMES[1..5], &fields) else { return };
    assert_eq!(rows[0], ["1514", "54", "1460", "", ""]);
    assert_eq!(rows[1], ["94", "94", "0", "", ""]);
    assert_eq!(rows[2], ["65549", "54", "65495", "", ""]);
    assert_eq!(rows[3], ["1513", "42", "", "1479", ""]);
}
