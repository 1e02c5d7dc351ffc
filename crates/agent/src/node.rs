//! The session: commands in, answers out.

use std::io::{self, BufRead};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tcplab_accelerator::AcceleratorError;
use tcplab_probe::{clock, scheduling};
use tcplab_traffic::{Clock, Prepared};

use crate::accelerate;
use crate::cache;
use crate::capture::choice::Choice;
use crate::capture::{self, Capture, What};
use crate::command_timeout::CommandTimeout;
#[cfg(feature = "controls")]
use crate::controls;
use crate::destination::Destination;
use crate::host;
use crate::impair::{Impairment, Towards};
use crate::output;
use crate::path::{self, Reflector};
use crate::process;
use crate::protocol::{Command, Probe, Request, VERSION};
use crate::proxy::Proxy;
use crate::recorder::Recorder;
use crate::run::{Parts, Run};

const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;

/// Maximum commands that wait for those before them.
const WAITING: usize = 1024;

/// Why a command is refused, and what to do about it.
struct Refusal {
    message: String,
    hint: String,
}

fn refusal(message: impl ToString, hint: impl ToString) -> Refusal {
    Refusal { message: message.to_string(), hint: hint.to_string() }
}

/// State prepared so far.
#[derive(Default)]
struct Session {
    recorder: Option<Arc<Recorder>>,
    captures: Vec<Capture>,
    flows: Vec<Prepared>,
    probe: Probe,
    /// The accelerator and the cache, while there are.
    proxies: Vec<Proxy>,
    reflector: Option<Reflector>,
    impairment: Option<Impairment>,
    /// Controls that were loaded into the kernel.
    #[cfg(feature = "controls")]
    controls: Vec<tcplab_kernelcc::Loaded>,
}

/// The run in progress, for whoever must end it.
type Current = Arc<Mutex<Option<Run>>>;

/// Serves until the input ends, or until no command has come for as long as `silence`.
pub fn main(new_net: bool, silence: Option<Duration>) -> u8 {
    if new_net && let Err(error) = process::new_network_namespace() {
        output::refuse(
            None,
            &format!("cannot make a network namespace: {error}"),
            "run as root, or inside a user namespace: unshare --user --map-root-user",
        );
        return 3;
    }
    process::raise_file_limit();
    let current = Current::default();
    let ended = process::on_end({
        let current = current.clone();
        move || {
            end(&current);
            std::process::exit(0);
        }
    });
    if let Err(error) = ended {
        output::refuse(None, &format!("cannot wait for signals: {error}"), "end other programs");
        return 3;
    }
    let timeout = silence.map(CommandTimeout::start);
    hello();
    let (sender, commands) = mpsc::sync_channel(WAITING);
    let (ask_time, times_asked) = mpsc::sync_channel(WAITING);
    let started = start_thread("clock", move || times_asked.into_iter().for_each(tell_time))
        .and_then(|()| start_thread("commands", move || read(timeout, &sender, &ask_time)));
    if let Err(error) = started {
        output::refuse(None, &format!("cannot start a thread: {error}"), "end other programs");
        return 3;
    }
    let mut session = Session::default();
    for parsed in commands {
        serve(parsed, &mut session, &current);
    }
    end(&current);
    0
}

fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

/// A command, or the number of one that cannot be understood and the reason.
type Parsed = Result<Request, (Option<u64>, serde_json::Error)>;

/// Reads commands until the input ends.
///
/// The caller must not take this agent for dead while it loads a control, nor the agent its caller while the output is full.
/// So the time is given beside the other commands, and nothing is written here.
fn read(timeout: Option<CommandTimeout>, commands: &SyncSender<Parsed>, ask_time: &SyncSender<Option<u64>>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if let Some(timeout) = &timeout {
            timeout.restart();
        }
        if line.trim().is_empty() {
            continue;
        }
        match parse(&line) {
            // As many that are not answered have a caller who reads no answers.
            Ok(Request { id, command: Command::Clock }) => drop(ask_time.try_send(id)),
            parsed => {
                if commands.send(parsed).is_err() {
                    return;
                }
            }
        }
    }
}

fn parse(line: &str) -> Parsed {
    serde_json::from_str(line).map_err(|error| {
        let id = serde_json::from_str::<serde_json::Value>(line).ok().and_then(|v| v["id"].as_u64());
        (id, error)
    })
}

fn end(current: &Current) {
    if let Some(run) = &*current.lock().unwrap_or_else(PoisonError::into_inner) {
        run.end();
    }
}

fn hello() {
    let sysctl = |name: &str| -> Option<u64> {
        std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
    };
    output::emit(&json!({
        "event": "hello",
        "protocol": VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "monotonic": clock::now(),
        "capabilities": {
            "net_admin": process::has_capability(CAP_NET_ADMIN),
            "net_raw": process::has_capability(CAP_NET_RAW),
            "controls": tcplab_traffic::available_controls(),
            "rmem_max": sysctl("rmem_max"),
            "wmem_max": sysctl("wmem_max"),
        },
    }));
}

fn serve(parsed: Parsed, session: &mut Session, current: &Current) {
    let request = match parsed {
        Ok(request) => request,
        Err((id, error)) => {
            let hint = "docs/agent-protocol.md lists the commands";
            return output::refuse(id, &format!("cannot understand the command: {error}"), hint);
        }
    };
    let answer = match request.command {
        Command::Path { address, port, token } => {
            return measure(request.id, SocketAddr::new(address, port), token);
        }
        #[cfg(feature = "controls")]
        Command::Load(asked) => {
            if session.controls.is_empty() {
                tcplab_kernelcc::sweep();
            }
            session.controls.extend(controls::load(request.id, &asked));
            return;
        }
        Command::Reflect { address, ports, token, from } => {
            match Reflector::start(address, &ports, token, from) {
                Ok(reflector) => {
                    let port = reflector.port;
                    session.reflector = Some(reflector);
                    Ok(json!({"port": port}))
                }
                Err(error) => {
                    Err(refusal(format!("cannot listen on {address}: {error}"), "check the address"))
                }
            }
        }
        Command::Impair { towards } => session.impair(&towards),
        Command::Configure { node, dir, cpus } => session.configure(&node, dir, &cpus),
        Command::Flow(end) => session.flow(*end),
        Command::Accelerate(asked) => {
            session.proxy("accelerator", asked.sample, || accelerate::start(*asked))
        }
        Command::Cache(asked) => session.proxy("cache", asked.sample, || cache::start(*asked)),
        Command::Probe(probe) => session.probe(probe),
        Command::Capture { what, interfaces, peers } => session.capture(what, interfaces, peers),
        Command::Start { at, duration } => session.start(Clock { start: at, duration }, current),
        Command::Stop => {
            if let Some(run) = &*current.lock().unwrap_or_else(PoisonError::into_inner) {
                run.stop();
            }
            Ok(json!({}))
        }
        Command::Clock => return tell_time(request.id),
        Command::Host { sysctls } => Ok(host::describe(&sysctls)),
    };
    match answer {
        Ok(answer) => output::ok(request.id, answer),
        Err(Refusal { message, hint }) => output::refuse(request.id, &message, &hint),
    }
}

fn tell_time(id: Option<u64>) {
    output::ok(id, json!({"monotonic": clock::now(), "realtime_lead": clock::realtime_lead()}));
}

/// Answers when the path has been measured: other commands are served meanwhile.
fn measure(id: Option<u64>, reflector: SocketAddr, token: u64) {
    let measured =
        thread::Builder::new().name("path".into()).spawn(move || match path::measure(reflector, token) {
            Ok(found) => output::ok(id, found),
            Err(error) => output::refuse(id, &format!("cannot measure the path to {reflector}: {error}"), ""),
        });
    if let Err(error) = measured {
        output::refuse(id, &format!("cannot start a thread: {error}"), "end other programs");
    }
}

type Answer = Result<serde_json::Value, Refusal>;

impl Session {
    fn configure(&mut self, node: &str, dir: Option<PathBuf>, cpus: &[usize]) -> Answer {
        if node.is_empty() || node.contains('/') {
            return Err(refusal(
                format!("{node:?} cannot be part of a file name"),
                "choose another node name",
            ));
        }
        if let Some(dir) = dir.as_ref().filter(|dir| !dir.is_dir()) {
            return Err(refusal(
                format!("{} is not a directory", dir.display()),
                "make it before the node starts",
            ));
        }
        if !cpus.is_empty()
            && let Err(error) = scheduling::pin(cpus)
        {
            return Err(refusal(format!("cannot run on CPUs {cpus:?}: {error}"), "choose CPUs that exist"));
        }
        // Of a run that was prepared and not started nothing goes into this one.
        self.flows.clear();
        self.captures.clear();
        let destination = dir.map_or(Destination::Caller, Destination::Directory);
        self.recorder = Some(Arc::new(Recorder::new(node, destination)));
        Ok(json!({}))
    }

    fn flow(&mut self, end: tcplab_traffic::End) -> Answer {
        let prepared = tcplab_traffic::prepare(end).map_err(|e| refusal(&e, e.hint()))?;
        let answer = json!({"ports": prepared.ports()});
        self.flows.push(prepared);
        Ok(answer)
    }

    fn proxy(
        &mut self,
        name: &str,
        sample: Option<u64>,
        start: impl FnOnce() -> Result<Proxy, AcceleratorError>,
    ) -> Answer {
        if self.proxies.iter().any(|proxy| proxy.name() == name) {
            return Err(refusal(
                format!("this node has its {name} already"),
                format!("give one node one {name}"),
            ));
        }
        if sample == Some(0) {
            return Err(refusal("a sampling interval is zero", "give a positive time, 1 ms or more"));
        }
        self.proxies.push(start().map_err(|error| refusal(&error, error.hint()))?);
        Ok(json!({}))
    }

    fn impair(&mut self, towards: &[Towards]) -> Answer {
        // The one before must have been removed.
        self.impairment = None;
        let made = Impairment::start(towards).map_err(|error| refusal(&error, error.hint()))?;
        let answer = json!({"commands": made.commands()});
        self.impairment = Some(made);
        Ok(answer)
    }

    fn probe(&mut self, probe: Probe) -> Answer {
        if probe.sockets == Some(0) || probe.hosts == Some(0) {
            return Err(refusal("a sampling interval is zero", "give a positive time, 1 ms or more"));
        }
        self.probe = probe;
        Ok(json!({}))
    }

    fn capture(&mut self, what: What, mut interfaces: Vec<String>, peers: Vec<IpAddr>) -> Answer {
        let Some(recorder) = &self.recorder else {
            return Err(refusal(
                "`capture` came before `configure`",
                "send `configure` first, for every run",
            ));
        };
        let destination = recorder.destination();
        if interfaces.is_empty() && peers.is_empty() {
            interfaces = capture::interfaces()
                .map_err(|error| refusal(format!("/proc/net/dev cannot be read: {error}"), "mount /proc"))?;
        } else if interfaces.is_empty() {
            interfaces = capture::interfaces_towards(&peers)
                .map_err(|error| refusal(format!("no route to {peers:?}: {error}"), "ip route"))?;
        }
        let without = host::control_connection().map(|connection| connection.ports);
        let choice = (!peers.is_empty()).then_some(Choice { peers, without });
        let mut files = Vec::new();
        for interface in &interfaces {
            let capture = Capture::open(recorder.node(), &destination, interface, what, choice.clone())
                .map_err(|error| refusal(&error, error.hint()))?;
            files.push(capture.path().display().to_string());
            self.captures.push(capture);
        }
        Ok(json!({"files": files}))
    }

    fn start(&mut self, clock: Clock, current: &Current) -> Answer {
        let Some(recorder) = self.recorder.take() else {
            return Err(refusal("`start` came before `configure`", "send `configure` first, for every run"));
        };
        self.reflector = None;
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|run| !run.is_over()) {
            return Err(refusal("a run is in progress", "send `stop` and wait for `done`"));
        }
        let parts = Parts {
            flows: std::mem::take(&mut self.flows),
            probe: std::mem::take(&mut self.probe),
            captures: std::mem::take(&mut self.captures),
            proxies: self.proxies.clone(),
            recorder,
        };
        let run = Run::start(parts, clock)
            .map_err(|error| refusal(format!("cannot start a thread: {error}"), "end other programs"))?;
        *current = Some(run);
        Ok(json!({}))
    }
}
