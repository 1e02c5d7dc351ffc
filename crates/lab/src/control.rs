//! The socket for commands to a lab that stays up: a name in the abstract namespace (unix(7)), which is gone with
//! the lab's process and has no file.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use serde_json::Value;

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a lab listens.
#[derive(Debug)]
pub(crate) struct Control(UnixListener);

/// A client, to be answered.
pub(crate) struct Client(UnixStream);

impl Control {
    /// Listens for a lab of this name and user. Names are those of the network namespace this process is in.
    pub(crate) fn listen(name: &str) -> io::Result<Control> {
        let address = SocketAddr::from_abstract_name(format!("tcplab-lab/{}/{name}", geteuid()))?;
        Ok(Control(UnixListener::bind_addr(&address)?))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The next client and what it said; none for one that is of another user or says nothing.
    pub(crate) fn next(&self) -> io::Result<Option<(Client, String)>> {
        let (stream, _) = self.0.accept()?;
        // Anybody on the machine may connect to an abstract name.
        if getsockopt(&stream, PeerCredentials)?.uid() != geteuid().as_raw() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        let said = BufReader::new(&stream).read_line(&mut line);
        Ok(said.is_ok_and(|bytes| bytes > 0).then_some((Client(stream), line)))
    }
}

impl Client {
    /// Answers. A client that has gone meanwhile is none of the lab's business.
    pub(crate) fn answer(mut self, answer: &Value) -> Option<UnixStream> {
        writeln!(self.0, "{answer}").ok().map(|()| self.0)
    }
}
