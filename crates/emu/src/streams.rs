//! Which stream a packet belongs to, by its server's address and port, or by the identifier of ICMP echo requests.

use std::collections::HashMap;
use std::net::IpAddr;

use tcplab_tables::LossTally;
use tcplab_units::{Span, Time};

use crate::arena::Arena;
use crate::config::StreamName;
use crate::frame_layout::{IP, Network, Transport};
use crate::headers::read_u16;
use crate::report::StreamLosses;
use crate::wire::Wire;

/// The streams of a run.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    by_server: HashMap<(IpAddr, u16), usize>,
    by_identifier: HashMap<(IpAddr, u16), usize>,
    losses: Vec<StreamLosses>,
    /// The same by interval.
    pub(crate) lately: LossTally,
}

impl Streams {
    pub(crate) fn new(names: &[StreamName], interval: Option<Span>) -> Streams {
        let by = |icmp| {
            let ours = names.iter().enumerate().filter(move |(_, name)| name.icmp == icmp);
            ours.map(|(number, name)| ((name.address, name.port), number)).collect()
        };
        let losses = names
            .iter()
            .map(|name| StreamLosses {
                flow: name.flow.clone(),
                stream: name.stream,
                to_server: 0,
                from_server: 0,
            })
            .collect();
        Streams {
            by_server: by(false),
            by_identifier: by(true),
            losses,
            lately: LossTally::new(names.len(), interval.map(Span::as_ns)),
        }
    }

    /// The stream of `packet`, and whether it is on its way to the server.
    pub(crate) fn of(&self, packet: &Wire, arena: &Arena) -> Option<(usize, bool)> {
        let is_known = match packet.layout.transport {
            Transport::Tcp | Transport::Udp => !self.by_server.is_empty(),
            Transport::Icmp => !self.by_identifier.is_empty(),
            Transport::Other => false,
        };
        if !is_known {
            return None;
        }
        let header = packet.shared_header(arena);
        let at = usize::from(packet.layout.transport_at);
        let (source, destination) = addresses(packet, header)?;
        if packet.layout.transport == Transport::Icmp {
            let (address, to_server) = match header.get(at)? {
                8 | 128 => (destination, true),
                0 | 129 => (source, false),
                _ => return None,
            };
            let number = self.by_identifier.get(&(address, read_u16(header, at + 4)))?;
            return Some((*number, to_server));
        }
        let to = (destination, read_u16(header, at + 2));
        let from = (source, read_u16(header, at));
        let to = self.by_server.get(&to).map(|&number| (number, true));
        to.or_else(|| self.by_server.get(&from).map(|&number| (number, false)))
    }

    /// `packet` will not arrive; it was lost at `at`.
    pub(crate) fn count_loss(&mut self, packet: &Wire, at: Time, arena: &Arena) {
        let Some((stream, to_server)) = self.of(packet, arena) else { return };
        let losses = &mut self.losses[stream];
        *if to_server { &mut losses.to_server } else { &mut losses.from_server } += 1;
        self.lately.count(stream, !to_server, at.as_ns());
    }

    /// Losses by stream.
    pub(crate) fn losses(&self) -> &[StreamLosses] {
        &self.losses
    }
}

fn addresses(packet: &Wire, header: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let four = |at: usize| header.get(at..at + 4)?.first_chunk::<4>().map(|a| IpAddr::from(*a));
    let six = |at: usize| header.get(at..at + 16)?.first_chunk::<16>().map(|a| IpAddr::from(*a));
    match packet.layout.network {
        Network::Ip4 => Some((four(IP + 12)?, four(IP + 16)?)),
        Network::Ip6 => Some((six(IP + 8)?, six(IP + 24)?)),
        Network::Other => None,
    }
}
