//! How fast captures are read, beside tcptrace and tshark, measured now on this machine.
//!
//! `cargo run --release -p tcplab-pcap --example bench [-- --large]`: a capture of 1.5 million packets with a snap
//! length of 128 bytes; `--large` adds one of 4 GB, read in bounded memory. Each is removed afterwards.

mod generate;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tcplab_pcap::flow::{Analysis, Observer, Options, Seen};
use tcplab_pcap::{Reader, summarise};

const PACKETS: u64 = 1_500_000;
const LARGE_PACKETS: u64 = 30_000_000;
/// 100 million packets come from a generator, through a pipe: no disk need hold them.
const STREAMED_PACKETS: u64 = 100_000_000;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let large = std::env::args().any(|argument| argument == "--large");
    println!("captures: packets a second (millions), best of {ROUNDS} rounds");
    let file = TemporaryFile::write("tcplab-bench.pcap", PACKETS)?;
    compare(&file.0, PACKETS)?;
    drop(file);
    if large {
        let file = TemporaryFile::write("tcplab-bench-large.pcap", LARGE_PACKETS)?;
        println!("{:.1} GB:", std::fs::metadata(&file.0)?.len() as f64 / 1e9);
        compare(&file.0, LARGE_PACKETS)?;
        drop(file);
        bounded_memory()?;
    }
    Ok(())
}

/// A capture that is removed when it is done with.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn write(name: &str, packets: u64) -> io::Result<TemporaryFile> {
        let file = TemporaryFile(std::env::temp_dir().join(format!("{}-{name}", std::process::id())));
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&file.0)?);
        generate::write(&mut out, packets)?;
        out.flush()?;
        Ok(file)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // What can't be removed is left in the temporary directory.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// One after the other, round by round: a machine's speed drifts.
fn compare(path: &Path, packets: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut ours = [Duration::MAX; 4];
    for _ in 0..ROUNDS {
        for (best, run) in ours.iter_mut().zip([walk, one_core, two_cores, series]) {
            let begin = Instant::now();
            run(path)?;
            *best = begin.elapsed().min(*best);
        }
    }
    let rate = |time: Duration| packets as f64 / time.as_secs_f64() / 1e6;
    let names = ["records alone", "summary, 1 core", "summary, 2 cores", "RTT and inflight series"];
    for (name, time) in names.into_iter().zip(ours) {
        println!("  {name:32} {:8.2}", rate(time));
    }
    let others: [(&str, &[&str]); 3] = [
        ("tcptrace (summary)", &["tcptrace", "-l", "-r", "-n"]),
        ("tcptrace (graphs)", &["tcptrace", "-l", "-r", "-n", "-S", "-R", "-N"]),
        ("tshark (conversations)", &["tshark", "-q", "-z", "conv,tcp", "-r"]),
    ];
    for (name, command) in others {
        match time(command, path, packets)? {
            Some(time) => println!("  {name:32} {:8.2}", rate(time)),
            None => println!("  {name:32}  not measured"),
        }
    }
    Ok(())
}

fn walk(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut reader = Reader::open(path)?;
    while reader.next_packet().is_some() {}
    Ok(())
}

fn one_core(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    summarise(&mut Reader::open(path)?, Options::default(), 1);
    Ok(())
}

fn two_cores(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    summarise(&mut Reader::open(path)?, Options::default(), 2);
    Ok(())
}

/// RTT samples and data outstanding of every flow.
#[derive(Default)]
struct Series {
    rtt: Vec<(i64, u32, i64)>,
    outstanding: Vec<(i64, u32, u32)>,
}

impl Observer for Series {
    fn seen(&mut self, seen: &Seen<'_>) {
        if let Some(rtt) = seen.rtt {
            self.rtt.push((seen.time, seen.flow as u32, rtt));
        }
        let outstanding = seen.outstanding.max(seen.outstanding_peer);
        self.outstanding.push((seen.time, seen.flow as u32, outstanding as u32));
    }
}

fn series(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut reader = Reader::open(path)?;
    let mut analysis = Analysis::with_observer(Options::default(), Series::default());
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
    }
    Ok(())
}

/// Runs another program once, in a directory that is removed; none if it is not there or takes too long to be
/// worth waiting for.
fn time(command: &[&str], path: &Path, packets: u64) -> io::Result<Option<Duration>> {
    let slow = command[0] == "tshark" || command.contains(&"-S");
    if slow && packets > PACKETS {
        return Ok(None);
    }
    let directory = std::env::temp_dir().join(format!("tcplab-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let begin = Instant::now();
    let status = Command::new(command[0])
        .args(&command[1..])
        .arg(path)
        .current_dir(&directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let time = begin.elapsed();
    std::fs::remove_dir_all(&directory)?;
    Ok(status.is_ok_and(|status| status.success()).then_some(time))
}

fn bounded_memory() -> Result<(), Box<dyn std::error::Error>> {
    let before = resident()?;
    let begin = Instant::now();
    let (reading, writing) = io::pipe()?;
    let writer = std::thread::spawn(move || {
        let mut out = BufWriter::with_capacity(1 << 18, writing);
        generate::write(&mut out, STREAMED_PACKETS).and_then(|()| out.flush())
    });
    let mut reader = Reader::from_stream(reading)?;
    let mut analysis = Analysis::new(Options::default());
    let (mut flows, mut most) = (0, 0);
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
        if packet.number.is_multiple_of(1 << 20) {
            flows += analysis.drain().count();
            most = most.max(resident()?);
        }
    }
    flows += analysis.finish().0.len();
    writer.join().map_err(|_| "the generator panicked")??;
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{STREAMED_PACKETS} packets, {flows} flows through a pipe in {seconds:.0} s: {} MiB more resident at most",
        (most.saturating_sub(before)) >> 20
    );
    Ok(())
}

/// Resident memory of this process in bytes (proc(5), statm).
fn resident() -> Result<u64, Box<dyn std::error::Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages.split(' ').nth(1).ok_or("no resident pages in statm")?.parse()?;
    Ok(pages * 4096)
}
