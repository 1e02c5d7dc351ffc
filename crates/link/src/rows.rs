//! A queue's rows in the result tables, the same from every engine.

use tcplab_tables::{
    Dictionary, QueueClassRow, QueueClasses, QueueGaugeRow, QueueGauges, QueueRow, Queues, Symbol,
};
use tcplab_units::Time;

use crate::qdisc::Cause;
use crate::{Class, Gauge, QueueSample, Stats};

/// Of more classes only those have a row in which packets wait: of hashed ones most are empty.
const FEW_CLASSES: usize = 16;

/// The tables that a sample of a queue goes into.
pub struct QueueTables<'a> {
    /// The strings of all tables.
    pub dictionary: &'a mut Dictionary,
    /// The queue as a whole.
    pub queues: &'a mut Queues,
    /// Its classes.
    pub classes: &'a mut QueueClasses,
    /// The state of its discipline.
    pub gauges: &'a mut QueueGauges,
}

/// A sample of a link direction's queue.
#[derive(Clone, Copy, Debug)]
pub struct Sampled<'a> {
    /// When it was taken.
    pub time: Time,
    /// The link's name, and the direction's.
    pub names: [Symbol; 2],
    /// The queue's contents.
    pub queue: QueueSample,
    /// The direction's counters.
    pub stats: &'a Stats,
    /// The discipline's classes.
    pub classes: &'a [Class],
    /// The discipline's state.
    pub gauges: &'a [Gauge],
}

impl QueueTables<'_> {
    /// Appends the rows of a sample.
    pub fn push(&mut self, sampled: &Sampled<'_>) {
        let Sampled { time, names: [link, direction], queue, stats, classes, gauges } = *sampled;
        let at = time.as_ns();
        self.queues.push(QueueRow {
            time: at,
            link,
            direction,
            packets: u64::from(queue.packets),
            bytes: queue.bytes,
            sojourn: (queue.packets > 0).then_some(queue.head_sojourn.as_ns()),
            packets_out: stats.dequeued,
            waited: stats.waited.as_ns(),
            drops: stats.dropped,
            marks: stats.marked,
            lost: stats.lost,
            bytes_out: stats.bytes_serialized,
            capacity_used: stats.capacity_used,
        });
        let few = classes.len() <= FEW_CLASSES;
        for class in classes.iter().filter(|class| few || class.backlog.packets > 0) {
            self.classes.push(QueueClassRow {
                time: at,
                link,
                direction,
                class: self.dictionary.symbol(&class.name),
                packets: u64::from(class.backlog.packets),
                bytes: class.backlog.bytes,
                sojourn: class.head_since.map(|since| time.since(since).as_ns()),
                drops: class.drops.total(),
                early_drops: class.drops.by(Cause::Early),
                overlimit_drops: class.drops.by(Cause::Overlimit),
                marks: class.marked,
                packets_out: class.packets_out,
                bytes_out: class.bytes_out,
            });
        }
        for gauge in gauges {
            let (name, unit) = (self.dictionary.symbol(&gauge.name), self.dictionary.symbol(gauge.unit));
            self.gauges.push(QueueGaugeRow { time: at, link, direction, name, value: gauge.value, unit });
        }
    }
}
