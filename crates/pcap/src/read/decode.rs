//! From bytes to records, whatever the format: no input, no buffer, only slices.

use super::classic::Classic;
use super::error::{Damage, OpenError};
use super::ng::Ng;
use super::{Counts, InterfaceInfo, LinkType};

/// Where a packet is in the bytes given, and what its record says about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Length of the whole record.
    pub record_len: usize,
    /// Where the packet's bytes begin in the record.
    pub data_at: usize,
    /// How many there are.
    pub captured_len: usize,
    pub original_len: u32,
    /// ns since 1970.
    pub time: Option<i64>,
    pub link: LinkType,
    pub interface: u32,
}

/// The first header in the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Packet(Found),
    /// A record of this many bytes that is not a packet.
    Skip(usize),
    /// A record of at least this many bytes, not all there.
    More(usize),
    Damaged(Damage),
}

/// Why there is no decoder yet.
#[derive(Debug)]
pub(super) enum Begin {
    /// The header has at least this many bytes.
    More(usize),
    Refused(OpenError),
}

#[derive(Debug)]
pub(super) enum Decoder {
    Classic(Classic),
    Ng(Ng),
}

impl Decoder {
    /// The decoder that the first bytes call for, and how many of them it has consumed.
    pub(super) fn begin(bytes: &[u8]) -> Result<(Decoder, usize), Begin> {
        let Some(magic) = bytes.first_chunk::<4>() else { return Err(Begin::More(4)) };
        if u32::from_le_bytes(*magic) == super::ng::SECTION_HEADER {
            let ng = Ng::begin(bytes)?;
            return Ok((Decoder::Ng(ng), 0));
        }
        let (classic, len) = Classic::begin(*magic, bytes)?;
        Ok((Decoder::Classic(classic), len))
    }

    #[inline]
    pub(super) fn step(&mut self, bytes: &[u8], counts: &mut Counts) -> Step {
        match self {
            Decoder::Classic(classic) => classic.step(bytes),
            Decoder::Ng(ng) => ng.step(bytes, counts),
        }
    }

    pub(super) fn interfaces(&self) -> Vec<InterfaceInfo> {
        match self {
            Decoder::Classic(classic) => vec![classic.interface()],
            Decoder::Ng(ng) => ng.interfaces(),
        }
    }
}

/// Integers in the byte order of the machine that wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteOrder {
    pub big: bool,
}

impl ByteOrder {
    #[inline]
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    #[inline]
    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// The `N` words that `bytes` begin with; none if there are fewer.
    #[inline]
    pub(super) fn words<const N: usize>(self, bytes: &[u8]) -> Option<[u32; N]> {
        let (words, _) = bytes.as_chunks::<4>();
        let words = words.first_chunk::<N>()?;
        Some(words.map(|word| self.u32(word)))
    }
}
