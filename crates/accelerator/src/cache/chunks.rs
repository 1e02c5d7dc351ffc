//! The chunked transfer coding, taken apart as it comes (RFC 9112, section 7.1).

use std::io;

/// Maximum bytes of a line between chunks.
const MAX_LINE: usize = 4096;

/// How far a message in chunks has come.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    state: State,
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// A line with the size of the next chunk.
    #[default]
    Size,
    /// So many bytes of data are left.
    Data(u64),
    /// The end of the line after them.
    AfterData,
    /// Fields after the last chunk.
    Trailer,
    Ended,
}

impl Chunks {
    /// Takes what belongs to the message, and adds its data to `data`; returns how many bytes that was.
    pub(crate) fn take(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> io::Result<usize> {
        let mut at = 0;
        while at < bytes.len() && !self.ended() {
            if let State::Data(left) = self.state {
                let length = left.min((bytes.len() - at) as u64);
                data.extend_from_slice(&bytes[at..at + length as usize]);
                at += length as usize;
                self.state = if length == left { State::AfterData } else { State::Data(left - length) };
                continue;
            }
            self.line.push(bytes[at]);
            at += 1;
            if self.line.last() == Some(&b'\n') {
                self.line_ended()?;
                self.line.clear();
            } else if self.line.len() > MAX_LINE {
                return Err(malformed());
            }
        }
        Ok(at)
    }

    /// Whether the message is complete.
    pub(crate) fn ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    fn line_ended(&mut self) -> io::Result<()> {
        let line = std::str::from_utf8(&self.line).map_err(|_| malformed())?.trim();
        self.state = match self.state {
            State::Size => {
                let digits = line.split(';').next().unwrap_or("").trim();
                let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let size = u64::from_str_radix(digits, 16).ok().filter(|_| are_digits);
                match size.ok_or_else(malformed)? {
                    0 => State::Trailer,
                    size => State::Data(size),
                }
            }
            State::AfterData if line.is_empty() => State::Size,
            State::Trailer if line.is_empty() => State::Ended,
            State::Trailer => State::Trailer,
            _ => return Err(malformed()),
        };
        Ok(())
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed chunk")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"4;x=y\r\nWiki\r\n00B\r\npedia in \r\n\r\n0\r\nX: 1\r\n\r\n";

    #[test]
    fn however_it_is_cut_the_data_is_the_same() {
        for cut in 0..=MESSAGE.len() {
            let (mut chunks, mut data) = (Chunks::default(), Vec::new());
            let first = chunks.take(&MESSAGE[..cut], &mut data).expect("sound");
            assert_eq!(first, cut);
            let mut rest = MESSAGE[cut..].to_vec();
            rest.extend_from_slice(b"HTTP/1.1");
            assert_eq!(chunks.take(&rest, &mut data).expect("sound"), MESSAGE.len() - cut);
            assert!(chunks.ended());
            assert_eq!(data, b"Wikipedia in \r\n");
        }
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for wrong in ["x\r\n", "\r\n", "-1\r\n", "+1\r\n", "1\r\nabc\r\n", "11111111111111111\r\n"] {
            assert!(Chunks::default().take(wrong.as_bytes(), &mut Vec::new()).is_err(), "{wrong:?}");
        }
        assert!(Chunks::default().take(&[b'0'; MAX_LINE + 1], &mut Vec::new()).is_err());
    }
}
