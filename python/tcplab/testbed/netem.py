"""A link direction as queue disciplines of the running kernel, in the words of tc(8).

The interface that sends into a direction gets up to two netems, one in the other: the outer one does what
happens to packets on their way, the inner one is the queue and serialises at the rate. In this order for two
reasons. The limit of an outer netem counts what the inner one holds with some kernels and not with others
(`sch->q.qlen` and `q->t_len` in `netem_enqueue`); and what the outer one refuses its sender's TCP hears of at
once, where a loss in a network shows by what does not come back. What differs from a link of tcplab's is in
docs/kernel-engine.md. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcplab.plan.types import Chance, Direction, Loss

# Room for what is on its way, packets; netem counts those too, and a link does not.
_AMPLE = 1_000_000
_ETHERNET_HEADER = 14
_PPB = 1_000_000_000


@dataclass(frozen=True)
class Unlike:
    """What netem does not do as the plan says."""

    key: str
    """Of the link direction."""
    message: str
    mend: str = ""
    refused: bool = True
    """False: it does something like it."""


def commands(interface: str, mtu: int, direction: Direction) -> list[list[str]]:
    """Arguments of tc, one list a command; none where the direction does nothing.

    What `unlike` refuses is left out.
    """
    path, queue = _path(direction), _serialisation(direction, mtu)
    if queue:
        outer = [*path, "limit", str(_AMPLE)]
        return [_add(interface, ["root", "handle", "1:"], outer), _add(interface, ["parent", "1:1"], queue)]
    return [_add(interface, ["root"], [*path, "limit", str(_AMPLE)])] if path else []


def unlike(mtu: int, direction: Direction) -> Iterator[Unlike]:
    """What of a direction netem cannot do, or does in another way."""
    own = "leave `emulator` out: tcplab's own emulator does it"
    if not direction["up"]:
        yield Unlike("up", "netem cannot take a link down", own)
    if direction["trace"]:
        yield Unlike("trace", "netem follows no delivery trace", own)
    if direction.get("overhead"):
        yield Unlike("overhead", "netem's rate counts what tc counts, IP length + 14 bytes", own)
    if direction.get("policer"):
        yield Unlike("policer", "netem does not police", own)
    if direction["changes"]:
        yield Unlike("at", "netem's settings stay as they are during a run", own)
    queue = direction["queue"]
    if queue["kind"] != "droptail" or queue.get("mark_above"):
        yield Unlike("queue", "netem's queue is droptail and marks nothing", own)
    if direction["duplicate"] and direction["rate"]:
        # Newer kernels forbid two netems in one another of which one duplicates (`check_netem_in_tree`).
        yield Unlike("duplicate", "netem does not duplicate on a link with a `rate`", own)
    reorder, jitter, loss = direction["reorder"], direction["jitter"], direction["loss"]
    if reorder and reorder["by"] not in (None, direction["delay"]):
        yield Unlike("reorder.by", "packets that overtake skip all of the delay in netem", "leave `by` out")
    if reorder and not direction["delay"]:
        yield Unlike("reorder", "netem reorders by skipping the delay, and there is none", "give a `delay`")
    if jitter and jitter["distribution"] == "pareto":
        yield Unlike("jitter.distribution", "netem's Pareto distribution is another one", own)
    elif jitter:
        message = "netem draws each packet's delay by itself, so that packets overtake each other"
        yield Unlike("jitter", message, own, refused=False)
    if loss and loss["model"]["kind"] not in ("random", "netem", "gilbert_elliott"):
        yield Unlike("loss", "netem loses packets by chance only", own)
    if loss and loss["model"]["kind"] == "random" and loss["model"]["chance"]["correlation"]:
        message = "netem's correlated losses are fewer than the rate asked for"
        yield Unlike("loss.correlation", message, "`model: netem` says how many they are", refused=False)
    limit = queue.get("limit")
    if direction["rate"] and limit and "packets" not in limit:
        message = f"netem limits packets, not bytes: {_waiting(direction, mtu)} of them, as if all were full"
        yield Unlike("queue.limit", message, "give the limit in packets", refused=False)


def _add(interface: str, at: list[str], words: list[str]) -> list[str]:
    return ["qdisc", "add", "dev", interface, *at, "netem", *words]


def _serialisation(direction: Direction, mtu: int) -> list[str]:
    if direction["rate"] is None:
        return []
    # A link's limit does not count the packet that is being sent, netem's does.
    limit = min(_AMPLE, _waiting(direction, mtu) + 1)
    return ["rate", f"{direction['rate']}bit", "limit", str(limit)]


def _waiting(direction: Direction, mtu: int) -> int:
    """How many packets may wait: a limit in bytes or time as that of full ones."""
    limit, frame = direction["queue"].get("limit"), mtu + _ETHERNET_HEADER
    if limit is None:
        return _AMPLE
    if "packets" in limit:
        return limit["packets"]
    size = limit["bytes"] if "bytes" in limit else limit["time"] * (direction["rate"] or 0) // (8 * _PPB)
    return max(1, size // frame)


def _path(direction: Direction) -> list[str]:
    words: list[str] = []
    jitter, reorder = direction["jitter"], direction["reorder"]
    if direction["delay"] or jitter:
        words += ["delay", _time(direction["delay"])]
        words += [_time(jitter["amount"])] if jitter else []
        words += ["distribution", "normal"] if jitter and jitter["distribution"] == "normal" else []
    words += _loss(direction["loss"])
    for word, chance in (("corrupt", direction["corrupt"]), ("duplicate", direction["duplicate"])):
        words += [word, *_chance(chance)] if chance else []
    words += ["reorder", *_chance(reorder["chance"])] if reorder else []
    return words


def _loss(loss: Loss | None) -> list[str]:
    if not loss:
        return []
    model = loss["model"]
    if model["kind"] == "gilbert_elliott":
        return ["loss", "gemodel", *(_percent(model[key]) for key in ("p", "r", "bad", "good"))]
    return ["loss", "random", *_chance(model["chance"])] if "chance" in model else []


def _chance(chance: Chance) -> list[str]:
    return [_percent(value) for value in (chance["rate"], chance["correlation"]) if value]


def _percent(parts: int) -> str:
    """Parts per 10^9."""
    whole, rest = divmod(parts, _PPB // 100)
    return f"{whole}.{rest:07d}%"


def _time(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}us"
