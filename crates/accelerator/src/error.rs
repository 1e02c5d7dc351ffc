//! Why an accelerator cannot work.

use std::io;

use tcplab_traffic::TrafficError;

/// Why an accelerator cannot work.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum AcceleratorError {
    #[error("cannot run {program}: {source}")]
    Program { program: &'static str, source: io::Error },
    #[error("cannot divert connections: {program}: {said}")]
    Refused { program: &'static str, said: String },
    #[error("cannot make a transparent socket: {0}")]
    Transparent(io::Error),
    #[error("{0:?} is not an IP address")]
    Host(String),
    #[error("{0:?} is not an IP address and a port")]
    Destination(String),
    #[error("cannot listen: {0}")]
    Listen(io::Error),
    #[error("cannot wait for events: {0}")]
    Events(io::Error),
    #[error(transparent)]
    Socket(#[from] TrafficError),
}

impl AcceleratorError {
    /// How to fix it; empty where no hint is general.
    pub fn hint(&self) -> String {
        match self {
            AcceleratorError::Program { program: "nft", .. } => "apt install nftables".into(),
            AcceleratorError::Program { program: "ip", .. } => "apt install iproute2".into(),
            AcceleratorError::Refused { program: "nft", .. } => {
                "the kernel needs nftables with `tproxy` and `socket` (CONFIG_NFT_TPROXY, CONFIG_NFT_SOCKET)"
                    .into()
            }
            AcceleratorError::Transparent(_) => "run as root of the network namespace (CAP_NET_ADMIN)".into(),
            AcceleratorError::Socket(error) => error.hint(),
            _ => String::new(),
        }
    }
}
