//! The handshake of client and server before the first message.
//!
//! All numbers are in network byte order. The client begins with a greeting:
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | magic, `tcplab-e` |
//! | 2 | version of this protocol |
//! | 2 | flags: 1 the server switches Nagle's algorithm off, 2 it polls instead of sleeping |
//! | 4 | number of this client, from 0 |
//! | 4 | clients altogether |
//! | 8 | messages of each size |
//! | 8 | minimum time from one message to the next, ns |
//! | 16 | congestion control of the server's end, padded with zeros; empty: the server's default |
//! | 2 | number of sizes |
//! | 4 each | the sizes in order, bytes |
//!
//! The server answers with the magic, its version (2), a verdict (1: 0 ok, 1 rejected), and flags (1: as above, what
//! it does). The length of a text (2) and the text, UTF-8, follow. The text says why it rejects, or what differs from what
//! was asked.
//! Magic and version of a greeting, and the whole of an answer, have this shape in every version.
//!
//! After an ok, for each size in order, the server sends back each message it has received in full.

/// Version of the protocol. It changes whenever the greeting or what follows it does.
pub const VERSION: u16 = 1;
/// Maximum number of sizes of one greeting.
pub const MAX_SIZES: usize = 1024;

const MAGIC: [u8; 8] = *b"tcplab-e";
const PREFIX: usize = 10;
const FIXED: usize = 54;
const CONTROL: usize = 16;
const NODELAY: u16 = 1;
const BUSY_POLL: u16 = 2;
const ANSWER_HEAD: usize = 14;

/// Longest greeting, bytes.
#[cfg(test)]
pub const LONGEST_GREETING: usize = FIXED + 4 * MAX_SIZES;

/// A client's request to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    /// Nagle's algorithm is off at the server's end too.
    pub nodelay: bool,
    /// The server polls instead of sleeping.
    pub busy_poll: bool,
    /// Number of this client, from 0.
    pub client: u32,
    /// Clients altogether.
    pub clients: u32,
    /// Messages of each size.
    pub iterations: u64,
    /// Minimum time from one message to the next, ns.
    pub interval: u64,
    /// Congestion control of the server's end; empty: its default.
    pub control: String,
    /// Bytes of a message, size after size.
    pub sizes: Vec<u32>,
}

/// Why bytes are not a greeting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum GreetingError {
    #[error("this is not a greeting of a tcplab echo client")]
    Foreign,
    #[error("the client speaks version {theirs} of the echo protocol, this server version {VERSION}")]
    Version { theirs: u16 },
    #[error("the greeting names {count} sizes; it takes 1 to {MAX_SIZES}")]
    Sizes { count: usize },
    #[error("a message of 0 bytes cannot be echoed")]
    Empty,
    #[error("0 messages of each size are nothing to echo")]
    NoIterations,
    #[error("the greeting's congestion control is not a name")]
    Control,
}

impl Greeting {
    /// The bytes on the wire. A control's name is cut to 15 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED + 4 * self.sizes.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_be_bytes());
        let flags = u16::from(self.nodelay) * NODELAY + u16::from(self.busy_poll) * BUSY_POLL;
        bytes.extend(flags.to_be_bytes());
        bytes.extend(self.client.to_be_bytes());
        bytes.extend(self.clients.to_be_bytes());
        bytes.extend(self.iterations.to_be_bytes());
        bytes.extend(self.interval.to_be_bytes());
        let mut control = [0; CONTROL];
        let name = self.control.as_bytes();
        let length = name.len().min(CONTROL - 1);
        control[..length].copy_from_slice(&name[..length]);
        bytes.extend(control);
        bytes.extend((self.sizes.len() as u16).to_be_bytes());
        for size in &self.sizes {
            bytes.extend(size.to_be_bytes());
        }
        bytes
    }

    /// How many bytes the greeting that begins with `bytes` has, as far as they show; a few kilobytes at most. What
    /// cannot become a greeting is refused with its first wrong byte.
    pub fn length(bytes: &[u8]) -> Result<usize, GreetingError> {
        let magic = bytes.len().min(MAGIC.len());
        if bytes[..magic] != MAGIC[..magic] {
            return Err(GreetingError::Foreign);
        }
        if bytes.len() < PREFIX {
            return Ok(PREFIX);
        }
        let version = u16_at(bytes, 8);
        if version != VERSION {
            return Err(GreetingError::Version { theirs: version });
        }
        if bytes.len() < FIXED {
            return Ok(FIXED);
        }
        let count = usize::from(u16_at(bytes, FIXED - 2));
        if !(1..=MAX_SIZES).contains(&count) {
            return Err(GreetingError::Sizes { count });
        }
        Ok(FIXED + 4 * count)
    }

    /// Reads a whole greeting.
    pub fn parse(bytes: &[u8]) -> Result<Greeting, GreetingError> {
        let length = Greeting::length(bytes)?;
        if bytes.len() != length || length < FIXED {
            return Err(GreetingError::Foreign);
        }
        let flags = u16_at(bytes, 10);
        let control = &bytes[36..36 + CONTROL];
        let end = control.iter().position(|byte| *byte == 0).unwrap_or(CONTROL);
        let control = str::from_utf8(&control[..end]).ok().filter(|name| is_name(name));
        let greeting = Greeting {
            nodelay: flags & NODELAY != 0,
            busy_poll: flags & BUSY_POLL != 0,
            client: u32_at(bytes, 12),
            clients: u32_at(bytes, 16),
            iterations: u64_at(bytes, 20),
            interval: u64_at(bytes, 28),
            control: control.ok_or(GreetingError::Control)?.to_owned(),
            sizes: (FIXED..length).step_by(4).map(|at| u32_at(bytes, at)).collect(),
        };
        if greeting.sizes.contains(&0) {
            return Err(GreetingError::Empty);
        }
        if greeting.iterations == 0 {
            return Err(GreetingError::NoIterations);
        }
        Ok(greeting)
    }

    /// Bytes of the longest message.
    pub fn longest(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The server's answer to a greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// It goes on.
    pub accepted: bool,
    /// The server polls instead of sleeping.
    pub busy_poll: bool,
    /// Why not, or what it does otherwise than asked.
    pub words: String,
    /// The server's version.
    pub version: u16,
}

impl Answer {
    /// An ok.
    pub fn ok(busy_poll: bool, words: String) -> Answer {
        Answer { accepted: true, busy_poll, words, version: VERSION }
    }

    /// A refusal.
    pub fn refusal(words: String) -> Answer {
        Answer { accepted: false, busy_poll: false, words, version: VERSION }
    }

    /// The bytes on the wire. Words are cut to 65,535 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut end = self.words.len().min(usize::from(u16::MAX));
        while !self.words.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = Vec::with_capacity(ANSWER_HEAD + end);
        bytes.extend(MAGIC);
        bytes.extend(self.version.to_be_bytes());
        bytes.push(u8::from(!self.accepted));
        bytes.push(if self.busy_poll { BUSY_POLL as u8 } else { 0 });
        bytes.extend((end as u16).to_be_bytes());
        bytes.extend(&self.words.as_bytes()[..end]);
        bytes
    }

    /// How many bytes the answer that begins with `bytes` has, as far as they show; none: it is not one.
    pub fn length(bytes: &[u8]) -> Option<usize> {
        let magic = bytes.len().min(MAGIC.len());
        if bytes[..magic] != MAGIC[..magic] {
            return None;
        }
        if bytes.len() < ANSWER_HEAD {
            return Some(ANSWER_HEAD);
        }
        Some(ANSWER_HEAD + usize::from(u16_at(bytes, ANSWER_HEAD - 2)))
    }

    /// Reads a whole answer.
    pub fn parse(bytes: &[u8]) -> Option<Answer> {
        if Answer::length(bytes)? != bytes.len() {
            return None;
        }
        Some(Answer {
            accepted: bytes[10] == 0,
            busy_poll: u16::from(bytes[11]) & BUSY_POLL != 0,
            words: String::from_utf8_lossy(&bytes[ANSWER_HEAD..]).into_owned(),
            version: u16_at(bytes, 8),
        })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> Greeting {
        Greeting {
            nodelay: true,
            busy_poll: false,
            client: 3,
            clients: 8,
            iterations: 50_000,
            interval: 7,
            control: "cubic".into(),
            sizes: vec![1, 65_536],
        }
    }

    #[test]
    fn a_greeting_is_read_as_it_was_written() {
        let bytes = example().encode();
        assert_eq!(Greeting::parse(&bytes), Ok(example()));
        for end in 0..bytes.len() {
            let needed = Greeting::length(&bytes[..end]).expect("so far it is one");
            assert!(needed > end && needed <= bytes.len());
        }
    }

    #[test]
    fn another_version_is_distinguished_from_garbage() {
        let mut bytes = example().encode();
        bytes[9] = 2;
        assert_eq!(Greeting::length(&bytes[..10]), Err(GreetingError::Version { theirs: 2 }));
        assert_eq!(Greeting::length(b"GET / HTTP/1.1"), Err(GreetingError::Foreign));
        assert_eq!(Greeting::length(b"tcplab!"), Err(GreetingError::Foreign));
    }

    #[test]
    fn what_cannot_be_echoed_is_refused() {
        let with = |change: fn(&mut Greeting)| {
            let mut greeting = example();
            change(&mut greeting);
            Greeting::parse(&greeting.encode())
        };
        assert_eq!(with(|g| g.sizes.clear()), Err(GreetingError::Sizes { count: 0 }));
        assert_eq!(with(|g| g.sizes = vec![1; 1025]), Err(GreetingError::Sizes { count: 1025 }));
        assert_eq!(with(|g| g.sizes.push(0)), Err(GreetingError::Empty));
        assert_eq!(with(|g| g.iterations = 0), Err(GreetingError::NoIterations));
        assert_eq!(with(|g| g.control = "a b".into()), Err(GreetingError::Control));
    }

    #[test]
    fn an_answer_of_a_later_version_can_be_read() {
        let answer = Answer { version: 9, ..Answer::refusal("too old: schade für dich".into()) };
        let bytes = answer.encode();
        assert_eq!(Answer::length(&bytes[..14]), Some(bytes.len()));
        assert_eq!(Answer::parse(&bytes), Some(answer));
        assert_eq!(Answer::length(b"HTTP/1.1"), None);
    }

    #[test]
    fn names_and_words_that_are_too_long_are_cut_and_still_read() {
        let long = Greeting { control: "a_name_of_17_char".into(), ..example() };
        let read = Greeting::parse(&long.encode()).expect("a greeting");
        // As the kernel's own names, which end with a zero in 16 bytes.
        assert_eq!(read.control, "a_name_of_17_ch");
        let words = Answer::parse(&Answer::refusal("ü".repeat(40_000)).encode()).expect("an answer").words;
        assert_eq!(words, "ü".repeat(65_534 / 2), "no character is cut in two");
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_readers(bytes in proptest::collection::vec(any::<u8>(), 0..200), ours: bool) {
            let mut bytes = bytes;
            if ours {
                for (byte, magic) in bytes.iter_mut().zip(MAGIC.iter().chain(&VERSION.to_be_bytes())) {
                    *byte = *magic;
                }
            }
            if let Ok(length) = Greeting::length(&bytes) {
                prop_assert!(length <= LONGEST_GREETING);
            }
            let _ = (Greeting::parse(&bytes), Answer::parse(&bytes));
        }
    }
}
