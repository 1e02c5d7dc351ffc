"""What a scenario that reads well may still contradict: names, routes, times, sizes, files.

Everything is checked before anything is refused, so that all mistakes are reported together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path as File

from . import addresses, control_file
from .document import Path
from .errors import ScenarioError
from .flows import EchoFlow, PingFlow, RequestFlow, SocketSettings, TcpFlow, UdpFlow
from .layout import Layout
from .quantity import LARGEST, Dimension, Quantity, format_quantity, show
from .repair import related
from .schedule import schedule
from .topology import Setting
from .where import Where

# Bytes of an IP header by its version, without options or extensions (RFC 791, RFC 8200).
IP_HEADER = {4: 20, 6: 40}
TCP_HEADER = 20
UDP_HEADER = 8
ICMP_HEADER = 8
# Linux takes no TCP_MAXSEG below TCP_MIN_MSS.
LEAST_MSS = 88
LEAST_SAMPLING = 1_000

_MTUS: tuple[Path, ...] = (("network", "path", "mtu"), ("network", "links"))
_EVERYTHING: tuple[Path, ...] = (("network",), ("flows",))


@dataclass(frozen=True)
class Finding:
    """A contradiction at `path`.

    It is not told if what stands there was refused before, or anything around the paths it `depends` on.
    """

    path: Path
    message: str
    suggestion: str = ""
    depends: tuple[Path, ...] = ()
    at_key: bool = False


def check(layout: Layout, refused: Iterable[Path] = ()) -> list[ScenarioError]:
    """What is wrong; `refused` are paths already reported, where something else stands in."""
    gone = list(refused)
    where = Where(layout.scenario)
    errors = []
    for finding in _findings(layout):
        hidden = any(finding.path[: len(other)] == other for other in gone)
        if not hidden and not any(related(path, other) for path in finding.depends for other in gone):
            error = where.error(finding.path, finding.message, finding.suggestion, at_key=finding.at_key)
            errors.append(error)
    return errors


def _findings(layout: Layout) -> Iterator[Finding]:
    yield from _names(layout)
    yield from _links(layout)
    yield from _flow_ends(layout)
    yield from _times(layout)
    yield from _traces(layout)
    yield from _queues(layout)
    yield from _changes(layout)
    yield from _node_settings(layout)
    yield from _flow_sizes(layout)
    yield from _controls(layout)
    yield from _captured(layout)


def _near(word: str, words: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)), "")


def _times_of(*times: int) -> list[str]:
    return [format_quantity(time, Dimension.TIME) for time in times]


def _names(layout: Layout) -> Iterator[Finding]:
    scenario = layout.scenario
    named: list[tuple[str, str, Path]] = [
        ("flow", flow.name, ("flows", index, "name")) for index, flow in enumerate(scenario.flows)
    ]
    # A link without a name is called by its ends.
    depends = {(*link.where, "name"): ((*link.where, "ends"),) for link in layout.topology.links}
    if scenario.network.path is None:
        named += [("node", node.name, (*node.where, "name")) for node in layout.topology.nodes]
        named += [("link", link.name, (*link.where, "name")) for link in layout.topology.links]
    taken = {(kind, name) for kind, name, _ in named}
    seen: set[tuple[str, str]] = set()
    for kind, name, path in named:
        if (kind, name) in seen:
            spare = next(spare for n in range(2, 10**6) if (kind, spare := f"{name}-{n}") not in taken)
            taken.add((kind, spare))
            yield Finding(
                path, f"a second {kind} is called {show(name)}", f"name: {spare}", depends.get(path, ())
            )
        seen.add((kind, name))


def _links(layout: Layout) -> Iterator[Finding]:
    for link in layout.topology.links:
        for side, end in enumerate(link.ends):
            if end not in layout.node:
                message = f"there is no node {show(end)}"
                near = _near(end, layout.node)
                yield Finding((*link.where, "ends", side), message, near, _node_names(layout))
        if link.ends[0] == link.ends[1]:
            yield Finding((*link.where, "ends"), f"the link joins {show(link.ends[0])} to itself")
    try:
        addresses.assign(layout.topology)
    except addresses.TooManyInterfaces:
        yield Finding(("network",), "the network has more interfaces than fit into 10.0.0.0/8")


def _node_names(layout: Layout) -> tuple[Path, ...]:
    """Where nodes are named, and what a refused node leaves behind."""
    nodes: Path = ("network", "nodes")
    return ((*nodes, "*"), *((*nodes, index, "name") for index in range(len(layout.topology.nodes))))


def _flow_ends(layout: Layout) -> Iterator[Finding]:
    path = layout.scenario.network.path
    hosts = [node.name for node in layout.topology.nodes if node.kind == "host"]
    hosts = ["left", "right"] if path is not None else hosts
    nodes = _node_names(layout) if path is None else (("network", "path", "per_flow"),)
    for index, (sender, receiver) in enumerate(layout.topology.ends):
        where: Path = ("flows", index)
        found = False
        for key, name in (("from", sender), ("to", receiver)):
            spec = layout.node.get(name or "")
            if name is None:
                found = True
                free = next((host for host in hosts if host not in (sender, receiver)), "")
                suggestion = f"{key}: {free}" if free else ""
                yield Finding(
                    where, f"{show(key)} is missing", suggestion, (*nodes, (*where, key)), at_key=True
                )
            elif spec is None:
                found = True
                yield Finding((*where, key), f"there is no node {show(name)}", _near(name, hosts), nodes)
            elif spec.kind != "host":
                found = True
                message = f"{show(name)} is a {spec.kind}; flows join hosts"
                yield Finding((*where, key), message, _near(name, hosts), nodes)
        if found or sender is None or receiver is None:
            continue
        if sender == receiver:
            given = layout.scenario.flows[index].to or sender
            other = next((host for host in hosts if host != given), "")
            yield Finding((*where, "to"), f"the flow goes from {show(given)} to itself", other)
        elif layout.ways[index] is None:
            message = f"there is no route from {show(sender)} to {show(receiver)}"
            yield Finding(where, message, depends=(("network",),), at_key=True)


def _times(layout: Layout) -> Iterator[Finding]:
    scenario = layout.scenario
    times = schedule(scenario)
    for index, flow in enumerate(scenario.flows):
        where: Path = ("flows", index)
        if flow.duration is not None and flow.stop is not None:
            yield Finding(
                (*where, "stop"), "the flow has both `duration` and `stop`; one of them says it all"
            )
        elif flow.stop is not None and flow.stop <= flow.start:
            stop, start = _times_of(flow.stop, flow.start)
            message = f"the flow stops at {stop}, but starts at {start}"
            yield Finding((*where, "stop"), message, depends=((*where, "start"),))
        elif flow.start >= (times.limit if times.stops[index] is None else times.end):
            start, end = _times_of(flow.start, times.end)
            message = f"the flow starts at {start}, but the run ends at {end}"
            depends: tuple[Path, ...] = (("duration",), ("timeout",), ("flows",))
            yield Finding((*where, "start"), message, depends=depends)
    if scenario.seed + scenario.repeat > 2**64:
        message = f"{scenario.repeat} repetitions from seed {scenario.seed} go beyond 2^64 - 1"
        yield Finding(("seed",), message, "1", (("repeat",),))
    for key in ("sockets", "queues", "flows", "hosts"):
        interval = getattr(scenario.sample, key)
        if interval is not None and interval < LEAST_SAMPLING:
            yield Finding(("sample", key), f"sampling every {interval} ns; the minimum is 1 us", "1 ms")


def _traces(layout: Layout) -> Iterator[Finding]:
    for _, spec in layout.directions():
        name = spec.get("trace")
        if name is None:
            if spec.where == ("network", "path") and "rate" not in spec.settings:
                message = "the path has neither a `rate` nor a `trace`"
                yield Finding(spec.where, message, "rate: 100 Mbit/s", (spec.where,), at_key=True)
            continue
        if "rate" in spec.settings:
            message = "a direction has either a `rate` or a `trace`, not both"
            yield Finding(spec.place("trace"), message, depends=(spec.place("rate"),))
        error = layout.trace_errors.get(name)
        if error is not None:
            file = layout.resolve(name)
            suggestion = "" if _is_file(file) else _neighbour(file, name)
            yield Finding(spec.place("trace"), f"the trace {show(name)} {error}", suggestion)


def _neighbour(file: File, name: str) -> str:
    """A file in the same directory whose name is near; only below the scenario, whose files they are."""
    if File(name).is_absolute() or ".." in File(name).parts:
        return ""
    try:
        near = _near(file.name, [entry.name for entry in file.parent.iterdir()])
    except (OSError, ValueError):
        return ""
    return name.removesuffix(file.name) + near if near and near != file.name else ""


def _queues(layout: Layout) -> Iterator[Finding]:
    """Limits and marking thresholds in BDP or time need a rate."""
    for link, spec in layout.directions():
        given = [(0, spec.settings["queue"])] if "queue" in spec.settings else []
        given += [(time, change["queue"]) for time, change in spec.changes.items() if "queue" in change]
        amounts = [
            (time, setting, name, amount)
            for time, setting in given
            for name, amount in (
                ("queue limit", setting.value.limit),
                ("marking threshold", setting.value.mark_above),
            )
        ]
        for time, setting, name, limit in amounts:
            if limit is None or limit.dimension not in (Dimension.BDP, Dimension.TIME):
                continue
            by_default = setting.where[-1] != "queue"
            rate, bdp = layout.rate(spec, time), layout.bdp(link, spec, time)
            if rate is None or bdp is None:
                what = "BDP" if limit.dimension is Dimension.BDP else "time"
                message = f"a {name} given as {what} needs a rate, and here it is unlimited"
                if not by_default:
                    yield Finding(setting.where, message, "1000 packets", (("network",),))
                continue
            in_bdp = limit.dimension is Dimension.BDP
            holds = limit.value * bdp if in_bdp else limit.value * rate / 8_000_000_000
            if in_bdp and bdp == 0 and not by_default:
                message = "the bandwidth-delay product is zero here, for nothing delays the packets"
                yield Finding(setting.where, message, "1000 packets", _EVERYTHING)
            elif holds > LARGEST:
                message = f"the {name} is larger than can be computed with"
                yield Finding(setting.where, message, "1000000 packets", _EVERYTHING)


def _changes(layout: Layout) -> Iterator[Finding]:
    """A change gives a new value, it does not take a setting away."""
    for _, spec in layout.directions():
        for change in spec.changes.values():
            if "rate" in change and "trace" in spec.settings:
                message = "the rate cannot change where a `trace` says when packets leave"
                yield Finding(change["rate"].where, message)
            elif "rate" in change and change["rate"].value is None:
                yield Finding(change["rate"].where, "a rate cannot become `unlimited` later", "100 Gbit/s")
            if "queue" in change and change["queue"].value.limit is None:
                message = "a queue cannot become `unlimited` later"
                yield Finding(change["queue"].where, message, "1000000 packets")


def _node_settings(layout: Layout) -> Iterator[Finding]:
    bdps = layout.node_bdps()
    for node in layout.topology.nodes:
        if node.kind != "router" and "routing" in node.settings:
            message = f"`routing` is for routers, and {show(node.name)} is a {node.kind}"
            yield Finding(node.settings["routing"].where, message, at_key=True)
        if node.kind == "host":
            yield from _buffers(layout, node.settings, layout.node_mtu(node.name), bdps.get(node.name))
            continue
        for key, setting in node.settings.items():
            if key not in ("sysctls", "cpus", "routing"):
                message = f"{show(key)} is for hosts, and {show(node.name)} is a {node.kind}"
                yield Finding(setting.where, message, at_key=True)


def _flow_sizes(layout: Layout) -> Iterator[Finding]:
    for index, flow in enumerate(layout.scenario.flows):
        where: Path = ("flows", index)
        mtu = layout.path_mtu(index)
        room = mtu - IP_HEADER[flow.ip]
        if flow.ip == 6 and mtu < addresses.LEAST_IPV6_MTU:
            message = (
                f"IPv6 needs an MTU of {addresses.LEAST_IPV6_MTU} B on every link, and the path has {mtu} B"
            )
            yield Finding((*where, "ip"), message, "4", _MTUS)
        if isinstance(flow, SocketSettings):
            given = {
                key: Setting(getattr(flow, key), (*where, key))
                for key in SocketSettings.model_fields
                if getattr(flow, key) is not None
            }
            yield from _buffers(layout, given, mtu, layout.flow_bdp(index), flow.ip)
        if isinstance(flow, UdpFlow | PingFlow) and flow.payload is not None:
            most = room - (UDP_HEADER if isinstance(flow, UdpFlow) else ICMP_HEADER)
            if flow.payload > most:
                message = f"a payload of {flow.payload} B does not fit the path's MTU of {mtu} B"
                yield Finding((*where, "payload"), message, f"{most} B", _MTUS)


def _buffers(
    layout: Layout, given: dict[str, Setting], mtu: int, bdp: int | None, ip: int = 4
) -> Iterator[Finding]:
    """Segments fit the MTU, and a window holds one."""
    most = mtu - IP_HEADER[ip] - TCP_HEADER
    mss = most
    if "mss" in given:
        mss = given["mss"].value
        if mss > most:
            message = f"segments of {mss} B do not fit the MTU of {mtu} B"
            yield Finding(given["mss"].where, message, f"{most} B", _MTUS)
        elif mss < LEAST_MSS:
            message = f"{mss} B is below {LEAST_MSS} B, the minimum segment Linux sends"
            yield Finding(given["mss"].where, message, f"{LEAST_MSS} B")
    segment = min(mss, most)
    for key in ("window", "send_buffer", "receive_buffer"):
        if key not in given:
            continue
        window: Quantity = given[key].value
        size = window.rounded()
        depends = _MTUS
        if window.dimension is Dimension.BDP:
            depends = _EVERYTHING
            if bdp is None:
                if all(layout.ways):
                    message = "a window in BDP needs a limited rate on the way of its flows"
                    yield Finding(given[key].where, message, "1 MB", depends)
                continue
            size = round(window.value * bdp)
            if size > LARGEST:
                yield Finding(
                    given[key].where, "the window is larger than can be computed with", "1 GB", depends
                )
        if size < segment:
            message = f"a window of {size} B is less than one segment of {segment} B"
            yield Finding(given[key].where, message, f"{10 * segment} B", depends)


def _controls(layout: Layout) -> Iterator[Finding]:
    for index, flow in enumerate(layout.scenario.flows):
        if not isinstance(flow, TcpFlow | RequestFlow | EchoFlow):
            continue
        path: Path = ("flows", index, "cc", "name")
        name = flow.cc.name
        if name.endswith(".c"):
            file = layout.resolve(name)
            if not _is_file(file):
                yield Finding(
                    path, f"there is no file {show(name)} beside the scenario", _neighbour(file, name)
                )
                continue
            try:
                control_file.read(file)
            except control_file.ControlFileUnreadable as error:
                yield Finding(path, f"the file {show(name)} {error}")
        elif "/" in name:
            yield Finding(path, f"{show(name)} is not a C file", f"{name}.c")
        elif not name or not all(char.isascii() and (char.isalnum() or char in "_-+") for char in name):
            yield Finding(path, f"{show(name)} is not the name of a congestion control", "cubic")


def _is_file(file: File) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):
        return False


def _captured(layout: Layout) -> Iterator[Finding]:
    for index, name in enumerate(layout.scenario.capture.nodes or ()):
        if name not in layout.node:
            near = _near(name, layout.node)
            yield Finding(("capture", "nodes", index), f"there is no node {show(name)}", near, _EVERYTHING)
