"""A plan's settings in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcplab.plan.paths import nominal_rate
from tcplab.quantities import bytes_text, ordinal, rate_text, time_text

Settings = Mapping[str, Any]

_PER_BILLION = 1e9


def rate_words(direction: Settings) -> str:
    """`10 Mbit/s`, `unlimited` or a trace's mean."""
    rate = nominal_rate(direction)
    if direction.get("trace") and rate:
        return f"trace, mean {rate_text(float(f'{rate:.3g}'))}"
    return rate_text(rate)


def queue_words(direction: Settings) -> str:
    """`droptail, 50 ms`."""
    queue = direction.get("queue") or {}
    if "kind" in queue and "limit" not in queue:
        return str(queue["kind"])  # what is inside of it has limits
    return f"{queue.get('kind', 'droptail')}, {limit_words(queue.get('limit'))}{_marking_words(queue)}"


def limit_words(limit: Settings | None) -> str:
    """A queue's limit."""
    if not limit:
        return "no limit"
    if "packets" in limit:
        return f"{limit['packets']} packets"
    if "bytes" in limit:
        return bytes_text(limit["bytes"])
    return time_text(limit["time"])


def _marking_words(queue: Settings) -> str:
    return f", marks above {limit_words(queue['mark_above'])}" if queue.get("mark_above") else ""


def impairment_words(direction: Settings) -> list[str]:
    """The impairments, a phrase each, in the order in which packets meet them; empty: none."""
    phrases = []
    if direction.get("up") is False:
        phrases.append("down at the start")
    if overhead := direction.get("overhead"):
        cells = " in ATM cells" if overhead.get("atm") else ""
        phrases.append(f"{overhead['bytes']} B of overhead a frame{cells}")
    if policer := direction.get("policer"):
        phrases.append(
            f"policed to {rate_text(policer['rate'])} with bursts of {bytes_text(policer['burst'])}"
        )
    if direction.get("loss"):
        phrases.append(loss_words(direction["loss"]))
    for key, verb in (("corrupt", "corrupted"), ("duplicate", "duplicated")):
        if direction.get(key):
            phrases.append(f"{_chance(direction[key])} {verb}")
    if direction.get("jitter"):
        jitter = direction["jitter"]
        phrases.append(f"jitter {time_text(jitter['amount'])} ({jitter['distribution']})")
    if direction.get("reorder"):
        reorder = direction["reorder"]
        by = f" by {time_text(reorder['by'])}" if reorder.get("by") else ""
        phrases.append(f"{_chance(reorder['chance'])} sent ahead{by}")
    return phrases


def loss_words(loss: Settings) -> str:
    """A loss process."""
    model = loss["model"]
    kind = model["kind"]
    if kind == "random":
        text = f"{_chance(model['chance'])} lost at random"
    elif kind == "netem":
        text = f"loss by netem's recursion, asked for {_chance(model['chance'])}"
    elif kind == "gilbert_elliott":
        values = ", ".join(f"{key} {_percent(model[key])}" for key in ("p", "r", "bad", "good"))
        text = f"Gilbert-Elliott loss ({values})"
    elif kind == "list":
        packets = model["packets"]
        shown = ", ".join(str(number) for number in packets[:8])
        text = f"packets {shown}{' and more' if len(packets) > 8 else ''} lost"
    else:
        text = f"every {ordinal(model['packets'])} packet lost, from number {model['first']} on"
    return f"{text}, before the queue" if loss.get("before_queue") else text


def change_words(direction: Settings) -> list[str]:
    """What changes during the run, one phrase per time."""
    phrases = []
    for change in direction.get("changes") or ():
        what = []
        if change.get("rate") is not None:
            what.append(f"rate {rate_text(change['rate'])}")
        if change.get("limit") is not None:
            what.append(f"queue {limit_words(change['limit'])}{_marking_words(change)}")
        if change.get("delay") is not None:
            what.append(f"delay {time_text(change['delay'])}")
        if change.get("up") is not None:
            what.append("up" if change["up"] else "down")
        what += impairment_words({key: value for key, value in change.items() if key != "up"})
        phrases.append(f"from {time_text(change['at'])}: {', '.join(what)}")
    return phrases


def direction_words(direction: Settings) -> str:
    """Everything about a direction, on one line."""
    queue = direction.get("queue") or {}
    parts = [
        rate_words(direction),
        f"{time_text(direction.get('delay') or 0)} delay",
        f"queue {limit_words(queue.get('limit'))}{_marking_words(queue)}",
    ]
    return ", ".join(parts + impairment_words(direction) + change_words(direction))


def traffic_words(flow: Settings) -> str:
    """What a flow sends."""
    kind = flow.get("kind")
    pattern = flow.get("pattern")
    pauses = (
        f", {time_text(pattern['on'])} on and {time_text(pattern['off'])} off ({pattern['distribution']})"
        if pattern
        else ""
    )
    if kind == "udp":
        return f"UDP at {rate_text(flow['rate'])}, {flow['payload']} B datagrams{_amount(flow)}{pauses}"
    if kind == "request":
        count = f", {flow['count']} times" if flow.get("count") else ""
        think = f", pause {time_text(flow['think'])}" if flow.get("think") else ""
        sizes = f"requests of {bytes_text(flow['request'])}, responses of {bytes_text(flow['response'])}"
        return sizes + think + count
    if kind == "http":
        return _web_words(flow["web"])
    if kind == "echo":
        sizes = flow["sizes"]
        spread = f"{len(sizes)} sizes from {bytes_text(min(sizes))} to " if len(sizes) > 1 else ""
        pause = f", {time_text(flow['interval'])} apart" if flow.get("interval") else ""
        polling = ", both ends polling" if flow.get("busy_poll") else ""
        return f"echoes of {spread}{bytes_text(max(sizes))}, {flow['iterations']} of each{pause}{polling}"
    if kind == "ping":
        return f"ping every {time_text(flow['interval'])}, {flow['payload']} B"
    return f"TCP bulk{_amount(flow)}{pauses}"


def _web_words(web: Settings) -> str:
    """What an http flow asks for."""
    sizes = sorted(set(web["sizes"]))
    spread = f"{bytes_text(sizes[0])} to " if len(sizes) > 1 else ""
    pages = "pages" if web["count"] is None else f"{web['count']} pages"
    parts = [f"{pages} of {web['page']} of {web['objects']} objects ({spread}{bytes_text(sizes[-1])})"]
    parts += [f"{web['ranges']} ranges each"] if web["ranges"] > 1 else []
    parts += [f"pause {time_text(web['think'])}"] if web["think"] else []
    return ", ".join(parts)


def control_words(flow: Settings) -> str:
    """A flow's control with the parameters that differ from their defaults; empty without one."""
    cc = flow.get("cc")
    if not cc:
        return ""
    if isinstance(cc, str):
        return cc
    params = ", ".join(f"{key} = {value:g}" for key, value in (cc.get("params") or {}).items())
    return f"{cc['name']} ({params})" if params else str(cc["name"])


def time_words(flow: Settings) -> str:
    """When a flow runs."""
    start = time_text(flow.get("start") or 0)
    return f"{start} to {time_text(flow['stop'])}" if flow.get("stop") is not None else f"from {start}"


def _amount(flow: Settings) -> str:
    return f", {bytes_text(flow['bytes'])} per stream" if flow.get("bytes") else ""


def _chance(chance: Settings) -> str:
    correlation = chance.get("correlation")
    return _percent(chance["rate"]) + (f" (correlation {_percent(correlation)})" if correlation else "")


def _percent(per_billion: int) -> str:
    return f"{per_billion / _PER_BILLION * 100:.6g} %"
