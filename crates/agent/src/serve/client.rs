//! One client of a service, from its first byte to its end: TLS, its token, and an agent of its own.
//!
//! Every wait has an end and every buffer a size, so that a client that says nothing, or too much, costs little and not
//! for long.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustls::ServerConnection;
use serde::Deserialize;
use serde_json::json;

use super::Service;
use super::policy::Policy;
use super::ports::{Lease, Ports};

/// How long a client may take to be admitted.
const ADMISSION: Duration = Duration::from_secs(5);
/// How long an agent waits for its client's next command.
const SILENCE: u64 = 5;
/// Beyond its longest run, what a client's stay may take.
const STAY: Duration = Duration::from_secs(60);
/// The longest first line, and the longest command.
const FIRST_LINE: usize = 1 << 10;
const LINE: usize = 64 << 10;
/// Maximum that waits to be sent to a client; its agent is not read meanwhile.
const BACKLOG: usize = 1 << 20;
/// How often the service's own end is looked for.
const LOOK: Duration = Duration::from_millis(200);
const CHUNK: usize = 16 << 10;
/// Memory that a client's agent may ask for (RLIMIT_DATA), B: whatever its flows, others keep theirs. A thread's stack counts whole.
const MEMORY: u64 = 1 << 30;
const MEMORY_OF_A_STREAM: u64 = 4 << 20;

/// How a client shows that it may come in.
#[derive(Debug, Deserialize)]
struct Greeting {
    tcplab: u32,
    token: String,
}

/// A connection with TLS on it.
pub struct Client {
    tcp: TcpStream,
    tls: ServerConnection,
    peer: SocketAddr,
    reached: SocketAddr,
    /// Bytes of an incomplete line.
    read: Vec<u8>,
}

impl Client {
    /// A connection that was accepted.
    pub fn new(tcp: TcpStream, peer: SocketAddr, service: &Service) -> io::Result<Client> {
        tcp.set_nonblocking(true)?;
        tcp.set_nodelay(true)?;
        let reached = tcp.local_addr()?;
        let mut tls = ServerConnection::new(service.identity.tls.clone()).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(BACKLOG));
        Ok(Client { tcp, tls, peer, reached, read: Vec::new() })
    }

    /// Waits for the token.
    pub fn admit(&mut self, service: &Service) -> io::Result<()> {
        let end = Instant::now() + ADMISSION;
        let line = loop {
            if let Some(line) = self.line() {
                break line;
            }
            if self.read.len() > FIRST_LINE {
                return Err(io::Error::other("its first line is too long"));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || service.stop.load(Ordering::Relaxed) {
                return Err(io::Error::other("it showed no token in time"));
            }
            self.flush()?;
            wait(&mut [(self.tcp.as_raw_fd(), self.wants())], left.min(LOOK))?;
            self.fill()?;
        };
        let greeting = serde_json::from_slice::<Greeting>(&line);
        let known = matches!(&greeting, Ok(greeting) if same(&greeting.token, &service.identity.token));
        match greeting {
            Ok(Greeting { tcplab: 1, .. }) if known => Ok(()),
            Ok(Greeting { tcplab, .. }) if known => {
                self.refuse(
                    None,
                    &format!("protocol version {tcplab} is not known"),
                    "use one version of tcplab",
                )?;
                Err(io::Error::other("it speaks another version"))
            }
            _ => {
                self.refuse(None, "the token is not the service's", "give it as TCPLAB_TOKEN")?;
                Err(io::Error::other("it showed a wrong token"))
            }
        }
    }

    /// Lets the client talk to an agent of its own until either ends, or its time is over.
    pub fn serve(&mut self, service: &Service) -> io::Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        self.say(&json!({"event": "admitted"}))?;
        let mut agent = Agent(self.start(&service.node, service.limits.streams, theirs)?);
        // Returned when the agent has ended, and with it what listens there.
        let mut ports = service.ports.as_ref().map(Ports::lease);
        let outcome = self.carry(&ours, service, ports.as_mut());
        drop(ours);
        agent.end();
        outcome
    }

    fn start(&self, node: &[String], streams: u64, end: UnixStream) -> io::Result<Child> {
        let (program, arguments) =
            node.split_first().ok_or_else(|| io::Error::other("no program of an agent"))?;
        let (peer, reached) = (plain(self.peer.ip()), plain(self.reached.ip()));
        let maximum = MEMORY.saturating_add(streams.saturating_mul(MEMORY_OF_A_STREAM));
        let memory = libc::rlimit { rlim_cur: maximum, rlim_max: maximum };
        let mut command = Command::new(program);
        // SAFETY: between fork and exec only a system call is made.
        unsafe {
            command.pre_exec(move || {
                // A lower limit stays as it is.
                libc::setrlimit(libc::RLIMIT_DATA, &memory);
                Ok(())
            });
        }
        command
            .args(arguments)
            .args(["--silence", &SILENCE.to_string()])
            .stdin(Stdio::from(OwnedFd::from(end.try_clone()?)))
            .stdout(Stdio::from(OwnedFd::from(end)))
            .stderr(Stdio::null())
            // As sshd does for the programs that it starts.
            .env("SSH_CONNECTION", format!("{peer} {} {reached} {}", self.peer.port(), self.reached.port()))
            .spawn()
    }

    fn carry(
        &mut self,
        mut agent: &UnixStream,
        service: &Service,
        ports: Option<&mut Lease<'_>>,
    ) -> io::Result<()> {
        let Service { limits, stop, .. } = service;
        let mut policy = Policy::new(limits, self.peer.ip(), self.reached.ip(), ports);
        let end = Instant::now() + Duration::from_nanos(limits.duration) + STAY;
        // Admitted commands that the agent has not read, and whether it has ended.
        let mut commands: Vec<u8> = Vec::new();
        let mut over = false;
        let mut chunk = [0; CHUNK];
        loop {
            if stop.load(Ordering::Relaxed) || Instant::now() > end {
                return Ok(());
            }
            while commands.len() < LINE
                && let Some(line) = self.line()
            {
                match policy.admit(&line) {
                    Ok(admitted) => commands.extend(admitted),
                    Err(refusal) => {
                        let hint = "ask the service's owner for other limits";
                        self.refuse(refusal.id, &refusal.message, hint)?;
                    }
                }
            }
            if self.read.len() > LINE {
                return Err(io::Error::other("a command is too long"));
            }
            if !commands.is_empty() {
                match agent.write(&commands) {
                    Ok(written) => drop(commands.drain(..written)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => over = true,
                }
            }
            self.flush()?;
            if over && !self.tls.wants_write() {
                return Ok(());
            }
            let full = self.tls.wants_write();
            let mut from_agent = if full || over { 0 } else { libc::POLLIN };
            if !commands.is_empty() && !over {
                from_agent |= libc::POLLOUT;
            }
            // Commands that wait leave further ones with the client.
            let mut from_client = self.wants();
            if commands.len() >= LINE {
                from_client &= !libc::POLLIN;
            }
            let mut ready = [(self.tcp.as_raw_fd(), from_client), (agent.as_raw_fd(), from_agent)];
            wait(&mut ready, LOOK)?;
            if ready[0].1 & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 {
                self.fill()?;
            }
            if !full && !over && ready[1].1 & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 {
                match agent.read(&mut chunk) {
                    Ok(0) => over = true,
                    Ok(length) => self.tls.writer().write_all(&chunk[..length])?,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => over = true,
                }
            }
        }
    }

    /// The next whole line.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.read.iter().position(|&byte| byte == b'\n')?;
        let mut line: Vec<u8> = self.read.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// Takes what has come. The end of the connection is an error.
    fn fill(&mut self) -> io::Result<()> {
        match self.tls.read_tls(&mut self.tcp) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        let state = self.tls.process_new_packets().map_err(io::Error::other)?;
        let before = self.read.len();
        self.read.resize(before + state.plaintext_bytes_to_read(), 0);
        self.tls.reader().read_exact(&mut self.read[before..])
    }

    fn say(&mut self, event: &serde_json::Value) -> io::Result<()> {
        let mut line = event.to_string();
        line.push('\n');
        self.tls.writer().write_all(line.as_bytes())?;
        self.flush()
    }

    /// Turns an admitted client away.
    pub fn sorry(&mut self, message: &str, hint: &str) -> io::Result<()> {
        self.refuse(None, message, hint)
    }

    fn refuse(&mut self, id: Option<u64>, message: &str, hint: &str) -> io::Result<()> {
        self.say(&json!({"event": "error", "id": id, "message": message, "hint": hint}))
    }

    /// Sends what can be sent without waiting.
    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.tcp) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wants(&self) -> libc::c_short {
        libc::POLLIN | if self.tls.wants_write() { libc::POLLOUT } else { 0 }
    }
}

/// A process that ends with its client.
struct Agent(Child);

impl Agent {
    /// The end of its input has come; it is given a moment to stop its flows.
    fn end(&mut self) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(SILENCE) {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Waits until one of the descriptors is ready; what for replaces what was asked.
fn wait<const N: usize>(asked: &mut [(RawFd, libc::c_short); N], patience: Duration) -> io::Result<()> {
    // poll(2) ignores a negative descriptor: it does not report its end either.
    let waited = |(fd, events)| libc::pollfd { fd: if events == 0 { -1 } else { fd }, events, revents: 0 };
    let mut polled = asked.map(waited);
    let milliseconds = libc::c_int::try_from(patience.as_millis().max(1)).unwrap_or(libc::c_int::MAX);
    // SAFETY: the array has as many entries as is said.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, milliseconds) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
    }
    for (asked, polled) in asked.iter_mut().zip(polled) {
        asked.1 = polled.revents;
    }
    Ok(())
}

/// Compares in a time that does not depend on how much is equal.
fn same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

/// IPv4 as such, where a socket for both versions has it mapped.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
