//! Reading captures: pcap and pcapng, plain, gzip or zstd, from a file or a pipe.
//!
//! A [`Reader`] hands out one [`Packet`] after the other, borrowed from the mapped file or from its buffer. A file
//! cut in the middle of a packet, a damaged record or a failing disk ends a capture early. The packets read before
//! are not taken away: the packets stop, and [`Reader::ending`] says why.

mod classic;
mod decode;
mod error;
mod input;
mod ng;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

pub use error::{Damage, Ending, OpenError};

use decode::{Decoder, Found, Step};
use input::{Input, Whole};

/// No packet is taken to be longer: a record that has more bytes of one is damaged.
///
/// Linux's BIG TCP makes frames of at most 512 KiB, USB captures have records of a few MiB.
pub const LONGEST_PACKET: u32 = 16 << 20;

/// A LINKTYPE value of the capture formats' registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in the byte order of the capturing machine.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// IPv4 or IPv6 without a link header, as some systems wrote it.
    pub const RAW_OLD: LinkType = LinkType(12);
    /// IPv4 or IPv6 without a link header, as OpenBSD wrote it.
    pub const RAW_OPENBSD: LinkType = LinkType(14);
    /// IPv4 or IPv6 without a link header.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux cooked capture, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IPv4 without a link header.
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6 without a link header.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);
}

/// A packet as captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its place in the capture, from 1.
    pub number: u64,
    /// When it was captured (ns since 1970). Without a timestamp of its own it has that of the packet before.
    pub time: i64,
    /// The bytes kept of it.
    pub bytes: &'a [u8],
    /// How long it was on the link, as the capture says (bytes).
    pub original_len: u32,
    /// Its first header.
    pub link: LinkType,
    /// The interface it was captured on, counted over all sections; always 0 in a pcap file.
    pub interface: u32,
}

/// Contents of a capture besides the packets handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets handed out.
    pub packets: u64,
    /// Packets of an interface that the capture never described; not handed out.
    pub without_interface: u64,
    /// Packets that carry no timestamp (pcapng's simple packet blocks).
    pub without_time: u64,
    /// Packets whose timestamp is before that of the packet before.
    pub back_in_time: u64,
    /// Blocks of a kind that holds no packets we know.
    pub blocks_skipped: u64,
    /// Packets that the capturing program says it missed.
    pub dropped_at_capture: u64,
}

/// An interface a capture describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceInfo {
    /// Its name, if the file has it.
    pub name: Option<String>,
    /// Its link type.
    pub link: LinkType,
    /// At most this many bytes of a packet were kept; 0: unlimited.
    pub snap_len: u32,
}

/// Where a packet lies in [`Bytes`], and what its record says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    at: usize,
    number: u64,
    time: i64,
    captured_len: u32,
    original_len: u32,
    interface: u32,
    link: LinkType,
}

/// A whole capture, mapped or in memory, which others than its reader can look at.
#[derive(Clone)]
pub(crate) struct Bytes(Arc<Whole>);

impl Bytes {
    /// The packet at a place that its reader has returned.
    #[inline]
    pub(crate) fn packet(&self, place: &Place) -> Packet<'_> {
        Packet {
            number: place.number,
            time: place.time,
            bytes: &self.0.bytes()[place.at..place.at + place.captured_len as usize],
            original_len: place.original_len,
            link: place.link,
            interface: place.interface,
        }
    }
}

/// Reads a capture packet by packet.
#[derive(Debug)]
pub struct Reader {
    input: Input,
    decoder: Decoder,
    counts: Counts,
    ending: Option<Ending>,
    last_time: i64,
}

impl Reader {
    /// Opens the file at `path`; it is mapped if it is a plain capture, else read as a stream.
    ///
    /// # Errors
    /// When it can't be read or holds no capture.
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        let file = File::open(path).map_err(OpenError::Io)?;
        Reader::new(Input::from_file(file).map_err(OpenError::Io)?)
    }

    /// Reads a capture from a pipe, standard input or whatever else gives bytes.
    ///
    /// # Errors
    /// When it can't be read or holds no capture.
    pub fn from_stream(stream: impl Read + Send + 'static) -> Result<Reader, OpenError> {
        Reader::new(Input::from_stream(Box::new(stream)).map_err(OpenError::Io)?)
    }

    /// Reads a capture that is in memory.
    ///
    /// # Errors
    /// When it holds no capture.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Reader, OpenError> {
        Reader::new(Input::from_bytes(bytes).map_err(OpenError::Io)?)
    }

    fn new(mut input: Input) -> Result<Reader, OpenError> {
        let decoder = loop {
            let bytes = input.bytes();
            match Decoder::begin(bytes) {
                Ok((decoder, consumed)) => {
                    input.consume(consumed);
                    break decoder;
                }
                Err(decode::Begin::More(needed)) => {
                    if !input.fill(needed).map_err(OpenError::Io)? {
                        return Err(OpenError::TooShort { len: input.bytes().len() });
                    }
                }
                Err(decode::Begin::Refused(error)) => return Err(error),
            }
        };
        Ok(Reader { input, decoder, counts: Counts::default(), ending: None, last_time: 0 })
    }

    /// The capture's bytes, in which [`Place`]s lie; none if it comes from a stream.
    pub(crate) fn whole(&self) -> Option<Bytes> {
        self.input.whole().map(Bytes)
    }

    /// The next packet; none at the end, which [`Reader::ending`] explains.
    #[inline]
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        let (found, time) = self.next_found()?;
        let bytes = self.input.take(found.record_len, found.data_at, found.captured_len);
        Some(Packet {
            number: self.counts.packets,
            time,
            bytes,
            original_len: found.original_len,
            link: found.link,
            interface: found.interface,
        })
    }

    /// The next packet's place, as [`Reader::next_packet`] finds it.
    #[inline]
    pub(crate) fn next_place(&mut self) -> Option<Place> {
        let (found, time) = self.next_found()?;
        let at = self.input.position() as usize + found.data_at;
        self.input.take(found.record_len, found.data_at, found.captured_len);
        Some(Place {
            at,
            number: self.counts.packets,
            time,
            captured_len: found.captured_len as u32,
            original_len: found.original_len,
            interface: found.interface,
            link: found.link,
        })
    }

    /// The next packet's record, not yet consumed, and its time.
    // Called instead, this and what finds the IP header cost a sixth of a summary's speed.
    #[inline(always)]
    fn next_found(&mut self) -> Option<(Found, i64)> {
        if self.ending.is_some() {
            return None;
        }
        let found = loop {
            match self.decoder.step(self.input.bytes(), &mut self.counts) {
                Step::Packet(found) => break found,
                Step::Skip(len) => self.input.consume(len),
                Step::More(needed) => {
                    if let Some(ending) = self.refill(needed) {
                        self.ending = Some(ending);
                        return None;
                    }
                }
                Step::Damaged(what) => {
                    self.ending = Some(Ending::Damaged { at: self.input.position(), what });
                    return None;
                }
            }
        };
        self.counts.packets += 1;
        let time = match found.time {
            Some(time) => {
                if time < self.last_time && self.counts.packets > 1 {
                    self.counts.back_in_time += 1;
                }
                time
            }
            None => {
                self.counts.without_time += 1;
                self.last_time
            }
        };
        self.last_time = time;
        Some((found, time))
    }

    /// Gets `needed` bytes together; how the capture ended if there are none.
    #[cold]
    fn refill(&mut self, needed: usize) -> Option<Ending> {
        let at = self.input.position();
        match self.input.fill(needed) {
            Ok(true) => None,
            Ok(false) if self.input.bytes().is_empty() => Some(Ending::Complete),
            Ok(false) => {
                let missing = needed - self.input.bytes().len();
                Some(Ending::Cut { at, missing: missing as u64 })
            }
            Err(error) => Some(Ending::Failed { at, error: error.to_string() }),
        }
    }

    /// How the capture ended; none while it may have more packets.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The interfaces described so far, of all sections.
    pub fn interfaces(&self) -> Vec<InterfaceInfo> {
        self.decoder.interfaces()
    }

    /// The bytes of the (decompressed) capture that were read so far.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// The capture's length in bytes where it is known: a mapped file or memory.
    pub fn len(&self) -> Option<u64> {
        self.input.len()
    }

    /// Whether the capture is known to hold nothing further.
    pub fn is_empty(&self) -> bool {
        self.ending.is_some()
    }
}
