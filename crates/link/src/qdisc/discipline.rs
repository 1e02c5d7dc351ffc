//! Any discipline, with a short way for the two that most links have.

use tcplab_units::{Rate, Time};

use super::{
    Backlog, Cake, Cause, Class, Codel, Droptail, Drr, Dualpi2, Fq, FqCodel, Gauge, Pie, Prio, Qdisc, Queued,
    Red, Sink, Tbf,
};
use crate::config::{Change, Queue};
use crate::packet::Packet;

#[cfg(test)]
use super::{contract::Contract, testing::Unit};
#[cfg(test)]
use proptest::strategy::BoxedStrategy;

/// A discipline of any kind. Droptail and FQ-CoDel stand apart: the test for them is all they cost more than alone, and
/// a byte of its own is tested faster than a niche.
#[derive(Clone, Debug)]
#[repr(u8)]
pub(crate) enum Discipline<P> {
    Droptail(Droptail<P>),
    FqCodel(Box<FqCodel<P>>),
    Other(Box<Other<P>>),
}

/// Implements `Qdisc` for a choice of disciplines.
macro_rules! choice {
    ($type:ident, $inline:meta: $($name:ident),+) => {
        impl<P: Packet> Qdisc<P> for $type<P> {
            #[$inline]
            fn enqueue(&mut self, packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
                match self { $($type::$name(queue) => queue.enqueue(packet, now, sink)),+ }
            }

            #[$inline]
            fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
                match self { $($type::$name(queue) => queue.dequeue(now, sink)),+ }
            }

            fn hold(&mut self, bytes: u64, now: Time) {
                match self { $($type::$name(queue) => queue.hold(bytes, now)),+ }
            }

            #[inline]
            fn next_ready(&self, now: Time) -> Time {
                match self { $($type::$name(queue) => queue.next_ready(now)),+ }
            }

            #[$inline]
            fn can_bypass(&self) -> bool {
                match self { $($type::$name(queue) => queue.can_bypass()),+ }
            }

            #[$inline]
            fn backlog(&self) -> Backlog {
                match self { $($type::$name(queue) => queue.backlog()),+ }
            }

            fn head_since(&self) -> Option<Time> {
                match self { $($type::$name(queue) => queue.head_since()),+ }
            }

            fn classes(&self) -> Vec<Class> {
                match self { $($type::$name(queue) => queue.classes()),+ }
            }

            fn gauges(&self, now: Time) -> Vec<Gauge> {
                match self { $($type::$name(queue) => queue.gauges(now)),+ }
            }

            fn change(&mut self, change: &Change, rate: Option<Rate>) {
                match self { $($type::$name(queue) => queue.change(change, rate)),+ }
            }

            fn set_rate(&mut self, rate: Option<Rate>) {
                match self { $($type::$name(queue) => queue.set_rate(rate)),+ }
            }

            fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
                match self { $($type::$name(queue) => queue.purge(cause, sink)),+ }
            }
        }
    };
}

/// Makes the choice of the other disciplines, each of which is named as its settings are.
macro_rules! others {
    ($($name:ident),+) => {
        /// Any other discipline.
        #[derive(Clone, Debug)]
        pub(crate) enum Other<P> {
            $($name($name<P>)),+
        }

        choice!(Other, inline(never): $($name),+);

        impl<P: Packet> Discipline<P> {
            /// The discipline that `config` describes, in front of a link with `rate`; its random streams derive
            /// from `seed`.
            pub(crate) fn new(config: &Queue, rate: Option<Rate>, seed: u64) -> Discipline<P> {
                let other = match config {
                    Queue::Droptail(config) => return Discipline::Droptail(Droptail::new(config, rate)),
                    Queue::FqCodel(config) => {
                        return Discipline::FqCodel(Box::new(FqCodel::new(config, rate, seed)));
                    }
                    $(Queue::$name(config) => Other::$name($name::new(config, rate, seed)),)+
                };
                Discipline::Other(Box::new(other))
            }
        }

        /// For the test of the contract: settings of every kind, around queues like `within` where it has any.
        #[cfg(test)]
        pub(super) fn settings(within: &BoxedStrategy<Queue>) -> Vec<BoxedStrategy<Queue>> {
            vec![
                Droptail::<Unit>::settings(within),
                FqCodel::<Unit>::settings(within),
                $($name::<Unit>::settings(within)),+
            ]
        }
    };
}

choice!(Discipline, inline(always): Droptail, FqCodel, Other);
others!(Prio, Drr, Tbf, Codel, Fq, Pie, Red, Dualpi2, Cake);
