//! A flow of few packets, kept as these packets: a datagram and its answer, an unanswered SYN.
//!
//! Most flows of a flood, a scan or a busy name server never get further, and what the analysis keeps of a connection
//! takes ten times as much. When more comes, the packets are analyzed as if they had been from the beginning.

use super::fragments::Parts;
use super::grown::Grown;
use super::key::Key;
use crate::parse::{Protocol, Segment, TcpOptions, flag};

/// Beyond, a flow is analyzed: its packets would take as much memory.
const MAX_PACKETS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Young {
    /// Apart from the others, so that one packet takes no allocation.
    first: Option<Brief>,
    more: Vec<Brief>,
}

/// The fields of a segment that the analysis looks at, without those that are the flow's.
#[derive(Clone, Copy, Debug)]
struct Brief {
    time: i64,
    frame_len: u32,
    ip_len: u32,
    payload_len: u32,
    seq: u32,
    ack: u32,
    timestamp: u32,
    timestamp_echo: u32,
    window: u16,
    identification: u16,
    mss: u16,
    flags: u8,
    window_scale: Option<u8>,
    /// See the constants below; the two lowest are ECN's.
    bits: u8,
}

const ECN: u8 = 0x03;
const SWAPPED: u8 = 0x04;
const DONT_FRAGMENT: u8 = 0x08;
const TIMESTAMPS: u8 = 0x10;
const SACK_PERMITTED: u8 = 0x20;
const AE: u8 = 0x40;

impl Brief {
    fn of(swapped: bool, segment: &Segment, time: i64) -> Brief {
        let options = &segment.options;
        let bit = |bit: u8, set: bool| if set { bit } else { 0 };
        Brief {
            time,
            frame_len: segment.frame_len,
            ip_len: segment.ip_len,
            payload_len: segment.payload_len,
            seq: segment.seq,
            ack: segment.ack,
            timestamp: options.timestamp,
            timestamp_echo: options.timestamp_echo,
            window: segment.window,
            identification: segment.identification,
            mss: options.mss,
            flags: segment.flags,
            window_scale: options.window_scale,
            bits: (segment.ecn & ECN)
                | bit(SWAPPED, swapped)
                | bit(DONT_FRAGMENT, segment.dont_fragment)
                | bit(TIMESTAMPS, options.has_timestamps)
                | bit(SACK_PERMITTED, options.sack_permitted)
                | bit(AE, segment.ae),
        }
    }

    fn has(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    fn swapped(&self) -> bool {
        self.has(SWAPPED)
    }

    fn segment(&self, key: &Key) -> Segment {
        let [low, high] = key.endpoints();
        let (source, destination) = if self.swapped() { (high, low) } else { (low, high) };
        Segment {
            source: source.address,
            destination: destination.address,
            source_port: source.port,
            destination_port: destination.port,
            protocol: key.protocol(),
            ecn: self.bits & ECN,
            dont_fragment: self.has(DONT_FRAGMENT),
            identification: self.identification,
            frame_len: self.frame_len,
            ip_len: self.ip_len,
            payload_len: self.payload_len,
            flags: self.flags,
            ae: self.has(AE),
            window: self.window,
            seq: self.seq,
            ack: self.ack,
            options: TcpOptions {
                mss: self.mss,
                window_scale: self.window_scale,
                sack_permitted: self.has(SACK_PERMITTED),
                has_timestamps: self.has(TIMESTAMPS),
                timestamp: self.timestamp,
                timestamp_echo: self.timestamp_echo,
                ..TcpOptions::default()
            },
            ..Segment::default()
        }
    }
}

impl Young {
    fn packets(&self) -> impl Iterator<Item = &Brief> {
        self.first.iter().chain(&self.more)
    }

    /// Keeps a packet; false if there are too many, or if only the analysis can decide its meaning.
    #[inline]
    pub fn takes(&mut self, key: &Key, swapped: bool, segment: &Segment, time: i64) -> bool {
        if self.more.len() + 1 >= MAX_PACKETS || !self.is_simple(key, swapped, segment) {
            return false;
        }
        let brief = Brief::of(swapped, segment, time);
        match self.first {
            None => self.first = Some(brief),
            Some(_) => {
                if self.more.len() == self.more.capacity() {
                    self.more.reserve_exact(1 + self.more.len());
                }
                self.more.push(brief);
            }
        }
        true
    }

    /// Whether a segment fits into a brief, and can neither close the connection by an exchange nor begin another.
    #[inline]
    fn is_simple(&self, key: &Key, swapped: bool, segment: &Segment) -> bool {
        if segment.protocol == Protocol::Udp {
            return true;
        }
        if segment.has(flag::FIN) || !segment.options.sack().is_empty() || self.closed_at(key).is_some() {
            return false;
        }
        if !segment.has(flag::SYN) || self.first.is_none() {
            return true;
        }
        // A SYN after others: the first of its side, where the other has said one thing, or that one again.
        let mut same = self.packets().filter(|brief| brief.swapped() == swapped);
        match same.next() {
            None => self.more.is_empty(),
            Some(first) => first.flags & flag::SYN != 0 && first.seq == segment.seq,
        }
    }

    /// When an RST closed it. Flows closed otherwise are analyzed.
    #[inline]
    pub fn closed_at(&self, key: &Key) -> Option<i64> {
        let last = self.more.last().or(self.first.as_ref())?;
        if last.flags & flag::RST == 0 { None } else { self.closed_by(last, key) }
    }

    /// When the last packet closed it, an RST: at once if it refuses a SYN, else unless it is outside the window.
    #[cold]
    fn closed_by(&self, last: &Brief, key: &Key) -> Option<i64> {
        match (&self.first, &self.more[..]) {
            (Some(first), [_]) if first.flags & flag::ACK == 0 && first.swapped() != last.swapped() => {
                Some(last.time)
            }
            _ => self.grow(key).closed_at(),
        }
    }

    /// The time of its latest packet.
    pub fn last(&self) -> i64 {
        self.packets().map(|brief| brief.time).max().unwrap_or(i64::MIN)
    }

    /// The flow as the analysis of its packets leaves it.
    pub fn grow(&self, key: &Key) -> Grown {
        let mut grown = Grown::new(key.protocol());
        for brief in self.packets() {
            let segment = brief.segment(key);
            grown.packet(brief.swapped(), &segment, brief.time, Parts::one(&segment));
        }
        grown
    }
}
