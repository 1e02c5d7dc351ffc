//! Interfaces, addresses, routes and neighbours over rtnetlink(7), many requests in one system call.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NlasIterator,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    BridgeStpState, InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteNextHop, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::layout::{Mac, Subnet};

/// Answers that the default receive buffer of a socket holds with a wide margin.
const AT_ONCE: usize = 100;
/// Set in an answer that carries the kernel's own words (linux/netlink.h).
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;
/// linux/rtnetlink.h
const TCA_OPTIONS: u16 = 2;
const RTAX_RTO_MIN: u32 = 13;
/// An answer repeats the header of its request, no more with NETLINK_CAP_ACK.
const HEADER: usize = 16;

/// The kernel refused a request.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {said}")]
pub(crate) struct Refusal {
    /// The request, as in "make the bridge br0".
    pub(crate) what: String,
    /// The kernel's own words, or the error's.
    pub(crate) said: String,
}

/// One request to the kernel, and what it does in words.
pub(crate) struct Request {
    what: String,
    flags: u16,
    message: RouteNetlinkMessage,
}

impl Request {
    fn new(what: String, flags: u16, message: RouteNetlinkMessage) -> Request {
        Request { what, flags, message }
    }
}

/// Makes a cable between this namespace and that of a process.
pub(crate) fn veth(name: &str, mac: Mac, peer_process: u32, peer: &str, peer_mac: Mac, mtu: u32) -> Request {
    let settings = |name: &str, mac: Mac| {
        vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Address(mac.0.to_vec()),
            LinkAttribute::Mtu(mtu),
        ]
    };
    let mut far = LinkMessage::default();
    far.attributes = settings(peer, peer_mac);
    far.attributes.push(LinkAttribute::NetNsPid(peer_process));
    let mut near = LinkMessage::default();
    near.attributes = settings(name, mac);
    near.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
    ]));
    let what = format!("make the veth pair {name}-{peer}");
    Request::new(what, NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewLink(near))
}

/// Makes a bridge that forwards at once: no spanning tree, no multicast snooping.
pub(crate) fn bridge(name: &str) -> Request {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Bridge),
            LinkInfo::Data(InfoData::Bridge(vec![
                InfoBridge::ForwardDelay(0),
                InfoBridge::StpState(BridgeStpState::Disabled),
                InfoBridge::MulticastSnooping(false),
            ])),
        ]),
    ];
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    Request::new(format!("make the bridge {name}"), flags, RouteNetlinkMessage::NewLink(message))
}

/// Lets an interface take no part in multicast and resolve no addresses.
///
/// Otherwise IPv6 would report the groups of all routers and of solicited nodes (`dev_forward_change`,
/// `addrconf_join_solict`). The neighbours of an interface are named.
pub(crate) fn silence(name: &str, index: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Noarp;
    message.header.change_mask = LinkFlags::Noarp | LinkFlags::Multicast;
    Request::new(format!("silence {name}"), 0, RouteNetlinkMessage::NewLink(message))
}

/// Lets TCP hand packets to an interface one by one.
///
/// Without offloads it still makes bursts, which are cut behind the queue discipline (`sk_setup_caps` counts GSO
/// among any device's abilities).
pub(crate) fn one_by_one(name: &str, index: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes = vec![LinkAttribute::GsoMaxSegs(1)];
    Request::new(format!("send packets one by one through {name}"), 0, RouteNetlinkMessage::NewLink(message))
}

/// Sets an interface up, makes it a port of a bridge, and lets `queue` packets wait in it.
pub(crate) fn up(name: &str, index: u32, bridge: Option<u32>, queue: Option<u32>) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    message.attributes.extend(bridge.map(LinkAttribute::Controller));
    message.attributes.extend(queue.map(LinkAttribute::TxQueueLen));
    Request::new(format!("set {name} up"), 0, RouteNetlinkMessage::NewLink(message))
}

/// Gives an interface an address.
pub(crate) fn address(name: &str, index: u32, subnet: Subnet) -> Request {
    let Subnet { address, prefix } = subnet;
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = prefix;
    message.header.index = index;
    if address.is_ipv6() {
        message.header.flags = AddressHeaderFlags::Nodad;
    }
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    let what = format!("give {name} the address {address}/{prefix}");
    Request::new(what, NLM_F_CREATE | NLM_F_REPLACE, RouteNetlinkMessage::NewAddress(message))
}

/// Metrics of a route, ip-route(8).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteSettings {
    /// Initial congestion window, segments.
    pub(crate) initcwnd: Option<u32>,
    /// Minimum retransmission timeout, ms.
    pub(crate) rto_min: Option<u32>,
    /// Acknowledge every segment at once.
    pub(crate) quickack: bool,
}

/// Sends packets to a network by an interface, through a gateway or directly, or shares their flows between `others`
/// too: gateways and the interfaces to them.
pub(crate) fn route(
    Subnet { address: to, prefix }: Subnet,
    gateway: Option<IpAddr>,
    index: u32,
    others: &[(IpAddr, u32)],
    source: Option<IpAddr>,
    settings: RouteSettings,
) -> Request {
    let mut message = RouteMessage::default();
    message.header.address_family = family(to);
    message.header.destination_prefix_length = prefix;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = if gateway.is_some() { RouteScope::Universe } else { RouteScope::Link };
    message.header.kind = RouteType::Unicast;
    if prefix > 0 {
        message.attributes.push(RouteAttribute::Destination(to.into()));
    }
    match gateway {
        Some(gateway) if !others.is_empty() => {
            let hops = [(gateway, index)].into_iter().chain(others.iter().copied());
            message.attributes.push(RouteAttribute::MultiPath(hops.map(next_hop).collect()));
        }
        _ => {
            message.attributes.push(RouteAttribute::Oif(index));
            message.attributes.extend(gateway.map(|at| RouteAttribute::Gateway(at.into())));
        }
    }
    message.attributes.extend(source.map(|at| RouteAttribute::PrefSource(at.into())));
    let mut metrics = Vec::new();
    metrics.extend(settings.initcwnd.map(RouteMetric::InitCwnd));
    if let Some(timeout) = settings.rto_min {
        // Linux heeds this metric only where it is locked (`tcp_rto_min`).
        metrics.extend([RouteMetric::Lock(1 << RTAX_RTO_MIN), RouteMetric::RtoMin(timeout)]);
    }
    metrics.extend(settings.quickack.then_some(RouteMetric::QuickAck(1)));
    if !metrics.is_empty() {
        message.attributes.push(RouteAttribute::Metrics(metrics));
    }
    Request::new(
        format!("route {to}/{prefix}"),
        NLM_F_CREATE | NLM_F_REPLACE,
        RouteNetlinkMessage::NewRoute(message),
    )
}

fn next_hop((gateway, index): (IpAddr, u32)) -> RouteNextHop {
    let mut hop = RouteNextHop::default();
    hop.interface_index = index;
    hop.attributes = vec![RouteAttribute::Gateway(gateway.into())];
    hop
}

/// Knows the MAC of a neighbour for good, so that nobody is ever asked for it.
pub(crate) fn neighbour(host: IpAddr, mac: Mac, index: u32) -> Request {
    let mut message = NeighbourMessage::default();
    message.header.family = family(host);
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    message.header.kind = RouteType::Unicast;
    let host_address = match host {
        IpAddr::V4(address) => NeighbourAddress::Inet(address),
        IpAddr::V6(address) => NeighbourAddress::Inet6(address),
    };
    message.attributes = vec![
        NeighbourAttribute::Destination(host_address),
        NeighbourAttribute::LinkLayerAddress(mac.0.to_vec()),
    ];
    let what = format!("name the neighbour {host}");
    Request::new(what, NLM_F_CREATE | NLM_F_REPLACE, RouteNetlinkMessage::NewNeighbour(message))
}

/// Tells a bridge behind which port a MAC is, so that no frame is flooded.
pub(crate) fn forwarding(mac: Mac, index: u32) -> Request {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Bridge;
    message.header.ifindex = index;
    message.header.state = NeighbourState::Noarp;
    message.header.flags = NeighbourFlags::Controller;
    message.attributes = vec![NeighbourAttribute::LinkLayerAddress(mac.0.to_vec())];
    let [a, b, c, d, e, f] = mac.0;
    let what = format!("place {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} behind a port");
    Request::new(what, NLM_F_CREATE | NLM_F_REPLACE, RouteNetlinkMessage::NewNeighbour(message))
}

/// Makes netem an interface's queue discipline, one that changes nothing: to see whether there is one.
pub(crate) fn netem(name: &str, index: u32) -> Request {
    let mut message = TcMessage::with_index(index as i32);
    message.header.family = AddressFamily::Unspec;
    message.header.parent = TcHandle::ROOT;
    // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
    let options = [0u32, 1000, 0, 0, 0, 0].map(u32::to_ne_bytes).concat();
    message.attributes = vec![
        TcAttribute::Kind("netem".to_owned()),
        TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options)),
    ];
    let what = format!("shape {name} with netem");
    Request::new(what, NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewQueueDiscipline(message))
}

/// A socket of the namespace this thread is in, wherever the thread goes afterwards.
pub(crate) struct Kernel(Socket);

impl Kernel {
    pub(crate) fn new() -> io::Result<Kernel> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.set_cap_ack(true)?;
        socket.set_ext_ack(true)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        nix::fcntl::fcntl(
            // SAFETY: the descriptor is the socket's, which lives longer than this call.
            unsafe { std::os::fd::BorrowedFd::borrow_raw(socket.as_raw_fd()) },
            nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC),
        )?;
        Ok(Kernel(socket))
    }

    /// Has all requests done, in order. The first that is refused is the error; the others are done all the same.
    pub(crate) fn carry_out(&self, requests: Vec<Request>) -> io::Result<Result<(), Refusal>> {
        let mut outcome = Ok(());
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() && outcome.is_ok() {
            outcome = self.together(requests.by_ref().take(AT_ONCE).collect())?;
        }
        Ok(outcome)
    }

    fn together(&self, requests: Vec<Request>) -> io::Result<Result<(), Refusal>> {
        let mut bytes = Vec::new();
        let mut asked = Vec::new();
        for (number, request) in requests.into_iter().enumerate() {
            append(&mut bytes, request.message, NLM_F_ACK | request.flags, number as u32);
            asked.push(request.what);
        }
        self.0.send(&bytes, 0)?;
        let mut outcome = Ok(());
        let mut waiting = asked.len();
        while waiting > 0 {
            for message in messages(&self.0.recv_from_full()?.0) {
                let NetlinkPayload::Error(answer) = &message.payload else { continue };
                waiting -= 1;
                if answer.code.is_some() && outcome.is_ok() {
                    let said =
                        if message.header.flags & NLM_F_ACK_TLVS != 0 { words(&answer.header) } else { None };
                    outcome = Err(Refusal {
                        what: asked.get(message.header.sequence_number as usize).cloned().unwrap_or_default(),
                        said: said.unwrap_or_else(|| plain(&answer.to_io())),
                    });
                }
            }
        }
        Ok(outcome)
    }

    /// Every route, of both families and all tables.
    pub(crate) fn routes(&self) -> io::Result<Vec<RouteMessage>> {
        let mut bytes = Vec::new();
        append(&mut bytes, RouteNetlinkMessage::GetRoute(RouteMessage::default()), NLM_F_DUMP, 0);
        self.0.send(&bytes, 0)?;
        let mut found = Vec::new();
        loop {
            for message in messages(&self.0.recv_from_full()?.0) {
                match message.payload {
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => found.push(route),
                    NetlinkPayload::Done(_) | NetlinkPayload::Error(_) => return Ok(found),
                    _ => {}
                }
            }
        }
    }

    /// Every interface's index, by its name.
    pub(crate) fn interfaces(&self) -> io::Result<BTreeMap<String, u32>> {
        let mut bytes = Vec::new();
        append(&mut bytes, RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP, 0);
        self.0.send(&bytes, 0)?;
        let mut found = BTreeMap::new();
        loop {
            for message in messages(&self.0.recv_from_full()?.0) {
                let link = match message.payload {
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => link,
                    NetlinkPayload::Done(_) | NetlinkPayload::Error(_) => return Ok(found),
                    _ => continue,
                };
                let index = link.header.index;
                found.extend(link.attributes.into_iter().find_map(|attribute| match attribute {
                    LinkAttribute::IfName(name) => Some((name, index)),
                    _ => None,
                }));
            }
        }
    }
}

/// An error in words, without its number.
pub(crate) fn plain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_owned(),
        None => error.to_string(),
    }
}

fn append(bytes: &mut Vec<u8>, message: RouteNetlinkMessage, flags: u16, number: u32) {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    header.sequence_number = number;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let at = bytes.len();
    // Messages begin at multiples of four bytes (NLMSG_ALIGN).
    bytes.resize(at + message.buffer_len().next_multiple_of(4), 0);
    message.serialize(&mut bytes[at..at + message.buffer_len()]);
}

/// The messages of a datagram; those that are not understood are left out.
pub(crate) fn messages(mut bytes: &[u8]) -> Vec<NetlinkMessage<RouteNetlinkMessage>> {
    let mut found = Vec::new();
    while let Some(length) = bytes.get(..4).and_then(|four| four.try_into().ok()).map(u32::from_ne_bytes) {
        let length = length as usize;
        if length < HEADER || length > bytes.len() {
            break;
        }
        found.extend(NetlinkMessage::deserialize(&bytes[..length]));
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    found
}

/// The kernel's own words in an answer (extended acknowledgment).
fn words(answer: &[u8]) -> Option<String> {
    NlasIterator::new(answer.get(HEADER..)?)
        .flatten()
        .find(|attribute| attribute.kind() == NLMSGERR_ATTR_MSG)
        .map(|attribute| String::from_utf8_lossy(attribute.value()).trim_end_matches('\0').to_owned())
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet }
}
