//! The result tables, whichever engine ran: their only home. Python reads them from here, and `docs/results.md` is made
//! from them.
//!
//! Times are nanoseconds since the run's start, rates bit/s, sizes bytes, windows segments. A column that
//! the engine does not know for a row is null.

use crate::{Symbol, TableSchema};

/// Every table, in the order of the documentation.
pub fn schema() -> Vec<TableSchema> {
    vec![
        Flows::schema(),
        Intervals::schema(),
        Losses::schema(),
        Sockets::schema(),
        Gauges::schema(),
        Legs::schema(),
        Queues::schema(),
        QueueClasses::schema(),
        QueueGauges::schema(),
        Packets::schema(),
        Echoes::schema(),
        Fetches::schema(),
        EchoBatches::schema(),
        Pings::schema(),
        Hosts::schema(),
        Events::schema(),
        Routes::schema(),
    ]
}

table! {
    /// One row per stream. Of a request, http or echo flow, which goes both ways, counts are those of both ends.
    Flows, FlowRow, "flows", [flow, stream, kind, from, to, start, end],
    each_end EndFlows, EndFlowRow, [bytes_sent, bytes_received, segments_sent, retransmits, rtos];
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
    /// Kind of its traffic (docs/scenario.md, Flows).
    kind: Symbol,
    /// Congestion control; null where there is none.
    cc: Option<Symbol>,
    /// When the stream started.
    start: u64 ["ns"],
    /// When its last byte was delivered, or the run ended.
    end: u64 ["ns"],
    /// Payload sent for the first time.
    bytes_sent: u64 ["B"],
    /// Payload delivered in order to the receiving application.
    bytes_received: u64 ["B"],
    /// `bytes_received` over start to end.
    goodput: f64 ["bit/s"],
    /// Segments with data, retransmissions included, or datagrams sent.
    segments_sent: Option<u64> ["segments"],
    /// Segments retransmitted; a SYN or a FIN without data counts here alone.
    retransmits: Option<u64> ["segments"],
    /// Retransmission timeouts.
    rtos: Option<u64>,
    /// Packets of payload's direction that the links dropped, lost or corrupted.
    losses_true: Option<u64> ["packets"],
    /// Segments the sender took for lost.
    losses_detected: Option<u64> ["segments"],
    /// Mean of all RTT samples.
    rtt_mean: Option<f64> ["ns"],
    /// Median RTT sample.
    rtt_p50: Option<f64> ["ns"],
    /// 95th percentile of the RTT samples.
    rtt_p95: Option<f64> ["ns"],
    /// 99th percentile of the RTT samples.
    rtt_p99: Option<f64> ["ns"],
    /// Mean congestion window over time, of who sends most payload.
    cwnd_mean: Option<f64> ["segments"],
    /// CPU time of the sender.
    cpu_sender: Option<f64> ["s"],
    /// CPU time of the receiver.
    cpu_receiver: Option<f64> ["s"],
    /// The stream did all it was asked to (false: its `stop`, the end of the run or an `aborted` came first, or it never
    /// connected).
    complete: bool,
}

table! {
    /// One row per stream and flow sample: what happened in (time - duration, time], counted as in `flows`.
    Intervals, IntervalRow, "intervals", [time, duration, flow, stream],
    each_end EndIntervals, EndIntervalRow, [bytes_received, bytes_sent, retransmits];
    /// End of the interval.
    time: u64 ["ns"],
    /// Length of the interval.
    duration: u64 ["ns"],
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Payload delivered in the interval.
    bytes_received: u64 ["B"],
    /// Payload sent for the first time in the interval.
    bytes_sent: u64 ["B"],
    /// `bytes_received` over duration.
    goodput: f64 ["bit/s"],
    /// Segments retransmitted in the interval; null for udp.
    retransmits: Option<u64> ["segments"],
    /// Datagrams of the stream missing in the interval; null for tcp.
    lost: Option<i64> ["packets"],
    /// Datagrams that came after a later one; null for tcp.
    out_of_order: Option<u64> ["packets"],
    /// Datagrams that came twice; null for tcp.
    duplicates: Option<u64> ["packets"],
    /// Interarrival jitter (RFC 3550, section 6.4.1); null for tcp.
    jitter: Option<f64> ["ns"],
}

table! {
    /// One row per stream and interval of `sample: {flows: ...}` in which links dropped, lost or corrupted packets of it. In the
    /// simulator packets that nodes discard, as for want of a route, are among them.
    Losses, LossRow, "losses", [time, flow, stream, forward, reverse];
    /// End of the interval.
    time: u64 ["ns"],
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Packets from the sender, or of a flow that goes both ways from the client.
    forward: u64 ["packets"],
    /// Packets to it, such as ACKs.
    reverse: u64 ["packets"],
}

table! {
    /// One row per sending TCP socket and sample. There is one more when the socket ends, at the latest with the run; on real hosts
    /// it lacks the figures that its control publishes.
    Sockets, SocketRow, "sockets", [time, flow, stream];
    /// Time of the sample.
    time: u64 ["ns"],
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Node of the socket.
    node: Symbol,
    /// Open, disorder, cwr, recovery or loss.
    state: Symbol,
    /// Congestion window.
    cwnd: u64 ["segments"],
    /// Slow-start threshold; null before the first loss.
    ssthresh: Option<u64> ["segments"],
    /// Smoothed RTT; null before the first sample.
    srtt: Option<u64> ["ns"],
    /// RTT variance.
    rttvar: Option<u64> ["ns"],
    /// Minimum RTT; null before the first sample.
    min_rtt: Option<u64> ["ns"],
    /// Segments in the network by the sender's reckoning.
    inflight: u64 ["segments"],
    /// Segments taken for lost and not yet acknowledged, retransmitted or not.
    lost: u64 ["segments"],
    /// Segments retransmitted and still out.
    retrans: u64 ["segments"],
    /// Pacing rate; null where unpaced.
    pacing_rate: Option<f64> ["bit/s"],
    /// Latest delivery rate sample.
    delivery_rate: Option<f64> ["bit/s"],
    /// True if that sample was application-limited.
    app_limited: Option<bool>,
    /// The peer's receive window.
    rwnd: u64 ["B"],
    /// Payload of a full segment.
    mss: u64 ["B"],
    /// Payload acknowledged so far.
    bytes_acked: u64 ["B"],
    /// Segments that the peer said were delivered with a mark, so far. With classic ECN, all that were
    /// acknowledged while it echoed a mark.
    delivered_ce: Option<u64> ["segments"],
    /// Time with data outstanding or waiting, so far.
    busy_time: Option<u64> ["ns"],
    /// Time limited by the receive window, so far.
    rwnd_limited: Option<u64> ["ns"],
    /// Time limited by the send buffer, so far.
    sndbuf_limited: Option<u64> ["ns"],
    /// The control's phase; null if it has none.
    phase: Option<Symbol>,
    /// The control's bandwidth estimate; null if it has none.
    bandwidth: Option<f64> ["bit/s"],
    /// The control's minimum RTT estimate; null if it has none.
    min_rtt_estimate: Option<u64> ["ns"],
    /// The control's pacing gain; null if it has none.
    pacing_gain: Option<f64>,
    /// The control's window gain; null if it has none.
    cwnd_gain: Option<f64>,
}

table! {
    /// One row per socket sample and figure that the congestion control publishes of itself (docs/controls.md
    /// lists them); none while the control has no value for it.
    Gauges, GaugeRow, "gauges", [time, flow, stream, name];
    /// Time of the sample.
    time: u64 ["ns"],
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Node of the socket.
    node: Symbol,
    /// The control's name of the figure.
    name: Symbol,
    /// Its value, in `unit`.
    value: f64,
    /// Its unit, as the control gives it; empty for a ratio or a count.
    unit: Symbol,
}

table! {
    /// One row per connection that an accelerator has split, leg and socket sample (docs/accelerators.md).
    Legs, LegRow, "legs", [time, node, connection, leg];
    /// Time of the sample.
    time: u64 ["ns"],
    /// Flow name; null for a connection that is not a flow's.
    flow: Option<Symbol>,
    /// Stream number.
    stream: Option<u64>,
    /// Node of the accelerator.
    node: Symbol,
    /// Number of the connection at its accelerator, from 0.
    connection: u64,
    /// Client: towards the end that opened the connection; server: towards the other.
    leg: Symbol,
    /// Payload received from the far end so far.
    bytes_received: u64 ["B"],
    /// Payload that the far end has acknowledged so far.
    bytes_acked: u64 ["B"],
    /// Payload acknowledged to the far end that the other leg's has not acknowledged: lost if the accelerator
    /// dies.
    exposed: u64 ["B"],
    /// Payload that waits to be sent to the far end: received from the other leg's, and not sent on yet.
    unsent: u64 ["B"],
    /// Congestion window.
    cwnd: u64 ["segments"],
    /// Smoothed RTT; null before the first.
    srtt: Option<u64> ["ns"],
    /// Segments retransmitted so far.
    retransmits: u64 ["segments"],
    /// Receive window of the far end.
    rwnd: u64 ["B"],
}

table! {
    /// One row per link direction and sample.
    Queues, QueueRow, "queues", [time, link, direction];
    /// Time of the sample.
    time: u64 ["ns"],
    /// Link name.
    link: Symbol,
    /// Forward or backward.
    direction: Symbol,
    /// Packets waiting, the one being sent not counted.
    packets: u64 ["packets"],
    /// Frame bytes waiting.
    bytes: u64 ["B"],
    /// How long the packet at the head has waited; null when the queue is empty.
    sojourn: Option<u64> ["ns"],
    /// Packets that have left the queue so far, those that did not have to wait and the one being sent included.
    packets_out: u64 ["packets"],
    /// How long these had waited, added up.
    waited: u64 ["ns"],
    /// Packets dropped so far: by the queue, by a policer before it, or because the link was down.
    drops: u64 ["packets"],
    /// Packets the queue has marked so far.
    marks: u64 ["packets"],
    /// Packets the link's impairments have lost so far.
    lost: u64 ["packets"],
    /// Frame bytes serialised so far.
    bytes_out: u64 ["B"],
    /// Bytes of the link's capacity that they took: with their overhead; of a delivery trace, which counts IP packets, without their Ethernet header.
    capacity_used: u64 ["B"],
}

table! {
    /// One row per class, link direction and sample, for a queue discipline with classes. Of more than 16
    /// classes only those have a row in which packets wait.
    QueueClasses, QueueClassRow, "queue_classes", [time, link, direction, class];
    /// Time of the sample.
    time: u64 ["ns"],
    /// Link name.
    link: Symbol,
    /// Forward or backward.
    direction: Symbol,
    /// The discipline's name of the class: `L`, `C`, `band 1`, `flow 17`.
    class: Symbol,
    /// Packets waiting.
    packets: u64 ["packets"],
    /// Frame bytes waiting.
    bytes: u64 ["B"],
    /// How long the packet at the head has waited; null when the class is empty.
    sojourn: Option<u64> ["ns"],
    /// Packets the class has dropped so far, for whatever cause.
    drops: u64 ["packets"],
    /// Those dropped to signal congestion.
    early_drops: u64 ["packets"],
    /// Those dropped for want of room.
    overlimit_drops: u64 ["packets"],
    /// Packets the class has marked so far.
    marks: u64 ["packets"],
    /// Packets that have left the class so far.
    packets_out: u64 ["packets"],
    /// Frame bytes that have left the class so far.
    bytes_out: u64 ["B"],
}

table! {
    /// One row per figure that a queue discipline shows of itself, link direction and sample (docs/queues.md
    /// lists them).
    QueueGauges, QueueGaugeRow, "queue_gauges", [time, link, direction, name];
    /// Time of the sample.
    time: u64 ["ns"],
    /// Link name.
    link: Symbol,
    /// Forward or backward.
    direction: Symbol,
    /// The discipline's name of the figure.
    name: Symbol,
    /// Its value, in `unit`.
    value: f64,
    /// Its unit; empty for a share or a count.
    unit: Symbol,
}

table! {
    /// One row per packet event; recorded when the scenario says `sample: {packets: true}`.
    Packets, PacketRow, "packets", [time, link, direction, event];
    /// When it happened.
    time: u64 ["ns"],
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
    /// Frame bytes.
    len: u64 ["B"],
    /// Packets waiting after the event.
    queue_packets: u64 ["packets"],
}

table! {
    /// One row per request and response. Above 1,000,000 of a flow, the first 100 of each client and size have a
    /// row each. The others have a row per client, size and round-trip time.
    Echoes, EchoRow, "echoes", [flow, client, size, rtt, count];
    /// Flow name.
    flow: Symbol,
    /// Client (stream) number.
    client: u64,
    /// Request bytes.
    size: u64 ["B"],
    /// Number of the exchange from 0, on its connection or (echo) at its size; null of many.
    iteration: Option<u64>,
    /// When the request was issued; null where count may exceed 1.
    time: Option<u64> ["ns"],
    /// From the request's first byte written to the response's last byte read.
    rtt: u64 ["ns"],
    /// Exchanges the row stands for; rtt is then within 0.1 %.
    count: u64,
}

table! {
    /// One row per request of an `http` flow that was answered.
    Fetches, FetchRow, "fetches", [flow, stream, page, object, time];
    /// Flow name.
    flow: Symbol,
    /// Stream (connection) number.
    stream: u64,
    /// Number of the page, from 0.
    page: u64,
    /// Number of the object, from 0, the most popular.
    object: u64,
    /// Bytes of the object.
    size: u64 ["B"],
    /// Where the range asked for begins in the object.
    offset: u64 ["B"],
    /// Bytes of the range asked for.
    bytes: u64 ["B"],
    /// When the request was sent.
    time: u64 ["ns"],
    /// From then to the first byte of the response.
    first_byte: u64 ["ns"],
    /// From then to the last byte of the response.
    duration: u64 ["ns"],
    /// How a cache on the way answered: `hit`, `miss`, or `revalidated` after the server confirmed what it has; null without one.
    cache: Option<Symbol>,
}

table! {
    /// Where `echoes` holds histograms: up to 512 batches of consecutive ones each.
    EchoBatches, EchoBatchRow, "echo_batches", [flow, client, size, iteration, time, count];
    /// Flow name.
    flow: Symbol,
    /// Client (stream) number.
    client: u64,
    /// Message bytes.
    size: u64 ["B"],
    /// Number of the batch's first exchange at its size.
    iteration: u64,
    /// When that was issued.
    time: u64 ["ns"],
    /// Exchanges in the batch.
    count: u64,
    /// Mean round-trip time.
    rtt_mean: f64 ["ns"],
    /// Longest round-trip time.
    rtt_max: u64 ["ns"],
}

table! {
    /// One row per probe.
    Pings, PingRow, "pings", [time, flow];
    /// When the probe was sent.
    time: u64 ["ns"],
    /// Flow name.
    flow: Symbol,
    /// Stream number.
    stream: u64,
    /// Probe number, from 0.
    seq: u64,
    /// Round-trip time; null if lost.
    rtt: Option<u64> ["ns"],
    /// No reply came before the run ended.
    lost: bool,
}

table! {
    /// One row per sample of a process of ours, and of the machine. Simulated hosts have neither, so the simulator has no rows.
    Hosts, HostRow, "hosts", [time];
    /// Time of the sample.
    time: u64 ["ns"],
    /// Node name. On the kernel engine null for what belongs to no node: the machine, which has all of them, and the emulator.
    node: Option<Symbol>,
    /// Process name: agent or emulator; null for the whole machine.
    process: Option<Symbol>,
    /// CPU time in user mode, so far.
    cpu_user: Option<f64> ["s"],
    /// CPU time in the kernel, so far.
    cpu_system: Option<f64> ["s"],
    /// CPU time in softirq, so far; null of a process.
    cpu_softirq: Option<f64> ["s"],
    /// Resident memory; of the machine, memory in use.
    memory: Option<u64> ["B"],
}

table! {
    /// One row per change of state.
    Events, EventRow, "events", [time, event];
    /// When it happened.
    time: u64 ["ns"],
    /// Flow name; null for a link.
    flow: Option<Symbol>,
    /// Stream number.
    stream: Option<u64>,
    /// Link name; null for a flow.
    link: Option<Symbol>,
    /// Established, state, phase, rto, tail_loss_probe, undo, ecn, closed, aborted, link_change, adjacency
    /// (of OSPF), session (of BGP). On the kernel engine state, phase and rto have the time of the sample that
    /// shows them; tail_loss_probe, undo and ecn are the simulator's alone.
    event: Symbol,
    /// The new state or phase, or what changed. Of `established`: ECN or AccECN, where both ends agreed on that.
    detail: Option<Symbol>,
}

table! {
    /// One row per route at the start of a run and per change, of routers with routing protocols.
    Routes, RouteRow, "routes", [time, node, prefix, protocol];
    /// When the router's table changed; 0 for what was there before.
    time: u64 ["ns"],
    /// Node name.
    node: Symbol,
    /// The network, such as `10.0.3.0/24`.
    prefix: Symbol,
    /// Gateway and interface of each next hop; null where the route is gone.
    next_hops: Option<Symbol>,
    /// Who has made it: kernel, static, ospf, bgp, ....
    protocol: Symbol,
}
