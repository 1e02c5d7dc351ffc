//! Echo: how long a message and its equal-sized answer take over TCP, by size and number of clients.
//!
//! Each client has a connection and a thread; it sends a message, waits until the whole of it has come back, and
//! goes on (stop and wait). All clients turn to the next size together. The clock is read before the first byte
//! is given to the kernel and after the last one has been taken from it. The same server and clients are behind
//! `tcplab echo` and behind flows of `kind: echo`.

mod barrier;
mod client;
mod error;
mod flow;
mod framed_io;
pub(crate) mod options;
mod record;
mod server;
#[cfg(test)]
mod tests;
mod wire;

pub use client::{Connected, Job, Observer};
pub use error::EchoError;
pub(crate) use flow::Echo;
pub use framed_io::{Broken, Limit};
pub use record::{Keep, Live, Round};
pub use server::{Limits, Served, Server, ServerObserver, Unserved};
pub use wire::{Answer, Greeting, VERSION};

use std::net::SocketAddr;

use socket2::Socket;

use crate::{SocketOptions, TrafficError};

/// Opens a client's socket. `control`: its congestion control; empty: the kernel's default.
pub fn open(address: SocketAddr, options: &SocketOptions, control: &str) -> Result<Socket, TrafficError> {
    Ok(crate::socket::tcp(address, options, control)?.0)
}

/// Listens on `address`; port 0 lets the kernel choose. Returns the port.
pub fn listen(
    address: SocketAddr,
    options: &SocketOptions,
    control: &str,
) -> Result<(Socket, u16), TrafficError> {
    let (socket, _) = crate::socket::tcp(address, options, control)?;
    let (socket, port) = crate::socket::listen(socket, address)?;
    // Beyond what is common: a burst of clients, or of strangers, shall not have to try again.
    let _ = socket.listen(1024);
    Ok((socket, port))
}
