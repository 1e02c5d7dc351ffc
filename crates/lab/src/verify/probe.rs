//! Frames sent over a link and noted at its other end, in both namespaces with packet(7) sockets.
//!
//! The frames are of an EtherType for experiments (IEEE 802). They go to an address that bridges do not forward, so
//! that they stay on their link, and no stack answers them. A frame holds the time at which it is sent; the kernel
//! says when it came.

use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};

use super::budget::Takes;

/// For local experiments.
const ETHERTYPE: u16 = 0x88b5;
/// "Nearest bridge" (IEEE 802.1Q, table 8-1).
const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];
/// Ethernet header, sequence number, time of sending.
pub(super) const MIN_FRAME: usize = 14 + 4 + 8;
/// A burst that is not read at once must find room.
const SOCKET_BUFFER: usize = 64 << 20;
/// How long a train may take to be sent.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Time of a frame on a slow machine: sending it, taking it over the link, noting it.
const WORK: Duration = Duration::from_micros(10);
/// Frames sent before those that came are read.
const AT_ONCE: usize = 128;

/// A frame that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) number: u32,
    /// Both in ns since 1970.
    pub(super) sent: u64,
    pub(super) came: u64,
}

impl Arrival {
    /// Seconds from its sending.
    pub(super) fn delay(&self) -> f64 {
        self.came.saturating_sub(self.sent) as f64 / 1e9
    }
}

/// One direction of a link.
pub(super) struct Probe {
    sender: OwnedFd,
    receiver: OwnedFd,
    next: u32,
    seen: BTreeSet<u32>,
    arrivals: Vec<Arrival>,
    /// When the first and the last frame were sent.
    sending: Option<(u64, u64)>,
}

/// The fates of probe frames.
pub(super) struct Outcome {
    pub(super) sent: u32,
    /// Each frame once, in the order in which they came.
    pub(super) arrivals: Vec<Arrival>,
    /// From the first frame to the last, seconds.
    pub(super) sending: f64,
    /// Time was over before it was sent, or what was under way could come.
    pub(super) cut: bool,
}

/// A socket that sends from an interface of the network namespace this thread is in.
pub(crate) fn sender(interface: &str) -> io::Result<OwnedFd> {
    let socket = bound(interface, 0)?;
    // Frames that the emulator has not read yet count toward it: those of a burst would be rejected here, not by the link.
    if setsockopt(&socket, sockopt::SndBufForce, &SOCKET_BUFFER).is_err() {
        setsockopt(&socket, sockopt::SndBuf, &SOCKET_BUFFER)?;
    }
    Ok(socket)
}

/// A socket that notes what comes to an interface of the network namespace this thread is in.
pub(crate) fn receiver(interface: &str) -> io::Result<OwnedFd> {
    let socket = bound(interface, ETHERTYPE)?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    if setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BUFFER).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BUFFER)?;
    }
    Ok(socket)
}

fn bound(interface: &str, protocol: u16) -> io::Result<OwnedFd> {
    let index = nix::net::if_::if_nametoindex(interface)?;
    // SAFETY: takes no pointers; a valid descriptor has no other owner.
    let socket = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let fd = libc::socket(libc::AF_PACKET, kind, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: all zeros is a value of this plain structure, and the pointer and length are its own.
    let done = unsafe {
        let mut at: libc::sockaddr_ll = mem::zeroed();
        at.sll_family = libc::AF_PACKET as u16;
        at.sll_protocol = protocol.to_be();
        at.sll_ifindex = index as i32;
        libc::bind(socket.as_raw_fd(), (&raw const at).cast(), mem::size_of_val(&at) as u32)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

impl Probe {
    pub(super) fn new(sender: OwnedFd, receiver: OwnedFd) -> Probe {
        Probe { sender, receiver, next: 0, seen: BTreeSet::new(), arrivals: Vec::new(), sending: None }
    }

    /// Sends one frame of a size. A full queue of the device is a loss like any other.
    fn send(&mut self, size: usize) -> io::Result<()> {
        let mut frame = vec![0; size.max(MIN_FRAME)];
        frame[..6].copy_from_slice(&DESTINATION);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        frame[14..18].copy_from_slice(&self.next.to_be_bytes());
        let now = now();
        frame[18..26].copy_from_slice(&now.to_be_bytes());
        self.next += 1;
        self.sending = Some((self.sending.map_or(now, |(first, _)| first), now));
        match nix::unistd::write(&self.sender, &frame) {
            Ok(_) | Err(Errno::ENOBUFS | Errno::EAGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take(&mut self) -> io::Result<()> {
        let mut buffer = [0_u8; MIN_FRAME];
        let mut control = nix::cmsg_space!(libc::timespec);
        loop {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let received = recvmsg::<SockaddrStorage>(
                self.receiver.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                MsgFlags::MSG_TRUNC,
            );
            let came = match received {
                Ok(message) => message.cmsgs()?.find_map(|one| match one {
                    ControlMessageOwned::ScmTimestampns(time) => Some(ns(time.tv_sec(), time.tv_nsec())),
                    _ => None,
                }),
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let (number, sent) = (&buffer[14..18], &buffer[18..26]);
            let (Ok(number), Ok(sent), Some(came)) = (number.try_into(), sent.try_into(), came) else {
                continue;
            };
            let arrival =
                Arrival { number: u32::from_be_bytes(number), sent: u64::from_be_bytes(sent), came };
            if self.seen.insert(arrival.number) {
                self.arrivals.push(arrival);
            }
        }
    }

    fn outcome(&mut self, sent: u32, cut: bool) -> Outcome {
        let (first, last) = self.sending.take().unwrap_or_default();
        let from = self.next - sent;
        let mut arrivals = mem::take(&mut self.arrivals);
        // Nothing of an earlier train.
        arrivals.retain(|one| one.number >= from);
        Outcome { sent, arrivals, sending: (last - first) as f64 / 1e9, cut }
    }
}

/// Frames that a direction sends: so many of a size, `apart` from each other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Train {
    pub(super) frames: u32,
    pub(super) size: usize,
    pub(super) apart: Duration,
    /// How long the last may be under way.
    pub(super) patience: Duration,
}

impl Train {
    pub(super) fn takes(&self) -> Takes {
        let sending = (self.apart * self.frames.saturating_sub(1)).min(MAX_TIME);
        Takes { waiting: sending + self.patience, working: WORK * self.frames }
    }
}

/// Closes the sockets, side by side: for each that receives, the kernel waits until no packet is on its way to it
/// (`packet_release`), 15 ms or so.
pub(super) fn close(probes: Vec<Probe>) {
    std::thread::scope(|scope| {
        let closing: Vec<_> = probes
            .into_iter()
            .filter_map(|probe| std::thread::Builder::new().spawn_scoped(scope, move || drop(probe)).ok())
            .collect();
        closing.into_iter().for_each(|thread| drop(thread.join()));
    });
}

/// Sends a train in each direction, all side by side, and waits for what comes, no longer than `until`.
pub(super) fn exchange(
    probes: &mut [&mut Probe],
    trains: &[Train],
    until: Instant,
) -> io::Result<Vec<Outcome>> {
    let began = Instant::now();
    let mut running: Vec<Running> = trains.iter().map(|train| Running::new(*train, began, until)).collect();
    loop {
        for (train, probe) in running.iter_mut().zip(probes.iter_mut()) {
            train.send(probe)?;
        }
        probes.iter_mut().try_for_each(|probe| probe.take())?;
        let now = Instant::now();
        let waking =
            running.iter().zip(probes.iter()).filter_map(|(train, probe)| train.waits_for(probe, now));
        let Some(next) = waking.min() else { break };
        let mut polled: Vec<PollFd<'_>> =
            probes.iter().map(|probe| PollFd::new(probe.receiver.as_fd(), PollFlags::POLLIN)).collect();
        // Rounded down: a frame that is due waits for no tick.
        let wait = next.saturating_duration_since(now).as_millis();
        match poll(&mut polled, PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let outcomes = probes.iter_mut().zip(running).map(|(probe, train)| {
        let cut = train.is_cut(probe);
        probe.outcome(train.sent, cut)
    });
    Ok(outcomes.collect())
}

/// A train on its way.
struct Running {
    train: Train,
    sent: u32,
    /// When the next frame is due.
    due: Instant,
    /// No frame is sent after.
    closing: Instant,
    /// When the last that was sent must have come.
    end: Instant,
    /// When time is over.
    until: Instant,
}

impl Running {
    fn new(train: Train, began: Instant, until: Instant) -> Running {
        let closing = (began + MAX_TIME).min(until);
        Running { train, sent: 0, due: began, closing, end: began, until }
    }

    fn is_sending(&self, now: Instant) -> bool {
        self.sent < self.train.frames && now < self.closing
    }

    /// Sends what is due. A late frame is not made up for: a burst would fill a queue that frames at their pace do not.
    fn send(&mut self, probe: &mut Probe) -> io::Result<()> {
        for _ in 0..AT_ONCE {
            let now = Instant::now();
            if !self.is_sending(now) || now < self.due {
                break;
            }
            probe.send(self.train.size)?;
            self.sent += 1;
            self.due = now + self.train.apart;
            self.end = now + self.train.patience;
        }
        Ok(())
    }

    /// Until when there is something to wait for; none: all has come, or will not.
    fn waits_for(&self, probe: &Probe, now: Instant) -> Option<Instant> {
        if self.is_sending(now) {
            return Some(self.due);
        }
        let end = self.end.min(self.until);
        (probe.arrivals.len() < self.sent as usize && now < end).then_some(end)
    }

    /// It was not sent, or not waited for, to its end.
    fn is_cut(&self, probe: &Probe) -> bool {
        let missing = probe.arrivals.len() < self.sent as usize && self.end > self.until;
        missing || (self.sent < self.train.frames && self.closing == self.until)
    }
}

fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |time| ns(time.tv_sec(), time.tv_nsec()))
}

fn ns(seconds: i64, ns: i64) -> u64 {
    seconds.unsigned_abs() * 1_000_000_000 + ns.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    use super::*;

    fn probe() -> io::Result<Probe> {
        let flags = SockFlag::SOCK_NONBLOCK;
        let (near, far) = socketpair(AddressFamily::Unix, SockType::Datagram, None, flags)?;
        Ok(Probe::new(near, far))
    }

    #[test]
    fn nothing_is_sent_once_time_is_over() -> io::Result<()> {
        let train =
            Train { frames: 3, size: MIN_FRAME, patience: Duration::from_secs(9), ..Train::default() };
        let outcomes = exchange(&mut [&mut probe()?], &[train], Instant::now())?;
        assert!(outcomes[0].cut);
        assert_eq!(outcomes[0].sent, 0);
        Ok(())
    }

    #[test]
    fn what_was_sent_is_not_waited_for_once_time_is_over() -> io::Result<()> {
        let mut probe = probe()?;
        let began = Instant::now();
        let train =
            Train { frames: 1, size: MIN_FRAME, patience: Duration::from_secs(9), ..Train::default() };
        let mut running = Running::new(train, began, began + Duration::from_secs(8));
        running.send(&mut probe)?;
        assert_eq!(running.waits_for(&probe, began), Some(running.until));
        assert_eq!(running.waits_for(&probe, running.until), None);
        assert!(running.is_cut(&probe));
        Ok(())
    }

    #[test]
    fn a_train_without_frames_is_over_at_once_and_not_cut() -> io::Result<()> {
        let outcomes = exchange(&mut [&mut probe()?], &[Train::default()], Instant::now())?;
        assert!(!outcomes[0].cut);
        Ok(())
    }
}
