//! A flow made by the real iperf3, its report read into the same rows.
//!
//! Its intervals count from the moment its test begins, not from the run's start, so they are not aligned
//! with those of other flows. They come when the test is over; those that end after the run are left out.

use std::ffi::CStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;
use tcplab_plan::{Spacing, Tcp, Traffic, Udp};
use tcplab_probe::Dump;
use tcplab_probe::Filter;
use tcplab_probe::diag::Family;

use crate::{Context, End, Interval, Role, SocketOptions, Summary, Totals, TrafficError};

/// Time iperf3 has, after the run, to end its test, exchange results and exit: seven round trips, and what a busy host takes.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// The same after a run that was ended early.
const GRACE_IF_STOPPED: Duration = Duration::from_secs(3);
/// Time its server has to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often its connections are looked for.
const GLANCE: Duration = Duration::from_millis(2);
/// How much later than asked a test may begin, ns: it connects twice before.
const LATE: u64 = 250_000_000;
/// Shortest report interval iperf3 takes, ns.
const SHORTEST: u64 = 100_000_000;
/// Where it makes a file for each stream, which it unlinks at once (`iperf_new_stream`); killed before that it would leave the file.
const SCRATCH: &CStr = c"/dev/shm";
/// Socket buffers of a datagram flow, bytes: 30 ms of full packets at 500 Mbit/s.
const DATAGRAM_BUFFER: u64 = 4 << 20;

/// A prepared end. A server runs already.
#[derive(Debug)]
pub(crate) struct Iperf3 {
    server: Option<Process>,
    /// The server's.
    port: u16,
}

/// A child that ends with us, however we end.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Iperf3 {
    pub fn prepare(end: &End) -> Result<(Iperf3, Vec<u16>), TrafficError> {
        let out = Command::new("iperf3").arg("--version").output().map_err(TrafficError::Iperf3Missing)?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let found = text.split_ascii_whitespace().nth(1).unwrap_or("of an unknown version").to_owned();
        if version(&found) < Some((3, 12)) {
            return Err(TrafficError::Iperf3Old { found });
        }
        let streams = end.flow.streams as usize;
        if end.role == Role::Client {
            // Says now what cannot be done, rather than when the run has begun.
            arguments(end, u64::MAX)?;
            let port = end.ports.first().copied().unwrap_or(0);
            return Ok((Iperf3 { server: None, port }, end.ports.clone()));
        }
        let address = std::net::SocketAddr::new(end.address, end.ports.first().copied().unwrap_or(0));
        // iperf3 cannot be asked which port it chose, so one is found free beforehand.
        let port = std::net::TcpListener::bind(address)
            .and_then(|listener| listener.local_addr())
            .map_err(|source| TrafficError::Listen { address, source })?
            .port();
        let interval = interval(end);
        let (port_text, address_text) = (port.to_string(), end.address.to_string());
        let mut server = spawn(&["-s", "-1", "-J", "-p", &port_text, "-B", &address_text, "-i", &interval])?;
        server.wait_until_it_listens(port)?;
        Ok((Iperf3 { server: Some(server), port }, vec![port; streams]))
    }

    pub fn run(self, end: &End, context: &Context, totals: &Totals) -> Result<(), TrafficError> {
        let server = end.role == Role::Server;
        if !server && (!context.sleep_until(end.start()) || context.over()) {
            return Ok(());
        }
        let mut process = match self.server {
            Some(server) => server,
            None => {
                if end.flow.traffic.traits().connected && !end.reverse {
                    context.registry.add_foreign(self.port, end.flow.name.as_str().into());
                }
                warn(end, context);
                let words = arguments(end, context.clock.duration)?;
                spawn(&words.iter().map(String::as_str).collect::<Vec<_>>())?
            }
        };
        let begin = begin(end, self.port, context);
        warn_if_late(end, context, begin);
        let report = process.report(context)?;
        if let Some(message) = report["error"].as_str() {
            return Err(TrafficError::Iperf3Failed { message: message.to_owned() });
        }
        let sends = server == end.reverse;
        Rows { end, context, totals, sends, begin }.write(&report);
        Ok(())
    }
}

/// Says where iperf3 cannot follow the plan to the letter.
fn warn(end: &End, context: &Context) {
    let length = end.stop(context.clock.duration) - end.start();
    let timed = Test::of(&end.flow.traffic).is_some_and(|test| test.bytes().is_none());
    if timed && !length.is_multiple_of(1_000_000_000) {
        let message = format!("{}: iperf3 sends for whole seconds only, so it stops early", end.flow.name);
        context.sink.warning(message, "give the flow a duration of whole seconds".into());
    }
    if end.sample.is_some_and(|sample| sample < SHORTEST) {
        let message = format!("{}: iperf3 reports every 100 ms at most", end.flow.name);
        context.sink.warning(message, "sample flows every 100 ms or less often".into());
    }
}

/// Warns of a test that began late and outlasts the run.
fn warn_if_late(end: &End, context: &Context, begin: u64) {
    let duration = context.clock.duration;
    let late = begin.saturating_sub(end.start());
    if late > LATE && end.stop(duration).saturating_add(late) > duration {
        let name = &end.flow.name;
        let ms = late / 1_000_000;
        let message = format!(
            "{name}: iperf3 began {ms} ms late and outlasts the run: intervals that end after it are left out"
        );
        context.sink.warning(message, "let the run last some seconds longer than the flow".into());
    }
}

/// When the first data connection was made, which is within a round trip of when the test began.
fn begin(end: &End, port: u16, context: &Context) -> u64 {
    let (Ok(mut dump), true) = (Dump::open(), end.flow.traffic.traits().connected) else {
        return end.start();
    };
    let filter = match end.role {
        Role::Client => Filter { local: vec![], remote: vec![port..=port] },
        Role::Server => Filter { local: vec![port..=port], remote: vec![] },
    };
    let family = if end.address.is_ipv4() { Family::V4 } else { Family::V6 };
    while !context.over() {
        let mut connections = 0;
        if dump.each(family, &filter, |_| connections += 1).is_err() {
            break;
        }
        if connections > 1 {
            return context.clock.now();
        }
        std::thread::sleep(GLANCE);
    }
    end.start()
}

fn spawn(words: &[&str]) -> Result<Process, TrafficError> {
    let mut command = Command::new("iperf3");
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Ok(scratch) = SCRATCH.to_str()
        && Path::new(scratch).is_dir()
    {
        command.env("TMPDIR", scratch);
    }
    // SAFETY: the calls are async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            own_scratch();
            Ok(())
        })
    };
    command.spawn().map(Process).map_err(TrafficError::Iperf3Missing)
}

/// Gives this process an empty `SCRATCH` of its own, which is gone with it. Without the privilege it has the machine's.
fn own_scratch() {
    let (none, file_system) = (std::ptr::null(), c"tmpfs".as_ptr());
    // SAFETY: every pointer is null, or to a string that ends with a zero.
    unsafe {
        // A mount shall not appear outside of this namespace.
        let _ = libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_SLAVE, none.cast()) == 0
            && libc::mount(file_system, SCRATCH.as_ptr(), file_system, 0, none.cast()) == 0;
    }
}

impl Process {
    /// A client that comes before is refused.
    fn wait_until_it_listens(&mut self, port: u16) -> Result<(), TrafficError> {
        let failed = |message: &str| Err(TrafficError::Iperf3Failed { message: message.to_owned() });
        let begin = Instant::now();
        while !is_listening(port) {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return failed("its server ended before it listened");
            }
            if begin.elapsed() > PATIENCE {
                return failed("its server does not listen");
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// Its report, once it has ended; the process is killed when it outlives the run.
    fn report(&mut self, context: &Context) -> Result<Value, TrafficError> {
        let failed = |message: String| TrafficError::Iperf3Failed { message };
        let unread = |error: io::Error| failed(format!("its report cannot be read: {error}"));
        let output = self.0.stdout.take();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            output.map_or(Ok(0), |mut output| output.read_to_string(&mut text)).map(|_| text)
        });
        let mut over = None;
        loop {
            match self.0.try_wait() {
                Ok(Some(_)) => break,
                Ok(None) => {}
                Err(error) => return Err(unread(error)),
            }
            let early = context.clock.now() < context.clock.duration;
            let grace = if early { GRACE_IF_STOPPED } else { GRACE };
            if context.over() && over.get_or_insert_with(Instant::now).elapsed() > grace {
                let _ = self.0.kill();
                return Err(failed("it had not ended when the run was over".into()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let text = reader.join().map_err(|_| failed("its report was lost".into()))?.map_err(unread)?;
        serde_json::from_str(&text).map_err(|error| {
            let mut said = String::new();
            if let Some(stderr) = &mut self.0.stderr {
                let _ = stderr.read_to_string(&mut said);
            }
            failed(format!("{}; {error}", said.trim()))
        })
    }
}

/// Whether a TCP socket of this thread's network namespace listens on a port (proc_pid_net(5), `tcp`: state 0A).
fn is_listening(port: u16) -> bool {
    let end = format!(":{port:04X}");
    ["tcp", "tcp6"].iter().any(|table| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        text.lines().any(|line| {
            let mut words = line.split_ascii_whitespace().skip(1);
            words.next().is_some_and(|local| local.ends_with(&end)) && words.nth(1) == Some("0A")
        })
    })
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

fn interval(end: &End) -> String {
    format!("{}", end.sample.unwrap_or(1_000_000_000).max(SHORTEST) as f64 / 1e9)
}

/// Socket buffer of datagram flows, bytes. By default a receiver has 208 KiB, which are 92 full packets with what Linux counts
/// for each (2,304 bytes). At 500 Mbit/s one that waits 2 ms for its CPU loses packets that the network did not lose.
fn datagram_buffer() -> u64 {
    let limit = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok();
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX)
    };
    // iperf3 ends where it does not get all it asks for.
    DATAGRAM_BUFFER.min(limit("rmem_max")).min(limit("wmem_max"))
}

/// The client's command line.
fn arguments(end: &End, duration: u64) -> Result<Vec<String>, TrafficError> {
    let unable = |what| Err(TrafficError::Iperf3Unable { what });
    let port = end.ports.first().copied().unwrap_or(0);
    let mut words: Vec<String> =
        ["-c", &end.address.to_string(), "-p", &port.to_string(), "-J", "-i", &interval(end)]
            .map(str::to_owned)
            .into();
    let mut push = |key: &str, value: String| words.extend([key.to_owned(), value]);
    push("-P", end.flow.streams.to_string());
    let traffic_class = end.flow.dscp << 2 | end.flow.traffic.ecn_field();
    if traffic_class > 0 {
        push("--tos", traffic_class.to_string());
    }
    let Some(test) = Test::of(&end.flow.traffic) else { return unable("it makes tcp and udp flows only") };
    if test.has_pauses() {
        return unable("it knows no pauses");
    }
    match test {
        Test::Tcp(Tcp { cc, sender, receiver, .. }) => {
            push("-C", cc.name.clone());
            let SocketOptions { mss, send_buffer, max_pacing_rate, pacing, .. } = end.options(sender);
            if let Some(mss) = mss {
                push("-M", mss.to_string());
            }
            match (send_buffer, receiver.receive_buffer) {
                (Some(a), Some(b)) if a != b => return unable("it has one size for both socket buffers"),
                (Some(window), _) | (_, Some(window)) => push("-w", window.to_string()),
                (None, None) => {}
            }
            if pacing && max_pacing_rate.is_none() {
                return unable("it paces at a given rate only");
            }
            if let Some(rate) = max_pacing_rate {
                push("--fq-rate", rate.to_string());
            }
        }
        Test::Udp(Udp { spacing: Spacing::Exponential, .. }) => {
            return unable("it sends at equal intervals");
        }
        Test::Udp(Udp { rate, payload, .. }) => {
            push("-b", rate.bits_per_sec().to_string());
            push("-l", payload.to_string());
            push("-w", datagram_buffer().to_string());
        }
    }
    match test.bytes() {
        Some(_) if end.flow.streams > 1 => return unable("it counts bytes over all streams"),
        Some(bytes) => push("-n", bytes.to_string()),
        None => {
            let length = end.stop(duration).saturating_sub(end.start());
            if duration != u64::MAX || end.flow.stop.is_some() {
                if length < 1_000_000_000 {
                    return unable("its tests last whole seconds, one or more");
                }
                push("-t", (length / 1_000_000_000).to_string());
            }
        }
    }
    match test {
        Test::Tcp(tcp) => {
            words.extend((!tcp.sender.nagle).then(|| "-N".to_owned()));
            words.extend(end.reverse.then(|| "-R".to_owned()));
        }
        Test::Udp(_) => words.push("-u".to_owned()),
    }
    Ok(words)
}

/// A test that iperf3 makes.
enum Test<'t> {
    Tcp(&'t Tcp),
    Udp(&'t Udp),
}

impl Test<'_> {
    /// The test that is this traffic; none: iperf3 has no such test.
    fn of(traffic: &Traffic) -> Option<Test<'_>> {
        match traffic {
            Traffic::Tcp(tcp) => Some(Test::Tcp(tcp)),
            Traffic::Udp(udp) => Some(Test::Udp(udp)),
            _ => None,
        }
    }

    /// Bytes of a stream; none: it ends with its time.
    fn bytes(&self) -> Option<u64> {
        match self {
            Test::Tcp(tcp) => tcp.bytes,
            Test::Udp(udp) => udp.bytes,
        }
    }

    fn has_pauses(&self) -> bool {
        match self {
            Test::Tcp(tcp) => tcp.pattern.is_some(),
            Test::Udp(udp) => udp.pattern.is_some(),
        }
    }
}

/// Counts of a stream's rows, up to the end of the last.
#[derive(Clone, Copy, Default)]
struct Counted {
    end: u64,
    bytes: u64,
    retransmits: u64,
    packets: u64,
    lost: u64,
}

/// Turns a report into rows.
struct Rows<'a> {
    end: &'a End,
    context: &'a Context,
    totals: &'a Totals,
    sends: bool,
    begin: u64,
}

impl Rows<'_> {
    /// A stream's ports, as both ends of iperf3 report them, at the flow's `from` and `to`.
    fn ports(&self, connected: &Value) -> Option<(u16, u16)> {
        let port = |name: &str| connected[name].as_u64().and_then(|port| u16::try_from(port).ok());
        let (own, other) = (port("local_port")?, port("remote_port")?);
        Some(if self.sends { (own, other) } else { (other, own) })
    }

    fn write(&self, report: &Value) {
        let flow = &self.end.flow;
        let udp = !flow.traffic.traits().connected;
        let time = |seconds: &Value| self.begin + (seconds.as_f64().unwrap_or(0.0).max(0.0) * 1e9) as u64;
        let mut totals = vec![Counted { end: self.begin, ..Counted::default() }; flow.streams as usize];
        let mut cut_off = false;
        for interval in report["intervals"].as_array().into_iter().flatten() {
            // iperf3 reads its streams one after the other. One time for all makes them rows of one interval of the flow.
            let (from, to) = (time(&interval["sum"]["start"]), time(&interval["sum"]["end"]));
            for (stream, figures) in (0u64..).zip(interval["streams"].as_array().into_iter().flatten()) {
                let bytes = figures["bytes"].as_u64();
                let retransmits = figures["retransmits"].as_u64();
                if to > self.context.clock.duration {
                    cut_off = true;
                    continue;
                }
                if let Some(total) = totals.get_mut(stream as usize) {
                    total.end = to;
                    total.bytes += bytes.unwrap_or(0);
                    total.retransmits += retransmits.unwrap_or(0);
                    total.packets += figures["packets"].as_u64().unwrap_or(0);
                    total.lost += figures["lost_packets"].as_u64().unwrap_or(0);
                }
                if self.end.sample.is_none() {
                    continue;
                }
                let row = Interval {
                    time: to,
                    duration: to - from.min(to),
                    stream,
                    bytes_received: bytes.filter(|_| !self.sends),
                    bytes_sent: bytes.filter(|_| self.sends),
                    retransmits: retransmits.filter(|_| self.sends && !udp),
                    lost: figures["lost_packets"].as_u64().filter(|_| udp && !self.sends),
                    jitter: figures["jitter_ms"].as_f64().filter(|_| udp && !self.sends).map(|ms| ms * 1e6),
                    ..Interval::default()
                };
                self.context.sink.interval(flow, &row);
            }
        }
        let cpu = report["end"]["cpu_utilization_percent"]["host_total"].as_f64();
        let has_end = Test::of(&flow.traffic).is_some_and(|test| test.bytes().is_some());
        for (stream, Counted { end, bytes, retransmits, packets, lost }) in (0u64..).zip(totals) {
            let part = &report["end"]["streams"][stream as usize];
            let figures =
                if udp { &part["udp"] } else { &part[if self.sends { "sender" } else { "receiver" }] };
            let seconds = figures["seconds"].as_f64().unwrap_or(0.0);
            let cpu = cpu.map(|percent| percent / 100.0 * seconds / f64::from(flow.streams));
            let counter = if self.sends { &self.totals.sent } else { &self.totals.received };
            counter.fetch_add(bytes, Ordering::Relaxed);
            self.context.sink.summary(
                flow,
                &Summary {
                    stream,
                    start: self.begin,
                    end,
                    bytes_sent: self.sends.then_some(bytes),
                    bytes_received: (!self.sends).then_some(bytes),
                    segments_sent: (udp && self.sends).then_some(packets),
                    retransmits: (self.sends && !udp).then_some(retransmits),
                    losses_detected: (udp && !self.sends).then_some(lost),
                    ports: self.ports(&report["start"]["connected"][stream as usize]),
                    cpu_sender: cpu.filter(|_| self.sends),
                    cpu_receiver: cpu.filter(|_| !self.sends),
                    complete: if has_end {
                        !cut_off
                    } else {
                        self.end.has_its_time(self.context.clock.duration)
                    },
                    ..Summary::default()
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_not_by_letter() {
        assert!(version("3.9") < Some((3, 12)));
        assert!(version("3.12") >= Some((3, 12)));
        assert!(version("3.17+") >= Some((3, 12)));
        assert_eq!(version("cJSON"), None);
    }
}
