//! Any discipline, with a short way for the two that most links have.

use tcplab_units::{Rate, Time};

use super::{
    Backlog, Cake, Cause, Class, Codel, Droptail, Drr, Dualpi2, Fq, FqCodel, Gauge, Pie, Prio, Qdisc, Queued,
    Red, Sink, Tbf,
};
use crate::config::{Change, Queue};
use crate::packet::Packet;

/// A discipline of any kind. Droptail and FQ-CoDel stand apart: the test for them is all they cost more than alone.
#[derive(Clone, Debug)]
pub(crate) enum Discipline<P> {
    Droptail(Droptail<P>),
    FqCodel(Box<FqCodel<P>>),
    Other(Box<Other<P>>),
}

/// Any other discipline.
#[derive(Clone, Debug)]
pub(crate) enum Other<P> {
    Prio(Prio<P>),
    Drr(Drr<P>),
    Tbf(Tbf<P>),
    Codel(Codel<P>),
    Fq(Fq<P>),
    Pie(Pie<P>),
    Red(Red<P>),
    Dualpi2(Dualpi2<P>),
    Cake(Cake<P>),
}

impl<P: Packet> Discipline<P> {
    /// The discipline that `config` describes, in front of a link with `rate`; its random streams derive from `seed`.
    pub(crate) fn new(config: &Queue, rate: Option<Rate>, seed: u64) -> Discipline<P> {
        let other = match config {
            Queue::Droptail { limit, mark_above } => {
                return Discipline::Droptail(Droptail::new(*limit, *mark_above, rate));
            }
            Queue::Prio(config) => Other::Prio(Prio::new(config, rate, seed)),
            Queue::Drr(config) => Other::Drr(Drr::new(config, rate)),
            Queue::Tbf(config) => Other::Tbf(Tbf::new(config, seed)),
            Queue::Codel(config) => Other::Codel(Codel::new(config, rate)),
            Queue::Fq(config) => Other::Fq(Fq::new(config, rate)),
            Queue::FqCodel(config) => {
                return Discipline::FqCodel(Box::new(FqCodel::new(config, rate, seed)));
            }
            Queue::Pie(config) => Other::Pie(Pie::new(config, rate, seed)),
            Queue::Red(config) => Other::Red(Red::new(config, rate, seed)),
            Queue::Dualpi2(config) => Other::Dualpi2(Dualpi2::new(config, rate, seed)),
            Queue::Cake(config) => Other::Cake(Cake::new(config, rate, seed)),
        };
        Discipline::Other(Box::new(other))
    }
}

/// Does the same with whichever it is.
macro_rules! own_or_other {
    ($any:expr, $queue:ident => $do:expr) => {
        match $any {
            Discipline::Droptail($queue) => $do,
            Discipline::FqCodel($queue) => $do,
            Discipline::Other($queue) => $do,
        }
    };
}

/// Does the same with whichever it is.
macro_rules! each_other {
    ($any:expr, $queue:ident => $do:expr) => {
        match $any {
            Other::Prio($queue) => $do,
            Other::Drr($queue) => $do,
            Other::Tbf($queue) => $do,
            Other::Codel($queue) => $do,
            Other::Fq($queue) => $do,
            Other::Pie($queue) => $do,
            Other::Red($queue) => $do,
            Other::Dualpi2($queue) => $do,
            Other::Cake($queue) => $do,
        }
    };
}

/// Implements `Qdisc` for a choice of disciplines, with the macro that chooses.
macro_rules! choice {
    ($type:ident, $each:ident, $inline:meta) => {
        impl<P: Packet> Qdisc<P> for $type<P> {
            #[$inline]
            fn enqueue(&mut self, packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
                $each!(self, queue => queue.enqueue(packet, now, sink));
            }

            #[$inline]
            fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
                $each!(self, queue => queue.dequeue(now, sink))
            }

            fn hold(&mut self, bytes: u64, now: Time) {
                $each!(self, queue => queue.hold(bytes, now));
            }

            #[inline]
            fn next_ready(&self, now: Time) -> Time {
                $each!(self, queue => queue.next_ready(now))
            }

            #[$inline]
            fn can_bypass(&self) -> bool {
                $each!(self, queue => queue.can_bypass())
            }

            #[$inline]
            fn backlog(&self) -> Backlog {
                $each!(self, queue => queue.backlog())
            }

            fn head_since(&self) -> Option<Time> {
                $each!(self, queue => queue.head_since())
            }

            fn classes(&self) -> Vec<Class> {
                $each!(self, queue => queue.classes())
            }

            fn gauges(&self, now: Time) -> Vec<Gauge> {
                $each!(self, queue => queue.gauges(now))
            }

            fn change(&mut self, change: &Change, rate: Option<Rate>) {
                $each!(self, queue => queue.change(change, rate));
            }

            fn set_rate(&mut self, rate: Option<Rate>) {
                $each!(self, queue => queue.set_rate(rate));
            }

            fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
                $each!(self, queue => queue.purge(cause, sink));
            }
        }
    };
}

choice!(Discipline, own_or_other, inline(always));
choice!(Other, each_other, inline(never));
