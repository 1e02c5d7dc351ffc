use tcplab_units::Time;

use super::{Layout, PacketList};
use crate::build::{Ethernet, FrameBuffer, Ipv4, Keep, Tcp, TcpOptions, Udp};
use crate::filter::Filter;
use crate::{Interface, Reader, Writer};

const ETHERNET: Ethernet = Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2] };
const IP: Ipv4 =
    Ipv4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2], identification: 1, ttl: 64, traffic_class: 0 };

/// A SYN, a datagram and 1448 bytes of data.
fn capture() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, 1_700_000_000_000_000_000).unwrap();
    let interface = writer.add_interface(Interface { name: "a", snap_len: 0 }).unwrap();
    let mut buffer = FrameBuffer::new(Keep::Full);
    let options = TcpOptions::default();
    let syn =
        Tcp { source_port: 40000, destination_port: 5201, seq: 99, ack: 0, flags: 2, window: 9, options };
    let data = Tcp { seq: 100, ack: 1, flags: 16, ..syn };
    let udp = Udp { source_port: 53, destination_port: 54 };
    for (at, which) in [(1_000, 0), (21_000_499, 1), (2_000_000_500, 2)] {
        let frame = match which {
            0 => buffer.tcp(&ETHERNET, &IP, &syn, 0),
            1 => buffer.udp(&ETHERNET, &IP, &udp, 10),
            _ => buffer.tcp(&ETHERNET, &IP, &data, 1448),
        };
        writer.write_packet(interface, Time::from_ns(at), frame.bytes, frame.original_len).unwrap();
    }
    drop(writer);
    bytes
}

fn list(filter: Option<&str>) -> PacketList {
    let filter = filter.map(|text| Filter::parse(text).unwrap());
    PacketList::new(Reader::from_bytes(capture()).unwrap(), filter)
}

fn lines(filter: Option<&str>, width: usize) -> String {
    let mut text = String::new();
    list(filter).write_lines(&mut text, 100, &mut Layout::new(width));
    text
}

#[test]
fn a_line_is_a_packet_with_times_from_the_first_one() {
    let expected = [
        "     1     0.000000  10.0.0.1      10.0.0.2      TCP         54  40000 -> 5201 [SYN] seq 0 win 9 len 0",
        "     2     0.020999  10.0.0.1      10.0.0.2      UDP         52  53 -> 54 len 10",
        "     3     2.000000  10.0.0.1      10.0.0.2      TCP       1502  40000 -> 5201 [ACK] seq 1 ack 1 win 9 len 1448",
    ];
    assert_eq!(lines(None, 0).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn lines_are_cut_at_the_width_and_the_heading_is_as_wide() {
    assert!(lines(None, 60).lines().all(|line| line.chars().count() <= 60));
    assert_eq!(Layout::new(60).heading().chars().count(), 60);
    let heading = Layout::new(0).heading();
    let first = lines(None, 0);
    assert_eq!(heading.find("info"), first.find("40000"));
}

#[test]
fn a_filter_leaves_packets_out_and_their_numbers_as_they_are() {
    let text = lines(Some("udp or dst port 80"), 0);
    assert_eq!(text.lines().count(), 1);
    assert!(text.trim_start().starts_with("2 "));
}

#[test]
fn details_of_a_packet_know_what_came_before() {
    let details = list(None).details(3).unwrap();
    assert_eq!((details.number, details.since_first, details.wire_len), (3, 1_999_999_500, 1502));
    assert_eq!(details.time, 1_700_000_002_000_000_500);
    assert_eq!(details.summary.info, "40000 -> 5201 [ACK] seq 1 ack 1 win 9 len 1448");
    assert!(list(None).details(4).is_none());
}
