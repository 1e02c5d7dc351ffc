//! Strict priority by DSCP: as long as something waits in a band, no later one sends.

use tcplab_units::{Rate, Time};

use super::counting::{Counting, Counts};
use super::{Backlog, Cause, Class, Discipline, Gauge, Qdisc, Queued, Sink};
use crate::component_seed;
use crate::config::{self, Change};
use crate::packet::Packet;

/// Bands in order of priority.
#[derive(Clone, Debug)]
pub(crate) struct Prio<P> {
    bands: Vec<Band<P>>,
    /// The band of each codepoint.
    band_of: [u8; CODEPOINTS],
}

#[derive(Clone, Debug)]
struct Band<P> {
    queue: Discipline<P>,
    counts: Counts,
}

const CODEPOINTS: usize = 64;

impl<P: Packet> Prio<P> {
    pub(crate) fn new(config: &config::Prio, rate: Option<Rate>, seed: u64) -> Prio<P> {
        let bands: Vec<Band<P>> = config
            .bands
            .iter()
            .enumerate()
            .map(|(number, band)| {
                let seed = component_seed(seed, &number.to_string());
                Band { queue: Discipline::new(&band.queue, rate, seed), counts: Counts::default() }
            })
            .collect();
        let rest = config.bands.iter().position(|band| band.dscp.is_empty());
        let rest = rest.unwrap_or(bands.len().saturating_sub(1));
        let band_of = std::array::from_fn(|dscp| {
            let named = config.bands.iter().position(|band| band.dscp.contains(&(dscp as u8)));
            named.unwrap_or(rest) as u8
        });
        Prio { bands, band_of }
    }
}

impl<P: Packet> Qdisc<P> for Prio<P> {
    fn enqueue(&mut self, packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
        let band = self.band_of[usize::from(packet.packet.dscp()) % CODEPOINTS];
        let Some(Band { queue, counts }) = self.bands.get_mut(usize::from(band)) else {
            return sink.rejected(&packet.packet, Cause::Overlimit);
        };
        queue.enqueue(packet, now, &mut Counting { counts, sink });
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        // Each is asked, also one in which nothing waits: so its queue learns that.
        self.bands.iter_mut().find_map(|Band { queue, counts }| {
            let packet = queue.dequeue(now, &mut Counting { counts, sink })?;
            counts.count_out(&packet.packet);
            Some(packet)
        })
    }

    fn next_ready(&self, now: Time) -> Time {
        self.bands.iter().map(|band| band.queue.next_ready(now)).min().unwrap_or(Time::NEVER)
    }

    fn backlog(&self) -> Backlog {
        let add = |sum: Backlog, band: &Band<P>| {
            let Backlog { packets, bytes } = band.queue.backlog();
            Backlog { packets: sum.packets + packets, bytes: sum.bytes + bytes }
        };
        self.bands.iter().fold(Backlog::default(), add)
    }

    fn head_since(&self) -> Option<Time> {
        self.bands.iter().find_map(|band| band.queue.head_since())
    }

    /// One a band, called by its place from 1.
    fn classes(&self) -> Vec<Class> {
        let class = |(place, band): (usize, &Band<P>)| {
            band.counts.class(name_of(place), band.queue.backlog(), band.queue.head_since())
        };
        self.bands.iter().enumerate().map(class).collect()
    }

    /// Those of each band.
    fn gauges(&self, now: Time) -> Vec<Gauge> {
        let of_band = |(place, band): (usize, &Band<P>)| {
            let gauges = band.queue.gauges(now).into_iter();
            gauges.map(move |gauge| gauge.of_class(&name_of(place))).collect::<Vec<_>>()
        };
        self.bands.iter().enumerate().flat_map(of_band).collect()
    }

    fn change(&mut self, change: &Change, rate: Option<Rate>) {
        self.bands.iter_mut().for_each(|band| band.queue.change(change, rate));
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.bands.iter_mut().for_each(|band| band.queue.set_rate(rate));
    }

    fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        for Band { queue, counts } in &mut self.bands {
            queue.purge(cause, &mut Counting { counts, sink });
        }
    }
}

/// The name of the band at `place`.
fn name_of(place: usize) -> String {
    format!("band {}", place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Queue;
    use crate::qdisc::contract::Contract;
    use crate::qdisc::testing::{Notified, Unit, enqueue};
    use proptest::prelude::*;

    impl Contract for Prio<Unit> {
        fn settings(within: &BoxedStrategy<Queue>) -> BoxedStrategy<Queue> {
            let band = (prop::collection::vec(0u8..4, 0..3), within.clone())
                .prop_map(|(dscp, queue)| config::Band { dscp, queue });
            prop::collection::vec(band, 1..4).prop_map(|bands| Queue::Prio(config::Prio { bands })).boxed()
        }
    }

    fn band(dscp: &[u8], limit: u64) -> config::Band {
        let limit = Some(config::Limit::Packets(limit));
        config::Band { dscp: dscp.to_vec(), queue: Queue::droptail(limit) }
    }

    fn prio(bands: Vec<config::Band>) -> Prio<Unit> {
        Prio::new(&config::Prio { bands }, None, 1)
    }

    fn with(dscp: u8) -> Unit {
        Unit { dscp, ..Unit::new(100) }
    }

    fn drain(queue: &mut Prio<Unit>) -> Vec<u8> {
        let next = || queue.dequeue(Time::ZERO, &mut Vec::new()).map(|queued| queued.packet.dscp);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn an_earlier_band_sends_first_whenever_its_packets_came() {
        let mut queue = prio(vec![band(&[46], 9), band(&[], 9), band(&[8], 9)]);
        for dscp in [8, 0, 46, 0, 46, 8] {
            enqueue(&mut queue, with(dscp), Time::ZERO);
        }
        assert_eq!(drain(&mut queue), [46, 46, 0, 0, 8, 8]);
    }

    #[test]
    fn an_empty_band_is_asked_too() {
        let flows = config::Band { dscp: vec![46], queue: Queue::FqCodel(config::FqCodel::default()) };
        let mut queue = prio(vec![flows, band(&[], 9)]);
        let flow = |flow| Unit { flow, dscp: 46, ..Unit::new(1514) };
        enqueue(&mut queue, flow(1), Time::ZERO);
        enqueue(&mut queue, with(0), Time::ZERO);
        assert_eq!(drain(&mut queue), [46, 0]);
        // So its flow is new when it comes back.
        for number in [1, 2] {
            enqueue(&mut queue, flow(number), Time::ZERO);
        }
        let first = queue.dequeue(Time::ZERO, &mut Vec::new()).map(|queued| queued.packet.flow);
        assert_eq!(first, Some(1));
    }

    #[test]
    fn a_codepoint_without_a_band_joins_the_one_that_names_none_or_the_last() {
        let bands_of = |bands: Vec<config::Band>| {
            let mut queue = prio(bands);
            enqueue(&mut queue, with(10), Time::ZERO);
            queue.classes().iter().map(|class| class.backlog.packets).collect::<Vec<_>>()
        };
        assert_eq!(bands_of(vec![band(&[46], 9), band(&[], 9), band(&[8], 9)]), [0, 1, 0]);
        assert_eq!(bands_of(vec![band(&[46], 9), band(&[8], 9)]), [0, 1]);
    }

    #[test]
    fn the_state_of_a_band_stands_behind_its_name() {
        let codel = config::Band { dscp: Vec::new(), queue: Queue::Codel(config::Codel::default()) };
        let names = |bands| -> Vec<String> {
            prio(bands).gauges(Time::ZERO).into_iter().map(|gauge| gauge.name.into_owned()).collect()
        };
        let of_second = ["band 2: count", "band 2: dropping", "band 2: drop_next"];
        assert_eq!(names(vec![band(&[46], 9), codel]), of_second);
        assert!(names(vec![band(&[46], 9)]).is_empty());
    }

    #[test]
    fn each_band_keeps_its_own_limit_and_its_own_counts() {
        let mut queue = prio(vec![band(&[46], 1), band(&[], 2)]);
        let notified: Vec<Notified> =
            [46, 46, 0, 0, 0].iter().flat_map(|&dscp| enqueue(&mut queue, with(dscp), Time::ZERO)).collect();
        let refused = Notified::Rejected(Cause::Overlimit);
        assert_eq!(notified, [Notified::Enqueued, refused, Notified::Enqueued, Notified::Enqueued, refused]);
        assert_eq!(drain(&mut queue).len(), 3);
        let counts: Vec<_> = queue
            .classes()
            .iter()
            .map(|class| (class.packets_out, class.bytes_out, class.drops.by(Cause::Overlimit)))
            .collect();
        assert_eq!(counts, [(1, 100, 1), (2, 200, 1)]);
    }
}
