//! CAKE: a shaper, tins by DSCP, hosts and flows in turn, COBALT (T. Høiland-Jørgensen, D. Täht, J. Morton, "Piece of
//! CAKE: a comprehensive queue management solution for home gateways", LANMAN 2018; `tc-cake(8)`).

mod cobalt;
mod set_associative;
#[cfg(test)]
mod tests;
mod tin;
mod tins;

use tcplab_units::{Rate, Time};

use super::{Backlog, Cause, Class, Gauge, Qdisc, Queued, Sink};
use crate::config::{self, Change};
use crate::packet::Packet;
use crate::random::Draws;
use crate::serializer::Serializer;
use crate::threshold::Threshold;
use tin::Tin;

/// Tins behind a shaper.
#[derive(Clone, Debug)]
pub(crate) struct Cake<P> {
    config: config::Cake,
    /// From the lowest to the highest.
    tins: Vec<Tin<P>>,
    /// Without a rate, the tin whose turn it is.
    turn: usize,
    shaper: Option<Serializer>,
    /// When the next packet may leave: a virtual clock that goes on by what each packet takes. It stands no earlier than
    /// the first packet after an idle time, so that nothing is saved up.
    clock: Time,
    /// At the shaper's rate, or at the link's where it has none.
    limit: Threshold,
    /// The salt of the hashes, and the draws of BLUE.
    salt: Draws,
    blue: Draws,
}

impl<P: Packet> Cake<P> {
    pub(crate) fn new(config: &config::Cake, rate: Option<Rate>, seed: u64) -> Cake<P> {
        Cake {
            config: *config,
            tins: tins::tins(config).iter().map(|tin| Tin::new(tin, config.isolation)).collect(),
            turn: 0,
            shaper: config.bandwidth.map(Serializer::new),
            clock: Time::ZERO,
            limit: Threshold::new(Some(config.limit()), config.bandwidth.or(rate)),
            salt: Draws::new(seed, "cake"),
            blue: Draws::new(seed, "cake blue"),
        }
    }

    fn salted(&self, hash: u32) -> u32 {
        (self.salt.at(u64::from(hash)) >> 32) as u32
    }

    /// The tin that sends next. By rate it is the highest one whose clock is not ahead of the time. If all are ahead,
    /// the one that is least ahead sends: what a tin leaves is lent to the others.
    fn choose(&mut self, now: Time) -> Option<usize> {
        let waiting = |tin: &Tin<P>| tin.backlog.packets > 0;
        if self.shaper.is_some() {
            let active = self.tins.iter().enumerate().filter(|(_, tin)| waiting(tin));
            return active.rev().min_by_key(|(_, tin)| tin.clock.max(now)).map(|(number, _)| number);
        }
        if !self.tins.iter().any(waiting) {
            return None;
        }
        // Deficit round robin between tins.
        while self.tins[self.turn].left <= 0 || !waiting(&self.tins[self.turn]) {
            let tin = &mut self.tins[self.turn];
            if tin.left <= 0 {
                tin.left += tin.turn;
            }
            self.turn = (self.turn + 1) % self.tins.len();
        }
        Some(self.turn)
    }

    fn is_too_full(&self) -> bool {
        let Backlog { packets, bytes } = self.backlog();
        self.limit.is_exceeded(u64::from(packets), bytes)
    }

    /// Drops from the longest queue until what waits is within the limit.
    #[cold]
    fn make_room(&mut self, now: Time, sink: &mut impl Sink<P>) {
        while self.is_too_full() {
            let longest =
                self.tins.iter().enumerate().filter_map(|(tin, it)| Some((it.longest()?, tin))).max();
            let Some(((_, flow), tin)) = longest else { return };
            self.tins[tin].overflow(flow, now, sink);
        }
    }
}

impl<P: Packet> Qdisc<P> for Cake<P> {
    fn enqueue(&mut self, packet: Queued<P>, now: Time, sink: &mut impl Sink<P>) {
        if self.backlog().packets == 0 {
            self.clock = self.clock.max(now);
        }
        let inside = sink.inside(&packet.packet);
        let (flow, hosts) = tin::hashes(self.config.isolation, packet.packet.flow_hash(), &inside);
        let hashes = (self.salted(flow), hosts.map(|host| self.salted(host)));
        let tin = tins::tin_of(self.config.diffserv, packet.packet.dscp());
        self.tins[tin].enqueue(packet, hashes, self.config.ack_filter, now, sink);
        if self.is_too_full() {
            self.make_room(now, sink);
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut impl Sink<P>) -> Option<Queued<P>> {
        if self.shaper.is_some() && self.clock > now {
            return None;
        }
        let number = self.choose(now)?;
        let blue = self.blue;
        let tin = &mut self.tins[number];
        let packet = tin.dequeue(now, |packet| (blue.at(packet) >> 32) as u32, sink)?;
        let len = self.config.len_on_wire(packet.packet.frame_len());
        tin.left -= i64::from(len);
        tin.advance(len, now);
        if let Some(shaper) = &mut self.shaper {
            self.clock = shaper.send(self.clock, true, len);
        }
        Some(packet)
    }

    fn next_ready(&self, now: Time) -> Time {
        match (self.backlog().packets, &self.shaper) {
            (0, _) => Time::NEVER,
            (_, None) => now,
            (_, Some(_)) => self.clock,
        }
    }

    fn backlog(&self) -> Backlog {
        self.tins.iter().fold(Backlog::default(), |sum, tin| Backlog {
            packets: sum.packets + tin.backlog.packets,
            bytes: sum.bytes + tin.backlog.bytes,
        })
    }

    fn head_since(&self) -> Option<Time> {
        self.tins.iter().filter_map(Tin::head_since).min()
    }

    /// The tins.
    fn classes(&self) -> Vec<Class> {
        self.tins.iter().map(Tin::class).collect()
    }

    fn gauges(&self, _now: Time) -> Vec<Gauge> {
        let sum = |of: fn(&Tin<P>) -> f64| self.tins.iter().map(of).sum();
        vec![
            Gauge::plain("sparse_flows", sum(|tin| tin.sparse_flows() as f64)),
            Gauge::plain("bulk_flows", sum(|tin| f64::from(tin.bulk_flows))),
            Gauge::plain("blue_prob", self.tins.iter().map(Tin::probability).fold(0.0, f64::max)),
            Gauge::plain("ack_drop", sum(|tin| tin.redundant as f64)),
            Gauge::plain("way_cols", sum(|tin| tin.shared as f64)),
        ]
    }

    fn change(&mut self, change: &Change, rate: Option<Rate>) {
        if change.limit.is_some() {
            self.limit = Threshold::new(change.limit, self.config.bandwidth.or(rate));
        }
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.limit = self.limit.at_rate(self.config.bandwidth.or(rate));
    }

    fn purge(&mut self, cause: Cause, sink: &mut impl Sink<P>) {
        for tin in &mut self.tins {
            tin.purge(cause, sink);
        }
    }
}
