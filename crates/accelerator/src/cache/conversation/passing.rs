//! Traffic that is not for a cache: a connection that goes on as with an accelerator.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::poll::PollFlags;
use socket2::Socket;
use tcplab_traffic::http::Request;

use super::Conversation;
use crate::cache::blocking::send;
use crate::connection::{Connection, Turn};
use crate::socket;
use crate::splice::Pipes;

/// A client that sends nothing for so long may wait for its server's greeting.
const GREETING: Duration = Duration::from_millis(500);

impl Conversation {
    /// Whether the server sends before the client does, as in SMTP or SSH. To find out, a silent client's server is connected to.
    pub(super) fn server_speaks_first(&mut self) -> io::Result<bool> {
        if socket::wait(&self.client, PollFlags::POLLIN, GREETING)? {
            return Ok(false);
        }
        // A request that still comes is answered with the reason.
        let Ok(server) = self.connect() else { return Ok(false) };
        // Nothing was asked: closing it normally loses no data.
        server.socket.set_linger(None)?;
        let [client, greeting] = socket::wait_either([&self.client, &server.socket])?;
        self.server = Some(server);
        Ok(greeting && !client)
    }

    /// Carries on a connection whose server has spoken first.
    pub(super) fn pass_on_greeting(&mut self) -> io::Result<()> {
        self.cache.count(|counts| counts.passed += 1);
        let Some(server) = self.server.take() else { return Err(io::ErrorKind::NotConnected.into()) };
        server.socket.set_linger(Some(Duration::ZERO))?;
        self.carry(server.socket)
    }

    /// Carries on what comes from either end, as it is.
    pub(super) fn pass_on(&mut self) -> io::Result<()> {
        self.cache.count(|counts| counts.passed += 1);
        // Not the connection of former requests: what cannot be repeated must not meet its end.
        self.forget_server();
        let server = match self.connect() {
            Ok(server) => server.socket,
            Err(error) => {
                let Ok(Some((request, _))) = Request::parse(&self.input) else { return Err(error) };
                let problem = format!("cannot connect to {}: {error}", self.to);
                self.refuse(&request, "502 Bad Gateway", "fwd=method", &problem)?;
                return self.close();
            }
        };
        send(&server, &[&self.input])?;
        self.carry(server)
    }

    fn carry(&mut self, server: Arc<Socket>) -> io::Result<()> {
        self.seen(|open| open.carries = true);
        let legs = [&self.client, &server];
        let poll = Poll::new()?;
        for (side, socket) in legs.into_iter().enumerate() {
            socket.set_nonblocking(true)?;
            // Edge-triggered; an event for what is ready already comes with the registration.
            let both = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), Token(side), both)?;
        }
        carry(poll, Connection::new(0, (self.client.clone(), self.from), (server, self.to)))
    }
}

/// Carries on both directions of a connection until they have ended.
fn carry(mut poll: Poll, mut connection: Connection) -> io::Result<()> {
    let (mut events, mut pipes) = (Events::with_capacity(2), Pipes::at_most(2));
    loop {
        match connection.advance(&mut pipes)? {
            Turn::Ready => {}
            Turn::Waits => match poll.poll(&mut events, None) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            },
            Turn::Over => {
                connection.close();
                return Ok(());
            }
        }
    }
}
