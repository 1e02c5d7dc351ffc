//! Removes a control on kernels without struct_ops links: a process that outlives the owner.
//!
//! There a control is registered by writing to its map. From then on the registration itself holds the map, and only
//! deleting the map's element ends it (`bpf_struct_ops_map_delete_elem`), whoever is gone. So a process is forked that
//! waits until the owner's end of a socket is closed, which the kernel does however the owner ends, and then deletes
//! the element. Where it is killed too, [`lease`](crate::ownership) says what is left.

use std::ffi::CStr;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;

use libbpf_rs::{MapHandle, libbpf_sys};

use crate::ownership;

/// Name of the process (PR_SET_NAME), of at most 15 characters.
const NAME: &CStr = c"tcplab-guardian";

/// A process that takes a control away when this is dropped or the process that holds this ends.
#[derive(Debug)]
pub(crate) struct Guardian {
    process: libc::pid_t,
    owner: Option<UnixStream>,
    // Theirs until both are gone.
    _lease: MapHandle,
}

impl Guardian {
    /// Starts the guardian of a struct_ops map that is loaded but not yet registered; number is the map's.
    pub(crate) fn start(map: BorrowedFd<'_>, number: u32) -> io::Result<Guardian> {
        let lease = ownership::take(number).map_err(io::Error::other)?;
        let (owner, guardian) = UnixStream::pair()?;
        let [map, line] = [map.as_raw_fd(), guardian.as_raw_fd()];
        let mut kept = [map, line, lease.as_fd().as_raw_fd()];
        kept.sort_unstable();
        let process = fork(|| guard(map, line, kept))?;
        drop(guardian);
        let guardian = Guardian { process, owner: Some(owner), _lease: lease };
        // It says by one byte that nothing but its owner's end ends it any more.
        guardian.owner.as_ref().map_or(Ok(()), |mut owner| owner.read_exact(&mut [0]))?;
        Ok(guardian)
    }

    #[cfg(test)]
    pub(crate) fn process(&self) -> libc::pid_t {
        self.process
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.owner = None;
        // SAFETY: waits for a child that has been asked to end; its status is not asked for.
        unsafe { libc::waitpid(self.process, ptr::null_mut(), 0) };
    }
}

/// Runs `child` in a process of its own, with every signal blocked that can be. Other threads' locks stay as they are
/// in the copy, so it may call nothing that allocates or locks.
fn fork(child: impl FnOnce()) -> io::Result<libc::pid_t> {
    // SAFETY: the sets are initialised before they are read; the child calls only what `child` does, and ends.
    unsafe {
        let mut every: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut every);
        // Before the fork, so that there is no moment at which the child could be interrupted.
        libc::pthread_sigmask(libc::SIG_SETMASK, &every, &mut before);
        let process = libc::fork();
        if process == 0 {
            child();
            libc::_exit(0);
        }
        let failed = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        if process < 0 { Err(failed) } else { Ok(process) }
    }
}

/// The guardian's life. `kept` are the descriptors it keeps, in ascending order: the owner's other ones would hold
/// open what others wait for the end of.
fn guard(map: RawFd, line: RawFd, kept: [RawFd; 3]) {
    // SAFETY: only system calls, on descriptors that stay open and values that outlive them.
    unsafe {
        // Away from the owner's terminal and its group, which may be killed as a whole.
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        libc::chdir(c"/".as_ptr());
        let mut first = 0;
        for fd in kept {
            if !close(first, fd - 1) {
                return;
            }
            first = fd + 1;
        }
        if !close(first, RawFd::MAX) {
            return;
        }
        let mut byte = 0u8;
        libc::write(line, ptr::from_ref(&byte).cast(), 1);
        while libc::read(line, ptr::from_mut(&mut byte).cast(), 1) > 0 {}
        libbpf_sys::bpf_map_delete_elem(map, ptr::from_ref(&ownership::KEY).cast());
    }
}

/// Closes the descriptors from `first` to `last`; false if the kernel does not.
fn close(first: RawFd, last: RawFd) -> bool {
    // SAFETY: takes no pointers; what it closes is the child's own copy.
    first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::load::trial::guarded;
    use crate::name::taken;
    use crate::{Loaded, obstacle};

    /// One test at a time: another's sweep would take away what one has abandoned.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Ends the test, with the reason, where controls cannot be loaded.
    macro_rules! skip_if_unable {
        () => {
            if let Some(why) = obstacle() {
                return eprintln!("skipped: {why}; {}", why.hint());
            }
            let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        };
    }

    /// A name that no other test or process has.
    fn unused() -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        format!("tl_g{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
    }

    fn is_registered(name: &str) -> bool {
        taken().iter().any(|listed| listed == name)
    }

    fn wait_for(what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while !condition() {
            assert!(Instant::now() < deadline, "in 5 s not: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn kill(process: libc::pid_t, signal: libc::c_int) {
        // SAFETY: takes no pointers.
        assert_eq!(unsafe { libc::kill(process, signal) }, 0);
    }

    fn status(process: libc::pid_t) -> String {
        fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default()
    }

    fn ended(process: libc::pid_t) -> bool {
        let status = status(process);
        status.is_empty() || status.contains("State:\tZ")
    }

    /// Another process that holds a control until its input ends.
    struct Owner {
        process: Child,
        name: String,
        guardian: libc::pid_t,
    }

    const ASKED: &str = "TCPLAB_TEST_OWNS";

    impl Owner {
        fn start() -> Owner {
            let name = unused();
            let mut process = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "guardian::tests::another_process_that_holds_a_control"])
                .args(["--ignored", "--nocapture"])
                .env(ASKED, &name)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let said = BufReader::new(process.stdout.as_mut().unwrap());
            let line = said.lines().map_while(Result::ok).find(|line| line.contains("guardian: ")).unwrap();
            let (_, guardian) = line.rsplit_once(' ').unwrap();
            assert!(is_registered(&name));
            Owner { process, name, guardian: guardian.parse().unwrap() }
        }

        fn kill(&mut self) {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
        }
    }

    impl Drop for Owner {
        fn drop(&mut self) {
            self.kill();
        }
    }

    #[test]
    #[ignore = "what the other tests start"]
    fn another_process_that_holds_a_control() {
        let Ok(name) = std::env::var(ASKED) else { return };
        let (_loaded, guardian) = guarded("reno", &name).unwrap();
        println!("guardian: {guardian}");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }

    /// Sends a megabyte from one end of a connection to the other.
    fn carry(from: &mut TcpStream, to: &mut TcpStream) {
        let data = vec![7; 1_000_000];
        let mut received = vec![0; data.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| from.write_all(&data).unwrap());
            to.read_exact(&mut received).unwrap();
        });
        assert_eq!(received, data);
    }

    /// A connection over loopback whose client sends with a control.
    fn connection(control: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (option, length) = (control.as_ptr().cast(), control.len() as libc::socklen_t);
        let fd = client.as_raw_fd();
        // SAFETY: the option is `length` bytes long and the descriptor is open.
        let set = unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, option, length) };
        assert_eq!(set, 0, "{control}: {}", io::Error::last_os_error());
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_control_carries_data_until_it_is_dropped_and_its_connections_for_longer() {
        skip_if_unable!();
        for control in ["cubic", "bbr2"] {
            let name = unused();
            let (loaded, guardian) = guarded(control, &name).unwrap();
            let (mut client, mut server) = connection(&name);
            carry(&mut client, &mut server);
            drop(loaded);
            assert!(!is_registered(&name));
            assert!(status(guardian).is_empty(), "its guardian is still there, or waits to be reaped");
            carry(&mut client, &mut server);
        }
    }

    #[test]
    fn a_killed_owner_leaves_neither_control_nor_guardian() {
        skip_if_unable!();
        let mut owner = Owner::start();
        owner.kill();
        wait_for("the control is gone", || !is_registered(&owner.name));
        wait_for("the guardian has ended", || ended(owner.guardian));
    }

    #[test]
    fn a_guardian_is_there_for_nothing_else() {
        skip_if_unable!();
        let (loaded, guardian) = guarded("reno", &unused()).unwrap();
        let open = fs::read_dir(format!("/proc/{guardian}/fd")).unwrap();
        let open: Vec<String> = open
            .map(|fd| fs::read_link(fd.unwrap().path()).unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(open.iter().filter(|fd| *fd == "anon_inode:bpf-map").count(), 2, "{open:?}");
        assert_eq!(open.iter().filter(|fd| fd.starts_with("socket:")).count(), 1, "{open:?}");
        assert_eq!(open.len(), 3, "{open:?}");
        assert!(status(guardian).starts_with("Name:\ttcplab-guardian\n"));
        // SAFETY: takes no pointers.
        assert_eq!(unsafe { libc::getsid(guardian) }, guardian, "a session of its own");
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            kill(guardian, signal);
        }
        std::thread::sleep(Duration::from_millis(50));
        assert!(!ended(guardian) && is_registered(loaded.registered()));
    }

    #[test]
    fn an_owner_takes_its_control_away_without_its_guardian() {
        skip_if_unable!();
        let name = unused();
        let (loaded, guardian) = guarded("reno", &name).unwrap();
        kill(guardian, libc::SIGKILL);
        wait_for("the guardian is dead", || ended(guardian));
        assert!(ownership::take_away_abandoned().is_empty(), "its owner lives");
        assert!(is_registered(&name));
        drop(loaded);
        assert!(!is_registered(&name));
    }

    #[test]
    fn what_is_left_when_both_are_killed_is_swept_and_nothing_else() {
        skip_if_unable!();
        let (mine, _) = guarded("reno", &unused()).unwrap();
        let held = Owner::start();
        let linked = Loaded::load("vegas", []).unwrap();
        let mut killed = Owner::start();
        kill(killed.guardian, libc::SIGKILL);
        wait_for("the guardian is dead", || ended(killed.guardian));
        killed.kill();
        assert!(is_registered(&killed.name), "there is nothing to sweep");
        assert_eq!(ownership::take_away_abandoned(), [killed.name.as_str()]);
        assert!(!is_registered(&killed.name));
        for name in [mine.registered(), &held.name, linked.registered()] {
            assert!(is_registered(name), "{name} was somebody's");
        }
        assert!(ownership::take_away_abandoned().is_empty());
    }

    #[test]
    fn a_name_that_is_taken_leaves_no_guardian() {
        skip_if_unable!();
        let name = unused();
        let (_first, _) = guarded("reno", &name).unwrap();
        let error = guarded("cubic", &name).unwrap_err();
        assert!(error.to_string().contains("register"), "{error}");
        assert!(children().iter().filter(|child| status(**child).contains("guardian")).count() == 1);
    }

    /// Processes below this one.
    fn children() -> Vec<libc::pid_t> {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let texts = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok());
        texts
            .flat_map(|text| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
            .collect()
    }
}
