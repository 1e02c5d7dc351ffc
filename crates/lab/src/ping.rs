//! Whether nodes answer: echo requests (RFC 792, RFC 4443) from inside namespaces, from many at once.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

/// How often an address is asked again.
const AGAIN: Duration = Duration::from_millis(200);
/// How many are asked together, and how long without an answer until others are asked.
const TOGETHER: usize = 128;
const QUIET: Duration = Duration::from_millis(10);

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

    fn ask(&self, address: IpAddr, number: u16) {
        let packet = echo(self.family.request, identifier(), number);
        // Without a route or room in the device it is asked again, and reported in the end.
        let _ = self.socket.send_to(&packet, SocketAddr::new(address, 0));
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
///
/// A few at a time: requests between all of hundreds of hosts fill queues and receive buffers, and more of them the longer
/// the answers take.
pub(crate) fn ask_all(askers: &mut [Asker], patience: Duration) -> io::Result<()> {
    let end = Instant::now() + patience;
    for number in 0..u16::MAX {
        let again = (Instant::now() + AGAIN).min(end);
        let waiting = by_turns(askers.iter().map(|asker| asker.waiting.iter().copied().collect()));
        for group in waiting.chunks(TOGETHER).take_while(|_| Instant::now() < end) {
            group.iter().for_each(|(asker, address)| askers[*asker].ask(*address, number));
            take_answers(askers, group, end, QUIET)?;
        }
        take_answers(askers, &waiting, again, AGAIN)?;
        if askers.iter().all(|asker| asker.waiting.is_empty()) || Instant::now() >= end {
            break;
        }
    }
    Ok(())
}

/// Pairs of an asker and an address, so that those next to each other share few askers and addresses.
fn by_turns(waiting: impl Iterator<Item = Vec<IpAddr>>) -> Vec<(usize, IpAddr)> {
    let mut pairs: Vec<(usize, usize, IpAddr)> = Vec::new();
    for (asker, mut addresses) in waiting.enumerate() {
        let first = asker % addresses.len().max(1);
        addresses.rotate_left(first);
        pairs.extend(addresses.into_iter().enumerate().map(|(turn, address)| (turn, asker, address)));
    }
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, asker, address)| (asker, address)).collect()
}

/// Takes answers until these have come, none comes for a `quiet` time, or the time is over.
fn take_answers(
    askers: &mut [Asker],
    expected: &[(usize, IpAddr)],
    end: Instant,
    quiet: Duration,
) -> io::Result<()> {
    while expected.iter().any(|(asker, address)| askers[*asker].waiting.contains(address)) {
        let left = end.saturating_duration_since(Instant::now()).min(quiet);
        if left.is_zero() {
            break;
        }
        let mut waiting: Vec<&mut Asker> =
            askers.iter_mut().filter(|asker| !asker.waiting.is_empty()).collect();
        let mut polled: Vec<PollFd<'_>> =
            waiting.iter().map(|asker| PollFd::new(asker.socket.as_fd(), PollFlags::POLLIN)).collect();
        // At least a millisecond, so that it does not spin.
        let time = PollTimeout::try_from(left.as_millis().max(1)).unwrap_or(PollTimeout::ZERO);
        match poll(&mut polled, time) {
            Ok(0) => break,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|one| one.any().unwrap_or_default()).collect();
        for (asker, _) in waiting.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            asker.take_answers()?;
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

    #[test]
    fn hosts_that_ask_each_other_do_not_all_ask_the_same_one() {
        let hosts: Vec<IpAddr> = (1..=40).map(|host| IpAddr::from([10, 0, 0, host])).collect();
        let others = |host: &IpAddr| hosts.iter().copied().filter(|other| other != host).collect();
        let pairs = by_turns(hosts.iter().map(others));
        assert_eq!(pairs.len(), 40 * 39);
        assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), 40 * 39);
        for group in pairs.chunks(40) {
            for (host, own) in hosts.iter().enumerate() {
                assert!(group.iter().filter(|(asker, _)| *asker == host).count() <= 2);
                assert!(group.iter().filter(|(_, address)| address == own).count() <= 3);
            }
        }
        assert_eq!(by_turns([vec![], vec![hosts[0]]].into_iter()), [(1, hosts[0])]);
    }

    /// RFC 1071: the sum over a packet with its checksum is all ones.
    #[test]
    fn an_echo_request_has_the_internet_checksum() {
        let packet = echo(8, 0xfedc, 0xffff);
        let sum: u32 =
            packet.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
