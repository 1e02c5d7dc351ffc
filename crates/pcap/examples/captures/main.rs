//! How fast captures are read, beside tcptrace and tshark, measured now on this machine.
//!
//! `cargo run --release -p tcplab-pcap --example captures [-- --large]`: a capture of 1.5 million packets with a snap
//! length of 128 bytes. `--large` adds one of 4 GB, and 100 million packets through a pipe, whose flows must be
//! summarized in little memory; it takes 7 minutes, most of them tshark's. Files are removed afterwards.

mod generate;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tcplab_pcap::flow::{Analysis, Observer, Options, Seen};
use tcplab_pcap::{Reader, summarise};

const PACKETS: u64 = 1_500_000;
const LARGE_PACKETS: u64 = 33_000_000;
/// 100 million packets come from a generator, through a pipe: no disk need hold them.
const STREAMED_PACKETS: u64 = 100_000_000;
/// The memory that they may take: some hundred flows at a time, and none of the packets.
const MAX_RESIDENT: u64 = 64 << 20;
/// Another program is waited for this long.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let large = std::env::args().any(|argument| argument == "--large");
    println!("captures: packets a second (millions): median, minimum and maximum of the rounds");
    let file = TemporaryFile::write("tcplab-bench.pcap", PACKETS)?;
    compare(&file, PACKETS, 9, &[TCPTRACE, TCPTRACE_GRAPHS, TSHARK])?;
    drop(file);
    if large {
        bounded_memory()?;
        let file = TemporaryFile::write("tcplab-bench-large.pcap", LARGE_PACKETS)?;
        // tcptrace's graphs of it would fill a disk.
        compare(&file, LARGE_PACKETS, 3, &[TCPTRACE, TSHARK])?;
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
        // Files that can't be removed are left in the temporary directory.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Another program, and its arguments before the file's name.
type Other = (&'static str, &'static [&'static str]);

const TCPTRACE: Other = ("tcptrace (summary)", &["tcptrace", "-l", "-r", "-n"]);
const TCPTRACE_GRAPHS: Other = ("tcptrace (graphs)", &["tcptrace", "-l", "-r", "-n", "-S", "-R", "-N"]);
const TSHARK: Other = ("tshark (conversations)", &["tshark", "-q", "-z", "conv,tcp", "-r"]);

type Run = fn(&Path) -> Result<(), Box<dyn std::error::Error>>;

const OURS: [(&str, Run); 4] = [
    ("records alone", walk),
    ("summary, 1 core", one_core),
    ("summary, 2 cores", two_cores),
    ("RTT and inflight series", series),
];

/// Ours one after the other, round by round: a machine's speed drifts. The others once.
fn compare(
    file: &TemporaryFile,
    packets: u64,
    rounds: usize,
    others: &[Other],
) -> Result<(), Box<dyn std::error::Error>> {
    let path = &file.0;
    let bytes = std::fs::metadata(path)?.len();
    println!("{:.1} million packets, {:.2} GB, {rounds} rounds", packets as f64 / 1e6, bytes as f64 / 1e9);
    let rate = |time: Duration| packets as f64 / time.as_secs_f64() / 1e6;
    let mut rates = [const { Vec::new() }; OURS.len()];
    for _ in 0..rounds {
        for (rates, (_, run)) in rates.iter_mut().zip(OURS) {
            let begin = Instant::now();
            run(path)?;
            rates.push(rate(begin.elapsed()));
        }
    }
    for (rates, (name, _)) in rates.iter_mut().zip(OURS) {
        rates.sort_unstable_by(f64::total_cmp);
        let (minimum, median, maximum) = (rates[0], rates[rounds / 2], rates[rounds - 1]);
        println!("  {name:32} {median:8.2}   ({minimum:.2} to {maximum:.2})");
    }
    for (name, command) in others {
        match time(command, path)? {
            Took::Whole(time) => println!("  {name:32} {:8.2}   (once)", rate(time)),
            Took::TooLong => {
                println!("  {name:32} under {:.2}   (ended after {} s)", rate(PATIENCE), PATIENCE.as_secs());
            }
            Took::Failed => println!("  {name:32}        -   (not here, or it failed)"),
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

enum Took {
    Whole(Duration),
    TooLong,
    Failed,
}

/// Runs another program once, in a directory that is removed.
fn time(command: &[&str], path: &Path) -> io::Result<Took> {
    let directory = std::env::temp_dir().join(format!("tcplab-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let begin = Instant::now();
    let child = Command::new(command[0])
        .args(&command[1..])
        .arg(path)
        .current_dir(&directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let took = child.map_or(Ok(Took::Failed), |child| wait(child, begin));
    std::fs::remove_dir_all(&directory)?;
    took
}

fn wait(mut child: Child, begin: Instant) -> io::Result<Took> {
    loop {
        if let Some(status) = child.try_wait()? {
            let time = begin.elapsed();
            return Ok(if status.success() { Took::Whole(time) } else { Took::Failed });
        }
        if begin.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(Took::TooLong);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
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
    let (mut flows, mut maximum) = (0, 0);
    while let Some(packet) = reader.next_packet() {
        analysis.packet(&packet);
        if packet.number.is_multiple_of(1 << 20) {
            flows += analysis.drain().count();
            maximum = maximum.max(resident()?);
        }
    }
    flows += analysis.finish().0.len();
    writer.join().map_err(|_| "the generator panicked")??;
    let rate = STREAMED_PACKETS as f64 / begin.elapsed().as_secs_f64() / 1e6;
    let grown = maximum.saturating_sub(before);
    println!("{} million packets of {flows} flows through a pipe:", STREAMED_PACKETS / 1_000_000);
    println!("  summary, 1 core, and what writes {:8.2}", rate);
    println!("  memory {} MiB, {} MiB more than before at most", maximum >> 20, grown >> 20);
    if grown > MAX_RESIDENT {
        return Err(format!("{grown} bytes more resident, beyond the {MAX_RESIDENT} allowed").into());
    }
    Ok(())
}

/// Resident memory of this process in bytes (proc(5), statm).
fn resident() -> Result<u64, Box<dyn std::error::Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages.split(' ').nth(1).ok_or("no resident pages in statm")?.parse()?;
    Ok(pages * 4096)
}
