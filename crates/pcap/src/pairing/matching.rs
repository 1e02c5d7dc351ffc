//! Which packet of one capture is which of the other.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use tcplab_tables::Dictionary;

use super::clock::{Clock, Differences};
use super::parts::{Parts, Piece, Ranges, shifts};
use super::received::Received;
use super::{Capture, PairRow, PairedFlow, PairedHalf, Pairing, Pairs};
use crate::flow::{Analysis, Direction, Endpoint, Kind, Observer, Options, Seen};
use crate::parse::Protocol;
use crate::read::Reader;

/// The record of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    fingerprint: u64,
    pub time: i64,
    packet: u64,
    pub flow: u64,
    pub direction: Direction,
    pub seq: i64,
    pub len: u32,
    pub ack: Option<i64>,
    pub timestamp: Option<u32>,
    kind: Kind,
}

impl Observed {
    /// The sequence number behind it.
    pub fn end(&self) -> i64 {
        self.seq.saturating_add(i64::from(self.len))
    }
}

#[derive(Debug, Default)]
struct Collector(Vec<Observed>);

impl Observer for Collector {
    fn seen(&mut self, seen: &Seen<'_>) {
        let segment = seen.segment;
        if segment.protocol != Protocol::Tcp {
            return;
        }
        let mut hasher = DefaultHasher::new();
        (segment.source, segment.destination, segment.source_port, segment.destination_port)
            .hash(&mut hasher);
        (segment.seq, segment.ack, segment.flags, segment.window, segment.payload_len).hash(&mut hasher);
        let options = &segment.options;
        (segment.identification, options.timestamp, options.timestamp_echo).hash(&mut hasher);
        for block in options.sack() {
            (block.left, block.right).hash(&mut hasher);
        }
        self.0.push(Observed {
            fingerprint: hasher.finish(),
            time: seen.time,
            packet: seen.packet,
            flow: seen.flow,
            direction: seen.direction,
            seq: seen.seq,
            len: segment.sequence_len(),
            ack: seen.ack,
            timestamp: options.has_timestamps.then_some(options.timestamp),
            kind: seen.kind,
        });
    }
}

pub(super) fn observe(reader: &mut Reader) -> Capture {
    let mut analysis = Analysis::with_observer(Options::default(), Collector::default());
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
    }
    let (mut flows, counts, collector) = analysis.finish();
    flows.retain(|flow| flow.tcp.is_some());
    let (first, last) = (counts.first.unwrap_or(0), counts.last.unwrap_or(0));
    Capture { observed: collector.0, flows, first, last }
}

/// For each packet of the first capture its counterpart in the second, and the other way round.
#[derive(Debug)]
pub(super) struct Matched {
    partners: [Vec<Option<u32>>; 2],
    /// For each flow of the first capture (by number) the flow of the second.
    flows: HashMap<u64, u64>,
    /// For each of these flows, who sends at the first capture's end.
    sent_at_first: HashMap<u64, Direction>,
    /// The packets that were cut or merged between the two.
    parts: Parts,
}

impl Matched {
    /// Matches two captures. Directions of the second become those of the first: one that begins within a connection
    /// may take the other side for its opener.
    pub fn of(first: &Capture, second: &mut Capture) -> Matched {
        let mut waiting: HashMap<u64, std::collections::VecDeque<u32>> = HashMap::new();
        for (index, observed) in (0..).zip(&first.observed) {
            waiting.entry(observed.fingerprint).or_default().push_back(index);
        }
        let mut partners = [vec![None; first.observed.len()], vec![None; second.observed.len()]];
        let mut flows = HashMap::new();
        let mut turned = HashSet::new();
        let mut medians: HashMap<u64, [Vec<i64>; 2]> = HashMap::new();
        for (index, observed) in (0..).zip(&second.observed) {
            let Some(partner) = waiting.get_mut(&observed.fingerprint).and_then(|queue| queue.pop_front())
            else {
                continue;
            };
            partners[0][partner as usize] = Some(index);
            partners[1][index as usize] = Some(partner);
            let sent = &first.observed[partner as usize];
            flows.entry(sent.flow).or_insert(observed.flow);
            if sent.direction != observed.direction {
                turned.insert(observed.flow);
            }
            let differences = &mut medians.entry(sent.flow).or_default()[sent.direction.index()];
            differences.push(observed.time.saturating_sub(sent.time));
        }
        for observed in &mut second.observed {
            if turned.contains(&observed.flow) {
                observed.direction = observed.direction.reverse();
            }
        }
        let second = &*second;
        let sent_at_first =
            medians.into_iter().map(|(flow, differences)| (flow, nearer(differences))).collect();
        let parts = Parts::of([first, second], &partners, &flows, &sent_at_first);
        Matched { partners, flows, sent_at_first, parts }
    }

    /// Time and clock difference of each matched packet.
    pub fn differences(&self, first: &Capture, second: &Capture) -> Differences {
        let mut differences = Differences::default();
        for (there, partner) in first.observed.iter().zip(&self.partners[0]) {
            let Some(partner) = partner else { continue };
            let point = (there.time, second.observed[*partner as usize].time.saturating_sub(there.time));
            if self.sent_at_first.get(&there.flow) == Some(&there.direction) {
                differences.from_first.push(point);
            } else {
                differences.from_second.push(point);
            }
        }
        for (sent, came) in self.parts.pairs(0) {
            let (there, here) = (first.observed[sent].time, second.observed[came].time);
            differences.from_first.push((there, here.saturating_sub(there)));
        }
        for (sent, came) in self.parts.pairs(1) {
            let (there, here) = (first.observed[came].time, second.observed[sent].time);
            differences.from_second.push((there, here.saturating_sub(there)));
        }
        differences
    }

    fn longest_delay(&self, first: &Capture, second: &Capture, clock: Clock) -> i64 {
        let differences = self.differences(first, second);
        let forward =
            differences.from_first.iter().map(|&(time, more)| more.saturating_sub(clock.ahead(time)));
        let reverse =
            differences.from_second.iter().map(|&(time, more)| clock.ahead(time).saturating_sub(more));
        forward.chain(reverse).max().unwrap_or(0).max(0)
    }

    pub fn report(&self, first: &Capture, second: &Capture, clock: Clock) -> Pairing {
        let mut dictionary = Dictionary::default();
        let mut pairs = Pairs::default();
        let mut halves: HashMap<u64, [PairedHalf; 2]> = HashMap::new();
        // By the first clock: while both captures ran. Packets sent later than the longest delay before the
        // end may have been on their way.
        let longest = self.longest_delay(first, second, clock);
        let begin = first.first.max(clock.by_first(second.first));
        let end = first.last.min(clock.by_first(second.last));
        let comparable = begin..=end.saturating_sub(longest);
        // Arrivals sooner than that after the beginning may have left before it.
        let left_within = begin.saturating_add(longest)..=end;
        let number_at_first: HashMap<u64, u64> = self.flows.iter().map(|(&a, &b)| (b, a)).collect();
        for (which, capture) in [first, second].into_iter().enumerate() {
            let other = if which == 0 { second } else { first };
            let mut arrived_before: HashMap<u64, Ranges> = HashMap::new();
            let received = self.received(which, [first, second]);
            let last_sent = last_sent(capture);
            for (index, (observed, partner)) in capture.observed.iter().zip(&self.partners[which]).enumerate()
            {
                let number = if which == 0 {
                    Some(observed.flow)
                } else {
                    number_at_first.get(&observed.flow).copied()
                };
                let Some((number, &sent_at_first)) =
                    number.and_then(|number| Some((number, self.sent_at_first.get(&number)?)))
                else {
                    continue;
                };
                let half = &mut halves.entry(number).or_default()[observed.direction.index()];
                let is_sender = (observed.direction == sent_at_first) == (which == 0);
                let time = if which == 0 { observed.time } else { clock.by_first(observed.time) };
                if !is_sender {
                    let known = partner.is_some() || self.parts.came(which, index);
                    half.unsent += u64::from(!known && left_within.contains(&time));
                    continue;
                }
                let whole = Piece { range: [observed.seq, observed.end()], partner: *partner };
                let cut = partner.is_none().then(|| self.parts.sent(which, index)).flatten();
                let each = first.segment_len(number, observed.direction);
                let lost;
                let pieces = match cut {
                    Some(cut) => cut,
                    None if partner.is_none() => {
                        lost = super::parts::segments(whole, each);
                        &lost
                    }
                    None => std::slice::from_ref(&whole),
                };
                let again = matches!(observed.kind, Kind::Retransmission(_));
                let before = arrived_before.entry(number).or_default();
                for piece in pieces {
                    let partner = piece.partner.map(|partner| &other.observed[partner as usize]);
                    if partner.is_none() && !comparable.contains(&time) {
                        continue;
                    }
                    let delay = partner.map(|partner| {
                        let there = if which == 0 { clock.by_first(partner.time) } else { partner.time };
                        there.saturating_sub(time)
                    });
                    let count = piece.count(each);
                    // Of several copies it was the last: the sender took the others for lost.
                    let last = last_sent.get(&(observed.flow, observed.direction, piece.range[0]));
                    let missed = partner.is_none()
                        && observed.len > 0
                        && last.is_none_or(|&place| place <= index)
                        && received.missed(number, observed.direction, piece.range);
                    half.sent += count;
                    if let Some(delay) = delay {
                        half.arrived += count;
                        half.delay.record(delay);
                    } else if missed {
                        half.missed += count;
                    } else if observed.len > 0 {
                        half.lost += count;
                    } else {
                        half.lost_acks += 1;
                    }
                    if observed.len > 0 && again {
                        half.retransmissions += count;
                        half.needless += if before.contain(piece.range) { count } else { 0 };
                    }
                    if missed {
                        continue;
                    }
                    pairs.push(PairRow {
                        time,
                        packet: observed.packet,
                        arrived: partner.map(|partner| partner.packet),
                        flow: number,
                        forward: observed.direction == Direction::Forward,
                        seq: piece.range[0],
                        len: piece.len(),
                        kind: dictionary.symbol(observed.kind.name()),
                        delay,
                    });
                }
                for piece in pieces.iter().filter(|piece| piece.partner.is_some()) {
                    before.insert(piece.range);
                }
            }
        }
        let flows: Vec<PairedFlow> = first
            .flows
            .iter()
            .filter_map(|flow| self.flow(flow.number, flow.endpoints, &mut halves))
            .collect();
        let unpaired = [first.flows.len() - flows.len(), second.flows.len().saturating_sub(flows.len())];
        Pairing { flows, clock, pairs, dictionary, unpaired: unpaired.map(|count| count as u64) }
    }

    /// Data sent at the end of capture `which`, as the other capture shows them.
    fn received(&self, which: usize, captures: [&Capture; 2]) -> Received {
        let shifts = shifts(captures, &self.partners);
        let number_at_first: HashMap<u64, u64> = self.flows.iter().map(|(&a, &b)| (b, a)).collect();
        let mut received = Received::default();
        for observed in &captures[1 - which].observed {
            let number =
                if which == 0 { number_at_first.get(&observed.flow).copied() } else { Some(observed.flow) };
            let Some((number, &at_first)) =
                number.and_then(|number| Some((number, self.sent_at_first.get(&number)?)))
            else {
                continue;
            };
            let data = if which == 0 { at_first } else { at_first.reverse() };
            // Numbers of the first capture are greater by the shift than those of the second.
            let shift = shifts.get(&(number, data)).copied().unwrap_or(0);
            received.take(number, data, observed, if which == 0 { shift } else { shift.saturating_neg() });
        }
        received
    }

    fn flow(
        &self,
        number: u64,
        endpoints: [Endpoint; 2],
        halves: &mut HashMap<u64, [PairedHalf; 2]>,
    ) -> Option<PairedFlow> {
        Some(PairedFlow {
            numbers: [number, *self.flows.get(&number)?],
            endpoints,
            sent_at_first: *self.sent_at_first.get(&number)?,
            halves: halves.remove(&number)?,
        })
    }
}

/// The last packet of each that begin with the same number: its place in the capture.
fn last_sent(capture: &Capture) -> HashMap<(u64, Direction, i64), usize> {
    let data = capture.observed.iter().enumerate().filter(|(_, observed)| observed.len > 0);
    data.map(|(place, observed)| ((observed.flow, observed.direction, observed.seq), place)).collect()
}

/// Which direction is sent where the first capture was taken: packets of it show the delay added to the clocks'
/// difference, those of the other show it subtracted. Of one direction alone it is the opener's.
fn nearer(mut differences: [Vec<i64>; 2]) -> Direction {
    let mut median = |index: usize| {
        let values = &mut differences[index];
        let middle = values.len() / 2;
        (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
    };
    match (median(0), median(1)) {
        (Some(forward), Some(backward)) if backward > forward => Direction::Backward,
        _ => Direction::Forward,
    }
}
