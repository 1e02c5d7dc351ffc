//! Where the bytes of a capture come from: a mapped file, memory, or a stream through a buffer.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

use memmap2::{Advice, Mmap};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much is read from a stream at once.
const CHUNK: usize = 1 << 18;

/// How much of a file is mapped ahead at once: fewer page faults, and readers of one file can take turns.
const AHEAD: usize = 2 << 20;

pub(super) enum Input {
    Whole { bytes: Arc<Whole>, at: usize, ahead: Ahead },
    Stream(Stream),
}

pub(super) enum Whole {
    Mapped(Mmap),
    Memory(Vec<u8>),
}

impl Whole {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Whole::Mapped(map) => map,
            Whole::Memory(bytes) => bytes,
        }
    }
}

/// What was mapped ahead of reading: of `of` readers of the same bytes, each maps every `of`th piece.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    until: usize,
    turn: usize,
    of: usize,
}

impl Ahead {
    const ALONE: Ahead = Ahead { until: 0, turn: 0, of: 1 };

    /// Maps the pieces behind `at` that are this reader's.
    #[cold]
    fn map(&mut self, bytes: &Whole, at: usize) {
        let piece = at / AHEAD;
        self.until = (piece + 1) * AHEAD;
        let Whole::Mapped(map) = bytes else {
            self.until = usize::MAX;
            return;
        };
        // Pieces are mapped one round ahead, so that the others' are there when this reader comes to them.
        for piece in if piece == 0 { 0..=self.of } else { piece + self.of..=piece + self.of } {
            let begin = piece * AHEAD;
            if piece % self.of == self.turn && begin < map.len() {
                // Advice: a kernel before 5.14 refuses it, and pages come one fault at a time.
                let _ = map.advise_range(Advice::PopulateRead, begin, AHEAD.min(map.len() - begin));
            }
        }
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
            // SAFETY: the mapping is read-only and private. Should another program cut the file while it is
            // mapped, the kernel ends this process by SIGBUS; a file that grows, as that of a running
            // capture does, keeps the length it had.
            let map = unsafe { Mmap::map(&file)? };
            if !is_compressed(&map) {
                // Advice that the kernel may ignore.
                let _ = map.advise(Advice::Sequential);
                return Ok(Input::Whole { bytes: Arc::new(Whole::Mapped(map)), at: 0, ahead: Ahead::ALONE });
            }
        }
        Input::from_stream(Box::new(file))
    }

    pub(super) fn from_bytes(bytes: Vec<u8>) -> io::Result<Input> {
        if is_compressed(&bytes) {
            return Input::from_stream(Box::new(Cursor::new(bytes)));
        }
        Ok(Input::Whole { bytes: Arc::new(Whole::Memory(bytes)), at: 0, ahead: Ahead::ALONE })
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
            Box::new(zstd::stream::read::Decoder::new(whole)?)
        } else {
            Box::new(whole)
        };
        Ok(Input::Stream(Stream { source, buffer: vec![0; CHUNK], start: 0, end: 0, consumed: 0 }))
    }

    /// The same bytes from their beginning, for the `turn`th of `of` readers; none of a stream.
    pub(super) fn again(&self, turn: usize, of: usize) -> Option<Input> {
        match self {
            Input::Whole { bytes, .. } => {
                let ahead = Ahead { until: 0, turn, of };
                Some(Input::Whole { bytes: Arc::clone(bytes), at: 0, ahead })
            }
            Input::Stream(_) => None,
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Input::Whole { .. })
    }

    /// What is there of what was not consumed.
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
                if *at >= ahead.until {
                    ahead.map(bytes, *at);
                }
                let data_at = *at - record_len + data_at;
                &bytes.bytes()[data_at..data_at + data_len]
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

fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP) || bytes.starts_with(&ZSTD)
}
