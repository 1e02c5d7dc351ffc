//! Result tables as one node knows them: columns that only the peer knows are null.
//!
//! Columns and units are those of `tcplab_tables`.

use tcplab_tables::{Symbol, table};

table! {
    /// Flows: one row per stream and end.
    NodeFlows, NodeFlow, "flows";
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Sending node.
    from: Symbol,
    /// Receiving node.
    to: Symbol,
    /// Its port at the sending node; null where there is none.
    from_port: Option<u64>,
    /// Its port at the receiving node; null where there is none.
    to_port: Option<u64>,
    /// `tcp`, `udp`, `request` or ping.
    kind: Symbol,
    /// Congestion control.
    cc: Option<Symbol>,
    /// When the stream started (ns).
    start: u64,
    /// When it ended (ns).
    end: u64,
    /// Payload sent for the first time (B).
    bytes_sent: Option<u64>,
    /// Payload delivered (B).
    bytes_received: Option<u64>,
    /// `bytes_received` over start to end (bit/s).
    goodput: Option<f64>,
    /// Segments or datagrams sent.
    segments_sent: Option<u64>,
    /// Segments retransmitted.
    retransmits: Option<u64>,
    /// Retransmission timeouts.
    rtos: Option<u64>,
    /// Unknown to a host.
    losses_true: Option<u64>,
    /// Datagrams missing at the receiver.
    losses_detected: Option<u64>,
    /// Unknown to a host: its kernel keeps no RTT samples.
    rtt_mean: Option<f64>,
    /// As above.
    rtt_p50: Option<f64>,
    /// As above.
    rtt_p95: Option<f64>,
    /// As above.
    rtt_p99: Option<f64>,
    /// To be had from the table of sockets.
    cwnd_mean: Option<f64>,
    /// CPU time of the sender (s).
    cpu_sender: Option<f64>,
    /// CPU time of the receiver (s).
    cpu_receiver: Option<f64>,
    /// The stream did all it was asked to.
    complete: bool,
}

table! {
    /// Intervals: one row per stream, end and flow sample.
    NodeIntervals, NodeInterval, "intervals";
    /// End of the interval (ns).
    time: u64,
    /// Length of the interval (ns).
    duration: u64,
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Payload delivered (B).
    bytes_received: Option<u64>,
    /// Payload sent for the first time (B).
    bytes_sent: Option<u64>,
    /// `bytes_received` over duration (bit/s).
    goodput: Option<f64>,
    /// Segments retransmitted.
    retransmits: Option<u64>,
    /// Datagrams missing.
    lost: Option<u64>,
    /// Datagrams that came after a later one.
    out_of_order: Option<u64>,
    /// Datagrams that came twice.
    duplicates: Option<u64>,
    /// Interarrival jitter (ns).
    jitter: Option<f64>,
}
