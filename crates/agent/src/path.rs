//! Measures an idle path between two hosts: round-trip time, largest packet, hops, bottleneck.
//!
//! One agent reflects, the other asks. Every request is a datagram of at least 32 bytes with the token that both
//! were given. The answer is 32 bytes long, so that it cannot amplify traffic to a forged address.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{Domain, Protocol, Socket, Type};
use tcplab_probe::clock;

use crate::datagram::{self, Arrived};
use crate::trace;

/// Token, number and, in an answer, arrival of the question and time until the answer: 8 bytes each.
const SHORTEST: usize = 32;
/// Exchanges that the round-trip time is the minimum of.
const EXCHANGES: u64 = 10;
/// Between them, so that none waits for another.
const APART: Duration = Duration::from_millis(20);
/// How long the first answers may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Every IPv4 host takes such a packet whole (RFC 791, section 3.1), every IPv6 link carries one (RFC 8200, section 5).
const SMALLEST: [usize; 2] = [576, 1280];
/// Sizes tried at a time, and how often each is: a lost packet must not be taken for one that was too long.
const SIZES: usize = 16;
const TRIES: usize = 3;
/// As traceroute(8).
const MAX_HOPS: u32 = 30;
/// Datagrams of a train, and trains.
const TRAIN: u64 = 32;
const TRAINS: usize = 3;
/// How often a port is chosen that the other protocol may not have free.
const ANY_TRIES: usize = 8;
/// Handshakes that nobody takes: those of a trace.
const MAX_HANDSHAKES: libc::c_int = 128;
/// UDP's header, and that of IPv4 or IPv6.
const HEADERS: [usize; 2] = [28, 48];
const ETHERNET_HEADER: usize = 14;

/// Answers questions until it is dropped.
#[derive(Debug)]
pub struct Reflector {
    /// Where it listens.
    pub port: u16,
    /// At the same port: the kernel answers handshakes, which nobody takes.
    _listener: Socket,
    stop: Arc<AtomicBool>,
}

impl Reflector {
    /// Listens at `address` for questions that carry `token`, and come from `asker` where one is named. At the first of
    /// `ports` that is free; none given: at one that the kernel chooses.
    pub fn start(address: IpAddr, ports: &[u16], token: u64, asker: Option<IpAddr>) -> io::Result<Reflector> {
        let (socket, listener) = bound(address, ports)?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        // Not every kernel can: then the bottleneck's rate is not known, and the rest is.
        let _ = datagram::stamp_arrivals(&socket);
        let port = socket.local_addr()?.as_socket().map_or(0, |at| at.port());
        let stop = Arc::new(AtomicBool::new(false));
        let over = stop.clone();
        thread::Builder::new().name("reflector".into()).spawn(move || {
            let mut buffer = [0; 1 << 16];
            while !over.load(Ordering::Relaxed) {
                let _ = reflect(&socket, &mut buffer, token, asker);
            }
        })?;
        Ok(Reflector { port, _listener: listener, stop })
    }
}

/// Answers the next question.
fn reflect(socket: &Socket, buffer: &mut [u8], token: u64, asker: Option<IpAddr>) -> io::Result<()> {
    let Arrived { length, from, at, .. } = datagram::receive(socket, buffer, 0)?;
    let from = from.filter(|from| asker.is_none_or(|asker| asker.to_canonical() == from.ip().to_canonical()));
    if let Some(from) = from
        && length >= SHORTEST
        && buffer[..8] == token.to_be_bytes()
    {
        buffer[16..24].copy_from_slice(&at.unwrap_or(0).to_be_bytes());
        buffer[24..SHORTEST].copy_from_slice(&since(at).to_be_bytes());
        socket.send_to(&buffer[..SHORTEST], &from.into())?;
    }
    Ok(())
}

/// How long a datagram has waited in this host since it came, ns; zero where the kernel did not say when.
fn since(at: Option<u64>) -> u64 {
    at.map_or(0, |at| clock::realtime().saturating_sub(at))
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Measurements of the path to a reflector. Failed measurements are null.
pub fn measure(reflector: SocketAddr, token: u64) -> io::Result<Value> {
    let mut prober = Prober::new(reflector, token)?;
    let Some(rtt) = prober.round_trip()? else {
        // A firewall may let other packets through.
        let found = trace::trace(reflector);
        return Ok(json!({
            "by": found.as_ref().map(|found| found.by),
            "rtt": found.as_ref().map(|found| found.rtt),
            "mtu": null,
            "hops": found.as_ref().and_then(|found| found.hops),
            "routers": found.map_or(Vec::new(), |found| found.routers),
            "bandwidth": null,
        }));
    };
    let mtu = prober.largest()?;
    let (hops, routers) = prober.hops()?;
    Ok(json!({
        "by": "udp",
        "rtt": rtt,
        "mtu": mtu,
        "hops": hops,
        "routers": routers,
        "bandwidth": prober.bandwidth(mtu)?,
    }))
}

/// An answer.
struct Reflected {
    /// The question's.
    number: u64,
    /// When the question came to the reflector, ns on its CLOCK_REALTIME; zero: not known.
    question_at: u64,
    /// How long question and answer waited for their processes.
    in_hosts: Duration,
}

struct Prober {
    socket: Socket,
    token: u64,
    next: u64,
    v6: bool,
    /// How long answers are waited for.
    patience: Duration,
}

impl Prober {
    fn new(reflector: SocketAddr, token: u64) -> io::Result<Prober> {
        let socket = open(reflector.ip())?;
        socket.connect(&reflector.into())?;
        // As above: without stamps an answer counts when it is read.
        let _ = datagram::stamp_arrivals(&socket);
        socket.set_read_timeout(Some(Duration::from_millis(5)))?;
        let v6 = reflector.is_ipv6();
        datagram::never_fragment(&socket, v6)?;
        Ok(Prober { socket, token, next: 0, v6, patience: PATIENCE })
    }

    /// The shortest round trip, ns. The time from a packet's arrival in a host until its process has it is not part of it. A busy
    /// host adds no more than passes between reading the clock and sending.
    fn round_trip(&mut self) -> io::Result<Option<u64>> {
        let mut sent = BTreeMap::new();
        let (mut trips, mut waits) = (Vec::new(), Vec::new());
        let (begin, mut asked) = (Instant::now(), 0);
        // A process that was held up asks the rest and reads what has come, however late it is.
        loop {
            let late = begin.elapsed() >= self.patience;
            if asked < EXCHANGES && begin.elapsed() >= APART * asked as u32 {
                let now = Instant::now();
                sent.extend(self.ask(SHORTEST).map(|number| (number, now)));
                asked += 1;
            }
            match self.answer() {
                Some(answer) => {
                    if let Some(wait) = sent.get(&answer.number).map(Instant::elapsed) {
                        // A clock that was set meanwhile makes no path shorter than nothing.
                        trips.extend(wait.checked_sub(answer.in_hosts).filter(|trip| !trip.is_zero()));
                        waits.push(wait);
                    }
                }
                None if late && asked == EXCHANGES => break,
                None => {}
            }
            if waits.len() == EXCHANGES as usize {
                break;
            }
        }
        waits.sort();
        let Some(median) = waits.get(waits.len() / 2) else { return Ok(None) };
        self.patience = *median * 2 + Duration::from_millis(100);
        Ok(trips.iter().min().and_then(|trip| u64::try_from(trip.as_nanos()).ok()))
    }

    /// The largest IP packet that arrives whole (RFC 8899 calls it the packetization layer path MTU).
    fn largest(&mut self) -> io::Result<usize> {
        let header = HEADERS[usize::from(self.v6)];
        let mut fits = SMALLEST[usize::from(self.v6)];
        let mut beyond = datagram::route_mtu(&self.socket, self.v6)?.max(fits) + 1;
        // Most paths carry what the first link does.
        let mut sizes = vec![beyond - 1];
        while fits + 1 < beyond {
            let mut asked = BTreeMap::new();
            for _ in 0..TRIES {
                for &size in &sizes {
                    asked.extend(self.ask(size - header).map(|number| (number, size)));
                }
            }
            let came = self.collect(&numbers(&asked));
            let largest = came.keys().filter_map(|number| asked.get(number)).max().copied();
            fits = fits.max(largest.unwrap_or(fits));
            beyond = sizes.iter().copied().filter(|&size| size > fits).fold(beyond, usize::min);
            let step = (beyond - fits).div_ceil(SIZES + 1).max(1);
            sizes = (fits + 1..beyond).step_by(step).skip(usize::from(step > 1)).collect();
            if sizes.is_empty() {
                sizes.extend((fits + 1..beyond).next_back());
            }
        }
        Ok(fits)
    }

    /// How many hops away the reflector is, and the routers that said that they are on the way.
    fn hops(&mut self) -> io::Result<(Option<u32>, Vec<Option<IpAddr>>)> {
        datagram::keep_errors(&self.socket, self.v6)?;
        let mut asked = BTreeMap::new();
        for _ in 0..TRIES {
            for hops in 1..=MAX_HOPS {
                self.limit_hops(hops)?;
                asked.extend(self.ask(SHORTEST).map(|number| (number, hops)));
            }
            // Routers say it to no more than some a second.
            thread::sleep(APART);
        }
        self.limit_hops(64)?;
        let come = self.collect(&numbers(&asked));
        let mut routers = BTreeMap::new();
        let mut buffer = [0; 1 << 10];
        while let Ok(Arrived { length, router: Some(router), .. }) =
            datagram::receive(&self.socket, &mut buffer, libc::MSG_ERRQUEUE)
        {
            if let Some(hops) = self.number(&buffer[..length]).and_then(|number| asked.get(&number)) {
                routers.insert(*hops, router);
            }
        }
        let hops = come.keys().filter_map(|number| asked.get(number)).min().copied();
        let before = hops.unwrap_or_else(|| routers.keys().max().map_or(1, |last| last + 1));
        Ok((hops, (1..before).map(|hop| routers.get(&hop).copied()).collect()))
    }

    /// The rate at which packets that were sent at once arrive, of Ethernet frames, bit/s: the bottleneck's, if nothing
    /// else uses it.
    fn bandwidth(&mut self, mtu: usize) -> io::Result<Option<f64>> {
        let length = mtu - HEADERS[usize::from(self.v6)];
        let mut rates = Vec::new();
        for _ in 0..TRAINS {
            let numbers: Vec<u64> = (0..TRAIN).filter_map(|_| self.ask(length)).collect();
            let mut arrivals: Vec<u64> = self.collect(&numbers).into_values().collect();
            arrivals.sort_unstable();
            if let [first, .., last] = arrivals[..]
                && last > first
                && first > 0
            {
                let bits = (arrivals.len() - 1) * (mtu + ETHERNET_HEADER) * 8;
                rates.push(bits as f64 * 1e9 / (last - first) as f64);
            }
        }
        rates.sort_by(f64::total_cmp);
        Ok(rates.get(rates.len() / 2).copied())
    }

    fn limit_hops(&self, hops: u32) -> io::Result<()> {
        if self.v6 { self.socket.set_unicast_hops_v6(hops) } else { self.socket.set_ttl_v4(hops) }
    }

    /// Sends a question of so many bytes; its number, unless the host itself refuses it.
    fn ask(&mut self, length: usize) -> Option<u64> {
        let mut question = vec![0; length.max(SHORTEST)];
        let number = self.next;
        self.next += 1;
        question[..8].copy_from_slice(&self.token.to_be_bytes());
        question[8..16].copy_from_slice(&number.to_be_bytes());
        // A router's word about an earlier question may come in its place.
        (0..2).any(|_| self.socket.send(&question).is_ok()).then_some(number)
    }

    /// Answers to these questions, with when the questions arrived, until all have come or time is up. Last questions
    /// distinguish answers that will not come from late ones, such as those of a host that is held up.
    fn collect(&mut self, asked: &[u64]) -> BTreeMap<u64, u64> {
        let last: Vec<u64> = (0..TRIES).filter_map(|_| self.ask(SHORTEST)).collect();
        let (mut come, mut passed) = (BTreeMap::new(), false);
        let begin = Instant::now();
        while come.len() < asked.len() {
            let late = begin.elapsed() >= if passed { self.patience } else { PATIENCE };
            match self.answer() {
                Some(answer) if asked.contains(&answer.number) => {
                    come.insert(answer.number, answer.question_at);
                }
                Some(answer) => passed |= last.contains(&answer.number),
                None if late => break,
                None => {}
            }
        }
        come
    }

    /// The next answer, if one comes in a moment.
    fn answer(&self) -> Option<Reflected> {
        let mut buffer = [0; SHORTEST];
        let Arrived { length, at, .. } = datagram::receive(&self.socket, &mut buffer, 0).ok()?;
        let number = self.number(&buffer[..length])?;
        let [question_at, waited] = [16, 24].map(|start| &buffer[start..]).map(<[u8]>::first_chunk);
        let waited = u64::from_be_bytes(*waited?).saturating_add(since(at));
        Some(Reflected {
            number,
            question_at: u64::from_be_bytes(*question_at?),
            in_hosts: Duration::from_nanos(waited),
        })
    }

    /// The number of a question or an answer of ours.
    fn number(&self, datagram: &[u8]) -> Option<u64> {
        let (token, rest) = datagram.split_first_chunk()?;
        (u64::from_be_bytes(*token) == self.token).then_some(u64::from_be_bytes(*rest.first_chunk()?))
    }
}

fn numbers<T>(asked: &BTreeMap<u64, T>) -> Vec<u64> {
    asked.keys().copied().collect()
}

/// A socket of UDP and a listening one of TCP at the first of `ports` that is free for both; none given: at any.
fn bound(address: IpAddr, ports: &[u16]) -> io::Result<(Socket, Socket)> {
    let both = |port| {
        let (udp, tcp) = (
            open(address)?,
            Socket::new(Domain::for_address(SocketAddr::new(address, 0)), Type::STREAM, Some(Protocol::TCP))?,
        );
        udp.bind(&SocketAddr::new(address, port).into())?;
        tcp.bind(&udp.local_addr()?)?;
        tcp.listen(MAX_HANDSHAKES)?;
        Ok((udp, tcp))
    };
    let any = [0; ANY_TRIES];
    let mut ports = if ports.is_empty() { &any[..] } else { ports }.iter();
    ports.find_map(|&port| both(port).ok()).map_or_else(|| both(0), Ok)
}

fn open(address: IpAddr) -> io::Result<Socket> {
    let domain = if address.is_ipv6() { Domain::IPV6 } else { Domain::IPV4 };
    Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn loopback_is_one_hop_away_and_carries_what_it_says() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let reflector = Reflector::start(address, &[], 7, None).expect("a socket");
        let found = measure(SocketAddr::new(address, reflector.port), 7).expect("loopback");
        assert!(found["rtt"].as_u64() > Some(0), "{found}");
        assert_eq!(found["hops"], 1, "{found}");
        let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").expect("a loopback device");
        assert_eq!(
            found["mtu"].to_string(),
            mtu.trim().parse::<u32>().expect("a number").min(65_535).to_string()
        );
        assert!(found["bandwidth"].as_f64() > Some(1e6), "{found}");
    }

    #[test]
    fn a_process_that_comes_late_makes_no_path_longer() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (socket, _listener) = bound(address, &[]).expect("sockets");
        datagram::stamp_arrivals(&socket).expect("Linux");
        let at = socket.local_addr().expect("an address").as_socket().expect("IPv4");
        let busy = thread::spawn(move || {
            let mut buffer = [0; SHORTEST];
            for _ in 0..EXCHANGES {
                thread::sleep(Duration::from_millis(40));
                reflect(&socket, &mut buffer, 7, None).expect("a question");
            }
        });
        let mut prober = Prober::new(at, 7).expect("a socket");
        let shortest = prober.round_trip().expect("loopback").expect("answers");
        busy.join().expect("no panic");
        assert!(shortest < 20_000_000, "{shortest}");
        // Answers are waited for as long as they take.
        assert!(prober.patience >= Duration::from_millis(140), "{:?}", prober.patience);
    }

    #[test]
    fn another_token_gets_no_answer() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let reflector = Reflector::start(address, &[], 7, None).expect("a socket");
        let mut prober = Prober::new(SocketAddr::new(address, reflector.port), 8).expect("a socket");
        prober.patience = Duration::from_millis(300);
        assert_eq!(prober.round_trip().expect("loopback"), None);
    }
}
