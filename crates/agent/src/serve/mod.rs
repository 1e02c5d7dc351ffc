//! `tcplab-agent serve`: the agent as a service, for clients with its token.
//!
//! Clients speak TLS. Each that is admitted has an agent of its own, a process, and speaks the protocol of `node` with it;
//! `policy` reads each command first. Connections from outside the allow-list, or beyond the limits, are closed unread.

mod client;
mod identity;
mod network;
mod policy;
mod ports;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use crate::config;
use crate::output;
use client::Client;
use identity::Identity;
use network::Network;
use policy::Limits;
use ports::Ports;

/// How often the service checks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Connections that have not shown the token yet: of all, and of one address.
const WAITING: usize = 256;
const WAITING_EACH: usize = 32;
/// How often clients that were turned away are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Configuration of the service.
#[derive(Debug, Deserialize)]
struct Config {
    addresses: Vec<SocketAddr>,
    /// Where the certificate, its key and the token are kept.
    directory: PathBuf,
    /// The program of an agent, with its arguments.
    node: Vec<String>,
    /// Clients at a time.
    clients: usize,
    /// Who may come; empty: anyone.
    #[serde(default)]
    allow: Vec<Network>,
    limits: Limits,
    /// First and last port at which flows arrive; none: those that the kernel chooses.
    #[serde(default)]
    ports: Option<(u16, u16)>,
}

/// State shared by all clients.
struct Service {
    identity: Identity,
    node: Vec<String>,
    limits: Limits,
    stop: Arc<AtomicBool>,
    guests: Mutex<Guests>,
    clients: usize,
    allow: Vec<Network>,
    ports: Option<Ports>,
    turned_away: AtomicU64,
}

/// Who is there.
#[derive(Debug, Default)]
struct Guests {
    admitted: usize,
    /// Connections without a token yet, by address.
    waiting: HashMap<IpAddr, usize>,
}

/// Serves until the input ends.
pub fn main() -> u8 {
    let stop = Arc::new(AtomicBool::new(false));
    let config: Config = match config::read(&stop, "use `tcplab serve`") {
        Ok(config) => config,
        Err(code) => return code,
    };
    let refuse = |message: String, hint: &str| {
        output::refuse(None, &message, hint);
        3
    };
    let identity = match identity::kept_in(&config.directory) {
        Ok(identity) => identity,
        Err(error) => return refuse(error.to_string(), "give another directory: --state DIR"),
    };
    let mut listeners = Vec::new();
    for address in &config.addresses {
        match listen(*address) {
            Ok(listener) => listeners.push(listener),
            Err(error) => {
                let hint = match error.kind() {
                    io::ErrorKind::AddrNotAvailable => "give an address of this machine: --bind",
                    _ => "choose another port: --port",
                };
                return refuse(format!("cannot listen on {address}: {error}"), hint);
            }
        }
    }
    let addresses: Vec<String> =
        listeners.iter().filter_map(|listener| Some(listener.local_addr().ok()?.to_string())).collect();
    output::emit(&json!({
        "event": "listening",
        "addresses": addresses,
        "certificate": identity.certificate,
        "directory": config.directory,
        "pid": std::process::id(),
    }));
    let service = Arc::new(Service {
        identity,
        node: config.node,
        limits: config.limits,
        stop,
        guests: Mutex::default(),
        clients: config.clients,
        allow: config.allow,
        ports: config.ports.map(Ports::new),
        turned_away: AtomicU64::new(0),
    });
    service.run(&listeners);
    output::emit(&json!({"event": "done"}));
    0
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

impl Service {
    /// Accepts until it is stopped, then waits for those who are there.
    fn run(self: &Arc<Service>, listeners: &[TcpListener]) {
        let mut reported = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            let mut came = false;
            for listener in listeners {
                // The client has gone, or the process is out of file descriptors until another client leaves.
                if let Ok((tcp, peer)) = listener.accept() {
                    came = true;
                    self.take(tcp, peer);
                }
            }
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                self.report_others();
            }
            if !came {
                wait_for(listeners);
            }
        }
        self.report_others();
        let begin = Instant::now();
        while self.guests().admitted > 0 && begin.elapsed() < Duration::from_secs(10) {
            thread::sleep(LOOK);
        }
    }

    fn take(self: &Arc<Service>, tcp: TcpStream, peer: SocketAddr) {
        let address = peer.ip().to_canonical();
        let allowed = self.allow.is_empty() || self.allow.iter().any(|network| network.contains(address));
        if !allowed || !self.guests().wait(address) {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let service = self.clone();
        let started = thread::Builder::new().name("client".into()).spawn(move || service.serve(tcp, peer));
        if started.is_err() {
            self.guests().leave(address);
            self.turned_away.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn serve(&self, tcp: TcpStream, peer: SocketAddr) {
        let address = peer.ip().to_canonical();
        let came = Client::new(tcp, peer, self).and_then(|mut client| client.admit(self).map(|()| client));
        self.guests().leave(address);
        let mut client = match came {
            Ok(client) => client,
            Err(_) => {
                self.turned_away.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        if !self.guests().admit(self.clients) {
            let _ = client.sorry("all places are taken", "try again later");
            self.turned_away.fetch_add(1, Ordering::Relaxed);
            return;
        }
        output::emit(&json!({"event": "admitted", "peer": peer.to_string()}));
        let error = client.serve(self).err();
        self.guests().admitted -= 1;
        let error = error.filter(|error| error.kind() != io::ErrorKind::UnexpectedEof);
        output::emit(&json!({
            "event": "ended", "peer": peer.to_string(), "error": error.map(|error| error.to_string()),
        }));
    }

    fn guests(&self) -> std::sync::MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report_others(&self) {
        let count = self.turned_away.swap(0, Ordering::Relaxed);
        if count > 0 {
            output::emit(&json!({"event": "turned_away", "count": count}));
        }
    }
}

impl Guests {
    /// Whether one more from `address` may wait.
    fn wait(&mut self, address: IpAddr) -> bool {
        let here = self.waiting.get(&address).copied().unwrap_or(0);
        let room = here < WAITING_EACH && self.waiting.values().sum::<usize>() < WAITING;
        if room {
            self.waiting.insert(address, here + 1);
        }
        room
    }

    fn leave(&mut self, address: IpAddr) {
        if let Some(count) = self.waiting.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&address);
            }
        }
    }

    /// Whether one more may have an agent.
    fn admit(&mut self, maximum: usize) -> bool {
        let room = self.admitted < maximum;
        self.admitted += usize::from(room);
        room
    }
}

/// Waits for a connection, a little while.
fn wait_for(listeners: &[TcpListener]) {
    use std::os::fd::AsRawFd;
    let mut polled: Vec<libc::pollfd> = listeners
        .iter()
        .map(|listener| libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    // SAFETY: the list has as many entries as is said.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, LOOK.as_millis() as libc::c_int) };
}
