//! The loop of the one thread that serves all links.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use tcplab_link::{Direction, Link, component_seed};
use tcplab_units::{Span, Time};

use crate::arena::Arena;
use crate::capture::Captures;
use crate::changes::{self, Planned};
use crate::clock::{self, Waiter};
use crate::config::{Setup, Start, What};
use crate::cut;
use crate::emulator::Wake;
use crate::frame::Keep;
use crate::lateness::Lateness;
use crate::port::Port;
use crate::recording::{Recording, Watcher};
use crate::report::{Facts, LinkFacts, Progress, WayFacts};
use crate::streams::Streams;
use crate::tap::{Tap, TapError};
use crate::way::Way;
use crate::writer::Work;

/// Frames read from one device before deliveries and the other devices have their turn.
const READS: usize = 16;
/// How often what was recorded is written and progress told, ns.
const TELLING: u64 = 1_000_000_000;
/// Rows of packets, and bytes of captures, that are written before that.
const ROWS: usize = 1 << 16;
const CAPTURED: usize = 1 << 20;
/// The longest sleep, ns: queue samples are exact whenever they are taken, but many at once take time.
const ATTENTION: u64 = 50_000_000;

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum Order {
    Start(Box<Start>),
    Stop,
}

/// All links of a lab.
pub(crate) struct Pump {
    setup: Setup,
    taps: Vec<Tap>,
    /// Two for each link: forward, backward. Way `n` reads from device `n` and writes to device `n ^ 1`.
    ways: Vec<Way>,
    /// By way, when it wants calling.
    next: Vec<u64>,
    arena: Arena,
    port: Port,
    waiter: Waiter,
    wake: Wake,
    orders: Receiver<Order>,
    work: Sender<Work>,
    recording: Recording,
    run: Run,
    malformed: u64,
}

/// Where the run is.
enum Run {
    /// Packets pass at once.
    Waiting,
    /// It begins when its time has come.
    Starting(Box<Start>),
    Running(Box<Running>),
    /// It is over; the links go on as they are, unrecorded.
    Over { zero: u64 },
}

struct Running {
    zero: u64,
    end: Time,
    next_sample: Time,
    next_telling: Time,
    changes: Vec<Planned>,
    changes_done: usize,
    /// By way, at present.
    delays: Vec<Span>,
    cpu_before: u64,
    overflows_before: u64,
}

impl Pump {
    /// Makes all devices.
    pub(crate) fn new(
        setup: Setup,
        wake: Wake,
        orders: Receiver<Order>,
        work: Sender<Work>,
    ) -> Result<Pump, PumpError> {
        let mut waiter = Waiter::new()?;
        let (mut taps, mut ways) = (Vec::new(), Vec::new());
        for link in &setup.links {
            for end in &link.ends {
                let tap = Tap::open(end)?;
                waiter.watch(tap.fd(), taps.len())?;
                ways.push(Way::new());
                taps.push(tap);
            }
        }
        waiter.watch(wake.fd(), taps.len())?;
        let recording = Recording::new(setup.links.iter().map(|link| link.name.as_str()), setup.sample.packets);
        Ok(Pump {
            next: vec![u64::MAX; ways.len()],
            taps,
            ways,
            arena: Arena::new(),
            port: Port::new(),
            waiter,
            wake,
            orders,
            work,
            recording,
            run: Run::Waiting,
            malformed: 0,
            setup,
        })
    }

    /// Serves the links until nobody gives orders any more.
    pub(crate) fn serve(mut self) {
        let mut now = clock::now();
        loop {
            let ready: Ready = self.waiter.ready().collect();
            for &number in ready.as_slice() {
                if number < self.taps.len() {
                    self.read(number);
                } else if !self.obey() {
                    return;
                }
            }
            now = clock::now().max(now);
            self.keep_time(now);
            self.deliver(now);
            self.settle();
            now = clock::now().max(now);
            let next = self.next.iter().copied().min().unwrap_or(u64::MAX);
            let until = next.min(self.next_duty()).min(now + ATTENTION);
            self.waiter.wait(now, until);
        }
    }

    /// Reads what a device has.
    fn read(&mut self, number: usize) {
        let (way, to) = (&mut self.ways[number], number ^ 1);
        for _ in 0..READS {
            let read = match self.taps[number].read(self.arena.room()) {
                Ok(Some(read)) => read,
                Ok(None) => break,
                // The interface is down: what was in it is gone.
                Err(_) => break,
            };
            let now = clock::now();
            let Ok(packets) = cut::take(&mut self.arena, read) else {
                self.malformed += 1;
                continue;
            };
            // Rows of samples taken until now must not see these packets.
            if let Run::Running(running) = &mut self.run {
                running.sample(now, way_sampler(&mut self.recording, &mut self.arena), way, number);
            }
            let zero = self.run.zero();
            let at = Time::from_ns(now.saturating_sub(zero));
            let mut watch = Watcher { arena: &mut self.arena, recording: &mut self.recording, way: number };
            for packet in packets.iter() {
                way.offer(packet, at, &mut watch, &self.taps[to], &mut self.port);
            }
        }
    }
}
