//! The emulator as its user sees it: links that are there as long as it is.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use crate::config::{LiveChange, Setup, Start};
use crate::event_loop::{Command, EventLoop};
use crate::report::Report;
use crate::tap::TapError;
use crate::writer;

/// Why links cannot be emulated.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the values in the message
pub enum SetupError {
    #[error("no link")]
    NoLink,
    #[error("{0} is not a directory")]
    NoDirectory(String),
    #[error("link {link:?} has an MTU of {mtu}, outside of 68 to 65521")]
    Mtu { link: String, mtu: u32 },
    #[error("link {link:?} is on the unknown medium {medium:?}")]
    Medium { link: String, medium: String },
    #[error("the sampling interval of the queues is zero")]
    NoInterval,
    #[error(transparent)]
    Tap(#[from] TapError),
    #[error("cannot wait for devices: {0}")]
    Wait(io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl SetupError {
    /// How to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            SetupError::NoLink => "give at least one link",
            SetupError::NoDirectory(_) => "make the run directory before the emulator starts",
            SetupError::Mtu { .. } => "give an MTU of 1500 bytes, or another an interface can have",
            SetupError::Medium { .. } => "describe the medium among `media`",
            SetupError::NoInterval => "give a positive time, 1 ms or more",
            SetupError::Tap(error) => error.hint(),
            SetupError::Wait(_) => "raise the limit of open files: ulimit -n; Linux 5.11 is needed",
            SetupError::Thread(_) => "end other programs",
        }
    }
}

/// The links of a lab, served by a thread of their own until this is dropped.
#[derive(Debug)]
pub struct Emulator {
    /// None when it is being dropped.
    orders: Option<Sender<Command>>,
    wake: Wake,
    links: Vec<String>,
    threads: Vec<JoinHandle<()>>,
}

impl Emulator {
    /// Makes the interfaces, which are down still, and begins to serve them: until a run starts, packets pass at
    /// once. `notify` is called in a thread of its own for all there is to report.
    ///
    /// # Errors
    /// When the setup makes no sense, or the machine does not allow it.
    pub fn new(setup: Setup, notify: impl FnMut(Report) + Send + 'static) -> Result<Emulator, SetupError> {
        check(&setup)?;
        let wake = Wake::new().map_err(SetupError::Wait)?;
        let names = setup.links.iter().map(|link| link.name.clone()).collect();
        let (orders, received) = mpsc::channel();
        let (work, to_write) = mpsc::channel();
        let dir = setup.dir.clone();
        let event_loop = EventLoop::new(setup, wake.clone(), received, work)?;
        let start = |name: &str, body: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.into()).spawn(body).map_err(SetupError::Thread)
        };
        let writer = start("writer", Box::new(move || writer::serve(dir, &to_write, notify)))?;
        let links = start("links", Box::new(move || event_loop.serve()))?;
        Ok(Emulator { orders: Some(orders), wake, links: names, threads: vec![links, writer] })
    }

    /// A run begins at its time; one in progress is forgotten.
    pub fn start(&self, start: Start) {
        self.order(Command::Start(Box::new(start)));
    }

    /// The run ends now.
    pub fn stop(&self) {
        self.order(Command::Stop);
    }

    /// Changes settings now, in the run that is in progress. False: no link has that name.
    pub fn change(&self, change: LiveChange) -> bool {
        let known = self.links.contains(&change.link);
        if known {
            self.order(Command::Change(Box::new(change)));
        }
        known
    }

    /// Leaves the interfaces to the namespaces they are in, which are about to end: many of them are gone far sooner so.
    pub fn leave(&self) {
        let (done, left) = mpsc::channel();
        self.order(Command::Leave(done));
        // An error says that the thread has ended, and its interfaces with it.
        let _ = left.recv();
    }

    fn order(&self, order: Command) {
        if let Some(orders) = &self.orders {
            // The thread only ends after this is dropped.
            let _ = orders.send(order);
            self.wake.up();
        }
    }
}

impl Drop for Emulator {
    /// Ends the run, waits until all is written, and takes the interfaces away.
    fn drop(&mut self) {
        self.orders = None;
        self.wake.up();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn check(setup: &Setup) -> Result<(), SetupError> {
    if setup.links.is_empty() {
        return Err(SetupError::NoLink);
    }
    if let Some(dir) = setup.dir.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(SetupError::NoDirectory(dir.display().to_string()));
    }
    if setup.sample.queues.is_some_and(|interval| interval.as_ns() == 0) {
        return Err(SetupError::NoInterval);
    }
    for link in &setup.links {
        if let Some(name) = &link.medium
            && !setup.media.iter().any(|medium| medium.name == *name)
        {
            return Err(SetupError::Medium { link: link.name.clone(), medium: name.clone() });
        }
        for end in &link.ends {
            // A TAP device's frame, with its Ethernet header, is at most 64 KiB.
            if !(68..=65_521).contains(&end.mtu) {
                return Err(SetupError::Mtu { link: link.name.clone(), mtu: end.mtu });
            }
        }
    }
    Ok(())
}

/// Wakes the serving thread.
#[derive(Clone, Debug)]
pub(crate) struct Wake(Arc<OwnedFd>);

impl Wake {
    fn new() -> io::Result<Wake> {
        // SAFETY: takes no pointers; a valid descriptor has no other owner.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(Wake(Arc::new(OwnedFd::from_raw_fd(fd))))
            }
        }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn up(&self) {
        let one = 1u64;
        // SAFETY: eight valid bytes. A full counter wakes just as well.
        unsafe { libc::write(self.fd(), std::ptr::from_ref(&one).cast(), 8) };
    }

    pub(crate) fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight valid bytes.
        unsafe { libc::read(self.fd(), std::ptr::from_mut(&mut count).cast(), 8) };
    }
}
