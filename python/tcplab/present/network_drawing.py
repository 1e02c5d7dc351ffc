"""The network as a drawing: nodes from left to right, links with their settings."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass

from tcplab.plan.describe import describe_direction
from tcplab.plan.flow_direction import data_ends
from tcplab.plan.paths import DIRECTIONS
from tcplab.plan.types import DirectionKey, Link, Plan

MAX_NODES = 24
"""Larger networks are listed, not drawn."""

_STEP_X, _STEP_Y = 320.0, 88.0
# Characters that fit on a link.
_MAX_CHARACTERS = 38
_BOX_X, _BOX_Y = 96.0, 34.0


@dataclass(frozen=True)
class DrawnNode:
    """A node's box, by its centre."""

    name: str
    kind: str
    x: float
    y: float


@dataclass(frozen=True)
class DrawnLink:
    """A line with what it says above and below."""

    x1: float
    y1: float
    x2: float
    y2: float
    above: str
    below: tuple[str, ...]
    title: str

    at: float
    """Where its texts stand: a share of the way."""

    @property
    def middle(self) -> tuple[float, float]:
        """The point its texts are centred on."""
        return self.x1 + (self.x2 - self.x1) * self.at, self.y1 + (self.y2 - self.y1) * self.at


@dataclass(frozen=True)
class Drawing:
    """Boxes and lines in a frame of `width` by `height`."""

    width: float
    height: float
    nodes: tuple[DrawnNode, ...]
    links: tuple[DrawnLink, ...]
    box: tuple[float, float] = (_BOX_X, _BOX_Y)


def draw_network(plan: Plan) -> Drawing | None:
    """Lay the network out; None when it is too large to be read."""
    nodes = plan.get("nodes", ())
    if not nodes or len(nodes) > MAX_NODES:
        return None
    places = _places(plan)
    columns = max(x for x, _ in places.values()) + 1
    rows = max(y for _, y in places.values()) + 1
    drawn = {
        node["name"]: DrawnNode(
            node["name"],
            node["kind"],
            _BOX_X / 2 + 4 + places[node["name"]][0] * _STEP_X,
            _STEP_Y / 2 + places[node["name"]][1] * _STEP_Y,
        )
        for node in nodes
    }
    ends = Counter(end for link in plan.get("links", ()) for end in link["ends"])
    links = tuple(_link(link, drawn, ends) for link in plan.get("links", ()))
    return Drawing(
        width=(columns - 1) * _STEP_X + _BOX_X + 8,
        height=rows * _STEP_Y,
        nodes=tuple(drawn.values()),
        links=links,
    )


def _places(plan: Plan) -> dict[str, tuple[int, float]]:
    """Column and row of each node; the column is its distance from the first sender it is connected to."""
    near: dict[str, list[str]] = defaultdict(list)
    for link in plan.get("links", ()):
        a, b = link["ends"]
        near[a].append(b)
        near[b].append(a)
    senders = [data_ends(flow)[0] for flow in plan.get("flows", ())]
    order = list(dict.fromkeys([*senders, *(node["name"] for node in plan["nodes"])]))
    places: dict[str, tuple[int, float]] = {}
    row = 0.0
    for root in order:
        if root in places:
            continue
        distance = _distances(root, near)
        # Other senders at the far edge of the same part stand beside the first, not behind the network.
        for sender in senders:
            if sender in distance and len(near[sender]) == 1 and near[sender] == near[root]:
                distance[sender] = distance[root]
        layers: dict[int, list[str]] = defaultdict(list)
        for name, column in distance.items():
            layers[column].append(name)
        height = max(len(names) for names in layers.values())
        for column, names in layers.items():
            offset = (height - len(names)) / 2
            for index, name in enumerate(names):
                places[name] = (column, row + offset + index)
        row += height
    return places


def _distances(root: str, near: dict[str, list[str]]) -> dict[str, int]:
    distance = {root: 0}
    queue = deque([root])
    while queue:
        here = queue.popleft()
        for there in near[here]:
            if there not in distance:
                distance[there] = distance[here] + 1
                queue.append(there)
    return distance


def _link(link: Link, drawn: dict[str, DrawnNode], ends: Counter[str]) -> DrawnLink:
    a, b = (drawn[end] for end in link["ends"])
    forward: DirectionKey = "forward"
    if a.x > b.x:
        a, b, forward = b, a, "backward"
    words = describe_direction(link[forward])
    half = _BOX_X / 2 if a.x != b.x else 0.0
    notable = [*words.impairments, *(["changes over time"] if words.changes else [])]
    below = [_short(text) for text in (words.queue, "; ".join(notable)) if text]
    # Links that fan out from a node have room near their other end.
    at = (
        0.5 if a.y == b.y or ends[a.name] == ends[b.name] else (0.36 if ends[a.name] < ends[b.name] else 0.64)
    )
    above, title = f"{words.rate} · {words.delay}", f"{link['name']} {DIRECTIONS[forward]}: {words.line}"
    return DrawnLink(a.x + half, a.y, b.x - half, b.y, above, tuple(below), title, at)


def _short(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
