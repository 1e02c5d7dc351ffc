//! Changes of the routing table of the network namespace this thread is in, as the kernel reports them (rtnetlink(7)).

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use netlink_packet_core::NetlinkPayload;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::netlink::{Kernel, messages};

/// Multicast groups (linux/rtnetlink.h).
const RTNLGRP_LINK: u32 = 1;
const RTNLGRP_IPV4_ROUTE: u32 = 7;
const RTNLGRP_IPV6_ROUTE: u32 = 11;
/// A change of many routes comes at once. Messages that find no room are lost, and the table is read anew.
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

/// Prefix and metric: a route replaces another with the same. The kernel's own networks of IPv6 are many of one prefix and
/// metric, one for each interface, which comes third.
type Key = (String, u32, Option<String>);

/// Hears of every change from when it was opened.
///
/// The kernel is silent about IPv4 routes that it removes with a next hop, as when an interface loses its carrier. So the
/// table is read anew after a change of an interface.
pub struct RouteMonitor {
    socket: Socket,
    interfaces: BTreeMap<u32, String>,
    known: BTreeMap<Key, RouteChange>,
}

impl RouteMonitor {
    /// Begins to listen.
    pub fn open() -> io::Result<RouteMonitor> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        for group in [RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE] {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        let _ = socket.set_rx_buf_sz(RECEIVE_BUFFER as i32);
        let interfaces = Kernel::new()?.interfaces()?;
        let interfaces = interfaces.into_iter().map(|(name, index)| (index, name)).collect();
        Ok(RouteMonitor { socket, interfaces, known: BTreeMap::new() })
    }

    /// The routes of the main table as they are. Changes count from here on.
    pub fn table(&mut self) -> io::Result<Vec<RouteChange>> {
        self.wait(Duration::ZERO)?;
        self.known = self.read()?;
        Ok(self.known.values().cloned().collect())
    }

    fn read(&self) -> io::Result<BTreeMap<Key, RouteChange>> {
        Ok(Kernel::new()?.routes()?.iter().filter_map(|route| self.change(route, false)).collect())
    }

    /// The changes that come within `patience`; empty when none does.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Vec<RouteChange>> {
        // SAFETY: the descriptor is the socket's, which lives longer than this call.
        let socket = unsafe { std::os::fd::BorrowedFd::borrow_raw(self.socket.as_raw_fd()) };
        let timeout = PollTimeout::try_from(patience.as_millis()).unwrap_or(PollTimeout::ZERO);
        match poll(&mut [PollFd::new(socket, PollFlags::POLLIN)], timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut found = Vec::new();
        let mut is_stale = false;
        loop {
            match self.socket.recv_from_full() {
                Ok((bytes, _)) => {
                    for message in messages(&bytes) {
                        let (route, is_gone) = match message.payload {
                            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => {
                                (route, false)
                            }
                            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelRoute(route)) => {
                                (route, true)
                            }
                            NetlinkPayload::InnerMessage(_) => {
                                is_stale = true;
                                continue;
                            }
                            _ => continue,
                        };
                        if let Some((key, change)) = self.change(&route, is_gone) {
                            found.extend(self.learn(key, change));
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => is_stale = true,
                Err(error) => return Err(error),
            }
        }
        if is_stale {
            let now = self.read()?;
            let gone: Vec<Key> = self.known.keys().filter(|key| !now.contains_key(*key)).cloned().collect();
            for key in gone {
                let RouteChange { prefix, protocol, .. } = self.known[&key].clone();
                found.extend(self.learn(key, RouteChange { prefix, next_hops: Vec::new(), protocol }));
            }
            for (key, change) in now {
                found.extend(self.learn(key, change));
            }
        }
        Ok(found)
    }

    /// The change, if it is new.
    fn learn(&mut self, key: Key, change: RouteChange) -> Option<RouteChange> {
        let old = if change.next_hops.is_empty() {
            self.known.remove(&key)
        } else {
            self.known.insert(key, change.clone())
        };
        let is_news = match &old {
            Some(old) => *old != change,
            None => !change.next_hops.is_empty(),
        };
        is_news.then_some(change)
    }

    /// A route of the main table in words; those to the node itself are in another.
    fn change(&self, route: &RouteMessage, is_gone: bool) -> Option<(Key, RouteChange)> {
        let header = &route.header;
        if header.table != RouteHeader::RT_TABLE_MAIN || header.kind != RouteType::Unicast {
            return None;
        }
        let mut to = None;
        let (mut gateway, mut interface) = (None, None);
        let mut metric = 0;
        let mut next_hops = Vec::new();
        for attribute in &route.attributes {
            match attribute {
                RouteAttribute::Destination(address) => to = ip(address),
                RouteAttribute::Gateway(address) => gateway = ip(address),
                RouteAttribute::Oif(index) => interface = Some(*index),
                RouteAttribute::Priority(number) => metric = *number,
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
        let prefix = format!("{to}/{}", header.destination_prefix_length);
        let own = (header.protocol == RouteProtocol::Kernel).then(|| next_hops.join(", "));
        let next_hops = if is_gone { Vec::new() } else { next_hops };
        let change = RouteChange { prefix: prefix.clone(), next_hops, protocol: protocol(header.protocol) };
        Some(((prefix, metric, own), change))
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
