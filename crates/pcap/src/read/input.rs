//! Where the bytes of a capture come from: a mapped file, memory, or a stream through a buffer.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

use memmap2::{Advice, Mmap};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much is read from a stream at once.
const CHUNK: usize = 1 << 18;

/// How much of a file is mapped ahead at once, for fewer page faults.
const AHEAD: usize = 2 << 20;

/// So far ahead a record is asked for: about ten packets' headers, as long as a few of them take to be analysed.
const PREFETCHED: usize = 1024;
const CACHE_LINE: usize = 64;

pub(super) enum Input {
    Whole {
        bytes: Arc<Whole>,
        at: usize,
        /// Everything before this was mapped ahead.
        ahead: usize,
    },
    Stream(Stream),
}

pub(super) enum Whole {
    Mapped(Mmap),
    Memory(Vec<u8>),
}

impl Whole {
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Whole::Mapped(map) => map,
            Whole::Memory(bytes) => bytes,
        }
    }

    /// Maps a piece from `at` on; up to where.
    #[cold]
    fn map_ahead(&self, at: usize) -> usize {
        let Whole::Mapped(map) = self else { return usize::MAX };
        let begin = at / AHEAD * AHEAD;
        if begin < map.len() {
            // Advice: a kernel before 5.14 refuses it, and pages come one fault at a time.
            let _ = map.advise_range(Advice::PopulateRead, begin, AHEAD.min(map.len() - begin));
        }
        begin + AHEAD
    }
}

pub(super) struct Stream {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes consumed before `start`.
    consumed: u64,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("whole", &self.is_whole()).field("position", &self.position()).finish()
    }
}

impl Input {
    /// A plain capture in a regular file is mapped; all else is read as a stream.
    pub(super) fn from_file(file: File) -> io::Result<Input> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if metadata.is_file() && metadata.len() > 0 {
            // SAFETY: the mapping is read-only and private. Should another program cut the file while it is mapped,
            // the kernel ends this process by SIGBUS. A file that grows, such as that of a running capture, keeps the
            // length it had.
            let map = unsafe { Mmap::map(&file)? };
            if !is_compressed(&map) {
                // Advice that the kernel may ignore.
                let _ = map.advise(Advice::Sequential);
                return Ok(Input::Whole { bytes: Arc::new(Whole::Mapped(map)), at: 0, ahead: 0 });
            }
        }
        Input::from_stream(Box::new(file))
    }

    pub(super) fn from_bytes(bytes: Vec<u8>) -> io::Result<Input> {
        if is_compressed(&bytes) {
            return Input::from_stream(Box::new(Cursor::new(bytes)));
        }
        Ok(Input::Whole { bytes: Arc::new(Whole::Memory(bytes)), at: 0, ahead: 0 })
    }

    /// A stream, decompressed if its first bytes are those of gzip or zstd.
    pub(super) fn from_stream(mut source: Box<dyn Read + Send>) -> io::Result<Input> {
        let mut first = Vec::with_capacity(ZSTD.len());
        source.by_ref().take(ZSTD.len() as u64).read_to_end(&mut first)?;
        let (gzip, zstd) = (first.starts_with(&GZIP), first.starts_with(&ZSTD));
        let whole = Cursor::new(first).chain(source);
        let source: Box<dyn Read + Send> = if gzip {
            Box::new(flate2::read::MultiGzDecoder::new(whole))
        } else if zstd {
            unzstd(whole)?
        } else {
            Box::new(whole)
        };
        Ok(Input::Stream(Stream { source, buffer: vec![0; CHUNK], start: 0, end: 0, consumed: 0 }))
    }

    /// All bytes; none of a stream.
    pub(super) fn whole(&self) -> Option<Arc<Whole>> {
        match self {
            Input::Whole { bytes, .. } => Some(Arc::clone(bytes)),
            Input::Stream(_) => None,
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Input::Whole { .. })
    }

    /// The bytes that are there and not consumed.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Input::Whole { bytes, at, .. } => bytes.bytes().get(*at..).unwrap_or(&[]),
            Input::Stream(stream) => &stream.buffer[stream.start..stream.end],
        }
    }

    /// Consumes `len` bytes, at most what [`Input::bytes`] showed.
    #[inline]
    pub(super) fn consume(&mut self, len: usize) {
        match self {
            Input::Whole { at, .. } => *at += len,
            Input::Stream(stream) => {
                stream.start += len;
                stream.consumed += len as u64;
            }
        }
    }

    /// Consumes a record and shows `data_len` bytes of it from `data_at` on.
    #[inline]
    pub(super) fn take(&mut self, record_len: usize, data_at: usize, data_len: usize) -> &[u8] {
        self.consume(record_len);
        match self {
            Input::Whole { bytes, at, ahead } => {
                if *at >= *ahead {
                    *ahead = bytes.map_ahead(*at);
                }
                let bytes = bytes.bytes();
                prefetch(bytes, *at + PREFETCHED);
                let data_at = *at - record_len + data_at;
                &bytes[data_at..data_at + data_len]
            }
            Input::Stream(stream) => {
                let data_at = stream.start - record_len + data_at;
                &stream.buffer[data_at..data_at + data_len]
            }
        }
    }

    /// Gets at least `needed` bytes together; false if the input ends before.
    pub(super) fn fill(&mut self, needed: usize) -> io::Result<bool> {
        match self {
            Input::Whole { .. } => Ok(self.bytes().len() >= needed),
            Input::Stream(stream) => stream.fill(needed),
        }
    }

    pub(super) fn position(&self) -> u64 {
        match self {
            Input::Whole { at, .. } => *at as u64,
            Input::Stream(stream) => stream.consumed,
        }
    }

    pub(super) fn len(&self) -> Option<u64> {
        match self {
            Input::Whole { bytes, .. } => Some(bytes.bytes().len() as u64),
            Input::Stream(_) => None,
        }
    }
}

impl Stream {
    fn fill(&mut self, needed: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < needed {
            self.buffer.resize(needed.next_multiple_of(CHUNK), 0);
        }
        // One read is enough once there is what was asked for: a live pipe is not kept waiting for more.
        while self.end < needed {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(len) => self.end += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Asks for the lines of memory that a record at `at` may begin with, if they are not cached yet.
///
/// Processors fetch ahead of who walks through memory, but only up to the end of a page. A record's place is known
/// only when the one before has been read.
#[inline]
fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(ahead) = bytes.get(at..at + 3 * CACHE_LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in ahead.chunks_exact(CACHE_LINE) {
            // SAFETY: a hint, for an address within `bytes`; it reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
    }
}

fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP) || bytes.starts_with(&ZSTD)
}

#[cfg(feature = "zstd")]
fn unzstd(source: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(zstd::stream::read::Decoder::new(source)?))
}

#[cfg(not(feature = "zstd"))]
fn unzstd(_: impl Read) -> io::Result<Box<dyn Read + Send>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "it is compressed with zstd, which this program cannot read",
    ))
}
