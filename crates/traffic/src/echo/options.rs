//! Options of the sockets at both ends.

use socket2::Socket;

/// The congestion control of a socket; empty where it cannot be read.
pub(crate) fn control(socket: &Socket) -> String {
    let name = socket.tcp_congestion().unwrap_or_default();
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}
