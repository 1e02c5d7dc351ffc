//! IP fragments put together again, by length: a segment counts when its last fragment has come.

use crate::parse::{Address, Fragment, Protocol, Segment};

/// Datagrams put together at a time; what is older is given up, as a host would (RFC 791 section 3.2).
const MAX_DATAGRAMS: usize = 256;
/// A datagram of 65,535 bytes in fragments of 576-byte packets has 119.
const MAX_FRAGMENTS: u32 = 256;
/// How long a host waits for a datagram's other fragments (Linux's `ipfrag_time`; ns). Later ones with the same
/// identification are of another datagram: the 65,536 of IPv4 come round.
const PATIENCE: i64 = 30_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// In the order of their first fragments.
    datagrams: Vec<Datagram>,
    /// Fragments given up.
    pub given_up: u64,
}

#[derive(Debug)]
struct Datagram {
    id: Id,
    /// When the first of its fragments came (ns).
    begun: i64,
    /// The fragment with the transport header, if it has come.
    head: Option<Segment>,
    /// The payload bytes that have come, as ranges in their order with gaps between them.
    received: Vec<(u32, u32)>,
    fragments: u32,
    /// Payload bytes of the whole; known when the last has come.
    len: Option<u32>,
    ip_len: u32,
    largest_ip: u32,
    frame_len: u32,
}

/// The IP packets that a segment came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// How many.
    pub packets: u32,
    /// Length of the longest (bytes).
    pub largest_ip: u32,
}

impl Parts {
    /// One packet, whole.
    #[inline]
    pub fn one(segment: &Segment) -> Parts {
        Parts { packets: 1, largest_ip: segment.ip_len }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id {
    source: Address,
    destination: Address,
    protocol: Protocol,
    identification: u32,
    interface: u32,
}

/// A datagram whose fragments have all come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub segment: Segment,
    /// Its fragments.
    pub parts: Parts,
}

impl Fragments {
    /// Takes a fragment; the whole datagram if it was the last one missing.
    #[cold]
    pub fn add(
        &mut self,
        segment: &Segment,
        fragment: &Fragment,
        time: i64,
        interface: u32,
    ) -> Option<Whole> {
        let id = Id {
            source: segment.source,
            destination: segment.destination,
            protocol: segment.protocol,
            identification: fragment.identification,
            interface,
        };
        let index = match self.datagrams.iter().position(|datagram| datagram.id == id) {
            Some(index) if time.saturating_sub(self.datagrams[index].begun) > PATIENCE => {
                self.give_up(index);
                self.begin(id, time)
            }
            Some(index) => index,
            None => self.begin(id, time),
        };
        let datagram = &mut self.datagrams[index];
        datagram.fragments += 1;
        datagram.receive(fragment.offset, fragment.offset.saturating_add(fragment.len));
        datagram.ip_len = datagram.ip_len.saturating_add(segment.ip_len);
        datagram.largest_ip = datagram.largest_ip.max(segment.ip_len);
        datagram.frame_len = datagram.frame_len.saturating_add(segment.frame_len);
        if fragment.offset == 0 {
            datagram.head = Some(*segment);
        }
        if !fragment.more {
            datagram.len = Some(fragment.offset.saturating_add(fragment.len));
        }
        if let (Some(len), Some(head)) = (datagram.len, datagram.head)
            && datagram.received.first().is_some_and(|&(start, end)| start == 0 && end >= len)
        {
            let datagram = self.datagrams.remove(index);
            let header = u32::from(head.payload_at.saturating_sub(head.transport_at));
            let segment = Segment {
                payload_len: len.saturating_sub(header),
                ip_len: datagram.ip_len,
                frame_len: datagram.frame_len,
                ..head
            };
            let parts = Parts { packets: datagram.fragments, largest_ip: datagram.largest_ip };
            return Some(Whole { segment, parts });
        }
        if datagram.fragments >= MAX_FRAGMENTS {
            self.give_up(index);
        }
        None
    }

    fn begin(&mut self, id: Id, begun: i64) -> usize {
        if self.datagrams.len() >= MAX_DATAGRAMS {
            self.give_up(0);
        }
        self.datagrams.push(Datagram {
            id,
            begun,
            head: None,
            received: Vec::new(),
            fragments: 0,
            len: None,
            ip_len: 0,
            largest_ip: 0,
            frame_len: 0,
        });
        self.datagrams.len() - 1
    }

    fn give_up(&mut self, index: usize) {
        let datagram = self.datagrams.remove(index);
        self.given_up += u64::from(datagram.fragments);
    }

    /// Gives up what is still incomplete.
    pub fn finish(&mut self) -> u64 {
        while !self.datagrams.is_empty() {
            self.give_up(0);
        }
        self.given_up
    }
}

impl Datagram {
    /// Notes that the payload from `start` to `end` has come, be it again.
    fn receive(&mut self, mut start: u32, mut end: u32) {
        self.received.retain(|&(from, to)| {
            let apart = to < start || end < from;
            if !apart {
                (start, end) = (start.min(from), end.max(to));
            }
            apart
        });
        let place = self.received.partition_point(|&(from, _)| from < start);
        self.received.insert(place, (start, end));
    }
}
