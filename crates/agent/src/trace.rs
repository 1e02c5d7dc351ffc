//! Round trips and hops without an agent's answers: TCP handshakes, or ICMP echoes, whose hop limits routers find exceeded
//! (traceroute(8)). They need no privilege but, for ICMP, `net.ipv4.ping_group_range`.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::datagram;

/// Exchanges that the round-trip time is the minimum of, and how often each hop is tried.
const EXCHANGES: usize = 10;
const TRIES: usize = 3;
/// As traceroute(8).
const MAX_HOPS: u32 = 30;
/// Of packets that are to arrive.
const FAR: u32 = 64;
/// How long answers are waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Types of echo requests, and of replies, of ICMP (RFC 792) and ICMPv6 (RFC 4443).
const REQUEST: [u8; 2] = [8, 128];
const REPLY: [u8; 2] = [0, 129];

/// A path, as far as it is known.
#[derive(Debug)]
pub struct Trace {
    /// The protocol that was let through.
    pub by: &'static str,
    /// The shortest round trip, ns.
    pub rtt: u64,
    /// Hops to the destination.
    pub hops: Option<u32>,
    /// Routers on the way; none where one said nothing.
    pub routers: Vec<Option<IpAddr>>,
}

/// The path to a host, by the first protocol that it answers; its port is tried by TCP, and need not be open.
pub fn trace(destination: SocketAddr) -> Option<Trace> {
    [Way::Tcp, Way::Icmp].into_iter().find_map(|way| by(way, destination))
}

fn by(way: Way, destination: SocketAddr) -> Option<Trace> {
    let mut trips = Vec::new();
    for exchange in 0..EXCHANGES {
        let answers = ask(way, destination, [FAR]);
        trips.extend(answers.into_iter().filter_map(|(_, answer)| match answer {
            Answer::Arrived(trip) => Some(trip.as_nanos() as u64),
            Answer::Dropped(_) => None,
        }));
        if trips.is_empty() && exchange > 0 {
            return None;
        }
    }
    let (mut hops, mut routers) = (None, BTreeMap::new());
    for _ in 0..TRIES {
        let open = (1..hops.unwrap_or(MAX_HOPS + 1)).filter(|hop| !routers.contains_key(hop));
        for (hop, answer) in ask(way, destination, open.collect::<Vec<_>>()) {
            match answer {
                Answer::Arrived(_) => hops = Some(hops.map_or(hop, |known: u32| known.min(hop))),
                Answer::Dropped(router) => {
                    routers.insert(hop, router);
                }
            }
        }
    }
    let before = hops.unwrap_or_else(|| routers.keys().max().map_or(1, |last| last + 1));
    Some(Trace {
        by: way.name(),
        rtt: trips.into_iter().min()?,
        hops,
        routers: (1..before).map(|hop| routers.get(&hop).copied()).collect(),
    })
}

#[derive(Clone, Copy)]
enum Way {
    Tcp,
    Icmp,
}

enum Answer {
    /// The destination answered, after this time.
    Arrived(Duration),
    /// A router dropped the packet.
    Dropped(IpAddr),
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Tcp => "tcp",
            Way::Icmp => "icmp",
        }
    }

    /// Sends a packet with a hop limit.
    fn send(self, destination: SocketAddr, hops: u32) -> io::Result<Socket> {
        let v6 = destination.is_ipv6();
        let domain = Domain::for_address(destination);
        let icmp = if v6 { Protocol::ICMPV6 } else { Protocol::ICMPV4 };
        let socket = match self {
            Way::Tcp => Socket::new(domain, Type::STREAM, Some(Protocol::TCP)),
            // As root, or else as one of `net.ipv4.ping_group_range`.
            Way::Icmp => Socket::new(domain, Type::RAW, Some(icmp))
                .or_else(|_| Socket::new(domain, Type::DGRAM, Some(icmp))),
        }?;
        socket.set_nonblocking(true)?;
        if matches!(self, Way::Tcp) {
            // A connection that was established is reset when it is closed, so that nothing of it follows later.
            socket.set_linger(Some(Duration::ZERO))?;
        }
        datagram::keep_errors(&socket, v6)?;
        if v6 {
            socket.set_unicast_hops_v6(hops)?
        } else {
            socket.set_ttl_v4(hops)?
        }
        match socket.connect(&destination.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        if matches!(self, Way::Icmp) {
            socket.send(&request(hops, v6))?;
        }
        Ok(socket)
    }

    /// The answer that a socket has for the packet with this hop limit.
    fn answer(self, socket: &Socket, hops: u32, after: Duration) -> Option<Answer> {
        let mut buffer = [0; 1 << 9];
        if let Ok(arrived) = datagram::receive(socket, &mut buffer, libc::MSG_ERRQUEUE) {
            // Every raw socket gets what routers say of any; the request is quoted.
            let ours = matches!(self, Way::Tcp) || buffer[6..8] == (hops as u16).to_be_bytes();
            return arrived.router.filter(|_| ours).map(Answer::Dropped);
        }
        let arrived = match self {
            // A port that is closed is answered, too.
            Way::Tcp => match socket.take_error() {
                Ok(None) => true,
                Ok(Some(error)) => error.kind() == io::ErrorKind::ConnectionRefused,
                Err(_) => false,
            },
            Way::Icmp => datagram::receive(socket, &mut buffer, 0)
                .is_ok_and(|arrived| replies(&buffer[..arrived.length], hops, socket)),
        };
        arrived.then_some(Answer::Arrived(after))
    }
}

/// An echo request, whose number is its hop limit.
fn request(hops: u32, v6: bool) -> [u8; 8] {
    let (kind, identifier, number) = (REQUEST[usize::from(v6)], std::process::id() as u16, hops as u16);
    // The checksum of ICMPv6 is the kernel's to fill in.
    let sum = u32::from(kind) << 8;
    let sum = sum + u32::from(identifier) + u32::from(number);
    let sum = if v6 { 0 } else { !((sum & 0xffff) + (sum >> 16)) as u16 };
    let ([a, b], [c, d], [e, f]) = (sum.to_be_bytes(), identifier.to_be_bytes(), number.to_be_bytes());
    [kind, 0, a, b, c, d, e, f]
}

/// Whether a packet is the reply to the request with this hop limit.
fn replies(packet: &[u8], hops: u32, socket: &Socket) -> bool {
    let raw = socket.r#type().is_ok_and(|kind| kind == Type::RAW);
    // A raw socket of IPv4 has the header of IP, too, which says its length in words (RFC 791, section 3.1).
    let header = match packet.first() {
        Some(first) if raw && first >> 4 == 4 => usize::from(first & 0xf) * 4,
        _ => 0,
    };
    let Some(icmp) = packet.get(header..).and_then(<[u8]>::first_chunk::<8>) else { return false };
    let ours = !raw || icmp[4..6] == (std::process::id() as u16).to_be_bytes();
    REPLY.contains(&icmp[0]) && ours && icmp[6..] == (hops as u16).to_be_bytes()
}

/// Sends a packet for each hop limit; the answers that came in time.
fn ask(way: Way, destination: SocketAddr, limits: impl IntoIterator<Item = u32>) -> Vec<(u32, Answer)> {
    let send = |hops| Some((hops, Instant::now(), way.send(destination, hops).ok()?));
    let mut open: Vec<(u32, Instant, Socket)> = limits.into_iter().filter_map(send).collect();
    let (mut answers, begin) = (Vec::new(), Instant::now());
    while !open.is_empty() && begin.elapsed() < PATIENCE {
        let events = if matches!(way, Way::Tcp) { libc::POLLOUT } else { libc::POLLIN };
        let polled = |(_, _, socket): &(u32, Instant, Socket)| libc::pollfd {
            fd: socket.as_raw_fd(),
            events,
            revents: 0,
        };
        let mut ready: Vec<libc::pollfd> = open.iter().map(polled).collect();
        let left = PATIENCE.saturating_sub(begin.elapsed()).as_millis() as libc::c_int + 1;
        // SAFETY: the list has as many entries as is said.
        unsafe { libc::poll(ready.as_mut_ptr(), ready.len() as libc::nfds_t, left) };
        let mut ready = ready.into_iter();
        open.retain(|(hops, sent, socket)| {
            let quiet = ready.next().is_none_or(|polled| polled.revents == 0);
            if quiet {
                return true;
            }
            let answer = way.answer(socket, *hops, sent.elapsed());
            // A socket of ICMP may have had something for another.
            let other = answer.is_none() && matches!(way, Way::Icmp);
            answers.extend(answer.map(|answer| (*hops, answer)));
            other
        });
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_checksum_of_its_words() {
        let packet = request(7, false);
        let words = packet.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum: u32 = words.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn loopback_is_one_hop_away_whether_or_not_a_port_is_open() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        let open = listener.local_addr().expect("an address");
        let found = trace(open).expect("loopback");
        assert_eq!((found.by, found.hops, found.routers.len()), ("tcp", Some(1), 0));
        assert!(found.rtt > 0);
        drop(listener);
        assert_eq!(trace(open).expect("loopback").hops, Some(1));
    }
}
