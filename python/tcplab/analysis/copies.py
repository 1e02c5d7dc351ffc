"""Which repetitions of a simulation are copies of the first, moved in time by their phase.

A flow alone on links without random decisions mostly meets the same packets whenever it starts. Its figures
then differ by where samples fall, which is not how another run would differ. The ticks of its timestamps may
change how the receive window grows. Its counts then differ, and it is not a copy.
"""

from __future__ import annotations

import polars as pl

from tcplab.plan.types import Plan
from tcplab.results.schema import COUNTED

# Settings that make a link's direction depend on chance or on the time of day.
_CHANGING = ("jitter", "reorder", "corrupt", "duplicate", "trace", "changes")


def fingerprint(plan: Plan, engine: str, flows: pl.DataFrame) -> str | None:
    """The fingerprint that repetitions which are copies share; None where no copy is possible.

    `flows` is the table of one repetition. Controls may draw random numbers: their runs have different
    counts.
    """
    if engine != "sim" or not _alone(plan):
        return None
    # Moving a stream in time does not change its counts.
    rows = flows.sort("stream").select(*COUNTED["flows"], lasted=pl.col("end") - pl.col("start")).rows()
    return str(rows)


def _alone(plan: Plan) -> bool:
    flows = plan.get("flows", ())
    if len(flows) != 1 or any(flows[0].get(key) for key in ("response", "web", "pattern", "spacing")):
        return False
    ways = [link[way] for link in plan.get("links", ()) for way in ("forward", "backward")]
    losses = [loss["model"]["kind"] for way in ways if (loss := way.get("loss"))]
    return not any(way.get(key) for way in ways for key in _CHANGING) and {*losses} <= {"list", "every"}
