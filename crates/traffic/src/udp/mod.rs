//! Datagrams at a rate: an even sender, and a receiver that accounts for every one.

mod arrivals;
mod batch;
mod damaged;
mod offload;
mod receive;
mod schedule;
mod send;
mod sequence;

use std::net::SocketAddr;
use std::sync::Mutex;

use socket2::{Domain, Protocol, Socket, Type};
use tcplab_plan::Traffic;

use crate::socket::{self, Buffer, Clamped};
use crate::tcp::STACK;
use crate::{Context, End, Role, Totals, TrafficError};

/// A datagram begins with its number and the time it was sent, 8 bytes each, most significant byte first.
pub(crate) const HEADER: usize = 16;
/// The maximum that an IPv4 datagram can carry.
const LARGEST: u32 = 65_507;
/// Receive buffer that is asked for: a burst must not overflow it while the receiver waits for a CPU.
const RECEIVE_BUFFER: u64 = 4 << 20;

/// A prepared end of a udp flow.
#[derive(Debug)]
pub(crate) struct Udp {
    sockets: Vec<(Socket, SocketAddr)>,
    clamped: Option<Clamped>,
}

impl Udp {
    pub fn prepare(end: &End) -> Result<(Udp, Vec<u16>), TrafficError> {
        if let Traffic::Udp(udp) = &end.flow.traffic {
            let payload = udp.payload;
            let (min, max) = (HEADER as u32, LARGEST);
            if !(min..=max).contains(&payload) {
                return Err(TrafficError::Payload { payload, min, max });
            }
        }
        let mut udp = Udp { sockets: Vec::new(), clamped: None };
        let mut ports = Vec::new();
        for address in end.addresses() {
            let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))
                .map_err(|source| TrafficError::Socket { what: "UDP", source })?;
            socket::set_traffic_class(&socket, address, &end.flow)?;
            let mut port = address.port();
            if end.role == Role::Server {
                let failed = |source| TrafficError::Listen { address, source };
                udp.clamped = socket::buffer(&socket, Buffer::Receive, Some(RECEIVE_BUFFER))?;
                receive::ask_for_arrivals(&socket).map_err(failed)?;
                socket.bind(&address.into()).map_err(failed)?;
                port = socket::local_port(&socket).map_err(failed)?;
            }
            ports.push(port);
            udp.sockets.push((socket, SocketAddr::new(address.ip(), port)));
        }
        Ok((udp, ports))
    }

    pub fn run(self, end: &End, context: &Context, totals: &Totals) -> Result<(), TrafficError> {
        if let Some(clamped) = self.clamped {
            context.sink.warning(format!("{}: {}", end.flow.name, clamped.message()), clamped.hint());
        }
        let outcome = Mutex::new(Ok(()));
        std::thread::scope(|scope| {
            for (number, (socket, address)) in (0u64..).zip(self.sockets) {
                let spawned = std::thread::Builder::new()
                    .name(format!("{}.{number}", end.flow.name))
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || {
                        let done = match end.role {
                            Role::Client => send::run(&socket, address, number, end, context, totals),
                            Role::Server => receive::run(&socket, address, number, end, context, totals),
                        };
                        if let Err(error) = done {
                            context.sink.failed(&end.flow, &error);
                        }
                    });
                if let (Err(error), Ok(mut outcome)) = (spawned, outcome.lock()) {
                    *outcome = Err(TrafficError::Thread(error));
                }
            }
        });
        outcome.into_inner().unwrap_or(Ok(()))
    }
}
