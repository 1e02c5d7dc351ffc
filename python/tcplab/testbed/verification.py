"""Whether links do what was asked of them: what the lab is to measure, and what its answer means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from tcplab.plan.paths import DIRECTIONS
from tcplab.plan.types import Plan
from tcplab.results.certificate import deviations
from tcplab.testbed.errors import TestbedError
from tcplab.testbed.layout import Layout

Json = dict[str, Any]
# Larger networks and shorter runs are not verified unless they ask for it.
_MAX_LINKS = 50
_SHORT_RUN = 10_000_000_000


def wanted(plan: Plan) -> bool:
    """Whether the links of a network that stays up are verified: as the plan says, else up to 50 of them."""
    return bool(plan.get("verify", len(plan["links"]) <= _MAX_LINKS))


def wanted_before(plan: Plan) -> bool:
    """Whether they are verified before a run: as the plan says, else where a flow goes on beyond 10 s."""
    lasts = any((flow["stop"] or 0) > _SHORT_RUN for flow in plan["flows"])
    return bool(plan.get("verify", lasts and len(plan["links"]) <= _MAX_LINKS))


def measured(layout: Layout, digest: str, ask: Callable[[Json], Json]) -> Json:
    """The certificate of all links: what was asked, measured and tolerated, in each direction.

    It carries the digest of the plan, and one of all it says. Raises TestbedError where a link is off.
    """
    certificate = {"plan": digest, **ask({"do": "verify", "directions": list(_directions(layout))})}
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    certificate["digest"] = hashlib.sha256(text.encode()).hexdigest()
    wrong = list(deviations(certificate))
    if wrong:
        more = f"; and {len(wrong) - 4} more" if len(wrong) > 4 else ""
        raise TestbedError(
            f"links are not as asked: {'; '.join(wrong[:4])}{more}",
            "end other programs, ask for less, or set `verify: off`",
        )
    return certificate


def _directions(layout: Layout) -> Iterator[Json]:
    for wire in layout.wires:
        # The medium says when frames leave.
        if "medium" in wire.plan:
            continue
        for key, (near, far) in zip(DIRECTIONS, (wire.ends, wire.ends[::-1]), strict=True):
            # Frames through a slower interface do not show the link's own rate.
            if near.limited:
                continue
            yield {
                "link": wire.name,
                "direction": key,
                "from": [near.node, near.name],
                "to": [far.node, far.name],
                "mtu": wire.plan["mtu"],
                "plan": wire.plan[key],
                "netem": bool(near.qdiscs),
            }
