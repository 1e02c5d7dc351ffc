"""The JSON Schema for editors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tcplab.scenario import json_schema, read, study_schema

ROOT = Path(__file__).parents[4]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
STUDIES = sorted((ROOT / "studies").glob("*/study.yaml"))


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
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.validate(read(file).plain([]), json_schema())


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.parent.stem)
def test_it_accepts_the_shipped_studies(file: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.validate(read(file).plain([]), study_schema())


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
    jsonschema.validate(data, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data | change, json_schema())
