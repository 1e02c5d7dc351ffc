//! The loop of the one thread that serves all links.

use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use tcplab_probe::scheduling::{self, RealTimePriority};
use tcplab_units::Time;

use crate::arena::Arena;
use crate::at_once::at_once;
use crate::clock::{self, Waiter};
use crate::config::{LiveChange, Setup, Start};
use crate::direction::Direction;
use crate::emulator::{SetupError, Wake};
use crate::media::{Media, OnMedium};
use crate::port::Port;
use crate::recording::{DirectionObserver, Recording};
use crate::run::Run;
use crate::segmentation;
use crate::tap::Tap;
use crate::virtio;
use crate::writer::WriterCommand;

/// Frames and bytes read from one device before deliveries and the other devices have their turn. The bytes are fewer
/// than are delivered at one go, so that deliveries come first where the machine is busy.
const READS: usize = 32;
const READ_BYTES: usize = 256 << 10;
/// The longest sleep, ns: queue samples are exact whenever they are taken, but many at once take time.
const ATTENTION: u64 = 50_000_000;
/// How often records of single packets are put in order, ns.
const SETTLING: u64 = 5_000_000;
/// How long ago a packet may have entered when it is read, ns; records are held back so long.
pub(crate) const HOLD: u64 = 20_000_000;
/// The thread has real-time priority while it uses less than this share of its CPU, in percent. At 95 %, Linux would throttle it
/// for 50 ms in which no packet moves.
const MAX_CPU_SHARE: u64 = 90;
/// Longest time without sleep, ns, of a thread that has real-time priority or only spins. It then sleeps, to stay below that
/// share and to release the CPU to a node's thread that waits for it.
const MAX_SPIN: u64 = 100_000;
/// A time on CLOCK_MONOTONIC that is never reached.
const NEVER: u64 = u64::MAX;

/// A command to the thread.
#[derive(Debug)]
pub(crate) enum Command {
    Start(Box<Start>),
    Change(Box<LiveChange>),
    Stop,
    /// Leave the devices to their namespaces; say when it is done.
    Leave(Sender<()>),
}

/// All links of a lab.
pub(crate) struct EventLoop {
    pub(crate) setup: Setup,
    /// Two for each link: its first end, its second end.
    pub(crate) taps: Vec<Tap>,
    /// Two for each link: forward, backward. Direction `n` leads from device `n` to device `n ^ 1`.
    pub(crate) directions: Vec<Direction>,
    /// By direction, before when nothing is due, and until when to sleep (CLOCK_MONOTONIC, ns).
    pub(crate) due: Vec<u64>,
    wake: Vec<u64>,
    /// Media that links share; empty before the run.
    pub(crate) media: Media,
    pub(crate) arena: Arena,
    port: Port,
    waiter: Waiter,
    wakeup: Wake,
    orders: Receiver<Command>,
    pub(crate) work: Sender<WriterCommand>,
    pub(crate) recording: Recording,
    /// Zero of the links' time on CLOCK_MONOTONIC, ns.
    pub(crate) zero: u64,
    pub(crate) run: Option<Run>,
    /// When the run wants something done (CLOCK_MONOTONIC, ns).
    pub(crate) duty: u64,
    pub(crate) malformed: u64,
    /// Frames that entered when they were read, for want of a timestamp.
    pub(crate) unstamped: u64,
    /// By direction, when the last packet entered (CLOCK_MONOTONIC, ns).
    entered: Vec<u64>,
    /// When the records were settled last (CLOCK_MONOTONIC, ns).
    settled: u64,
}

impl EventLoop {
    /// Makes all devices.
    pub(crate) fn new(
        setup: Setup,
        wakeup: Wake,
        orders: Receiver<Command>,
        work: Sender<WriterCommand>,
    ) -> Result<EventLoop, SetupError> {
        let mut waiter = Waiter::new().map_err(SetupError::Wait)?;
        let taps = Tap::open_all(setup.links.iter().flat_map(|link| &link.ends))?;
        for (number, tap) in taps.iter().enumerate() {
            waiter.watch(tap.fd(), number).map_err(SetupError::Wait)?;
        }
        let directions: Vec<_> = taps.iter().map(|_| Direction::new()).collect();
        waiter.watch(wakeup.fd(), taps.len()).map_err(SetupError::Wait)?;
        let names = setup.links.iter().map(|link| link.name.as_str());
        let recording = Recording::new(names, setup.sample.packets);
        let entered = vec![0; directions.len()];
        Ok(EventLoop {
            due: vec![NEVER; directions.len()],
            wake: vec![NEVER; directions.len()],
            taps,
            directions,
            media: Media::default(),
            arena: Arena::new(),
            port: Port::new(),
            waiter,
            wakeup,
            orders,
            work,
            recording,
            zero: 0,
            run: None,
            duty: NEVER,
            malformed: 0,
            unstamped: 0,
            entered,
            settled: 0,
            setup,
        })
    }

    /// Serves the links until its owner is dropped.
    pub(crate) fn serve(mut self) {
        let mut priority = self.be_scheduled();
        loop {
            let mut input = 0;
            while let Some(number) = self.waiter.ready(input) {
                input += 1;
                if number < self.taps.len() {
                    self.read(number);
                } else if !self.obey() {
                    return self.end();
                }
            }
            self.keep_time(clock::now());
            self.deliver();
            let now = clock::now();
            if self.recording.is_eager() && now >= self.settled + SETTLING {
                self.settled = now;
                self.settle(now);
            }
            priority.review(now);
            let wake = self.wake.iter().copied().min().unwrap_or(NEVER).min(self.duty);
            let wake = wake.min(self.media.next_event().as_ns().saturating_add(self.zero));
            // Also an urgent thread with work to do rests, as a node's thread may wait for the same CPU.
            let may_rest = priority.is_urgent() || input == 0;
            if may_rest && now > self.waiter.woken_at() + MAX_SPIN {
                self.waiter.rest();
                self.waiter.wait(now, now);
            } else {
                self.waiter.wait(now, wake.min(now + ATTENTION));
            }
        }
    }

    /// Has this thread served before others, on a CPU of its own where it is given one.
    fn be_scheduled(&self) -> RealTimePriority {
        // Where the nodes have no other CPU to run on, it would only be in the way.
        let alone =
            !self.setup.cpus.is_empty() || std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        scheduling::be_prompt();
        if !self.setup.cpus.is_empty() {
            // Where they are gone meanwhile the links are served elsewhere.
            let _ = scheduling::pin(&self.setup.cpus);
        }
        RealTimePriority::new(MAX_CPU_SHARE, alone)
    }

    /// Reads packets from a device, and enqueues them in its direction.
    fn read(&mut self, number: usize) {
        let mut bytes = 0;
        let wall = clock::since_1970().wrapping_sub(clock::now());
        for _ in 0..READS {
            if bytes >= READ_BYTES {
                break;
            }
            // An interface that is down has nothing either.
            let Ok(Some(read)) = self.taps[number].read(self.arena.room()) else { break };
            bytes += read;
            let entry = self.entry(number, read, wall);
            self.keep_time(entry);
            let Ok(packets) = segmentation::segments(&mut self.arena, read) else {
                self.malformed += 1;
                continue;
            };
            let at = Time::from_ns(entry.saturating_sub(self.zero));
            self.advance_media(at);
            let (direction, tap) = (&mut self.directions[number], &self.taps[number ^ 1]);
            let mut observer = DirectionObserver {
                arena: &mut self.arena,
                recording: &mut self.recording,
                direction: number,
            };
            for packet in packets.iter() {
                direction.enqueue(packet, at, &mut observer, tap, &mut self.port);
            }
            self.due[number] = 0;
            self.contend(number, at);
        }
    }

    /// Does all that happens on shared media up to `now`.
    pub(crate) fn advance_media(&mut self, now: Time) {
        if self.media.next_event() <= now {
            let (media, mut stations) = self.on_medium();
            media.advance(now, &mut stations);
        }
    }

    /// Tells the medium of a direction, if it shares one, that packets have entered at `now`.
    fn contend(&mut self, number: usize, now: Time) {
        let (media, mut stations) = self.on_medium();
        if let Some(medium) = media.of(number) {
            medium.enqueued(number as u32, now, &mut stations);
        }
    }

    fn on_medium(&mut self) -> (&mut Media, OnMedium<'_>) {
        let EventLoop { media, directions, due, arena, recording, .. } = self;
        (media, OnMedium { directions, due, arena, recording })
    }

    /// When the frame of `read` bytes at the front of the room was handed over by its node.
    ///
    /// The time is not before that of the frame before it, nor so long ago that the records of that time are
    /// complete. `wall` leads from CLOCK_MONOTONIC to CLOCK_REALTIME.
    #[inline]
    fn entry(&mut self, number: usize, read: usize, wall: u64) -> u64 {
        let now = clock::now();
        let frame = self.arena.room().get(virtio::LEN..read).unwrap_or_default();
        let entry = match self.taps[number].timestamp(frame) {
            Some(timestamp) => {
                let earliest = self.entered[number].max(now.saturating_sub(HOLD));
                timestamp.wrapping_sub(wall).clamp(earliest, now)
            }
            None => {
                self.unstamped += 1;
                now
            }
        };
        self.entered[number] = entry;
        entry
    }

    /// Writes what is due.
    fn deliver(&mut self) {
        let now = clock::now();
        let zero = self.zero;
        self.advance_media(Time::from_ns(now.saturating_sub(zero)));
        for number in 0..self.directions.len() {
            if self.due[number] > now {
                continue;
            }
            let mut observer = DirectionObserver {
                arena: &mut self.arena,
                recording: &mut self.recording,
                direction: number,
            };
            let time = || Time::from_ns(clock::now().saturating_sub(zero));
            let next =
                self.directions[number].deliver(time, &mut observer, &self.taps[number ^ 1], &mut self.port);
            self.due[number] = next.due.as_ns().saturating_add(zero);
            let wake = next.wake.as_ns().saturating_add(zero);
            self.wake[number] = wake.saturating_sub(self.waiter.margin(next.precise));
        }
    }

    /// Does what the run wants done by `now`.
    #[inline]
    fn keep_time(&mut self, now: u64) {
        if now >= self.duty {
            self.duty = self.do_duty(now);
        }
    }

    /// Follows orders; false when there will be no more.
    #[cold]
    fn obey(&mut self) -> bool {
        self.wakeup.clear();
        loop {
            match self.orders.try_recv() {
                Ok(Command::Start(start)) => self.prepare(*start),
                Ok(Command::Change(change)) => self.change(*change),
                Ok(Command::Stop) => self.stop(),
                Ok(Command::Leave(done)) => {
                    let stamps: Vec<_> = self.taps.iter_mut().filter_map(Tap::leave).collect();
                    // The kernel waits for RCU, 30 ms or so, with each socket that is closed.
                    at_once(stamps, drop);
                    // Whoever does not wait need not know.
                    let _ = done.send(());
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }
}
