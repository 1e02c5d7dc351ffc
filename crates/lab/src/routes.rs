//! Changes of the routing table of the network namespace this thread is in, as the kernel tells them (rtnetlink(7)).

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::netlink::{Kernel, messages};

/// Multicast groups (linux/rtnetlink.h).
const RTNLGRP_IPV4_ROUTE: u32 = 7;
const RTNLGRP_IPV6_ROUTE: u32 = 11;
/// A change of many routes comes at once; what finds no room is lost.
const RECEIVE_BUFFER: usize = 1 << 20;

/// The way to a prefix, new or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteChange {
    /// Such as `10.0.3.0/24`.
    pub prefix: String,
    /// Each as `10.0.1.2 eth1`, or `eth1` where the target is at hand; empty: the route is gone.
    pub next_hops: Vec<String>,
    /// Who has made it: `static`, `ospf`, `bgp`, `kernel`, ...
    pub protocol: String,
}

/// Hears of every change from when it was opened.
pub struct RouteMonitor {
    socket: Socket,
    interfaces: BTreeMap<u32, String>,
}

impl RouteMonitor {
    /// Begins to listen.
    pub fn open() -> io::Result<RouteMonitor> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        socket.add_membership(RTNLGRP_IPV4_ROUTE)?;
        socket.add_membership(RTNLGRP_IPV6_ROUTE)?;
        socket.set_non_blocking(true)?;
        let _ = socket.set_rx_buf_sz(RECEIVE_BUFFER as i32);
        let interfaces = Kernel::new()?.interfaces()?;
        let interfaces = interfaces.into_iter().map(|(name, index)| (index, name)).collect();
        Ok(RouteMonitor { socket, interfaces })
    }

    /// The routes of the main table as they are.
    pub fn table(&self) -> io::Result<Vec<RouteChange>> {
        Ok(Kernel::new()?.routes()?.iter().filter_map(|route| self.change(route, false)).collect())
    }

    /// The changes that come within `patience`; empty when none does.
    pub fn wait(&self, patience: Duration) -> io::Result<Vec<RouteChange>> {
        // SAFETY: the descriptor is the socket's, which lives longer than this call.
        let socket = unsafe { std::os::fd::BorrowedFd::borrow_raw(self.socket.as_raw_fd()) };
        let timeout = PollTimeout::try_from(patience.as_millis()).unwrap_or(PollTimeout::ZERO);
        poll(&mut [PollFd::new(socket, PollFlags::POLLIN)], timeout)?;
        let mut found = Vec::new();
        loop {
            match self.socket.recv_from_full() {
                Ok((bytes, _)) => found.extend(messages(&bytes).iter().filter_map(|one| self.parse(one))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
                Err(error) => return Err(error),
            }
        }
    }

    fn parse(&self, message: &NetlinkMessage<RouteNetlinkMessage>) -> Option<RouteChange> {
        match &message.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => self.change(route, false),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelRoute(route)) => self.change(route, true),
            _ => None,
        }
    }

    /// A route of the main table in words; those to the node itself are in another.
    fn change(&self, route: &RouteMessage, is_gone: bool) -> Option<RouteChange> {
        let header = &route.header;
        if header.table != RouteHeader::RT_TABLE_MAIN || header.kind != RouteType::Unicast {
            return None;
        }
        let mut to = None;
        let (mut gateway, mut interface) = (None, None);
        let mut next_hops = Vec::new();
        for attribute in &route.attributes {
            match attribute {
                RouteAttribute::Destination(address) => to = ip(address),
                RouteAttribute::Gateway(address) => gateway = ip(address),
                RouteAttribute::Oif(index) => interface = Some(*index),
                RouteAttribute::MultiPath(hops) => {
                    for hop in hops {
                        let via = hop.attributes.iter().find_map(|attribute| match attribute {
                            RouteAttribute::Gateway(address) => ip(address),
                            _ => None,
                        });
                        next_hops.push(self.hop(via, Some(hop.interface_index)));
                    }
                }
                _ => {}
            }
        }
        if next_hops.is_empty() {
            next_hops.push(self.hop(gateway, interface));
        }
        let any = if header.address_family == AddressFamily::Inet6 { "::" } else { "0.0.0.0" };
        let to = to.map_or(any.to_owned(), |address| address.to_string());
        Some(RouteChange {
            prefix: format!("{to}/{}", header.destination_prefix_length),
            next_hops: if is_gone { Vec::new() } else { next_hops },
            protocol: protocol(header.protocol),
        })
    }

    fn hop(&self, gateway: Option<IpAddr>, interface: Option<u32>) -> String {
        let name = interface.and_then(|index| self.interfaces.get(&index)).map_or("", String::as_str);
        gateway.map_or(name.to_owned(), |address| format!("{address} {name}"))
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// As ip-route(8) calls it. zebra's own number stands for static routes (FRR's `rt_netlink.h`, 196).
fn protocol(protocol: RouteProtocol) -> String {
    let name = match protocol {
        RouteProtocol::Kernel => "kernel",
        RouteProtocol::Boot => "boot",
        RouteProtocol::Static | RouteProtocol::Other(196) => "static",
        RouteProtocol::Zebra => "zebra",
        RouteProtocol::Bgp => "bgp",
        RouteProtocol::Isis => "isis",
        RouteProtocol::Ospf => "ospf",
        RouteProtocol::Rip => "rip",
        RouteProtocol::Eigrp => "eigrp",
        RouteProtocol::Babel => "babel",
        other => return u8::from(other).to_string(),
    };
    name.to_owned()
}
