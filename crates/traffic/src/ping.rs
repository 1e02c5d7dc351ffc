//! ICMP echo requests (RFC 792, RFC 4443), timed by the kernel's arrival stamps.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use socket2::{Domain, Protocol, Socket, Type};
use tcplab_plan::Traffic;
use tcplab_probe::{clock, scheduling};
use tcplab_units::Span;

use crate::{Context, End, Ping, Summary, TrafficError};

const ICMP_HEADER: usize = 8;
/// A probe's number in its payload, where that has room for it.
const NUMBER: usize = 8;
/// Margin before a deadline from which on a precise sender spins, ns.
const MARGIN: u64 = 120_000;
/// Longest wait before a request to stop is looked at, ns.
const GLANCE: u64 = 100_000_000;
/// How long answers are awaited after the last probe: two of the longest round trips, but no less than `LINGER_MIN`. Where no
/// probe was answered, `LINGER_UNANSWERED`, ns. ping(8) does likewise (`-W`).
const LINGER_MIN: u64 = 1_000_000_000;
const LINGER_UNANSWERED: u64 = 10_000_000_000;
/// Maximum that an IPv4 packet can carry after its own header and the ICMP header.
const LARGEST: u32 = 65_507;

/// A prepared ping flow.
#[derive(Debug)]
pub(crate) struct Pings {
    sockets: Vec<Socket>,
    /// The kernel computes checksums, sets identifiers and strips IP headers.
    datagram: bool,
}

impl Pings {
    pub fn prepare(end: &End) -> Result<Pings, TrafficError> {
        if let Traffic::Ping(ping) = &end.flow.traffic {
            let payload = ping.payload;
            if ping.interval == Span::ZERO {
                return Err(TrafficError::Zero { what: "interval" });
            }
            if payload > LARGEST {
                return Err(TrafficError::Payload { payload, min: 0, max: LARGEST });
            }
        }
        let mut pings = Pings { sockets: Vec::new(), datagram: false };
        for _ in 0..end.flow.streams {
            let failed = |source| TrafficError::Socket { what: "ping", source };
            let (domain, protocol) = match end.address {
                IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
                IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
            };
            let socket = match Socket::new(domain, Type::RAW, Some(protocol)) {
                Ok(socket) => socket,
                Err(_) => {
                    pings.datagram = true;
                    Socket::new(domain, Type::DGRAM, Some(protocol)).map_err(failed)?
                }
            };
            // Without the kernel's stamp the arrival is timed here, a little later.
            let on: libc::c_int = 1;
            let _ = crate::socket::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, on);
            let address = SocketAddr::new(end.address, 0);
            crate::socket::set_traffic_class(&socket, address, &end.flow)?;
            socket.connect(&address.into()).map_err(|source| TrafficError::Connect { address, source })?;
            pings.sockets.push(socket);
        }
        Ok(pings)
    }

    /// The identifier of each stream's requests. That of an unprivileged socket is its port (icmp(7)).
    pub fn identifiers(&self) -> Vec<u16> {
        self.sockets.iter().map(|socket| identifier(socket, self.datagram)).collect()
    }

    pub fn run(self, end: &End, context: &Context) -> Result<(), TrafficError> {
        let datagram = self.datagram;
        std::thread::scope(|scope| {
            let mut outcome = Ok(());
            for (stream, socket) in (0u64..).zip(self.sockets) {
                let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
                    if let Err(source) = Pinger::new(&socket, stream, datagram, end, context).run() {
                        let address = SocketAddr::new(end.address, 0);
                        let error = TrafficError::Broken { stream, address, source };
                        context.sink.failed(&end.flow, &error);
                    }
                });
                if let Err(error) = spawned {
                    outcome = Err(TrafficError::Thread(error));
                }
            }
            outcome
        })
    }
}

/// A probe without an answer yet.
struct Outstanding {
    seq: u64,
    /// ns since the run's start.
    time: u64,
    /// CLOCK_REALTIME, ns.
    sent: u64,
}

struct Pinger<'a> {
    socket: &'a Socket,
    stream: u64,
    end: &'a End,
    context: &'a Context,
    datagram: bool,
    v6: bool,
    identifier: u16,
    outstanding: VecDeque<Outstanding>,
    answered: u64,
    /// When the last answer came, ns since the run's start.
    last: Option<u64>,
    /// The longest round trip so far, ns.
    longest: u64,
    packet: Vec<u8>,
    buffer: Vec<u8>,
}

impl<'a> Pinger<'a> {
    fn new(
        socket: &'a Socket,
        stream: u64,
        datagram: bool,
        end: &'a End,
        context: &'a Context,
    ) -> Pinger<'a> {
        let payload = match &end.flow.traffic {
            Traffic::Ping(ping) => ping.payload as usize,
            _ => 0,
        };
        Pinger {
            socket,
            stream,
            end,
            context,
            datagram,
            v6: end.address.is_ipv6(),
            identifier: identifier(socket, datagram),
            outstanding: VecDeque::new(),
            answered: 0,
            last: None,
            longest: 0,
            packet: vec![0x55; ICMP_HEADER + payload],
            buffer: vec![0; 60 + ICMP_HEADER + NUMBER],
        }
    }

    fn run(mut self) -> io::Result<()> {
        let Traffic::Ping(ping) = &self.end.flow.traffic else { return Ok(()) };
        let (interval, count) = (ping.interval.as_ns(), ping.count);
        scheduling::be_prompt();
        let cpu = clock::thread_cpu();
        let start = self.end.start();
        let stop = self.end.stop(self.context.clock.duration);
        let (mut seq, mut soonest) = (0, 0);
        // Until the run begins its clock stands at zero, so that zero is due.
        self.context.sleep_until(start);
        while count.is_none_or(|count| seq < count) {
            let due = start.saturating_add(seq.saturating_mul(interval)).max(soonest);
            if due >= stop || !self.listen_until(due)? {
                break;
            }
            self.send(seq)?;
            seq += 1;
            // Probes that were held up do not leave at once: they would wait for one another on the link, and measure that.
            soonest = self.context.clock.now().saturating_add(interval / 2);
        }
        let has_its_time = self.end.has_its_time(self.context.clock.duration);
        let complete = count.map_or(has_its_time, |count| seq == count);
        let ended = self.context.stop.load(Ordering::Relaxed);
        let last = self.context.clock.now();
        while !self.outstanding.is_empty() && !self.context.over() {
            let (now, until) = (self.context.clock.now(), last.saturating_add(self.linger()));
            if now >= until {
                break;
            }
            self.listen_until(until.min(now + GLANCE).min(self.context.clock.duration))?;
        }
        for lost in std::mem::take(&mut self.outstanding) {
            self.report(&lost, None);
        }
        let size = (self.packet.len() - ICMP_HEADER) as u64;
        let over = self.context.clock.now().min(self.context.clock.duration);
        let end = if count == Some(seq) || stop < self.context.clock.duration && !ended {
            self.last.unwrap_or(over).min(over)
        } else if ended {
            over
        } else {
            stop
        };
        self.context.sink.summary(
            &self.end.flow,
            &Summary {
                stream: self.stream,
                start,
                end,
                bytes_sent: Some(seq * size),
                bytes_received: Some(self.answered * size),
                segments_sent: Some(seq),
                losses_detected: Some(seq - self.answered),
                cpu_sender: Some((clock::thread_cpu() - cpu) as f64 / 1e9),
                complete,
                ..Summary::default()
            },
        );
        Ok(())
    }

    /// How long after the last probe an answer may come, ns.
    fn linger(&self) -> u64 {
        if self.answered == 0 { LINGER_UNANSWERED } else { self.longest.saturating_mul(2).max(LINGER_MIN) }
    }

    fn send(&mut self, seq: u64) -> io::Result<()> {
        let packet = &mut self.packet;
        packet[..ICMP_HEADER].fill(0);
        packet[0] = if self.v6 { 128 } else { 8 };
        packet[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        packet[6..8].copy_from_slice(&(seq as u16).to_be_bytes());
        if packet.len() >= ICMP_HEADER + NUMBER {
            packet[ICMP_HEADER..ICMP_HEADER + NUMBER].copy_from_slice(&seq.to_be_bytes());
        }
        if !self.v6 {
            let sum = checksum(packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let (sent, time) = (clock::realtime(), self.context.clock.now());
        self.outstanding.push_back(Outstanding { seq, time, sent });
        match self.socket.send(packet) {
            Ok(_) => Ok(()),
            // No route, no neighbour, no room, or an ICMP error about an earlier probe: this one is lost.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENOBUFS | libc::ECONNREFUSED)
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes answers until `time` of the run; false if the run is over first.
    fn listen_until(&mut self, time: u64) -> io::Result<bool> {
        loop {
            if self.context.over() {
                return Ok(false);
            }
            let now = self.context.clock.now();
            if now >= time {
                while self.take()? {}
                return Ok(true);
            }
            if self.end.spin {
                let near = time - now < MARGIN || !self.outstanding.is_empty();
                if !near {
                    let instant = self.context.clock.instant((time - MARGIN).min(now + GLANCE));
                    clock::sleep_until(instant, &self.context.stop);
                }
                while self.take()? {}
                std::hint::spin_loop();
            } else if self.readable((time - now).min(GLANCE))? {
                while self.take()? {}
            }
        }
    }

    /// Waits for something to read, at most `ns`.
    fn readable(&self, ns: u64) -> io::Result<bool> {
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as _,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: one valid pollfd, a valid timeout and no signal mask.
        let ready = unsafe { libc::ppoll(&mut poll, 1, &timeout, std::ptr::null()) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
        }
        Ok(ready > 0)
    }

    /// Reads one packet if there is any.
    fn take(&mut self) -> io::Result<bool> {
        let mut control = [0u64; 8];
        let mut vector =
            libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
        // SAFETY: an all-zero msghdr is valid; its parts outlive the call; control data is read as the CMSG
        // functions say, within what the kernel filled.
        let (got, stamp) = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &mut vector;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control) as _;
            let got = libc::recvmsg(self.socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT);
            if got < 0 {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
                    // An ICMP error about one of our probes.
                    io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable => Ok(true),
                    _ => Err(error),
                };
            }
            let mut stamp = None;
            let header = libc::CMSG_FIRSTHDR(&message);
            if !header.is_null() && (*header).cmsg_type == libc::SCM_TIMESTAMPNS {
                let ts = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                stamp = Some(ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64);
            }
            (got as usize, stamp)
        };
        let arrived = stamp.unwrap_or_else(clock::realtime);
        if let Some(seq) = self.answer(&self.buffer[..got]) {
            // The newest probe of this 16-bit number: an answer that took 65,536 probes is beyond telling.
            let at = self.outstanding.iter().rposition(|probe| probe.seq as u16 == seq);
            if let Some(probe) = at.and_then(|at| self.outstanding.remove(at)) {
                let rtt = arrived.saturating_sub(probe.sent);
                self.answered += 1;
                self.longest = self.longest.max(rtt);
                self.last = self.last.max(Some(probe.time.saturating_add(rtt)));
                self.report(&probe, Some(rtt));
            }
        }
        Ok(true)
    }

    /// The 16-bit number of an answer to a probe of ours.
    fn answer(&self, packet: &[u8]) -> Option<u16> {
        let icmp = if self.v6 || self.datagram {
            packet
        } else {
            packet.get(usize::from(packet.first()? & 15) * 4..)?
        };
        let field = |at: usize| Some(u16::from_be_bytes([*icmp.get(at)?, *icmp.get(at + 1)?]));
        let reply = if self.v6 { 129 } else { 0 };
        let ours = self.datagram || field(4)? == self.identifier;
        (*icmp.first()? == reply && ours).then(|| field(6)).flatten()
    }

    fn report(&self, probe: &Outstanding, rtt: Option<u64>) {
        let row = Ping { time: probe.time, stream: self.stream, seq: probe.seq, rtt };
        self.context.sink.ping(&self.end.flow, &row);
    }
}

fn identifier(socket: &Socket, datagram: bool) -> u16 {
    if datagram {
        return crate::socket::local_port(socket).unwrap_or(0);
    }
    // Other pingers of this namespace have other identifiers: processes by pid, streams by descriptor.
    (std::process::id() as u16).wrapping_mul(31).wrapping_add(socket.as_raw_fd() as u16)
}

/// The Internet checksum (RFC 1071).
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_with_its_checksum_sums_to_nothing() {
        let mut packet = vec![8, 0, 0, 0, 0x12, 0x34, 0, 7, 1, 2, 3];
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&packet), 0);
    }
}
