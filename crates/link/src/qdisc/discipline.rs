//! Any discipline: one match instead of a pointer, so that the only queue of a link costs nothing more.

use tcplab_units::{Rate, Time};

use super::{
    Backlog, Cause, Class, Codel, Droptail, Drr, Dualpi2, FqCodel, Pie, Prio, Qdisc, Queued, Red, Sink, Tbf,
};
use crate::config::{Change, Queue};
use crate::packet::Packet;

/// A discipline of any kind.
#[derive(Clone, Debug)]
pub(crate) enum Discipline<P> {
    Droptail(Droptail<P>),
    Prio(Prio<P>),
    Drr(Drr<P>),
    Tbf(Box<Tbf<P>>),
    Codel(Codel<P>),
    FqCodel(FqCodel<P>),
    Pie(Pie<P>),
    Red(Red<P>),
    Dualpi2(Dualpi2<P>),
}

impl<P: Packet> Discipline<P> {
    /// The discipline that `config` describes, in front of a link with `rate`; its random streams derive from `seed`.
    pub(crate) fn new(config: &Queue, rate: Option<Rate>, seed: u64) -> Discipline<P> {
        match config {
            Queue::Droptail { limit, mark_above } => {
                Discipline::Droptail(Droptail::new(*limit, *mark_above, rate))
            }
            Queue::Prio(config) => Discipline::Prio(Prio::new(config, rate, seed)),
            Queue::Drr(config) => Discipline::Drr(Drr::new(config, rate)),
            Queue::Tbf(config) => Discipline::Tbf(Box::new(Tbf::new(config, seed))),
            Queue::Codel(config) => Discipline::Codel(Codel::new(config, rate)),
            Queue::FqCodel(config) => Discipline::FqCodel(FqCodel::new(config, rate, seed)),
            Queue::Pie(config) => Discipline::Pie(Pie::new(config, rate, seed)),
            Queue::Red(config) => Discipline::Red(Red::new(config, rate, seed)),
            Queue::Dualpi2(config) => Discipline::Dualpi2(Dualpi2::new(config, rate, seed)),
        }
    }
}

/// Does the same with whichever discipline it is.
macro_rules! each {
    ($any:expr, $queue:ident => $do:expr) => {
        match $any {
            Discipline::Droptail($queue) => $do,
            Discipline::Prio($queue) => $do,
            Discipline::Drr($queue) => $do,
            Discipline::Tbf($queue) => $do,
            Discipline::Codel($queue) => $do,
            Discipline::FqCodel($queue) => $do,
            Discipline::Pie($queue) => $do,
            Discipline::Red($queue) => $do,
            Discipline::Dualpi2($queue) => $do,
        }
    };
}

impl<P: Packet> Qdisc<P> for Discipline<P> {
    #[inline]
    fn enqueue(&mut self, packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
        each!(self, queue => queue.enqueue(packet, now, sink));
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        each!(self, queue => queue.dequeue(now, sink))
    }

    #[inline]
    fn next_ready(&self, now: Time) -> Time {
        each!(self, queue => queue.next_ready(now))
    }

    #[inline]
    fn can_bypass(&self) -> bool {
        each!(self, queue => queue.can_bypass())
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, queue => queue.backlog())
    }

    fn head_since(&self) -> Option<Time> {
        each!(self, queue => queue.head_since())
    }

    fn classes(&self) -> Vec<Class> {
        each!(self, queue => queue.classes())
    }

    fn gauges(&self, now: Time) -> Vec<(&'static str, f64)> {
        each!(self, queue => queue.gauges(now))
    }

    fn change(&mut self, change: &Change, rate: Option<Rate>) {
        each!(self, queue => queue.change(change, rate));
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        each!(self, queue => queue.set_rate(rate));
    }

    fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        each!(self, queue => queue.purge(cause, sink));
    }
}
