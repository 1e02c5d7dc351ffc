//! Summaries of flows, as dictionaries.

use std::net::IpAddr;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tcplab_pcap::filter::{Filter, Subject};
use tcplab_pcap::flow::{Counts, Direction, End, FlowSummary, Half, Options, TcpHalf};
use tcplab_pcap::parse::Protocol;
use tcplab_pcap::{Quantiles, Summary};

/// The flows of a capture that the filter means, and what was read of it; on up to `cores` cores.
#[pyfunction]
#[pyo3(signature = (path=None, filter_text=None, cores=1))]
pub(super) fn summarise<'py>(
    py: Python<'py>,
    path: Option<PathBuf>,
    filter_text: Option<&str>,
    cores: usize,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
    let filter = super::filter(filter_text)?;
    let (reader, counts, flows) = py.detach(|| {
        let mut reader = super::open(path.as_ref())?;
        let Summary { mut flows, counts } = tcplab_pcap::summarise(&mut reader, Options::default(), cores);
        flows.retain(|flow| meant(filter.as_ref(), flow));
        PyResult::Ok((reader, counts, flows))
    })?;
    let list = PyList::empty(py);
    for flow in &flows {
        list.append(to_python(py, flow)?)?;
    }
    let facts = super::facts(py, &reader)?;
    add_counts(&facts, &counts)?;
    Ok((list, facts))
}

/// Whether the filter means a flow: who began it is its source.
fn meant(filter: Option<&Filter>, flow: &FlowSummary) -> bool {
    filter.is_none_or(|filter| {
        let [source, destination] = flow.endpoints;
        filter.matches(&Subject {
            source: Some(IpAddr::from(source.address)),
            destination: Some(IpAddr::from(destination.address)),
            source_port: Some(source.port),
            destination_port: Some(destination.port),
            protocol: Some(match flow.protocol {
                Protocol::Tcp => 6,
                Protocol::Udp => 17,
            }),
            flow: Some(flow.number),
        })
    })
}

pub(super) fn add_counts(facts: &Bound<'_, PyDict>, counts: &Counts) -> PyResult<()> {
    for (name, value) in [
        ("frame_bytes", counts.frame_bytes),
        ("tcp", counts.tcp),
        ("udp", counts.udp),
        ("not_ip", counts.not_ip),
        ("other_protocol", counts.other_protocol),
        ("link_type", counts.link_type),
        ("header_cut", counts.header_cut),
        ("malformed", counts.malformed),
        ("fragments", counts.fragments),
        ("fragments_incomplete", counts.fragments_incomplete),
        ("options_cut", counts.options_cut),
    ] {
        facts.set_item(name, value)?;
    }
    facts.set_item("first", counts.first)?;
    facts.set_item("last", counts.last)
}

fn to_python<'py>(py: Python<'py>, flow: &FlowSummary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("number", flow.number)?;
    dict.set_item("first_packet", flow.first_packet)?;
    dict.set_item("protocol", protocol(flow.protocol))?;
    dict.set_item("interface", flow.interface)?;
    dict.set_item("first", flow.first)?;
    dict.set_item("last", flow.last)?;
    dict.set_item("end", end(flow.end))?;
    let tcp = flow.tcp.as_ref();
    dict.set_item("handshake_rtt", tcp.and_then(|tcp| tcp.handshake_rtt))?;
    dict.set_item("handshake_server", tcp.and_then(|tcp| tcp.handshake_server))?;
    dict.set_item("handshake_client", tcp.and_then(|tcp| tcp.handshake_client))?;
    dict.set_item("ecn_negotiated", tcp.is_some_and(|tcp| tcp.ecn_negotiated))?;
    let halves = PyList::empty(py);
    for direction in [Direction::Forward, Direction::Backward] {
        let index = direction.index();
        let half = half(py, &flow.halves[index])?;
        half.set_item("address", flow.endpoints[index].address.to_string())?;
        half.set_item("port", flow.endpoints[index].port)?;
        half.set_item("goodput", flow.goodput(direction))?;
        half.set_item("tcp", tcp.map(|tcp| tcp_half(py, &tcp.halves[index])).transpose()?)?;
        halves.append(half)?;
    }
    dict.set_item("halves", halves)?;
    Ok(dict)
}

fn half<'py>(py: Python<'py>, half: &Half) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("packets", half.packets)?;
    dict.set_item("frame_bytes", half.frame_bytes)?;
    dict.set_item("ip_bytes", half.ip_bytes)?;
    dict.set_item("payload_bytes", half.payload_bytes)?;
    dict.set_item("fragments", half.fragments)?;
    dict.set_item("may_fragment", half.may_fragment)?;
    dict.set_item("largest_ip", half.largest_ip)?;
    dict.set_item("first", half.first)?;
    dict.set_item("last", half.last)?;
    dict.set_item("interarrival", spread(py, &half.interarrival)?)?;
    Ok(dict)
}

fn tcp_half<'py>(py: Python<'py>, half: &TcpHalf) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("data_packets", half.data_packets)?;
    dict.set_item("unique_bytes", half.unique_bytes)?;
    dict.set_item("acked_bytes", half.acked_bytes)?;
    dict.set_item("missed_bytes", half.missed_bytes)?;
    dict.set_item("retransmissions", half.retransmissions.total())?;
    dict.set_item("fast", half.retransmissions.fast)?;
    dict.set_item("timeout", half.retransmissions.timeout)?;
    dict.set_item("probe", half.retransmissions.probe)?;
    dict.set_item("unknown", half.retransmissions.unknown)?;
    dict.set_item("timeouts", half.timeouts)?;
    dict.set_item("retransmitted_segments", half.retransmitted_segments)?;
    dict.set_item("retransmitted_bytes", half.retransmitted_bytes)?;
    dict.set_item("spurious", half.spurious)?;
    dict.set_item("out_of_order", half.out_of_order)?;
    dict.set_item("duplicates", half.duplicates)?;
    dict.set_item("keep_alives", half.keep_alives)?;
    dict.set_item("duplicate_acks", half.duplicate_acks)?;
    dict.set_item("sacks", half.sacks)?;
    dict.set_item("dsacks", half.dsacks)?;
    dict.set_item("zero_windows", half.zero_windows)?;
    dict.set_item("zero_window_time", half.zero_window_time)?;
    dict.set_item("out_of_window", half.out_of_window)?;
    dict.set_item("ect0", half.ecn.ect0)?;
    dict.set_item("ect1", half.ecn.ect1)?;
    dict.set_item("ce", half.ecn.ce)?;
    dict.set_item("ece", half.ecn.ece)?;
    dict.set_item("cwr", half.ecn.cwr)?;
    dict.set_item("largest_payload", half.largest_payload)?;
    dict.set_item("mss", half.mss)?;
    dict.set_item("window_scale", half.window_scale)?;
    dict.set_item("sack_permitted", half.sack_permitted)?;
    dict.set_item("timestamps", half.timestamps)?;
    dict.set_item("syn", half.syn)?;
    dict.set_item("fin", half.fin)?;
    dict.set_item("rst", half.rst)?;
    dict.set_item("initial_seq", half.initial_seq)?;
    dict.set_item("window_min", half.window_min)?;
    dict.set_item("window_max", half.window_max)?;
    dict.set_item("outstanding_max", half.outstanding_max)?;
    dict.set_item("rtt", spread(py, &half.rtt)?)?;
    dict.set_item("rtt_timestamps", spread(py, &half.rtt_timestamps)?)?;
    dict.set_item("too_big", half.too_big)?;
    dict.set_item("path_mtu", half.path_mtu)?;
    Ok(dict)
}

/// Count, extremes, mean and quantiles; None without values.
pub(super) fn spread<'py>(py: Python<'py>, values: &Quantiles) -> PyResult<Option<Bound<'py, PyDict>>> {
    let (Some(min), Some(max), Some(mean)) = (values.min(), values.max(), values.mean()) else {
        return Ok(None);
    };
    let dict = PyDict::new(py);
    dict.set_item("count", values.count())?;
    dict.set_item("min", min)?;
    dict.set_item("max", max)?;
    dict.set_item("mean", mean)?;
    for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        dict.set_item(name, values.quantile(share))?;
    }
    Ok(Some(dict))
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
