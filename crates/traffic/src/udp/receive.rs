//! The receiver: it reads headers only, and takes the kernel's arrival times.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use socket2::Socket;
use tcplab_plan::{Traffic, Udp};
use tcplab_probe::clock;

use super::HEADER;
use super::arrivals::Arrivals;
use super::damaged;
use crate::socket::{ATTENTION, set};
use crate::tcp::waited;
use crate::{Context, End, Summary, Totals, TrafficError};

/// Maximum number of datagrams of one system call.
const BATCH: usize = 64;
/// Room for the time stamp of a datagram.
const CONTROL: usize = 64;
/// How often rows are reported, ns.
const REPORT: u64 = 100_000_000;

/// Asks the kernel for the arrival time of each datagram.
pub fn ask_for_arrivals(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, on)
}

/// The datagrams that a socket had no room for. SO_RXQ_OVFL would not do: a datagram brings the count of when it arrived, so that
/// those dropped after the last one are missing.
fn drops(socket: &Socket) -> io::Result<u32> {
    /// The place of the count among those of SO_MEMINFO (linux/sock_diag.h).
    const DROPS: usize = 8;
    let mut counts = [0_u32; DROPS + 1];
    let mut size = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            counts.as_mut_ptr().cast(),
            &mut size,
        )
    };
    if result == 0 { Ok(counts[DROPS]) } else { Err(io::Error::last_os_error()) }
}

/// One datagram, as far as it is read.
struct Datagram {
    number: u64,
    sent: u64,
    len: u64,
    /// CLOCK_REALTIME, ns.
    arrived: Option<u64>,
}

#[repr(align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

/// The messages of one system call.
struct Batch {
    headers: Vec<[u8; HEADER]>,
    controls: Vec<Control>,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

impl Batch {
    fn new() -> Batch {
        // SAFETY: all-zero iovec and mmsghdr are valid and empty.
        let (vectors, messages) =
            unsafe { (vec![std::mem::zeroed::<libc::iovec>(); BATCH], vec![std::mem::zeroed(); BATCH]) };
        Batch {
            headers: vec![[0; HEADER]; BATCH],
            controls: vec![Control([0; CONTROL]); BATCH],
            vectors,
            messages,
        }
    }

    /// Takes datagrams that have come, or waits for the first; how many there are.
    fn receive(&mut self, socket: &Socket, waits: bool) -> io::Result<usize> {
        for i in 0..BATCH {
            self.vectors[i] = libc::iovec { iov_base: self.headers[i].as_mut_ptr().cast(), iov_len: HEADER };
            let header: &mut libc::msghdr = &mut self.messages[i].msg_hdr;
            header.msg_iov = &mut self.vectors[i];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL as _;
        }
        // MSG_TRUNC makes the kernel return the datagram's whole length though only its header is read.
        let flags = libc::MSG_TRUNC | if waits { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        // SAFETY: all messages are set up above over memory that outlives the call.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        if got < 0 { Err(io::Error::last_os_error()) } else { Ok(got as usize) }
    }

    fn datagram(&self, i: usize) -> Option<Datagram> {
        let message = &self.messages[i];
        let header = &self.headers[i];
        if (message.msg_len as usize) < HEADER {
            return None;
        }
        let (number, sent) = header.split_at(8);
        let mut datagram = Datagram {
            number: u64::from_be_bytes(number.try_into().ok()?),
            sent: u64::from_be_bytes(sent.try_into().ok()?),
            len: u64::from(message.msg_len),
            arrived: None,
        };
        // SAFETY: the kernel filled the control buffer and its length; the CMSG functions stay within it, and
        // values are read unaligned.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(&message.msg_hdr);
            while !control.is_null() {
                let data = libc::CMSG_DATA(control);
                let kind = ((*control).cmsg_level, (*control).cmsg_type);
                if kind == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                    let ts: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                    datagram.arrived = Some(ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64);
                }
                control = libc::CMSG_NXTHDR(&message.msg_hdr, control);
            }
        }
        Some(datagram)
    }
}

/// Receives one stream until all of it has come or the run is over. Datagrams that came before the end are read then, too: on a
/// busy machine this thread may be late.
pub fn run(
    socket: &Socket,
    address: SocketAddr,
    stream: u64,
    end: &End,
    context: &Context,
    totals: &Totals,
) -> Result<(), TrafficError> {
    let Traffic::Udp(Udp { payload, bytes, .. }) = end.flow.traffic else { return Ok(()) };
    let broken = |source| TrafficError::Broken { stream, address, source };
    socket.set_read_timeout(Some(ATTENTION)).map_err(broken)?;
    let cpu = clock::thread_cpu();
    let all = bytes.map(|bytes| bytes.div_ceil(u64::from(payload)));
    let work = bytes.unwrap_or(u64::MAX);
    let width = end.sample.unwrap_or(1_000_000_000);
    let mut arrivals = Arrivals::new(stream, width, end.start());
    let mut batch = Batch::new();
    let damaged = damaged::count();
    let mut reported = 0;
    let report = |row: &_| {
        if end.sample.is_some() {
            context.sink.interval(&end.flow, row);
        }
    };
    let (mut is_over, mut until) = (false, context.clock.duration);
    while all.is_none_or(|all| arrivals.received < all) {
        if !is_over && context.over() {
            (is_over, until) = (true, until.min(context.clock.now()));
        }
        match batch.receive(socket, !is_over) {
            Ok(got) => {
                let mut is_later = false;
                // The kernel stamps with CLOCK_REALTIME, whose offset may be stepped: look again each time.
                let offset = clock::realtime().wrapping_sub(clock::now());
                let mut bytes = 0;
                for datagram in (0..got).filter_map(|i| batch.datagram(i)) {
                    let arrived = datagram.arrived.map(|real| real.wrapping_sub(offset));
                    let time = arrived.unwrap_or_else(clock::now).saturating_sub(context.clock.start);
                    if time >= until {
                        is_later = true;
                        continue;
                    }
                    // The header is not cut where less is left for the last one.
                    let before = datagram.number.saturating_mul(u64::from(payload));
                    let len = datagram.len.min(work.saturating_sub(before));
                    arrivals.arrive(datagram.number, datagram.sent, time, len);
                    bytes += len;
                }
                totals.received.fetch_add(bytes, Ordering::Relaxed);
                if is_over && is_later {
                    break;
                }
            }
            Err(error) if waited(&error) && is_over => break,
            Err(error) if waited(&error) => {}
            Err(source) => return Err(broken(source)),
        }
        let now = context.clock.now();
        if now >= reported + REPORT {
            arrivals.report(now, report);
            reported = now;
        }
    }
    let over = context.clock.now().min(context.clock.duration);
    // Where nothing more comes the last interval is whole.
    let last = if context.over() { over } else { (over / width + 1) * width };
    arrivals.report_all(last.min(context.clock.duration), report);
    let dropped =
        u64::from(drops(socket).map_err(broken)?).saturating_sub(damaged::count().saturating_sub(damaged));
    if dropped > 0 {
        context.sink.warning(
            format!(
                "{}: this host dropped {dropped} datagrams of stream {stream} for want of a reader",
                end.flow.name
            ),
            "these losses are the machine's: lower the rate, or raise net.core.rmem_max".into(),
        );
    }
    // Who sends for a time may send nothing at its end; one without another end has all of the run.
    let lasts = all.is_none() && end.stop(context.clock.duration) == context.clock.duration;
    context.sink.summary(
        &end.flow,
        &Summary {
            stream,
            start: end.start(),
            end: arrivals.last.filter(|_| !lasts).unwrap_or(over),
            bytes_received: Some(arrivals.bytes),
            losses_detected: Some(arrivals.lost),
            cpu_receiver: Some((clock::thread_cpu() - cpu) as f64 / 1e9),
            // The sender knows whether all was sent.
            complete: true,
            ..Summary::default()
        },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tcplab_plan::Flow;
    use tcplab_probe::sockets::{Registry, Sample};
    use tcplab_tables::EchoTally;

    use super::*;
    use crate::{Clock, Exchange, Fetch, Interval, Ping, Role, Sink};

    /// Keeps the rows of a stream's end.
    #[derive(Default)]
    struct Ends(Mutex<Vec<Summary>>);

    impl Sink for Ends {
        fn summary(&self, _: &Flow, row: &Summary) {
            self.0.lock().unwrap().push(row.clone());
        }
        fn interval(&self, _: &Flow, _: &Interval) {}
        fn exchange(&self, _: &Flow, _: &Exchange) {}
        fn fetch(&self, _: &Flow, _: &Fetch) {}
        fn tally(&self, _: &Flow, _: u64, _: u64, _: &EchoTally) {}
        fn ping(&self, _: &Flow, _: &Ping) {}
        fn socket(&self, _: u64, _: &Sample<'_>) {}
        fn event(&self, _: &Flow, _: u64, _: u64, _: &'static str, _: Option<&'static str>) {}
        fn warning(&self, _: String, _: String) {}
        fn failed(&self, _: &Flow, _: &TrafficError) {}
        fn finished(&self, _: &Flow, _: Role) {}
    }

    #[test]
    fn what_came_before_the_end_of_the_run_is_read_after_it() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = receiver.local_addr().unwrap();
        let socket = Socket::from(receiver);
        ask_for_arrivals(&socket).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let start = clock::now();
        let send = |numbers: std::ops::Range<u64>| {
            for number in numbers {
                let mut datagram = [0; 100];
                datagram[..8].copy_from_slice(&number.to_be_bytes());
                sender.send_to(&datagram, address).unwrap();
            }
        };
        // Enough that the clocks may be read apart from each other.
        let pause = || std::thread::sleep(std::time::Duration::from_millis(50));
        // The kernel begins to stamp a moment after it was asked (`net_enable_timestamp`); until then what is read counts as just
        // arrived.
        let mut batch = Batch::new();
        let stamps = (0..100).any(|_| {
            send(0..1);
            pause();
            batch.receive(&socket, false).unwrap();
            let arrived = batch.datagram(0).and_then(|datagram| datagram.arrived).unwrap();
            clock::realtime().saturating_sub(arrived) > 40_000_000
        });
        assert!(stamps);
        // More than one system call takes.
        send(0..150);
        pause();
        let sink = Arc::new(Ends::default());
        let context = Context {
            clock: Clock { start, duration: clock::now() - start },
            stop: Arc::new(AtomicBool::new(false)),
            sink: sink.clone(),
            registry: Arc::new(Registry::default()),
        };
        // Datagrams that come later are not of the run.
        pause();
        send(150..160);
        let end: End = serde_json::from_value(json!({
            "role": "server", "address": "127.0.0.1",
            "flow": {
                "name": "datagrams", "from": "a", "to": "b", "start": 0, "stop": null, "streams": 1, "kind": "udp",
                "rate": 1_000_000, "payload": 100, "bytes": null, "pattern": null,
            },
        }))
        .unwrap();
        run(&socket, address, 0, &end, &context, &Totals::default()).unwrap();
        let rows = sink.0.lock().unwrap();
        assert_eq!(rows.iter().map(|row| row.bytes_received).collect::<Vec<_>>(), [Some(15_000)]);
    }

    #[test]
    fn drops_after_the_last_datagram_are_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = Socket::from(receiver.try_clone().unwrap());
        socket.set_recv_buffer_size(4096).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender.send_to(&[0; 100], receiver.local_addr().unwrap()).unwrap();
        }
        receiver.set_nonblocking(true).unwrap();
        let read = std::iter::from_fn(|| receiver.recv(&mut [0; 100]).ok()).count();
        assert!((1..100).contains(&read));
        assert_eq!(drops(&socket).unwrap() as usize, 100 - read);
    }
}
