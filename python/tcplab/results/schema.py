"""The result tables: one schema, whichever engine ran.

Times are nanoseconds since the run's start, rates bit/s, sizes bytes, windows segments. A column that
an engine cannot know is null, never faked.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column.

    `kind` is int, float, bool or str; `unit` is ns, bit/s, B, segments, packets, s or empty.
    """

    name: str
    kind: str
    unit: str
    doc: str


def _columns(*rows: tuple[str, str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


TABLES: dict[str, tuple[Column, ...]] = {
    # One row per stream. Of a request or echo flow, which goes both ways, counts are those of both ends.
    "flows": _columns(
        ("flow", "str", "", "flow name"),
        ("stream", "int", "", "stream number within the flow, from 0"),
        ("from", "str", "", "sending node"),
        ("to", "str", "", "receiving node"),
        ("from_port", "int", "", "its port at the sending node; null where there is none"),
        ("to_port", "int", "", "its port at the receiving node; null where there is none"),
        ("kind", "str", "", "tcp, udp, request, echo or ping"),
        ("cc", "str", "", "congestion control; null where there is none"),
        ("start", "int", "ns", "when the stream started"),
        ("end", "int", "ns", "when its last byte was delivered, or the run ended"),
        ("bytes_sent", "int", "B", "payload sent for the first time"),
        ("bytes_received", "int", "B", "payload delivered in order to the receiving application"),
        ("goodput", "float", "bit/s", "bytes_received over start to end"),
        ("segments_sent", "int", "segments", "segments or datagrams sent, retransmissions included"),
        ("retransmits", "int", "segments", "segments retransmitted"),
        ("rtos", "int", "", "retransmission timeouts"),
        ("losses_true", "int", "packets", "packets of payload's direction that the links dropped or lost"),
        ("losses_detected", "int", "segments", "segments the sender took for lost"),
        ("rtt_mean", "float", "ns", "mean of all RTT samples"),
        ("rtt_p50", "float", "ns", "median RTT sample"),
        ("rtt_p95", "float", "ns", "95th percentile of the RTT samples"),
        ("rtt_p99", "float", "ns", "99th percentile of the RTT samples"),
        ("cwnd_mean", "float", "segments", "mean congestion window over time, of who sends most payload"),
        ("cpu_sender", "float", "s", "CPU time of the sender"),
        ("cpu_receiver", "float", "s", "CPU time of the receiver"),
        ("complete", "bool", "", "the stream did all it was asked to (false: cut off by the end of the run)"),
    ),
    # One row per stream and flow sample: what happened in (time - duration, time], counted as in flows.
    "intervals": _columns(
        ("time", "int", "ns", "end of the interval"),
        ("duration", "int", "ns", "length of the interval"),
        ("flow", "str", "", "flow name"),
        ("stream", "int", "", "stream number"),
        ("bytes_received", "int", "B", "payload delivered in the interval"),
        ("bytes_sent", "int", "B", "payload sent for the first time in the interval"),
        ("goodput", "float", "bit/s", "bytes_received over duration"),
        ("retransmits", "int", "segments", "segments retransmitted in the interval; null for udp"),
        ("lost", "int", "packets", "datagrams of the stream missing in the interval; null for tcp"),
        ("out_of_order", "int", "packets", "datagrams that came after a later one; null for tcp"),
        ("duplicates", "int", "packets", "datagrams that came twice; null for tcp"),
        ("jitter", "float", "ns", "interarrival jitter (RFC 3550, section 6.4.1); null for tcp"),
    ),
    # One row per sending TCP socket and sample.
    "sockets": _columns(
        ("time", "int", "ns", "time of the sample"),
        ("flow", "str", "", "flow name"),
        ("stream", "int", "", "stream number"),
        ("node", "str", "", "node of the socket"),
        ("state", "str", "", "open, disorder, cwr, recovery or loss"),
        ("cwnd", "int", "segments", "congestion window"),
        ("ssthresh", "int", "segments", "slow-start threshold; null before the first loss"),
        ("srtt", "int", "ns", "smoothed RTT; null before the first sample"),
        ("rttvar", "int", "ns", "RTT variance"),
        ("min_rtt", "int", "ns", "minimum RTT; null before the first sample"),
        ("inflight", "int", "segments", "segments in the network by the sender's reckoning"),
        ("lost", "int", "segments", "segments taken for lost and not yet repaired"),
        ("retrans", "int", "segments", "segments retransmitted and still out"),
        ("pacing_rate", "float", "bit/s", "pacing rate; null where unpaced"),
        ("delivery_rate", "float", "bit/s", "latest delivery rate sample"),
        ("app_limited", "bool", "", "whether that sample was application-limited"),
        ("rwnd", "int", "B", "the peer's receive window"),
        ("mss", "int", "B", "payload of a full segment"),
        ("bytes_acked", "int", "B", "payload acknowledged so far"),
        ("busy_time", "int", "ns", "time with data outstanding or waiting, so far"),
        ("rwnd_limited", "int", "ns", "time limited by the receive window, so far"),
        ("sndbuf_limited", "int", "ns", "time limited by the send buffer, so far"),
        ("phase", "str", "", "the control's phase; null if it has none"),
        ("bandwidth", "float", "bit/s", "the control's bandwidth estimate; null if it has none"),
        ("min_rtt_estimate", "int", "ns", "the control's minimum RTT estimate; null if it has none"),
        ("pacing_gain", "float", "", "the control's pacing gain; null if it has none"),
        ("cwnd_gain", "float", "", "the control's window gain; null if it has none"),
    ),
    # One row per socket sample and figure that the control publishes.
    "gauges": _columns(
        ("time", "int", "ns", "time of the sample"),
        ("flow", "str", "", "flow name"),
        ("stream", "int", "", "stream number"),
        ("node", "str", "", "node of the socket"),
        ("name", "str", "", "what the control calls the figure"),
        ("value", "float", "", "its value, in `unit`"),
        ("unit", "str", "", "its unit, as the control gives it; empty for a ratio or a count"),
    ),
    # One row per connection that an accelerator has split, leg and socket sample.
    "legs": _columns(
        ("time", "int", "ns", "time of the sample"),
        ("flow", "str", "", "flow name; null for a connection that is not a flow's"),
        ("stream", "int", "", "stream number"),
        ("node", "str", "", "node of the accelerator"),
        ("connection", "int", "", "number of the connection at its accelerator, from 0"),
        ("leg", "str", "", "client: towards the end that opened the connection; server: towards the other"),
        ("bytes_received", "int", "B", "payload received from the far end so far"),
        ("bytes_acked", "int", "B", "payload that the far end has acknowledged so far"),
        (
            "exposed",
            "int",
            "B",
            "payload acknowledged to the far end that the other leg's has not acknowledged: "
            "lost if the accelerator dies",
        ),
        ("cwnd", "int", "segments", "congestion window"),
        ("srtt", "int", "ns", "smoothed RTT; null before the first"),
        ("retransmits", "int", "segments", "segments retransmitted so far"),
        ("rwnd", "int", "B", "receive window of the far end"),
    ),
    # One row per link direction and sample.
    "queues": _columns(
        ("time", "int", "ns", "time of the sample"),
        ("link", "str", "", "link name"),
        ("direction", "str", "", "forward or backward"),
        ("packets", "int", "packets", "packets waiting, the one being sent not counted"),
        ("bytes", "int", "B", "frame bytes waiting"),
        ("sojourn", "int", "ns", "how long the packet at the head has waited; null when the queue is empty"),
        ("drops", "int", "packets", "packets the queue has dropped so far"),
        ("marks", "int", "packets", "packets the queue has marked so far"),
        ("lost", "int", "packets", "packets the link's impairments have lost so far"),
        ("bytes_out", "int", "B", "frame bytes serialised so far"),
    ),
    # One row per class of a queue discipline, link direction and sample.
    "queue_classes": _columns(
        ("time", "int", "ns", "time of the sample"),
        ("link", "str", "", "link name"),
        ("direction", "str", "", "forward or backward"),
        ("class", "str", "", "what the discipline calls the class: `L`, `C`, `band 1`, `flow 17`"),
        ("packets", "int", "packets", "packets waiting"),
        ("bytes", "int", "B", "frame bytes waiting"),
        ("sojourn", "int", "ns", "how long the packet at the head has waited; null when the class is empty"),
        ("drops", "int", "packets", "packets the class has dropped so far"),
        ("marks", "int", "packets", "packets the class has marked so far"),
        ("packets_out", "int", "packets", "packets that have left the class so far"),
        ("bytes_out", "int", "B", "frame bytes that have left the class so far"),
    ),
    # One row per figure that a queue discipline shows of itself, link direction and sample.
    "queue_gauges": _columns(
        ("time", "int", "ns", "time of the sample"),
        ("link", "str", "", "link name"),
        ("direction", "str", "", "forward or backward"),
        ("name", "str", "", "what the discipline calls the figure"),
        ("value", "float", "", "its value, in `unit`"),
        ("unit", "str", "", "its unit; empty for a share or a count"),
    ),
    # One row per packet event; recorded when `sample: {packets: true}`.
    "packets": _columns(
        ("time", "int", "ns", "when it happened"),
        ("link", "str", "", "link name"),
        ("direction", "str", "", "forward or backward"),
        ("event", "str", "", "enqueue, drop, mark, depart, lose, corrupt, duplicate or deliver"),
        ("flow", "str", "", "flow name; null if it belongs to none"),
        ("stream", "int", "", "stream number"),
        ("seq", "int", "", "TCP sequence number as on the wire, or datagram number"),
        ("len", "int", "B", "frame bytes"),
        ("queue_packets", "int", "packets", "packets waiting after the event"),
    ),
    # One row per request and response; of an echo flow with more than 10^6 of them, histograms.
    "echoes": _columns(
        ("flow", "str", "", "flow name"),
        ("client", "int", "", "client (stream) number"),
        ("size", "int", "B", "request bytes"),
        (
            "iteration",
            "int",
            "",
            "number of the exchange from 0, on its connection or (echo) at its size; null of many",
        ),
        ("time", "int", "ns", "when the request was issued; null where count may exceed 1"),
        ("rtt", "int", "ns", "from the request's first byte written to the response's last byte read"),
        ("count", "int", "", "exchanges the row stands for; rtt is then within 0.1 %"),
    ),
    # One row per request of an http flow that was answered.
    "fetches": _columns(
        ("flow", "str", "", "flow name"),
        ("stream", "int", "", "stream (connection) number"),
        ("page", "int", "", "number of the page, from 0"),
        ("object", "int", "", "number of the object, from 0, the most popular"),
        ("size", "int", "B", "bytes of the object"),
        ("offset", "int", "B", "where the range asked for begins in the object"),
        ("bytes", "int", "B", "bytes of the range asked for"),
        ("time", "int", "ns", "when the request was sent"),
        ("first_byte", "int", "ns", "from then to the first byte of the response"),
        ("duration", "int", "ns", "from then to the last byte of the response"),
    ),
    # Where echoes are histograms: one row per batch of consecutive ones.
    "echo_batches": _columns(
        ("flow", "str", "", "flow name"),
        ("client", "int", "", "client (stream) number"),
        ("size", "int", "B", "message bytes"),
        ("iteration", "int", "", "number of the batch's first exchange at its size"),
        ("time", "int", "ns", "when that was issued"),
        ("count", "int", "", "exchanges in the batch"),
        ("rtt_mean", "float", "ns", "mean round-trip time"),
        ("rtt_max", "int", "ns", "longest round-trip time"),
    ),
    "pings": _columns(
        ("time", "int", "ns", "when the probe was sent"),
        ("flow", "str", "", "flow name"),
        ("stream", "int", "", "stream number"),
        ("seq", "int", "", "probe number, from 0"),
        ("rtt", "int", "ns", "round-trip time; null if lost"),
        ("lost", "bool", "", "no reply came before the run ended"),
    ),
    "hosts": _columns(
        ("time", "int", "ns", "time of the sample"),
        ("node", "str", "", "node name; null for the whole machine"),
        ("process", "str", "", "process name; null for all"),
        ("cpu_user", "float", "s", "CPU time in user mode, so far"),
        ("cpu_system", "float", "s", "CPU time in the kernel, so far"),
        ("cpu_softirq", "float", "s", "CPU time in softirq, so far"),
        ("memory", "int", "B", "resident memory"),
    ),
    # One row per change of state.
    "events": _columns(
        ("time", "int", "ns", "when it happened"),
        ("flow", "str", "", "flow name; null for a link"),
        ("stream", "int", "", "stream number"),
        ("link", "str", "", "link name; null for a flow"),
        (
            "event",
            "str",
            "",
            "established, state, phase, rto, tail_loss_probe, undo, ecn, closed, aborted, link_change, "
            "adjacency (of OSPF), session (of BGP)",
        ),
        ("detail", "str", "", "the new state or phase, or what changed"),
    ),
    # One row per route at the start and per change, of routers with routing protocols.
    "routes": _columns(
        ("time", "int", "ns", "when the kernel's table changed; 0 for what was there before"),
        ("node", "str", "", "node name"),
        ("prefix", "str", "", "the network, such as `10.0.3.0/24`"),
        ("next_hops", "str", "", "gateway and interface of each next hop; null where the route is gone"),
        ("protocol", "str", "", "who has made it: kernel, static, ospf, bgp, ..."),
    ),
}
