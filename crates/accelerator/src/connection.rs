//! One connection that was split: two sockets, and the two directions between them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::sample::{LegSample, Sample, Silence};
use crate::splice::{Direction, Moved, Pipes};

/// Bytes of one direction before others have their turn.
const TURN: usize = 1 << 20;

/// How a connection stands after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing to do until the next event.
    Waits,
    /// More to do at once.
    Ready,
    /// Both directions have ended.
    Over,
}

/// A split connection.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    client: Arc<Socket>,
    server: Arc<Socket>,
    client_address: SocketAddr,
    server_address: SocketAddr,
    /// From client to server.
    up: Direction,
    /// From server to client.
    down: Direction,
    /// Of client and server.
    silences: [Silence; 2],
}

impl Connection {
    pub(crate) fn new(
        number: u64,
        (client, client_address): (Arc<Socket>, SocketAddr),
        (server, server_address): (Arc<Socket>, SocketAddr),
    ) -> Connection {
        let (up, down, silences) = Default::default();
        Connection { number, client, server, client_address, server_address, up, down, silences }
    }

    pub(crate) fn sockets(&self) -> [&Socket; 2] {
        [&self.client, &self.server]
    }

    /// Moves what can be moved. An error ends the connection; dropping it then resets both legs.
    pub(crate) fn advance(&mut self, pipes: &mut Pipes) -> io::Result<Turn> {
        // Data that was in flight when a connection broke is an error that no splice reports (epoll's EPOLLERR).
        for socket in self.sockets() {
            if let Some(error) = socket.take_error()? {
                return Err(error);
            }
        }
        let up = self.turn(true, pipes)?;
        let down = self.turn(false, pipes)?;
        Ok(match (up, down) {
            (Moved::Ended, Moved::Ended) => Turn::Over,
            (Moved::More, _) | (_, Moved::More) => Turn::Ready,
            _ => Turn::Waits,
        })
    }

    fn turn(&mut self, up: bool, pipes: &mut Pipes) -> io::Result<Moved> {
        let (direction, from, to) = if up {
            (&mut self.up, &self.client, &self.server)
        } else {
            (&mut self.down, &self.server, &self.client)
        };
        match direction.advance(from, to, pipes, TURN) {
            // The connection to the server is not established yet.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(Moved::Waits),
            moved => moved,
        }
    }

    /// Ends it in order: what is in the sockets' buffers is still delivered.
    pub(crate) fn close(self) {
        debug_assert!(self.up.ended() && self.down.ended());
        for socket in self.sockets() {
            let _ = socket.set_linger(None);
        }
    }

    /// How long an end has not acknowledged what it was sent, by a sample of now.
    pub(crate) fn silence(&mut self, sample: &Sample, now: Instant) -> Duration {
        let [client, server] = &mut self.silences;
        client.lasting(&sample.client.info, now).max(server.lasting(&sample.server.info, now))
    }

    /// None once a leg is gone.
    pub(crate) fn sample(&self) -> Option<Sample> {
        Some(Sample {
            connection: self.number,
            client: LegSample::of(&self.client, self.client_address)?,
            server: LegSample::of(&self.server, self.server_address)?,
            carries: true,
        })
    }
}
