"""A plan as YAML text, and back.

Written by hand rather than by a library. A plan is plain JSON data, lists of numbers (a delivery trace has
thousands) belong on shared lines, and it must be quick.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tcplab.plan.shape import checked
from tcplab.plan.types import Plan

_WIDTH = 110
# Text that YAML reads the same without quotes, and no reader takes for a number, switch or null.
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*", re.ASCII)
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def dump_plan_yaml(plan: Mapping[str, object]) -> str:
    """The plan as YAML, keys in the order of the plan."""
    lines: list[str] = []
    _mapping(plan, 0, "", lines)
    return "\n".join(lines) + "\n"


def load_plan_yaml(text: str) -> Plan:
    """The plan of a YAML text that `dump_plan_yaml` wrote.

    Raises ValueError when it is not YAML, and ShapeError, a ValueError too, when it is not a plan.
    """
    return checked(load_mapping(text))


def load_mapping(text: str) -> dict[str, Any]:
    """The mapping of a YAML text of any kind; raises ValueError."""
    from tcplab import _core

    data = json.loads(_core.plan_yaml(text))
    if not isinstance(data, dict):
        raise ValueError("a mapping is expected")
    return data


def _mapping(data: Mapping[str, object], indent: int, lead: str, lines: list[str]) -> None:
    """One line a key; the first line starts with `lead` instead of the indent."""
    for key, value in data.items():
        start = f"{lead or ' ' * indent}{_scalar(key)}:"
        lead = ""
        if isinstance(value, dict) and value:
            lines.append(start)
            _mapping(value, indent + 2, "", lines)
        elif isinstance(value, list) and any(isinstance(item, dict) and item for item in value):
            lines.append(start)
            for item in value:
                if isinstance(item, dict) and item:
                    _mapping(item, indent + 2, " " * indent + "- ", lines)
                else:
                    lines.append(f"{' ' * indent}- {_scalar(item)}")
        elif isinstance(value, list) and value:
            _flow_list(value, start, indent + 2, lines)
        else:
            lines.append(f"{start} {_scalar(value)}")


def _flow_list(items: list[Any], start: str, indent: int, lines: list[str]) -> None:
    line = f"{start} ["
    for index, item in enumerate(items):
        word = _scalar(item) + ("," if index + 1 < len(items) else "]")
        if len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = " " * indent + word
        else:
            line = f"{line}{word}" if line.endswith("[") else f"{line} {word}"
    lines.append(line)


def _scalar(value: Any) -> str:
    if type(value) is int:
        return str(value)
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # JSON's scalars, empty collections and quoted strings are YAML's, except that YAML wants more characters
    # escaped and does not join surrogates.
    return "".join(
        char if char.isprintable() else f"\\U{ord(char):08x}"
        for char in json.dumps(value, ensure_ascii=False)
    )
