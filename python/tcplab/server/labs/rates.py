"""From counters of a lab's nodes to what its links carry and what its TCP senders do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
# A socket that has sent less than this does not send data: its peer does.
_SENT = 1000


class Rates:
    """Rates between one look at the nodes and the next."""

    def __init__(self, links: Mapping[str, Json]) -> None:
        """For these links of a lab, each with the node and interface of its two `ends`."""
        self._ends = {name: [tuple(end) for end in link["ends"]] for name, link in links.items()}
        self._before: Json | None = None
        self._zero = 0

    def after(self, line: Json) -> Json | None:
        """The changes since the line before; None for the first.

        `time` (s since the first), `links` (bit/s that arrived at the second end and at the first, by name)
        and `sockets` (of each sender, by node and ports).
        """
        before, self._before = self._before, line
        if before is None:
            self._zero = line["time"]
            return None
        past = (line["time"] - before["time"]) / 1e9
        links = {}
        for name, (first, second) in self._ends.items():
            ways = [self._received(line, end) - self._received(before, end) for end in (second, first)]
            links[name] = [8 * max(0, way) / past for way in ways]
        return {
            "type": "watch",
            "time": (line["time"] - self._zero) / 1e9,
            "links": links,
            "sockets": dict(self._senders(line, before, past)),
        }

    def _received(self, line: Json, end: tuple[str, str]) -> int:
        node, interface = end
        return int(line["nodes"].get(node, {}).get("interfaces", {}).get(interface, [0, 0])[0])

    def _senders(self, line: Json, before: Json, past: float) -> list[tuple[str, Json]]:
        found = []
        for node, seen in line["nodes"].items():
            earlier = {
                (one["local_port"], one["remote_port"]): one["acked"]
                for one in before["nodes"].get(node, {}).get("sockets", [])
            }
            for one in seen["sockets"]:
                if one["acked"] < _SENT:
                    continue
                ports = one["local_port"], one["remote_port"]
                acked = 8 * (one["acked"] - earlier.get(ports, one["acked"])) / past
                sample = {key: one[key] for key in ("cwnd", "inflight", "srtt", "retransmits", "phase")}
                found.append((f"{node} {ports[0]}>{ports[1]}", {**sample, "acked": acked}))
        return found
