//! Clients and a server over loopback, with what may stand between them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use socket2::Socket;
use tcplab_tables::EchoTally;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Events of the clients of a run.
#[derive(Default)]
struct Seen {
    /// Round trips by client and size.
    done: Mutex<BTreeMap<(u32, u32), u64>>,
    rounds: Mutex<Vec<(u32, u32, Round)>>,
    tallied: AtomicU64,
    errors: Mutex<Vec<EchoError>>,
    words: Mutex<Vec<String>>,
}

impl Observer for Seen {
    fn connected(&self, _: u32, _: &Socket, connected: &Connected) {
        self.words.lock().unwrap().push(connected.words.clone());
    }
    fn rounds(&self, client: u32, size: u32, rounds: &[Round]) {
        self.rounds.lock().unwrap().extend(rounds.iter().map(|round| (client, size, *round)));
    }
    fn size_done(&self, client: u32, size: u32, done: u64, tally: &EchoTally) {
        self.tallied.fetch_add(tally.count(), Ordering::Relaxed);
        self.done.lock().unwrap().insert((client, size), done);
    }
    fn ended(&self, _: u32, _: Option<(&Socket, u64)>, outcome: Result<(), EchoError>) {
        self.errors.lock().unwrap().extend(outcome.err());
    }
}

impl Seen {
    fn errors(&self) -> Vec<String> {
        self.errors.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

/// A server's reports on its connections.
#[derive(Default)]
struct Observed {
    served: AtomicU64,
    broken: Mutex<Vec<(u32, u32, u64)>>,
    unserved: Mutex<Vec<Unserved>>,
}

impl ServerObserver for Observed {
    fn accepted(&self, _: SocketAddr, _: &Greeting, _: &wire::Answer, _: &Socket, _: &Arc<AtomicU64>) {}
    fn ended(&self, _: SocketAddr, greeting: &Greeting, _: &Socket, served: Served) {
        match served.broken {
            Some((size, iteration, _)) => {
                self.broken.lock().unwrap().push((greeting.client, size, iteration))
            }
            None => _ = self.served.fetch_add(1, Ordering::Relaxed),
        }
    }
    fn unserved(&self, _: SocketAddr, why: &Unserved) {
        self.unserved.lock().unwrap().push(why.clone());
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn job(address: SocketAddr, sizes: &[u32], iterations: u64) -> Job {
    Job {
        addresses: vec![address],
        sizes: sizes.to_vec(),
        iterations,
        interval: 0,
        stop: u64::MAX,
        timeout: 20 * SECOND,
        nodelay: true,
        busy_poll: false,
        control: String::new(),
        cpus: Vec::new(),
        keep: Keep::ALL,
        zero: 0,
    }
}

fn run(job: &Job, clients: usize) -> Seen {
    let seen = Seen::default();
    let settings = SocketOptions { nagle: !job.nodelay, ..SocketOptions::default() };
    let sockets = (0..clients).map(|_| open(job.addresses[0], &settings, "").unwrap()).collect();
    let lives: Vec<Live> = (0..clients).map(|_| Live::default()).collect();
    let stop = AtomicBool::new(false);
    job.run(sockets, &lives, Limit { stop: &stop, end: u64::MAX }, &seen).unwrap();
    seen
}

/// Runs a server while `with` does something with its address; what it observed.
fn serving(limits: Limits, with: impl FnOnce(SocketAddr)) -> Observed {
    let (listener, port) = listen(loopback(0), &SocketOptions::default(), "").unwrap();
    let server = Server::new(vec![listener], limits, Vec::new());
    let (stop, observed) = (AtomicBool::new(false), Observed::default());
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(Limit { stop: &stop, end: u64::MAX }, None, &observed).unwrap());
        let _stop = Stop(&stop);
        with(loopback(port));
    });
    observed
}

#[test]
fn every_message_of_every_client_and_size_is_timed_once_and_in_order() {
    let observed = serving(Limits::default(), |address| {
        let seen = run(&job(address, &[1, 1000, 65_536], 20), 3);
        assert_eq!(seen.errors(), [""; 0]);
        let rounds = seen.rounds.lock().unwrap();
        for client in 0..3 {
            let own: Vec<_> = rounds.iter().filter(|(of, ..)| *of == client).collect();
            let expected = [1, 1000, 65_536].iter().flat_map(|size| (0..20).map(move |i| (*size, i)));
            assert!(own.iter().map(|(_, size, round)| (*size, round.iteration)).eq(expected));
            assert!(own.windows(2).all(|two| two[1].2.time >= two[0].2.time + two[0].2.rtt));
        }
        assert_eq!(rounds.len(), 180);
    });
    assert_eq!(observed.served.into_inner(), 3);
}

#[test]
fn polling_ends_give_the_same() {
    serving(Limits { busy_poll: true, ..Limits::default() }, |address| {
        let seen = run(&Job { busy_poll: true, ..job(address, &[1, 65_536], 50) }, 2);
        assert_eq!(seen.errors(), [""; 0]);
        assert!(seen.done.lock().unwrap().values().all(|done| *done == 50));
    });
}

#[test]
fn memory_does_not_depend_on_the_number_of_round_trips() {
    serving(Limits { busy_poll: true, ..Limits::default() }, |address| {
        let seen = run(&Job { keep: Keep::head(100), ..job(address, &[1], 5000) }, 1);
        assert_eq!(seen.rounds.lock().unwrap().len(), 100);
        assert_eq!(seen.tallied.into_inner(), 4900);
    });
}

#[test]
fn clients_wait_for_each_other_before_each_size() {
    serving(Limits::default(), |address| {
        let seen = run(&job(address, &[1, 32], 200), 4);
        let rounds = seen.rounds.lock().unwrap();
        let last = rounds.iter().filter(|(_, size, _)| *size == 1).map(|(.., r)| r.time + r.rtt).max();
        let first = rounds.iter().filter(|(_, size, _)| *size == 32).map(|(.., r)| r.time).min();
        assert!(first >= last, "{first:?} {last:?}");
    });
}

#[test]
fn nothing_is_sent_from_the_stop_on_and_nothing_counts_that_comes_after_the_end() {
    // Nothing but a round trip that began after one of the two could break this, however slow the machine.
    for stops in [true, false] {
        serving(Limits::default(), |address| {
            let last = tcplab_probe::clock::now() + 50 * MS;
            let job = Job { stop: if stops { last } else { u64::MAX }, ..job(address, &[8], 1_000_000_000) };
            let seen = Seen::default();
            let sockets = vec![open(address, &SocketOptions::default(), "").unwrap()];
            let never = AtomicBool::new(false);
            let limit = Limit { stop: &never, end: if stops { u64::MAX } else { last } };
            job.run(sockets, &[Live::default()], limit, &seen).unwrap();
            let rounds = seen.rounds.lock().unwrap();
            assert!(
                seen.errors().iter().all(|error| error.contains("it was stopped")),
                "{:?}",
                seen.errors()
            );
            let after = |round: &Round| round.time + if stops { 0 } else { round.rtt };
            assert!(rounds.iter().all(|(_, _, round)| after(round) < last));
        });
    }
}

#[test]
fn the_interval_is_the_minimum_time_from_one_message_to_the_next() {
    serving(Limits::default(), |address| {
        let seen = run(&Job { interval: 5 * MS, ..job(address, &[8], 10) }, 1);
        let rounds = seen.rounds.lock().unwrap();
        assert!(rounds.windows(2).all(|two| two[1].2.time >= two[0].2.time + 5 * MS));
    });
}

#[test]
fn what_the_server_cannot_do_is_said_not_hidden() {
    serving(Limits::default(), |address| {
        let seen = run(&Job { busy_poll: true, control: "nosuch".into(), ..job(address, &[8], 3) }, 1);
        let words = seen.words.lock().unwrap()[0].clone();
        assert!(words.contains("nosuch") && words.contains("--busy-poll"), "{words}");
    });
}

#[test]
fn a_client_of_another_version_is_rejected_with_a_message() {
    let observed = serving(Limits::default(), |address| {
        let mut greeting = Greeting { iterations: 1, sizes: vec![1], ..Greeting::default() }.encode();
        greeting[8..10].copy_from_slice(&7u16.to_be_bytes());
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&greeting).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        let answer = wire::Answer::parse(&said).unwrap();
        assert!(!answer.accepted && answer.words.contains("version 7"), "{answer:?}");
    });
    assert!(matches!(observed.unserved.into_inner().unwrap()[0], Unserved::Greeting(_)));
}

#[test]
fn a_server_of_another_version_and_another_program_are_distinguished() {
    let fake = |said: Vec<u8>| {
        let listener = TcpListener::bind(loopback(0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut greeting = [0; 62];
            stream.read_exact(&mut greeting).unwrap();
            stream.write_all(&said).unwrap();
        });
        let errors = run(&job(address, &[1, 2], 1), 1).errors();
        server.join().unwrap();
        errors[0].clone()
    };
    let later = wire::Answer { version: 3, ..wire::Answer::refusal("I speak version 3".into()) };
    assert!(fake(later.encode()).ends_with("rejected the test: I speak version 3"));
    assert!(fake(b"220 mail.example.org ESMTP\r\n".to_vec()).contains("not a tcplab echo server"));
    assert!(fake(Vec::new()).contains("did not answer the greeting"));
}

/// Stands between clients and a server; `cut` says how each direction's bytes are passed on.
fn proxy(server: SocketAddr, connections: usize, cut: impl Fn(usize) -> Cut + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for number in 0..connections {
            let (client, _) = listener.accept().unwrap();
            let server = TcpStream::connect(server).unwrap();
            let cut = cut(number);
            for (from, to, sizes, max) in
                [(&client, &server, cut.forward, u64::MAX), (&server, &client, cut.reverse, cut.max_reverse)]
            {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || pass(from, to, &sizes, max, cut.stall));
            }
        }
    });
    address
}

struct Cut {
    forward: Vec<usize>,
    reverse: Vec<usize>,
    /// After so many bytes reverse, nothing more comes.
    max_reverse: u64,
    /// Then: silence, not an end.
    stall: bool,
}

impl Cut {
    fn none() -> Cut {
        Cut { forward: vec![65_536], reverse: vec![65_536], max_reverse: u64::MAX, stall: false }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, sizes: &[usize], max: u64, stall: bool) {
    let (mut passed, mut buffer) = (0, [0; 65_536]);
    to.set_nodelay(true).unwrap();
    for size in sizes.iter().cycle() {
        let size = (*size as u64).min(max - passed) as usize;
        if size == 0 {
            if stall {
                std::thread::sleep(Duration::from_secs(60));
            }
            break;
        }
        match from.read(&mut buffer[..size]) {
            Ok(got) if got > 0 && to.write_all(&buffer[..got]).is_ok() => passed += got as u64,
            _ => break,
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn however_the_streams_are_cut_every_message_comes_back(
        forward in proptest::collection::vec(1usize..3000, 1..8),
        reverse in proptest::collection::vec(1usize..3000, 1..8),
        sizes in proptest::collection::vec(1u32..20_000, 1..4),
        polls: bool,
    ) {
        serving(Limits { busy_poll: true, ..Limits::default() }, |address| {
            let (forward, reverse) = (forward.clone(), reverse.clone());
            let between = proxy(address, 2, move |_| Cut { forward: forward.clone(), reverse: reverse.clone(), ..Cut::none() });
            let seen = run(&Job { busy_poll: polls, ..job(between, &sizes, 5) }, 2);
            assert_eq!(seen.errors(), [""; 0]);
            assert_eq!(seen.rounds.lock().unwrap().len(), 2 * 5 * sizes.len());
        });
    }
}

/// Bytes of the answer to the greeting, before the first message.
const OK: u64 = 14;

#[test]
fn a_peer_that_dies_is_named_and_the_others_go_on() {
    serving(Limits::default(), |address| {
        let between = proxy(address, 3, |number| match number {
            // Four messages of 100 bytes, and half of the fifth.
            1 => Cut { max_reverse: OK + 450, ..Cut::none() },
            _ => Cut::none(),
        });
        let seen = run(&job(between, &[100, 200], 10), 3);
        let errors = seen.errors.lock().unwrap();
        let [EchoError::Lost { size: 100, iteration: 4, client, source }] = &errors[..] else {
            panic!("{errors:?}")
        };
        assert!(matches!(source, Broken::Closed { moved: 50, of: 100 }), "{source}");
        let done = seen.done.lock().unwrap();
        assert_eq!(done[&(*client, 100)], 4, "what was measured is kept");
        assert!((0..3).filter(|other| other != client).all(|other| done[&(other, 200)] == 10));
    });
}

#[test]
fn a_peer_that_stalls_is_named_within_the_timeout() {
    serving(Limits { busy_poll: true, ..Limits::default() }, |address| {
        for busy_poll in [false, true] {
            let between =
                proxy(address, 1, |_| Cut { max_reverse: OK + 2 * 1000 + 10, stall: true, ..Cut::none() });
            let begin = Instant::now();
            let seen = run(&Job { timeout: 500 * MS, busy_poll, ..job(between, &[1000], 10) }, 1);
            assert!(begin.elapsed() < Duration::from_secs(30));
            let error = seen.errors().remove(0);
            // The time is that measured, at least the timeout.
            let (before, rest) = error.split_once(" s only ").expect("a time");
            let (at, after) = before.split_once(": after ").expect("a time");
            assert_eq!(at, "client 0, size 1000, iteration 2");
            assert!(after.parse::<f64>().expect("seconds") >= 0.5, "{error}");
            assert_eq!(rest, "10 of 1000 bytes had been received");
        }
    });
}

#[test]
fn an_answer_that_is_not_the_message_is_noticed() {
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut greeting = [0; 58];
        stream.read_exact(&mut greeting).unwrap();
        stream.write_all(&wire::Answer::ok(false, String::new()).encode()).unwrap();
        let mut message = [0; 64];
        for round in 0..3 {
            if stream.read_exact(&mut message).is_err() {
                return;
            }
            message[63] ^= u8::from(round == 2);
            stream.write_all(&message).unwrap();
        }
    });
    let errors = run(&job(address, &[64], 10), 1).errors();
    server.join().unwrap();
    assert_eq!(errors, ["client 0, size 64, iteration 2: the answer is not the message that was sent"]);
}

#[test]
fn a_server_that_is_not_there_is_said_within_the_timeout() {
    let free = TcpListener::bind(loopback(0)).unwrap().local_addr().unwrap();
    let errors = run(&job(free, &[1], 1), 2).errors();
    assert_eq!(errors.len(), 2);
    assert!(errors.iter().all(|error| error.contains("cannot connect")), "{errors:?}");
}

#[test]
fn an_address_that_does_not_answer_is_given_up_after_the_timeout() {
    // Linux drops the request of a connection for which there is no room in the queue.
    let listener = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&loopback(0).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let _fill: Vec<_> =
        (0..3).map(|_| TcpStream::connect_timeout(&address, Duration::from_millis(100))).collect();
    let begin = Instant::now();
    let errors = run(&Job { timeout: 300 * MS, ..job(address, &[1], 1) }, 1).errors();
    assert!(errors[0].contains("cannot connect") && errors[0].contains("no answer"), "{errors:?}");
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[test]
fn clients_take_the_addresses_in_turn() {
    let observed: Vec<_> =
        (0..2).map(|_| listen(loopback(0), &SocketOptions::default(), "").unwrap()).collect();
    let addresses = observed.iter().map(|(_, port)| loopback(*port)).collect();
    let (listeners, _): (Vec<_>, Vec<_>) = observed.into_iter().unzip();
    let (stop, counts) = (AtomicBool::new(false), [Observed::default(), Observed::default()]);
    std::thread::scope(|scope| {
        for (listener, observed) in listeners.into_iter().zip(&counts) {
            let (server, limit) = (Server::new(vec![listener], Limits::default(), Vec::new()), &stop);
            scope.spawn(move || server.run(Limit { stop: limit, end: u64::MAX }, None, observed).unwrap());
        }
        let several = Job { addresses, ..job(loopback(0), &[8], 3) };
        assert_eq!(run(&several, 3).errors(), [""; 0]);
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(counts.map(|observed| observed.served.into_inner()), [2, 1]);
}

#[test]
fn requests_beyond_the_limits_are_rejected_with_a_message() {
    let limits = Limits { size: 1000, messages: 100, interval: SECOND, clients: 0, ..Limits::default() };
    let observed = serving(limits, |address| {
        let refusal = |job: Job| run(&job, 1).errors().remove(0);
        assert!(refusal(job(address, &[1, 1001], 1)).contains("1001 bytes are too long: at most 1000"));
        assert!(refusal(job(address, &[1, 2], 51)).contains("102 messages are too many"));
        let slow = Job { interval: 2 * SECOND, ..job(address, &[1], 1) };
        assert!(refusal(slow).contains("a pause of 2 s is too long"));
        assert!(refusal(job(address, &[1], 1)).contains("busy with 0 clients"));
        // Just what is allowed is refused for no other reason.
        let max = Job { interval: SECOND, ..job(address, &[1, 1000], 50) };
        assert!(refusal(max).contains("busy with 0 clients"));
    });
    assert_eq!(observed.unserved.into_inner().unwrap().len(), 5);
}

#[test]
fn a_flood_of_garbage_and_of_silent_connections_leaves_room_for_a_client() {
    let limits = Limits { pending: 20, greeting: 300 * MS, ..Limits::default() };
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let observed = serving(limits, |address| {
        let before = threads();
        let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
        let slow: Vec<_> = (0..50)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"tcpl").unwrap();
                stream
            })
            .collect();
        for number in 0..500u32 {
            let mut stream = TcpStream::connect(address).unwrap();
            let garbage: Vec<u8> = (0..700u32).map(|at| ((at * number) >> 3) as u8).collect();
            let _ = stream.write_all(&garbage);
        }
        assert_eq!(run(&job(address, &[1, 4096], 10), 2).errors(), [""; 0]);
        // Nobody else has been given a thread. Other tests run their own beside this one.
        assert!(threads() < before + 100, "{} threads after {before}", threads());
        std::thread::sleep(Duration::from_millis(600));
        for mut stream in silent.into_iter().chain(slow) {
            let mut byte = [0];
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let got = stream.read(&mut byte);
            assert!(!matches!(&got, Ok(1..)), "a silent connection is closed without a word");
            assert!(got.is_ok() || got.is_err_and(|e| e.kind() != std::io::ErrorKind::WouldBlock));
        }
    });
    assert_eq!(observed.served.into_inner(), 2);
    let unserved = observed.unserved.into_inner().unwrap();
    let count = |what: fn(&Unserved) -> bool| unserved.iter().filter(|why| what(why)).count();
    assert!(count(|why| matches!(why, Unserved::Greeting(_))) >= 400);
    assert!(count(|why| matches!(why, Unserved::Displaced | Unserved::Silent)) >= 200);
}

#[test]
fn a_client_that_goes_silent_does_not_hold_its_place_for_ever() {
    let limits = Limits { message: 200 * MS, pause: 200 * MS, clients: 1, ..Limits::default() };
    let observed = serving(limits, |address| {
        let mut stream = TcpStream::connect(address).unwrap();
        let greeting = Greeting { iterations: 5, sizes: vec![10], ..Greeting::default() };
        stream.write_all(&greeting.encode()).unwrap();
        let mut answer = [0; 14];
        stream.read_exact(&mut answer).unwrap();
        stream.write_all(&[0; 25]).unwrap();
        assert!(run(&job(address, &[1], 1), 1).errors()[0].contains("busy with 1 clients"));
        std::thread::sleep(Duration::from_millis(600));
        assert_eq!(run(&job(address, &[1], 1), 1).errors(), [""; 0]);
    });
    assert_eq!(observed.broken.into_inner().unwrap(), [(0, 10, 2)]);
}
