"""From a scenario to a plan: plain JSON data in base units, every default filled in.

The shape is that of `crates/plan`; keys beside it (`description`, `repeat`, `vary`, `omit`, a
flow's `base_rtt` and `generator`, a node's `offloads`) are for the layers above the engine and for engines
with a kernel.
"""

from __future__ import annotations

from typing import Any

from . import addresses, control_file
from .check import IP_HEADER, TCP_HEADER, UDP_HEADER, check
from .errors import ScenarioErrors
from .flows import AnyFlow, EchoFlow, PingFlow, RequestFlow, SocketSettings, TcpFlow, UdpFlow
from .layout import Layout
from .model import Scenario
from .network import Chance, Jitter, Loss, Queue, Reorder, Routing
from .quantity import Dimension, Quantity
from .schedule import schedule
from .topology import LINK_LIMIT, DirectionSpec, LinkSpec, NodeSpec

Plan = dict[str, Any]

ETHERNET_HEADER = 14
# A default queue holds at least an initial window (RFC 6928), however short the path.
LEAST_DEFAULT_PACKETS = 10
# Names of controls besides their own. BBR without a version is the first one, as in Linux.
_OTHER_NAMES = {"bbr": "bbr1", "ledbat++": "ledbatpp", "westwood+": "westwood"}

# Linux's defaults; the same as `tcplab_tcp::Config::default()`.
TCP_DEFAULTS: dict[str, Any] = {
    "mss": 1460,
    "initial_window": 10,
    "send_buffer": None,
    "send_buffer_max": 4 << 20,
    "receive_buffer": None,
    "receive_buffer_initial": 131_072,
    "receive_buffer_max": 6 << 20,
    "ecn": "passive",
    "sack": True,
    "timestamps": True,
    "delayed_ack": True,
    "nagle": True,
    "tso": True,
    "gso_max_size": 65_536,
    "gro": False,
    "pacing": False,
    "rto_min": 200_000_000,
    "slow_start_after_idle": True,
}


def expand(scenario: Scenario) -> Plan:
    """The plan of a scenario; raises `ScenarioErrors` if what it says contradicts itself."""
    layout = Layout(scenario)
    errors = check(layout)
    if errors:
        raise ScenarioErrors(errors)
    times = schedule(scenario)
    bdps = layout.node_bdps()
    sample = scenario.sample
    return {
        "name": scenario.name,
        "description": scenario.description,
        "seed": scenario.seed,
        "repeat": scenario.repeat,
        "vary": scenario.vary,
        "omit": "auto" if scenario.omit is None else scenario.omit,
        "duration": times.limit,
        "nodes": [_node(layout, node, bdps.get(node.name)) for node in layout.topology.nodes],
        "links": _links(layout),
        "flows": [
            _flow(layout, index, flow, times.stops[index]) for index, flow in enumerate(scenario.flows)
        ],
        "sample": {
            "sockets": sample.sockets,
            "queues": sample.queues,
            "flows": sample.flows,
            "hosts": sample.hosts,
            "packets": sample.packets,
        },
        "capture": _capture(layout, scenario),
        "emulator": scenario.emulator,
    }


def _node(layout: Layout, node: NodeSpec, bdp: int | None) -> Plan:
    tcp = TCP_DEFAULTS | {"mss": layout.node_mtu(node.name) - IP_HEADER[4] - TCP_HEADER}
    tcp |= _tcp_settings({key: setting.value for key, setting in node.settings.items()}, bdp)
    tso, gso = node.get("tso", True), node.get("gso", True)
    return {
        "name": node.name,
        "kind": node.kind,
        "tcp": tcp,
        "routes": dict(sorted(layout.routes.tables[node.name].items())),
        "sysctls": dict(sorted(node.get("sysctls", {}).items())),
        "cpus": list(node.get("cpus", [])),
        "offloads": {"tso": tso, "gso": gso, "gro": node.get("gro", False)},
    } | _routing(node)


def _routing(node: NodeSpec) -> Plan:
    """The routing protocols' key, where there are any."""
    routing: Routing | None = node.get("routing")
    return {} if routing is None else {"routing": routing.model_dump(by_alias=True, exclude_none=True)}


def _tcp_settings(given: dict[str, Any], bdp: int | None) -> Plan:
    """The endpoint settings that were given; buffers in BDP only where the BDP is known."""
    settings = {key: value for key, value in given.items() if key in TCP_DEFAULTS and value is not None}
    window = given.get("window")
    for key in ("send_buffer", "receive_buffer"):
        buffer = given.get(key) or window
        if buffer is not None:
            settings[key] = _buffer(buffer, bdp)
    if "tso" in given or "gso" in given:
        # TCP builds bursts if either the card or the kernel cuts them up; with neither, `gso_max_segs` is 1.
        settings["tso"] = given.get("tso", True) or given.get("gso", True)
    return settings


def _buffer(buffer: Quantity, bdp: int | None) -> int | None:
    if buffer.dimension is Dimension.BDP:
        return None if bdp is None else max(1, round(buffer.value * bdp))
    return buffer.rounded()


def _links(layout: Layout) -> list[Plan]:
    plans = []
    for link, own in zip(layout.topology.links, addresses.assign(layout.topology), strict=True):
        plans.append(
            {
                "name": link.name,
                "ends": list(link.ends),
                "addresses": list(own.v4),
                "addresses6": list(own.v6),
                "mtu": link.mtu,
                "forward": _direction(layout, link, link.forward),
                "backward": _direction(layout, link, link.backward),
            }
        )
    return plans


def _direction(layout: Layout, link: LinkSpec, spec: DirectionSpec) -> Plan:
    opportunities = layout.opportunities(spec)
    return {
        "rate": None if opportunities else spec.get("rate"),
        "queue": _queue(layout, link, spec),
        "delay": spec.get("delay", 0),
        "jitter": _jitter(spec.get("jitter")),
        "reorder": _reorder(spec.get("reorder")),
        "loss": _loss(spec.get("loss")),
        "corrupt": _chance(spec.get("corrupt")),
        "duplicate": _chance(spec.get("duplicate")),
        "up": spec.get("up", True),
        "trace": {"opportunities_ms": opportunities} if opportunities else None,
        "changes": [_change(layout, link, spec, time) for time in sorted(spec.changes)],
    }


def _queue(layout: Layout, link: LinkSpec, spec: DirectionSpec) -> Plan:
    if "queue" not in spec.settings:
        unlimited = layout.rate(spec) is None
        return {"kind": "droptail", "limit": None if unlimited else {"packets": LINK_LIMIT.rounded()}}
    queue: Queue = spec.get("queue")
    limit = _amount(layout, link, spec, queue.limit, 0)
    by_default = spec.place("queue")[-1] != "queue"
    if by_default and limit is not None and "bytes" in limit:
        limit["bytes"] = max(limit["bytes"], LEAST_DEFAULT_PACKETS * (link.mtu + ETHERNET_HEADER))
    return {"kind": queue.kind, "limit": limit} | _mark_above(layout, link, spec, queue, 0)


def _mark_above(layout: Layout, link: LinkSpec, spec: DirectionSpec, queue: Queue, time: int) -> Plan:
    """The marking threshold's key, where there is one."""
    amount = _amount(layout, link, spec, queue.mark_above, time)
    return {} if amount is None else {"mark_above": amount}


def _change(layout: Layout, link: LinkSpec, spec: DirectionSpec, time: int) -> Plan:
    """A change carries the keys that change; a rate of zero loss says that losses end."""
    given = {key: setting.value for key, setting in spec.changes[time].items()}
    plan: Plan = {"at": time}
    for key, value in given.items():
        match key:
            case "queue":
                plan["limit"] = _amount(layout, link, spec, value.limit, time)
                plan |= _mark_above(layout, link, spec, value, time)
            case "jitter":
                plan[key] = _jitter(value, keep_zero=True)
            case "reorder":
                plan[key] = _reorder(value, keep_zero=True)
            case "loss":
                plan[key] = _loss(value, keep_zero=True)
            case "corrupt" | "duplicate":
                plan[key] = _chance(value, keep_zero=True)
            case _:
                plan[key] = value
    return plan


def _amount(
    layout: Layout, link: LinkSpec, spec: DirectionSpec, given: Quantity | None, time: int
) -> Plan | None:
    """A queue's limit or marking threshold."""
    if given is None:
        return None
    rate = layout.rate(spec, time)
    match given.dimension:
        case Dimension.PACKETS:
            return {"packets": given.rounded()}
        case Dimension.TIME if "trace" in spec.settings and rate is not None:
            # A trace has no rate at a moment: its mean counts.
            return {"bytes": max(1, given.rounded() * rate // 8_000_000_000)}
        case Dimension.TIME:
            return {"time": given.rounded()}
        case Dimension.BDP:
            bdp = layout.bdp(link, spec, time)
            return None if bdp is None else {"bytes": max(1, round(given.value * bdp))}
        case _:
            return {"bytes": given.rounded()}


def _chance(chance: Chance | Reorder | None, *, keep_zero: bool = False) -> Plan | None:
    if chance is None or (chance.rate == 0 and not keep_zero):
        return None
    return {"rate": chance.rate, "correlation": chance.correlation}


def _jitter(jitter: Jitter | None, *, keep_zero: bool = False) -> Plan | None:
    if jitter is None or (jitter.amount == 0 and not keep_zero):
        return None
    return {
        "distribution": jitter.distribution,
        "amount": jitter.amount,
        "correlation_time": jitter.memory,
    }


def _reorder(reorder: Reorder | None, *, keep_zero: bool = False) -> Plan | None:
    chance = _chance(reorder, keep_zero=keep_zero)
    return None if reorder is None or chance is None else {"chance": chance, "by": reorder.by}


def _loss(loss: Loss | None, *, keep_zero: bool = False) -> Plan | None:
    if loss is None or (loss.rate == 0 and not keep_zero):
        return None
    return {"model": _loss_model(loss), "before_queue": loss.before_queue}


def _loss_model(loss: Loss) -> Plan:
    if loss.gilbert_elliott is not None:
        burst = loss.gilbert_elliott
        return {"kind": "gilbert_elliott", "p": burst.p, "r": burst.r, "bad": burst.bad, "good": burst.good}
    if loss.packets is not None:
        return {"kind": "list", "packets": sorted(loss.packets)}
    if loss.every is not None:
        return {"kind": "every", "packets": loss.every, "first": loss.first or loss.every}
    chance = {"rate": loss.rate, "correlation": loss.correlation or 0}
    return {"kind": loss.model or "random", "chance": chance}


def _flow(layout: Layout, index: int, flow: AnyFlow, stop: int | None) -> Plan:
    sender, receiver = layout.ends[index]
    plan: Plan = {
        "name": flow.name,
        "from": sender,
        "to": receiver,
        "start": flow.start,
        "stop": stop,
        "base_rtt": layout.base_rtt(index),
        "streams": flow.streams,
        "ip": flow.ip,
    }
    mtu = layout.path_mtu(index)
    most = mtu - IP_HEADER[flow.ip] - TCP_HEADER
    match flow:
        case TcpFlow():
            plan |= {
                "kind": "tcp",
                "cc": _control(layout, flow),
                "bytes": flow.bytes,
                "pattern": flow.pattern.model_dump() if flow.pattern else None,
                "sender": _endpoint(layout, index, flow, sender, most),
                "receiver": _endpoint(layout, index, flow, receiver, most),
                "generator": flow.generator,
            }
        case UdpFlow():
            plan |= {
                "kind": "udp",
                "rate": flow.rate,
                "payload": flow.payload or mtu - IP_HEADER[flow.ip] - UDP_HEADER,
                "bytes": flow.bytes,
                "pattern": flow.pattern.model_dump() if flow.pattern else None,
                "generator": flow.generator,
            }
        case RequestFlow():
            plan |= {
                "kind": "request",
                "cc": _control(layout, flow),
                "request": flow.request,
                "response": flow.response,
                "think": flow.think,
                "count": flow.count,
                "sender": _endpoint(layout, index, flow, sender, most),
                "receiver": _endpoint(layout, index, flow, receiver, most),
            }
        case EchoFlow():
            plan |= {
                "kind": "echo",
                "cc": _control(layout, flow),
                "sizes": list(flow.sizes),
                "iterations": flow.iterations,
                "warmup": flow.warmup,
                "interval": flow.interval,
                "timeout": flow.timeout,
                "busy_poll": flow.busy_poll,
                "sender": _endpoint(layout, index, flow, sender, most),
                "receiver": _endpoint(layout, index, flow, receiver, most),
            }
        case PingFlow():
            plan |= {
                "kind": "ping",
                "interval": flow.interval,
                "payload": flow.payload,
                "count": flow.count,
            }
    return plan


def _control(layout: Layout, flow: TcpFlow | RequestFlow | EchoFlow) -> Plan:
    name = flow.cc.name
    params = dict(sorted(flow.cc.params.items()))
    if name.endswith(".c"):
        # With its text: the plan says all there is to run, wherever and whenever it is run.
        file = layout.resolve(name)
        return {"name": file.name, "params": params, "file": str(file), "source": control_file.read(file)}
    return {"name": _OTHER_NAMES.get(name, name), "params": params}


def _endpoint(layout: Layout, index: int, flow: SocketSettings, node: str, most: int) -> Plan:
    """The settings of one end: its node's, with what the flow sets otherwise.

    The segment size is at most what path MTU discovery would find.
    """
    bdp = layout.flow_bdp(index)
    settings = {key: setting.value for key, setting in layout.node[node].settings.items()}
    endpoint = TCP_DEFAULTS | {"mss": most} | _tcp_settings(settings, bdp)
    own = {key: getattr(flow, key) for key in SocketSettings.model_fields}
    endpoint |= _tcp_settings({key: value for key, value in own.items() if value is not None}, bdp)
    # A host's own may have been given for the shorter header of IPv4.
    return endpoint | {"mss": min(endpoint["mss"], most)}


def _capture(layout: Layout, scenario: Scenario) -> Plan | None:
    capture = scenario.capture
    if capture.what == "none":
        return None
    hosts = [node.name for node in layout.topology.nodes if node.kind == "host"]
    return {"what": capture.what, "at": capture.at, "nodes": list(capture.nodes or hosts)}
