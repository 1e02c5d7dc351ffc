//! `tcplab-agent watch`: what goes on in the nodes of a lab, whatever programs run there.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use tcplab_probe::clock;
use tcplab_probe::sockets::{Registry, Sample, Sampler};

/// Nodes to watch, and the interval.
#[derive(Debug)]
pub struct Watched {
    /// From one line to the next.
    pub milliseconds: u64,
    /// Nodes by name, each with a process in it.
    pub nodes: Vec<(String, i32)>,
}

/// A node whose sockets can be read.
struct Node<'a> {
    name: &'a str,
    process: i32,
    sampler: Sampler,
}

#[derive(Serialize)]
struct Line<'a> {
    time: u64,
    nodes: BTreeMap<&'a str, Seen>,
}

#[derive(Serialize)]
struct Seen {
    /// Bytes received and sent.
    interfaces: BTreeMap<String, [u64; 2]>,
    sockets: Vec<Socket>,
}

#[derive(Serialize)]
struct Socket {
    local_port: u16,
    remote_port: u16,
    cwnd: u32,
    inflight: u32,
    srtt: Option<u64>,
    acked: u64,
    delivery_rate: Option<f64>,
    pacing_rate: Option<f64>,
    retransmits: u32,
    phase: Option<String>,
}

/// Writes a line as often as asked, until nobody reads it or every node has ended.
pub fn main(watched: &Watched) -> u8 {
    match watch(watched) {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            eprintln!("tcplab: cannot watch: {error}");
            4
        }
    }
}

fn watch(watched: &Watched) -> io::Result<()> {
    // A diagnosis socket is of the namespace it was made in: this process is in each node only for that moment.
    let mut nodes = Vec::new();
    for (name, process) in &watched.nodes {
        tcplab_lab::join(*process)?;
        let sampler = Sampler::open(true, Vec::new()).map_err(io::Error::other)?;
        nodes.push(Node { name, process: *process, sampler });
    }
    let period = watched.milliseconds * 1_000_000;
    let never = AtomicBool::new(false);
    loop {
        let time = clock::now();
        let seen: BTreeMap<&str, Seen> =
            nodes.iter_mut().filter_map(|node| Some((node.name, look(node)?))).collect();
        if seen.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, &Line { time, nodes: seen })?;
        out.write_all(b"\n")?;
        out.flush()?;
        clock::sleep_until(time + period, &never);
    }
}

/// Counters and sockets of a node; none when it has ended.
fn look(node: &mut Node<'_>) -> Option<Seen> {
    let counters = std::fs::read_to_string(format!("/proc/{}/net/dev", node.process)).ok()?;
    let mut sockets = Vec::new();
    node.sampler.sample(&Registry::default(), |sample| sockets.push(socket(sample))).ok()?;
    Some(Seen { interfaces: counters.lines().skip(2).filter_map(interface).collect(), sockets })
}

/// A line of /proc/net/dev (proc_pid_net(5)): the first figure counts received bytes, the ninth sent ones.
fn interface(line: &str) -> Option<(String, [u64; 2])> {
    let (name, figures) = line.split_once(':')?;
    let mut figures = figures.split_whitespace().map(|figure| figure.parse().ok());
    let received = figures.next()??;
    let sent = figures.nth(7)??;
    (name.trim() != "lo").then(|| (name.trim().to_owned(), [received, sent]))
}

fn socket(sample: &Sample<'_>) -> Socket {
    let info = sample.info;
    Socket {
        local_port: sample.local_port,
        remote_port: sample.remote_port,
        cwnd: info.snd_cwnd,
        inflight: info.in_flight(),
        srtt: info.srtt(),
        acked: info.bytes_acked,
        delivery_rate: (info.delivery_rate != 0).then_some(info.delivery_rate as f64 * 8.0),
        pacing_rate: sample.pacing_rate,
        retransmits: info.total_retrans,
        phase: sample.phase.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::interface;

    #[test]
    fn counters_are_received_and_sent_bytes() {
        let line = "  eth0: 1500 3 0 0 0 0 0 0 900 2 0 0 0 0 0 0";
        assert_eq!(interface(line), Some(("eth0".to_owned(), [1500, 900])));
        assert_eq!(interface("    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0"), None);
        assert_eq!(interface("face |bytes"), None);
    }
}
