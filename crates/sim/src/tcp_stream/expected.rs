//! Segments that an end expects, which the simulation serves in trains (`simulation/train.rs`).

use tcplab_tcp::{Connection, Notice};
use tcplab_units::Time;

use super::TcpStream;
use crate::packet::Packet;
use crate::recorder::Mode;
use crate::sim_context::SimContext;
use crate::stream::{FlowEndpoints, Way};

/// The kind of segments that an end expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Data, which it acknowledges at most.
    Data,
    /// ACKs of what it sent.
    Acks,
}

impl TcpStream {
    /// The kind of segments that the end to which packets of this direction go expects, if most of them are such.
    #[inline]
    pub(crate) fn expects(&self, forward: bool) -> Option<Expected> {
        let end = self.ends[usize::from(forward)].as_ref()?;
        if self.brings_acks(forward) {
            return end.expects_acks().then_some(Expected::Acks);
        }
        (!self.answers && end.expects_data()).then_some(Expected::Data)
    }

    /// The end to which packets of this direction go.
    #[inline]
    pub(crate) fn end(&mut self, forward: bool) -> Option<&mut Connection> {
        self.ends[usize::from(forward)].as_deref_mut()
    }

    /// Expected data have arrived, the last of them at `last`.
    #[inline]
    pub(crate) fn received_expected(&mut self, forward: bool, last: Time) {
        let end = usize::from(forward);
        if let Some(connection) = &self.ends[end] {
            self.delivered[end] = connection.bytes_received();
            self.last_delivery = last;
        }
    }

    /// An ACK arrived now at an end that expects some. `back`: the way from there, once it is known. The packet is left to the
    /// caller. Whether that is all; none: it is not a bare ACK.
    #[inline(always)]
    pub(crate) fn receive_expected_ack<M: Mode>(
        &mut self,
        packet: &Packet,
        back: &mut Option<Way>,
        endpoints: &FlowEndpoints,
        sim: &mut SimContext,
    ) -> Option<bool> {
        let now = sim.now();
        let end = usize::from(packet.forward());
        let connection = self.ends[end].as_deref_mut()?;
        connection.lend_outbox(&mut sim.outbox);
        if !connection.receive_expected_ack(sim.bodies.segment(packet)?, now) {
            connection.return_outbox(&mut sim.outbox);
            return None;
        }
        sim.bodies.release(packet.body());
        if connection.has_to_transmit() {
            let back = back.get_or_insert_with(|| endpoints.way(!packet.forward(), sim));
            endpoints.transmit_by::<M>(back, connection, sim);
        }
        while let Some(notice) = connection.poll_notice() {
            let Notice::RttSample(rtt) = notice else {
                self.act_on::<M>(notice, end, endpoints, sim);
                return Some(false);
            };
            self.rtt.record(rtt);
        }
        connection.return_outbox(&mut sim.outbox);
        self.window.set(connection.cwnd(), now);
        let phase = connection.control().telemetry().phase;
        sim.schedule.set_end_timer(endpoints.place, end, connection.poll_timeout());
        if !core::ptr::eq(phase, self.phase) {
            self.note_phase(phase, endpoints, sim);
        }
        Some(true)
    }

    /// An ACK has had another effect than a sample of the RTT.
    #[cold]
    fn act_on<M: Mode>(
        &mut self,
        notice: Notice,
        end: usize,
        endpoints: &FlowEndpoints,
        sim: &mut SimContext,
    ) {
        self.notice(end, notice, endpoints, sim);
        self.drive::<M>(end, endpoints, sim);
        self.return_outbox(end, sim);
    }
}
