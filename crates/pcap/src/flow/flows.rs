//! The flows of a capture, small until they are looked at.

use super::live::Flow;
use super::summary::FlowSummary;

/// The flows of a capture, in the order of their first packets.
///
/// A flow of few packets takes about 200 bytes here, and its summary about 2,000: they are made when asked for.
#[derive(Debug, Default)]
pub struct Flows {
    /// As each analysis ended them.
    parts: Vec<Vec<Flow>>,
    /// Part, and place in it.
    order: Vec<[u32; 2]>,
}

impl Flows {
    pub(super) fn of(flows: Vec<Flow>) -> Flows {
        Flows { order: (0..flows.len() as u32).map(|place| [0, place]).collect(), parts: vec![flows] }
    }

    /// The flows of several analyses of one capture, numbered anew.
    pub(crate) fn together(shares: Vec<Flows>) -> Flows {
        let mut parts: Vec<_> = shares.into_iter().flat_map(|flows| flows.parts).collect();
        let mut order: Vec<(u64, [u32; 2])> = Vec::with_capacity(parts.iter().map(Vec::len).sum());
        for (part, flows) in (0..).zip(&parts) {
            order.extend((0..).zip(flows).map(|(place, flow)| (flow.first_packet, [part, place])));
        }
        order.sort_unstable();
        for (number, &(_, [part, place])) in (1..).zip(&order) {
            parts[part as usize][place as usize].number = number;
        }
        Flows { parts, order: order.into_iter().map(|(_, place)| place).collect() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The summary of the flow at a place, from 0; none beyond the last.
    pub fn get(&self, place: usize) -> Option<FlowSummary> {
        self.order.get(place).map(|&[part, place]| self.parts[part as usize][place as usize].summary())
    }

    /// The place of the flow with a number; none if it is not there.
    pub fn place_of(&self, number: u64) -> Option<usize> {
        let number_at = |&[part, place]: &[u32; 2]| self.parts[part as usize][place as usize].number;
        self.order.binary_search_by_key(&number, number_at).ok()
    }

    /// All of them, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = FlowSummary> + '_ {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// Leaves out the flows that are not `meant`.
    pub fn retain(&mut self, meant: impl Fn(&FlowSummary) -> bool) {
        let parts = &self.parts;
        self.order.retain(|&[part, place]| meant(&parts[part as usize][place as usize].summary()));
    }
}
