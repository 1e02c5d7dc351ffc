//! HTTP/1.1 (RFC 9110, RFC 9112) on real sockets: a server of objects that a seed makes, and a client that loads
//! pages of them. The server answers any client: curl, wget, a browser, a cache.

mod client;
mod head;
mod objects;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use client::Client;
pub use head::{Fields, Framing, HeadError, Method, Request, Response, Wanted, wanted};
pub(crate) use objects::Objects;
