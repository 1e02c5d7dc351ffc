//! HTTP/1.1 (RFC 9110, RFC 9112) on real sockets: a server of objects that a seed makes, and a client that loads
//! pages of them. The server answers any client: curl, wget, a browser, a cache.

mod client;
mod head;
mod objects;
mod server;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;

use socket2::Socket;
use tcplab_plan::Web;

use crate::conversation::Conversation;
use crate::tcp::{Stream, Task};
use crate::{End, Role, TrafficError};
use client::Client;
use objects::Objects;

pub use head::{Fields, Framing, HeadError, Method, Request, Response, Wanted, wanted};

/// The part of one end of an http flow.
#[derive(Debug)]
pub(crate) enum Part {
    /// State that its connections share.
    Client(Box<Client>),
    /// Objects that it has.
    Server(Objects),
}

impl Part {
    pub(crate) fn of(end: &End, web: &Web) -> Result<Part, TrafficError> {
        if web.objects == 0 || web.sizes.is_empty() || web.page == 0 {
            return Err(TrafficError::Zero { what: "objects, sizes or page" });
        }
        Ok(match end.role {
            Role::Client => Part::Client(Box::new(Client::new(web, end.target.clone()))),
            Role::Server => Part::Server(Objects::new(web, end.seed, &end.flow.name)),
        })
    }
}

impl Conversation for Part {
    fn send(&self, task: &Task<'_>, stream: &Stream, socket: &Socket) -> io::Result<bool> {
        match self {
            Part::Client(client) => task.browse(stream, socket, client),
            Part::Server(_) => Ok(true),
        }
    }

    fn host(
        &self,
        task: &Task<'_>,
        stream: &Stream,
        listener: &Socket,
        address: SocketAddr,
    ) -> Option<Result<(), TrafficError>> {
        match self {
            Part::Client(_) => None,
            Part::Server(objects) => Some(task.host(stream, listener, address, objects)),
        }
    }
}
