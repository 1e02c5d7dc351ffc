"""The language as a JSON Schema, for editors that complete and check YAML."""

from __future__ import annotations

from typing import Any

from .model import Scenario


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a scenario file, with a description of every key."""
    schema: dict[str, Any] = _tidy(Scenario.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "tcplab scenario"}


def _tidy(part: Any) -> Any:
    """What a person writes: no null, no defaults in base units, descriptions on one line."""
    if isinstance(part, list):
        return [_tidy(item) for item in part]
    if not isinstance(part, dict):
        return part
    tidy = {key: _tidy(value) for key, value in part.items()}
    if isinstance(tidy.get("title"), str):
        del tidy["title"]
    if isinstance(tidy.get("description"), str):
        tidy["description"] = " ".join(tidy["description"].split())
    if isinstance(tidy.get("anyOf"), list):
        others = [option for option in tidy["anyOf"] if option != {"type": "null"}]
        if len(others) == 1:
            del tidy["anyOf"]
            tidy = {**others[0], **tidy}
        else:
            tidy["anyOf"] = others
    is_quantity = (
        "pattern" in tidy or tidy.get("default", 0) is None or isinstance(tidy.get("default"), dict | list)
    )
    if is_quantity and "properties" not in tidy:
        tidy.pop("default", None)
    return tidy
