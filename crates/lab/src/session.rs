//! Commands of a lab on its standard input, one JSON object a line, each answered by one on its standard output.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getppid};
use serde::Deserialize;
use serde_json::{Value, json};
use tcplab_plan::Plan;
use tcplab_probe::interface::{self, Offloads};

use crate::child::{self, Role};
use crate::control::Control;
use crate::enter::pidfd;
use crate::layout::{Layout, Namespace};
use crate::netlink::{self, Kernel};
use crate::{LabError, configure, frr, namespace, ping, sysctl, verify};

/// How long children may take to end once their input has ended.
const PATIENCE: Duration = Duration::from_secs(4);

/// How a lab is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The process that starts it, with which it dies.
    pub parent: Option<i32>,
    /// The name of a lab that can stay up without the process that starts it.
    pub name: Option<String>,
}

/// The command.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Command {
    /// Start processes.
    Spawn { children: Vec<Spawn> },
    /// Connect and configure the namespaces of a plan; the emulator's interfaces are there already.
    Build { plan: Box<Plan>, emulate_all: bool },
    /// Which addresses do not answer a node within `timeout` (ms)?
    Reach {
        pairs: BTreeMap<String, Vec<IpAddr>>,
        #[serde(default = "two_seconds")]
        timeout: u64,
    },
    /// Do links do what was asked of them?
    Verify { directions: Vec<verify::Asked> },
    /// Settings as they are in a node.
    ReadSysctls { node: String, names: Vec<String> },
    /// Pass a command on to a process that talks with the lab; its answer is the answer.
    Relay { child: String, command: Value },
    /// Run the routing protocols of a plan. The answer is the configuration of each router.
    Route { plan: Box<Plan> },
    /// Stay up when the input ends, until `down`. `about` is returned with `status`.
    Hold { about: Value },
    /// Relay commands and replace the description, if its revision is still `revision`.
    Change { revision: u64, child: String, commands: Vec<Value>, about: Value },
    /// The lab's description, and its processes.
    Status,
    /// End the lab and all in it.
    Down,
}

fn two_seconds() -> u64 {
    2000
}

/// A process to start.
#[derive(Debug, Deserialize)]
struct Spawn {
    name: String,
    role: Role,
    /// A node with mounts and a host name of its own, besides its network.
    #[serde(default)]
    machine: bool,
    /// The descriptor that it talks over, which this process has inherited; none: it talks with the lab.
    socket: Option<RawFd>,
}

/// The lab as far as it is built.
struct Lab<'a> {
    children: BTreeMap<String, Pid>,
    /// Those that talk with the lab.
    partners: BTreeMap<String, Partner>,
    /// Programs by node and name.
    daemons: BTreeMap<(String, String), Pid>,
    /// Those of them that have ended, as "node: program".
    ended: Vec<String>,
    /// The lab's description, once it stays up.
    about: Option<Value>,
    /// How often the description was changed.
    revision: u64,
    act: &'a dyn Fn(Role) -> u8,
}

/// Serves until the input ends; then every process of the lab ends. `act` is what the lab's processes do.
pub fn serve(options: &Options, act: &dyn Fn(Role) -> u8) -> u8 {
    let control = match settle(options) {
        Ok(control) => control,
        Err(error) => {
            answer(&refusal(&error));
            return 3;
        }
    };
    let mut lab = Lab {
        children: BTreeMap::new(),
        partners: BTreeMap::new(),
        daemons: BTreeMap::new(),
        ended: Vec::new(),
        about: None,
        revision: 0,
        act,
    };
    // SAFETY: standard input is open and nobody else reads it. A reader of std's would share its buffer with the
    // processes that are forked from this one.
    let input = BufReader::new(unsafe { File::from_raw_fd(0) });
    for line in input.lines() {
        let Ok(line) = line else { break };
        answer(&lab.serve(&line));
    }
    match control {
        Some(control) if lab.about.is_some() => lab.stay(&control),
        _ => lab.end(),
    }
    0
}

fn settle(options: &Options) -> Result<Option<Control>, LabError> {
    child::set_title("tcplab-agent lab");
    // In the host's namespaces still, where it is looked for.
    let control = match &options.name {
        None => None,
        Some(name) => {
            Some(Control::listen(name).map_err(|source| LabError::Name { name: name.clone(), source })?)
        }
    };
    leave(options).map_err(LabError::Namespaces)?;
    Ok(control)
}

fn leave(options: &Options) -> io::Result<()> {
    if let Some(parent) = options.parent {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // Where it is gone already no signal will ever come.
        if getppid() != Pid::from_raw(parent) {
            return Err(io::Error::other("the process that started the lab has ended"));
        }
    }
    // Ctrl-C reaches every process of the terminal. The process that started this one decides what then happens.
    // SAFETY: no handler of ours is installed.
    unsafe { signal(Signal::SIGINT, SigHandler::SigIgn) }?;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    namespace::leave_host()
}

/// A process that talks with the lab.
struct Partner(BufReader<UnixStream>, Role);

impl Partner {
    /// The next line that it says; an error once it has ended.
    fn line(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The rest of a line that `skip` has begun is not understood.
        Ok(serde_json::from_str(&line).unwrap_or_default())
    }

    /// Drops what it has said unasked; false: it has ended, though it may have many devices to close still.
    fn skip(&mut self) -> bool {
        let length = self.0.fill_buf().map_or(0, <[u8]>::len);
        self.0.consume(length);
        length > 0
    }

    /// Tells the emulator that the nodes are about to end, so that their devices end with them, all at once.
    fn leave(&mut self) {
        if self.1 == Role::Emulator && self.0.get_ref().set_read_timeout(Some(PATIENCE)).is_ok() {
            // Without an answer the devices end one by one.
            let _ = self.ask(json!({"do": "leave"}));
        }
    }

    fn ask(&mut self, mut command: Value) -> io::Result<Value> {
        command["id"] = 0.into();
        writeln!(self.0.get_mut(), "{command}")?;
        loop {
            let line = self.line()?;
            if line["id"] == 0 {
                return Ok(line);
            }
        }
    }
}

impl Lab<'_> {
    fn serve(&mut self, line: &str) -> Value {
        let outcome = match serde_json::from_str(line) {
            Ok(command) => self.carry_out(command),
            Err(error) => Err(LabError::NotUnderstood(error.to_string())),
        };
        outcome.unwrap_or_else(|error| refusal(&error))
    }

    fn carry_out(&mut self, command: Command) -> Result<Value, LabError> {
        match command {
            Command::Spawn { children } => self.spawn(children),
            Command::Build { plan, emulate_all } => {
                let layout = Layout::new(&plan, emulate_all)?;
                self.build(&layout)?;
                self.describe(&layout.namespaces)
            }
            Command::Reach { pairs, timeout } => self.unreachable(&pairs, Duration::from_millis(timeout)),
            Command::Verify { directions } => self.verify(&directions),
            Command::ReadSysctls { node, names } => {
                let read = || names.iter().map(|name| (name.clone(), sysctl::read(name).into())).collect();
                Ok(json!({"sysctls": self.within(&node, || Value::Object(read()))?}))
            }
            Command::Relay { child, command } => self.relay(&child, command),
            Command::Route { plan } => self.route(&plan),
            Command::Hold { about } => {
                self.about = Some(about);
                Ok(json!({}))
            }
            Command::Change { revision, child, commands, about } => {
                if revision != self.revision {
                    return Ok(json!({"changed": false}));
                }
                for command in commands {
                    self.relay(&child, command)?;
                }
                self.about = Some(about);
                self.revision += 1;
                Ok(json!({"changed": true}))
            }
            Command::Status => Ok(json!({
                "about": self.about,
                "revision": self.revision,
                "lab": std::process::id(),
                "pids": self.pids(),
                "ended": self.ended(),
            })),
            Command::Down => Ok(json!({})),
        }
    }

    fn spawn(&mut self, children: Vec<Spawn>) -> Result<Value, LabError> {
        let mut begun = Vec::new();
        for Spawn { name, role, machine, socket } in children {
            let failed = |source| LabError::Start { name: name.clone(), source };
            let socket = match socket {
                // SAFETY: the descriptor was opened for this and is named once.
                Some(socket) => unsafe { OwnedFd::from_raw_fd(socket) },
                None => {
                    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
                    self.partners.insert(name.clone(), Partner(BufReader::new(ours), role));
                    begun.push(name.clone());
                    theirs.into()
                }
            };
            let pid = child::start(&name, role, machine, socket, self.act).map_err(failed)?;
            self.children.insert(name, pid);
        }
        for name in begun {
            let Some(partner) = self.partners.get_mut(&name) else { continue };
            let said = partner.line().map_err(|source| LabError::Start { name: name.clone(), source })?;
            if said["event"] != "hello" {
                let message = said["message"].as_str().unwrap_or("it does not start").to_owned();
                return Err(LabError::Explained {
                    message: format!("{name}: {message}"),
                    hint: namespace::remedy(),
                });
            }
        }
        Ok(json!({"pids": self.pids()}))
    }

    fn relay(&mut self, child: &str, command: Value) -> Result<Value, LabError> {
        let partner = self.partners.get_mut(child).ok_or_else(|| LabError::NoNode(child.to_owned()))?;
        let answer = partner.ask(command).map_err(|_| LabError::Ended(child.to_owned()))?;
        if answer["event"] == "error" {
            let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
            return Err(LabError::Explained { message: text("message"), hint: text("hint") });
        }
        Ok(answer)
    }

    fn route(&mut self, plan: &Plan) -> Result<Value, LabError> {
        let routers = frr::routers(plan);
        let mut started = Vec::new();
        let outcome = frr::start(&routers, |node| self.pid(node), &mut started);
        let keyed = started.into_iter().map(|one| ((one.node, one.name), one.pid));
        self.daemons.extend(keyed);
        outcome?;
        let configurations = routers.into_iter().map(|router| (router.node, router.configuration.into()));
        Ok(json!({"configurations": Value::Object(configurations.collect())}))
    }

    fn pids(&self) -> Value {
        Value::Object(self.children.iter().map(|(name, pid)| (name.clone(), pid.as_raw().into())).collect())
    }

    /// The programs that have ended so far.
    fn ended(&mut self) -> &[String] {
        let ended = &mut self.ended;
        self.daemons.retain(|(node, name), pid| {
            let is_alive = matches!(waitpid(*pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive));
            if !is_alive {
                ended.push(format!("{node}: {name}"));
            }
            is_alive
        });
        ended
    }

    /// Serves the control socket until `down`, or until a process that holds a part of the lab has ended.
    fn stay(&mut self, control: &Control) {
        // Of the lab's own: whatever terminal it was started from may go.
        let _ = nix::unistd::setsid();
        let watched: Vec<OwnedFd> =
            self.children.values().filter_map(|pid| pidfd(pid.as_raw()).ok()).collect();
        let mut down = None;
        while down.is_none() {
            let talkers: Vec<String> = self.partners.keys().cloned().collect();
            let mut ready = vec![PollFd::new(control.fd(), PollFlags::POLLIN)];
            ready.extend(watched.iter().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
            let streams = self.partners.values().map(|partner| partner.0.get_ref().as_fd());
            ready.extend(streams.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
            match poll(&mut ready, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => break,
            }
            let is_ready = |polled: &PollFd| polled.revents().is_some_and(|events| !events.is_empty());
            let called = is_ready(&ready[0]);
            let mut lost = ready[1..=watched.len()].iter().any(is_ready);
            let talking: Vec<bool> = ready[1 + watched.len()..].iter().map(is_ready).collect();
            for (name, _) in talkers.iter().zip(talking).filter(|(_, talks)| *talks) {
                lost |= self.partners.get_mut(name).is_some_and(|partner| !partner.skip());
            }
            if lost {
                break;
            }
            if called && let Ok(Some((client, line))) = control.next() {
                let answer = self.serve(&line);
                let ends = matches!(serde_json::from_str(&line), Ok(Command::Down));
                let stream = client.answer(&answer);
                if ends {
                    // The client waits for its end, which is that of the lab.
                    down = Some(stream);
                }
            }
        }
        self.kill_all();
    }

    /// Kills every process of the lab: its own, and whatever else is in the namespaces of its nodes.
    fn kill_all(&mut self) {
        self.partners.values_mut().for_each(Partner::leave);
        let spaces: Vec<PathBuf> =
            self.children.values().filter_map(|pid| namespace::network_of(pid.as_raw())).collect();
        let own = namespace::network_of(nix::unistd::getpid().as_raw());
        for process in namespace::processes() {
            let space = namespace::network_of(process);
            if space.is_some_and(|space| spaces.contains(&space) && Some(space) != own) {
                let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
            }
        }
        self.partners.clear();
        for pid in self.children.values().chain(self.daemons.values()) {
            let _ = kill(*pid, Signal::SIGKILL);
            let _ = waitpid(*pid, None);
        }
    }

    fn build(&self, layout: &Layout) -> Result<(), LabError> {
        let mut by_node: BTreeMap<&str, Vec<netlink::Request>> = BTreeMap::new();
        for [first, second] in layout.cables() {
            let peer = self.pid(&second.node)?;
            let cable = netlink::veth(&first.name, first.mac, peer, &second.name, second.mac, first.mtu);
            by_node.entry(&first.node).or_default().push(cable);
        }
        // All cables first: the other end of a node's cable may be made by its neighbour.
        for (node, requests) in by_node {
            self.within(node, || Kernel::new()?.carry_out(requests))??.map_err(|refused| {
                LabError::Refused { node: node.to_owned(), what: refused.what, said: refused.said }
            })?;
        }
        layout.namespaces.iter().try_for_each(|node| self.within(&node.node, || configure::fill(node))?)?;
        let names = layout.names();
        for node in &layout.namespaces {
            // A machine without such a file has no names.
            let _ = namespace::add_names(self.pid(&node.node)?, &names);
        }
        Ok(())
    }

    /// The offloads that are on, and the queue disciplines, by node and interface.
    fn describe(&self, namespaces: &[Namespace]) -> Result<Value, LabError> {
        let (mut offloads, mut qdiscs) = (BTreeMap::new(), BTreeMap::new());
        for node in namespaces {
            self.within(&node.node, || -> io::Result<()> {
                let known = interface::interfaces()?;
                let read = Offloads::new()?;
                for one in &node.interfaces {
                    let name = format!("{}.{}", node.node, one.name);
                    offloads.insert(name.clone(), read.on(&one.name)?);
                    qdiscs.insert(
                        name,
                        known.get(&one.name).map_or_else(String::new, |found| found.qdisc.clone()),
                    );
                }
                Ok(())
            })??;
        }
        Ok(json!({"offloads": offloads, "qdiscs": qdiscs}))
    }

    fn unreachable(
        &self,
        pairs: &BTreeMap<String, Vec<IpAddr>>,
        patience: Duration,
    ) -> Result<Value, LabError> {
        let (mut nodes, mut askers) = (Vec::new(), Vec::new());
        for (node, addresses) in pairs {
            for asker in self.within(node, || ping::Asker::open(addresses))?? {
                nodes.push(node);
                askers.push(asker);
            }
        }
        let began = Instant::now();
        ping::ask_all(&mut askers, patience)?;
        let seconds = began.elapsed().as_secs_f64();
        let mut found: BTreeMap<&String, BTreeSet<IpAddr>> = BTreeMap::new();
        for (node, asker) in nodes.into_iter().zip(askers) {
            found.entry(node).or_default().extend(asker.silent());
        }
        found.retain(|_, silent| !silent.is_empty());
        Ok(json!({"unreachable": found, "seconds": seconds}))
    }

    fn verify(&self, directions: &[verify::Asked]) -> Result<Value, LabError> {
        let began = Instant::now();
        let sockets = directions.iter().map(|one| {
            let ((from, out), (to, into)) = (&one.from, &one.to);
            Ok((self.within(from, || verify::sender(out))??, self.within(to, || verify::receiver(into))??))
        });
        let sockets: Result<Vec<_>, LabError> = sockets.collect();
        let mut certificate = verify::verify(directions, sockets?, began)?;
        certificate["seconds"] = began.elapsed().as_secs_f64().into();
        Ok(certificate)
    }

    fn within<T>(&self, node: &str, action: impl FnOnce() -> T) -> Result<T, LabError> {
        namespace::within(self.pid(node)?, action)
            .map_err(|source| LabError::Enter { node: node.to_owned(), source })
    }

    fn pid(&self, node: &str) -> Result<u32, LabError> {
        let pid = self.children.get(node).ok_or_else(|| LabError::NoNode(node.to_owned()))?;
        Ok(pid.as_raw().unsigned_abs())
    }

    /// Waits for the children, whose input has ended; those that do not end are killed.
    fn end(&self) {
        let deadline = Instant::now() + PATIENCE;
        for pid in self.children.values() {
            while matches!(waitpid(*pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)) {
                if Instant::now() > deadline {
                    let _ = kill(*pid, Signal::SIGKILL);
                    let _ = waitpid(*pid, None);
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

fn refusal(error: &LabError) -> Value {
    let is_input = matches!(error, LabError::Input { .. });
    json!({"error": error.to_string(), "hint": error.hint(), "input": is_input})
}

fn answer(answer: &Value) {
    // SAFETY: standard output is open for as long as the process lives; it is not closed here.
    let mut out = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(1) });
    // When nobody reads any more, nobody can be notified, and the end of the input ends the lab.
    let _ = writeln!(out, "{answer}");
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};
    use std::os::unix::net::UnixStream;

    use super::{Partner, Role};

    #[test]
    fn the_end_of_a_partner_is_known_before_its_process_is_gone() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut partner = Partner(BufReader::new(ours), Role::Emulator);
        theirs.write_all(b"unasked\n").unwrap();
        assert!(partner.skip());
        drop(theirs);
        assert!(!partner.skip());
    }
}
