"""Data of Python as a scenario has them: numbers and arrays of NumPy become Python's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Deeper data are refused by whoever reads them; they may hold themselves.
_DEPTH = 24


def plain(data: Any, depth: int = 0) -> Any:
    """The data as mappings, lists, numbers and texts; anything else is its text."""
    if depth > _DEPTH or data is None or isinstance(data, str | bool | int | float):
        return data
    if isinstance(data, Mapping):
        return {str(key): plain(value, depth + 1) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(value, depth + 1) for value in data]
    return data.tolist() if hasattr(data, "tolist") else str(data)


def as_yaml(value: object) -> str:
    """A value as it would stand in a file; JSON is YAML."""
    return value if isinstance(value, str) else json.dumps(plain(value))


def overrides(settings: Mapping[str, object] | None) -> list[str]:
    """Settings by path as the command line has them: `path=value`.

    Raises TypeError for anything but a mapping.
    """
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError(f"set={settings!r}: expected a dictionary, such as {{'flows.bulk.cc': 'reno'}}")
    return [f"{path}={as_yaml(value)}" for path, value in (settings or {}).items()]
