"""The JSON Schema for editors."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tcplab.scenario import json_schema

SHIPPED = sorted((Path(__file__).parents[4] / "scenarios").glob("*.yaml"))


def properties(part: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        for key, value in part.get("properties", {}).items():
            yield key, value
        for value in part.values():
            yield from properties(value)
    elif isinstance(part, list):
        for item in part:
            yield from properties(item)


def test_every_key_is_described() -> None:
    schema = json_schema()
    undescribed = {key for key, value in properties(schema) if not value.get("description")}
    assert undescribed == {"name"} & undescribed
    assert len(list(properties(schema))) > 100


def test_it_is_plain_json() -> None:
    assert json.loads(json.dumps(json_schema()))["title"] == "tcplab scenario"


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_it_accepts_the_shipped_scenarios(file: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    yaml = YAML(typ="safe", pure=True)
    data = yaml.load(io.StringIO(file.read_text(encoding="utf-8")))
    jsonschema.validate(data, json_schema())


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
