"""Remedies for a scenario: a study of it as it is, with each of them, and with all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcplab.plan.kinds import kind_of, node_kind
from tcplab.plan.paths import data_path
from tcplab.plan.types import Plan
from tcplab.quantities import rate_text

if TYPE_CHECKING:
    from tcplab.study.summary import CellSummary, StudySummary

AXIS, AS_IS, TOGETHER = "remedy", "as is", "all together"
# In place of a node: wherever there is a place.
AUTO = "auto"
_BESIDE_PATH = "left"
_MAX_PLACES = 4
# The accelerator tried: a control that does not take every loss for congestion, and auto-tuned buffers.
_ACCELERATOR = {"towards_client": {"cc": "bbr1"}, "towards_server": {"cc": "bbr1"}}
# A remedy pays from here on, and another one is worth more effort from here on, as shares of the goodput.
_PAYS, _MORE = 1.1, 1.1
_SIGNIFICANT = 0.05
_NO_CHANGE = "no change; no remedy tried gains 10 % or more"
# Names of remedies that end connections begin with these.
_SPLITTING = ("accelerator", "cache")

Settings = dict[str, Any]


@dataclass(frozen=True)
class Remedies:
    """The remedies asked for."""

    accelerator: str | None = None
    """Where: a router, or `left` on a path; AUTO tries each router that flows pass."""
    streams: int | None = None
    """Connections, or ranges of an object, that each transfer is divided into."""
    cache: str | None = None
    """Where, as for the accelerator."""

    def __bool__(self) -> bool:
        return any(one is not None for one in (self.accelerator, self.cache, self.streams))


class RemedyError(ValueError):
    """A remedy that the scenario has no place for."""


def study_of(scenario: str, plan: Plan, remedies: Remedies, repeat: int, seed: int) -> Settings:
    """The study, as its file would say it.

    `scenario` is the scenario's file and `plan` what it comes to. Raises RemedyError.
    """
    values: dict[str, Settings] = {AS_IS: {}}
    for name, at in _places(plan, "accelerator", remedies.accelerator):
        values[name] = _accelerated(plan, at)
    for name, at in _places(plan, "cache", remedies.cache):
        values[name] = _cached(plan, at)
    if remedies.streams is not None:
        values[f"{remedies.streams} streams"] = _divided(plan, remedies.streams)
    if len(values) > 2:
        values[TOGETHER] = {key: value for one in values.values() for key, value in one.items()}
    return {
        "tcplab": 1,
        "study": f"{plan['name']}-remedies",
        "description": f"Remedies for {plan['name']}.",
        "scenario": scenario,
        "grid": {AXIS: {"values": values}},
        "repeat": repeat,
        "seed": seed,
        "baseline": {AXIS: AS_IS},
    }


def _places(plan: Plan, what: str, asked: str | None) -> list[tuple[str, str]]:
    """The names of remedies, and where each of them is."""
    if asked is None:
        return []
    if asked != AUTO:
        return [(what, asked)]
    routers = _passed(plan)
    if len(routers) > _MAX_PLACES:
        raise RemedyError(f"flows pass {len(routers)} routers: name the one for the {what}")
    if len(routers) > 1:
        return [(f"{what} at {name}", name) for name in routers]
    return [(what, routers[0] if routers else _BESIDE_PATH)]


def _passed(plan: Plan) -> list[str]:
    """The routers that TCP flows pass."""
    nodes = {node["name"]: node for node in plan["nodes"]}
    links = {link["name"]: link["ends"] for link in plan["links"]}
    flows = [flow for flow in plan["flows"] if kind_of(flow).connected]
    passed = [end for flow in flows for hop in data_path(plan, flow) for end in links[hop.link]]
    return list(dict.fromkeys(name for name in passed if node_kind(nodes[name]["kind"]).forwards))


def _accelerated(plan: Plan, at: str) -> Settings:
    if not any(kind_of(flow).connected for flow in plan["flows"]):
        raise RemedyError("no flow of the scenario can be accelerated: none uses TCP")
    return _at_router(plan, at, "accelerate", "an accelerator", _ACCELERATOR)


def _cached(plan: Plan, at: str) -> Settings:
    if not any("web" in flow for flow in plan["flows"]):
        raise RemedyError("no flow of the scenario can be cached: none is of kind http")
    return _at_router(plan, at, "cache", "a cache", {})


def _at_router(plan: Plan, at: str, key: str, what: str, settings: Settings) -> Settings:
    """`key` of the router `at`, or of a path, which then has a gateway beside `left`."""
    nodes = {node["name"]: node for node in plan["nodes"]}
    if any(node.get(key) is not None for node in nodes.values()):
        raise RemedyError(f"the scenario has {what} already")
    if at in nodes and node_kind(nodes[at]["kind"]).forwards:
        passed = _passed(plan)
        if at not in passed:
            others = f" (they pass {', '.join(passed)})" if passed else ""
            raise RemedyError(f"no TCP flow passes {at!r}{others}")
        return {f"network.nodes.{at}.{key}": settings}
    routers = [name for name, node in nodes.items() if node_kind(node["kind"]).forwards]
    if routers:
        raise RemedyError(f"{at!r} is not a router (routers: {', '.join(routers)})")
    on_path = {name.partition("-")[0] for name in nodes} == {"left", "right"}
    if on_path and at == _BESIDE_PATH:
        return {f"network.path.{key}": settings}
    where = f"{what} on a path is at `left`" if on_path else "the network has no router"
    raise RemedyError(f"there is no place for {what} at {at!r}: {where}")


def _divided(plan: Plan, streams: int) -> Settings:
    """Each bulk transfer over so many connections, and each object in so many ranges."""
    settings: Settings = {}
    for flow in plan["flows"]:
        place = f"flows.{flow['name']}"
        if kind_of(flow).bulk_tcp:
            settings[f"{place}.streams"] = streams
            if flow["bytes"] is not None:
                settings[f"{place}.bytes"] = f"{math.ceil(flow['bytes'] * flow['streams'] / streams)} B"
        elif "web" in flow:
            settings[f"{place}.ranges"] = streams
            settings[f"{place}.connections"] = max(streams, flow["streams"])
    if not settings:
        raise RemedyError("no flow of the scenario can be divided: none is of kind tcp or http")
    return settings


def recommendation(summary: StudySummary) -> list[str]:
    """The effect of each remedy, and the remedy to take with the flow's limit before and after.

    Empty for a study of something else. Of remedies that are about as good, the first is recommended.
    """
    if summary.axes != (AXIS,):
        return []
    rows = {row.cell.labels[AXIS]: row for row in summary.cells if row.figures["goodput"].known}
    plain = rows.pop(AS_IS, None)
    if plain is None or not rows:
        return []
    said = [f"As is: {_rate(plain)}{_limit(plain)}."]
    said += [_described(name, row, plain) for name, row in rows.items()]
    if any(name.startswith(_SPLITTING) for name in rows):
        said.append("RTTs with an accelerator or a cache are those of the sender's leg.")
    gaining = {name: row for name, row in rows.items() if _gain(row, plain) >= _PAYS}
    paying = {name: row for name, row in gaining.items() if _sure(row)}
    if not paying:
        advice = "none yet: no gain is significant. `--repeat` makes more runs" if gaining else _NO_CHANGE
        return [*said, f"Recommendation: {advice}."]
    best = max(_goodput(row) for row in paying.values())
    name, row = next((name, row) for name, row in paying.items() if _goodput(row) * _MORE >= best)
    parts = f" ({', '.join(one for one in rows if one != TOGETHER)})" if name == TOGETHER else ""
    before, after = plain.limited_by, row.limited_by
    limit = f" As is, {before} limits the flow; with it, {after}." if before and after else ""
    return [*said, f"Recommendation: {name}{parts}.{limit}"]


def _described(name: str, row: CellSummary, plain: CellSummary) -> str:
    # A multiple of zero says nothing.
    gain = f", {_gain(row, plain):.2f} times as much" if _goodput(plain) else ""
    change = row.changes.get("goodput")
    test = "" if change is None or math.isnan(change.p) else f" (p {_p(change.p)}{_doubt(row)})"
    return f"With {name}: {_rate(row)}{gain}{test}{_limit(row)}."


def _doubt(row: CellSummary) -> str:
    return "" if _sure(row) else ": not significant"


def _limit(row: CellSummary) -> str:
    """The common limit of the flows; empty where each has its own limit, which its table names."""
    return f", limited by {row.limited_by}" if row.limited_by else ""


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _sure(row: CellSummary) -> bool:
    """Whether the difference is significant, or cannot be judged at all."""
    change = row.changes.get("goodput")
    return change is None or not change.p >= _SIGNIFICANT


def _gain(row: CellSummary, plain: CellSummary) -> float:
    before, after = _goodput(plain), _goodput(row)
    return after / before if before else math.inf if after else 1.0


def _goodput(row: CellSummary) -> float:
    return row.figures["goodput"].value


def _rate(row: CellSummary) -> str:
    figure = row.figures["goodput"]
    if not figure.interval.known:
        return rate_text(float(f"{figure.value:.4g}"))
    value, unit = rate_text(figure.value).split()
    scale = figure.value / float(value) if float(value) else 1.0
    return f"{_digits(float(value), 3)} ± {_digits(figure.interval.half_width / scale, 2)} {unit}"


def _digits(value: float, count: int) -> str:
    """So many significant digits, without an exponent."""
    return f"{float(f'{value:.{count}g}'):g}"
