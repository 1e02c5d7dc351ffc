//! Errors of an echo, and how to fix them.

use std::io;
use std::net::SocketAddr;

use super::framed_io::Broken;
use super::wire::VERSION;
use crate::error::{PATIENCE, is_timeout};

/// Why a client ended before its time.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum EchoError {
    #[error("client {client} cannot connect to {address}: {source}")]
    Connect { client: u32, address: SocketAddr, source: io::Error },
    #[error("client {client}: {address} did not answer the greeting: {source}")]
    NoAnswer { client: u32, address: SocketAddr, source: Broken },
    #[error("client {client}: the server at {address} is not a tcplab echo server")]
    Foreign { client: u32, address: SocketAddr },
    #[error("client {client}: {address} rejected the test: {words}")]
    Refused { client: u32, address: SocketAddr, words: String, version: u16 },
    #[error("client {client}, size {size}, iteration {iteration}: {source}")]
    Lost { client: u32, size: u32, iteration: u64, source: Broken },
    #[error(
        "client {client}, size {size}, iteration {iteration}: the answer is not the message that was sent"
    )]
    Wrong { client: u32, size: u32, iteration: u64 },
    #[error("client {client} cannot run on CPU {cpu}: {source}")]
    Pin { client: u32, cpu: usize, source: io::Error },
    #[error("client {client}: a socket option cannot be set: {source}")]
    Option { client: u32, source: io::Error },
}

impl EchoError {
    /// How to fix it.
    pub fn hint(&self) -> String {
        match self {
            EchoError::Connect { address, .. } => {
                format!(
                    "start `tcplab echo serve --port {}` there, and check for a firewall in between",
                    address.port()
                )
            }
            EchoError::NoAnswer { .. } => {
                "see whether the server is overloaded; a slow path needs a longer timeout".into()
            }
            EchoError::Foreign { .. } => "give the port of `tcplab echo serve`".into(),
            EchoError::Refused { version, .. } if *version != VERSION => {
                "install the same version of tcplab at both ends".into()
            }
            EchoError::Refused { .. } => "ask for less, or start the server with higher limits".into(),
            EchoError::Lost { source: Broken::Stalled { .. }, .. } => {
                "see whether the server still runs; a slow path needs a longer timeout".into()
            }
            EchoError::Lost { source: Broken::Io(error), .. } if is_timeout(error) => PATIENCE.into(),
            EchoError::Lost { .. } => "see what the server reported".into(),
            EchoError::Wrong { .. } => "something between the two changes what is sent".into(),
            EchoError::Pin { .. } => "choose CPUs that exist and that this process may use".into(),
            EchoError::Option { .. } => "choose another value".into(),
        }
    }

    /// Whether nothing came for too long: for this end, or for TCP.
    pub fn is_timeout(&self) -> bool {
        let (EchoError::Lost { source, .. } | EchoError::NoAnswer { source, .. }) = self else {
            return false;
        };
        match source {
            Broken::Stalled { .. } => true,
            Broken::Io(error) => is_timeout(error),
            Broken::Closed { .. } | Broken::Over => false,
        }
    }

    /// Whether it only means that the run was ended.
    pub fn is_over(&self) -> bool {
        matches!(
            self,
            EchoError::Lost { source: Broken::Over, .. } | EchoError::NoAnswer { source: Broken::Over, .. }
        )
    }
}
