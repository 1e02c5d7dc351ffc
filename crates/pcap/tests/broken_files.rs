//! The broken files in `tests/broken`, and what is said about each.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use tcplab_pcap::flow::{Analysis, Options};
use tcplab_pcap::{Reader, read::OpenError};

const SAID: [(&str, &str); 32] = [
    (
        "block-lengths-differ.pcapng",
        "5 packets, 5 TCP, 1 flows, damaged at byte 528: a block's length is 28 in front and 40 behind",
    ),
    (
        "block-of-4-gigabytes.pcapng",
        "5 packets, 5 TCP, 1 flows, damaged at byte 528: a block of 4294967292 bytes",
    ),
    ("block-of-8-bytes.pcapng", "5 packets, 5 TCP, 1 flows, damaged at byte 528: a block of 8 bytes"),
    ("clock-goes-back.pcap", "5 packets, 5 TCP, 2 back in time, 1 flows, complete"),
    (
        "cut-in-a-block.pcapng",
        "4 packets, 4 TCP, 1 flows, cut off in the middle of a record at byte 440, 7 bytes short",
    ),
    (
        "cut-in-a-packet.pcap",
        "4 packets, 4 TCP, 1 flows, cut off in the middle of a record at byte 344, 6 bytes short",
    ),
    (
        "cut-in-a-record-header.pcap",
        "5 packets, 5 TCP, 1 flows, cut off in the middle of a record at byte 414, 8 bytes short",
    ),
    ("cut.pcap.gz", "3 packets, 3 TCP, 1 flows, not readable from byte 234 on: incomplete deflate stream"),
    ("cut.pcap.zst", "refused: it can't be read: incomplete frame"),
    ("empty.pcap", "refused: it has 0 bytes, too few for a capture's header"),
    ("extension-headers-without-end.pcap", "2 packets, 2 malformed, complete"),
    ("fragments-missing.pcap", "3 packets, 3 fragments, 3 of them incomplete, complete"),
    ("frame-of-4-gigabytes.pcap", "2 packets, 1 TCP, 1 malformed, 1 flows, complete"),
    ("headers-cut.pcap", "5 packets, 5 with a header cut, complete"),
    ("impossible-lengths.pcap", "6 packets, 2 TCP, 4 malformed, 1 flows, complete"),
    ("interface-never-described.pcapng", "1 packets, 1 TCP, 1 without an interface, 1 flows, complete"),
    (
        "kuznetsov.pcap",
        "refused: it is a capture in Kuznetsov's modified pcap, which is not supported: convert it with `editcap -F pcapng`",
    ),
    ("no-capture.pcap", "refused: not a pcap or pcapng file (magic 47 45 54 20)"),
    ("no-packets.pcap", "0 packets, complete"),
    ("options-that-lie.pcap", "5 packets, 5 TCP, 1 flows, complete"),
    (
        "packet-longer-than-its-block.pcapng",
        "5 packets, 5 TCP, 1 flows, damaged at byte 528: a packet of 500 bytes",
    ),
    (
        "packet-of-2-gigabytes.pcap",
        "5 packets, 5 TCP, 1 flows, damaged at byte 414: a packet of 2147483648 bytes",
    ),
    ("resolution-of-nothing.pcapng", "2 packets, 2 TCP, 1 flows, complete"),
    (
        "section-of-unknown-byte-order.pcapng",
        "5 packets, 5 TCP, 1 flows, damaged at byte 528: a section with the byte-order magic 0x11223344",
    ),
    ("section-of-version-2.pcapng", "5 packets, 5 TCP, 1 flows, damaged at byte 528: a section of version 2"),
    ("tags-without-end.pcap", "1 packets, 1 malformed, complete"),
    ("too-big-for-no-flow.pcap", "5 packets, 3 TCP, 2 of another protocol, 2 flows, complete"),
    ("too-short.pcap", "refused: it has 10 bytes, too few for a capture's header"),
    ("unknown-blocks.pcapng", "1 packets, 1 TCP, 2 blocks skipped, 1 flows, complete"),
    ("unknown-link-type.pcap", "5 packets, 5 of an unknown link type, complete"),
    ("version-2.2.pcap", "refused: its format's version is 2.2, which is not known"),
    (
        "wrong-checksum.pcap.gz",
        "5 packets, 5 TCP, 1 flows, not readable from byte 414 on: corrupt gzip stream does not have a matching checksum",
    ),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken")
}

/// The verdict on a capture: why it was refused, or what was read, what was not, and how it ended.
fn said(reader: Result<Reader, OpenError>) -> String {
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return format!("refused: {error}"),
    };
    let mut analysis = Analysis::new(Options::default());
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
    }
    let (flows, counts, ()) = analysis.finish();
    let read = reader.counts();
    let counted = [
        (counts.tcp, "TCP"),
        (counts.udp, "UDP"),
        (counts.not_ip, "not IP"),
        (counts.other_protocol, "of another protocol"),
        (counts.link_type, "of an unknown link type"),
        (counts.header_cut, "with a header cut"),
        (counts.malformed, "malformed"),
        (counts.fragments, "fragments"),
        (counts.fragments_incomplete, "of them incomplete"),
        (counts.options_cut, "with options cut"),
        (read.without_interface, "without an interface"),
        (read.back_in_time, "back in time"),
        (read.blocks_skipped, "blocks skipped"),
        (flows.len() as u64, "flows"),
    ];
    let counted =
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let ending = reader.ending().map_or_else(|| "without an end".to_owned(), ToString::to_string);
    [format!("{} packets", counts.packets)]
        .into_iter()
        .chain(counted)
        .chain([ending])
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn of_each_broken_file_is_said_what_is_wrong_with_it() {
    let mut wrong = String::new();
    for (name, expected) in SAID {
        let said = said(Reader::open(&directory().join(name)));
        if said != expected {
            wrong += &format!("    (\"{name}\", \"{said}\"),\n");
        }
    }
    assert!(wrong.is_empty(), "otherwise than expected:\n{wrong}");
}

#[test]
fn of_a_stream_the_same_is_said_as_of_a_file() {
    for (name, expected) in SAID {
        let bytes = std::fs::read(directory().join(name)).expect("a stored file");
        assert_eq!(said(Reader::from_stream(Cursor::new(bytes))), expected, "{name}");
    }
}

#[test]
fn every_broken_file_is_read() {
    let mut names: Vec<_> = std::fs::read_dir(directory())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8"))
        .collect();
    names.sort_unstable();
    assert_eq!(names, SAID.map(|(name, _)| name));
}
