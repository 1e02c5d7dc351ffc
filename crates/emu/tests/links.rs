//! Real traffic of real kernels through emulated links.

mod lab;

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab::{A, B, B6, Lab, Node, Options, delay, monotonic, percent};
use tcplab_emu::config::{Sample, What};
use tcplab_emu::{DirectionStats, Emulator, Start};
use tcplab_link::config::{Aggregation, Limit, Loss, LossModel, Medium, Queue, Reorder};
use tcplab_units::{Rate, Span, Time};

const MS: u64 = 1_000_000;

/// Repeats a call with a timeout that a stop of this process has interrupted (signal(7)).
fn resumed<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn assert_conserved(direction: &DirectionStats) {
    assert_eq!(
        direction.packets_in + direction.duplicated,
        direction.delivered + direction.dropped + direction.lost + direction.held,
        "{direction:?}"
    );
    assert_eq!(direction.undeliverable, 0);
}

/// Sends `count` numbered datagrams from `a` to `b`, some at a time; the numbers as they came.
fn datagrams(lab: &Lab, count: u32) -> Vec<u32> {
    let (sender, receiver) = (lab.a.udp(A, 4000), lab.b.udp(B, 4000));
    receiver.set_read_timeout(Some(Duration::from_millis(700))).expect("a timeout");
    let sent = Arc::new(AtomicBool::new(false));
    let all_sent = Arc::clone(&sent);
    // Silence is the end only after the last was sent: the sender may have to wait for a CPU.
    let thread = std::thread::spawn(move || {
        let (mut numbers, mut bytes) = (Vec::new(), [0; 2000]);
        loop {
            let is_over = all_sent.load(Ordering::Acquire);
            match resumed(|| receiver.recv(&mut bytes)) {
                Ok(len) => {
                    numbers.push(u32::from_be_bytes(bytes[..len].first_chunk().copied().expect("a number")))
                }
                Err(_) if is_over => return numbers,
                Err(_) => {}
            }
        }
    });
    for number in 0..count {
        sender.send_to(&number.to_be_bytes(), (B, 4000)).expect("sent");
        if number % 20 == 19 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    sent.store(true, Ordering::Release);
    thread.join().expect("numbers")
}

/// Whether `count` of `of` is within five standard deviations of the share `p`.
fn assert_share(count: usize, of: usize, p: f64) {
    let (mean, deviation) = (of as f64 * p, (of as f64 * p * (1.0 - p)).sqrt());
    assert!((count as f64 - mean).abs() <= 5.0 * deviation, "{count} of {of}, expected {mean} ± {deviation}");
}

/// Sends `len` bytes from `a` to `b` over TCP, and asserts that just these arrive.
fn assert_transfer(lab: &Lab, len: usize) {
    assert_transfer_to(lab, B, len);
}

fn assert_transfer_to(lab: &Lab, address: &str, len: usize) {
    let (mut client, mut server) = lab.connect(address, 5000);
    let content = |at: usize| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0];
    let sender = std::thread::spawn(move || {
        let bytes: Vec<u8> = (0..len).map(content).collect();
        client.write_all(&bytes).expect("sent");
    });
    server.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes).expect("received");
    sender.join().expect("sent");
    assert_eq!(bytes.len(), len);
    assert!((0..len).all(|at| bytes[at] == content(at)), "the bytes differ");
}

#[test]
fn a_run_that_is_stopped_before_it_begins_is_done() {
    skip_if_unable!();
    let lab = Lab::new("early", delay(Span::from_ms(4)), delay(Span::from_ms(6)), Options::default());
    lab.stop();
    let hour = 3_600_000 * MS;
    let emulator = lab.emulator.as_ref().expect("not ended yet");
    emulator.start(Start { at: monotonic() + hour, duration: None, streams: Vec::new(), rehearsal: false });
    let facts = lab.stop();
    assert_eq!(facts.links["path"].forward.packets_in, 0);
}

#[test]
fn a_rehearsal_has_the_links_of_the_run_and_leaves_no_trace_in_it() {
    skip_if_unable!();
    let lab = Lab::new("rehearsal", delay(Span::from_ms(40)), delay(Span::ZERO), Options::default());
    lab.stop();
    let emulator = lab.emulator.as_ref().expect("not ended yet");
    let begin = |rehearsal| {
        emulator.start(Start { at: monotonic(), duration: None, streams: Vec::new(), rehearsal });
        std::thread::sleep(Duration::from_millis(60));
    };
    let (a, b) = (lab.a.udp(A, 4000), lab.b.udp(B, 4000));
    b.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let passes = || {
        let sent = monotonic();
        a.send_to(b"one", (B, 4000)).expect("sent");
        resumed(|| b.recv(&mut [0; 8])).expect("received");
        monotonic() - sent
    };
    begin(true);
    assert!(passes() >= 40 * MS);
    emulator.stop();
    begin(false);
    assert!(passes() >= 40 * MS);
    assert_eq!(lab.stop().links["path"].forward.packets_in, 1);
}

#[test]
fn a_round_trip_takes_both_delays() {
    skip_if_unable!();
    let lab = Lab::new("echo", delay(Span::from_ms(4)), delay(Span::from_ms(6)), Options::default());
    let (a, b) = (lab.a.udp(A, 4000), lab.b.udp(B, 4000));
    b.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok((len, from)) = resumed(|| b.recv_from(&mut bytes)) {
            b.send_to(&bytes[..len], from).expect("sent");
        }
    });
    let mut rtts = Vec::new();
    a.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    for _ in 0..100 {
        let (begin, mut bytes) = (monotonic(), [0; 64]);
        a.send_to(b"echo", (B, 4000)).expect("sent");
        resumed(|| a.recv(&mut bytes)).expect("echoed");
        rtts.push(monotonic() - begin);
        std::thread::sleep(Duration::from_millis(3));
    }
    echo.join().expect("echoes");
    rtts.sort_unstable();
    // The delay never shortens. How much longer it takes depends on the machine and is not for a test to judge.
    assert!(rtts[0] >= 10 * MS, "{rtts:?}");
    assert!(rtts[0] < 11 * MS, "{rtts:?}");
    assert_conserved(&lab.stop().links["path"].forward);
}

#[test]
fn packets_are_lost_as_often_as_asked() {
    skip_if_unable!();
    let loss = Loss { model: LossModel::Random { chance: percent(5) }, before_queue: false };
    let forward = tcplab_link::Direction { loss: Some(loss), ..delay(Span::from_ms(1)) };
    let lab = Lab::new("loss", forward, delay(Span::ZERO), Options::default());
    let came = datagrams(&lab, 5000);
    let facts = lab.stop().links["path"].forward;
    assert_share(5000 - came.len(), 5000, 0.05);
    assert_eq!((facts.packets_in, facts.lost), (5000, 5000 - came.len() as u64));
    assert_conserved(&facts);
}

#[test]
fn packets_come_twice_as_often_as_asked() {
    skip_if_unable!();
    let forward = tcplab_link::Direction { duplicate: Some(percent(10)), ..delay(Span::from_ms(1)) };
    let lab = Lab::new("twice", forward, delay(Span::ZERO), Options::default());
    let came = datagrams(&lab, 5000);
    assert_share(came.len() - 5000, 5000, 0.1);
    let mut times = HashMap::new();
    came.iter().for_each(|number| *times.entry(*number).or_insert(0) += 1);
    assert!(times.len() == 5000 && times.values().all(|times| (1..=2).contains(times)));
    assert_conserved(&lab.stop().links["path"].forward);
}

/// Those of `came` that arrived before one sent earlier: what others overtake only falls back.
fn overtakers(came: &[u32]) -> Vec<u32> {
    let mut found: Vec<u32> =
        (0..).zip(came).filter(|(place, number)| *place < **number).map(|(_, number)| *number).collect();
    found.sort_unstable();
    found
}

/// In which order the model itself delivers `count` packets, sent one every 50 us.
fn modelled(direction: &tcplab_link::Direction, count: u32) -> Vec<u32> {
    #[derive(Clone, Copy)]
    struct Numbered(u32);
    impl tcplab_link::Packet for Numbered {
        fn frame_len(&self) -> u32 {
            46
        }
        fn ecn(&self) -> tcplab_link::Ecn {
            tcplab_link::Ecn::NotEct
        }
        fn flow_hash(&self) -> u32 {
            0
        }
        fn dscp(&self) -> u8 {
            0
        }
        fn mark_ce(&mut self) {}
        fn corrupt(&mut self) {}
        fn duplicate(&self) -> Numbered {
            *self
        }
    }
    let seed = tcplab_link::component_seed(1, "link.path.forward");
    let mut link = tcplab_link::Link::<Numbered>::new(direction, seed);
    let mut came = Vec::new();
    for number in 0..count {
        let now = Time::from_ns(u64::from(number) * 50_000);
        came.extend(std::iter::from_fn(|| link.poll(now, &mut ())).map(|(_, packet)| packet.0));
        link.enqueue(Numbered(number), now, &mut ());
    }
    came.extend(std::iter::from_fn(|| link.poll(Time::from_ns(u64::MAX / 2), &mut ())).map(|(_, p)| p.0));
    came
}

#[test]
fn the_very_packets_overtake_that_overtake_in_the_model() {
    skip_if_unable!();
    let reorder = Some(Reorder { chance: percent(5), by: None });
    // So long that what was sent before a pause of the sender is still on its way after it.
    let forward = tcplab_link::Direction { reorder, ..delay(Span::from_ms(500)) };
    let lab = Lab::new("overtake", forward.clone(), delay(Span::ZERO), Options::default());
    let came = datagrams(&lab, 5000);
    let found = overtakers(&came);
    assert_eq!((came.len(), &found), (5000, &overtakers(&modelled(&forward, 5000))));
    assert_share(found.len(), 5000, 0.05);
    // A reordered packet skips the whole delay: at least one burst of 20 that left before it is still on its way.
    let places: HashMap<u32, u32> = came.iter().copied().zip(0..).collect();
    let skipped = found.iter().filter(|number| places[number] + 20 <= **number).count();
    assert!(skipped * 100 >= found.len() * 95, "{skipped} of {}", found.len());
    assert_conserved(&lab.stop().links["path"].forward);
}

#[test]
fn bursts_over_ipv6_are_cut_into_packets_and_arrive_byte_by_byte() {
    skip_if_unable!();
    let loss = Loss { model: LossModel::Random { chance: percent(1) }, before_queue: false };
    let forward = tcplab_link::Direction {
        rate: Rate::from_bits_per_sec(400_000_000),
        queue: Queue::droptail(Some(Limit::Packets(200))),
        loss: Some(loss),
        duplicate: Some(percent(1)),
        corrupt: Some(percent(1)),
        ..delay(Span::from_ms(1))
    };
    for (tso, gro) in [(true, true), (false, true), (true, false)] {
        let name = format!("ip6-{tso}-{gro}");
        let options = Options { tso, gro, ..Options::default() };
        let lab = Lab::new(&name, forward.clone(), delay(Span::from_ms(1)), options);
        lab.add_ip6();
        assert_transfer_to(&lab, B6, 5_000_000);
        let facts = lab.stop();
        let way = &facts.links["path"].forward;
        assert_conserved(way);
        assert!(way.lost > 0 && way.corrupted > 0 && way.duplicated > 0, "{way:?}");
        // 1500 less 40 of IPv6 and 32 of TCP with time stamps.
        assert!(way.packets_in >= 5_000_000 / 1428, "{way:?}");
        assert!(way.bytes_in <= way.packets_in * 1514, "{way:?}");
        assert_eq!((facts.malformed, facts.overflows), (0, 0));
    }
}

#[test]
fn packets_enter_their_link_when_their_node_sends_them() {
    skip_if_unable!();
    let lab = Lab::new("stamps", delay(Span::from_ms(1)), delay(Span::ZERO), Options::default());
    assert_eq!(datagrams(&lab, 1000).len(), 1000);
    let facts = lab.stop();
    assert_eq!((facts.links["path"].forward.packets_in, facts.unstamped), (1000, 0));
}

#[test]
fn damaged_packets_reach_no_application() {
    skip_if_unable!();
    let forward = tcplab_link::Direction { corrupt: Some(percent(5)), ..delay(Span::from_ms(1)) };
    let lab = Lab::new("damage", forward, delay(Span::ZERO), Options::default());
    let came = datagrams(&lab, 5000);
    let facts = lab.stop().links["path"].forward;
    assert_eq!((facts.delivered, facts.corrupted), (5000, 5000 - came.len() as u64));
    assert_share(5000 - came.len(), 5000, 0.05);
    assert!(came.is_sorted(), "no number is damaged");
}

#[test]
fn a_transfer_is_byte_exact_whatever_happens_to_its_packets() {
    skip_if_unable!();
    let loss = Loss { model: LossModel::Random { chance: percent(1) }, before_queue: false };
    let harsh = tcplab_link::Direction {
        rate: Rate::from_bits_per_sec(400_000_000),
        queue: Queue::droptail(Some(Limit::Packets(200))),
        loss: Some(loss),
        duplicate: Some(percent(1)),
        corrupt: Some(percent(1)),
        reorder: Some(Reorder { chance: percent(1), by: Some(Span::from_us(300)) }),
        ..delay(Span::from_ms(1))
    };
    for (tso, gro) in [(true, true), (false, true), (true, false)] {
        let name = format!("exact-{tso}-{gro}");
        let lab = Lab::new(
            &name,
            harsh.clone(),
            delay(Span::from_ms(1)),
            Options { tso, gro, ..Options::default() },
        );
        assert_transfer(&lab, 5_000_000);
        let facts = lab.stop();
        let way = &facts.links["path"].forward;
        assert_conserved(way);
        assert!(way.lost > 0 && way.corrupted > 0 && way.duplicated > 0, "{way:?}");
        assert_eq!((facts.malformed, facts.overflows), (0, 0));
    }
}

#[test]
fn nothing_leaves_faster_than_the_rate() {
    skip_if_unable!();
    let rate = Rate::from_bits_per_sec(50_000_000);
    let forward = tcplab_link::Direction { rate, ..delay(Span::from_ms(1)) };
    let sample = Sample { queues: Some(Span::from_ms(10)), flows: Some(Span::from_ms(100)), packets: true };
    let options = Options { sample, capture: Some(What::Headers), ..Options::default() };
    let lab = Lab::new("rate", forward, delay(Span::from_ms(1)), options);
    let begin = monotonic();
    assert_transfer(&lab, 2_500_000);
    let took = (monotonic() - begin) as f64 / 1e9;
    let facts = lab.stop();
    let way = &facts.links["path"].forward;
    assert!(way.bytes_delivered as f64 * 8.0 / took <= 50e6, "{} in {took} s", way.bytes_delivered);
    assert!(facts.rows["queues"] >= 2 * (took * 100.0) as u64, "{:?}", facts.rows);
    // Enqueue, depart and deliver, for each packet that is through.
    let back = &facts.links["path"].backward;
    let (packets, held) = (way.packets_in + back.packets_in, way.held + back.held);
    assert!((3 * packets - 2 * held..=3 * packets).contains(&facts.rows["packets"]), "{facts:?}");
    assert!(facts.captures["a-path.pcapng"].abs_diff(facts.captures["b-path.pcapng"]) <= held, "{facts:?}");
    let file = std::fs::metadata(lab.dir.join("b-path.pcapng")).expect("a capture");
    assert!(file.len() > 100 * facts.captures["b-path.pcapng"]);
}

#[test]
fn both_directions_wait_for_the_medium_that_they_share() {
    skip_if_unable!();
    let (aifs, preamble, ack) = (Span::from_us(43), Span::from_us(36), Span::from_us(48));
    let medium = Medium {
        name: "air".into(),
        aifs,
        slot: Span::from_us(9),
        cw_min: 15,
        cw_max: 1023,
        preamble,
        ack,
        aggregation: Aggregation { frames: 1, ..Aggregation::default() },
        retries: 7,
    };
    let rate = Rate::from_bits_per_sec(100_000_000);
    let way = || tcplab_link::Direction { rate, ..delay(Span::from_us(100)) };
    let lab = Lab::new("medium", way(), way(), Options { medium: Some(medium), ..Options::default() });
    let begin = monotonic();
    assert_transfer(&lab, 2_000_000);
    let took = Span::from_ns(monotonic() - begin);
    let facts = lab.stop();
    let link = &facts.links["path"];
    assert!(link.forward.delivered > 1_000 && link.backward.delivered > 100, "{facts:?}");
    // Collisions and backoffs come on top.
    let frames = (link.forward.bytes_delivered + link.backward.bytes_delivered) * 80;
    let access = (aifs + preamble + ack) * (link.forward.delivered + link.backward.delivered);
    assert!(access + Span::from_ns(frames) <= took, "{took} for {facts:?}");
}

#[test]
fn interfaces_left_to_their_namespaces_outlive_the_emulator() {
    skip_if_unable!();
    let mut lab = Lab::new("left", delay(Span::ZERO), delay(Span::ZERO), Options::default());
    lab.emulator.as_ref().expect("it serves").leave();
    lab.emulator = None;
    assert!(lab.a.run("ip link").contains("eth0"));
}

#[test]
fn a_killed_emulator_leaves_no_interface() {
    skip_if_unable!();
    let (a, b) = (Node::new(), Node::new());
    let program = std::env::current_exe().expect("this test");
    let mut emulator = std::process::Command::new(program)
        .args(["--exact", "holds_links_until_it_is_killed", "--ignored", "--nocapture"])
        .env("TCPLAB_EMU_NODES", format!("{} {}", a.pid(), b.pid()))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let has_link = |node: &Node| node.run("ip link").contains("eth0");
    let begin = monotonic();
    while !(has_link(&a) && has_link(&b)) {
        assert!(monotonic() - begin < 25_000 * MS, "no links were made");
    }
    emulator.kill().expect("it is alive");
    emulator.wait().expect("it is dead");
    assert!(!has_link(&a) && !has_link(&b));
}

/// Not a test by itself: what is killed by the one above.
#[test]
#[ignore = "waits to be killed"]
fn holds_links_until_it_is_killed() {
    let Ok(nodes) = std::env::var("TCPLAB_EMU_NODES") else { return };
    let pids: Vec<u32> = nodes.split(' ').map(|pid| pid.parse().expect("a number")).collect();
    let ends = [lab::end(pids[0], "a", 1), lab::end(pids[1], "b", 2)];
    let setup = lab::setup(std::env::temp_dir(), ends, delay(Span::ZERO), delay(Span::ZERO));
    let _emulator = Emulator::new(setup, drop).expect("the machine allows it");
    std::thread::sleep(Duration::from_secs(30));
}

#[test]
fn the_interfaces_go_with_the_emulator() {
    skip_if_unable!();
    let mut lab = Lab::new("gone", delay(Span::ZERO), delay(Span::ZERO), Options::default());
    assert!(lab.a.run("ip link").contains("eth0"));
    lab.emulator = None;
    assert!(!lab.a.run("ip link").contains("eth0"));
}
