//! The applications at the two ends of a connection.

use tcplab_tables::{EchoBatches, Echoes, Symbol};
use tcplab_tcp::Connection;
use tcplab_units::Time;

use crate::cache::Outcome;
use crate::http::Browser;
use crate::plan::Fetch;
use crate::recorder::NOWHERE;
use crate::sim_context::{SimContext, Timer};
use crate::stream::FlowEndpoints;
use crate::tcp_stream::CLIENT;

/// The applications at both ends of one connection. They are notified of what happens, and act on the end at which it happens.
pub(crate) trait Application: core::fmt::Debug + Send + Sync {
    /// The application timer fires: the flow starts, or the time asked for by `Context::wake_at` has come.
    fn on_timer(&mut self, client: &mut Connection, context: &mut Context);

    /// The client's end is established. Whether the client acted on it.
    fn on_established(&mut self, _client: &mut Connection, _context: &mut Context) -> bool {
        false
    }

    /// Payload has arrived in order at `end`. Whether that end's application acted on the connection.
    fn on_data(&mut self, _end: usize, _connection: &mut Connection, _context: &mut Context) -> bool {
        false
    }

    /// The request that waits for its response, for a cache on the way.
    fn asked(&self) -> Option<Fetch> {
        None
    }

    /// How a cache on the way answers that request.
    fn answered_by_cache(&mut self, _outcome: Outcome) {}

    /// The connection was reset or given up.
    fn on_abort(&mut self, _context: &mut Context) {}

    /// Writes down what a run's end cuts off.
    fn finish(&self, _names: (Symbol, u64), _tables: (&mut Echoes, &mut EchoBatches)) {}

    /// Whether all was done that was asked for, given the payload the server `received` and when the run ended; one
    /// that only the run's end stops has `ended` with it.
    fn complete(&self, received: u64, end: Time, ended: bool) -> bool;

    /// Whether the server sends payload too. If not, nobody acts on data that have arrived.
    fn answers(&self) -> bool {
        true
    }

    /// Bytes with which the client and the server begin before the payload: they do not count as such.
    fn preamble(&self) -> [u64; 2] {
        [0; 2]
    }

    /// The end that sends most of the payload.
    fn data_end(&self) -> usize {
        CLIENT
    }
}

/// The surroundings of an application besides its connection.
pub(crate) struct Context<'a> {
    pub(crate) endpoints: &'a FlowEndpoints,
    pub(crate) sim: &'a mut SimContext,
}

impl Context<'_> {
    /// The present.
    pub(crate) fn now(&self) -> Time {
        self.sim.now()
    }

    /// The application timer fires at `time`, and at no other.
    pub(crate) fn wake_at(&mut self, time: Time) {
        self.sim.set_timer(self.endpoints.place, Timer::Application, time);
    }

    /// Flow name and number of the stream, and the tables that echoes go into.
    pub(crate) fn echoes(&mut self) -> ((Symbol, u64), (&mut Echoes, &mut EchoBatches)) {
        let names = self.sim.recorder.stream(self.endpoints.stream);
        let tables = &mut self.sim.recorder.tables;
        (names, (&mut tables.echoes, &mut tables.echo_batches))
    }

    /// The client that the flow's connections work for; none but of http flows.
    pub(crate) fn browser(&mut self) -> Option<&mut Browser> {
        self.sim.browsers[self.endpoints.flow as usize].as_mut()
    }

    /// Wakes those of its connections that have found work.
    pub(crate) fn wake_browser(&mut self) {
        let woken = self.browser().map_or(Vec::new(), Browser::woken);
        self.wake_now(&woken);
    }

    /// Waits until all clients of the flow have come so far.
    pub(crate) fn arrive_at_gate(&mut self) {
        let passing = self.sim.gates[self.endpoints.flow as usize].arrive(self.endpoints.stream);
        self.wake_now(&passing);
    }

    /// The other clients of the flow wait for this one no more.
    pub(crate) fn leave_gate(&mut self) {
        let passing = self.sim.gates[self.endpoints.flow as usize].leave(self.endpoints.stream);
        self.wake_now(&passing);
    }

    /// Wakes the applications of `streams`.
    pub(crate) fn wake_now(&mut self, streams: &[u32]) {
        let now = self.now();
        for &stream in streams {
            let place = self.sim.recorder.place(stream);
            // One that has not started does so now, for all of a flow start together.
            if place != NOWHERE {
                self.sim.set_timer(place, Timer::Application, now);
            }
        }
    }
}
