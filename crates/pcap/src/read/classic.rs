//! The pcap format (draft-ietf-opsawg-pcap).

use super::decode::{Begin, ByteOrder, Found, Step};
use super::error::{Damage, OpenError};
use super::{InterfaceInfo, LONGEST_PACKET, LinkType};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Record headers of 24 bytes, from kernels patched by A. Kuznetsov.
const MODIFIED: u32 = 0xa1b2_cd34;
/// Captures of IXIA's hardware and software, whose header has another length.
const IXIA: [u32; 2] = [0x1c00_01ac, 0x1c00_01ab];

const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
const NANOSECONDS_A_SECOND: i64 = 1_000_000_000;

/// The first bytes of compressed files, other than those of gzip and zstd.
const COMPRESSED: [(&[u8], &str, &str); 3] = [
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "lz4 -d"),
    (&[0xfd, b'7', b'z', b'X'], "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
];

#[derive(Debug)]
pub(super) struct Classic {
    order: ByteOrder,
    link: LinkType,
    snap_len: u32,
    /// The unit of the timestamp's second word (ns).
    unit: i64,
}

impl Classic {
    /// The format that the file header gives, and the header's length.
    pub(super) fn begin(magic: [u8; 4], bytes: &[u8]) -> Result<(Classic, usize), Begin> {
        let known = [false, true].into_iter().find_map(|big| {
            let order = ByteOrder { big };
            let magic = order.u32(magic);
            let known = [MICROSECONDS, NANOSECONDS, MODIFIED].contains(&magic) || IXIA.contains(&magic);
            known.then_some((order, magic))
        });
        let Some((order, kind)) = known else {
            return Err(Begin::Refused(not_a_capture(magic)));
        };
        let unit = match kind {
            MICROSECONDS => 1000,
            NANOSECONDS => 1,
            MODIFIED => return Err(Begin::Refused(OpenError::Variant { name: "Kuznetsov's modified pcap" })),
            _ => return Err(Begin::Refused(OpenError::Variant { name: "IXIA's variant of pcap" })),
        };
        let Some([_, version, _, _, snap_len, network]) = order.words::<6>(bytes) else {
            return Err(Begin::More(FILE_HEADER_LEN));
        };
        let (first, second) = (version as u16, (version >> 16) as u16);
        let (major, minor) = if order.big { (second, first) } else { (first, second) };
        // Minor versions before 3 had the two lengths of a record in the other order.
        if major != 2 || minor < 3 {
            return Err(Begin::Refused(OpenError::Version { major, minor }));
        }
        // The upper half says whether frames end with their check sequence.
        let link = LinkType(network as u16);
        Ok((Classic { order, link, snap_len, unit }, FILE_HEADER_LEN))
    }

    #[inline]
    pub(super) fn step(&self, bytes: &[u8]) -> Step {
        let Some([seconds, fraction, captured_len, original_len]) = self.order.words::<4>(bytes) else {
            return Step::More(RECORD_HEADER_LEN);
        };
        if captured_len > LONGEST_PACKET {
            return Step::Damaged(Damage::PacketLength { len: captured_len });
        }
        let record_len = RECORD_HEADER_LEN + captured_len as usize;
        if bytes.len() < record_len {
            return Step::More(record_len);
        }
        let time = i64::from(seconds) * NANOSECONDS_A_SECOND + i64::from(fraction) * self.unit;
        Step::Packet(Found {
            record_len,
            data_at: RECORD_HEADER_LEN,
            captured_len: captured_len as usize,
            original_len: original_len.max(captured_len),
            time: Some(time),
            link: self.link,
            interface: 0,
        })
    }

    pub(super) fn interface(&self) -> InterfaceInfo {
        InterfaceInfo { name: None, link: self.link, snap_len: self.snap_len }
    }
}

/// A file with these first bytes is not a capture; where they are known, what it is.
fn not_a_capture(magic: [u8; 4]) -> OpenError {
    match COMPRESSED.iter().find(|(first, ..)| magic.starts_with(first)) {
        Some(&(_, name, unpack)) => OpenError::Compressed { name, unpack },
        None => OpenError::NotACapture { magic },
    }
}
