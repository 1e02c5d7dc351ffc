//! Whether hosts answer: echo requests (RFC 792, RFC 4443) from inside a namespace.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

/// How often an address is asked, and how long its answer is awaited each time.
const TRIES: u16 = 10;
const PATIENCE: Duration = Duration::from_millis(200);

/// Those of the addresses that do not answer, asked from the network namespace this thread is in.
pub(crate) fn unreachable(addresses: &[IpAddr]) -> io::Result<Vec<IpAddr>> {
    let (six, four): (Vec<IpAddr>, Vec<IpAddr>) = addresses.iter().partition(|address| address.is_ipv6());
    let mut silent = ask(&four, Domain::IPV4, Protocol::ICMPV4, (8, 0))?;
    silent.extend(ask(&six, Domain::IPV6, Protocol::ICMPV6, (128, 129))?);
    Ok(silent)
}

fn ask(
    addresses: &[IpAddr],
    domain: Domain,
    protocol: Protocol,
    (request, reply): (u8, u8),
) -> io::Result<Vec<IpAddr>> {
    let mut waiting: BTreeSet<IpAddr> = addresses.iter().copied().collect();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let socket: UdpSocket = Socket::new(domain, Type::RAW, Some(protocol))?.into();
    let identifier = std::process::id() as u16;
    let mut buffer = [0; 2048];
    for number in 0..TRIES {
        for address in &waiting {
            // Without a route or room in the device it is asked again, and reported in the end.
            let _ = socket.send_to(&echo(request, identifier, number), SocketAddr::new(*address, 0));
        }
        let deadline = Instant::now() + PATIENCE;
        while !waiting.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            let (length, from) = match socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // Only IPv4's raw sockets show the IP header.
            let at = if domain == Domain::IPV4 { usize::from(buffer[0] & 15) * 4 } else { 0 };
            let Some(icmp) = buffer[..length].get(at..at + 8) else { continue };
            if icmp[0] == reply && icmp[4..6] == identifier.to_be_bytes() {
                waiting.remove(&from.ip());
            }
        }
        if waiting.is_empty() {
            break;
        }
    }
    Ok(waiting.into_iter().collect())
}

/// An echo request; the kernel completes the checksum of ICMPv6.
fn echo(kind: u8, identifier: u16, number: u16) -> [u8; 8] {
    let mut packet = [kind, 0, 0, 0, 0, 0, 0, 0];
    packet[4..6].copy_from_slice(&identifier.to_be_bytes());
    packet[6..8].copy_from_slice(&number.to_be_bytes());
    let sum: u32 = packet.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[2..4].copy_from_slice(&(!(sum + (sum >> 16)) as u16).to_be_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071: the sum over a packet with its checksum is all ones.
    #[test]
    fn an_echo_request_has_the_internet_checksum() {
        let packet = echo(8, 0xfedc, 0xffff);
        let sum: u32 =
            packet.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
