"""Settings of links in files of containerlab: commands of tc(8) in nodes, and its own command in comments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from tcplab.topologies.imported import number_and_unit, time_of

# `containerlab tools netem set -n clab-LAB-NODE -i INTERFACE --delay 5ms`, as a comment at the end of a file.
_OWN = re.compile(r"^#\s*(containerlab tools netem set .*)$", re.MULTILINE)
_RATES = {"bit": "bit/s", "kbit": "kbit/s", "mbit": "Mbit/s", "gbit": "Gbit/s"}
# By the name that tc and containerlab have for it.
_SHARES = {"loss": "loss", "corrupt": "corrupt", "corruption": "corrupt", "duplicate": "duplicate"}

Settings = dict[str, Any]


def by_comments(text: str, lab: str) -> Iterator[tuple[str, str, Settings]]:
    """Node, interface and settings of each of containerlab's commands in comments of a file."""
    for command in _OWN.findall(text):
        words = shlex.split(command)[4:]
        options = dict(zip(words[::2], words[1::2], strict=False))
        node = options.pop("-n", options.pop("--node", "")).removeprefix(f"clab-{lab}-")
        interface = options.pop("-i", options.pop("--interface", ""))
        plain = {name.lstrip("-"): value for name, value in options.items()}
        if "rate" in plain:
            # A number alone is kbit/s.
            plain["rate"] += "kbit"
        yield node, interface, _settings(plain)


def by_command(command: str) -> tuple[str, Settings] | None:
    """Interface and settings of `tc qdisc add dev INTERFACE root netem ...`; none for any other command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if words[:2] != ["tc", "qdisc"] or words[2:3] not in (["add"], ["replace"], ["change"]):
        return None
    if "dev" not in words or "root" not in words or "netem" not in words:
        return None
    interface = words[words.index("dev") + 1]
    options: dict[str, str] = {}
    rest = words[words.index("netem") + 1 :]
    while rest:
        name = rest.pop(0)
        if name == "loss" and rest[:1] == ["random"]:
            rest.pop(0)
        values = []
        while rest and rest[0][:1].isdigit():
            values.append(rest.pop(0))
        is_delay = name == "delay" and len(values) == 2
        if not values or (len(values) > 1 and not is_delay):
            # A correlation, a distribution, or an option without a number.
            return None
        options[name] = values[0]
        if is_delay:
            options["jitter"] = values[1]
    try:
        return interface, _settings(options)
    except ValueError:
        return None


def _settings(options: dict[str, str]) -> Settings:
    """Settings of a direction; raises ValueError for what a scenario cannot say."""
    found: Settings = {}
    for name, value in options.items():
        number, unit = number_and_unit(value)
        if not number:
            continue
        if name in ("delay", "jitter"):
            found[name] = time_of(value)
        elif name in _SHARES:
            found[_SHARES[name]] = f"{number:.12g} %"
        elif name == "rate" and unit.lower() in _RATES:
            found["rate"] = f"{number:.12g} {_RATES[unit.lower()]}"
        elif name == "limit" and not unit:
            found["queue"] = f"{number:.12g} packets"
        else:
            raise ValueError(f"{name} {value}")
    return found
