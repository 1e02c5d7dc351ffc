"""Knobs by name, the values they are tried at, and how each is set on a real host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Plan

# As the scenario has it: nothing is set.
UNCHANGED = "unchanged"


class KnobError(ValueError):
    """A knob that is not known, or has no values."""


@dataclass(frozen=True)
class Knob:
    """One thing that is varied."""

    name: str
    values: Mapping[str, dict[str, Any]]
    """By label, what is set in the scenario; `unchanged` sets nothing."""


@dataclass(frozen=True)
class _Known:
    paths: Callable[[Plan], list[str]]
    values: tuple[Any, ...]


def _tcp_flows(plan: Plan) -> list[str]:
    return [flow["name"] for flow in plan["flows"] if kind_of(flow).connected]


def _of_flows(key: str) -> Callable[[Plan], list[str]]:
    return lambda plan: [f"flows.{name}.{key}" for name in _tcp_flows(plan)]


def _of_hosts(*keys: str) -> Callable[[Plan], list[str]]:
    return lambda plan: [f"network.hosts.{key}" for key in keys]


_SIZES = ("64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB")
_KNOWN: dict[str, _Known] = {
    "window": _Known(_of_hosts("window"), _SIZES),
    "buffers": _Known(_of_hosts("send_buffer_max", "receive_buffer_max"), ("16 MB", "64 MB", "256 MB")),
    "streams": _Known(_of_flows("streams"), (1, 2, 4, 8)),
    "cc": _Known(_of_flows("cc"), ("reno", "cubic", "bbr1", "bbr2", "bbr3", "htcp", "illinois", "vegas")),
    "initial_window": _Known(_of_hosts("initial_window"), ("4 packets", "10 packets", "32 packets")),
    "mss": _Known(_of_hosts("mss"), ("536 B", "1460 B")),
    "pacing": _Known(_of_hosts("pacing"), (True, False)),
}
NAMES = tuple(_KNOWN)


def listed(text: str) -> list[str]:
    """Knobs that commas separate; those within braces and brackets belong to a value."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "{[") - (character in "}]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def read(over: Sequence[str], plan: Plan) -> list[Knob]:
    """Knobs as a command line names them: `window`, `cc=cubic|bbr1`, or a path, `flows.a.cc=cubic|bbr1`.

    A known knob without values is tried at its usual ones, and as the scenario has it. A path is called by
    its last key, or as a whole where others end in the same. Raises `KnobError`.
    """
    from tcplab.study.grid import label_of

    keys = Counter(text.partition("=")[0].strip().rsplit(".", 1)[-1] for text in over)
    knobs = []
    for text in over:
        name, equals, given = (part.strip() for part in text.partition("="))
        known = _KNOWN.get(name)
        if known is None and not (equals and "." in name):
            import difflib

            near = difflib.get_close_matches(name, NAMES, n=1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            raise KnobError(
                f"unknown parameter `{name}`{meant} (parameters: {', '.join(NAMES)}, or a path with values, "
                "such as network.path.queue='50 ms|200 ms')"
            )
        paths = known.paths(plan) if known else [name]
        if not paths:
            raise KnobError(f"the scenario has no TCP flow whose `{name}` could be varied")
        values: list[Any] = [value.strip() for value in given.split("|")] if equals else []
        values = values or list(known.values if known else ())
        if any(value == "" for value in values):
            raise KnobError(f"`{text}`: a value is missing; write {name}=A|B")
        labelled = {label_of(value): dict.fromkeys(paths, value) for value in values}
        as_given: dict[str, dict[str, Any]] = {} if equals else {UNCHANGED: {}}
        key = name.rsplit(".", 1)[-1]
        knobs.append(Knob(key if keys[key] == 1 else name, {**as_given, **labelled}))
    names = [knob.name for knob in knobs]
    for name in names:
        if names.count(name) > 1:
            raise KnobError(f"the parameter `{name}` is named twice")
    return knobs
