//! FRR's daemons in their nodes: all of a lab's routers side by side.
//!
//! Every daemon is private to its node: `-N NODE`, its file with `-f`, and a run-time directory, `/run/frr`, that is a
//! file system of the node's own and vanishes with it.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::{Router, dry_run};
use crate::LabError;
use crate::child;
use crate::namespace::RUN;

/// Where the package puts the daemons.
const PROGRAMS: &str = "/usr/lib/frr";
const INSTALL: &str = "sudo apt-get install frr";
/// How long zebra may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program that runs in a node.
pub(crate) struct Daemon {
    pub(crate) node: String,
    pub(crate) name: String,
    pub(crate) pid: Pid,
}

/// Why there are no routing daemons; none if there are.
fn missing() -> Option<LabError> {
    let missing = |message: String| LabError::Explained { message, hint: INSTALL.to_owned() };
    if !Path::new(PROGRAMS).join("zebra").exists() {
        return Some(missing("routing protocols need FRR, which is not installed".to_owned()));
    }
    (!Path::new(RUN).is_dir()).then(|| missing(format!("FRR's run-time directory {RUN} is missing")))
}

/// Starts the daemons of every router; `process` is the one that holds a node.
///
/// Processes that were started are in `started`, also when something fails.
pub(crate) fn start(
    routers: &[Router],
    process: impl Fn(&str) -> Result<u32, LabError>,
    started: &mut Vec<Daemon>,
) -> Result<(), LabError> {
    if let Some(problem) = missing() {
        return Err(problem);
    }
    let nodes: Result<Vec<Node<'_>>, LabError> =
        routers.iter().map(|router| Ok(Node { router, process: process(&router.node)? })).collect();
    let nodes = nodes?;
    for node in &nodes {
        node.prepare().map_err(|source| LabError::Write {
            node: node.router.node.clone(),
            path: RUN.to_owned(),
            source,
        })?;
    }
    dry_run::check(&nodes)?;
    // The others talk to zebra.
    for node in &nodes {
        started.push(node.start("zebra")?);
    }
    let deadline = Instant::now() + PATIENCE;
    for node in &nodes {
        while !node.path(&format!("{}/zserv.api", node.router.node)).exists() {
            node.ended(started)?;
            if Instant::now() > deadline {
                return Err(node.failed("zebra", "does not start"));
            }
            sleep(Duration::from_millis(2));
        }
    }
    for node in &nodes {
        for daemon in node.router.daemons() {
            started.push(node.start(daemon)?);
        }
    }
    Ok(())
}

/// The part of the common configuration that a daemon reads. The daemon does not enter the sections of others,
/// because their `exit` would end its reading. A line that a section does not have is looked for in the sections
/// around it.
fn without_exits(configuration: &str) -> String {
    let lines = configuration.lines().map(|line| if line.trim() == "exit" { "!" } else { line });
    lines.map(|line| format!("{line}\n")).collect()
}

pub(super) struct Node<'r> {
    pub(super) router: &'r Router,
    process: u32,
}

impl Node<'_> {
    /// A file of the node's run-time directory, seen from here.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{RUN}/{file}", self.process))
    }

    fn prepare(&self) -> io::Result<()> {
        fs::create_dir(self.path(&self.router.node))?;
        // Where vtysh(1) looks for the consoles by default.
        for daemon in ["zebra"].into_iter().chain(self.router.daemons()) {
            symlink(format!("{}/{daemon}.vty", self.router.node), self.path(&format!("{daemon}.vty")))?;
        }
        fs::write(self.path("daemons.conf"), without_exits(&self.router.configuration))?;
        fs::write(self.path("frr.conf"), &self.router.configuration)
    }

    fn start(&self, name: &str) -> Result<Daemon, LabError> {
        let node = &self.router.node;
        let own = ["-i", &format!("{RUN}/{node}/{name}.pid"), "-A", "127.0.0.1"];
        let pid = self.run(name, &own, &format!("{name}.log"))?;
        Ok(Daemon { node: node.clone(), name: name.to_owned(), pid })
    }

    /// Runs a daemon's program on the configuration, with options of its own; what it says goes to a file in the
    /// run-time directory.
    pub(super) fn run(&self, name: &str, own: &[&str], log: &str) -> Result<Pid, LabError> {
        let node = &self.router.node;
        let program = format!("{PROGRAMS}/{name}");
        let file = format!("{RUN}/daemons.conf");
        let common = [
            &*program,
            "-N",
            node,
            "-u",
            "root",
            "-g",
            "root",
            "-f",
            &file,
            "--log",
            "stdout",
            "--log-level",
            "info",
        ];
        let command: Vec<String> = common.iter().chain(own).map(|&word| word.to_owned()).collect();
        child::daemon(self.process, &command, &format!("{RUN}/{log}"))
            .map_err(|source| LabError::Start { name: format!("{name} of {node}"), source })
    }

    /// An error if a daemon of the node has ended.
    fn ended(&self, started: &[Daemon]) -> Result<(), LabError> {
        let own = started.iter().filter(|daemon| daemon.node == self.router.node);
        for daemon in own {
            if !matches!(waitpid(daemon.pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)) {
                return Err(self.failed(&daemon.name, "has ended"));
            }
        }
        Ok(())
    }

    fn failed(&self, daemon: &str, what: &str) -> LabError {
        let log = fs::read_to_string(self.path(&format!("{daemon}.log"))).unwrap_or_default();
        let last = log.lines().last().unwrap_or("it said nothing");
        LabError::Explained {
            message: format!("{}: {daemon} {what}: {last}", self.router.node),
            hint: String::new(),
        }
    }
}
