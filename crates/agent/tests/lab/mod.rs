//! Two agents in namespaces of their own, joined by a veth pair. Everything ends with the test.

#![allow(dead_code)] // each test file uses its part

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

pub const A: &str = "10.9.0.1";
pub const B: &str = "10.9.0.2";
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// Why this machine cannot run the test; none if it can.
pub fn obstacle() -> Option<String> {
    let able =
        Command::new("unshare").args(["--net", "ip", "link", "add", "name", "t0", "type", "veth"]).output();
    match able {
        Err(error) => Some(format!("unshare cannot be run: {error}")),
        Ok(out) if !out.status.success() => {
            Some(format!("no network namespaces with veth: {}", String::from_utf8_lossy(&out.stderr).trim()))
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

pub struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    events: Receiver<Value>,
    /// Every event read so far.
    pub seen: Vec<Value>,
    ids: u64,
}

impl Agent {
    pub fn new() -> Agent {
        Agent::start(&["node", "--new-net"])
    }

    /// One that is started with other arguments.
    pub fn start(arguments: &[&str]) -> Agent {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tcplab-agent"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let (sender, events) = channel();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut agent = Agent { child, input, events, seen: Vec::new(), ids: 0 };
        let hello = agent.wait_for(|e| e["event"] == "hello" || e["event"] == "error");
        assert_eq!(hello["event"], "hello", "{hello}");
        agent
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command and returns its answer.
    pub fn ask(&mut self, command: Value) -> Value {
        let id = self.send(command);
        self.wait_for(|e| e["id"] == id)
    }

    /// Sends a command and returns its number.
    pub fn send(&mut self, mut command: Value) -> u64 {
        self.ids += 1;
        let id = self.ids;
        command["id"] = id.into();
        if let Some(flow) = command.get_mut("flow") {
            complete(flow);
        }
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{command}").expect("the agent reads");
        id
    }

    /// Sends a command that must succeed.
    pub fn command(&mut self, command: Value) -> Value {
        let answer = self.ask(command);
        assert_eq!(answer["event"], "ok", "{answer}");
        answer
    }

    /// The first event, seen or to come, that `wanted` picks.
    pub fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(event) = self.seen.iter().find(|e| wanted(e)) {
            return event.clone();
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event =
                self.events.recv_timeout(left).unwrap_or_else(|_| panic!("no such event: {:?}", self.seen));
            self.seen.push(event.clone());
            if wanted(&event) {
                return event;
            }
        }
    }

    pub fn done(&mut self) -> Value {
        self.wait_for(|e| e["event"] == "done")
    }

    /// Events of a kind so far.
    pub fn all(&self, kind: &str) -> Vec<&Value> {
        self.seen.iter().filter(|e| e["event"] == kind).collect()
    }

    /// Ends it as if the power had failed.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    pub fn wait_exit(&mut self, within: Duration) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < within {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// A listening socket in the node's namespace, which nobody reads from unless the test does.
    pub fn listen(&self) -> Socket {
        let namespace = std::fs::File::open(format!("/proc/{}/ns/net", self.pid())).expect("a process");
        let listen = move || {
            // SAFETY: a descriptor of a network namespace, which this thread alone enters.
            let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(entered, 0, "{}", std::io::Error::last_os_error());
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            socket.bind(&SocketAddr::from(([0; 4], 0)).into()).expect("a free port");
            socket.listen(1).expect("listens");
            socket
        };
        std::thread::spawn(listen).join().expect("a namespace to enter")
    }

    /// Memory that the send buffer of the node's only connection takes (`sk_wmem_queued`).
    pub fn send_memory(&self) -> u64 {
        let shown = self.within(&["ss", "-tmnH"]);
        let (_, rest) = shown.split_once(",w").unwrap_or_else(|| panic!("no memory in {shown:?}"));
        let digits = rest.split(',').next().unwrap_or_default();
        digits.parse().unwrap_or_else(|_| panic!("no memory in {shown:?}"))
    }

    /// The same once it is above `minimum` and has been still for a second.
    pub fn settled_send_memory(&self, minimum: u64) -> u64 {
        let deadline = Instant::now() + Duration::from_secs(60);
        let (mut last, mut still) = (0, 0);
        while still < 10 {
            assert!(Instant::now() < deadline, "the buffer holds {last} bytes");
            std::thread::sleep(Duration::from_millis(100));
            let now = self.send_memory();
            still = if now == last && now > minimum { still + 1 } else { 0 };
            last = now;
        }
        last
    }

    /// Runs a command in the node's namespace.
    pub fn within(&self, words: &[&str]) -> String {
        let pid = self.pid().to_string();
        let out =
            Command::new("nsenter").args(["-t", &pid, "-n"]).args(words).output().expect("nsenter runs");
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
}

/// Adds to a flow what its plan has too and its test leaves out.
fn complete(flow: &mut Value) {
    let Some(keys) = flow.as_object_mut() else { return };
    let mut more = json!({"start": 0, "streams": 1});
    match keys.get("kind").and_then(Value::as_str) {
        Some("echo") => more["timeout"] = (10 * SECOND).into(),
        Some("request") => more["think"] = 0.into(),
        _ => {}
    }
    if keys.contains_key("cc") {
        (more["sender"], more["receiver"]) = (json!({}), json!({}));
    }
    for (key, value) in more.as_object().into_iter().flatten() {
        keys.entry(key).or_insert_with(|| value.clone());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.input = None;
        if !self.wait_exit(Duration::from_secs(50)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Nodes `a` and `b` with a run directory.
pub struct Lab {
    pub a: Agent,
    pub b: Agent,
    pub dir: PathBuf,
}

impl Lab {
    /// Joined by a veth pair.
    pub fn new(name: &str) -> Lab {
        Lab::joined(name, |a, b, _| {
            let b = b.pid().to_string();
            a.within(&[
                "ip", "link", "add", "name", "eth0", "type", "veth", "peer", "name", "eth0", "netns", &b,
            ]);
        })
    }

    /// Joined by what `join` does: afterwards both nodes have an interface eth0.
    pub fn joined(name: &str, join: impl FnOnce(&Agent, &Agent, &Path)) -> Lab {
        let dir = std::env::temp_dir().join(format!("tcplab-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        let (mut a, mut b) = (Agent::new(), Agent::new());
        join(&a, &b, &dir);
        for (agent, address) in [(&a, A), (&b, B)] {
            agent.within(&["ip", "address", "add", &format!("{address}/24"), "dev", "eth0"]);
            agent.within(&["ip", "link", "set", "eth0", "up"]);
        }
        // The kernel notices a carrier up to a second late (linkwatch), and drops what is sent until then.
        for agent in [&a, &b] {
            let deadline = Instant::now() + Duration::from_secs(50);
            let state = || agent.within(&["ip", "-o", "link", "show", "eth0"]);
            // Some devices never report it.
            while !["state UP", "state UNKNOWN"].iter().any(|good| state().contains(good)) {
                assert!(Instant::now() < deadline, "the link does not come up");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        a.command(json!({"do": "configure", "node": "a", "dir": dir}));
        b.command(json!({"do": "configure", "node": "b", "dir": dir}));
        Lab { a, b, dir }
    }

    /// Prepares both ends of a flow whose server is at `b`.
    pub fn flow(&mut self, flow: Value, extra: Value) {
        let merge = |mut base: Value| {
            for (key, value) in extra.as_object().into_iter().flatten() {
                base[key] = value.clone();
            }
            base
        };
        let server = merge(json!({"do": "flow", "role": "server", "address": B, "flow": flow}));
        let ports = self.b.command(server)["ports"].clone();
        let client = json!({"do": "flow", "role": "client", "address": B, "ports": ports, "flow": flow});
        self.a.command(merge(client));
    }

    /// Starts both nodes with one zero of time, which it returns.
    pub fn start(&mut self, duration: u64) -> u64 {
        let at = monotonic() + 50 * MS;
        for agent in [&mut self.a, &mut self.b] {
            agent.command(json!({"do": "start", "at": at, "duration": duration}));
        }
        at
    }

    /// Starts both and waits for the end; what each said at last.
    pub fn run(&mut self, duration: u64) -> (Value, Value) {
        self.start(duration);
        (self.a.done(), self.b.done())
    }

    /// No node reported an error.
    pub fn assert_no_errors(&self) {
        for agent in [&self.a, &self.b] {
            assert!(agent.all("error").is_empty(), "{:?}", agent.all("error"));
        }
    }

    pub fn rows(&self, table: &str, node: &str) -> Vec<Value> {
        read_rows(&self.dir.join(format!("{table}.{node}.arrows")))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub fn monotonic() -> u64 {
    tcplab_probe::clock::now()
}

/// The rows of a table's stream as JSON objects, up to the last whole batch.
pub fn read_rows(path: &Path) -> Vec<Value> {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
    use arrow_schema::DataType;

    let Ok(file) = std::fs::File::open(path) else { return Vec::new() };
    let reader = arrow_ipc::reader::StreamReader::try_new(BufReader::new(file), None).expect("a stream");
    let mut rows = Vec::new();
    for batch in reader {
        let Ok(batch) = batch else { break };
        for row in 0..batch.num_rows() {
            let mut object = serde_json::Map::new();
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                let value = if column.is_null(row) {
                    Value::Null
                } else {
                    match field.data_type() {
                        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
                        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
                        DataType::Boolean => column.as_boolean().value(row).into(),
                        _ => {
                            let strings = column.as_dictionary::<UInt32Type>();
                            let key = strings.keys().value(row) as usize;
                            strings.values().as_string::<i32>().value(key).into()
                        }
                    }
                };
                object.insert(field.name().clone(), value);
            }
            rows.push(Value::Object(object));
        }
    }
    rows
}

/// The sum of an integer column.
pub fn sum(rows: &[Value], column: &str) -> u64 {
    rows.iter().filter_map(|row| row[column].as_u64()).sum()
}
