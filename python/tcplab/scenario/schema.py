"""The language as a JSON Schema, for editors that complete and check YAML."""

from __future__ import annotations

import json
from typing import Any


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a scenario file, with a description of every key."""
    return _schema("scenario")


def study_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a study file, with a description of every key."""
    return _schema("study")


def _schema(of: str) -> dict[str, Any]:
    from tcplab import _core

    schema: dict[str, Any] = json.loads(_core.schema(of))
    return schema
