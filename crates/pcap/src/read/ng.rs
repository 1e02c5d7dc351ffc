//! The pcapng format (draft-ietf-opsawg-pcapng).

use std::collections::HashMap;

use super::decode::{Begin, ByteOrder, Found, Step};
use super::error::{Damage, OpenError};
use super::{Counts, InterfaceInfo, LONGEST_PACKET, LinkType};

/// The same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete, written by old programs.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const OPT_END: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;

/// Type, length in front, length behind.
const SMALLEST_BLOCK: usize = 12;
/// Interface, two words of time, two lengths.
const PACKET_FIELDS: usize = 20;
const LONGEST_BLOCK: u32 = 2 * LONGEST_PACKET;
/// More than any machine has; each is remembered, so a damaged file may not describe them without end.
const MAX_INTERFACES: usize = 65_536;

#[derive(Debug)]
pub(super) struct Ng {
    order: ByteOrder,
    /// Those of the current section.
    interfaces: Vec<Interface>,
    /// Those of all sections. A section numbers its own from 0, and its packets may be of others than those before.
    known: Vec<InterfaceInfo>,
    /// Their places by name and link type.
    alike: HashMap<(Option<String>, LinkType), Alike>,
    /// Sections begun.
    section: u32,
}

/// The interfaces of one name and link type, of which a section may have several.
#[derive(Debug, Default)]
struct Alike {
    numbers: Vec<u32>,
    /// How many of them this section has described.
    used: usize,
    section: u32,
}

#[derive(Debug)]
struct Interface {
    info: InterfaceInfo,
    /// Its place among those of all sections.
    number: u32,
    resolution: Resolution,
    /// Added to each timestamp (ns).
    offset: i64,
    /// The latest count of packets it missed.
    dropped: u64,
}

/// The unit of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// This many nanoseconds.
    Nanoseconds(u64),
    /// A nanosecond holds this many.
    Fractions(u64),
    /// 2^-n seconds.
    PowerOfTwo(u32),
}

impl Resolution {
    /// From the option's byte: 10^-n, or with the highest bit 2^-n.
    fn from_option(byte: u8) -> Resolution {
        let exponent = u32::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            return Resolution::PowerOfTwo(exponent);
        }
        match exponent {
            0..=9 => Resolution::Nanoseconds(10u64.pow(9 - exponent)),
            // Beyond 10^19 units in a nanosecond every timestamp of 64 bits is 0.
            _ => Resolution::Fractions(10u64.checked_pow(exponent - 9).unwrap_or(u64::MAX)),
        }
    }

    /// `units` in ns; what no clock can show is the latest time there is.
    #[inline]
    fn nanoseconds(self, units: u64) -> i64 {
        match self {
            Resolution::Nanoseconds(1) => i64::try_from(units).unwrap_or(i64::MAX),
            Resolution::Nanoseconds(each) => {
                units.checked_mul(each).and_then(|ns| i64::try_from(ns).ok()).unwrap_or(i64::MAX)
            }
            Resolution::Fractions(each) => i64::try_from(units / each).unwrap_or(i64::MAX),
            Resolution::PowerOfTwo(exponent) => {
                let ns = (u128::from(units) * 1_000_000_000) >> exponent;
                i64::try_from(ns).unwrap_or(i64::MAX)
            }
        }
    }
}

impl Ng {
    /// Looks at the first section header; it is left to be read as any other.
    pub(super) fn begin(bytes: &[u8]) -> Result<Ng, Begin> {
        let mut ng = Ng {
            order: ByteOrder { big: false },
            interfaces: Vec::new(),
            known: Vec::new(),
            alike: HashMap::new(),
            section: 0,
        };
        match ng.step(bytes, &mut Counts::default()) {
            Step::More(needed) => Err(Begin::More(needed)),
            Step::Damaged(Damage::SectionVersion { major }) => {
                Err(Begin::Refused(OpenError::Version { major, minor: 0 }))
            }
            Step::Damaged(what) => Err(Begin::Refused(OpenError::Damaged(what))),
            Step::Packet(_) | Step::Skip(_) => Ok(ng),
        }
    }

    #[inline]
    pub(super) fn step(&mut self, bytes: &[u8], counts: &mut Counts) -> Step {
        let Some([kind, len]) = self.order.words::<2>(bytes) else { return Step::More(SMALLEST_BLOCK) };
        if kind == SECTION_HEADER {
            return self.section(bytes);
        }
        let body = match self.body(bytes, len) {
            Ok(body) => body,
            Err(step) => return step,
        };
        match kind {
            ENHANCED_PACKET => self.enhanced_packet(body, counts),
            SIMPLE_PACKET => self.simple_packet(body, counts),
            PACKET => self.obsolete_packet(body, counts),
            _ => self.other(kind, body, counts),
        }
    }

    /// The body of a block, between its two lengths.
    #[inline]
    fn body<'a>(&self, bytes: &'a [u8], len: u32) -> Result<&'a [u8], Step> {
        if !(SMALLEST_BLOCK as u32..=LONGEST_BLOCK).contains(&len) || !len.is_multiple_of(4) {
            return Err(Step::Damaged(Damage::BlockLength { len }));
        }
        let Some(block) = bytes.get(..len as usize) else { return Err(Step::More(len as usize)) };
        let (front, behind) = block.split_at(block.len() - 4);
        let last = behind.first_chunk().map_or(0, |&last| self.order.u32(last));
        if last != len {
            return Err(Step::Damaged(Damage::BlockLengths { first: len, last }));
        }
        Ok(&front[8..])
    }

    /// A new section: its own byte order, no interface yet.
    #[cold]
    fn section(&mut self, bytes: &[u8]) -> Step {
        // The byte-order magic comes before the length can be understood.
        let little = ByteOrder { big: false };
        let Some([_, _, magic]) = little.words::<3>(bytes) else { return Step::More(SMALLEST_BLOCK) };
        let order = match magic {
            BYTE_ORDER_MAGIC => little,
            _ if magic.swap_bytes() == BYTE_ORDER_MAGIC => ByteOrder { big: true },
            _ => return Step::Damaged(Damage::ByteOrder { magic }),
        };
        self.order = order;
        let len = order.words::<2>(bytes).map_or(0, |words| words[1]);
        let body = match self.body(bytes, len) {
            Ok(body) => body,
            Err(step) => return step,
        };
        let Some(&[_, _, _, _, a, b, ..]) = body.first_chunk::<16>() else {
            return Step::Damaged(Damage::BlockLength { len });
        };
        let major = order.u16([a, b]);
        if major != 1 {
            return Step::Damaged(Damage::SectionVersion { major });
        }
        self.interfaces.clear();
        self.section = self.section.wrapping_add(1);
        Step::Skip(body.len() + SMALLEST_BLOCK)
    }

    #[inline]
    fn enhanced_packet(&self, body: &[u8], counts: &mut Counts) -> Step {
        let Some([interface, high, low, captured_len, original_len]) = self.order.words::<5>(body) else {
            return self.too_short(body);
        };
        self.packet(body, interface, [high, low], captured_len, original_len, counts)
    }

    #[inline]
    fn packet(
        &self,
        body: &[u8],
        interface: u32,
        [high, low]: [u32; 2],
        captured_len: u32,
        original_len: u32,
        counts: &mut Counts,
    ) -> Step {
        let record_len = body.len() + SMALLEST_BLOCK;
        if captured_len as usize > body.len() - PACKET_FIELDS {
            return Step::Damaged(Damage::PacketLength { len: captured_len });
        }
        let Some(described) = self.interfaces.get(interface as usize) else {
            counts.without_interface += 1;
            return Step::Skip(record_len);
        };
        let units = u64::from(high) << 32 | u64::from(low);
        let time = described.resolution.nanoseconds(units).saturating_add(described.offset);
        Step::Packet(Found {
            record_len,
            data_at: 8 + PACKET_FIELDS,
            captured_len: captured_len as usize,
            original_len: original_len.max(captured_len),
            time: Some(time),
            link: described.info.link,
            interface: described.number,
        })
    }

    /// A packet of the first interface, without time; cut at the interface's snap length.
    fn simple_packet(&self, body: &[u8], counts: &mut Counts) -> Step {
        let Some([original_len]) = self.order.words::<1>(body) else { return self.too_short(body) };
        let record_len = body.len() + SMALLEST_BLOCK;
        let Some(described) = self.interfaces.first() else {
            counts.without_interface += 1;
            return Step::Skip(record_len);
        };
        let snap_len = if described.info.snap_len == 0 { u32::MAX } else { described.info.snap_len };
        let captured_len = (original_len.min(snap_len) as usize).min(body.len() - 4);
        Step::Packet(Found {
            record_len,
            data_at: 8 + 4,
            captured_len,
            original_len,
            time: None,
            link: described.info.link,
            interface: described.number,
        })
    }

    /// As an enhanced packet, but half of the first word counts drops.
    fn obsolete_packet(&self, body: &[u8], counts: &mut Counts) -> Step {
        let Some([_, high, low, captured_len, original_len]) = self.order.words::<5>(body) else {
            return self.too_short(body);
        };
        let interface = u32::from(self.order.u16([body[0], body[1]]));
        self.packet(body, interface, [high, low], captured_len, original_len, counts)
    }

    fn too_short(&self, body: &[u8]) -> Step {
        Step::Damaged(Damage::BlockLength { len: (body.len() + SMALLEST_BLOCK) as u32 })
    }

    #[cold]
    fn other(&mut self, kind: u32, body: &[u8], counts: &mut Counts) -> Step {
        match kind {
            INTERFACE_DESCRIPTION if body.len() >= 8 => {
                if self.interfaces.len().max(self.known.len()) == MAX_INTERFACES {
                    return self.too_short(body);
                }
                let mut interface = self.describe(body);
                interface.number = self.number(&interface.info);
                self.interfaces.push(interface);
            }
            INTERFACE_STATISTICS if body.len() >= 12 => self.statistics(body, counts),
            INTERFACE_DESCRIPTION | INTERFACE_STATISTICS => return self.too_short(body),
            _ => counts.blocks_skipped += 1,
        }
        Step::Skip(body.len() + SMALLEST_BLOCK)
    }

    fn describe(&self, body: &[u8]) -> Interface {
        let link = LinkType(self.order.u16([body[0], body[1]]));
        let snap_len = self.order.u32([body[4], body[5], body[6], body[7]]);
        let mut interface = Interface {
            info: InterfaceInfo { name: None, link, snap_len },
            number: 0,
            resolution: Resolution::Nanoseconds(1000),
            offset: 0,
            dropped: 0,
        };
        for (code, value) in self.options(&body[8..]) {
            match (code, value) {
                (IF_NAME, name) => interface.info.name = Some(String::from_utf8_lossy(name).into_owned()),
                (IF_TSRESOL, &[byte]) => interface.resolution = Resolution::from_option(byte),
                (IF_TSOFFSET, value) => {
                    if let Some(seconds) = self.u64(value) {
                        interface.offset = (seconds as i64).saturating_mul(1_000_000_000);
                    }
                }
                _ => {}
            }
        }
        interface
    }

    /// The place of an interface among those of all sections. One with the name and link type of one of another
    /// section is the same: captures that follow one another may be in one file.
    fn number(&mut self, info: &InterfaceInfo) -> u32 {
        let alike = self.alike.entry((info.name.clone(), info.link)).or_default();
        if alike.section != self.section {
            *alike = Alike { section: self.section, used: 0, numbers: std::mem::take(&mut alike.numbers) };
        }
        alike.used += 1;
        if let Some(&number) = alike.numbers.get(alike.used - 1) {
            return number;
        }
        let number = self.known.len() as u32;
        alike.numbers.push(number);
        self.known.push(info.clone());
        number
    }

    /// Each block counts from the beginning of the capture, so the latest is the count.
    fn statistics(&mut self, body: &[u8], counts: &mut Counts) {
        let interface = self.order.u32([body[0], body[1], body[2], body[3]]);
        let dropped = self
            .options(&body[12..])
            .filter(|&(code, _)| code == ISB_IFDROP)
            .find_map(|(_, value)| self.u64(value));
        if let Some(dropped) = dropped
            && let Some(described) = self.interfaces.get_mut(interface as usize)
        {
            counts.dropped_at_capture =
                counts.dropped_at_capture.saturating_add(dropped.saturating_sub(described.dropped));
            described.dropped = described.dropped.max(dropped);
        }
    }

    fn u64(&self, value: &[u8]) -> Option<u64> {
        let value: [u8; 8] = value.try_into().ok()?;
        Some(if self.order.big { u64::from_be_bytes(value) } else { u64::from_le_bytes(value) })
    }

    /// Options by code, up to their end or to the first that is cut.
    fn options<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let order = self.order;
        std::iter::from_fn(move || {
            let &[a, b, c, d] = bytes.first_chunk::<4>()?;
            let (code, len) = (order.u16([a, b]), usize::from(order.u16([c, d])));
            let value = bytes.get(4..4 + len)?;
            bytes = bytes.get(4 + len.next_multiple_of(4)..).unwrap_or(&[]);
            (code != OPT_END).then_some((code, value))
        })
    }

    pub(super) fn interfaces(&self) -> Vec<InterfaceInfo> {
        self.known.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_of_any_resolution_are_nanoseconds() {
        let cases = [
            (0, 7, 7_000_000_000),
            (3, 7, 7_000_000),
            (6, 1_700_000_000_000_001, 1_700_000_000_000_001_000),
            (9, 1_700_000_000_000_000_001, 1_700_000_000_000_000_001),
            (12, 7_999, 7),
            (0x80, 3, 3_000_000_000),
            (0x80 | 20, 1 << 19, 500_000_000),
            (0x80 | 63, u64::MAX, 1_999_999_999),
        ];
        for (byte, units, ns) in cases {
            assert_eq!(Resolution::from_option(byte).nanoseconds(units), ns, "if_tsresol {byte}");
        }
    }

    #[test]
    fn no_resolution_overflows() {
        for byte in 0..=255 {
            for units in [0, 1, u64::MAX / 2, u64::MAX] {
                assert!(Resolution::from_option(byte).nanoseconds(units) >= 0);
            }
        }
    }
}
