//! Segments that offloads cut or merged between the two captures: which part of what was sent is which packet that
//! came.
//!
//! A host that segments late (TSO, GSO) is captured with packets above the MTU, of which the other end sees the
//! segments, or those merged otherwise (GRO). Neither changes sequence numbers or timestamps, and only segments with
//! one timestamp are merged. So the part of a packet that came is looked for among what was sent with the same
//! timestamp, the earliest first. Without timestamps a retransmission can't always be distinguished from the original.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Capture;
use super::matching::Observed;
use crate::flow::Direction;

/// A range of the sequence numbers of a packet sent, and the packet of the other capture that brought it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// From the first to behind the last; counted as the sender's capture does.
    pub range: [i64; 2],
    /// Its place among what was observed there; none if it never came.
    pub partner: Option<u32>,
}

impl Piece {
    pub fn len(&self) -> u64 {
        self.range[1].abs_diff(self.range[0])
    }

    /// How many segments of at most `each` bytes it takes.
    pub fn count(&self, each: u32) -> u64 {
        self.len().div_ceil(u64::from(each.max(1))).max(1)
    }
}

/// A range cut into segments of at most `each` bytes.
pub(super) fn segments(whole: Piece, each: u32) -> Vec<Piece> {
    let [mut start, end] = whole.range;
    let mut cut = Vec::new();
    while end.saturating_sub(start) > i64::from(each) {
        let next = start.saturating_add(i64::from(each.max(1)));
        cut.push(Piece { range: [start, next], ..whole });
        start = next;
    }
    cut.push(Piece { range: [start, end], ..whole });
    cut
}

/// The data sent with one timestamp in one direction of a flow of the first capture.
type Sending = (u64, Direction, Option<u32>);

/// State shared by the packets without a counterpart.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// By sending capture and place: all of the packet, in order; lost parts in segments.
    sent: [HashMap<usize, Vec<Piece>>; 2],
    /// By receiving capture: the places of packets that brought part of one sent.
    came: [HashSet<usize>; 2],
}

impl Parts {
    /// `flows` and `sent_at_first` are by the flow's number in the first capture.
    pub fn of(
        captures: [&Capture; 2],
        partners: &[Vec<Option<u32>>; 2],
        flows: &HashMap<u64, u64>,
        sent_at_first: &HashMap<u64, Direction>,
    ) -> Parts {
        let shifts = shifts(captures, partners);
        let number_at_first: HashMap<u64, u64> =
            flows.iter().map(|(&first, &second)| (second, first)).collect();
        let number = |which: usize, observed: &Observed| match which {
            0 => flows.contains_key(&observed.flow).then_some(observed.flow),
            _ => number_at_first.get(&observed.flow).copied(),
        };
        let left = |which: usize| {
            let partners = &partners[which];
            let observed = captures[which].observed.iter().enumerate();
            observed.filter(move |(place, observed)| observed.len > 0 && partners[*place].is_none())
        };
        let mut parts = Parts::default();
        for which in 0..2 {
            let is_sender = |number: u64, direction: Direction| {
                sent_at_first.get(&number).is_some_and(|&first| (first == direction) == (which == 0))
            };
            let mut sendings: HashMap<Sending, Vec<usize>> = HashMap::new();
            for (place, observed) in left(which) {
                let Some(number) = number(which, observed) else { continue };
                if is_sender(number, observed.direction) {
                    let sending = (number, observed.direction, observed.timestamp);
                    sendings.entry(sending).or_default().push(place);
                }
            }
            let sent = &captures[which].observed;
            let sendings: HashMap<Sending, Ordered> =
                sendings.into_iter().map(|(key, places)| (key, Ordered::of(places, sent))).collect();
            let mut brought: HashMap<usize, Vec<Piece>> = HashMap::new();
            for (place, observed) in left(1 - which) {
                let Some(number) = number(1 - which, observed) else { continue };
                let Some(ordered) = sendings.get(&(number, observed.direction, observed.timestamp)) else {
                    continue;
                };
                let Some(&shift) = shifts.get(&(number, observed.direction)) else { continue };
                // Numbers of the first capture are greater by the shift than those of the second.
                let shift = if which == 0 { shift } else { shift.saturating_neg() };
                let range = [observed.seq, observed.end()].map(|seq| seq.saturating_add(shift));
                let partner = Some(place as u32);
                if bring(range, partner, ordered, sent, &mut brought) {
                    parts.came[1 - which].insert(place);
                }
            }
            parts.sent[which] = brought
                .into_iter()
                .map(|(place, pieces)| {
                    let observed = &sent[place];
                    let number = number(which, observed).unwrap_or(observed.flow);
                    let each = captures[0].segment_len(number, observed.direction);
                    (place, complete(observed, pieces, each))
                })
                .collect();
        }
        parts
    }

    /// All of a packet that was sent, if any of it came in another form.
    pub fn sent(&self, which: usize, place: usize) -> Option<&[Piece]> {
        self.sent[which].get(&place).map(Vec::as_slice)
    }

    /// Whether a packet brought something of what was sent in another form.
    pub fn came(&self, which: usize, place: usize) -> bool {
        self.came[which].contains(&place)
    }

    /// Places of what was sent at the end of capture `which`, and of what brought part of it.
    pub fn pairs(&self, which: usize) -> impl Iterator<Item = (usize, usize)> {
        self.sent[which].iter().flat_map(|(&place, pieces)| {
            pieces.iter().filter_map(move |piece| Some((place, piece.partner? as usize)))
        })
    }
}

/// How much greater the first capture's sequence numbers are than the second's: other than 0 where one of them did
/// not see the connection begin.
pub(super) fn shifts(
    captures: [&Capture; 2],
    partners: &[Vec<Option<u32>>; 2],
) -> HashMap<(u64, Direction), i64> {
    let mut shifts = HashMap::new();
    for (observed, partner) in captures[0].observed.iter().zip(&partners[0]) {
        let Some(partner) = partner.and_then(|place| captures[1].observed.get(place as usize)) else {
            continue;
        };
        let shift = observed.seq.saturating_sub(partner.seq);
        shifts.entry((observed.flow, observed.direction)).or_insert(shift);
    }
    shifts
}

/// Places of packets by their sequence numbers.
#[derive(Debug)]
struct Ordered {
    places: Vec<usize>,
    longest: i64,
}

impl Ordered {
    fn of(mut places: Vec<usize>, sent: &[Observed]) -> Ordered {
        places.sort_by_key(|&place| sent[place].seq);
        let longest = places.iter().map(|&place| i64::from(sent[place].len)).max().unwrap_or(0);
        Ordered { places, longest }
    }

    /// Those that overlap a range, the earliest sent first.
    fn overlapping(&self, [start, end]: [i64; 2], sent: &[Observed]) -> Vec<usize> {
        let behind = self.places.partition_point(|&place| sent[place].seq < end);
        let mut found: Vec<usize> = self.places[..behind]
            .iter()
            .rev()
            .take_while(|&&place| sent[place].seq.saturating_add(self.longest) > start)
            .copied()
            .filter(|&place| sent[place].end() > start)
            .collect();
        found.sort_unstable();
        found
    }
}

/// Notes what a packet that came brought of those sent; false if nothing.
fn bring(
    range: [i64; 2],
    partner: Option<u32>,
    ordered: &Ordered,
    sent: &[Observed],
    brought: &mut HashMap<usize, Vec<Piece>>,
) -> bool {
    let mut missing = vec![range];
    for place in ordered.overlapping(range, sent) {
        let pieces = brought.entry(place).or_default();
        let mut free = vec![[sent[place].seq, sent[place].end()]];
        for piece in pieces.iter() {
            free = free.into_iter().flat_map(|range| without(range, piece.range)).collect();
        }
        for free in free {
            let new: Vec<[i64; 2]> = missing.iter().filter_map(|&range| common(range, free)).collect();
            for range in new {
                pieces.push(Piece { range, partner });
                missing = missing.into_iter().flat_map(|left| without(left, range)).collect();
            }
        }
        if missing.is_empty() {
            break;
        }
    }
    missing != [range]
}

/// The pieces of a packet in order, with what never came between them.
fn complete(observed: &Observed, mut brought: Vec<Piece>, each: u32) -> Vec<Piece> {
    brought.sort_by_key(|piece| piece.range[0]);
    let mut all = Vec::with_capacity(brought.len());
    let mut next = observed.seq;
    let gap = |from: i64, to: i64| {
        let whole = Piece { range: [from, to], partner: None };
        if to > from { segments(whole, each) } else { Vec::new() }
    };
    for piece in brought {
        all.extend(gap(next, piece.range[0]));
        next = piece.range[1];
        all.push(piece);
    }
    all.extend(gap(next, observed.end()));
    all
}

fn common(a: [i64; 2], b: [i64; 2]) -> Option<[i64; 2]> {
    let range = [a[0].max(b[0]), a[1].min(b[1])];
    (range[0] < range[1]).then_some(range)
}

/// The parts of `a` before and behind `b`.
fn without(a: [i64; 2], b: [i64; 2]) -> impl Iterator<Item = [i64; 2]> {
    let before = [a[0], a[1].min(b[0])];
    let behind = [a[0].max(b[1]), a[1]];
    [before, behind].into_iter().filter(|range| range[0] < range[1])
}

/// Ranges of sequence numbers, those that touch joined.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<i64, i64>);

impl Ranges {
    pub fn insert(&mut self, [mut start, mut end]: [i64; 2]) {
        while let Some((&before, &until)) = self.0.range(..=end).next_back()
            && until >= start
        {
            self.0.remove(&before);
            start = start.min(before);
            end = end.max(until);
        }
        self.0.insert(start, end);
    }

    /// Whether all of a range is in them.
    pub fn contain(&self, [start, end]: [i64; 2]) -> bool {
        self.0.range(..=start).next_back().is_some_and(|(_, &until)| until >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_joined() {
        let mut ranges = Ranges::default();
        for range in [[0, 10], [20, 30], [10, 15], [40, 50], [28, 45]] {
            ranges.insert(range);
        }
        assert_eq!(ranges.0.into_iter().collect::<Vec<_>>(), [(0, 15), (20, 50)]);
    }

    #[test]
    fn a_range_is_contained_by_one_of_them_alone() {
        let mut ranges = Ranges::default();
        ranges.insert([0, 10]);
        ranges.insert([11, 20]);
        assert!(ranges.contain([0, 10]) && ranges.contain([12, 20]));
        assert!(!ranges.contain([9, 12]) && !ranges.contain([20, 21]));
    }

    #[test]
    fn a_range_is_cut_into_segments_from_its_beginning() {
        let whole = Piece { range: [5, 3005], partner: None };
        let lens: Vec<u64> = segments(whole, 1448).iter().map(Piece::len).collect();
        assert_eq!(lens, [1448, 1448, 104]);
        assert_eq!((segments(whole, u32::MAX).len(), whole.count(1448), whole.count(u32::MAX)), (1, 3, 1));
    }

    #[test]
    fn what_lies_outside_another_range_is_left() {
        let left = |a, b| without(a, b).collect::<Vec<_>>();
        assert_eq!(left([0, 10], [3, 5]), [[0, 3], [5, 10]]);
        assert_eq!(left([0, 10], [0, 10]), [[0; 2]; 0]);
        assert_eq!(left([0, 10], [20, 30]), [[0, 10]]);
        assert_eq!(left([0, 10], [5, 30]), [[0, 5]]);
    }
}
