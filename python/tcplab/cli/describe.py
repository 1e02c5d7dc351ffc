"""A plan in words: what `tcplab check` says would run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tcplab.plan.types import Control, Direction, Flow, Jitter, Limit, Link, Loss, Queue
from tcplab.quantities import ordinal, plural, rate, seconds, size

# Longer lists end with how many more there are.
_MOST = 12


def describe(plan: dict[str, Any]) -> Iterator[str]:
    """Lines that say what the plan does: network, traffic, measurement."""
    kinds = Counter(node["kind"] for node in plan["nodes"])
    counts = [plural(kinds[kind], kind) for kind in ("host", "router", "switch") if kinds[kind]]
    yield f"network: {', '.join([*counts, plural(len(plan['links']), 'link')])}"
    yield from _listed(f"  {line}" for link in plan["links"] for line in _link(link))
    yield f"traffic: {plural(len(plan['flows']), 'flow')}"
    yield from _listed(f"  {_flow(flow)}" for flow in plan["flows"])
    yield f"measured: {_sampling(plan)}"


def _listed(lines: Iterable[str]) -> Iterator[str]:
    every = list(lines)
    yield from every[:_MOST]
    if len(every) > _MOST:
        yield f"  ... and {len(every) - _MOST} more"


def _link(link: Link) -> Iterator[str]:
    one, two = link["ends"]
    forward, backward = _direction(link["forward"]), _direction(link["backward"])
    if forward == backward:
        yield f"{one} <-> {two}: {forward}"
    else:
        yield f"{one} -> {two}: {forward}"
        yield f"{two} -> {one}: {backward}"


def _direction(direction: Direction) -> str:
    said = []
    if direction.get("trace"):
        said.append("rate from a delivery trace")
    elif direction["rate"] is None:
        said.append("no rate limit")
    else:
        said.append(rate(direction["rate"]))
    said.append(f"{seconds(direction['delay'] / 1e9)} delay")
    said.append(_queue(direction["queue"]))
    if jitter := direction.get("jitter"):
        said.append(_jitter(jitter, independent=bool(direction.get("reorder"))))
    if loss := direction.get("loss"):
        said.append(_loss(loss))
    if reorder := direction.get("reorder"):
        said.append(f"{_share(reorder['chance']['rate'])} reordered")
    if corrupt := direction.get("corrupt"):
        said.append(f"{_share(corrupt['rate'])} corrupted")
    if duplicate := direction.get("duplicate"):
        said.append(f"{_share(duplicate['rate'])} duplicated")
    if not direction.get("up", True):
        said.append("down at first")
    if changes := direction.get("changes"):
        times = ", ".join(seconds(change["at"] / 1e9) for change in changes[:4])
        more = ", ..." if len(changes) > 4 else ""
        said.append(f"changes at {times}{more}")
    return ", ".join(said)


def _queue(queue: Queue) -> str:
    if "limit" not in queue:
        return queue["kind"]  # what is inside of it has limits
    limit = f" of {_amount(queue['limit'])}" if queue["limit"] else " without limit"
    marking = f", marks above {_amount(queue['mark_above'])}" if queue.get("mark_above") else ""
    return f"{queue['kind']}{limit}{marking}"


def _amount(amount: Limit) -> str:
    """A queue's limit or marking threshold."""
    if "packets" in amount:
        return plural(amount["packets"], "packet")
    return size(amount["bytes"]) if "bytes" in amount else seconds(amount["time"] / 1e9)


def _jitter(jitter: Jitter, *, independent: bool) -> str:
    memory = seconds(jitter["correlation_time"] / 1e9)
    how = "independent from packet to packet" if independent else f"correlation time {memory}"
    return f"{jitter['distribution']} jitter {seconds(jitter['amount'] / 1e9)} ({how})"


def _loss(loss: Loss) -> str:
    model = loss["model"]
    where = " before the queue" if loss.get("before_queue") else ""
    match model["kind"]:
        case "random" | "netem":
            chance = model["chance"]
            correlated = f", correlation {_share(chance['correlation'])}" if chance["correlation"] else ""
            netem = " (netem's model)" if model["kind"] == "netem" else ""
            return f"{_share(chance['rate'])} loss{correlated}{netem}{where}"
        case "gilbert_elliott":
            into, out = model["p"], model["r"]
            return f"Gilbert-Elliott loss (p {_share(into)}, r {_share(out)}){where}"
        case "list":
            return f"{plural(len(model['packets']), 'packet')} dropped by number{where}"
        case _:
            return f"every {ordinal(model['packets'])} packet lost{where}"


def _share(ppb: int) -> str:
    return f"{ppb / 1e7:.4g} %"


def _flow(flow: Flow) -> str:
    start = seconds(flow["start"] / 1e9)
    stop = f" to {seconds(flow['stop'] / 1e9)}" if flow["stop"] is not None else ""
    streams = f", {flow['streams']} streams" if flow["streams"] > 1 else ""
    over = " over IPv6" if flow["ip"] == 6 else ""
    return (
        f"{flow['name']}: {_traffic(flow)}{over}{streams}, {flow['from']} to {flow['to']}, from {start}{stop}"
    )


def _traffic(flow: Flow) -> str:
    total = flow.get("bytes")
    amount = f", {size(total)}" if total else ""
    pauses = ""
    if pattern := flow.get("pattern"):
        pauses = f", {seconds(pattern['on'] / 1e9)} on and {seconds(pattern['off'] / 1e9)} off"
    match flow["kind"]:
        case "tcp":
            return f"tcp with {_control(flow['cc'])}{amount}{pauses}"
        case "udp":
            return f"udp at {rate(flow['rate'])}{amount}{pauses}"
        case "request":
            exchange = f"{size(flow['request'])} asked, {size(flow['response'])} answered"
            return f"requests with {_control(flow['cc'])}, {exchange}"
        case "http":
            web = flow["web"]
            return f"http with {_control(flow['cc'])}, pages of {web['page']} of {web['objects']} objects"
        case "echo":
            sizes = flow["sizes"]
            spread = f"{len(sizes)} sizes, {size(min(sizes))} to " if len(sizes) > 1 else ""
            spread += size(max(sizes))
            return f"echoes with {_control(flow['cc'])}, {spread}, {flow['iterations']} of each"
        case _:
            return f"ping every {seconds(flow['interval'] / 1e9)}"


def _control(cc: Control) -> str:
    if not cc.get("params"):
        return str(cc["name"])
    params = ", ".join(f"{name} {value:g}" for name, value in cc["params"].items())
    return f"{cc['name']} ({params})"


def _sampling(plan: dict[str, Any]) -> str:
    sample = plan["sample"]
    steps = {"sockets": sample["sockets"], "queues": sample["queues"], "flows": sample["flows"]}
    said = [f"{what} every {seconds(step / 1e9)}" for what, step in steps.items() if step]
    if sample.get("packets"):
        said.append("every packet event")
    if capture := plan.get("capture"):
        said.append(f"capture of {capture['what']} at {capture['at']} on {', '.join(capture['nodes'])}")
    return ", ".join(said) or "totals only"
