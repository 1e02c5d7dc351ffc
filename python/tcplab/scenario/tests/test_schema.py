"""The JSON Schema for editors."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tcplab.scenario import ScenarioErrors, expand, json_schema, load, read, study_schema

ROOT = Path(__file__).parents[4]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
STUDIES = sorted((ROOT / "studies").glob("*/study.yaml"))


@cache
def validator(schema: Callable[[], Any]) -> Any:
    """Of a schema that is one: to check that takes longer than to validate a scenario."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    of = jsonschema.validators.validator_for(schema())
    of.check_schema(schema())
    return of(schema())


def properties(part: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        for key, value in part.get("properties", {}).items():
            yield key, value
        for value in part.values():
            yield from properties(value)
    elif isinstance(part, list):
        for item in part:
            yield from properties(item)


def test_it_is_plain_json() -> None:
    assert json.loads(json.dumps(json_schema()))["title"] == "tcplab scenario"


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_it_accepts_the_shipped_scenarios(file: Path) -> None:
    validator(json_schema).validate(read(file).plain([]))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.parent.stem)
def test_it_accepts_the_shipped_studies(file: Path) -> None:
    validator(study_schema).validate(read(file).plain([]))


@pytest.mark.parametrize(
    "change",
    [{"flows": [{"name": "a", "kind": "tcp", "strems": 4}]}, {"seed": "x"}, {"duration": 10}, {"extra": 1}],
)
def test_it_refuses_what_the_loader_refuses(change: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    data = {
        "tcplab": 1,
        "name": "test",
        "network": {"path": {"rate": "10 Mbit/s", "rtt": "40 ms"}},
        "flows": [{"name": "bulk", "kind": "tcp"}],
    }
    validator(json_schema).validate(data)
    with pytest.raises(jsonschema.ValidationError):
        validator(json_schema).validate(data | change)


# Forms of a queue, and whether the reader takes them.
QUEUES = {
    "50 packets": True,
    "codel": True,
    "prio": False,
    "coddel": False,
    "{limit: 50 packets, mark_above: 10 packets}": True,
    "{kind: codel, limit: 50 packets}": True,
    "{kind: codel, mark_above: 10 packets}": False,
    "{limit: 50 packets, target: 5 ms}": False,
    "{kind: prio, bands: [{queue: 50 packets}, {queue: {kind: drr, limit: 1 MB}}]}": True,
    "{kind: tbf, rate: 1 Mbit/s, burst: 3 kB, queue: pie}": True,
    "{mark_above: 10 packets}": False,
}


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("change", ["60 packets", "{limit: 60 packets}", "{mark_above: 5 packets}"])
def test_it_takes_the_forms_of_a_queue_that_the_loader_takes(tmp_path: Path, queue: str, change: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    # Of some kinds nothing can change, and of most no threshold: that is said later.
    changes = "prio" not in queue and "tbf" not in queue and ("mark" not in change or "{limit" in queue)
    at = f"{{5 s: {{queue: {change}}}}}" if changes else "{}"
    link = f"{{ends: [h1, h2], rate: 10 Mbit/s, delay: 1 ms, queue: {queue}, at: {at}}}"
    file = tmp_path / "queue.yaml"
    file.write_text(
        f"tcplab: 1\nname: queue\nnetwork: {{nodes: [h1, h2], links: [{link}]}}\n"
        "flows: [{name: bulk, kind: tcp, from: h1, to: h2}]\n",
        encoding="utf-8",
    )
    accepted = {"schema": True, "loader": True}
    try:
        validator(json_schema).validate(read(file).plain([]))
    except jsonschema.ValidationError:
        accepted["schema"] = False
    try:
        expand(load(file))
    except ScenarioErrors:
        accepted["loader"] = False
    assert accepted == dict.fromkeys(accepted, QUEUES[queue])
