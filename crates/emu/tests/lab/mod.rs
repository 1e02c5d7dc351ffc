//! Two namespaces joined by one emulated link. Everything ends with the test.

#![allow(dead_code)] // each test file uses its part

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tcplab_emu::config::{End, LinkSetup, Mac, Sample, What};
use tcplab_emu::{Emulator, Report, RunStats, Setup, Start};
use tcplab_link::Direction;
use tcplab_link::config::{Chance, Medium, Overhead, Queue};
use tcplab_units::{Probability, Span};

pub const A: &str = "10.8.0.1";
pub const B: &str = "10.8.0.2";
pub const A6: &str = "fd08::1";
pub const B6: &str = "fd08::2";

/// Why this machine cannot run the test; none if it can.
pub fn obstacle() -> Option<String> {
    // SAFETY: takes no pointers.
    if unsafe { libc::geteuid() } != 0 {
        return Some("namespaces and TAP devices need root here".into());
    }
    if let Err(error) = std::fs::File::open("/dev/net/tun") {
        return Some(format!("/dev/net/tun: {error}"));
    }
    let able = Command::new("unshare").args(["--net", "ip", "link"]).output();
    match able {
        Err(error) => Some(format!("unshare cannot be run: {error}")),
        Ok(out) if !out.status.success() => {
            Some(format!("no network namespaces: {}", String::from_utf8_lossy(&out.stderr).trim()))
        }
        Ok(_) => None,
    }
}

/// Ends the test early where the machine does not allow it.
#[macro_export]
macro_rules! skip_if_unable {
    () => {
        if let Some(why) = lab::obstacle() {
            return eprintln!("skipped: {why}");
        }
    };
}

/// A direction that only delays.
pub fn delay(span: Span) -> Direction {
    Direction {
        rate: None,
        queue: Queue::droptail(None),
        delay: span,
        jitter: None,
        reorder: None,
        loss: None,
        corrupt: None,
        duplicate: None,
        up: true,
        trace: None,
        overhead: Overhead::default(),
        policer: None,
        changes: Vec::new(),
    }
}

/// This share of packets, independently.
pub fn percent(percent: u32) -> Chance {
    Chance { rate: Probability::from_ppb(percent * 10_000_000), correlation: Probability::ZERO }
}

/// A namespace, as long as it is.
pub struct Node {
    holder: Child,
}

impl Node {
    pub fn new() -> Node {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare runs");
        let mut ready = [0];
        let out = holder.stdout.as_mut().expect("piped");
        std::io::Read::read_exact(out, &mut ready).expect("the namespace is there");
        Node { holder }
    }

    pub fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// Runs a command in the namespace.
    pub fn run(&self, words: &str) -> String {
        let pid = self.pid().to_string();
        let out = Command::new("nsenter")
            .args(["-t", &pid, "-n"])
            .args(words.split_whitespace())
            .output()
            .expect("nsenter runs");
        assert!(out.status.success(), "{words}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Runs `body` in the namespace.
    pub fn inside<T: Send + 'static>(&self, body: impl FnOnce() -> T + Send + 'static) -> T {
        let namespace =
            std::fs::File::open(format!("/proc/{}/ns/net", self.pid())).expect("the namespace is there");
        let thread = std::thread::spawn(move || {
            // SAFETY: takes no pointers; the thread is new and ends after `body`.
            assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            body()
        });
        thread.join().expect("what was done inside succeeds")
    }

    pub fn udp(&self, address: &'static str, port: u16) -> UdpSocket {
        let socket = self.inside(move || UdpSocket::bind((address, port)).expect("a socket"));
        // A receiver that waits for a CPU meanwhile loses nothing. Root may have more than the host's limit.
        let bytes: libc::c_int = 8 << 20;
        // SAFETY: the value is an int.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
                std::ptr::from_ref(&bytes).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        assert_eq!(set, 0, "a receive buffer of {bytes} bytes");
        socket
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

pub struct Lab {
    pub emulator: Option<Emulator>,
    pub a: Node,
    pub b: Node,
    pub dir: PathBuf,
    reports: Receiver<Report>,
}

/// The end of a link at the node that has process `pid`.
pub fn end(pid: u32, node: &str, last: u8) -> End {
    End {
        node: node.into(),
        pid,
        interface: "eth0".into(),
        mac: Mac([2, 0, 0, 0, 0, last]),
        mtu: 1500,
        tso: true,
        gro: true,
        capture: false,
    }
}

/// One link, of which nothing is recorded.
pub fn setup(dir: PathBuf, ends: [End; 2], forward: Direction, backward: Direction) -> Setup {
    let links =
        vec![LinkSetup { name: "path".into(), ends, forward, backward, medium: None, carrier: false }];
    Setup {
        seed: 1,
        dir: Some(dir),
        links,
        media: Vec::new(),
        cpus: Vec::new(),
        sample: Sample::default(),
        capture: None,
    }
}

/// How a lab's link is set up.
pub struct Options {
    pub tso: bool,
    pub gro: bool,
    pub sample: Sample,
    pub capture: Option<What>,
    /// Both directions share it.
    pub medium: Option<Medium>,
}

impl Default for Options {
    fn default() -> Options {
        Options { tso: true, gro: true, sample: Sample::default(), capture: None, medium: None }
    }
}

impl Lab {
    /// A lab whose run has begun.
    pub fn new(name: &str, forward: Direction, backward: Direction, options: Options) -> Lab {
        let dir = std::env::temp_dir().join(format!("tcplab-emu-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        let (a, b) = (Node::new(), Node::new());
        let mut ends = [end(a.pid(), "a", 1), end(b.pid(), "b", 2)];
        for end in &mut ends {
            (end.tso, end.gro, end.capture) = (options.tso, options.gro, options.capture.is_some());
        }
        let mut setup = Setup {
            sample: options.sample,
            capture: options.capture,
            ..setup(dir.clone(), ends, forward, backward)
        };
        if let Some(medium) = options.medium {
            setup.links[0].medium = Some(medium.name.clone());
            setup.media = vec![medium];
        }
        let (sender, reports) = channel();
        let notify = move |event| drop(sender.send(event));
        let emulator = Emulator::new(setup, notify).expect("the machine allows it");
        for (node, address, peer, mac) in [(&a, A, B, 2), (&b, B, A, 1)] {
            node.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
            node.run(&format!("ip address add {address}/24 dev eth0"));
            node.run("ip link set eth0 up");
            node.run(&format!("ip neighbour replace {peer} lladdr 02:00:00:00:00:0{mac} dev eth0"));
        }
        emulator.start(Start {
            at: monotonic() + 10_000_000,
            duration: None,
            streams: Vec::new(),
            rehearsal: false,
        });
        std::thread::sleep(Duration::from_millis(60));
        Lab { emulator: Some(emulator), a, b, dir, reports }
    }

    /// Ends the run; what it came to.
    pub fn stop(&self) -> RunStats {
        self.emulator.as_ref().expect("not ended yet").stop();
        loop {
            match self.reports.recv_timeout(Duration::from_secs(60)).expect("facts come") {
                Report::Done(facts) => return *facts,
                Report::Progress(_) => {}
                Report::Failed { message, .. } => panic!("{message}"),
            }
        }
    }

    /// IPv6 addresses for both nodes, without discovery of any kind.
    pub fn add_ip6(&self) {
        for (node, address, peer, mac) in [(&self.a, A6, B6, 2), (&self.b, B6, A6, 1)] {
            for setting in ["accept_ra=0", "router_solicitations=0", "addr_gen_mode=1", "disable_ipv6=0"] {
                node.run(&format!("sysctl -qw net.ipv6.conf.eth0.{setting}"));
            }
            node.run(&format!("ip address add {address}/64 dev eth0 nodad"));
            node.run(&format!("ip neighbour replace {peer} lladdr 02:00:00:00:00:0{mac} dev eth0"));
        }
    }

    /// A connection from `a` to an address of `b`.
    pub fn connect(&self, address: &str, port: u16) -> (TcpStream, TcpStream) {
        let address = SocketAddr::new(address.parse().expect("an address"), port);
        let listener = self.b.inside(move || TcpListener::bind(address).expect("a listener"));
        let client = self.a.inside(move || TcpStream::connect(address).expect("a connection"));
        (client, listener.accept().expect("a connection").0)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.emulator = None;
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub fn monotonic() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}
