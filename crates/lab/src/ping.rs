//! Whether nodes answer: echo requests (RFC 792, RFC 4443) from inside namespaces, from many at once.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

/// How often an address is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// A version of IP as echo requests have it.
struct Family {
    domain: Domain,
    protocol: Protocol,
    request: u8,
    reply: u8,
}

const FOUR: Family = Family { domain: Domain::IPV4, protocol: Protocol::ICMPV4, request: 8, reply: 0 };
const SIX: Family = Family { domain: Domain::IPV6, protocol: Protocol::ICMPV6, request: 128, reply: 129 };

/// One node's requests over one version of IP.
pub(crate) struct Asker {
    family: &'static Family,
    socket: UdpSocket,
    waiting: BTreeSet<IpAddr>,
}

impl Asker {
    /// Ready to ask from the network namespace this thread is in: one for each version of IP that is needed.
    pub(crate) fn open(addresses: &[IpAddr]) -> io::Result<Vec<Asker>> {
        let mut askers = Vec::new();
        for family in [&FOUR, &SIX] {
            let of_family = |address: &&IpAddr| address.is_ipv6() == (family.domain == Domain::IPV6);
            let waiting: BTreeSet<IpAddr> = addresses.iter().filter(of_family).copied().collect();
            if !waiting.is_empty() {
                let socket = Socket::new(family.domain, Type::RAW, Some(family.protocol))?;
                socket.set_nonblocking(true)?;
                askers.push(Asker { family, socket: socket.into(), waiting });
            }
        }
        Ok(askers)
    }

    /// The addresses that have not answered.
    pub(crate) fn silent(self) -> BTreeSet<IpAddr> {
        self.waiting
    }

    fn ask(&self, number: u16) {
        for address in &self.waiting {
            let packet = echo(self.family.request, identifier(), number);
            // Without a route or room in the device it is asked again, and reported in the end.
            let _ = self.socket.send_to(&packet, SocketAddr::new(*address, 0));
        }
    }

    fn take_answers(&mut self) -> io::Result<()> {
        let mut buffer = [0; 2048];
        loop {
            let (length, from) = match self.socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // Only IPv4's raw sockets show the IP header.
            let at = if self.family.domain == Domain::IPV4 { usize::from(buffer[0] & 15) * 4 } else { 0 };
            let Some(icmp) = buffer[..length].get(at..at + 8) else { continue };
            if icmp[0] == self.family.reply && icmp[4..6] == identifier().to_be_bytes() {
                self.waiting.remove(&from.ip());
            }
        }
    }
}

/// Asks until all have answered, for `patience` at most.
pub(crate) fn ask_all(askers: &mut [Asker], patience: Duration) -> io::Result<()> {
    let began = Instant::now();
    for number in 0..u16::MAX {
        askers.iter().for_each(|asker| asker.ask(number));
        let due = began + AGAIN * (u32::from(number) + 1);
        loop {
            let mut waiting: Vec<&mut Asker> =
                askers.iter_mut().filter(|asker| !asker.waiting.is_empty()).collect();
            let left = due.min(began + patience).saturating_duration_since(Instant::now());
            if waiting.is_empty() || left.is_zero() {
                break;
            }
            let mut polled: Vec<PollFd<'_>> =
                waiting.iter().map(|asker| PollFd::new(asker.socket.as_fd(), PollFlags::POLLIN)).collect();
            // At least a millisecond, so that it does not spin.
            poll(&mut polled, PollTimeout::try_from(left.as_millis().max(1)).unwrap_or(PollTimeout::ZERO))?;
            drop(polled);
            waiting.iter_mut().try_for_each(|asker| asker.take_answers())?;
        }
        if askers.iter().all(|asker| asker.waiting.is_empty()) || began.elapsed() >= patience {
            break;
        }
    }
    Ok(())
}

fn identifier() -> u16 {
    std::process::id() as u16
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
