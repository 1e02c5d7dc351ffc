"""Defaults in the JSON Schema: one that is written out changes nothing in the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tcplab.scenario import expand, from_data, json_schema

SCHEMA = json_schema()
DEFS = SCHEMA["$defs"]
# Values of what has no default, by key.
NEEDED: dict[str, Any] = {
    "limit": "100 packets",
    "rate": "5 Mbit/s",
    "burst": "15 kB",
    "queue": "100 packets",
    "bands": [{"dscp": "EF", "queue": "50 packets"}, {"queue": "50 packets"}],
}
HOSTS = [{"name": "a"}, {"name": "b"}]
LINK = {"ends": ["a", "b"], "rate": "10 Mbit/s", "delay": "5 ms"}
FLOW = {"name": "bulk", "kind": "tcp", "from": "a", "to": "b"}


def scenario(
    *, node: dict[str, Any] | None = None, link: dict[str, Any] | None = None, **rest: Any
) -> dict[str, Any]:
    network = {"nodes": [{**HOSTS[0], **(node or {})}, HOSTS[1]], "links": [{**LINK, **(link or {})}]}
    return {"tcplab": 1, "name": "test", "network": network, "flows": [FLOW], "duration": "10 s", **rest}


def defaults(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        key: inner["default"] for key, inner in schema.get("properties", {}).items() if "default" in inner
    }


def cases() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """A name, a function from settings to a scenario, and the defaults of those settings."""
    for variant in DEFS["Queue"]["anyOf"][-1]["oneOf"]:
        kind = variant["properties"]["kind"]["const"]
        queue = {"kind": kind, **{key: NEEDED[key] for key in variant["required"] if key != "kind"}}
        yield (
            f"queue {kind}",
            lambda more, queue=queue: scenario(link={"queue": {**queue, **more}}),
            defaults(variant),
        )
    flow = DEFS["Flow"]
    for variant in flow["oneOf"]:
        kind = variant["properties"]["kind"]["const"]
        own = DEFS[variant["$ref"].rpartition("/")[2]]
        needed = {key: own["properties"][key]["examples"][0] for key in own.get("required", [])}
        made = {**FLOW, "kind": kind, **needed}
        yield (
            f"flow {kind}",
            lambda more, made=made: scenario(flows=[{**made, **more}]),
            defaults(flow) | defaults(own),
        )
    yield "host", lambda more: scenario(node=more), defaults(DEFS["HostSettings"])
    yield "sample", lambda more: scenario(sample=more), defaults(DEFS["Sample"])
    loss = {"rate": "1 %"}
    yield "loss", lambda more: scenario(link={"loss": loss | more}), defaults(DEFS["Loss"]["anyOf"][1])
    yield (
        "duplicate",
        lambda more: scenario(link={"duplicate": loss | more}),
        defaults(DEFS["Chance"]["anyOf"][1]),
    )
    yield (
        "reorder",
        lambda more: scenario(link={"reorder": loss | more}),
        defaults(DEFS["Reorder"]["anyOf"][1]),
    )
    jitter = {"amount": "1 ms"}
    yield (
        "jitter",
        lambda more: scenario(link={"jitter": jitter | more}),
        defaults(DEFS["Jitter"]["anyOf"][1]),
    )
    top = defaults(SCHEMA)
    yield "scenario", lambda more: scenario(**more), top


CASES = {name: (make, found) for name, make, found in cases()}


def test_kinds_have_defaults() -> None:
    assert sum(len(found) for _, found in CASES.values()) > 100


@pytest.mark.parametrize(
    ("case", "key"), [(name, key) for name, (_, found) in CASES.items() for key in found]
)
def test_a_default_that_is_written_out_changes_nothing(case: str, key: str) -> None:
    make, found = CASES[case]
    given = found[key] == "on" if found[key] in ("on", "off") else found[key]
    assert expand(from_data(make({key: given}))) == expand(from_data(make({})))
