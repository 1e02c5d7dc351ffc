//! Ethernet frames from plain header fields, with correct checksums and zero payload.

mod checksum;
mod icmp;
mod ip;
mod ipv6;
mod tcp;
mod udp;

pub use icmp::Echo;
pub use ip::{Ethernet, Ip, Ipv4};
pub use ipv6::Ipv6;
pub use tcp::{Tcp, TcpOptions};
pub use udp::Udp;

/// How much of each frame is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Ethernet, IP and transport headers. Checksums and lengths are those of the whole packet.
    Headers,
    /// Everything.
    Full,
}

/// A frame in the making, reused from packet to packet.
#[derive(Clone, Debug)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    keep: Keep,
    damage: u16,
}

/// A finished frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The bytes built: all of them, or the headers.
    pub bytes: &'a [u8],
    /// Length of the whole frame.
    pub original_len: u32,
}

impl FrameBuffer {
    /// A buffer that builds this much of each frame.
    pub fn new(keep: Keep) -> FrameBuffer {
        FrameBuffer { bytes: Vec::with_capacity(2048), keep, damage: 0 }
    }

    /// Damages the next frame: its transport checksum is wrong, as that of a packet corrupted on its way.
    pub fn damage_next(&mut self) {
        self.damage = 1;
    }

    /// A TCP segment with `payload_len` zero bytes.
    pub fn tcp(
        &mut self,
        ethernet: &Ethernet,
        ip: impl Into<Ip>,
        tcp: &Tcp<'_>,
        payload_len: u32,
    ) -> Frame<'_> {
        self.build(ethernet, &ip.into(), ip::TCP, payload_len, |bytes| tcp.write(bytes), 16)
    }

    /// A UDP datagram with `payload_len` zero bytes.
    pub fn udp(&mut self, ethernet: &Ethernet, ip: impl Into<Ip>, udp: &Udp, payload_len: u32) -> Frame<'_> {
        self.build(ethernet, &ip.into(), ip::UDP, payload_len, |bytes| udp.write(bytes, payload_len), 6)
    }

    /// An ICMP or ICMPv6 echo request or reply with `payload_len` zero bytes.
    pub fn echo(
        &mut self,
        ethernet: &Ethernet,
        ip: impl Into<Ip>,
        echo: &Echo,
        payload_len: u32,
    ) -> Frame<'_> {
        let ip = ip.into();
        let (protocol, v6) = match ip {
            Ip::V4(_) => (ip::ICMP, false),
            Ip::V6(_) => (ip::ICMPV6, true),
        };
        self.build(ethernet, &ip, protocol, payload_len, |bytes| echo.write(bytes, v6), 2)
    }

    /// Writes all headers, then the transport checksum at `checksum_at` of the transport header.
    fn build(
        &mut self,
        ethernet: &Ethernet,
        ip: &Ip,
        protocol: u8,
        payload_len: u32,
        write_transport: impl FnOnce(&mut Vec<u8>),
        checksum_at: usize,
    ) -> Frame<'_> {
        let bytes = &mut self.bytes;
        bytes.clear();
        ethernet.write(bytes, ip);
        ip.write_unfinished(bytes, protocol);
        let transport = bytes.len();
        write_transport(bytes);
        let transport_len = (bytes.len() - transport) as u32 + payload_len;
        ip.finish(bytes, transport_len);
        let pseudo_header = ip.pseudo_header_sum(protocol, transport_len);
        let mut checksum = checksum::finish(pseudo_header + checksum::sum(&bytes[transport..])) ^ self.damage;
        self.damage = 0;
        if protocol == ip::UDP && checksum == 0 {
            // RFC 768: zero means no checksum, so its other representation is sent.
            checksum = 0xffff;
        }
        bytes[transport + checksum_at..][..2].copy_from_slice(&checksum.to_be_bytes());
        let original_len = bytes.len() as u32 + payload_len;
        if self.keep == Keep::Full {
            bytes.resize(original_len as usize, 0);
        }
        Frame { bytes: &self.bytes, original_len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETHERNET: Ethernet = Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2] };
    const IP: Ipv4 = Ipv4 {
        source: [10, 0, 0, 1],
        destination: [10, 0, 0, 2],
        identification: 0x1234,
        ttl: 64,
        traffic_class: 2,
    };

    /// Ethernet and IPv4 header with this total length, protocol and checksum.
    fn network_header(total_len: u8, protocol: u8, checksum: [u8; 2]) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        bytes.extend([0x45, 2, 0, total_len, 0x12, 0x34, 0x40, 0, 64, protocol, checksum[0], checksum[1]]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        bytes
    }

    #[test]
    fn a_tcp_segment_byte_for_byte() {
        let tcp = Tcp {
            source_port: 40000,
            destination_port: 5001,
            seq: 0x0102_0304,
            ack: 0x0506_0708,
            flags: 0x18,
            window: 502,
            options: TcpOptions { timestamps: Some((1000, 2000)), ..TcpOptions::default() },
        };
        let mut expected = network_header(56, 6, [0x14, 0x88]);
        expected.extend([0x9c, 0x40, 0x13, 0x89, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x18, 0x01, 0xf6]);
        expected.extend([0x95, 0x23]);
        expected.extend([0, 0, 1, 1, 8, 10, 0, 0, 3, 0xe8, 0, 0, 7, 0xd0]);
        expected.extend([0; 4]);
        let mut buffer = FrameBuffer::new(Keep::Full);
        assert_eq!(buffer.tcp(&ETHERNET, &IP, &tcp, 4), Frame { bytes: &expected, original_len: 70 });
    }

    #[test]
    fn a_udp_datagram_byte_for_byte() {
        let udp = Udp { source_port: 40000, destination_port: 5001 };
        let mut expected = network_header(31, 17, [0x14, 0x96]);
        expected.extend([0x9c, 0x40, 0x13, 0x89, 0, 11]);
        expected.extend([0x3c, 0x0c]);
        expected.extend([0; 3]);
        let mut buffer = FrameBuffer::new(Keep::Full);
        assert_eq!(buffer.udp(&ETHERNET, &IP, &udp, 3), Frame { bytes: &expected, original_len: 45 });
    }

    #[test]
    fn an_echo_request_byte_for_byte() {
        let echo = Echo { reply: false, identifier: 0x0102, sequence: 3 };
        let mut expected = network_header(30, 1, [0x14, 0xa7]);
        expected.extend([8, 0]);
        expected.extend([0xf6, 0xfa]);
        expected.extend([1, 2, 0, 3, 0, 0]);
        let mut buffer = FrameBuffer::new(Keep::Full);
        assert_eq!(buffer.echo(&ETHERNET, &IP, &echo, 2), Frame { bytes: &expected, original_len: 44 });
    }

    #[test]
    fn over_ipv6_the_pseudo_header_has_the_long_addresses_and_icmp_one_too() {
        let mut address = [0; 16];
        (address[0], address[15]) = (0xfd, 1);
        // EF and ECT(0).
        let ip = Ipv6 { source: address, destination: address, ttl: 64, traffic_class: 46 << 2 | 2 };
        let mut buffer = FrameBuffer::new(Keep::Full);
        let mut expected =
            vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x6b, 0xa0, 0, 0, 0, 11, 17, 64];
        expected.extend(address);
        expected.extend(address);
        let echo_header = expected.clone();
        expected.extend([0x9c, 0x40, 0x13, 0x89, 0, 11]);
        // RFC 1071 by hand: 2 * (0xfd00 + 1) + 17 + 11 + 0x9c40 + 0x1389 + 11, carries folded, complemented.
        expected.extend([0x56, 0x0b]);
        expected.extend([0; 3]);
        let udp = Udp { source_port: 40000, destination_port: 5001 };
        assert_eq!(buffer.udp(&ETHERNET, &ip, &udp, 3), Frame { bytes: &expected, original_len: 65 });
        let mut expected = echo_header;
        (expected[19], expected[20]) = (10, 58);
        // Likewise: 2 * (0xfd00 + 1) + 58 + 10 + 0x8100 + 0x0102 + 3.
        expected.extend([129, 0, 0x83, 0xb2, 1, 2, 0, 3, 0, 0]);
        let echo = Echo { reply: true, identifier: 0x0102, sequence: 3 };
        assert_eq!(buffer.echo(&ETHERNET, &ip, &echo, 2), Frame { bytes: &expected, original_len: 64 });
    }

    #[test]
    fn headers_alone_keep_the_checksums_and_length_of_the_whole() {
        let udp = Udp { source_port: 1, destination_port: 2 };
        let (mut headers, mut full) = (FrameBuffer::new(Keep::Headers), FrameBuffer::new(Keep::Full));
        let headers = headers.udp(&ETHERNET, &IP, &udp, 1000);
        let full = full.udp(&ETHERNET, &IP, &udp, 1000);
        assert_eq!(headers.bytes, &full.bytes[..42]);
        assert_eq!((headers.original_len, full.original_len, full.bytes.len()), (1042, 1042, 1042));
    }

    #[test]
    fn a_udp_checksum_of_zero_is_sent_as_ones() {
        let mut buffer = FrameBuffer::new(Keep::Full);
        let checksum = |frame: Frame<'_>| u16::from_be_bytes([frame.bytes[40], frame.bytes[41]]);
        let other = checksum(buffer.udp(&ETHERNET, &IP, &Udp { source_port: 0, destination_port: 0 }, 0));
        // Raising a port by what the checksum still lacks makes the sum all ones.
        let udp = Udp { source_port: other, destination_port: 0 };
        assert_eq!(checksum(buffer.udp(&ETHERNET, &IP, &udp, 0)), 0xffff);
    }

    #[test]
    fn one_damaged_frame_differs_in_its_checksum_alone() {
        let udp = Udp { source_port: 1, destination_port: 2 };
        let mut buffer = FrameBuffer::new(Keep::Full);
        let good = buffer.udp(&ETHERNET, &IP, &udp, 10).bytes.to_vec();
        buffer.damage_next();
        let damaged = buffer.udp(&ETHERNET, &IP, &udp, 10).bytes.to_vec();
        let differing: Vec<usize> = (0..good.len()).filter(|&i| good[i] != damaged[i]).collect();
        assert_eq!(differing, [41]);
        assert_eq!(buffer.udp(&ETHERNET, &IP, &udp, 10).bytes, good);
    }

    #[test]
    fn a_super_packet_beyond_the_length_field_has_length_zero() {
        let tcp = Tcp {
            source_port: 1,
            destination_port: 2,
            seq: 0,
            ack: 0,
            flags: 0x10,
            window: 0,
            options: TcpOptions::default(),
        };
        let mut buffer = FrameBuffer::new(Keep::Headers);
        assert_eq!(buffer.tcp(&ETHERNET, &IP, &tcp, 65_495).bytes[16..18], [0xff, 0xff]);
        assert_eq!(buffer.tcp(&ETHERNET, &IP, &tcp, 65_496).bytes[16..18], [0, 0]);
    }
}
