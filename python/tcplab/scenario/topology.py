"""The network of a scenario in one form: nodes and links with every setting in its place.

The `path` shorthand becomes two hosts and a link, common settings of a link go to both of its
directions, and settings of all hosts go to each host. Nothing is checked here, and quantities stay as
they were given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .document import Path
from .fields import Strict
from .flows import AnyFlow
from .model import Scenario
from .network import Direction, HostSettings, Link, PathNetwork, Queue
from .quantity import Dimension, Quantity

# What Linux gives a network interface (txqueuelen).
LINK_LIMIT = Quantity(Dimension.PACKETS, Fraction(1000))
# Never the bottleneck of ACKs, yet no memory leak when something is sent the other way.
REVERSE_LIMIT = Quantity(Dimension.PACKETS, Fraction(10_000))
PATH_LIMIT = Quantity(Dimension.BDP, Fraction(1))


@dataclass
class Setting:
    """A value and where it was given."""

    value: Any
    where: Path


@dataclass
class DirectionSpec:
    """One direction of a link: settings by key, and changes by time (ns)."""

    where: Path
    settings: dict[str, Setting] = field(default_factory=dict)
    changes: dict[int, dict[str, Setting]] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default` where it was not given."""
        return self.settings[key].value if key in self.settings else default

    def at(self, key: str, time: int, default: Any = None) -> Any:
        """The value of `key` at a time, changes included."""
        value = self.get(key, default)
        for when in sorted(self.changes):
            if when <= time and key in self.changes[when]:
                value = self.changes[when][key].value
        return value

    def place(self, key: str) -> Path:
        """Where `key` was given, or the link."""
        return self.settings[key].where if key in self.settings else self.where


@dataclass
class LinkSpec:
    """A link with its two directions."""

    name: str
    ends: tuple[str, str]
    mtu: int
    forward: DirectionSpec
    backward: DirectionSpec
    where: Path

    def towards(self, node: str) -> DirectionSpec:
        """The direction that ends at `node`."""
        return self.forward if node == self.ends[1] else self.backward

    def other(self, node: str) -> str:
        """The end that is not `node`."""
        return self.ends[1] if node == self.ends[0] else self.ends[0]


@dataclass
class NodeSpec:
    """A node and the settings of its TCP."""

    name: str
    kind: str
    settings: dict[str, Setting]
    where: Path

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default` where it was not given."""
        return self.settings[key].value if key in self.settings else default


@dataclass
class Topology:
    """The network, and the nodes at the ends of each flow."""

    nodes: list[NodeSpec]
    links: list[LinkSpec]
    ends: list[tuple[str | None, str | None]]
    """Per flow: from and to; none where it is not said."""


def build(scenario: Scenario) -> Topology:
    """The scenario's network in its general form."""
    network = scenario.network
    if network.path is not None:
        return _dumbbell(scenario, network.path)
    nodes = []
    for index, node in enumerate(network.nodes):
        where: Path = ("network", "nodes", index)
        settings = _host_settings(scenario, node, where) if node.kind == "host" else _given(node, where)
        nodes.append(NodeSpec(node.name, node.kind, settings, where))
    links = [_link(link, ("network", "links", index)) for index, link in enumerate(network.links)]
    return Topology(nodes, links, [(flow.from_, flow.to) for flow in scenario.flows])


def _dumbbell(scenario: Scenario, path: PathNetwork) -> Topology:
    flows: list[AnyFlow] = list(scenario.flows)
    suffixes = [f"-{flow.name}" for flow in flows] if path.per_flow else [""]
    where: Path = ("network", "path")
    nodes: list[NodeSpec] = []
    links: list[LinkSpec] = []
    for suffix in dict.fromkeys(suffixes):
        left, right = f"left{suffix}", f"right{suffix}"
        for name, settings, key in ((left, path.left, "left"), (right, path.right, "right")):
            given = _host_settings(scenario, settings, (*where, key))
            nodes.append(NodeSpec(name, "host", given, (*where, key)))
        forward, backward = _path_directions(path, where)
        links.append(LinkSpec(f"path{suffix}", (left, right), path.mtu, forward, backward, where))
    ends: list[tuple[str | None, str | None]] = []
    for index, flow in enumerate(flows):
        suffix = suffixes[index] if path.per_flow else ""
        sender = flow.from_ or ("right" if flow.to == "left" else "left")
        receiver = flow.to or ("left" if flow.from_ == "right" else "right")
        known = ("left", "right")
        ends.append(
            (
                sender + suffix if sender in known else sender,
                receiver + suffix if receiver in known else receiver,
            )
        )
    return Topology(nodes, links, ends)


def _path_directions(path: PathNetwork, where: Path) -> tuple[DirectionSpec, DirectionSpec]:
    """The path's settings go forward; rate, delay and being up also hold for the way back."""
    shared = ("rate", "up")
    forward = DirectionSpec(
        where, _given(path, where, omit=("rtt", "at", "mtu", "reverse", "left", "right", "per_flow"))
    )
    backward = DirectionSpec((*where, "reverse"))
    backward.settings = {key: forward.settings[key] for key in shared if key in forward.settings}
    backward.settings["queue"] = Setting(Queue(limit=REVERSE_LIMIT), where)
    forward.settings.setdefault("queue", Setting(Queue(limit=PATH_LIMIT), where))
    _split_rtt(path.rtt, (*where, "rtt"), forward.settings, backward.settings)
    own = _given(path.reverse, (*where, "reverse"), omit=("at",))
    backward.settings |= own
    for time, change in path.at.items():
        place = (*where, "at", time)
        given = _given(change, place, omit=("rtt",))
        back = {key: given[key] for key in shared if key in given and key not in own}
        if "rtt" in change.model_fields_set and change.rtt is not None:
            both: dict[str, Setting] = {}
            _split_rtt(change.rtt, (*place, "rtt"), given, both)
            back |= {} if "delay" in own else both
        forward.changes[time] = given
        if back:
            backward.changes[time] = back
    _add_changes(backward, path.reverse, (*where, "reverse"))
    return forward, backward


def _split_rtt(rtt: int, where: Path, forward: dict[str, Setting], backward: dict[str, Setting]) -> None:
    forward["delay"] = Setting(rtt // 2, where)
    backward["delay"] = Setting(rtt - rtt // 2, where)


def _link(link: Link, where: Path) -> LinkSpec:
    name = link.name or "-".join(link.ends)
    directions = []
    for key, own in (("forward", link.forward), ("backward", link.backward)):
        direction = DirectionSpec(where)
        direction.settings = _given(link, where, omit=("at", "name", "ends", "mtu", "forward", "backward"))
        override = _given(own, (*where, key), omit=("at",))
        # A direction's own rate replaces a common trace, and the other way round.
        for given, replaced in (("rate", "trace"), ("trace", "rate")):
            if given in override and replaced not in override:
                direction.settings.pop(replaced, None)
        direction.settings |= override
        _add_changes(direction, link, where)
        _add_changes(direction, own, (*where, key))
        directions.append(direction)
    return LinkSpec(name, (link.ends[0], link.ends[1]), link.mtu, directions[0], directions[1], where)


def _add_changes(direction: DirectionSpec, given: Direction, where: Path) -> None:
    for time, change in given.at.items():
        changes = direction.changes.setdefault(time, {})
        changes |= _given(change, (*where, "at", time))


def _host_settings(scenario: Scenario, own: HostSettings, where: Path) -> dict[str, Setting]:
    common = _given(scenario.network.hosts, ("network", "hosts"))
    merged = common | _given(own, where)
    if "sysctls" in common and "sysctls" in own.model_fields_set:
        merged["sysctls"] = Setting(common["sysctls"].value | own.sysctls, where)
    return merged


def _given(model: Strict, where: Path, omit: Iterable[str] = ()) -> dict[str, Setting]:
    """The settings that were given, not the defaults."""
    given = {}
    for key in type(model).model_fields:
        value = getattr(model, key)
        if key in model.model_fields_set and key not in omit and not (value is None and key != "rate"):
            given[key] = Setting(value, (*where, key))
    given.pop("name", None)
    given.pop("kind", None)
    return given
