//! The threads of an accelerator: as many as there must be tables of open files for its connections.
//!
//! The limit of open files bounds a descriptor table (getrlimit(2), RLIMIT_NOFILE), which a process's threads share unless one has
//! unshared its own (close_range(2), CLOSE_RANGE_UNSHARE). All listen at the same ports (socket(7), SO_REUSEPORT), and one of them
//! gets the new connections: the first that has files for them.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use tcplab_plan::Load;

use crate::AcceleratorError;
use crate::sample::Sample;

/// Threads at most.
const MAX: u64 = 16;

/// State that all threads see.
#[derive(Debug)]
pub(crate) struct Threads {
    /// Connections that one thread has open files for.
    room: u64,
    /// Each thread's own; no longer than there may be threads.
    shares: Vec<Share>,
    /// The threads besides the first, and which thread gets new connections.
    begun: Mutex<Begun>,
    /// They shall end.
    over: AtomicBool,
    /// The error for which one of them ended.
    failure: Mutex<Option<AcceleratorError>>,
}

#[derive(Debug, Default)]
struct Begun {
    others: Vec<JoinHandle<()>>,
    chosen: usize,
    /// No further one can be started.
    complete: bool,
}

/// State of one thread.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Its connections.
    pub(crate) open: AtomicU64,
    /// Payload that they hold, bytes, at its last review.
    pub(crate) held: AtomicU64,
    /// As they were then; the first thread's are asked for themselves.
    samples: Mutex<Vec<Sample>>,
}

impl Threads {
    /// For so many connections, where a descriptor table has room for `room`.
    pub(crate) fn for_connections(connections: u64, room: u64) -> Threads {
        let count = connections.div_ceil(limit(room).max(1)).clamp(1, MAX);
        Threads {
            room,
            shares: (0..count).map(|_| Share::default()).collect(),
            begun: Mutex::default(),
            over: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    /// Connections that one thread has open files for.
    pub(crate) fn room(&self) -> u64 {
        self.room
    }

    pub(crate) fn share(&self, number: usize) -> &Share {
        &self.shares[number]
    }

    /// Connections of all threads, and payload held.
    pub(crate) fn sums(&self) -> (u64, u64) {
        let read = |share: &Share| (share.open.load(Ordering::Relaxed), share.held.load(Ordering::Relaxed));
        self.shares.iter().map(read).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// How they stand to their open files.
    pub(crate) fn load(&self) -> Load {
        let begun = self.begun();
        let available = if begun.complete { begun.others.len() + 1 } else { self.shares.len() };
        let any_low = (0..available).any(|number| self.load_of(number) == Load::Low);
        if any_low { Load::Low } else { self.load_of(begun.chosen) }
    }

    fn load_of(&self, number: usize) -> Load {
        Load::of(self.shares[number].open.load(Ordering::Relaxed), limit(self.room))
    }

    /// Sees to it that new connections go to a thread with files for them. `begin` starts the thread of a number; `choose`
    /// names the one that gets them from now on.
    pub(crate) fn direct(
        &self,
        begin: impl FnOnce(usize) -> io::Result<JoinHandle<()>>,
        choose: impl FnOnce(usize) -> io::Result<()>,
    ) {
        let mut begun = self.begun();
        let next = (0..self.shares.len()).find(|number| self.load_of(*number) == Load::Low);
        let Some(next) = next else { return };
        let stays = next == begun.chosen || next > begun.chosen && self.load_of(begun.chosen) != Load::Full;
        if stays || self.ended() {
            return;
        }
        if next > begun.others.len() {
            if begun.complete {
                return;
            }
            match begin(next) {
                Ok(thread) => begun.others.push(thread),
                // Connections pass once these are full.
                Err(_) => {
                    begun.complete = true;
                    return;
                }
            }
        }
        if choose(next).is_ok() {
            begun.chosen = next;
        }
    }

    /// Samples of the threads besides the first.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.shares[1..].iter().flat_map(|share| share.samples().clone()).collect()
    }

    /// Whether they shall end.
    pub(crate) fn ended(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// One of them cannot go on: the first shall end all.
    pub(crate) fn fail(&self, error: AcceleratorError) {
        *self.failure() = Some(error);
        self.over.store(true, Ordering::Relaxed);
    }

    /// The error for which one of them ended.
    pub(crate) fn result(&self) -> Result<(), AcceleratorError> {
        if self.ended() { self.failure().take().map_or(Ok(()), Err) } else { Ok(()) }
    }

    /// Ends the threads besides the first, which calls it.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        let others = std::mem::take(&mut self.begun().others);
        for thread in others {
            let _ = thread.join();
        }
    }

    fn failure(&self) -> MutexGuard<'_, Option<AcceleratorError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    pub(crate) fn put(&self, samples: Vec<Sample>) {
        *self.samples() = samples;
    }

    fn samples(&self) -> MutexGuard<'_, Vec<Sample>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connections of a thread from which on others get the new ones: a tenth of its files is for those that come until then.
fn limit(room: u64) -> u64 {
    room - room / 10
}

/// Starts a thread with a descriptor table of its own, which holds standard input, output and error alone. `open` makes what it
/// works with, and `work` is its work.
pub(crate) fn begin<W>(
    name: &str,
    open: impl FnOnce() -> io::Result<W> + Send + 'static,
    work: impl FnOnce(W) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (ready, opened) = mpsc::channel();
    let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
        let worker = own_descriptor_table().and_then(|()| open());
        match worker {
            Ok(worker) => {
                let _ = ready.send(Ok(()));
                work(worker);
            }
            Err(error) => drop(ready.send(Err(error))),
        }
    })?;
    opened.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map(|()| thread)
}

fn own_descriptor_table() -> io::Result<()> {
    // SAFETY: no object of this thread has a descriptor yet, and those of others stay open in their table.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// The threads that get the connections as these open and close.
    struct Story {
        threads: Threads,
        begun: Cell<usize>,
        chosen: RefCell<Vec<usize>>,
        refuses: bool,
    }

    impl Story {
        fn new(connections: u64, room: u64) -> Story {
            let threads = Threads::for_connections(connections, room);
            Story { threads, begun: Cell::new(0), chosen: RefCell::default(), refuses: false }
        }

        fn at(&self, number: usize, open: u64) -> &Story {
            self.threads.share(number).open.store(open, Ordering::Relaxed);
            self.threads.direct(
                |next| {
                    if self.refuses {
                        return Err(io::ErrorKind::PermissionDenied.into());
                    }
                    self.begun.set(next);
                    std::thread::Builder::new().spawn(|| {})
                },
                |next| {
                    self.chosen.borrow_mut().push(next);
                    Ok(())
                },
            );
            self
        }
    }

    #[test]
    fn another_thread_begins_when_the_files_of_one_are_used_up() {
        let story = Story::new(200, 100);
        story.at(0, 89);
        assert_eq!(story.begun.get(), 0);
        story.at(0, 90);
        assert_eq!((story.begun.get(), story.chosen.borrow().as_slice()), (1, &[1][..]));
        // Not back before a tenth of the first one's are free again.
        story.at(0, 85).at(1, 20);
        assert_eq!(story.chosen.borrow().as_slice(), [1]);
        story.at(0, 81);
        assert_eq!(story.chosen.borrow().as_slice(), [1, 0]);
        assert_eq!(story.threads.sums().0, 101);
        story.threads.end();
    }

    #[test]
    fn they_are_full_when_each_that_there_may_be_is() {
        let story = Story::new(180, 100);
        story.at(0, 90);
        assert_eq!(story.threads.load(), Load::Low);
        story.at(1, 90);
        assert_eq!(story.threads.load(), Load::Full);
        // The one that gets new connections still is.
        story.at(0, 85);
        assert_eq!(story.threads.load(), Load::Full);
        story.at(0, 81);
        assert_eq!((story.threads.load(), story.chosen.borrow().last()), (Load::Low, Some(&0)));
        story.threads.end();
    }

    #[test]
    fn without_another_thread_they_are_full_when_the_first_is() {
        let mut story = Story::new(200, 100);
        story.refuses = true;
        story.at(0, 90);
        assert_eq!(story.threads.load(), Load::Full);
        assert!(story.chosen.borrow().is_empty());
    }

    #[test]
    fn a_thread_has_a_descriptor_table_of_its_own() {
        let (give, given) = mpsc::channel();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let counted = || std::fs::read_dir("/proc/thread-self/fd").unwrap().count();
        let before = counted();
        let thread = begin(
            "other",
            || Ok(()),
            move |()| give.send((counted(), std::fs::metadata("/proc/thread-self/fd/0").is_ok())).unwrap(),
        );
        let (in_thread, _) = given.recv().unwrap();
        thread.unwrap().join().unwrap();
        // Standard streams, and the directory that is read.
        assert!(in_thread <= 4, "{in_thread}");
        assert_eq!(counted(), before);
        assert!(file.metadata().is_ok());
    }
}
