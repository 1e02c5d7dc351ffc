//! One end of a flow: prepared first, started when the run's zero of time is known.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tcplab_plan::Traffic;

use crate::conversation::Conversation;
use crate::echo::Echo;
use crate::http;
use crate::iperf3::{self, Iperf3};
use crate::ping::Pings;
use crate::tcp::Tcp;
use crate::udp::Udp;
use crate::{Context, End, Handle, Role, Totals, TrafficError};

/// How long threads may take to notice that the run is over.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// An end that is ready to start; a server's ports are open.
#[derive(Debug)]
pub struct Prepared {
    end: End,
    ports: Vec<u16>,
    kind: StreamKind,
}

#[derive(Debug)]
enum StreamKind {
    Tcp(Tcp),
    Udp(Udp),
    Ping(Pings),
    Echo(Echo),
    Iperf3(Iperf3),
}

/// Checks an end and opens what must be open before the other end begins.
pub fn prepare(end: End) -> Result<Prepared, TrafficError> {
    let streams = end.flow.streams;
    if streams == 0 {
        return Err(TrafficError::Zero { what: "streams" });
    }
    let wanted = matches!(end.role, Role::Client) && end.flow.traffic.traits().served;
    if (wanted || !end.ports.is_empty()) && end.ports.len() != streams as usize {
        return Err(TrafficError::Ports { given: end.ports.len(), streams });
    }
    if end.sample == Some(0) {
        return Err(TrafficError::Zero { what: "sample" });
    }
    let (kind, ports) = match &end.flow.traffic {
        _ if end.by_iperf3() => {
            let (iperf3, ports) = Iperf3::prepare(&end)?;
            (StreamKind::Iperf3(iperf3), ports)
        }
        Traffic::Tcp(tcp) => conversation(&end, tcp.clone())?,
        Traffic::Request(request) => conversation(&end, request.clone())?,
        Traffic::Http(http) => conversation(&end, http::Part::of(&end, &http.web)?)?,
        Traffic::Udp(_) => {
            let (udp, ports) = Udp::prepare(&end)?;
            (StreamKind::Udp(udp), ports)
        }
        Traffic::Echo(_) => {
            let (echo, ports) = Echo::prepare(&end)?;
            (StreamKind::Echo(echo), ports)
        }
        Traffic::Ping(_) => {
            let pings = Pings::prepare(&end)?;
            let identifiers = pings.identifiers();
            (StreamKind::Ping(pings), identifiers)
        }
    };
    Ok(Prepared { end, ports, kind })
}

/// Connections of TCP, with what is said on them.
fn conversation(
    end: &End,
    conversation: impl Conversation + 'static,
) -> Result<(StreamKind, Vec<u16>), TrafficError> {
    let (tcp, ports) = Tcp::prepare(end, Box::new(conversation))?;
    Ok((StreamKind::Tcp(tcp), ports))
}

impl End {
    /// The address of each stream, in order.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let port = |i: u32| self.ports.get(i as usize).copied().unwrap_or(0);
        (0..self.flow.streams).map(|i| SocketAddr::new(self.address, port(i))).collect()
    }
}

impl Prepared {
    /// One port a stream; of pings the identifiers of their requests.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// How long it may take to end after the run's end.
    pub fn patience(&self) -> Duration {
        if self.end.by_iperf3() { PATIENCE + iperf3::GRACE } else { PATIENCE }
    }

    /// Lets it run. The thread ends when all streams are over, at the latest with the run.
    pub fn start(self, context: Context) -> Result<Handle, TrafficError> {
        let totals = Arc::new(Totals::default());
        let name = self.end.flow.name.clone();
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn({
                let totals = totals.clone();
                move || {
                    let end = &self.end;
                    let result = match self.kind {
                        StreamKind::Tcp(tcp) => tcp.run(end, &context, &totals),
                        StreamKind::Udp(udp) => udp.run(end, &context, &totals),
                        StreamKind::Ping(pings) => pings.run(end, &context),
                        StreamKind::Echo(echo) => echo.run(end, &context, &totals),
                        StreamKind::Iperf3(iperf3) => iperf3.run(end, &context, &totals),
                    };
                    if let Err(error) = result {
                        context.sink.failed(&end.flow, &error);
                    }
                    context.sink.finished(&end.flow, end.role);
                }
            })
            .map_err(TrafficError::Thread)?;
        Ok(Handle { name, totals, thread })
    }
}
