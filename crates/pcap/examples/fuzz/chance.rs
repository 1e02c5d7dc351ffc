//! Random changes to files.

/// xorshift64.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed | 1)
    }

    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below.max(1)
    }

    /// One of the corpus with a few changes.
    pub fn mutant(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = corpus[self.next(corpus.len())].clone();
        for _ in 0..1 + self.next(6) {
            let at = self.next(bytes.len());
            match self.next(8) {
                0..3 if !bytes.is_empty() => bytes[at] = self.next(256) as u8,
                3 if !bytes.is_empty() => bytes[at] ^= 1 << self.next(8),
                4 => bytes.truncate(at),
                5 => {
                    // A whole word, of the kind that lengths are.
                    let words = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 12, 16, 0x0100_0000];
                    let word = words[self.next(words.len())];
                    let end = bytes.len().min(at + 4);
                    bytes[at.min(end)..end].copy_from_slice(&word.to_le_bytes()[..end - at.min(end)]);
                }
                6 => {
                    let end = (at + self.next(64)).min(bytes.len());
                    let piece = bytes[at.min(end)..end].to_vec();
                    let to = self.next(bytes.len());
                    bytes.splice(to..to, piece);
                }
                _ => {
                    let end = (at + self.next(64)).min(bytes.len());
                    bytes.drain(at.min(end)..end);
                }
            }
        }
        bytes
    }
}
