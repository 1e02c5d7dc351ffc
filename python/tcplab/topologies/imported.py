"""The result of importing another tool's file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json import JSONDecodeError
from typing import Any

from tcplab.plan.kinds import node_kind


class UnreadableError(ValueError):
    """The file is not what its ending says; the message is part of a sentence."""


def unreadable(kind: str, problem: Exception) -> UnreadableError:
    """That a file is not of a kind, by what went wrong when it was read."""
    match problem:
        case JSONDecodeError(lineno=line, colno=column):
            reason = f"not JSON, line {line}, column {column}"
        case KeyError(args=(key,)):
            reason = f"`{key}` is missing"
        case RecursionError():
            reason = "nested too deep"
        case TypeError() | AttributeError():
            reason = "a value has not the type that such a file has there"
        case _:
            reason = f"{problem}"
    return UnreadableError(f"not a {kind}: {reason}")


@dataclass
class Imported:
    """A scenario, and what of the file it does not say."""

    name: str
    nodes: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """One sentence each."""
    notes: list[str] = field(default_factory=list)
    """Settings that a reader may have meant otherwise."""

    def scenario(self) -> dict[str, Any]:
        """The scenario as plain data; its flow is a ping between the first and the last host with a link.

        Raises UnreadableError where there are fewer than two of these.
        """
        linked = {end for link in self.links for end in link["ends"]}
        names = [node["name"] for node in self.nodes if node_kind(node["kind"]).ends_flows]
        hosts = [name for name in names if name in linked]
        if len(hosts) < 2:
            raise UnreadableError("a scenario needs two hosts with links, and the file has fewer")
        probe = {"name": "probe", "kind": "ping", "from": hosts[0], "to": hosts[-1]}
        network = {"nodes": self.nodes, "links": self.links}
        return {"tcplab": 1, "name": self.name, "network": network, "flows": [probe]}


def name_of(text: str) -> str:
    """A text as a name of the scenario language: letters, digits, `-` and `_`, a letter first."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:48]
    return plain if plain[:1].isalpha() else f"n{plain}"[:48]


def number_and_unit(text: str) -> tuple[float, str]:
    """`5ms` and `5 ms` as 5.0 and `ms`; raises ValueError where there is no number."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ% ")
    return float(number), text[len(number) :].strip()


def time_of(text: str) -> str:
    """A time as tc(8) reads it, in the scenario's words: a number alone is microseconds."""
    number, unit = number_and_unit(text)
    return f"{number:.12g} {unit.removesuffix('ecs').removesuffix('ec') or 'us'}"
