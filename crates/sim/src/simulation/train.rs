//! Trains: segments that arrive one after another at one end of a connection.
//!
//! All that they share is looked at once, and each takes the short way of a segment that was expected. The result is that of
//! packets served one by one.

use tcplab_units::Span;

use super::{Batch, Simulation};
use crate::look_ahead;
use crate::network::{DirectionId, NodeId};
use crate::recorder::Mode;
use crate::stream::{Stream, StreamKind};
use crate::tcp_stream::Expected;

/// The outcome of a train.
pub(super) struct Train {
    /// So many packets were served.
    packets: u32,
    /// The packet that is the first now can be served; otherwise that is still to be asked.
    pub(super) goes_on: bool,
    /// The stream of the packets that were served is finished.
    pub(super) finished: bool,
}

impl Simulation {
    /// Serves packets that arrive by `direction` at `node` while they are of one connection and bring what its end expects:
    /// data, or ACKs of what it sent. The first can be served now.
    #[inline]
    pub(super) fn serve_train<M: Mode>(
        &mut self,
        direction: DirectionId,
        node: NodeId,
        batch: &mut Batch,
    ) -> Train {
        let nothing = Train { packets: 0, goes_on: true, finished: false };
        let link = self.sim.network.peek(direction);
        let Some(first) = link.upcoming(0).filter(|_| link.is_plain()) else { return nothing };
        let place = self.sim.recorder.place(first.stream());
        let Some(stream) = self.streams.by_place().get(place as usize) else { return nothing };
        let Stream { endpoints, kind: StreamKind::Tcp(tcp), done: false, .. } = stream else {
            return nothing;
        };
        if first.destination() != node || first.is_corrupted() || endpoints.relays.at(node).is_some() {
            return nothing;
        }
        let conversation = first.conversation();
        let train = match tcp.expects(first.forward()) {
            Some(Expected::Data) => self.serve_data::<M>(direction, place, batch),
            Some(Expected::Acks) => self.serve_acks::<M>(direction, place, batch),
            None => return nothing,
        };
        if train.packets > 0 {
            self.sim.packets += u64::from(train.packets);
            self.note_arrived(train.packets, conversation, direction);
        }
        train
    }

    /// Serves data that arrive by `direction` for the stream at `place`.
    #[inline(never)]
    fn serve_data<M: Mode>(&mut self, direction: DirectionId, place: u32, batch: &mut Batch) -> Train {
        let mut train = Train { packets: 0, goes_on: true, finished: false };
        let asks_for_bodies = self.asks_for_bodies();
        let sim = &mut self.sim;
        let Some(&first) = sim.network.peek(direction).upcoming(0) else { return train };
        let forward = first.forward();
        let mut back = None;
        let mut last = sim.now();
        // The contents of the packet before, which those of a run share.
        let mut known = None;
        let mut is_last = false;
        while !is_last {
            let Some(stream) = self.streams.get_mut(place) else { break };
            let Stream { endpoints, kind: StreamKind::Tcp(tcp), .. } = stream else { break };
            let Some(connection) = tcp.end(forward) else { break };
            connection.lend_outbox(&mut sim.outbox);
            let (busy, others) = sim.schedule.rivals(direction);
            if batch.lookahead == Span::ZERO {
                batch.lookahead = sim.network.lookahead(direction);
            }
            let latest = others.min(busy + batch.lookahead);
            let (now, link) = (sim.schedule.now(), sim.network.link(direction));
            is_last = true;
            while let Some((mut at, packet)) = link.first()
                && packet.goes_like(&first)
            {
                let is_later = !train.goes_on && at > batch.present;
                if !is_later {
                    at = now;
                } else if at >= latest || at > self.end || self.events_left == 0 {
                    break;
                }
                let body = packet.body();
                let Some(segment) = sim.bodies.segment(packet) else { break };
                if !connection.receive_expected_data(segment, known == Some(body), at) {
                    break;
                }
                known = Some(body);
                sim.bodies.release(body);
                link.deliver_first();
                if is_later {
                    if at < busy {
                        batch.present = at;
                    } else {
                        self.furthest = self.furthest.max(at);
                    }
                    self.events += 1;
                    self.events_left -= 1;
                }
                train.packets += 1;
                (last, train.goes_on) = (at, false);
                if asks_for_bodies {
                    look_ahead::look_ahead_at_bodies(link, &sim.bodies);
                }
                let sends = connection.has_to_transmit();
                let mut timer_is_next = false;
                if !sends {
                    sim.schedule.move_to(at);
                    let timeout = connection.poll_timeout();
                    timer_is_next = sim.schedule.set_end_timer(place, usize::from(forward), timeout);
                }
                if sends || timer_is_next {
                    is_last = false;
                    break;
                }
            }
            sim.schedule.move_to(last);
            if connection.has_to_transmit() {
                let back = back.get_or_insert_with(|| endpoints.way(!forward, sim));
                endpoints.transmit_by::<M>(back, connection, sim);
                sim.schedule.set_end_timer(place, usize::from(forward), connection.poll_timeout());
            }
            if is_last {
                connection.return_outbox(&mut sim.outbox);
                if !train.goes_on {
                    tcp.received_expected(forward, last);
                }
            }
        }
        train
    }

    /// Whether the contents of packets are asked for ahead, with few streams.
    #[inline]
    fn asks_for_bodies(&self) -> bool {
        self.look_ahead.is_none() && look_ahead::pays_for_bodies(&self.sim.bodies)
    }

    /// Serves ACKs that arrive by `direction` for the stream at `place`.
    #[inline(never)]
    fn serve_acks<M: Mode>(&mut self, direction: DirectionId, place: u32, batch: &mut Batch) -> Train {
        let mut train = Train { packets: 0, goes_on: true, finished: false };
        let Some(&first) = self.sim.network.peek(direction).upcoming(0) else { return train };
        let mut back = None;
        let asks_for_bodies = self.asks_for_bodies();
        while let Some((at, &packet)) = self.sim.network.peek(direction).first()
            && packet.goes_like(&first)
        {
            let sim = &mut self.sim;
            let is_later = !train.goes_on && at > batch.present;
            if is_later {
                let (busy, others) = sim.schedule.rivals(direction);
                if at >= busy.min(others) || at > self.end || self.events_left == 0 {
                    break;
                }
                sim.schedule.move_to(at);
            }
            let Some(stream) = self.streams.get_mut(place) else { break };
            let Stream { endpoints, kind: StreamKind::Tcp(tcp), .. } = stream else { break };
            let Some(is_all) = tcp.receive_expected_ack::<M>(&packet, &mut back, endpoints, sim) else {
                break;
            };
            train.packets += 1;
            let link = sim.network.link(direction);
            link.deliver_first();
            if asks_for_bodies {
                look_ahead::look_ahead_at_bodies(link, &sim.bodies);
            }
            if is_later {
                batch.present = at;
                self.events += 1;
                self.events_left -= 1;
            }
            train.goes_on = false;
            if !is_all {
                train.finished = tcp.finished();
                break;
            }
        }
        if train.finished {
            self.streams.note_finished(place);
        }
        train
    }
}
