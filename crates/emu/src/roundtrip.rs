//! Segmentation and coalescing against a plain segmentation written from the RFCs.

use proptest::prelude::*;
use tcplab_link::Packet;
use tcplab_units::Time;

use crate::arena::Arena;
use crate::checksum::Sum;
use crate::coalescing::{Coalescing, Group, HEADERS};
use crate::frame::{self, Keep};
use crate::headers::{CWR, ECE, FIN, PSH};
use crate::segmentation;
use crate::virtio::{self, Header};
use crate::wire::Wire;

/// A burst of one flow, as an application would send it.
#[derive(Clone, Debug)]
struct Burst {
    ip6: bool,
    udp: bool,
    id: u16,
    seq: u32,
    ack: u32,
    flags: u8,
    /// The AE flag is set, and CWR belongs to all segments (RFC 9768).
    accurate: bool,
    ecn: u8,
    options: usize,
    size: usize,
    payload: Vec<u8>,
}

impl Burst {
    fn ip_len(&self) -> usize {
        if self.ip6 { 40 } else { 20 }
    }

    fn transport_len(&self) -> usize {
        if self.udp { 8 } else { 20 + self.options }
    }

    /// The frame that carries `payload`, `skip` bytes into the burst, as its segment number `index`; its transport
    /// checksum is complete, or left for the device.
    fn frame(&self, payload: &[u8], index: u16, skip: usize, last: bool, partial: bool) -> Vec<u8> {
        let mut transport = vec![0x9c, 0x40, 0x13, 0x89];
        let len = (self.transport_len() + payload.len()) as u16;
        if self.udp {
            transport.extend(len.to_be_bytes());
            transport.extend([0, 0]);
        } else {
            let mut flags = self.flags;
            if !last {
                flags &= !(FIN | PSH);
            }
            if index > 0 && !self.accurate {
                flags &= !CWR;
            }
            transport.extend(self.seq.wrapping_add(skip as u32).to_be_bytes());
            transport.extend(self.ack.to_be_bytes());
            let offset = (self.transport_len() as u8 / 4) << 4 | u8::from(self.accurate);
            transport.extend([offset, flags, 0x01, 0xf6, 0, 0, 0, 0]);
            transport.extend((0..self.options).map(|n| n as u8));
        }
        let (source, destination): (Vec<u8>, Vec<u8>) = if self.ip6 {
            ((1..17).collect(), (2..18).collect())
        } else {
            (vec![10, 0, 0, 1], vec![10, 0, 0, 2])
        };
        let protocol = if self.udp { 17 } else { 6 };
        let mut pseudo = [source.clone(), destination.clone()].concat();
        pseudo.extend([0, protocol]);
        pseudo.extend(len.to_be_bytes());
        let at = if self.udp { 6 } else { 16 };
        let sum = if partial {
            Sum::default().add(&pseudo).fold()
        } else {
            let sum = Sum::default().add(&[&pseudo[..], &transport, payload].concat()).checksum();
            if self.udp && sum == 0 { 0xffff } else { sum }
        };
        transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        let mut ip = if self.ip6 {
            let mut ip = vec![0x60, self.ecn << 4, 0, 0];
            ip.extend(len.to_be_bytes());
            ip.extend([protocol, 64]);
            ip
        } else {
            let mut ip = vec![0x45, self.ecn];
            ip.extend((len + 20).to_be_bytes());
            ip.extend(self.id.wrapping_add(index).to_be_bytes());
            ip.extend([0x40, 0, 64, protocol, 0, 0]);
            ip
        };
        ip.extend(source);
        ip.extend(destination);
        if !self.ip6 {
            let sum = Sum::default().add(&ip).checksum();
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let kind = if self.ip6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind, &ip, &transport, payload].concat()
    }

    /// The packets on the wire.
    fn segments(&self) -> Vec<Vec<u8>> {
        let chunks: Vec<&[u8]> = self.payload.chunks(self.size).collect();
        let last = chunks.len() - 1;
        let frame =
            |(n, chunk): (usize, &&[u8])| self.frame(chunk, n as u16, n * self.size, n == last, false);
        chunks.iter().enumerate().map(frame).collect()
    }

    /// Frames as a TAP device returns them.
    fn super_packet(&self) -> Vec<u8> {
        let header = 14 + self.ip_len() + self.transport_len();
        let many = self.payload.len() > self.size;
        let kind = match (many, self.udp, self.ip6) {
            (false, ..) => virtio::GSO_NONE,
            (_, true, _) => virtio::GSO_UDP,
            (_, _, false) => virtio::GSO_TCP4,
            (_, _, true) => virtio::GSO_TCP6,
        };
        let ecn =
            if many && !self.udp && !self.accurate && self.flags & CWR != 0 { virtio::GSO_ECN } else { 0 };
        let device = Header {
            flags: virtio::NEEDS_CHECKSUM,
            gso_type: kind | ecn,
            header_len: header as u16,
            gso_size: if many { self.size as u16 } else { 0 },
            checksum_start: (14 + self.ip_len()) as u16,
            checksum_offset: if self.udp { 6 } else { 16 },
        };
        [&device.bytes()[..], &self.frame(&self.payload, 0, 0, true, true)].concat()
    }
}

fn bursts() -> impl Strategy<Value = Burst> {
    let flags = prop::sample::select(vec![0x10u8, 0x18, 0x11, 0x19, 0x50, 0x90, 0xd8]);
    let sizes = (prop::sample::select(vec![1usize, 7, 500, 1448, 8948]), 1usize..6000, 1usize..40);
    (any::<(bool, bool, bool, u16, u32, u32, u8)>(), flags, 0..=10usize, sizes).prop_map(
        |((ip6, udp, accurate, id, seq, ack, seed), flags, options, (size, len, segments))| {
            let len = len.min(size * segments);
            let payload = (0..len).map(|n| (n as u8).wrapping_mul(31).wrapping_add(seed)).collect();
            let (ecn, options) = (seed & 3, 4 * options);
            Burst { ip6, udp, id, seq, ack, flags, accurate, ecn, options, size, payload }
        },
    )
}

/// The packets of what a device gives.
fn cut(arena: &mut Arena, read: &[u8]) -> Vec<Wire> {
    arena.room()[..read.len()].copy_from_slice(read);
    segmentation::segments(arena, read.len()).expect("well-formed").iter().collect()
}

fn on_the_wire(arena: &Arena, packet: &Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(packet, arena, Keep::Full, &mut bytes);
    bytes
}

const ALL: Coalescing = Coalescing { tcp: true, udp: true };

/// Frames written to a device for these packets.
fn join(arena: &mut Arena, packets: &[Wire], coalescing: Coalescing) -> Vec<Vec<u8>> {
    fn leave(arena: &mut Arena, group: &mut Group, written: &mut Vec<Vec<u8>>) {
        if group.is_empty() {
            return;
        }
        let mut headers = [0; HEADERS];
        let len = group.write_headers(arena, &mut headers);
        written.push(group.payload(arena).fold(headers[..len].to_vec(), |all, part| [&all, part].concat()));
        group.clear(arena);
    }
    let (mut group, mut written) = (Group::new(), Vec::new());
    for packet in packets {
        if !group.take(*packet, Time::ZERO, arena) {
            leave(arena, &mut group, &mut written);
            group.begin(*packet, Time::ZERO, arena, coalescing);
        }
    }
    leave(arena, &mut group, &mut written);
    written
}

/// Cuts what was written again.
fn cut_again(arena: &mut Arena, written: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for read in written {
        let packets = cut(arena, read);
        all.extend(packets.iter().map(|packet| on_the_wire(arena, packet)));
        packets.iter().for_each(|packet| arena.release(packet.block));
    }
    all
}

proptest! {
    #[test]
    fn a_super_packet_is_cut_as_the_kernel_would(burst in bursts()) {
        let mut arena = Arena::new();
        let packets = cut(&mut arena, &burst.super_packet());
        let cut: Vec<Vec<u8>> = packets.iter().map(|packet| on_the_wire(&arena, packet)).collect();
        prop_assert_eq!(cut, burst.segments());
        for (packet, bytes) in packets.iter().zip(burst.segments()) {
            prop_assert_eq!(packet.frame_len() as usize, bytes.len());
            prop_assert_eq!(packet.is_ect(), burst.ecn != 0);
        }
    }

    #[test]
    fn joined_packets_are_cut_into_the_same_again(
        bursts in prop::collection::vec(bursts(), 1..4),
        fates in prop::collection::vec(0u8..20, 1..60),
        tcp in any::<bool>(),
    ) {
        let mut arena = Arena::new();
        let mut packets = Vec::new();
        for burst in &bursts {
            packets.extend(cut(&mut arena, &burst.super_packet()));
        }
        // Some are lost, sent twice, marked, or overtaken.
        let mut left = Vec::new();
        for (packet, fate) in packets.into_iter().zip(fates.iter().cycle()) {
            match fate {
                0 => arena.release(packet.block),
                1 => {
                    arena.hold(packet.block);
                    left.extend([packet, packet]);
                }
                2 => left.insert(left.len().saturating_sub(1), packet),
                3 => {
                    let mut marked = packet;
                    marked.mark_ce();
                    left.push(marked);
                }
                _ => left.push(packet),
            }
        }
        let wire: Vec<Vec<u8>> = left.iter().map(|packet| on_the_wire(&arena, packet)).collect();
        let written = join(&mut arena, &left, Coalescing { tcp, udp: true });
        prop_assert_eq!(arena.packets(), 0);
        prop_assert_eq!(cut_again(&mut arena, &written), wire);
    }

    #[test]
    fn a_whole_burst_leaves_as_it_came(burst in bursts()) {
        let mut arena = Arena::new();
        let came = burst.super_packet();
        let packets = cut(&mut arena, &came);
        let many = packets.len() > 1;
        let written = join(&mut arena, &packets, ALL);
        if burst.udp && packets.len() > 64 || burst.flags & !(CWR | 0x40 | PSH | FIN) != 0x10 {
            prop_assert!(many);
        } else {
            prop_assert_eq!(written, vec![came]);
        }
    }

    #[test]
    fn segments_sent_one_by_one_leave_as_one(burst in bursts()) {
        prop_assume!(!burst.udp && burst.flags & CWR == 0 && burst.payload.len().div_ceil(burst.size) < 60);
        let mut arena = Arena::new();
        let mut packets = Vec::new();
        let count = burst.payload.len().div_ceil(burst.size);
        for (n, chunk) in burst.payload.chunks(burst.size).enumerate() {
            let one = Burst {
                id: burst.id.wrapping_add(n as u16),
                seq: burst.seq.wrapping_add((n * burst.size) as u32),
                flags: if n + 1 < count { burst.flags & !(FIN | PSH) } else { burst.flags },
                payload: chunk.to_vec(),
                ..burst.clone()
            };
            packets.extend(cut(&mut arena, &one.super_packet()));
        }
        prop_assert_eq!(join(&mut arena, &packets, ALL), vec![burst.super_packet()]);
    }

    #[test]
    fn a_damaged_packet_fails_its_checksum(burst in bursts()) {
        let mut arena = Arena::new();
        for packet in cut(&mut arena, &burst.super_packet()) {
            let good = on_the_wire(&arena, &packet);
            let mut bad = good.clone();
            prop_assert!(frame::damage(&packet, &mut bad));
            let at = 14 + burst.ip_len();
            let difference: u32 = good.iter().zip(&bad).map(|(a, b)| (a ^ b).count_ones()).sum();
            prop_assert_eq!((difference, good[..at] == bad[..at]), (1, true));
        }
    }

    #[test]
    fn no_bytes_from_a_device_do_harm(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200), ip in any::<bool>(), tcp in any::<bool>(),
    ) {
        if bytes.len() > 40 && ip {
            bytes[22..24].copy_from_slice(&[8, 0]);
            bytes[24] = 0x45;
            bytes[33] = if tcp { 6 } else { 17 };
        }
        let mut arena = Arena::new();
        arena.room()[..bytes.len()].copy_from_slice(&bytes);
        if let Ok(packets) = segmentation::segments(&mut arena, bytes.len()) {
            let packets: Vec<Wire> = packets.iter().collect();
            for packet in &packets {
                let mut bytes = on_the_wire(&arena, packet);
                frame::damage(packet, &mut bytes);
            }
            join(&mut arena, &packets, ALL);
        }
        prop_assert_eq!(arena.packets(), 0);
    }
}

#[test]
fn a_mark_is_set_in_the_header_and_its_checksum_follows() {
    for ip6 in [false, true] {
        let burst = Burst {
            ip6,
            udp: false,
            id: 7,
            seq: 1,
            ack: 2,
            flags: 0x10,
            accurate: false,
            ecn: 2,
            options: 12,
            size: 100,
            payload: vec![1; 300],
        };
        let mut arena = Arena::new();
        let mut packets = cut(&mut arena, &burst.super_packet());
        packets.iter_mut().for_each(Wire::mark_ce);
        let marked: Vec<Vec<u8>> = packets.iter().map(|packet| on_the_wire(&arena, packet)).collect();
        assert_eq!(marked, Burst { ecn: 3, ..burst }.segments());
    }
}

/// The ACE field is a number of three bits: each packet has it as it was sent, in a super-packet and out of it.
#[test]
fn the_accurate_ecn_field_stays_one() {
    let whole = Burst {
        ip6: false,
        udp: false,
        id: 7,
        seq: 1,
        ack: 2,
        flags: 0x10 | CWR | ECE,
        accurate: true,
        ecn: 1,
        options: 12,
        size: 100,
        payload: vec![1; 500],
    };
    let mut arena = Arena::new();
    let packets = cut(&mut arena, &whole.super_packet());
    let fields = |bytes: &Vec<u8>| (bytes[14 + 20 + 12] & 1, bytes[14 + 20 + 13] & (CWR | ECE));
    let wire: Vec<Vec<u8>> = packets.iter().map(|packet| on_the_wire(&arena, packet)).collect();
    assert_eq!(wire.iter().map(fields).collect::<Vec<_>>(), [(1, CWR | ECE); 5]);
    assert_eq!(join(&mut arena, &packets, ALL), [whole.super_packet()]);

    // Acknowledgments of two counts, which differ in CWR only, are not coalesced into one.
    let next = Burst { seq: 501, id: 12, flags: 0x10 | ECE, ..whole.clone() };
    let mut both = cut(&mut arena, &whole.super_packet());
    both.extend(cut(&mut arena, &next.super_packet()));
    assert_eq!(join(&mut arena, &both, ALL), [whole.super_packet(), next.super_packet()]);
}
