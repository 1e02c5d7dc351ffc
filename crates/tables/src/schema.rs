//! The tables, column for column as in `python/tcplab/results/schema.py`.
//!
//! Times are nanoseconds since the run's start, rates bit/s, sizes bytes, windows segments. A column that
//! the engine does not know for a row is null.

use crate::Symbol;

table! {
    /// Flows: one row per stream.
    Flows, FlowRow, "flows";
    /// Flow name.
    flow: Symbol,
    /// Stream number within the flow, from 0.
    stream: u64,
    /// Sending node.
    from: Symbol,
    /// Receiving node.
    to: Symbol,
    /// Its port at the sending node; null where there is none.
    from_port: Option<u64>,
    /// Its port at the receiving node; null where there is none.
    to_port: Option<u64>,
    /// `tcp`, `udp`, `request`, `http`, `echo` or `ping`.
    kind: Symbol,
    /// Congestion control; null where there is none.
    cc: Option<Symbol>,
    /// When the stream started (ns).
    start: u64,
    /// When its last byte was delivered, or the run ended (ns).
    end: u64,
    /// Payload sent for the first time (B).
    bytes_sent: u64,
    /// Payload delivered in order to the receiving application (B).
    bytes_received: u64,
    /// `bytes_received` over start to end (bit/s).
    goodput: f64,
    /// Segments or datagrams sent, retransmissions included.
    segments_sent: Option<u64>,
    /// Segments sent again.
    retransmits: Option<u64>,
    /// Retransmission timeouts.
    rtos: Option<u64>,
    /// Packets of the sending direction that the links dropped or lost.
    losses_true: Option<u64>,
    /// Segments the sender took for lost.
    losses_detected: Option<u64>,
    /// Mean of all RTT samples (ns).
    rtt_mean: Option<f64>,
    /// Median RTT sample (ns).
    rtt_p50: Option<f64>,
    /// 95th percentile of the RTT samples (ns).
    rtt_p95: Option<f64>,
    /// 99th percentile of the RTT samples (ns).
    rtt_p99: Option<f64>,
    /// Mean congestion window over time (segments).
    cwnd_mean: Option<f64>,
    /// CPU time of the sender.
    cpu_sender: Option<f64>,
    /// CPU time of the receiver (s).
    cpu_receiver: Option<f64>,
    /// The stream did all it was asked to (false: cut off by the end of the run).
    complete: bool,
}

table! {
    /// Intervals: one row per stream and flow sample.
    Intervals, IntervalRow, "intervals";
    /// End of the interval (ns).
    time: u64,
    /// Length of the interval (ns).
    duration: u64,
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Payload delivered in the interval (B).
    bytes_received: u64,
    /// Payload sent for the first time in the interval (B).
    bytes_sent: u64,
    /// `bytes_received` over duration (bit/s).
    goodput: f64,
    /// Segments sent again in the interval; null for udp.
    retransmits: Option<u64>,
    /// Datagrams of the stream missing in the interval; null for tcp (packets).
    lost: Option<i64>,
    /// Datagrams that came after a later one; null for tcp (packets).
    out_of_order: Option<u64>,
    /// Datagrams that came twice; null for tcp (packets).
    duplicates: Option<u64>,
    /// Interarrival jitter (RFC 3550, section 6.4.1); null for tcp (ns).
    jitter: Option<f64>,
}

table! {
    /// Sockets: one row per sending TCP socket and sample.
    Sockets, SocketRow, "sockets";
    /// Time of the sample (ns).
    time: u64,
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Node of the socket.
    node: Symbol,
    /// Open, disorder, cwr, recovery or loss.
    state: Symbol,
    /// Congestion window (segments).
    cwnd: u64,
    /// Slow-start threshold; null before the first loss (segments).
    ssthresh: Option<u64>,
    /// Smoothed RTT; null before the first sample (ns).
    srtt: Option<u64>,
    /// RTT variance (ns).
    rttvar: Option<u64>,
    /// Minimum RTT; null before the first sample (ns).
    min_rtt: Option<u64>,
    /// Segments in the network by the sender's reckoning.
    inflight: u64,
    /// Segments taken for lost and not yet repaired.
    lost: u64,
    /// Segments retransmitted and still out.
    retrans: u64,
    /// Pacing rate; null where unpaced (bit/s).
    pacing_rate: Option<f64>,
    /// Latest delivery rate sample (bit/s).
    delivery_rate: Option<f64>,
    /// Whether that sample was application-limited.
    app_limited: Option<bool>,
    /// The peer's receive window (B).
    rwnd: u64,
    /// Payload of a full segment (B).
    mss: u64,
    /// Payload acknowledged so far (B).
    bytes_acked: u64,
    /// Time with data outstanding or waiting, so far (ns).
    busy_time: Option<u64>,
    /// Time limited by the receive window, so far (ns).
    rwnd_limited: Option<u64>,
    /// Time limited by the send buffer, so far (ns).
    sndbuf_limited: Option<u64>,
    /// The control's phase; null if it has none.
    phase: Option<Symbol>,
    /// The control's bandwidth estimate; null if it has none (bit/s).
    bandwidth: Option<f64>,
    /// The control's minimum RTT estimate; null if it has none (ns).
    min_rtt_estimate: Option<u64>,
    /// The control's pacing gain; null if it has none.
    pacing_gain: Option<f64>,
    /// The control's window gain; null if it has none.
    cwnd_gain: Option<f64>,
}

table! {
    /// Gauges: one row per socket sample and figure that the control publishes of itself.
    Gauges, GaugeRow, "gauges";
    /// Time of the sample (ns).
    time: u64,
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Node of the socket.
    node: Symbol,
    /// What the control calls it.
    name: Symbol,
    /// Its value, in `unit`.
    value: f64,
    /// Its unit, as the control gives it.
    unit: Symbol,
}

table! {
    /// Legs: one row per connection that an accelerator has split, leg and socket sample.
    Legs, LegRow, "legs";
    /// Time of the sample (ns).
    time: u64,
    /// Flow name; null for a connection that is not a flow's.
    flow: Option<Symbol>,
    /// Stream number.
    stream: Option<u64>,
    /// Node of the accelerator.
    node: Symbol,
    /// Number of the connection at its accelerator, from 0.
    connection: u64,
    /// `client`: towards the end that opened the connection; `server`: towards the other.
    leg: Symbol,
    /// Payload received from the far end so far (B).
    bytes_received: u64,
    /// Payload that the far end has acknowledged so far (B).
    bytes_acked: u64,
    /// Payload acknowledged to the far end that the other leg's has not acknowledged: lost if the accelerator dies (B).
    exposed: u64,
    /// Congestion window (segments).
    cwnd: u64,
    /// Smoothed RTT (ns); null before the first.
    srtt: Option<u64>,
    /// Segments retransmitted so far.
    retransmits: u64,
    /// Receive window of the far end (B).
    rwnd: u64,
}

table! {
    /// Queues: one row per link direction and sample.
    Queues, QueueRow, "queues";
    /// Time of the sample (ns).
    time: u64,
    /// Link name.
    link: Symbol,
    /// Forward or backward.
    direction: Symbol,
    /// Packets waiting, the one being sent not counted.
    packets: u64,
    /// Frame bytes waiting (B).
    bytes: u64,
    /// How long the packet at the head has waited; null when the queue is empty (ns).
    sojourn: Option<u64>,
    /// Packets the queue has dropped so far.
    drops: u64,
    /// Packets the queue has marked so far.
    marks: u64,
    /// Packets the link's impairments have lost so far.
    lost: u64,
    /// Frame bytes serialised so far (B).
    bytes_out: u64,
}

table! {
    /// Classes of queue disciplines: one row per class, link direction and sample.
    QueueClasses, QueueClassRow, "queue_classes";
    /// Time of the sample (ns).
    time: u64,
    /// Link name.
    link: Symbol,
    /// Forward or backward.
    direction: Symbol,
    /// What the discipline calls the class.
    class: Symbol,
    /// Packets waiting.
    packets: u64,
    /// Frame bytes waiting (B).
    bytes: u64,
    /// How long the packet at the head has waited; null when the class is empty (ns).
    sojourn: Option<u64>,
    /// Packets the class has dropped so far.
    drops: u64,
    /// Packets the class has marked so far.
    marks: u64,
    /// Packets that have left the class so far.
    packets_out: u64,
    /// Frame bytes that have left the class so far (B).
    bytes_out: u64,
}

table! {
    /// State of queue disciplines: one row per figure, link direction and sample.
    QueueGauges, QueueGaugeRow, "queue_gauges";
    /// Time of the sample (ns).
    time: u64,
    /// Link name.
    link: Symbol,
    /// Forward or backward.
    direction: Symbol,
    /// What the discipline calls it.
    name: Symbol,
    /// Its value, in `unit`.
    value: f64,
    /// Its unit; empty for a share or a count.
    unit: Symbol,
}

table! {
    /// Packets: one row per packet event.
    Packets, PacketRow, "packets";
    /// When it happened (ns).
    time: u64,
    /// Link name.
    link: Symbol,
    /// Forward or backward.
    direction: Symbol,
    /// Enqueue, drop, mark, depart, lose, corrupt, duplicate or deliver.
    event: Symbol,
    /// Flow name; null if it belongs to none.
    flow: Option<Symbol>,
    /// Stream number.
    stream: Option<u64>,
    /// TCP sequence number as on the wire, or datagram number.
    seq: Option<u64>,
    /// Frame bytes (B).
    len: u64,
    /// Packets waiting after the event.
    queue_packets: u64,
}

table! {
    /// Echoes: one row per request and response, or of a flow with more than 10^6 echoes, per client, size and
    /// round-trip time.
    Echoes, EchoRow, "echoes";
    /// Flow name.
    flow: Symbol,
    /// Client (stream) number.
    client: u64,
    /// Request bytes (B).
    size: u64,
    /// Number of the exchange from 0: on its connection, for echo flows at its size; null of many exchanges.
    iteration: Option<u64>,
    /// When the request was issued; null of many exchanges (ns).
    time: Option<u64>,
    /// From the request's first byte written to the response's last byte read; of many, within 0.1 % (ns).
    rtt: u64,
    /// How many exchanges the row stands for.
    count: u64,
}

table! {
    /// Fetches: one row per request of an http flow that was answered.
    Fetches, FetchRow, "fetches";
    /// Flow name.
    flow: Symbol,
    /// Stream (connection) number.
    stream: u64,
    /// Number of the page, from 0.
    page: u64,
    /// Number of the object, from 0, the most popular.
    object: u64,
    /// Bytes of the object (B).
    size: u64,
    /// Where the range asked for begins in the object (B).
    offset: u64,
    /// Bytes of the range asked for (B).
    bytes: u64,
    /// When the request was sent (ns).
    time: u64,
    /// From then to the first byte of the response (ns).
    first_byte: u64,
    /// From then to the last byte of the response (ns).
    duration: u64,
}

table! {
    /// Echo batches: where echoes are told as histograms, one row per batch of consecutive ones.
    EchoBatches, EchoBatchRow, "echo_batches";
    /// Flow name.
    flow: Symbol,
    /// Client (stream) number.
    client: u64,
    /// Message bytes (B).
    size: u64,
    /// Number of the batch's first exchange at its size.
    iteration: u64,
    /// When that was issued (ns).
    time: u64,
    /// Exchanges in the batch.
    count: u64,
    /// Mean round-trip time (ns).
    rtt_mean: f64,
    /// Longest round-trip time (ns).
    rtt_max: u64,
}

table! {
    /// Pings: one row per probe.
    Pings, PingRow, "pings";
    /// When the probe was sent (ns).
    time: u64,
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Probe number, from 0.
    seq: u64,
    /// Round-trip time; null if lost (ns).
    rtt: Option<u64>,
    /// No reply came before the run ended.
    lost: bool,
}

table! {
    /// Events: one row per change of state.
    Events, EventRow, "events";
    /// When it happened (ns).
    time: u64,
    /// Flow name; null for a link.
    flow: Option<Symbol>,
    /// Stream number.
    stream: Option<u64>,
    /// Link name; null for a flow.
    link: Option<Symbol>,
    /// Established, state, phase, rto, tail_loss_probe, undo, ecn, closed, aborted, link_change,
    /// adjacency, session.
    event: Symbol,
    /// The new state or phase, or what changed.
    detail: Option<Symbol>,
}

table! {
    /// Routes: one row per route at the start and per change.
    Routes, RouteRow, "routes";
    /// When it changed (ns).
    time: u64,
    /// Node name.
    node: Symbol,
    /// The network, as `10.0.3.0/24`.
    prefix: Symbol,
    /// Gateway and interface of each next hop; null where the route is gone.
    next_hops: Option<Symbol>,
    /// Who has made it.
    protocol: Symbol,
}
