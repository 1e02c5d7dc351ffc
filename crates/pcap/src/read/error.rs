//! Errors in captures.

use std::io;

/// A capture could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It can't be read.
    #[error("it can't be read: {0}")]
    Io(#[source] io::Error),
    /// There are too few bytes for a file header.
    #[error("it has {len} bytes, too few for a capture's header")]
    TooShort {
        /// How many.
        len: usize,
    },
    /// The first bytes are not those of a capture.
    #[error("not a pcap or pcapng file (magic {})", hex(.magic))]
    NotACapture {
        /// The first four bytes.
        magic: [u8; 4],
    },
    /// A compression that we can't read.
    #[error("it is compressed with {name}, which is not supported: unpack it with `{unpack}`")]
    Compressed {
        /// Which.
        name: &'static str,
        /// The command that unpacks it.
        unpack: &'static str,
    },
    /// A relative of pcap that we can't read.
    #[error("it is a capture in {name}, which is not supported: convert it with `editcap -F pcapng`")]
    Variant {
        /// Which.
        name: &'static str,
    },
    /// A version of the format that does not exist yet.
    #[error("its format's version is {major}.{minor}, which is not known")]
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The first block can't be read.
    #[error("its first block is damaged: {0}")]
    Damaged(Damage),
}

fn hex(bytes: &[u8; 4]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(" ")
}

/// How a capture ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// With its last packet, as it should.
    #[error("complete")]
    Complete,
    /// In the middle of a record.
    #[error("cut off in the middle of a record at byte {at}, {missing} bytes short")]
    Cut {
        /// Where the record begins.
        at: u64,
        /// At least this many bytes are missing.
        missing: u64,
    },
    /// With a record that can't be one.
    #[error("damaged at byte {at}: {what}")]
    Damaged {
        /// Where the record begins.
        at: u64,
        /// The mistake in it.
        what: Damage,
    },
    /// With an error of the disk, the pipe or the compressed stream.
    #[error("not readable from byte {at} on: {error}")]
    Failed {
        /// How far it was read.
        at: u64,
        /// The error.
        error: String,
    },
}

/// Errors in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A packet longer than any.
    #[error("a packet of {len} bytes")]
    PacketLength {
        /// Its length, as the record says.
        len: u32,
    },
    /// A block whose length can't be.
    #[error("a block of {len} bytes")]
    BlockLength {
        /// Its length, as the block says.
        len: u32,
    },
    /// The two lengths of a block differ.
    #[error("a block's length is {first} in front and {last} behind")]
    BlockLengths {
        /// The length in front.
        first: u32,
        /// The length behind.
        last: u32,
    },
    /// A section whose byte order is not known.
    #[error("a section with the byte-order magic {magic:#010x}")]
    ByteOrder {
        /// The magic, read in little-endian order.
        magic: u32,
    },
    /// A section of a version that does not exist yet.
    #[error("a section of version {major}")]
    SectionVersion {
        /// Major version.
        major: u16,
    },
}
