//! The work of each kind of traffic on its TCP connections.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use socket2::Socket;

use crate::TrafficError;
use crate::tcp::{Stream, Task};

/// A kind of traffic on TCP connections, whose life is that of [`Tcp`](crate::tcp::Tcp).
pub(crate) trait Conversation: fmt::Debug + Send + Sync {
    /// The work of the end that sends (of traffic that goes both ways: that asks), until it is done (true) or the run is over
    /// (false).
    fn send(&self, task: &Task<'_>, stream: &Stream, socket: &Socket) -> io::Result<bool>;

    /// The work of the other end, until the sender says that it is done (true) or the run is over (false).
    fn receive(&self, task: &Task<'_>, stream: &Stream, socket: &Socket) -> io::Result<bool> {
        task.read(stream, socket)
    }

    /// Bytes a stream shall carry, where that is what ends it.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Serves whoever connects, until the run is over; none: a stream is one connection.
    fn host(
        &self,
        _task: &Task<'_>,
        _stream: &Stream,
        _listener: &Socket,
        _address: SocketAddr,
    ) -> Option<Result<(), TrafficError>> {
        None
    }
}
