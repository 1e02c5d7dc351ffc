"""Settings that are valid but seldom meant: `warnings(plan)` names them before a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .quantity import PPB, Dimension, format_quantity

Plan = dict[str, Any]


def warnings(plan: Plan) -> list[str]:
    """What a person should know about a plan before running it, one sentence each."""
    subjects: dict[str, list[str]] = {}
    for find in (_losses, _jitter, _queues, _windows, _times):
        for subject, sentence in find(plan):
            subjects.setdefault(sentence, []).append(subject)
    return [f"{_listed(names)}: {sentence}" for sentence, names in subjects.items()]


def _listed(names: list[str]) -> str:
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return ", ".join(names)


def _directions(plan: Plan) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for link in plan["links"]:
        for key in ("forward", "backward"):
            yield f"link {link['name']} {key}", link, link[key]


def _losses(plan: Plan) -> Iterator[tuple[str, str]]:
    for name, _, direction in _directions(plan):
        for when, loss in [(0, direction["loss"]), *((c["at"], c.get("loss")) for c in direction["changes"])]:
            if not loss or loss["model"]["kind"] != "netem" or not loss["model"]["chance"]["correlation"]:
                continue
            from .netem import effective_loss  # numpy takes 0.1 s to import, and few scenarios need it

            chance = loss["model"]["chance"]
            rate, correlation = chance["rate"] / PPB, chance["correlation"] / PPB
            actual = effective_loss(rate, correlation)
            shown = f"about {100 * actual:.2g} %" if actual >= 1e-6 else "fewer than 1 in 10^6 packets"
            since = f" from {_time(when)}" if when else ""
            yield (
                name,
                f"netem's model with {100 * rate:g} % loss and {100 * correlation:g} % correlation loses "
                f"{shown}{since}; `model: random` keeps the rate asked for",
            )


def _jitter(plan: Plan) -> Iterator[tuple[str, str]]:
    for name, _, direction in _directions(plan):
        delay, jitter = direction["delay"], direction["jitter"]
        for change in ({"at": 0}, *direction["changes"]):
            delay, jitter = change.get("delay", delay), change.get("jitter", jitter)
            since = f" from {_time(change['at'])}" if change["at"] else ""
            # What lies below zero is cut off: of a normal law with a mean of two deviations 2 %.
            reach = {"uniform": 1, "normal": 2, "pareto": 0}[jitter["distribution"]] if jitter else 0
            if jitter and reach * jitter["amount"] > delay:
                yield (
                    name,
                    f"{jitter['distribution']} jitter of {_time(jitter['amount'])} is more than the delay of "
                    f"{_time(delay)} has room for{since}; no delay is below zero, so that the mean is higher "
                    "than asked",
                )


def _queues(plan: Plan) -> Iterator[tuple[str, str]]:
    for name, link, direction in _directions(plan):
        frame = link["mtu"] + 14
        limit, rate = direction["queue"]["limit"], _rate(direction)
        if limit is None:
            continue
        if "packets" in limit:
            holds = limit["packets"]
        elif "bytes" in limit:
            holds = limit["bytes"] // frame
        else:
            holds = limit["time"] * rate // (8_000_000_000 * frame) if rate else 2
        if holds < 2:
            packets = "1 full packet" if holds else "no full packet"
            yield name, f"the queue holds {packets}, so that any burst overflows it"


def _windows(plan: Plan) -> Iterator[tuple[str, str]]:
    ways = _Ways(plan)
    for flow in plan["flows"]:
        bdp = ways.bdp(flow["from"], flow["to"]) if "sender" in flow else None
        if bdp is None:
            continue
        send, receive = flow["sender"]["send_buffer"], flow["receiver"]["receive_buffer"]
        window = min((buffer for buffer in (send, receive) if buffer is not None), default=None)
        if window is not None and window * flow["streams"] < bdp:
            which = "window" if send == receive else "send buffer" if window == send else "receive buffer"
            streams = f" times {flow['streams']} streams" if flow["streams"] > 1 else ""
            yield (
                f"flow {flow['name']}",
                f"its {which} of {_size(window)}{streams} is below the path's bandwidth-delay product of "
                f"{_size(bdp)}, so that it limits the rate",
            )


def _times(plan: Plan) -> Iterator[tuple[str, str]]:
    end = plan["duration"]
    for flow in plan["flows"]:
        if flow["stop"] is not None and flow["stop"] > end:
            sentence = f"would go on to {_time(flow['stop'])}, but the run ends at {_time(end)}"
            yield f"flow {flow['name']}", sentence
    for name, _, direction in _directions(plan):
        for change in direction["changes"]:
            if change["at"] >= end:
                yield name, f"the change at {_time(change['at'])} comes after the run's end at {_time(end)}"


def _rate(direction: dict[str, Any]) -> int | None:
    if direction["trace"]:
        times = direction["trace"]["opportunities_ms"]
        return int(len(times) * 1500 * 8 * 1000 // times[-1])
    rate: int | None = direction["rate"]
    return rate


class _Ways:
    """The ways through a plan's network."""

    def __init__(self, plan: Plan) -> None:
        self.routes = {node["name"]: node["routes"] for node in plan["nodes"]}
        self.links = {link["name"]: link for link in plan["links"]}

    def bdp(self, source: str, destination: str) -> int | None:
        """Least rate on the way times the propagation there and back, in bytes; none where unlimited."""
        there, back = self._way(source, destination), self._way(destination, source)
        rates = [rate for rate in (_rate(direction) for direction in there) if rate is not None]
        delays: list[int] = [direction["delay"] for direction in (*there, *back)]
        return min(rates) * sum(delays) // 8_000_000_000 if rates else None

    def _way(self, source: str, destination: str) -> list[dict[str, Any]]:
        way: list[dict[str, Any]] = []
        node = source
        while node != destination:
            link = self.links[self.routes[node][destination]]
            forward = link["ends"][0] == node
            way.append(link["forward" if forward else "backward"])
            node = link["ends"][1 if forward else 0]
        return way


def _time(value: int) -> str:
    return format_quantity(value, Dimension.TIME)


def _size(value: int) -> str:
    return format_quantity(value, Dimension.SIZE)
