//! Rows that traffic reports. Times are ns since the run's start; a figure this end does not know is none.

use tcplab_plan::Flow;
use tcplab_probe::sockets::Sample;
use tcplab_tables::EchoTally;

use crate::{Role, TrafficError};

/// One stream in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// End of the interval.
    pub time: u64,
    /// Its length.
    pub duration: u64,
    /// Stream number.
    pub stream: u64,
    /// Payload delivered.
    pub bytes_received: Option<u64>,
    /// Payload sent for the first time.
    pub bytes_sent: Option<u64>,
    /// Segments retransmitted.
    pub retransmits: Option<u64>,
    /// Datagrams missing.
    pub lost: Option<u64>,
    /// Datagrams that came after a later one.
    pub out_of_order: Option<u64>,
    /// Datagrams that came twice.
    pub duplicates: Option<u64>,
    /// Interarrival jitter at the end of the interval, ns (RFC 3550, section 6.4.1).
    pub jitter: Option<f64>,
}

/// One stream as a whole, as one end saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Stream number.
    pub stream: u64,
    /// When it started.
    pub start: u64,
    /// When its last byte was delivered (receiver) or acknowledged (sender), or the run ended.
    pub end: u64,
    /// Payload sent for the first time.
    pub bytes_sent: Option<u64>,
    /// Payload delivered.
    pub bytes_received: Option<u64>,
    /// Segments with data, retransmissions included, or datagrams sent.
    pub segments_sent: Option<u64>,
    /// Segments retransmitted; a SYN or a FIN without data counts here alone.
    pub retransmits: Option<u64>,
    /// Retransmission timeouts; none where the kernel does not count them.
    pub rtos: Option<u64>,
    /// Datagrams missing up to the last one that came.
    pub losses_detected: Option<u64>,
    /// Ports at the flow's `from` and at its `to`.
    pub ports: Option<(u16, u16)>,
    /// CPU time of the sending thread, s.
    pub cpu_sender: Option<f64>,
    /// CPU time of the receiving thread, s.
    pub cpu_receiver: Option<f64>,
    /// The stream did all it was asked to.
    pub complete: bool,
}

/// One request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Stream number of the client.
    pub client: u64,
    /// Request bytes.
    pub size: u64,
    /// Number on its connection, from 0.
    pub iteration: u64,
    /// When the request was issued.
    pub time: u64,
    /// Until the response's last byte was read, ns.
    pub rtt: u64,
}

/// One answered request of an http flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Stream (connection) number.
    pub stream: u64,
    /// Number of the page, from 0.
    pub page: u64,
    /// Number of the object, from 0.
    pub object: u64,
    /// Bytes of the object.
    pub size: u64,
    /// Where the range asked for begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// When the request was sent.
    pub time: u64,
    /// From then to the response's first byte, ns.
    pub first_byte: u64,
    /// From then to its last byte, ns.
    pub duration: u64,
    /// How a cache on the way answered; none without one.
    pub cache: Option<&'static str>,
}

/// One echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// When it was sent.
    pub time: u64,
    /// Stream number.
    pub stream: u64,
    /// Number, from 0.
    pub seq: u64,
    /// Round-trip time, ns; none: lost.
    pub rtt: Option<u64>,
}

/// Takes what traffic reports, from many threads.
pub trait Sink: Send + Sync {
    /// A stream's interval ended.
    fn interval(&self, flow: &Flow, row: &Interval);
    /// A stream ended.
    fn summary(&self, flow: &Flow, row: &Summary);
    /// A response came.
    fn exchange(&self, flow: &Flow, row: &Exchange);
    /// A request of an http flow was answered.
    fn fetch(&self, flow: &Flow, row: &Fetch);
    /// The round trips of a client at a size that are too many for a row each.
    fn tally(&self, flow: &Flow, client: u64, size: u64, tally: &EchoTally);
    /// An echo request was answered or is lost.
    fn ping(&self, flow: &Flow, row: &Ping);
    /// The last figures of a socket that was sampled.
    fn socket(&self, time: u64, last: &Sample<'_>);
    /// Something happened to a stream: `established` (the detail: with ECN), `closed` or `aborted`.
    fn event(&self, flow: &Flow, time: u64, stream: u64, event: &'static str, detail: Option<&'static str>);
    /// The run goes on, but not quite as asked.
    fn warning(&self, message: String, hint: String);
    /// A stream or the whole flow failed.
    fn failed(&self, flow: &Flow, error: &TrafficError);
    /// All streams of this end are over.
    fn finished(&self, flow: &Flow, role: Role);
}
