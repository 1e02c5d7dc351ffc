//! The fields of a flow's summary, name by name: for a dictionary and for columns alike.

use tcplab_pcap::Quantiles;
use tcplab_pcap::flow::{Direction, End, FlowSummary, Half, TcpHalf};
use tcplab_pcap::parse::Protocol;

/// Takes names and values.
pub(super) trait Fields {
    fn integer(&mut self, name: &'static str, value: Option<i64>);
    fn real(&mut self, name: &'static str, value: Option<f64>);
    fn truth(&mut self, name: &'static str, value: bool);
    fn text(&mut self, name: &'static str, value: &str);
    /// Count, extremes, mean and quantiles of durations (ns); nothing of none.
    fn spread(&mut self, name: &'static str, values: &Quantiles);
}

/// An integer as Python's tables have it: none of those counted here gets beyond 2^63.
fn whole(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

/// Identity of a flow, before its directions.
pub(super) fn flow(flow: &FlowSummary, into: &mut impl Fields) {
    into.integer("first_packet", Some(whole(flow.first_packet)));
    into.text("protocol", protocol(flow.protocol));
    into.integer("interface", Some(whole(flow.interface)));
    into.integer("first", Some(flow.first));
    into.integer("last", Some(flow.last));
    into.text("end", end(flow.end));
    let tcp = flow.tcp.as_ref();
    into.integer("handshake_rtt", tcp.and_then(|tcp| tcp.handshake_rtt));
    into.integer("handshake_server", tcp.and_then(|tcp| tcp.handshake_server));
    into.integer("handshake_client", tcp.and_then(|tcp| tcp.handshake_client));
    into.truth("ecn_negotiated", tcp.is_some_and(|tcp| tcp.ecn_negotiated));
    into.truth("accecn_negotiated", tcp.is_some_and(|tcp| tcp.accecn_negotiated));
}

/// Counters of one direction, for any protocol.
pub(super) fn half(flow: &FlowSummary, direction: Direction, into: &mut impl Fields) {
    let half: &Half = &flow.halves[direction.index()];
    into.integer("packets", Some(whole(half.packets)));
    into.integer("frame_bytes", Some(whole(half.frame_bytes)));
    into.integer("ip_bytes", Some(whole(half.ip_bytes)));
    into.integer("payload_bytes", Some(whole(half.payload_bytes)));
    into.integer("fragments", Some(whole(half.fragments)));
    into.integer("may_fragment", Some(whole(half.may_fragment)));
    into.integer("largest_ip", Some(whole(half.largest_ip)));
    into.integer("first", half.first.map(whole));
    into.integer("last", half.last.map(whole));
    into.real("goodput", flow.goodput(direction));
    into.spread("interarrival", &half.interarrival);
}

/// Counters of one side of a TCP connection.
pub(super) fn tcp(half: &TcpHalf, into: &mut impl Fields) {
    into.integer("data_packets", Some(whole(half.data_packets)));
    into.integer("unique_bytes", Some(whole(half.unique_bytes)));
    into.integer("acked_bytes", half.acked_bytes.map(whole));
    into.integer("missed_bytes", Some(whole(half.missed_bytes)));
    into.integer("retransmissions", Some(whole(half.retransmissions.total())));
    into.integer("fast", Some(whole(half.retransmissions.fast)));
    into.integer("timeout", Some(whole(half.retransmissions.timeout)));
    into.integer("probe", Some(whole(half.retransmissions.probe)));
    into.integer("unknown", Some(whole(half.retransmissions.unknown)));
    into.integer("timeouts", Some(whole(half.timeouts)));
    into.integer("retransmitted_segments", Some(whole(half.retransmitted_segments)));
    into.integer("retransmitted_bytes", Some(whole(half.retransmitted_bytes)));
    into.integer("spurious", Some(whole(half.spurious)));
    into.integer("out_of_order", Some(whole(half.out_of_order)));
    into.integer("duplicates", Some(whole(half.duplicates)));
    into.integer("keep_alives", Some(whole(half.keep_alives)));
    into.integer("duplicate_acks", Some(whole(half.duplicate_acks)));
    into.integer("sacks", Some(whole(half.sacks)));
    into.integer("dsacks", Some(whole(half.dsacks)));
    into.integer("zero_windows", Some(whole(half.zero_windows)));
    into.integer("zero_window_time", Some(whole(half.zero_window_time)));
    into.integer("out_of_window", Some(whole(half.out_of_window)));
    into.integer("ect0", Some(whole(half.ecn.ect0)));
    into.integer("ect1", Some(whole(half.ecn.ect1)));
    into.integer("ce", Some(whole(half.ecn.ce)));
    into.integer("ece", Some(whole(half.ecn.ece)));
    into.integer("cwr", Some(whole(half.ecn.cwr)));
    into.integer("largest_payload", Some(whole(half.largest_payload)));
    into.integer("mss", half.mss.map(whole));
    into.integer("window_scale", half.window_scale.map(whole));
    into.truth("sack_permitted", half.sack_permitted);
    into.truth("timestamps", half.timestamps);
    into.truth("syn", half.syn);
    into.truth("fin", half.fin);
    into.truth("rst", half.rst);
    into.integer("initial_seq", Some(whole(half.initial_seq)));
    into.integer("window_min", half.window_min.map(whole));
    into.integer("window_max", half.window_max.map(whole));
    into.integer("outstanding_max", Some(whole(half.outstanding_max)));
    into.spread("rtt", &half.rtt);
    into.spread("rtt_timestamps", &half.rtt_timestamps);
    into.integer("too_big", Some(whole(half.too_big)));
    into.integer("path_mtu", half.path_mtu.map(whole));
}

fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    }
}

fn end(end: End) -> &'static str {
    match end {
        End::Closed => "closed",
        End::HalfClosed => "half closed",
        End::Reset => "reset",
        End::Open => "open",
        End::Reused => "ports used again",
        End::Evicted => "forgotten",
    }
}
