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
            AcceleratorError::Refused { program: "ip", .. } => {
                "it needs the rights of root, and a kernel with policy routing (CONFIG_IP_MULTIPLE_TABLES, CONFIG_IPV6_MULTIPLE_TABLES)"
                    .into()
            }
            AcceleratorError::Host(_) => "give one such as 192.0.2.7 or 2001:db8::7".into(),
            AcceleratorError::Destination(_) => "give them as in 192.0.2.7:443 or [2001:db8::7]:443".into(),
            AcceleratorError::Listen(error) if error.kind() == io::ErrorKind::AddrInUse => {
                "another process listens there: choose another port in `forward`".into()
            }
            AcceleratorError::Events(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                "raise the limit of open files: ulimit -n 65536".into()
            }
            AcceleratorError::Transparent(_) => "run as root of the network namespace (CAP_NET_ADMIN)".into(),
            AcceleratorError::Socket(error) => error.hint(),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_named_as_such() {
        let in_use = AcceleratorError::Listen(io::Error::from_raw_os_error(libc::EADDRINUSE));
        assert!(in_use.hint().contains("another port"), "{}", in_use.hint());
        assert_eq!(AcceleratorError::Listen(io::ErrorKind::Other.into()).hint(), "");
    }
}
